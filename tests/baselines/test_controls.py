from __future__ import annotations

import numpy as np
import pytest

from baselines.controls import EmptyGraph, RandomGraphs
from bci.errors import InvalidInput
from bci.graphs import find_cycle


def test_the_empty_graph_has_no_edges(collider, rng):
    posterior = EmptyGraph().fit(collider, rng)
    assert posterior.edge_probabilities.shape == (4, 4)
    assert not posterior.edge_probabilities.any()


def test_random_graphs_have_the_expected_degree_and_no_order(collider, rng):
    posterior = RandomGraphs(expected_degree=0.9, num_graphs=2000).fit(collider, rng)
    graphs = posterior.sample_graphs(1, rng).graphs
    assert len(graphs) == 2000
    assert all(find_cycle(graph) == [] for graph in graphs[:50])
    assert graphs.sum(axis=(1, 2)).mean() == pytest.approx(0.9 * 4, abs=0.1)
    pairs = posterior.edge_probabilities[~np.eye(4, dtype=bool)]
    np.testing.assert_allclose(pairs, 0.3, atol=0.05)


def test_more_edges_than_pairs_are_all_pairs(collider, rng):
    probabilities = RandomGraphs(expected_degree=5.0, num_graphs=3).fit(collider, rng).edge_probabilities
    np.testing.assert_allclose((probabilities + probabilities.T)[~np.eye(4, dtype=bool)], 1)


@pytest.mark.parametrize(
    ("settings", "key"), [({"expected_degree": -1.0}, "expected_degree"), ({"num_graphs": 0}, "num_graphs")]
)
def test_settings_that_cannot_be_are_refused(settings, key):
    with pytest.raises(InvalidInput, match=f"^{key}: expected "):
        RandomGraphs(**settings)
