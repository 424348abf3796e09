from __future__ import annotations

import numpy as np
import pytest

from baselines.dag_gnn import DAGGNN
from baselines.isolation import MethodFailed
from bci.data.simulate import simulated_dataset
from bci.errors import InvalidInput

QUICK = {"epochs": 20, "k_max_iter": 5}


def test_causes_are_rows(equal_noise_chain, rng):
    posterior = DAGGNN(**QUICK).fit(equal_noise_chain, rng)
    assert posterior.edge_probabilities[equal_noise_chain.graph].all()
    assert not posterior.edge_probabilities[equal_noise_chain.graph.T].any()
    assert posterior.graph_kind == "dag"
    assert posterior.diagnostics["self_loops_left_out"] == 0


@pytest.mark.parametrize("settings", [{"optimizer": "sgd"}, {"tau_a": 1e308}])
def test_a_fit_that_diverges_fails(equal_noise_chain, rng, settings):
    with pytest.raises(MethodFailed, match="The loss value is Nan"):
        DAGGNN(**QUICK | settings).fit(equal_noise_chain, rng)


def test_a_high_learning_rate_is_bounded(equal_noise_chain):
    graphs = [
        DAGGNN(**QUICK, lr=lr).fit(equal_noise_chain, np.random.default_rng(0)).edge_probabilities for lr in (1e6, 1e9)
    ]
    assert graphs[0].any()
    np.testing.assert_array_equal(*graphs)


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
        ({"graph_threshold": 0.0}, "graph_threshold"),
        ({"init_c_a": 0.0}, "init_c_a"),
        ({"c_a_thresh": 1.0}, "c_a_thresh"),
        ({"encoder_dropout": 0.5}, "encoder_dropout"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, key):
    with pytest.raises(InvalidInput, match=f"^{key}: expected "):
        DAGGNN(**settings)
