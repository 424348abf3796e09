from __future__ import annotations

import numpy as np
import pytest

from baselines.golem import GOLEM
from bci.data.simulate import simulated_dataset
from bci.errors import InvalidInput
from bci.graphs import find_cycle

QUICK = {"num_iter": 600, "learning_rate": 0.01}


def test_causes_are_rows(equal_noise_chain, rng):
    posterior = GOLEM(**QUICK).fit(equal_noise_chain, rng)
    np.testing.assert_array_equal(posterior.edge_probabilities, equal_noise_chain.graph)
    assert posterior.graph_kind == "dag"
    weights = np.reshape(posterior.diagnostics["weights"], (3, 3))
    assert weights[1, 2] == pytest.approx(1.2, abs=0.15)
    assert weights[2, 0] == pytest.approx(-1.0, abs=0.15)


def test_a_threshold_leaves_edges_out(equal_noise_chain, rng):
    posterior = GOLEM(**QUICK, graph_thres=1.1).fit(equal_noise_chain, rng)
    np.testing.assert_array_equal(
        posterior.edge_probabilities, equal_noise_chain.graph * [[1, 1, 1], [1, 1, 1], [0, 0, 0]]
    )


@pytest.mark.slow
def test_the_paper_length_gives_a_dag_near_the_printed_figures(rng):
    dataset = simulated_dataset(
        graph_model="sf", num_nodes=20, expected_degree=2, mechanism="gp", num_samples=200, seed=0
    )
    probabilities = GOLEM().fit(dataset, rng).edge_probabilities
    assert find_cycle(probabilities > 0) == []
    assert 18 < probabilities.sum() < 36  # printed mean 26
    assert 25 < np.abs(probabilities - dataset.graph).sum() < 55  # printed mean 40


@pytest.mark.parametrize(
    ("settings", "key"), [({"num_iter": 0}, "num_iter"), ({"learning_rate": 0.0}, "learning_rate")]
)
def test_settings_that_cannot_be_are_refused(settings, key):
    with pytest.raises(InvalidInput, match=f"^{key}: expected "):
        GOLEM(**settings)
