"""Training of order models: what it maximises, when it stops, what it reports."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from bci.marginalisation import log_order_evidence
from bci.orders.sequential import AutoregressiveOrders, PlackettLuceOrders
from bci.orders.training import TrainingSettings, effective_sample_size, log_order_weights, train_orders

MODELS = ["mlp", "plackett_luce"]


def new_model(name, num_nodes, seed=0):
    rng = np.random.default_rng(seed)
    return AutoregressiveOrders(num_nodes, rng, hidden=10) if name == "mlp" else PlackettLuceOrders(num_nodes)


def log_posterior(table, orders):
    """Of all orders, under a uniform prior."""
    return torch.log_softmax(log_order_evidence(table, orders), dim=0)


def train(model, table, seed=0, **settings):
    def log_evidence(orders):
        return log_order_evidence(table, orders)

    return train_orders(model, log_evidence, TrainingSettings(**settings), np.random.default_rng(seed))


def same_evidence(orders):
    return torch.full((len(orders),), -7.0, dtype=torch.float64)


def test_paper_weights_are_the_evidence_and_importance_weights_divide_by_the_model():
    log_evidence, log_prob = torch.tensor([-3.0, -4.0]), torch.tensor([-1.0, -2.5])
    assert log_order_weights(log_evidence, log_prob, "paper").tolist() == [-3.0, -4.0]
    assert log_order_weights(log_evidence, log_prob, "importance").tolist() == [-2.0, -1.5]


def test_effective_sample_size_counts_equal_weights():
    assert effective_sample_size(torch.full((50,), 1 / 50)) == pytest.approx(50)
    assert effective_sample_size(torch.tensor([0.0, 1.0, 0.0])) == 1
    assert effective_sample_size(torch.tensor([0.5, 0.5, 0.0])) == 2
    assert effective_sample_size(torch.tensor([0.8, 0.2])) == pytest.approx(1 / (0.64 + 0.04))


@pytest.mark.parametrize("name", MODELS)
def test_training_raises_the_probability_of_the_best_order(random_table, all_orders, name):
    table, orders = random_table(4, 2, seed=3, spread=6.0), all_orders(4)
    best = orders[log_posterior(table, orders).argmax()][None]
    model = new_model(name, 4)
    before = float(model.log_prob(best).detach().exp())
    train(model, table, steps=300, learning_rate=0.05)
    after = float(model.log_prob(best).detach().exp())
    assert before < 0.2
    assert after > 0.8


def test_with_importance_weights_arco_learns_the_posterior(random_table, all_orders):
    table, orders = random_table(3, 2, seed=5, spread=1.5), all_orders(3)
    posterior = log_posterior(table, orders).exp()
    assert 0.2 < float(posterior.max()) < 0.8
    model = new_model("mlp", 3)

    def distance():
        return float((model.log_prob(orders).detach().exp() - posterior).abs().sum()) / 2

    before = distance()
    train(model, table, order_weights="importance", steps=400, learning_rate=0.02, patience=0)
    assert before > 0.2
    assert distance() < 0.06


def test_a_step_follows_the_weighted_score_of_the_orders(random_table):
    """The gradient of the first step, with every term of the estimator computed on its own."""
    table, settings = random_table(4, 2, seed=6), {"baseline_decay": 0.6, "prior_std": 0.5, "learning_rate": 1e-3}
    model, reference = new_model("mlp", 4), new_model("mlp", 4)
    train(model, table, steps=1, orders_per_step=8, **settings)

    orders = reference.sample(8, np.random.default_rng(0))
    evidence = log_order_evidence(table, orders).exp()
    gradients = [torch.zeros_like(parameter) for parameter in reference.parameters]
    for order, weight in zip(orders, evidence / evidence.sum(), strict=True):
        score = torch.autograd.grad(reference.log_prob(order[None])[0], reference.parameters)
        for gradient, part in zip(gradients, score, strict=True):
            gradient -= (weight - (1 - 0.6) / 8) * part
    for parameter, gradient, before in zip(model.parameters, gradients, reference.parameters, strict=True):
        expected = gradient + before.detach() / 0.5**2
        np.testing.assert_allclose(parameter.grad, expected, rtol=1e-9, atol=1e-12)
        step = -1e-3 * expected / (expected.abs() + 1e-8)  # Adam's first
        np.testing.assert_allclose((parameter - before).detach(), step, rtol=0, atol=1e-9)


def test_a_narrow_prior_keeps_the_parameters_small(random_table):
    table = random_table(4, 2, seed=7, spread=6.0)
    wide, narrow = new_model("plackett_luce", 4), new_model("plackett_luce", 4)
    train(wide, table, steps=100)
    train(narrow, table, steps=100, prior_std=0.1)
    assert float(narrow.parameters[0].detach().norm()) < 0.2 * float(wide.parameters[0].detach().norm())


def test_diagnostics_report_every_step(random_table):
    diagnostics = train(new_model("mlp", 4), random_table(4, 2), steps=12, orders_per_step=30)
    assert set(diagnostics) == {"losses", "effective_sample_sizes", "steps"}
    assert diagnostics["steps"] == len(diagnostics["losses"]) == len(diagnostics["effective_sample_sizes"]) == 12
    assert all(type(loss) is float and math.isfinite(loss) for loss in diagnostics["losses"])
    assert all(1 <= size <= 30 + 1e-9 for size in diagnostics["effective_sample_sizes"])


def test_the_loss_is_minus_the_log_of_the_mean_evidence():
    diagnostics = train_orders(
        PlackettLuceOrders(3), same_evidence, TrainingSettings(steps=5), np.random.default_rng(0)
    )
    np.testing.assert_allclose(diagnostics["losses"], 7.0)
    np.testing.assert_allclose(diagnostics["effective_sample_sizes"], 100)


def test_the_loss_estimates_the_evidence_with_importance_weights(random_table, all_orders):
    table, orders = random_table(3, 2, seed=8), all_orders(3)
    diagnostics = train(PlackettLuceOrders(3), table, order_weights="importance", steps=1, orders_per_step=20_000)
    expected = np.log(6) - float(torch.logsumexp(log_order_evidence(table, orders), dim=0))
    assert diagnostics["losses"][0] == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize("patience", [1, 10])
def test_training_stops_when_the_loss_does_not_improve(patience):
    settings = TrainingSettings(steps=50, patience=patience)
    diagnostics = train_orders(PlackettLuceOrders(3), same_evidence, settings, np.random.default_rng(0))
    assert diagnostics["steps"] == patience + 1


def test_training_goes_on_while_the_loss_improves():
    calls = iter(range(1000))

    def improving(orders):
        return same_evidence(orders) + 0.1 * next(calls)

    settings = TrainingSettings(steps=50, patience=3)
    assert train_orders(PlackettLuceOrders(3), improving, settings, np.random.default_rng(0))["steps"] == 50
    impatient = TrainingSettings(steps=50, patience=3, tolerance=0.2)
    assert train_orders(PlackettLuceOrders(3), improving, impatient, np.random.default_rng(0))["steps"] < 50


def test_without_patience_all_steps_are_taken():
    settings = TrainingSettings(steps=50, patience=0)
    diagnostics = train_orders(PlackettLuceOrders(3), same_evidence, settings, np.random.default_rng(0))
    assert diagnostics["steps"] == 50


def test_no_steps_leave_the_model_as_it_is(random_table):
    model, untouched = new_model("mlp", 3), new_model("mlp", 3)
    assert train(model, random_table(3, 1), steps=0) == {"losses": [], "effective_sample_sizes": [], "steps": 0}
    for parameter, before in zip(model.parameters, untouched.parameters, strict=True):
        assert torch.equal(parameter, before)


@pytest.mark.parametrize("name", MODELS)
def test_the_seed_decides_the_training(random_table, name):
    table = random_table(4, 2)
    runs = []
    for seed in (0, 0, 1):
        model = new_model(name, 4)
        losses = train(model, table, seed=seed, steps=20)["losses"]
        runs.append((losses, [parameter.detach().clone() for parameter in model.parameters]))
    first, again, other = runs
    assert first[0] == again[0]
    assert all(torch.equal(left, right) for left, right in zip(first[1], again[1], strict=True))
    assert first[0] != other[0]


def test_evidence_thousands_of_nats_apart_keeps_training_finite(random_table):
    model = new_model("mlp", 5)
    diagnostics = train(model, random_table(5, 2, spread=3000.0), steps=30)
    assert np.isfinite(diagnostics["losses"]).all()
    assert all(parameter.isfinite().all() for parameter in model.parameters)
