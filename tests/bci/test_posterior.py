"""Posteriors of finitely many graphs, and expectations of graph functions."""

from __future__ import annotations

import numpy as np
import pytest

from bci.posterior import GraphPosterior

EMPTY = np.zeros((3, 3), dtype=bool)
CHAIN = np.eye(3, k=1, dtype=bool)
FORK = np.array([[0, 1, 1], [0, 0, 0], [0, 0, 0]], dtype=bool)


def rng():
    return np.random.default_rng(0)


def test_edge_probabilities_are_the_weighted_mean_of_the_graphs():
    posterior = GraphPosterior(np.stack([EMPTY, CHAIN, FORK]), np.array([0.5, 0.3, 0.2]))
    np.testing.assert_allclose(posterior.edge_probabilities, [[0, 0.5, 0.2], [0, 0, 0.3], [0, 0, 0]])


def test_graphs_without_weights_weigh_the_same():
    posterior = GraphPosterior(np.stack([EMPTY, CHAIN, CHAIN, FORK]))
    np.testing.assert_allclose(posterior.sample_graphs(2, rng()).weights, 0.25)
    assert posterior.edge_probabilities[1, 2] == 0.5


def test_a_point_estimate_is_one_graph():
    posterior = GraphPosterior(CHAIN[None])
    np.testing.assert_array_equal(posterior.edge_probabilities, CHAIN)
    assert posterior.graph_kind == "dag"
    assert posterior.diagnostics == {}


def test_all_graphs_are_returned_whatever_is_asked_for():
    posterior = GraphPosterior(np.stack([EMPTY, CHAIN]), np.array([0.9, 0.1]))
    for n in (1, 2, 50):
        graphs, weights = posterior.sample_graphs(n, rng())
        np.testing.assert_array_equal(graphs, [EMPTY, CHAIN])
        np.testing.assert_array_equal(weights, [0.9, 0.1])


def test_probabilities_do_not_exceed_one_by_rounding():
    posterior = GraphPosterior(np.stack([CHAIN, CHAIN]), np.array([0.5, 0.5 + 1e-12]))
    assert posterior.edge_probabilities.max() == 1


def test_a_cpdag_codes_an_undirected_edge_by_both_entries():
    posterior = GraphPosterior((CHAIN | CHAIN.T)[None], graph_kind="cpdag")
    assert posterior.graph_kind == "cpdag"
    np.testing.assert_array_equal(posterior.edge_probabilities, posterior.edge_probabilities.T)


def test_expectations_of_numbers_and_arrays_are_weighted_means():
    posterior = GraphPosterior(np.stack([EMPTY, CHAIN, FORK]), np.array([0.5, 0.3, 0.2]))
    assert posterior.expectation(lambda graph: float(graph.sum()), 10, rng()) == pytest.approx(0.5 * 2)
    children = posterior.expectation(lambda graph: graph.sum(axis=1).astype(float), 10, rng())
    np.testing.assert_allclose(children, [0.3 + 0.4, 0.3, 0])
    edges = posterior.expectation(lambda graph: graph.astype(float), 10, rng())
    np.testing.assert_allclose(edges, posterior.edge_probabilities)


@pytest.mark.parametrize(
    "graphs",
    [
        CHAIN,
        np.zeros((2, 3, 4), dtype=bool),
        np.eye(3, dtype=bool)[None],
        np.zeros((0, 3, 3), dtype=bool),
        np.bool_(True),
    ],
)
def test_what_is_no_stack_of_graphs_is_refused(graphs):
    with pytest.raises(ValueError, match=r"expected one or more graphs \(n, d, d\) without self-loops, got shape"):
        GraphPosterior(graphs)


@pytest.mark.parametrize("weights", [[0.5, 0.6], [1.5, -0.5], [1.0], [[0.5, 0.5]], [np.nan, 1.0]])
def test_weights_that_are_no_distribution_are_refused(weights):
    with pytest.raises(ValueError, match="expected 2 non-negative weights summing to one"):
        GraphPosterior(np.stack([EMPTY, CHAIN]), np.array(weights))
