from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from baselines.acyclic import is_acyclic, posterior_of_samples
from bci.graphs import find_cycle


def all_graphs(num_nodes):
    pairs = [(i, j) for i in range(num_nodes) for j in range(num_nodes) if i != j]
    graphs = np.zeros((2 ** len(pairs), num_nodes, num_nodes), dtype=bool)
    for graph, entries in zip(graphs, product([False, True], repeat=len(pairs)), strict=True):
        graph[tuple(np.transpose(pairs))] = entries
    return graphs


def test_cycles_are_found_in_every_graph_of_three_and_four_nodes():
    for graphs, count in ((all_graphs(3), 25), (all_graphs(4), 543)):  # DAGs on 3 and 4 labelled nodes
        assert is_acyclic(graphs).sum() == count
        for graph, acyclic in list(zip(graphs, is_acyclic(graphs), strict=True))[::7]:
            assert acyclic == (find_cycle(graph) == [])


def test_cycles_are_found_in_large_graphs():
    graphs = (np.random.default_rng(0).random((40, 12, 12)) < 0.12) & ~np.eye(12, dtype=bool)
    expected = [find_cycle(graph) == [] for graph in graphs]
    assert 0 < sum(expected) < 40
    assert is_acyclic(graphs).tolist() == expected


def test_cyclic_samples_have_no_weight_and_their_mass_is_reported():
    graphs = np.zeros((4, 3, 3), dtype=bool)
    graphs[1, 0, 1] = graphs[1, 1, 0] = True
    posterior = posterior_of_samples(graphs, {"loss": 1.0})
    np.testing.assert_allclose(posterior.weights, [1 / 3, 0, 1 / 3, 1 / 3])
    assert posterior.diagnostics == {"loss": 1.0, "cyclic_mass": 0.25}


def test_samples_that_are_all_cyclic_are_an_error():
    graphs = np.ones((2, 3, 3), dtype=bool) ^ np.eye(3, dtype=bool)
    with pytest.raises(FloatingPointError, match="expected an acyclic graph among 2 samples"):
        posterior_of_samples(graphs, {})
