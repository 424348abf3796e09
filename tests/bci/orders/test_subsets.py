"""Sums over subsets and supersets against loops over all pairs of sets."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp

from bci.orders.subsets import log_subset_sums, log_superset_sums, popcounts


def naive(log_values, included):
    """`log sum exp(log_values[S])` over the sets S with included(S, U), for every set U."""
    sets = range(len(log_values))
    return np.array([logsumexp([log_values[s] for s in sets if included(s, u)]) for u in sets])


def naive_subset_sums(log_values):
    return naive(log_values, lambda s, u: s & u == s)


def naive_superset_sums(log_values):
    return naive(log_values, lambda s, u: s & u == u)


def with_range(num_nodes, log_range, seed=0):
    """Random logarithms whose smallest and largest are `log_range` apart, a quarter of them -inf."""
    rng = np.random.default_rng(seed)
    log_values = rng.uniform(-log_range, 0, 1 << num_nodes) + 123.0
    log_values[rng.random(1 << num_nodes) < 0.25] = -np.inf
    log_values[0], log_values[-1] = 123.0, 123.0 - log_range
    return log_values


@pytest.mark.parametrize("log_range", [0.0, 5.0, 700.0, 1299.0, 1301.0, 5000.0, 1e6])
@pytest.mark.parametrize("num_nodes", [1, 2, 6])
def test_sums_equal_loops_over_all_sets(num_nodes, log_range):
    log_values = with_range(num_nodes, log_range)
    before = log_values.copy()
    for fast, slow in ((log_subset_sums, naive_subset_sums), (log_superset_sums, naive_superset_sums)):
        expected = slow(log_values)
        np.testing.assert_allclose(fast(log_values), expected, rtol=1e-13, atol=1e-11)
        np.testing.assert_array_equal(log_values, before)


@pytest.mark.parametrize("log_range", [1290.0, 1310.0])
def test_small_terms_survive_next_to_a_thousand_nats(log_range):
    log_values = np.full(8, -np.inf)
    log_values[0b001], log_values[0b010], log_values[0b110] = -log_range, -log_range + 0.5, 0.0
    sums = log_subset_sums(log_values)
    assert sums[0b011] == pytest.approx(-log_range + np.log(1 + np.exp(0.5)), abs=1e-9)
    assert sums[0b111] == 0.0
    assert sums[0b101] == pytest.approx(-log_range, abs=1e-9)


def test_many_equal_terms_do_not_overflow():
    log_values = np.zeros(1 << 16)
    log_values[0] = -1300.0
    expected = pytest.approx(np.log(2**16 - 1), abs=1e-9)
    assert log_subset_sums(log_values)[-1] == expected
    assert log_superset_sums(log_values)[0] == expected


def test_sums_of_nothing_are_nothing():
    nothing = np.full(8, -np.inf)
    np.testing.assert_array_equal(log_subset_sums(nothing), nothing)
    only_first = nothing.copy()
    only_first[0b001] = 2.0
    np.testing.assert_array_equal(np.isfinite(log_subset_sums(only_first)), [bool(u & 1) for u in range(8)])
    np.testing.assert_array_equal(np.isfinite(log_superset_sums(only_first)), [u in (0, 1) for u in range(8)])


def test_popcounts_are_the_numbers_of_members():
    np.testing.assert_array_equal(popcounts(10), [bin(u).count("1") for u in range(1 << 10)])
