"""Data whose causal structure is known by construction."""

from __future__ import annotations

import os
import signal

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is loaded: threads that wait for each other take longer

import numpy as np
import pytest

from bci.dataset import Dataset, Scaler

signal.signal(signal.SIGINT, signal.default_int_handler)  # tests send it; shells let background commands ignore it


@pytest.fixture
def collider():
    """X0 -> X2 <- X1 and X2 -> X3, linear: every edge is directed in the CPDAG. Columns shuffled."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 1000))
    c = a + b + 0.5 * rng.standard_normal(1000)
    d = c + 0.7 * rng.standard_normal(1000)
    graph = np.zeros((4, 4), dtype=bool)
    graph[0, 2] = graph[1, 2] = graph[2, 3] = True
    order = [2, 0, 3, 1]
    return Dataset.from_raw(np.column_stack([a, b, c, d])[:, order], "cadb", graph=graph[np.ix_(order, order)])


@pytest.fixture
def chain():
    """X0 -> X1 -> X2, linear: the CPDAG is undirected."""
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((1000, 3))
    return Dataset.from_raw(np.cumsum(noise, axis=1), "abc", graph=np.eye(3, k=1, dtype=bool))


@pytest.fixture
def nonlinear_pair():
    """X1 -> X0, not invertible."""
    rng = np.random.default_rng(3)
    cause = rng.normal(size=200)
    effect = np.sin(2 * cause) + 0.3 * cause**2 + 0.2 * rng.normal(size=200)
    graph = np.array([[False, False], [True, False]])
    return Dataset.from_raw(np.column_stack([effect, cause]), ["effect", "cause"], graph=graph)


@pytest.fixture
def equal_noise_chain():
    """X1 -> X2 -> X0, linear with equal noise variances, on its own scale: the scale gives the order away."""
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((400, 3))
    values = np.zeros((400, 3))
    values[:, 1] = noise[:, 1]
    values[:, 2] = 1.2 * values[:, 1] + noise[:, 2]
    values[:, 0] = -values[:, 2] + noise[:, 0]
    graph = np.zeros((3, 3), dtype=bool)
    graph[1, 2] = graph[2, 0] = True
    identity = Scaler(np.zeros(3), np.ones(3))
    mask = np.zeros(values.shape, dtype=bool)
    return Dataset(values - values.mean(axis=0), ("c", "a", "b"), mask, identity, graph)
