"""Linear data, and a generator."""

from __future__ import annotations

import numpy as np
import pytest

from bci.dataset import Dataset


def linear_data(seed):
    """A random linear model of eight variables, 200 rows."""
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.uniform(0.3, 1, (8, 8)) * (rng.random((8, 8)) < 0.5), 1)
    values = rng.standard_normal((200, 8)) @ np.linalg.inv(np.eye(8) - weights)
    order = rng.permutation(8)
    return Dataset.from_raw(values[:, order], "abcdefgh", graph=(weights != 0)[np.ix_(order, order)])


@pytest.fixture
def linear():
    return linear_data(0)


@pytest.fixture
def contradictory():
    """Linear data on which tests of independence contradict each other."""
    return linear_data(1)


@pytest.fixture
def rng():
    return np.random.default_rng(0)
