"""ARCO-GP: its settings reach what they are for, and learnt orders agree with exact ones."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bci import arco_gp
from bci.arco_gp import ArcoGP, ExactGP
from bci.data.sachs import sachs
from bci.data.simulate import simulated_dataset
from bci.dataset import Dataset
from bci.errors import InvalidInput
from bci.marginalisation import edge_probabilities, parent_set_probabilities
from bci.order_posterior import exact_posterior
from bci.orders import AutoregressiveOrders, PlackettLuceOrders
from bci.predictive import families
from bci.scores import score_parent_sets


def small_dataset(num_nodes=4, num_samples=60, seed=0):
    return simulated_dataset(
        graph_model="er",
        num_nodes=num_nodes,
        expected_degree=min(2, (num_nodes - 1) / 2),
        mechanism="gp",
        num_samples=num_samples,
        seed=seed,
    )


def rng(seed=0):
    return np.random.default_rng(seed)


def test_the_defaults_are_those_of_the_paper():
    method = ArcoGP()
    assert (method.max_parents, method.order_model, method.order_weights) == (2, "mlp", "paper")
    assert (method.steps, method.orders_per_step, method.learning_rate, method.hidden) == (400, 100, 0.01, 30)
    assert (method.num_orders, method.num_graphs_per_order, method.prior_std) == (100, 10, 10.0)
    assert (method.baseline_decay, method.likelihood_weight) == (0.9, "full")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"order_model": "best"}, "order_model: expected one of mlp, plackett_luce, exact, got 'best'"),
        ({"order_weights": "none"}, "order_weights: expected one of paper, importance, got 'none'"),
        ({"likelihood_weight": "half"}, "likelihood_weight: expected one of full, per_sample, got 'half'"),
        ({"max_parents": -1}, "max_parents: expected a whole number of at least 0, got -1"),
        ({"num_orders": 0}, "num_orders: expected a whole number of at least 1, got 0"),
        ({"num_graphs_per_order": 0}, "num_graphs_per_order: expected a whole number of at least 1, got 0"),
        ({"steps": 2.5}, "steps: expected a whole number of at least 0, got 2.5"),
        ({"orders_per_step": 1}, "orders_per_step: expected a whole number of at least 2, got 1"),
        ({"patience": -1}, "patience: expected a whole number of at least 0, got -1"),
        ({"hidden": 0}, "hidden: expected a whole number of at least 1, got 0"),
        ({"learning_rate": 0}, "learning_rate: expected a positive number, got 0"),
        ({"prior_std": -1.0}, "prior_std: expected a positive number, got -1.0"),
        ({"tolerance": float("nan")}, "tolerance: expected a positive number, got nan"),
        ({"baseline_decay": 1.0}, "baseline_decay: expected at least 0 and below 1, got 1.0"),
        ({"baseline_decay": "slow"}, "baseline_decay: expected a finite number, got 'slow'"),
        ({"device": "abacus"}, "device: expected a torch device that this machine has, got 'abacus'; use cpu"),
    ],
)
def test_a_setting_out_of_range_is_named(settings, message):
    with pytest.raises(InvalidInput) as caught:
        ArcoGP(**settings)
    assert str(caught.value) == message


@pytest.mark.parametrize("settings", [{"max_parents": -1}, {"likelihood_weight": "x"}, {"num_graphs_per_order": 0}])
def test_the_exact_method_checks_its_settings_when_made(settings):
    with pytest.raises(InvalidInput, match=next(iter(settings))):
        ExactGP(**settings)


@pytest.fixture
def no_scoring(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("scores were computed")

    monkeypatch.setattr(arco_gp, "score_parent_sets", refuse)


@pytest.mark.usefixtures("no_scoring")
@pytest.mark.parametrize("kind", [ArcoGP, ExactGP])
def test_as_many_parents_as_variables_are_refused_before_scoring(kind):
    with pytest.raises(InvalidInput, match="max_parents: expected 0 to 3 for 4 variables, got 4; lower it"):
        kind(max_parents=4).fit(small_dataset(), rng())


@pytest.mark.usefixtures("no_scoring")
@pytest.mark.parametrize("method", [ExactGP(max_parents=1), ArcoGP(order_model="exact", max_parents=1)])
def test_exact_orders_beyond_memory_are_refused_before_scoring(method):
    dataset = Dataset.from_raw(rng().normal(size=(10, 60)), [f"X{i}" for i in range(60)])
    with pytest.raises(InvalidInput, match="exact orders: expected enough memory for 60 variables"):
        method.fit(dataset, rng())


def test_settings_of_scoring_reach_it(monkeypatch):
    seen = []

    def record(dataset, max_parents, **settings):
        seen.append((max_parents, settings))
        return score_parent_sets(dataset, max_parents, **settings)

    monkeypatch.setattr(arco_gp, "score_parent_sets", record)
    settings = {"likelihood_weight": "per_sample", "device": "cpu"}
    ArcoGP(max_parents=1, steps=1, **settings).fit(small_dataset(), rng())
    ExactGP(max_parents=3, **settings).fit(small_dataset(), rng())
    assert seen == [(1, settings), (3, settings)]


def test_settings_of_training_reach_it(monkeypatch, random_table):
    seen = []
    train = arco_gp.train_orders

    def record(model, log_evidence, settings, generator):
        seen.append(settings)
        return train(model, log_evidence, settings, generator)

    monkeypatch.setattr(arco_gp, "train_orders", record)
    settings = {
        "steps": 3,
        "orders_per_step": 7,
        "learning_rate": 0.5,
        "prior_std": 2.0,
        "baseline_decay": 0.25,
        "order_weights": "importance",
        "patience": 11,
        "tolerance": 0.125,
    }
    ArcoGP(**settings).posterior(random_table(4, 2), rng())
    assert [vars(used) for used in seen] == [settings]


def test_settings_of_the_posterior_reach_it(random_table):
    method = ArcoGP(steps=2, num_orders=17, num_graphs_per_order=4, hidden=5, order_weights="importance")
    posterior = method.posterior(random_table(4, 2), rng())
    assert posterior.orders.orders.shape == (17, 4)
    assert posterior.num_graphs_per_order == 4
    assert isinstance(posterior.order_model, AutoregressiveOrders)
    assert posterior.order_model.parameters[0].shape == (4, 4, 5)
    posterior = ArcoGP(steps=2, order_model="plackett_luce").posterior(random_table(4, 2), rng())
    assert isinstance(posterior.order_model, PlackettLuceOrders)


def test_diagnostics_tell_how_training_and_sampling_went(random_table):
    posterior = ArcoGP(steps=5, num_orders=40).posterior(random_table(4, 2), rng())
    diagnostics = posterior.diagnostics
    assert set(diagnostics) == {"losses", "effective_sample_sizes", "steps", "effective_sample_size"}
    assert diagnostics["steps"] == len(diagnostics["losses"]) == 5
    weights = posterior.orders.weights
    assert diagnostics["effective_sample_size"] == pytest.approx(float(1 / (weights**2).sum()))
    assert 1 <= diagnostics["effective_sample_size"] <= 40


def test_exact_orders_are_the_same_under_either_name():
    dataset = small_dataset()
    left = ExactGP().fit(dataset, rng())
    right = ArcoGP(order_model="exact").fit(dataset, rng(1))
    np.testing.assert_array_equal(left.edge_probabilities, right.edge_probabilities)
    assert left.structure.log_evidence == right.structure.log_evidence
    assert left.diagnostics == {"log_evidence": left.structure.log_evidence}


@pytest.mark.parametrize("order_model", ["mlp", "plackett_luce", "exact"])
@pytest.mark.parametrize(("num_nodes", "max_parents"), [(2, 0), (2, 1), (3, 0), (4, 3)])
def test_smallest_and_largest_problems_fit(order_model, num_nodes, max_parents):
    method = ArcoGP(order_model=order_model, max_parents=max_parents, steps=5)
    posterior = method.fit(small_dataset(num_nodes), rng())
    probabilities = posterior.edge_probabilities
    assert ((probabilities >= 0) & (probabilities <= 1)).all()
    assert probabilities.sum(axis=0).max() <= max_parents + 1e-9
    graphs, weights = posterior.sample_graphs(20, rng())
    assert graphs.sum(axis=1).max() <= max_parents
    assert weights.sum() == pytest.approx(1)


def standard_errors(posterior):
    """Of the self-normalised estimates of the edge probabilities of one run (delta method)."""
    orders, weights = posterior.orders
    by_order = torch.cat(
        [
            edge_probabilities(posterior.table.parent_sets, parent_set_probabilities(posterior.table, chunk))
            for chunk in torch.split(orders, 2000)
        ]
    ).numpy()
    deviation = by_order - posterior.edge_probabilities
    return np.sqrt(np.einsum("n,nij->ij", weights.numpy() ** 2, deviation**2))


def test_arco_with_importance_weights_agrees_with_exact_orders():
    """Independent runs scatter around the exact edge probabilities, by no more than their Monte-Carlo error.

    The error is estimated from what was drawn; the small absolute terms stand for orders that no run has drawn.
    """
    table = score_parent_sets(small_dataset(8, num_samples=100, seed=4), 2)
    exact = exact_posterior(table).edge_probabilities
    assert ((exact > 0.1) & (exact < 0.9)).sum() >= 3  # the data leave edges in doubt
    method = ArcoGP(order_weights="importance", num_orders=20_000)
    runs = [method.posterior(table, rng(seed)) for seed in range(4)]
    estimates = np.stack([run.edge_probabilities for run in runs])
    error_of_mean = estimates.std(axis=0, ddof=1) / np.sqrt(len(runs))
    assert error_of_mean.max() < 0.01
    assert (np.abs(estimates.mean(axis=0) - exact) < 5 * error_of_mean + 2e-3).all()
    for run, estimate in zip(runs, estimates, strict=True):
        assert run.diagnostics["effective_sample_size"] > 1000
        assert (np.abs(estimate - exact) < 5 * standard_errors(run) + 0.01).all()


def test_plackett_luce_with_importance_weights_agrees_with_exact_orders(random_table):
    table = random_table(5, 2, seed=1)
    method = ArcoGP(order_model="plackett_luce", order_weights="importance", num_orders=20_000, steps=100)
    posterior = method.posterior(table, rng())
    exact = exact_posterior(table).edge_probabilities
    assert (np.abs(posterior.edge_probabilities - exact) < 5 * standard_errors(posterior) + 1e-6).all()
    assert standard_errors(posterior).max() < 0.02


def test_paper_weights_sharpen_the_posterior(random_table):
    """Their target is p(L | theta) p(D | L), so a trained model counts the evidence twice."""
    table = random_table(5, 2, seed=2)
    sharp, flat = (
        ArcoGP(order_weights=kind, num_orders=5_000, learning_rate=0.05).posterior(table, rng()).edge_probabilities
        for kind in ("paper", "importance")
    )
    exact = exact_posterior(table).edge_probabilities
    assert np.abs(flat - exact).sum() < 0.25 * np.abs(sharp - exact).sum()


@pytest.mark.parametrize("order_model", ["mlp", "plackett_luce"])
def test_the_seed_decides_the_fit(order_model):
    dataset, method = small_dataset(5, num_samples=30), ArcoGP(order_model=order_model, steps=10)
    first, again, other = (method.fit(dataset, rng(seed)) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.edge_probabilities, again.edge_probabilities)
    assert first.diagnostics == again.diagnostics
    assert (first.edge_probabilities != other.edge_probabilities).any()


@pytest.mark.parametrize("method", [ArcoGP(steps=5, num_orders=6, num_graphs_per_order=4), ExactGP()])
def test_queries_average_over_graphs_of_the_structure_with_its_mechanisms(method):
    dataset = small_dataset(5, num_samples=20)
    posterior = method.fit(dataset, rng())
    graphs, weights = posterior.query_graphs
    assert len(graphs) == len(weights) == method.num_orders * method.num_graphs_per_order
    frequencies = np.einsum("n,nij->ij", weights, graphs)
    tolerance = 0.6 if method.num_orders == 6 else 0.08
    np.testing.assert_allclose(frequencies, posterior.edge_probabilities, atol=tolerance)
    table = posterior.structure.table
    assert {family for graph in graphs for family in families(graph) if family[1]} == set(
        posterior.mechanisms.hyperparameters
    )
    for (node, parents), logs in posterior.mechanisms.hyperparameters.items():
        np.testing.assert_array_equal(logs, table.hyperparameters[node, table.parent_sets.number(parents)])
    assert (posterior.names, posterior.scaler) == (dataset.names, dataset.scaler)


def test_queries_leave_the_structure_as_it_was():
    """The graphs of queries are drawn after all else, so that edge probabilities are those of a fit without them."""
    dataset, method = small_dataset(5, num_samples=30), ArcoGP(steps=10)
    table = score_parent_sets(dataset, 2)
    np.testing.assert_array_equal(
        method.fit(dataset, rng()).edge_probabilities, method.posterior(table, rng()).edge_probabilities
    )


@pytest.mark.parametrize("method", [ArcoGP(steps=20), ExactGP()])
def test_the_seed_decides_the_answers(method):
    dataset = small_dataset(5, num_samples=20)
    first, again, other = (method.fit(dataset, rng(seed)).interventional_mean({"X1": 0.5}) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def linear_pairs(num_targets, seed):
    """X0 and X1 with a linear-Gaussian mechanism: the direction is in the interventions alone."""
    return simulated_dataset(
        graph_model="er",
        num_nodes=2,
        expected_degree=0.5,
        mechanism="linear",
        num_samples=60,
        seed=seed,
        interventions={"num_targets": num_targets, "samples_per_target": 20, "value": 3.0},
    )


@pytest.mark.parametrize("method", [ArcoGP(max_parents=1, steps=50), ExactGP(max_parents=1)])
def test_interventions_orient_edges_that_observations_cannot(method):
    """Mean probability of the true direction over linear-Gaussian pairs; the two directions are as frequent."""
    without, with_interventions = (
        [posterior_of_truth(method, linear_pairs(num_targets, seed)) for seed in range(12)] for num_targets in (0, 2)
    )
    assert min(with_interventions) > 0.95
    assert np.mean(without) < 0.8
    assert min(without) < 0.4


def posterior_of_truth(method, dataset):
    assert dataset.graph.sum() == 1
    return float(method.fit(dataset, rng()).edge_probabilities[dataset.graph].item())


@pytest.mark.slow
@pytest.mark.parametrize("method", [ArcoGP(max_parents=1), ExactGP(max_parents=1)])
def test_all_conditions_of_the_sachs_data_are_learnt_from_and_asked(method):
    dataset = sachs(conditions="all")
    posterior = method.fit(dataset, rng())
    assert dataset.intervened.any(axis=0).sum() == 5
    mean = posterior.interventional_mean({"PKA": 1.0})
    assert np.isfinite(mean).all()
    assert mean[dataset.names.index("PKA")] == pytest.approx(1.0)
    assert posterior.average_causal_effect("Akt", {"Erk": 1.0}).std >= 0
