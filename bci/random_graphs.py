"""Random directed acyclic graphs whose labels say nothing about the causal order."""

from __future__ import annotations

import networkx as nx
import numpy as np

from bci.dataset import Bools
from bci.errors import InvalidInput

MAX_NETWORKX_SEED = 2**32 - 1


def erdos_renyi(num_nodes: int, expected_degree: float, rng: np.random.Generator) -> Bools:
    """A random DAG with independent edges: each pair of a random order is joined with the same probability.

    The probability is `2 * expected_degree / (num_nodes - 1)`, so that `expected_degree` is the expected
    number of edges per node (2 means about 2 * num_nodes edges).

    Returns:
        (d, d) adjacency, row causes column.

    Raises:
        InvalidInput: fewer than two nodes, or a degree that asks for a probability outside [0, 1].
    """
    _check_num_nodes(num_nodes)
    probability = 2.0 * expected_degree / (num_nodes - 1)
    if not 0.0 <= probability <= 1.0:
        raise InvalidInput(
            f"expected_degree: expected 0 to {(num_nodes - 1) / 2:g} edges per node for an er graph with num_nodes="
            f"{num_nodes}, got {expected_degree}; lower it or raise num_nodes"
        )
    ordered = np.triu(rng.random((num_nodes, num_nodes)) < probability, k=1)
    return permute_labels(ordered, rng)


def scale_free(num_nodes: int, expected_degree: float, rng: np.random.Generator) -> Bools:
    """A Barabasi-Albert graph with `m = expected_degree`, every edge from the older to the newer node.

    It starts from a star with m leaves, and every further node gets exactly m parents: m (d - m) edges in all
    (Barabasi and Albert 1999, as in `networkx.barabasi_albert_graph`).

    Returns:
        (d, d) adjacency, row causes column.

    Raises:
        InvalidInput: fewer than two nodes, or a degree that is not a whole number from 1 to d - 1.
    """
    _check_num_nodes(num_nodes)
    if not (float(expected_degree).is_integer() and 1 <= expected_degree < num_nodes):
        raise InvalidInput(
            f"expected_degree: expected a whole number from 1 to {num_nodes - 1} (num_nodes - 1) for an sf graph, "
            f"got {expected_degree}"
        )
    seed = int(rng.integers(MAX_NETWORKX_SEED))
    undirected = nx.barabasi_albert_graph(num_nodes, int(expected_degree), seed=seed)
    adjacency = nx.to_numpy_array(undirected, nodelist=range(num_nodes), dtype=bool)
    return permute_labels(np.triu(adjacency, k=1), rng)  # networkx numbers nodes by age


def permute_labels(graph: Bools, rng: np.random.Generator) -> Bools:
    """The same graph (d, d) under a uniformly random relabelling of its nodes."""
    order = rng.permutation(graph.shape[0])
    return graph[np.ix_(order, order)]


def _check_num_nodes(num_nodes: int) -> None:
    if num_nodes < 2:
        raise InvalidInput(f"num_nodes: expected at least 2, got {num_nodes}")
