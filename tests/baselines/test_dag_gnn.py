from __future__ import annotations

import numpy as np
import pytest

from baselines.dag_gnn import DAGGNN
from bci.data.simulate import simulated_dataset
from bci.errors import InvalidInput

QUICK = {"epochs": 20, "k_max_iter": 5}


def test_causes_are_rows(equal_noise_chain, rng):
    posterior = DAGGNN(**QUICK).fit(equal_noise_chain, rng)
    assert posterior.edge_probabilities[equal_noise_chain.graph].all()
    assert not posterior.edge_probabilities[equal_noise_chain.graph.T].any()
    assert posterior.graph_kind == "dag"
    assert posterior.diagnostics["self_loops_left_out"] == 0


@pytest.mark.slow
def test_the_paper_length_comes_near_the_printed_figures(rng):
    dataset = simulated_dataset(
        graph_model="sf", num_nodes=20, expected_degree=2, mechanism="gp", num_samples=200, seed=0
    )
    probabilities = DAGGNN().fit(dataset, rng).edge_probabilities
    assert 10 < probabilities.sum() < 30  # printed mean 17
    assert 22 < np.abs(probabilities - dataset.graph).sum() < 52  # printed mean 37


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"epochs": 0}, "epochs"),
        ({"lr": 0.0}, "lr"),
        ({"optimizer": "lbfgs"}, "optimizer"),
        ({"encoder_type": "cnn"}, "encoder_type"),
        ({"latent_dim": 0}, "latent_dim"),
        ({"graph_threshold": float("nan")}, "graph_threshold"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, key):
    with pytest.raises(InvalidInput, match=f"^{key}: expected "):
        DAGGNN(**settings)
