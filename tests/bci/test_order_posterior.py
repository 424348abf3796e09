"""The posterior over graphs, exact and by weighted orders, against sums over all orders and graphs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bci import marginalisation
from bci.graphs import find_cycle
from bci.marginalisation import log_order_evidence
from bci.order_posterior import SampledOrderPosterior, WeightedOrders, exact_posterior, sample_weighted_orders
from bci.orders import AutoregressiveOrders, PlackettLuceOrders

SIZES = [(2, 0), (2, 1), (3, 2), (4, 0), (4, 3), (5, 2)]


def graphs_of(table, sets):
    """Adjacency matrices (n, d, d), row causes column, of the numbers of parent sets (n, d)."""
    graphs = np.zeros((*sets.shape, sets.shape[1]), dtype=bool)
    for graph, row in zip(graphs, sets, strict=True):
        for node, number in enumerate(row):
            graph[list(table.parent_sets.members[number]), node] = True
    return graphs


def graph_probabilities(table, sets, weights):
    """Every distinct graph, flattened to a row, and its total weight."""
    rows, which = np.unique(graphs_of(table, sets).reshape(len(sets), -1), axis=0, return_inverse=True)
    return rows, np.bincount(which.ravel(), weights)


def orders_under_model(joint, table, model, kind):
    """Weights of the pairs of orders and graphs where orders are `p(L | theta)` times their weight, normalised."""
    orders = torch.as_tensor(joint.orders)
    log_prob, evidence = model.log_prob(orders).detach().numpy(), log_order_evidence(table, orders).numpy()
    given_order = joint.log_prob - evidence  # p(graph | order, D) up to a constant
    target = log_prob + evidence if kind == "paper" else evidence
    weights = np.exp(given_order + target - (given_order + target).max())
    return weights / weights.sum()


def uneven_model(num_nodes, seed=0):
    """A Plackett-Luce model that prefers some orders."""
    model = PlackettLuceOrders(num_nodes)
    model.parameters[0].data.copy_(torch.as_tensor(np.random.default_rng(seed).normal(size=num_nodes)))
    return model


def sampled_posterior(table, model, kind, num_orders, seed=0, num_graphs_per_order=10):
    orders = sample_weighted_orders(table, model, kind, num_orders, np.random.default_rng(seed))
    return SampledOrderPosterior(table, model, orders, num_graphs_per_order)


@pytest.mark.parametrize("spread", [2.0, 30.0, 600.0, 5000.0])
@pytest.mark.parametrize(("num_nodes", "max_size"), SIZES)
def test_exact_edges_and_evidence_equal_the_sum_over_all_orders_and_graphs(
    random_table, joint_of, num_nodes, max_size, spread
):
    table = random_table(num_nodes, max_size, seed=20 + num_nodes, spread=spread)
    posterior, joint = exact_posterior(table), joint_of(table)
    edges = np.einsum("n,nij->ij", joint.posterior, graphs_of(table, joint.sets))
    np.testing.assert_allclose(posterior.edge_probabilities, edges, rtol=0, atol=1e-9)
    assert posterior.log_evidence == pytest.approx(joint.log_evidence, rel=1e-13, abs=1e-9)
    assert posterior.edge_probabilities.max() <= 1
    assert (np.diag(posterior.edge_probabilities) == 0).all()


def test_graphs_of_the_exact_posterior_are_as_frequent_as_probable(random_table, joint_of, assert_drawn_from):
    table = random_table(3, 2, seed=1, spread=1.0)
    joint, posterior = joint_of(table), exact_posterior(table)
    graphs, weights = posterior.sample_graphs(20_000, np.random.default_rng(0))
    np.testing.assert_allclose(weights, 1 / 20_000)
    assert_drawn_from(graphs.reshape(len(graphs), -1), *graph_probabilities(table, joint.sets, joint.posterior))


def test_graphs_of_four_nodes_are_as_frequent_as_probable(random_table, joint_of, assert_drawn_from):
    table = random_table(4, 2, seed=2, spread=1.5)
    joint = joint_of(table)
    graphs, _ = exact_posterior(table).sample_graphs(30_000, np.random.default_rng(1))
    assert_drawn_from(graphs.reshape(len(graphs), -1), *graph_probabilities(table, joint.sets, joint.posterior))


@pytest.mark.parametrize("kind", ["paper", "importance"])
def test_weighted_graphs_of_a_sampled_posterior_follow_its_target(random_table, joint_of, kind):
    table, model = random_table(3, 2, seed=3, spread=1.0), uneven_model(3)
    joint = joint_of(table)
    rows, expected = graph_probabilities(table, joint.sets, orders_under_model(joint, table, model, kind))
    posterior = sampled_posterior(table, model, kind, 40_000, num_graphs_per_order=1)
    graphs, weights = posterior.sample_graphs(40_000, np.random.default_rng(2))
    flat = graphs.reshape(len(graphs), -1)
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    assert np.ptp(weights) > 0
    for row, probability in zip(rows, expected, strict=True):
        hit = (flat == row).all(axis=1)
        error = np.sqrt((weights**2 * (hit - probability) ** 2).sum())  # of a self-normalised estimate
        assert abs(weights[hit].sum() - probability) < 4 * error


@pytest.mark.parametrize("n", [40, 400, 30_000])
def test_edges_of_sampled_graphs_are_the_edge_probabilities(random_table, n):
    posterior = sampled_posterior(random_table(4, 2, seed=3), uneven_model(4), "importance", 300)
    rng, total = np.random.default_rng(0), np.zeros((4, 4))
    repeats = 30_000 // n
    for _ in range(repeats):
        total += np.einsum("n,nij->ij", *reversed(posterior.sample_graphs(n, rng)))
    assert np.abs(total / repeats - posterior.edge_probabilities).max() < 0.02


@pytest.mark.parametrize("kind", ["paper", "importance"])
def test_edge_probabilities_converge_to_the_target(random_table, joint_of, kind):
    table, model = random_table(4, 2, seed=4), uneven_model(4)
    joint = joint_of(table)
    expected = np.einsum("n,nij->ij", orders_under_model(joint, table, model, kind), graphs_of(table, joint.sets))
    posterior = sampled_posterior(table, model, kind, 20_000)
    np.testing.assert_allclose(posterior.edge_probabilities, expected, atol=0.02)
    if kind == "importance":
        np.testing.assert_allclose(posterior.edge_probabilities, exact_posterior(table).edge_probabilities, atol=0.02)
    else:
        assert np.abs(posterior.edge_probabilities - exact_posterior(table).edge_probabilities).max() > 0.02


def test_all_orders_weighted_by_their_evidence_give_the_exact_posterior(random_table, all_orders):
    table, orders = random_table(5, 2, seed=5), all_orders(5)
    weights = torch.softmax(log_order_evidence(table, orders), dim=0)
    posterior = SampledOrderPosterior(table, PlackettLuceOrders(5), WeightedOrders(orders, weights))
    exact = exact_posterior(table)
    np.testing.assert_allclose(posterior.edge_probabilities, exact.edge_probabilities, atol=1e-10)
    np.testing.assert_allclose(posterior.parent_set_probabilities, exact.parent_set_probabilities, atol=1e-10)


@pytest.mark.parametrize("kind", ["paper", "importance"])
def test_weights_of_sampled_orders_are_those_of_their_definition(random_table, kind):
    table, model = random_table(4, 2, seed=6), uneven_model(4)
    orders, weights = sample_weighted_orders(table, model, kind, 200, np.random.default_rng(0))
    expected = log_order_evidence(table, orders).exp()
    if kind == "importance":
        expected = expected / model.log_prob(orders).detach().exp()
    np.testing.assert_allclose(weights, expected / expected.sum(), rtol=1e-10)
    assert not weights.requires_grad


def test_orders_treated_a_few_at_a_time_give_the_same_posterior(random_table, monkeypatch):
    table, model = random_table(4, 2, seed=7), uneven_model(4)
    at_once = sampled_posterior(table, model, "paper", 50)
    expected = at_once.edge_probabilities
    monkeypatch.setattr(marginalisation, "_ENTRIES_AT_ONCE", 7 * table.scores.numel())
    posterior = sampled_posterior(table, model, "paper", 50)
    np.testing.assert_allclose(posterior.edge_probabilities, expected, atol=1e-12)
    assert posterior.sample_graphs(33, np.random.default_rng(0)).graphs.shape == (33, 4, 4)


@pytest.mark.parametrize("n", [1, 9, 10, 25, 50, 73])
def test_as_many_graphs_come_as_are_asked_for(random_table, n):
    posterior = sampled_posterior(random_table(4, 2, seed=8), uneven_model(4), "paper", 5, num_graphs_per_order=10)
    graphs, weights = posterior.sample_graphs(n, np.random.default_rng(0))
    assert graphs.shape == (n, 4, 4)
    assert graphs.dtype == bool
    assert weights.shape == (n,)
    assert weights.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("n", [50, 52, 100])
def test_graphs_of_an_order_share_its_weight(random_table, n):
    posterior = sampled_posterior(random_table(4, 2, seed=8), uneven_model(4), "paper", 5, num_graphs_per_order=10)
    _, weights = posterior.sample_graphs(n, np.random.default_rng(0))
    of_orders = np.bincount(np.arange(n) % 5, weights)
    np.testing.assert_allclose(of_orders, posterior.orders.weights, rtol=1e-12)


def test_graphs_of_one_order_differ_and_fit_it(random_table):
    table = random_table(5, 2, seed=9, spread=0.5)
    posterior = sampled_posterior(table, uneven_model(5), "paper", 3, num_graphs_per_order=40)
    graphs, _ = posterior.sample_graphs(120, np.random.default_rng(0))
    for first in range(3):
        of_one_order = graphs[first::3]
        assert len(np.unique(of_one_order, axis=0)) > 10
        assert find_cycle(of_one_order.any(axis=0)) == []
    assert find_cycle(graphs.any(axis=0)) != []


def test_parent_sets_and_graphs_are_the_same_draws(random_table):
    table = random_table(4, 2, seed=10)
    posterior = exact_posterior(table)
    sets, weights = posterior.sample_parent_sets(20, np.random.default_rng(3))
    graphs, graph_weights = posterior.sample_graphs(20, np.random.default_rng(3))
    np.testing.assert_array_equal(graphs_of(table, sets.numpy()), graphs)
    np.testing.assert_array_equal(weights, graph_weights)


def test_expectations_of_graph_functions_are_those_of_the_exact_posterior(random_table, joint_of):
    table = random_table(4, 2, seed=11, spread=1.0)
    joint = joint_of(table)
    expected = joint.posterior @ graphs_of(table, joint.sets).any(axis=(1, 2))
    estimate = exact_posterior(table).expectation(lambda graph: float(graph.any()), 10_000, np.random.default_rng(0))
    error = np.sqrt(expected * (1 - expected) / 10_000)
    assert abs(estimate - expected) < 4 * error + 1e-12


def test_evidence_is_among_the_diagnostics_of_exact_orders(random_table):
    posterior = exact_posterior(random_table(3, 1))
    assert posterior.diagnostics["log_evidence"] == posterior.log_evidence


@pytest.mark.parametrize("learnt", [True, False])
def test_the_seed_decides_the_graphs(random_table, learnt):
    table = random_table(5, 2, seed=12, spread=0.5)
    model = AutoregressiveOrders(5, np.random.default_rng(0))
    posterior = sampled_posterior(table, model, "paper", 20) if learnt else exact_posterior(table)
    first, again, other = (posterior.sample_graphs(30, np.random.default_rng(seed)) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.graphs, again.graphs)
    np.testing.assert_array_equal(first.weights, again.weights)
    assert (first.graphs != other.graphs).any()
