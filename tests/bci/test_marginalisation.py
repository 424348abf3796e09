"""Sums over parent sets against naive loops and against sums over all graphs."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import torch
from scipy.special import logsumexp

from bci import marginalisation
from bci.marginalisation import (
    edge_probabilities,
    expected_product,
    expected_sum,
    log_node_evidence,
    log_num_sets,
    log_order_evidence,
    log_parent_set_weights,
    orders_at_once,
    parent_set_probabilities,
    positions_in,
)
from bci.parent_sets import ParentSets

SIZES = [(2, 0), (2, 1), (3, 1), (3, 2), (4, 0), (4, 2), (4, 3)]


def naive_log_weights(table, order, node):
    """`log p(S | L) + s(S)` of the sets that fit, by their members, straight from the definition."""
    before = sorted(order[: order.index(node)])
    fitting = [s for size in range(table.parent_sets.max_size + 1) for s in combinations(before, size)]
    return {s: float(table.scores[node, table.parent_sets.number(s)]) - math.log(len(fitting)) for s in fitting}


def given_order(joint, order):
    """The graphs that fit one order, and `p(graph, D | order)` in logarithms."""
    rows = (joint.orders == order).all(axis=1)
    return joint.sets[rows], joint.log_prob[rows] + math.lgamma(len(order) + 1)


def node_values(table, seed):
    """A value of every node and parent set, of either sign."""
    return torch.as_tensor(np.random.default_rng(seed).normal(size=tuple(table.scores.shape)))


def test_positions_are_the_inverse_of_an_order():
    orders = torch.tensor([[2, 0, 1], [0, 1, 2], [1, 2, 0]])
    assert positions_in(orders).tolist() == [[1, 2, 0], [0, 1, 2], [2, 0, 1]]


def test_the_prior_counts_the_sets_of_at_most_k_predecessors():
    counts = log_num_sets(ParentSets(6, 2)).exp()
    np.testing.assert_allclose(counts, [1, 2, 4, 7, 11, 16])
    np.testing.assert_allclose(log_num_sets(ParentSets(4, 3)).exp(), [1, 2, 4, 8])
    np.testing.assert_allclose(log_num_sets(ParentSets(4, 0)), 0)


@pytest.mark.parametrize(("num_nodes", "max_size"), SIZES)
def test_weights_are_those_of_the_sets_among_the_predecessors(random_table, all_orders, num_nodes, max_size):
    table = random_table(num_nodes, max_size)
    orders = all_orders(num_nodes)
    weights = log_parent_set_weights(table, orders)
    evidence = log_node_evidence(table, orders)
    for row, order in enumerate(orders.tolist()):
        for node in range(num_nodes):
            expected = naive_log_weights(table, order, node)
            finite = torch.nonzero(weights[row, node].isfinite())[:, 0].tolist()
            assert {table.parent_sets.members[number] for number in finite} == set(expected)
            for members, value in expected.items():
                assert float(weights[row, node, table.parent_sets.number(members)]) == pytest.approx(value, abs=1e-12)
            assert float(evidence[row, node]) == pytest.approx(logsumexp(list(expected.values())), abs=1e-12)


@pytest.mark.parametrize("lead", [1, 500, 725, 1e5])  # exp(-725) has few digits, as it is below the normal numbers
def test_sets_far_below_the_best_one_count_where_the_best_one_does_not_fit(random_table, all_orders, lead):
    table, orders = random_table(5, 3), all_orders(5)
    is_best = table.scores == table.scores.amax(dim=1, keepdim=True)
    table = replace(table, scores=table.scores + lead * is_best)
    evidence = log_node_evidence(table, orders)
    for row, order in enumerate(orders.tolist()):
        expected = [logsumexp(list(naive_log_weights(table, order, node).values())) for node in range(5)]
        np.testing.assert_allclose(evidence[row], expected, rtol=1e-14, atol=1e-12)


@pytest.mark.parametrize(("num_nodes", "max_size"), SIZES)
def test_the_evidence_of_an_order_is_the_sum_over_the_graphs_that_fit(
    random_table, joint_of, all_orders, num_nodes, max_size
):
    table = random_table(num_nodes, max_size, seed=1)
    joint, orders = joint_of(table), all_orders(num_nodes)
    expected = [logsumexp(given_order(joint, order)[1]) for order in orders.numpy()]
    np.testing.assert_allclose(log_order_evidence(table, orders), expected, rtol=0, atol=1e-11)


def test_repeated_orders_keep_their_places(random_table, all_orders):
    table = random_table(4, 2)
    orders = all_orders(4)
    shuffled = torch.as_tensor(np.random.default_rng(0).integers(24, size=60))
    np.testing.assert_array_equal(
        log_order_evidence(table, orders[shuffled]), log_order_evidence(table, orders)[shuffled]
    )


def test_orders_are_treated_a_few_at_a_time_with_the_same_result(random_table, all_orders, monkeypatch):
    table, orders = random_table(4, 2), all_orders(4)
    at_once = log_order_evidence(table, orders)
    monkeypatch.setattr(marginalisation, "_ENTRIES_AT_ONCE", 7 * table.scores.numel())
    assert orders_at_once(table) == 7
    np.testing.assert_array_equal(log_order_evidence(table, orders), at_once)
    monkeypatch.setattr(marginalisation, "_ENTRIES_AT_ONCE", 1)
    assert orders_at_once(table) == 1


def test_parent_sets_given_an_order_are_as_probable_as_in_the_sum_over_graphs(random_table, joint_of, all_orders):
    table = random_table(4, 2, seed=2)
    joint, orders = joint_of(table), all_orders(4)
    probabilities = parent_set_probabilities(table, orders)
    assert (probabilities[..., table.scores.isinf()] == 0).all()
    for row, order in enumerate(orders.numpy()):
        sets, log_prob = given_order(joint, order)
        expected = np.zeros(tuple(table.scores.shape))
        for node in range(4):
            np.add.at(expected[node], sets[:, node], np.exp(log_prob - logsumexp(log_prob)))
        np.testing.assert_allclose(probabilities[row], expected, rtol=0, atol=1e-12)


def expected_over_graphs(joint, orders, values, combine):
    """Given each order, the mean over the graphs that fit of the nodes' values, combined over nodes."""
    expected = []
    for order in orders.numpy():
        sets, log_prob = given_order(joint, order)
        combined = combine(values.numpy()[np.arange(len(values)), sets], axis=1)
        expected.append(np.exp(log_prob) @ combined / np.exp(log_prob).sum())
    return expected


