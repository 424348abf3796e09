from __future__ import annotations

import numpy as np
import pytest

from baselines.pc import PC
from bci.cpdag import dag_to_cpdag
from bci.dataset import Dataset
from bci.errors import InvalidInput
from bci.metrics import Undefined, evaluate

IMPLEMENTATIONS = ["causal_learn", "castle"]


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_a_collider_is_directed(collider, rng, implementation):
    posterior = PC(implementation=implementation).fit(collider, rng)
    np.testing.assert_array_equal(posterior.edge_probabilities, collider.graph)
    assert posterior.graph_kind == "cpdag"


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_a_chain_has_undirected_edges(chain, rng, implementation):
    posterior = PC(implementation=implementation, alpha=0.001).fit(chain, rng)
    np.testing.assert_array_equal(posterior.edge_probabilities, dag_to_cpdag(chain.graph))


@pytest.mark.parametrize("priority", ["existing", "stronger"])
def test_the_order_of_the_columns_may_matter_for_contradicting_colliders_alone(contradictory, rng, priority):
    order = np.random.default_rng(1).permutation(8)
    permuted = Dataset.from_raw(contradictory.observations[:, order], [contradictory.names[i] for i in order])
    method = PC(collider_priority=priority)
    graph, other = (method.fit(data, rng).sample_graphs(1, rng).graphs[0] for data in (contradictory, permuted))
    graph = graph[np.ix_(order, order)]
    np.testing.assert_array_equal(graph | graph.T, other | other.T)
    assert (graph == other).all() == (priority == "stronger")


def test_a_level_near_one_keeps_more_edges(collider, rng):
    assert PC(alpha=0.9).fit(collider, rng).edge_probabilities.sum() > collider.graph.sum()


def test_a_result_that_is_no_cpdag_has_a_distance_but_no_effects(contradictory, rng):
    found = PC(implementation="castle").fit(contradictory, rng), PC().fit(contradictory, rng)
    invalid, valid = (evaluate(one, contradictory, names=["eshd", "p_aid"], rng=rng) for one in found)
    assert isinstance(invalid["p_aid"], Undefined)
    assert 0 < invalid["eshd"] < 30
    assert 0 < valid["p_aid"] < 1


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"alpha": 0.0}, "alpha"),
        ({"alpha": 1.0}, "alpha"),
        ({"implementation": "pcalg"}, "implementation"),
        ({"variant": "parallel"}, "variant"),
        ({"collider_priority": "bidirected"}, "collider_priority"),
        ({"max_conditioning": -1}, "max_conditioning"),
        ({"timeout_seconds": 0}, "timeout_seconds"),
        ({"implementation": "castle", "max_conditioning": 2}, "max_conditioning"),
        ({"implementation": "castle", "independence_test": "kci"}, "independence_test"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, key):
    with pytest.raises(InvalidInput, match=f"^{key}: expected "):
        PC(**settings)
