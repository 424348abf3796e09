from __future__ import annotations

import numpy as np
import pytest
import torch

from baselines.acyclic import is_acyclic
from baselines.dds import DDS, _penalty
from bci.data.simulate import simulated_dataset
from bci.errors import InvalidInput

QUICK = {"max_epochs": 80}


def test_causes_are_rows_and_edges_are_independent_along_one_order(nonlinear_pair, rng):
    posterior = DDS(**QUICK).fit(nonlinear_pair, rng)
    assert posterior.edge_probabilities[1, 0] > 0.85
    assert posterior.edge_probabilities[0, 1] == 0
    graphs, weights = posterior.sample_graphs(5000, rng)
    np.testing.assert_allclose(np.einsum("n,nij->ij", weights, graphs), posterior.edge_probabilities, atol=0.03)


def test_samples_come_with_their_orders_and_the_mass_of_cycles(nonlinear_pair, rng):
    posterior = DDS(**QUICK, edge_probabilities="samples", num_samples=200).fit(nonlinear_pair, rng)
    assert posterior.graphs.shape == (200, 2, 2)
    assert is_acyclic(posterior.graphs).all()
    assert posterior.diagnostics["cyclic_mass"] == 0
    assert posterior.edge_probabilities[1, 0] > 0.6
    assert posterior.edge_probabilities[0, 1] > 0  # in samples the order is random


def test_the_regulariser_of_the_paper_leaves_fewer_edges(rng):
    dataset = simulated_dataset(
        graph_model="er", num_nodes=4, expected_degree=1, mechanism="gp", num_samples=60, seed=0
    )
    edges = {
        name: DDS(max_epochs=60, regularisation=0.5, regulariser=name).fit(dataset, rng).edge_probabilities.sum()
        for name in ("code", "bernoulli_kl")
    }
    assert edges["bernoulli_kl"] < 0.6 * edges["code"]


def test_regularisers_are_what_they_say():
    logits = torch.tensor([[0.3, -1.0], [2.0, 0.0]])
    prior = 0.2
    code = (torch.nn.KLDivLoss(reduction="mean"))(logits, torch.full((2, 2), prior))
    torch.testing.assert_close(_penalty(logits, "code", prior), code)
    edges, priors = (torch.distributions.Bernoulli(probs=p) for p in (logits.sigmoid(), torch.full((2, 2), prior)))
    divergence = torch.distributions.kl_divergence(edges, priors).mean()
    torch.testing.assert_close(_penalty(logits, "bernoulli_kl", prior), divergence)


def test_patience_ends_a_fit(nonlinear_pair, rng):
    short = DDS(max_epochs=60, patience=2, learning_rate=0.05).fit(nonlinear_pair, rng)
    assert short.diagnostics["epochs"] < 60
    losses = short.diagnostics["validation_loss"]
    assert len(losses) >= 4
    assert losses[-2] <= losses[-1]


def test_a_fit_that_diverges_fails(nonlinear_pair, rng):
    with pytest.raises(RuntimeError, match="the fit diverged; set a lower learning_rate"):
        DDS(max_epochs=20, learning_rate=1e15).fit(nonlinear_pair, rng)


@pytest.mark.slow
def test_the_paper_length_gives_nearly_complete_graphs(rng):
    dataset = simulated_dataset(
        graph_model="sf", num_nodes=20, expected_degree=2, mechanism="gp", num_samples=200, seed=1
    )
    probabilities = DDS().fit(dataset, rng).edge_probabilities
    assert 150 < probabilities.sum() < 190  # printed mean 169
    assert 130 < np.abs(probabilities - dataset.graph).sum() < 185  # printed mean 158


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"hidden_dims": [0]}, "hidden_dims"),
        ({"hidden_dims": 32}, "hidden_dims"),
        ({"temperature": 0.0}, "temperature"),
        ({"prior_p": 1.0}, "prior_p"),
        ({"validation_fraction": 1.5}, "validation_fraction"),
        ({"regularisation": -1.0}, "regularisation"),
        ({"order_type": "soft"}, "order_type"),
        ({"regulariser": "kl"}, "regulariser"),
        ({"edge_probabilities": "mean"}, "edge_probabilities"),
        ({"hard": "yes"}, "hard"),
        ({"patience": 0}, "patience"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, key):
    with pytest.raises(InvalidInput, match=f"^{key}: expected "):
        DDS(**settings)
