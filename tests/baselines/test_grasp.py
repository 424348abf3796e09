from __future__ import annotations

import numpy as np
import pytest

from baselines.grasp import GRaSP
from bci.cpdag import dag_to_cpdag, is_cpdag
from bci.data.simulate import simulated_dataset
from bci.errors import InvalidInput


def test_a_collider_is_directed_and_a_chain_is_not(collider, chain, rng):
    for dataset in (collider, chain):
        posterior = GRaSP().fit(dataset, rng)
        np.testing.assert_array_equal(posterior.edge_probabilities, dag_to_cpdag(dataset.graph))
        assert posterior.graph_kind == "cpdag"


def test_the_search_depends_on_the_seed_alone():
    dataset = simulated_dataset(
        graph_model="sf", num_nodes=12, expected_degree=2, mechanism="gp", num_samples=100, seed=0
    )

    def graph(seed):
        return GRaSP().fit(dataset, np.random.default_rng(seed)).sample_graphs(1, np.random.default_rng(0)).graphs[0]

    first = graph(0)
    np.testing.assert_array_equal(first, graph(0))
    assert any((graph(seed) != first).any() for seed in range(1, 5))
    assert is_cpdag(first)


def test_a_heavier_penalty_leaves_fewer_edges_and_the_default_is_that_of_the_paper(linear):
    def edges(**settings):
        return GRaSP(**settings).fit(linear, np.random.default_rng(0)).edge_probabilities.sum()

    by_penalty = [edges(penalty=penalty) for penalty in (0.1, 1.0, 10.0)]
    assert edges() == by_penalty[1]
    assert by_penalty[0] > by_penalty[1] > by_penalty[2]


@pytest.mark.parametrize(("settings", "key"), [({"depth": 0}, "depth"), ({"score": "aic"}, "score")])
def test_settings_that_cannot_be_are_refused(settings, key):
    with pytest.raises(InvalidInput, match=f"^{key}: expected "):
        GRaSP(**settings)
