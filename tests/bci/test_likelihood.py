import gpytorch
import numpy as np
import pytest
import torch
from gp_oracle import covariance, log_likelihood

from bci.kernels import NOISE_PRIOR, OUTPUTSCALE_PRIOR
from bci.likelihood import (
    best_outputscale_and_noise,
    dense_log_marginal_likelihood,
    expand_likelihood,
    log_marginal_likelihood,
)
from bci.newton import concave, secant_corrected
from bci.pair_likelihood import dense_expansion, low_rank_expansion
from bci.pivots import select_pivots
from bci.roughness import roughness_score
from bci.spectra import kernel_spectrum

PARAMETERS = torch.tensor([[1.7, 1.9, 9.5, 0.4], [2.4, 1.2, 10.0, 0.15]], dtype=torch.float64).log()


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    inputs = torch.tensor(rng.normal(size=(2, 60, 2)))
    targets = torch.tensor(np.sin(2 * inputs[..., 0].numpy()) + 0.5 * rng.normal(size=(2, 60)))
    return inputs, targets


def derivatives_by_autograd(inputs, target, parameters):
    def value(logs):
        return dense_log_marginal_likelihood(inputs[None], target[None], logs[None])[0]

    functional = torch.autograd.functional
    return functional.jacobian(value, parameters), functional.hessian(value, parameters)


def test_dense_value_agrees_with_gpytorch_and_scipy(problem):
    inputs, targets = problem
    ours = dense_log_marginal_likelihood(inputs, targets, PARAMETERS)
    for each, (lengthscale, gamma, outputscale, noise) in enumerate(PARAMETERS.exp().tolist()):
        kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RQKernel()).double()
        kernel.base_kernel.lengthscale, kernel.base_kernel.alpha, kernel.outputscale = lengthscale, gamma, outputscale
        matrix = kernel(inputs[each]).to_dense() + noise * torch.eye(60).double()
        with torch.no_grad():
            oracle = gpytorch.distributions.MultivariateNormal(torch.zeros(60).double(), matrix).log_prob(targets[each])
        assert float(ours[each]) == pytest.approx(float(oracle), rel=1e-6)
        scipy = log_likelihood(inputs[each].numpy(), targets[each].numpy(), PARAMETERS[each].numpy())
        assert float(ours[each]) == pytest.approx(scipy, rel=1e-10)


def test_spectral_value_agrees_with_the_dense_one(problem):
    inputs, targets = problem
    pivots = select_pivots(inputs, PARAMETERS[:, :2], 1e-6)
    spectrum, _ = kernel_spectrum(inputs, targets.T, PARAMETERS[:, :2], pivots)
    log_outputscale, log_noise = (PARAMETERS[:, None, index].expand(2, 2) for index in (2, 3))
    ours = log_marginal_likelihood(spectrum, log_outputscale, log_noise, 60)
    for target in range(2):
        dense = dense_log_marginal_likelihood(inputs, targets[[target, target]], PARAMETERS)
        torch.testing.assert_close(ours[:, target], dense, rtol=1e-5, atol=0)


def test_shared_expansion_agrees_with_autograd(problem):
    inputs, targets = problem
    kernel = PARAMETERS[:, :2]
    spectrum, derivatives = kernel_spectrum(inputs, targets.T, kernel, select_pivots(inputs, kernel, 1e-6))
    log_outputscale, log_noise = (PARAMETERS[:, None, index].expand(2, 2) for index in (2, 3))
    model = expand_likelihood(spectrum, derivatives, kernel, log_outputscale, log_noise, 60)
    for each in range(2):
        for target in range(2):
            gradient, hessian = derivatives_by_autograd(inputs[each], targets[target], PARAMETERS[each])
            torch.testing.assert_close(model.centre[each, target], PARAMETERS[each])
            torch.testing.assert_close(model.gradient[each, target], gradient, rtol=2e-3, atol=0.05)
            torch.testing.assert_close(model.hessian[each, target], hessian, rtol=2e-3, atol=0.05)


def test_best_outputscale_and_noise_is_a_maximum(problem):
    inputs, targets = problem
    kernel = PARAMETERS[:, :2]
    spectrum, _ = kernel_spectrum(inputs, targets.T, kernel, select_pivots(inputs, kernel, 1e-6))

    def objective(log_outputscale, log_noise):
        value = 0.3 * log_marginal_likelihood(spectrum, log_outputscale, log_noise, 60)
        return value + OUTPUTSCALE_PRIOR.log_density(log_outputscale) + NOISE_PRIOR.log_density(log_noise)

    best = best_outputscale_and_noise(spectrum, 60, 0.3)
    grid = torch.linspace(-4, 1, 101, dtype=torch.float64)
    for log_noise in grid:
        for shift in (-0.2, -0.02, 0.0, 0.02, 0.2):
            elsewhere = objective(best[0] + shift, torch.full_like(best[1], float(log_noise)))
            assert (elsewhere <= objective(*best) + 1e-4).all()


