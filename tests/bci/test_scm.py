"""Sampling from the ground truth, against closed forms."""

import tracemalloc

import numpy as np
import pytest
from scipy import stats

from bci.errors import InvalidInput
from bci.mechanisms import Constant, GammaPrior, KernelExpansion, Linear, Sigmoid
from bci.random_graphs import erdos_renyi
from bci.scm import AdditiveNoiseModel, draw_scm


@pytest.fixture
def linear_model():
    """A linear model on X2 -> X0, X2 -> X1, X0 -> X1 and its weights (row causes column), means and variances."""
    weights = np.zeros((3, 3))
    weights[2, 0], weights[2, 1], weights[0, 1] = 1.5, -0.7, 2.0
    graph = weights != 0
    variances = np.array([0.5, 1.0, 2.0])
    mechanisms = (Linear(np.array([1.5])), Linear(np.array([2.0, -0.7])), Constant(3.0))
    return AdditiveNoiseModel(graph, mechanisms, variances), weights, np.array([0.0, 0.0, 3.0]), variances


def moments(weights, intercepts, variances):
    """Mean and covariance of x = W' x + c + u."""
    total = np.linalg.inv(np.eye(len(weights)) - weights.T)
    return total @ intercepts, total @ np.diag(variances) @ total.T


def assert_moments(samples, mean, covariance):
    n = len(samples)
    np.testing.assert_array_less(np.abs(samples.mean(axis=0) - mean), 4.5 * np.sqrt(np.diag(covariance) / n) + 1e-12)
    scale = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)) + covariance**2)
    np.testing.assert_array_less(np.abs(np.cov(samples.T) - covariance), 4.5 * scale / np.sqrt(n) + 1e-12)


def test_linear_model_has_the_closed_form_moments(linear_model):
    model, weights, intercepts, variances = linear_model
    samples = model.sample(50_000, np.random.default_rng(0))
    assert_moments(samples, *moments(weights, intercepts, variances))
    assert stats.kstest(samples[:, 2], stats.norm(3, np.sqrt(2)).cdf).pvalue > 1e-3


@pytest.mark.parametrize("do", [{0: 1.0}, {2: -4.0}, {0: 2.0, 2: 0.5}, {1: 7.0}])
def test_do_cuts_the_incoming_edges(linear_model, do):
    model, weights, intercepts, variances = linear_model
    for node, value in do.items():
        weights[:, node] = 0
        intercepts[node] = value
        variances = np.where(np.arange(3) == node, 0, variances)
    samples = model.sample(50_000, np.random.default_rng(1), do=do)
    for node, value in do.items():
        assert (samples[:, node] == value).all()
    assert_moments(samples, *moments(weights, intercepts, variances))


def test_do_on_a_leaf_leaves_the_others_as_they_are(linear_model):
    model = linear_model[0]
    observed = model.sample(100, np.random.default_rng(2))
    intervened = model.sample(100, np.random.default_rng(2), do={1: 5.0})
    np.testing.assert_array_equal(observed[:, [0, 2]], intervened[:, [0, 2]])


@pytest.mark.parametrize("do", [{3: 0.0}, {-1: 0.0}, {0: float("nan")}, {0: float("inf")}])
def test_do_on_nothing_is_refused(linear_model, do):
    with pytest.raises(InvalidInput, match="do: expected node indices"):
        linear_model[0].sample(5, np.random.default_rng(0), do=do)


def test_parents_reach_the_mechanism_in_ascending_order():
    graph = np.zeros((3, 3), dtype=bool)
    graph[[0, 2], 1] = True
    model = AdditiveNoiseModel(
        graph, (Constant(1.0), Sigmoid(*np.array([[1.0, 100.0]] * 2), np.zeros(2)), Constant(2.0)), np.zeros(3)
    )
    expected = 1 * 1 / 2 + 100 * 200 / 201
    np.testing.assert_allclose(model.sample(2, np.random.default_rng(0)), [[1.0, expected, 2.0]] * 2)


@pytest.mark.parametrize(("kind", "cls"), [("gp", KernelExpansion), ("sigmoid", Sigmoid), ("linear", Linear)])
def test_drawn_model_fits_its_graph(kind, cls):
    rng = np.random.default_rng(3)
    graph = erdos_renyi(10, 2, rng)
    model = draw_scm(graph, kind, rng)
    for mechanism, num_parents in zip(model.mechanisms, graph.sum(axis=0), strict=True):
        assert isinstance(mechanism, cls if num_parents else Constant)
        assert mechanism(np.zeros((4, num_parents))).shape == (4,)
    assert model.sample(20, rng).shape == (20, 10)


def test_residuals_are_gaussian_noise_of_the_stated_variance():
    rng = np.random.default_rng(4)
    model = draw_scm(erdos_renyi(6, 2, rng), "gp", rng)
    samples = model.sample(4000, rng)
    for node, mechanism in enumerate(model.mechanisms):
        residuals = samples[:, node] - mechanism(samples[:, model.graph[:, node]])
        assert stats.kstest(residuals, stats.norm(0, np.sqrt(model.noise_variances[node])).cdf).pvalue > 1e-3


def chain(num_nodes):
    return np.eye(num_nodes, k=1, dtype=bool)


def test_noise_variances_follow_the_default_prior():
    variances = draw_scm(chain(1500), "linear", np.random.default_rng(5)).noise_variances[1:]
    assert stats.kstest(variances, stats.gamma(50, scale=1 / 50).cdf).pvalue > 1e-3


def test_noise_variances_follow_a_prior_that_is_given():
    model = draw_scm(chain(1500), "linear", np.random.default_rng(6), noise_variance=GammaPrior(2, 8))
    assert stats.kstest(model.noise_variances[1:], stats.gamma(2, scale=1 / 8).cdf).pvalue > 1e-3


def test_constant_noise_variance_spares_the_roots():
    model = draw_scm(chain(4), "sigmoid", np.random.default_rng(7), noise_variance=0.693)
    assert (model.noise_variances[1:] == 0.693).all()
    assert model.noise_variances[0] != 0.693


def test_sigmoid_signs_reach_the_mechanisms():
    graph = np.zeros((21, 21), dtype=bool)
    graph[:20, 20] = True
    slopes = draw_scm(graph, "sigmoid", np.random.default_rng(8), sigmoid_signs="per_node").mechanisms[20].slopes
    assert len(set(np.sign(slopes))) == 1


def test_many_samples_do_not_need_the_whole_kernel():
    model = draw_scm(np.triu(np.ones((5, 5), dtype=bool), k=1), "gp", np.random.default_rng(9))
    tracemalloc.start()
    model.sample(20_000, np.random.default_rng(0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30e6  # the kernel of the last node alone would take 32 MB
