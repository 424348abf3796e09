"""Facts about directed graphs given as boolean adjacency matrices, row causes column."""

from __future__ import annotations

import networkx as nx
import numpy as np
from numpy.typing import NDArray


def find_cycle(graph: NDArray[np.bool_]) -> list[int]:
    """Nodes of one directed cycle in order, or an empty list for an acyclic graph (a self-loop is a cycle)."""
    try:
        return [int(edge[0]) for edge in nx.find_cycle(nx.from_numpy_array(graph, create_using=nx.DiGraph))]
    except nx.NetworkXNoCycle:
        return []


def topological_order(graph: NDArray[np.bool_]) -> list[int]:
    """Nodes with every cause before its effects; the smallest index first where there is a choice."""
    return [
        int(node) for node in nx.lexicographical_topological_sort(nx.from_numpy_array(graph, create_using=nx.DiGraph))
    ]


def groups_of_equal(graphs: NDArray[np.bool_]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The place of the first graph of every group of equal ones among graphs (n, d, d), and each graph's group (n,)."""
    packed = np.packbits(graphs.reshape(len(graphs), -1), axis=1)
    keys = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    return first, group
