"""GP regression against gpytorch and the textbook formula, and its two forms against each other."""

import gp_oracle
import gpytorch
import numpy as np
import pytest
import torch

from bci import gp_regression as module
from bci.gp_regression import dense_regression, gp_regression, low_rank_regression


class PlainGP(gpytorch.models.ExactGP):
    """gpytorch's exact GP with the kernel of the paper, at given hyper-parameters."""

    def __init__(self, inputs, targets, log_parameters):
        super().__init__(inputs, targets, gpytorch.likelihoods.GaussianLikelihood())
        self.mean_module = gpytorch.means.ZeroMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RQKernel())
        self.double()
        lengthscale, gamma, outputscale, noise = log_parameters.exp()
        self.covar_module.base_kernel.lengthscale, self.covar_module.base_kernel.alpha = lengthscale, gamma
        self.covar_module.outputscale, self.likelihood.noise = outputscale, noise

    def forward(self, inputs):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(inputs), self.covar_module(inputs))


def example(num_rows, num_parents, seed=0):
    """Inputs, targets, log parameters and new inputs, some of them far from all rows."""
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(num_rows, num_parents))
    targets = np.sin(2 * inputs.sum(axis=1)) + 0.4 * rng.normal(size=num_rows)
    log_parameters = np.log([1.1 * num_parents, 1.9, 9.6, 0.3])
    new = 1.5 * rng.normal(size=(40, num_parents))
    return tuple(map(torch.as_tensor, (inputs, targets, log_parameters, new)))


@pytest.mark.parametrize(("num_rows", "num_parents"), [(2, 1), (30, 1), (100, 2), (100, 5)])
def test_predictions_equal_those_of_gpytorch(num_rows, num_parents):
    inputs, targets, log_parameters, new = example(num_rows, num_parents)
    model = PlainGP(inputs, targets, log_parameters).eval()
    exact = gpytorch.settings.fast_computations(False, False, False)
    with torch.no_grad(), exact, gpytorch.settings.fast_pred_var(False):
        expected = model.likelihood(model(new))
    mean, variance = gp_regression(inputs, targets, log_parameters).predict(new)
    np.testing.assert_allclose(mean, expected.mean, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(variance, expected.variance, rtol=1e-8, atol=1e-8)


def test_predictions_condition_the_joint_distribution_of_old_and_new_values():
    inputs, targets, log_parameters, new = (array.numpy() for array in example(25, 3))
    joint = gp_oracle.covariance(np.vstack([inputs, new]), log_parameters)
    gain = np.linalg.solve(joint[:25, :25], joint[:25, 25:])
    mean, variance = gp_regression(*example(25, 3)[:3]).predict(torch.as_tensor(new))
    np.testing.assert_allclose(mean, gain.T @ targets, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(variance, np.diag(joint[25:, 25:] - gain.T @ joint[:25, 25:]), rtol=1e-9)


@pytest.mark.parametrize("num_parents", [1, 2, 3])
def test_both_forms_agree(num_parents):
    inputs, targets, log_parameters, new = example(400, num_parents)
    dense = dense_regression(inputs, targets, log_parameters).predict(new)
    reduced = low_rank_regression(inputs, targets, log_parameters)
    assert len(reduced.points) < 400
    for ours, theirs, tolerance in zip(reduced.predict(new), dense, (1e-3, 1e-4), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance)


def test_many_rows_use_fewer_points():
    few, many = example(module.DENSE_ROWS, 1), example(module.DENSE_ROWS + 1, 1)
    assert len(gp_regression(*few[:3]).points) == module.DENSE_ROWS
    assert len(gp_regression(*many[:3]).points) < 60


def test_repeated_rows_are_no_trouble():
    inputs, targets, log_parameters, new = example(300, 2)
    inputs[:150] = inputs[0]
    dense = dense_regression(inputs, targets, log_parameters).predict(new)
    reduced = low_rank_regression(inputs, targets, log_parameters).predict(new)
    np.testing.assert_allclose(reduced[0], dense[0], rtol=0, atol=1e-3)


@pytest.mark.parametrize("condition", [dense_regression, low_rank_regression])
def test_far_from_the_data_the_prior_is_left(condition):
    inputs, targets, log_parameters, _ = example(150, 2)
    mean, variance = condition(inputs, targets, log_parameters).predict(torch.full((1, 2), 1e4, dtype=torch.float64))
    _, _, outputscale, noise = log_parameters.exp()
    assert abs(float(mean)) < 1e-3
    assert float(variance) == pytest.approx(float(outputscale + noise), rel=1e-6)


@pytest.mark.parametrize("condition", [dense_regression, low_rank_regression])
def test_variances_include_the_noise(condition):
    inputs, targets, log_parameters, _ = example(2000 if condition is low_rank_regression else 500, 1)
    _, variance = condition(inputs, targets, log_parameters).predict(inputs)
    noise = float(log_parameters[3].exp())
    assert variance.min() > noise
    assert variance.median() < 1.02 * noise
