import math

import gpytorch
import numpy as np
import pytest
import torch
from scipy import integrate, stats

from bci.kernels import (
    NOISE_PRIOR,
    OUTPUTSCALE_PRIOR,
    SHAPE_PRIOR,
    NormalInverseGamma,
    lengthscale_prior,
    rational_quadratic,
    rational_quadratic_derivatives,
    rational_quadratic_first_derivatives,
)


@pytest.mark.parametrize("prior", [OUTPUTSCALE_PRIOR, SHAPE_PRIOR, NOISE_PRIOR, lengthscale_prior(3)])
def test_gamma_density_and_mode_agree_with_scipy(prior):
    oracle = stats.gamma(prior.shape, scale=1 / prior.rate)
    values = np.array([0.01, 0.5, 3.0, 12.0])
    ours = prior.log_density(torch.tensor(values).log())
    np.testing.assert_allclose(ours, oracle.logpdf(values), rtol=1e-12)
    around = oracle.pdf(prior.mode * np.array([0.99, 1.0, 1.01]))
    assert around.argmax() == 1


def test_kernel_agrees_with_gpytorch():
    rng = np.random.default_rng(0)
    inputs = torch.tensor(rng.normal(size=(6, 2)))
    kernel = gpytorch.kernels.RQKernel().double()
    kernel.lengthscale, kernel.alpha = 1.7, 0.8
    squared = torch.cdist(inputs, inputs) ** 2
    ours = rational_quadratic(squared, torch.tensor(1.7).double(), torch.tensor(0.8).double())
    torch.testing.assert_close(ours, kernel(inputs).to_dense().detach(), rtol=1e-6, atol=1e-9)


def test_kernel_derivatives_agree_with_autograd():
    squared = torch.tensor([0.0, 1e-3, 0.4, 7.0, 300.0], dtype=torch.float64)
    log_parameters = torch.tensor([0.3, -0.2], dtype=torch.float64)
    derivatives = rational_quadratic_derivatives(squared, *log_parameters.exp())
    value, first = rational_quadratic_first_derivatives(squared, *log_parameters.exp())
    torch.testing.assert_close(value, derivatives.value)
    for entry, distance in enumerate(squared):

        def kernel(logs, distance=distance):
            return rational_quadratic(distance, *logs.exp())

        slope = torch.autograd.functional.jacobian(kernel, log_parameters)
        bend = torch.autograd.functional.hessian(kernel, log_parameters)
        for found in (derivatives.first, first):
            torch.testing.assert_close(torch.stack([part[entry] for part in found]), slope)
        uu, uv, vv = (part[entry] for part in derivatives.second)
        torch.testing.assert_close(torch.stack([uu, uv, uv, vv]).reshape(2, 2), bend)


def test_root_marginal_likelihood_is_the_product_of_student_t_predictions():
    values = torch.tensor(np.random.default_rng(1).normal(size=7))
    model = NormalInverseGamma(mu=0.3, kappa=2.5)
    total = 0.0
    for n in range(len(values)):
        after = model.posterior(values[:n]) if n else model
        scale = math.sqrt(after.beta * (after.kappa + 1) / (after.alpha * after.kappa))
        total += stats.t.logpdf(float(values[n]), 2 * after.alpha, after.mu, scale)
    assert model.log_marginal_likelihood(values) == pytest.approx(total, rel=1e-12)


def test_root_marginal_likelihood_integrates_mean_and_variance_out():
    values = np.array([0.4, -1.1, 2.0])
    model = NormalInverseGamma(alpha=5.0)

    def joint(mean, log_variance):
        variance = math.exp(log_variance)
        prior = stats.invgamma.pdf(variance, 5, scale=10) * stats.norm.pdf(mean, 0, math.sqrt(variance)) * variance
        return prior * stats.norm.pdf(values, mean, math.sqrt(variance)).prod()

    integral, _ = integrate.dblquad(joint, -3, 5, -12, 12)
    assert model.log_marginal_likelihood(torch.tensor(values)) == pytest.approx(math.log(integral), abs=1e-5)
