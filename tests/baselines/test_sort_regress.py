from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from baselines.sort_regress import SortRegress, explained_variances, increasing_order, regress_on_predecessors
from bci.dataset import Dataset
from bci.errors import InvalidInput


def test_variances_order_a_chain_on_its_raw_scale(chain, rng):
    posterior = SortRegress(criterion="variance").fit(chain, rng)
    assert posterior.diagnostics["causal_order"] == [0, 1, 2]
    np.testing.assert_array_equal(posterior.edge_probabilities, chain.graph)


def test_standardised_variances_leave_the_order_to_chance(chain):
    orders = [
        SortRegress(criterion="variance", scale="standardised")
        .fit(chain, np.random.default_rng(seed))
        .diagnostics["causal_order"]
        for seed in range(30)
    ]
    assert len({tuple(order) for order in orders}) == 6


def test_the_share_of_explained_variance_ignores_the_scale(collider):
    shares = explained_variances(collider.observations)
    others = [np.delete(collider.observations, node, axis=1) for node in range(4)]
    targets = collider.observations.T
    expected = [LinearRegression().fit(x, y).score(x, y) for x, y in zip(others, targets, strict=True)]
    np.testing.assert_allclose(shares, expected)
    np.testing.assert_allclose(explained_variances(collider.observations * [1, 10, 100, 0.1]), expected)


def test_the_order_is_that_of_explained_variances(collider, rng):
    order = SortRegress().fit(collider, rng).diagnostics["causal_order"]
    assert (np.diff(explained_variances(collider.observations)[order]) > 0).all()


def test_ties_come_in_random_order():
    values = np.array([2.0, 1.0, 1.0 + 1e-12])
    orders = {tuple(increasing_order(values, np.random.default_rng(seed)).tolist()) for seed in range(20)}
    assert orders == {(1, 2, 0), (2, 1, 0)}


def test_regression_finds_the_parents_given_the_order(collider):
    order = np.array([1, 3, 0, 2])  # columns c a d b
    np.testing.assert_array_equal(regress_on_predecessors(collider.observations, order), collider.graph)


def test_too_few_rows_are_refused(rng):
    dataset = Dataset.from_raw(np.random.default_rng(0).standard_normal((5, 4)), "abcd")
    with pytest.raises(InvalidInput, match="expected at least 6 rows"):
        SortRegress().fit(dataset, rng)


@pytest.mark.parametrize(("settings", "key"), [({"criterion": "mean"}, "criterion"), ({"scale": "log"}, "scale")])
def test_settings_that_cannot_be_are_refused(settings, key):
    with pytest.raises(InvalidInput, match=f"^{key}: expected "):
        SortRegress(**settings)