@pytest.mark.parametrize("low_rank", [False, True])
def test_pair_expansions_have_exact_values_and_gradients(problem, low_rank):
    inputs, targets = problem
    if low_rank:
        pivots = select_pivots(inputs, PARAMETERS[:, :2], 1e-6)
        assert (pivots < 0).any()
        model = low_rank_expansion(inputs, targets, PARAMETERS, pivots)
    else:
        model = dense_expansion(inputs, targets, PARAMETERS)
    dense = dense_log_marginal_likelihood(inputs, targets, PARAMETERS)
    torch.testing.assert_close(model.value, dense, rtol=0, atol=2e-3 if low_rank else 1e-10)
    for each in range(2):
        gradient, _ = derivatives_by_autograd(inputs[each], targets[each], PARAMETERS[each])
        torch.testing.assert_close(model.gradient[each], gradient, rtol=1e-3, atol=0.02 if low_rank else 1e-8)


def test_average_information_agrees_with_its_definition(problem):
    inputs, targets = problem
    step, logs, x = 1e-5, PARAMETERS[0].numpy(), inputs[0].numpy()
    slopes = [
        (covariance(x, logs + step * unit) - covariance(x, logs - step * unit)) / (2 * step) for unit in np.eye(4)
    ]
    inverse = np.linalg.inv(covariance(x, logs))
    moved = np.stack([slope @ inverse @ targets[0].numpy() for slope in slopes])
    information = moved @ inverse @ moved.T / 2
    for model in (
        dense_expansion(inputs, targets, PARAMETERS),
        low_rank_expansion(inputs, targets, PARAMETERS, select_pivots(inputs, PARAMETERS[:, :2], 1e-6)),
    ):
        np.testing.assert_allclose(-model.hessian[0], information, rtol=2e-3, atol=1e-3)


def test_value_is_minus_infinity_where_the_covariance_is_singular():
    inputs = torch.zeros(1, 5, 1, dtype=torch.float64)
    parameters = torch.tensor([[0.0, 0.0, 2.0, -80.0]], dtype=torch.float64)
    model = dense_expansion(inputs, torch.ones(1, 5, dtype=torch.float64), parameters)
    assert model.value.tolist() == [-np.inf]


def test_concave_keeps_concave_hessians_and_flips_the_others():
    good = torch.tensor([[-2.0, 0.5], [0.5, -1.0]], dtype=torch.float64)
    bad = torch.diag(torch.tensor([3.0, -4.0], dtype=torch.float64))
    kept, flipped = concave(torch.stack([good, bad]))
    torch.testing.assert_close(kept, good)
    torch.testing.assert_close(flipped, torch.diag(torch.tensor([-3.0, -4.0], dtype=torch.float64)))


def test_secant_correction_maps_the_step_to_the_change_of_the_gradient(problem):
    inputs, targets = problem
    before = dense_expansion(inputs, targets, PARAMETERS)
    model = dense_expansion(inputs, targets, PARAMETERS + 0.1)
    corrected = secant_corrected(model, before)
    predicted = (corrected.hessian @ (model.centre - before.centre)[..., None])[..., 0]
    torch.testing.assert_close(predicted, model.gradient - before.gradient)
    torch.testing.assert_close(secant_corrected(model, model).hessian, model.hessian)


def test_roughness_agrees_with_dense_matrices(problem):
    inputs, targets = problem
    kernel = PARAMETERS[:, :2]
    spectrum, _ = kernel_spectrum(inputs, targets.T, kernel, select_pivots(inputs, kernel, 1e-6))
    log_outputscale, log_noise = (PARAMETERS[:, None, index].expand(2, 2) for index in (2, 3))
    ours = roughness_score(inputs, targets.T, spectrum, log_outputscale, log_noise, 0.4, 1.1)
    for each in range(2):
        x = inputs[each].numpy()
        inverse = np.linalg.inv(covariance(x, PARAMETERS[each].numpy()))
        rough = covariance(x, [np.log(0.4), np.log(1.1), 0.0, -np.inf])
        product = inverse @ rough
        for target in range(2):
            solved = inverse @ targets[target].numpy()
            score = (solved @ rough @ solved - np.trace(product)) / np.sqrt(2 * np.trace(product @ product))
            assert float(ours[each, target]) == pytest.approx(score, abs=1e-3)
