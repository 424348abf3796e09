"""The exact posterior over orders against sums over all orders and graphs."""

from __future__ import annotations

import tracemalloc

import numpy as np
import psutil
import pytest
import torch
from scipy.special import logsumexp

from bci.errors import InvalidInput
from bci.marginalisation import log_order_evidence
from bci.orders.exact import ExactOrders, check_exact_orders_fit

# Standard deviations of the scores: of some nats, and so that sums over sets must be taken in logarithms.
SPREADS = [2.0, 30.0, 600.0, 5000.0]


def brute_force(table, joint):
    """Parent-set probabilities (nodes, sets) from all orders and graphs."""
    probabilities = np.zeros(tuple(table.scores.shape))
    for node, row in enumerate(probabilities):
        np.add.at(row, joint.sets[:, node], joint.posterior)
    return probabilities


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize(("num_nodes", "max_size"), [(2, 0), (2, 1), (3, 2), (4, 0), (4, 3), (5, 2)])
def test_evidence_and_parent_sets_equal_the_sum_over_all_orders_and_graphs(
    random_table, joint_of, num_nodes, max_size, spread
):
    table = random_table(num_nodes, max_size, seed=num_nodes, spread=spread)
    exact, joint = ExactOrders(table), joint_of(table)
    assert exact.log_evidence == pytest.approx(joint.log_evidence, rel=1e-13, abs=1e-9)
    np.testing.assert_allclose(exact.parent_set_probabilities, brute_force(table, joint), rtol=0, atol=1e-9)
    np.testing.assert_allclose(exact.parent_set_probabilities.sum(dim=1), 1, atol=1e-9)
    assert (exact.parent_set_probabilities[table.scores.isinf()] == 0).all()


def test_the_spreads_cover_both_ways_of_summing(random_table):
    ranges = []
    for spread in SPREADS:
        scores = random_table(5, 2, seed=5, spread=spread).scores
        finite = scores[scores.isfinite()]
        ranges.append(float(finite.max() - finite.min()))
    assert ranges[0] < ranges[1] < 1300 < ranges[2] < 10_000 < ranges[3]


@pytest.mark.parametrize("spread", SPREADS)
def test_log_prob_is_the_posterior_of_every_one_of_120_orders(random_table, joint_of, all_orders, spread):
    table = random_table(5, 2, seed=11, spread=spread)
    orders, joint = all_orders(5), joint_of(table)
    by_order = {}
    for order, log_prob in zip(map(tuple, joint.orders.tolist()), joint.log_prob, strict=True):
        by_order.setdefault(order, []).append(log_prob)
    expected = np.array([logsumexp(by_order[tuple(order)]) for order in orders.tolist()]) - joint.log_evidence
    log_prob = ExactOrders(table).log_prob(orders)
    np.testing.assert_allclose(log_prob, expected, rtol=1e-12, atol=1e-9)
    assert float(log_prob.exp().sum()) == pytest.approx(1, abs=1e-9)


def test_log_prob_is_the_evidence_of_the_order_up_to_a_constant(random_table):
    table = random_table(9, 2, seed=1)
    rng = np.random.default_rng(0)
    orders = torch.as_tensor(np.array([rng.permutation(9) for _ in range(50)]))
    exact = ExactOrders(table)
    log_factorial = np.log(np.arange(1, 10)).sum()
    expected = log_order_evidence(table, orders) - exact.log_evidence - log_factorial
    np.testing.assert_allclose(exact.log_prob(orders), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("spread", [0.5, 2.0])
def test_sampled_orders_follow_the_posterior(random_table, all_orders, assert_drawn_from, spread):
    exact, orders = ExactOrders(random_table(4, 2, seed=2, spread=spread)), all_orders(4)
    drawn = exact.sample(20_000, np.random.default_rng(0))
    assert drawn.dtype == torch.int64
    assert_drawn_from(drawn, orders, exact.log_prob(orders).exp())


def test_sampled_orders_of_distant_scores_are_the_best(random_table, all_orders):
    exact, orders = ExactOrders(random_table(4, 2, seed=3, spread=5000.0)), all_orders(4)
    probable = {tuple(order) for order in orders[exact.log_prob(orders) > -50].tolist()}
    assert {tuple(order) for order in exact.sample(200, np.random.default_rng(0)).tolist()} <= probable


def test_the_seed_decides_the_orders(random_table):
    exact = ExactOrders(random_table(5, 2))
    first, again, other = (exact.sample(50, np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_the_scores_are_left_as_they_are(random_table):
    table = random_table(5, 2)
    before = table.scores.clone()
    exact = ExactOrders(table)
    _ = exact.parent_set_probabilities
    exact.sample(10, np.random.default_rng(0))
    assert torch.equal(table.scores, before)


@pytest.mark.parametrize("num_nodes", [60, 2000])
def test_more_than_memory_holds_is_refused_with_the_estimate(num_nodes):
    with pytest.raises(InvalidInput) as caught:
        check_exact_orders_fit(num_nodes)
    message = str(caught.value)
    assert message.startswith(f"exact orders: expected enough memory for {num_nodes} variables, got ")
    assert "GiB needed; use method=arco_gp or fewer variables" in message
    assert "\n" not in message


def test_a_table_too_large_is_refused_before_anything_is_computed(random_table):
    with pytest.raises(InvalidInput, match=r"60 variables, got .* of 601,295,421,440\.0 GiB needed"):
        ExactOrders(random_table(60, 1))


def test_the_estimate_decides(monkeypatch):
    estimate = 8 * (16 + 10) * 2**16
    for free, refused in ((estimate - 1, True), (estimate, False)):
        monkeypatch.setattr(psutil, "virtual_memory", lambda free=free: type("Memory", (), {"available": free}))
        if refused:
            with pytest.raises(InvalidInput, match="16 variables"):
                check_exact_orders_fit(16)
        else:
            check_exact_orders_fit(16)


def test_the_estimate_covers_what_is_used(random_table):
    table = random_table(14, 2)
    tracemalloc.start()
    _ = ExactOrders(table).parent_set_probabilities
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * (14 + 10) * 2**14 * 1.05


def test_many_nodes_are_warned_of(monkeypatch, caplog):
    monkeypatch.setattr(psutil, "virtual_memory", lambda: type("Memory", (), {"available": 2.0**50}))
    check_exact_orders_fit(22)
    assert not caplog.records
    check_exact_orders_fit(23)
    assert "exact orders of 23 variables take about 2.1 GiB" in caplog.text
