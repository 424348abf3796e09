"""Mechanisms against their formulas, scikit-learn's GP, and the distributions that they are drawn from."""

import numpy as np
import pytest
from scipy import stats
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RationalQuadratic

from bci import mechanisms
from bci.mechanisms import GammaPrior, Linear, Sigmoid, draw_gp, draw_linear, draw_root, draw_sigmoid, lengthscale_prior


def rational_quadratic(function):
    """scikit-learn's kernel, over the output scale."""
    return RationalQuadratic(length_scale=function.lengthscale, alpha=function.gamma)


def values_at_support(function):
    """What was drawn from the prior, recovered from the coefficients."""
    kernel = rational_quadratic(function)(function.support) + mechanisms.JITTER * np.eye(len(function.support))
    return kernel @ function.coefficients


@pytest.mark.parametrize("num_parents", [1, 2, 5])
def test_gp_function_passes_through_the_drawn_values(num_parents):
    function = draw_gp(num_parents, np.random.default_rng(num_parents))
    assert function.support.shape == (50 * num_parents, num_parents)
    np.testing.assert_allclose(function(function.support), values_at_support(function), atol=2e-3)


@pytest.mark.parametrize("num_parents", [1, 3])
def test_gp_function_is_the_posterior_mean(num_parents):
    rng = np.random.default_rng(num_parents)
    function = draw_gp(num_parents, rng)
    oracle = GaussianProcessRegressor(rational_quadratic(function), alpha=mechanisms.JITTER, optimizer=None)
    oracle.fit(function.support, values_at_support(function))
    inputs = rng.uniform(-14, 14, size=(200, num_parents))
    np.testing.assert_allclose(function(inputs), oracle.predict(inputs), atol=1e-5)


def test_gp_values_have_the_covariance_of_the_prior():
    rng = np.random.default_rng(0)
    whitened = []
    for _ in range(200):
        function = draw_gp(1, rng)
        kernel = 10.0 * rational_quadratic(function)(function.support) + 1e-7 * np.eye(50)
        whitened.append(values_at_support(function) @ np.linalg.solve(kernel, values_at_support(function)) / 50)
    # Each is outputscale / 10 times a chi-square over its 50 degrees of freedom: mean 1, variance 0.01 + 0.04 + ...
    assert abs(np.mean(whitened) - 1) < 4 * np.sqrt(0.0504 / 200)


def test_gp_hyper_parameters_follow_the_generating_priors():
    rng = np.random.default_rng(1)
    functions = [draw_gp(2, rng) for _ in range(300)]
    lengthscales = [function.lengthscale for function in functions]
    gammas = [function.gamma for function in functions]
    support = np.concatenate([function.support for function in functions]).ravel()
    assert stats.kstest(lengthscales, stats.gamma(60, scale=1 / 30).cdf).pvalue > 1e-3
    assert stats.kstest(gammas, stats.gamma(20, scale=1 / 10).cdf).pvalue > 1e-3
    assert stats.kstest(support, stats.uniform(-10, 20).cdf).pvalue > 1e-3


def test_blocks_do_not_change_the_gp_function(monkeypatch):
    function = draw_gp(2, np.random.default_rng(2))
    inputs = np.random.default_rng(3).normal(size=(1001, 2))
    whole = function(inputs)
    monkeypatch.setattr(mechanisms, "KERNEL_BLOCK", 700)  # seven rows
    np.testing.assert_allclose(function(inputs), whole, rtol=1e-10, atol=1e-8)


def test_sigmoid_matches_its_formula():
    mechanism = Sigmoid(scales=np.array([3.0, 5.0]), slopes=np.array([-2.0, 0.5]), shifts=np.array([1.0, -1.0]))
    # u = (-4, 1): 3 * -4/5 + 5 * 1/2
    assert mechanism(np.array([[1.0, 3.0]])) == pytest.approx([0.1])


def test_sigmoid_parameters_follow_their_distributions():
    drawn = draw_sigmoid(4000, np.random.default_rng(4))
    assert stats.kstest(drawn.scales, stats.gamma(50, scale=1 / 10).cdf).pvalue > 1e-3
    assert stats.kstest(np.abs(drawn.slopes), stats.uniform(0.5, 1.5).cdf).pvalue > 1e-3
    assert stats.kstest(drawn.shifts, stats.uniform(-2, 4).cdf).pvalue > 1e-3
    assert stats.binomtest(int((drawn.slopes > 0).sum()), 4000).pvalue > 1e-3


def test_sigmoid_signs_per_node_agree_within_a_node_and_vary_between_nodes():
    rng = np.random.default_rng(5)
    signs = np.sign([draw_sigmoid(6, rng, signs="per_node").slopes for _ in range(400)])
    assert (signs == signs[:, [0]]).all()
    assert stats.binomtest(int((signs[:, 0] > 0).sum()), 400).pvalue > 1e-3


def test_linear_is_the_weighted_sum():
    assert Linear(np.array([2.0, -1.0]))(np.array([[1.0, 3.0], [0.0, 1.0]])) == pytest.approx([-1.0, -1.0])


def test_linear_weights_stay_away_from_zero():
    weights = draw_linear(4000, np.random.default_rng(6)).weights
    assert stats.kstest(np.abs(weights), stats.uniform(0.5, 1.5).cdf).pvalue > 1e-3
    assert stats.binomtest(int((weights > 0).sum()), 4000).pvalue > 1e-3


def test_roots_follow_the_normal_inverse_gamma():
    rng = np.random.default_rng(7)
    roots = [draw_root(rng) for _ in range(2000)]
    variances = np.array([variance for _, variance in roots])
    means = np.array([mechanism(np.empty((1, 0)))[0] for mechanism, _ in roots])
    assert stats.kstest(variances, stats.invgamma(5, scale=10).cdf).pvalue > 1e-3
    assert stats.kstest(means / np.sqrt(variances), "norm").pvalue > 1e-3
    # Integrating the variance out leaves a Student-t with 2 * 5 degrees of freedom and scale sqrt(10 / 5).
    assert stats.kstest(means, stats.t(10, scale=np.sqrt(2)).cdf).pvalue > 1e-3


def test_gamma_prior_takes_shape_and_rate():
    rng = np.random.default_rng(8)
    draws = [GammaPrior(50, 25).draw(rng) for _ in range(2000)]
    assert stats.kstest(draws, stats.gamma(50, scale=1 / 25).cdf).pvalue > 1e-3
    assert lengthscale_prior(3) == GammaPrior(90, 30)
