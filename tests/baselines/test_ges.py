from __future__ import annotations

import numpy as np
import pytest

from baselines.ges import GES
from bci.cpdag import dag_to_cpdag, is_cpdag
from bci.data.simulate import simulated_dataset
from bci.errors import InvalidInput

IMPLEMENTATIONS = ["castle", "causal_learn"]


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_one_instance_learns_each_data_set_anew(collider, chain, rng, implementation):
    method = GES(implementation=implementation)
    for dataset in (collider, chain):
        posterior = method.fit(dataset, rng)
        np.testing.assert_array_equal(posterior.edge_probabilities, dag_to_cpdag(dataset.graph))
        assert posterior.graph_kind == "cpdag"


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_the_result_is_a_cpdag(rng, implementation):
    dataset = simulated_dataset(
        graph_model="er", num_nodes=8, expected_degree=2, mechanism="gp", num_samples=100, seed=0
    )
    assert is_cpdag(GES(implementation=implementation).fit(dataset, rng).sample_graphs(1, rng).graphs).all()


def test_a_heavy_penalty_leaves_no_edges(collider, rng):
    assert not GES(implementation="causal_learn", penalty=1000.0).fit(collider, rng).edge_probabilities.any()


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"penalty": 1.0}, "penalty"),
        ({"score": "cv_general"}, "score"),
        ({"implementation": "causal_learn", "max_indegree": 0}, "max_indegree"),
        ({"implementation": "tetrad"}, "implementation"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, key):
    with pytest.raises(InvalidInput, match=f"^{key}: expected "):
        GES(**settings)