@pytest.mark.parametrize(("num_nodes", "max_size"), SIZES)
def test_proposition_1_equals_the_sum_over_graphs(random_table, joint_of, all_orders, num_nodes, max_size):
    table = random_table(num_nodes, max_size, seed=3)
    joint, orders, values = joint_of(table), all_orders(num_nodes), node_values(table, seed=4)
    expected = expected_over_graphs(joint, orders, values, np.prod)
    result = expected_product(parent_set_probabilities(table, orders), values)
    np.testing.assert_allclose(result, expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize(("num_nodes", "max_size"), SIZES)
def test_proposition_2_equals_the_sum_over_graphs(random_table, joint_of, all_orders, num_nodes, max_size):
    table = random_table(num_nodes, max_size, seed=5)
    joint, orders, values = joint_of(table), all_orders(num_nodes), node_values(table, seed=6)
    expected = expected_over_graphs(joint, orders, values, np.sum)
    result = expected_sum(parent_set_probabilities(table, orders), values)
    np.testing.assert_allclose(result, expected, rtol=1e-10, atol=1e-13)


def test_proposition_2_in_the_form_of_the_paper(random_table):
    """`sum_i (prod_{j != i} alpha_j) sum_S p(S | L) w_i(S) Y_i(S)`, both sides times p(D | L)."""
    table, order = random_table(4, 2, seed=7), [2, 0, 3, 1]
    values = node_values(table, seed=8)
    weights = [{s: math.exp(w) for s, w in naive_log_weights(table, order, node).items()} for node in range(4)]
    alpha = [sum(w.values()) for w in weights]
    expected = sum(
        math.prod(alpha[:node] + alpha[node + 1 :])
        * sum(w * float(values[node, table.parent_sets.number(s)]) for s, w in weights[node].items())
        for node in range(4)
    )
    orders = torch.tensor([order])
    result = expected_sum(parent_set_probabilities(table, orders), values) * log_order_evidence(table, orders).exp()
    assert float(result[0]) == pytest.approx(expected, rel=1e-10)


def test_values_may_differ_between_orders(random_table, all_orders):
    table, orders = random_table(3, 2), all_orders(3)
    probabilities = parent_set_probabilities(table, orders)
    values = torch.as_tensor(np.random.default_rng(0).normal(size=tuple(probabilities.shape)))
    for expectation in (expected_product, expected_sum):
        together = expectation(probabilities, values)
        one_by_one = [expectation(probabilities[[k]], values[k])[0] for k in range(len(orders))]
        np.testing.assert_allclose(together, one_by_one, rtol=1e-12)


def test_the_cause_of_an_edge_is_the_row():
    parent_sets = ParentSets(3, 2)
    probabilities = torch.zeros(3, len(parent_sets), dtype=torch.float64)
    probabilities[[0, 1], 0] = 1
    probabilities[2, parent_sets.number([0])] = 0.25
    probabilities[2, parent_sets.number([0, 1])] = 0.5
    probabilities[2, 0] = 0.25
    expected = [[0, 0, 0.75], [0, 0, 0.5], [0, 0, 0]]
    np.testing.assert_array_equal(edge_probabilities(parent_sets, probabilities), expected)
    np.testing.assert_array_equal(edge_probabilities(parent_sets, probabilities.expand(5, -1, -1))[3], expected)


def test_scores_of_thousands_of_nats_neither_overflow_nor_vanish(random_table, joint_of, all_orders):
    table = random_table(4, 2, seed=9, spread=4000.0)
    joint, orders = joint_of(table), all_orders(4)
    expected = [logsumexp(given_order(joint, order)[1]) for order in orders.numpy()]
    np.testing.assert_allclose(log_order_evidence(table, orders), expected, rtol=1e-12)
    probabilities = parent_set_probabilities(table, orders)
    np.testing.assert_allclose(probabilities.sum(dim=2), 1, atol=1e-12)
    assert probabilities.isfinite().all()
