from __future__ import annotations

import numpy as np
import pytest
import torch

from baselines.acyclic import is_acyclic
from baselines.dds import DDS, _penalty, _train
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


def trained(observations, **changes):
    """Parameters of the distribution over DAGs, and the validation losses."""
    sampler, diagnostics, _ = _train(observations, DDS(validate_every=1, **changes).settings, seed=0)
    return [parameter.detach() for parameter in sampler.parameters], diagnostics["validation_loss"]


def test_rows_that_are_held_out_change_the_validation_loss_alone():
    observations = np.random.default_rng(0).standard_normal((8, 3))
    settings = {"max_epochs": 1, "batch_size": 1, "validation_fraction": 0.25}
    (_, edges), losses = trained(observations, **settings)
    num_held_out = 0
    for row in range(8):
        changed = observations.copy()
        changed[row] *= 2
        (_, other_edges), other_losses = trained(changed, **settings)
        num_held_out += other_edges.equal(edges)
        assert other_losses != losses
    assert num_held_out == 2


def test_the_parameters_with_the_lowest_validation_loss_are_kept(nonlinear_pair):
    settings = {"learning_rate": 0.05, "dag_learning_rate": 0.1}
    parameters, losses = trained(nonlinear_pair.observations, max_epochs=20, **settings)
    best = int(np.argmin(losses))
    assert best < 19
    ended_there, _ = trained(nonlinear_pair.observations, max_epochs=best + 1, **settings)
    for kept, expected in zip(parameters, ended_there, strict=True):
        torch.testing.assert_close(kept, expected, rtol=0, atol=0)


def test_the_distribution_has_a_learning_rate_of_its_own(nonlinear_pair):
    """The first step of Adam is as long as its learning rate."""
    settings = {"max_epochs": 1, "batch_size": 200, "learning_rate": 0.5}
    (_, edges), _ = trained(nonlinear_pair.observations, dag_learning_rate=0.01, **settings)
    (_, start), _ = trained(nonlinear_pair.observations, dag_learning_rate=1e-12, **settings)
    assert (edges - start).abs().max().item() == pytest.approx(0.01, rel=0.01)


def test_the_loss_has_the_weighted_regulariser(nonlinear_pair):
    settings = {"max_epochs": 1, "learning_rate": 1e-12, "dag_learning_rate": 1e-12, "regulariser": "bernoulli_kl"}
    (_, edges), without = trained(nonlinear_pair.observations, regularisation=0.0, **settings)
    _, weighted = trained(nonlinear_pair.observations, regularisation=0.5, **settings)
    penalty = _penalty(edges, "bernoulli_kl", 1e-6).item()
    assert weighted[0] - without[0] == pytest.approx(0.5 * penalty, rel=1e-4)


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
