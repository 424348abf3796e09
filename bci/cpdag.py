"""Markov equivalence classes: from a DAG to its CPDAG, and whether a graph is a CPDAG at all.

A CPDAG (also: essential graph) stands for all DAGs with the same skeleton and v-structures: i -> j where all of
them agree, both entries [i, j] and [j, i] true, an undirected edge, where they do not. Every function takes one
graph (d, d) or a batch (..., d, d), row causes column, and works on the whole batch at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bci.dataset import Bools


def dag_to_cpdag(graphs: Bools) -> Bools:
    """The CPDAG (..., d, d) of every DAG (..., d, d).

    v-structures closed under Meek's rules 1-3 (Meek 1995, "Causal inference and causal explanation with background
    knowledge"; rule 4 needs background knowledge). The rules only find edges that all members of the class share,
    so every edge they direct points as in the DAG.

    Raises:
        ValueError: a graph has a cycle.
    """
    if not is_acyclic(graphs).all():
        raise ValueError("expected acyclic graphs, got one with a cycle")
    dags = graphs.reshape(-1, *graphs.shape[-2:])
    apart = ~(dags | dags.mT | np.eye(dags.shape[-1], dtype=bool))
    v_structures = dags & _linked(apart, dags)  # i -> j <- k, i and k apart
    directed = v_structures | _rule_three(dags, apart)
    while True:
        rule_one = _linked(directed.mT, apart)  # k -> i - j, k and j apart
        rule_two = _linked(directed, directed)  # i -> k -> j
        found = dags & ~directed & (rule_one | rule_two)
        if not found.any():
            break
        directed |= found
    undirected = dags & ~directed
    return (dags | undirected.mT).reshape(graphs.shape)


def is_acyclic(graphs: Bools) -> Bools:
    """(...) whether each graph (..., d, d) has no directed cycle; an undirected edge is a cycle of two."""
    reachable = graphs
    for _ in range(max(1, int(np.ceil(np.log2(graphs.shape[-1]))))):  # paths of length <= 2, 4, 8, ... >= d
        reachable = reachable | _linked(reachable, reachable)
    return np.asarray(~np.diagonal(reachable, axis1=-2, axis2=-1).any(axis=-1))


def is_cpdag(graphs: Bools) -> Bools:
    """(...) whether each partially directed graph (..., d, d) is the CPDAG of some DAG.

    If it is, its undirected part is chordal, and directing that part along a maximum cardinality search
    (Tarjan & Yannakakis 1984) gives a DAG of the class, whose CPDAG is the graph again. If it is not, no DAG has
    this graph as its CPDAG. So comparing the two decides.
    """
    flat = graphs.reshape(-1, *graphs.shape[-2:])
    undirected = flat & flat.mT
    position = _maximum_cardinality_search(undirected)
    candidates = (flat & ~undirected) | (undirected & (position[:, :, None] < position[:, None, :]))
    answer = is_acyclic(candidates)
    answer[answer] = (dag_to_cpdag(candidates[answer]) == flat[answer]).all(axis=(1, 2))
    return answer.reshape(graphs.shape[:-2])


def _linked(first: Bools, second: Bools) -> Bools:
    """[..., i, j] whether some k has first[i, k] and second[k, j]."""
    return np.asarray(first.astype(np.float32) @ second.astype(np.float32) > 0)  # BLAS: far faster than on booleans


def _rule_three(dags: Bools, apart: Bools) -> Bools:
    """Edges i -> j directed by rule 3: i - k, i - l, k -> j <- l, k and l apart.

    In the DAG this reads: k -> j <- l is a v-structure, i touches all three and is no collider between k and l.
    For j -> i would make k -> j -> i and l -> j -> i, hence k -> i <- l, a v-structure that is not there. Nothing in it
    depends on what the other rules direct, so once is enough.
    """
    in_triangle = dags & _linked(dags, dags)  # i -> k -> j: i is no collider, so one of k, l is its child
    found = np.zeros_like(dags)
    for j in range(dags.shape[-1]):
        batch = np.nonzero(in_triangle[:, :, j].any(axis=1))[0]
        parents = dags[batch, :, j]
        colliders = apart[batch] & parents[:, :, None] & parents[:, None, :]  # (batch, k, l)
        found[batch, :, j] = _linked(dags[batch], colliders).any(axis=2)  # i -> j, apart from l: a v-structure anyway
    return found & dags


def _maximum_cardinality_search(undirected: Bools) -> NDArray[np.intp]:
    """(n, d) position of every node: always next is one with the most neighbours already placed."""
    n, num_nodes, _ = undirected.shape
    rows = np.arange(n)
    placed_neighbours = np.zeros((n, num_nodes))
    position = np.zeros((n, num_nodes), dtype=np.intp)
    for step in range(num_nodes):
        node = placed_neighbours.argmax(axis=1)
        position[rows, node] = step
        placed_neighbours += undirected[rows, node]
        placed_neighbours[rows, node] = -np.inf
    return position
