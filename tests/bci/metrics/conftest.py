"""Small truths and posteriors for the metrics."""

import numpy as np
import pytest

from bci.dataset import Dataset


@pytest.fixture
def dataset_with():
    """A function: true graph or None -> data set."""

    def build(graph, num_nodes=None):
        num_nodes = num_nodes if graph is None else len(graph)
        raw = np.random.default_rng(0).normal(size=(10, num_nodes))
        return Dataset.from_raw(raw, [f"x{i}" for i in range(num_nodes)], graph=graph)

    return build


@pytest.fixture
def arrows():
    """A function: number of nodes, edges (i, j) -> adjacency, row causes column."""

    def build(num_nodes, *pairs):
        graph = np.zeros((num_nodes, num_nodes), dtype=bool)
        for i, j in pairs:
            graph[i, j] = True
        return graph

    return build
