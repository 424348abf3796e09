from __future__ import annotations

import itertools

import numpy as np
import pytest

from bci.dataset import Dataset
from bci.errors import InvalidInput
from bci.graphs import find_cycle
from bci.linear_posterior import LinearModel, fit_linear_posterior
from bci.posterior import GraphPosterior

NAMES = ("a", "b", "c", "d")
# a -> b (0.8), a -> c (-0.5), b -> d (1.2), c -> d (0.7), row causes column
WEIGHTS = np.array([[0, 0.8, -0.5, 0], [0, 0, 0, 1.2], [0, 0, 0, 0.7], [0, 0, 0, 0]])


def linear_gaussian(num_samples=300, seed=0):
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(num_samples, 4)) * [1.0, 0.5, 0.6, 0.4] + [3.0, -1.0, 0.0, 2.0]
    return Dataset.from_raw(noise @ np.linalg.inv(np.eye(4) - WEIGHTS), NAMES, graph=WEIGHTS != 0)


def random_dags(count, num_nodes=4, seed=0):
    rng = np.random.default_rng(seed)
    graphs = []
    for _ in range(count):
        order = rng.permutation(num_nodes)
        graphs.append(np.triu(rng.random((num_nodes, num_nodes)) < 0.6, 1)[np.ix_(order, order)])
    return np.array(graphs)


def naive_mean(observations, graphs, weights, do):
    """The same posterior by loops over scalars and the formulas as they are printed."""
    num_rows, d = observations.shape
    alpha_mu = 1
    alpha_w = d + alpha_mu + 1
    mean = [sum(row[i] for row in observations) / num_rows for i in range(d)]
    R = np.zeros((d, d))
    for i, j in itertools.product(range(d), repeat=2):
        R[i, j] = sum((row[i] - mean[i]) * (row[j] - mean[j]) for row in observations)
        R[i, j] += alpha_mu * num_rows / (alpha_mu + num_rows) * mean[i] * mean[j]
        R[i, j] += (alpha_w - d - 1) / (alpha_mu + 1) * (i == j)
    mu = [num_rows * m / (alpha_mu + num_rows) for m in mean]
    total = np.zeros(d)
    for graph, weight in zip(graphs, weights, strict=True):
        x, left = dict(do), [node for node in range(d) if node not in do]
        while left:
            for node in list(left):
                parents = [j for j in range(d) if graph[j, node]]
                if all(parent in x for parent in parents):
                    among = np.array([[R[j, k] for k in parents] for j in parents]).reshape(len(parents), len(parents))
                    slopes = np.linalg.inv(among) @ [R[j, node] for j in parents]
                    x[node] = mu[node] + sum(s * (x[p] - mu[p]) for s, p in zip(slopes, parents, strict=True))
                    left.remove(node)
        total += weight * np.array([x[node] for node in range(d)])
    return total


@pytest.mark.parametrize("do", [{}, {0: 1.3}, {3: -2.0}, {1: 0.5, 2: -1.0}])
def test_means_are_those_of_a_naive_implementation(do):
    dataset = linear_gaussian(num_samples=40)
    graphs = random_dags(15)
    assert not any(find_cycle(graph) for graph in graphs)
    weights = np.random.default_rng(1).dirichlet(np.ones(15))
    posterior = fit_linear_posterior(GraphPosterior(graphs, weights), dataset)
    expected = naive_mean(dataset.observations, graphs, weights, do)
    np.testing.assert_allclose(posterior.interventional_mean(do), expected, rtol=0, atol=1e-12)


def test_means_of_data_that_are_not_centred_are_those_of_a_naive_implementation():
    """As of the observational rows of a data set that has others too."""
    dataset = linear_gaussian(num_samples=40)
    shifted = Dataset(dataset.observations + np.array([0.5, 1, 0, -2]), NAMES, dataset.intervened, dataset.scaler)
    graphs = random_dags(5)
    posterior = fit_linear_posterior(GraphPosterior(graphs), shifted)
    expected = naive_mean(shifted.observations, graphs, np.full(5, 0.2), {0: 1.0})
    np.testing.assert_allclose(posterior.interventional_mean({0: 1.0}), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("do", [{"a": 5.0}, {"b": -3.0}, {"b": 1.0, "c": 0.0}, {"d": 4.0}])
def test_on_a_linear_gaussian_model_with_known_graph_means_are_the_closed_form(do):
    dataset = linear_gaussian(num_samples=200_000)
    posterior = fit_linear_posterior(GraphPosterior(dataset.graph[None]), dataset)
    targets = [NAMES.index(name) for name in do]
    weights, intercepts = WEIGHTS.copy(), np.array([3.0, -1.0, 0.0, 2.0])
    weights[:, targets] = 0
    intercepts[targets] = list(do.values())
    expected = np.linalg.solve(np.eye(4) - weights.T, intercepts)
    np.testing.assert_allclose(posterior.interventional_mean(do, original_scale=True), expected, atol=0.03)


def test_average_causal_effects_are_sums_over_directed_paths():
    dataset = linear_gaussian(num_samples=200_000)
    posterior = fit_linear_posterior(GraphPosterior(dataset.graph[None]), dataset)
    effect = posterior.average_causal_effect("d", {"a": 2.0}, {"a": -1.0}, original_scale=True)
    assert effect.mean == pytest.approx(3 * (0.8 * 1.2 - 0.5 * 0.7), abs=0.03)
    assert effect.std == pytest.approx(0, abs=1e-12)
    assert posterior.average_causal_effect("a", {"d": 2.0}).mean == pytest.approx(0, abs=1e-12)


def test_the_uncertainty_of_an_effect_is_that_over_graphs():
    dataset = linear_gaussian()
    graphs = np.stack([dataset.graph, np.zeros((4, 4), dtype=bool)])
    posterior = fit_linear_posterior(GraphPosterior(graphs, np.array([0.75, 0.25])), dataset)
    effect = posterior.average_causal_effect("b", {"a": 1.0}, {"a": 0.0})
    slope = LinearModel.fit(dataset.observations).weights(1, (0,))[0]
    np.testing.assert_allclose(effect.per_graph, [slope, 0])
    assert effect.mean == pytest.approx(0.75 * slope)
    assert effect.std == pytest.approx(abs(slope) * np.sqrt(0.75 * 0.25))


def test_targets_have_exactly_their_values():
    dataset = linear_gaussian()
    posterior = fit_linear_posterior(GraphPosterior(random_dags(10)), dataset)
    mean = posterior.interventional_mean({"b": 0.1, "d": -0.7})
    assert (mean[1], mean[3]) == (pytest.approx(0.1, abs=1e-15), pytest.approx(-0.7, abs=1e-15))


def test_unknown_variables_are_refused():
    posterior = fit_linear_posterior(GraphPosterior(random_dags(2)), linear_gaussian())
    with pytest.raises(InvalidInput, match="expected a variable among a, b, c, d"):
        posterior.interventional_mean({"e": 1.0})
    assert not hasattr(posterior, "sample_interventional")
