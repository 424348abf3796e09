"""Cycles and topological orders."""

import itertools

import numpy as np
import pytest

from bci.graphs import find_cycle, topological_order


def adjacency(num_nodes, *edges):
    graph = np.zeros((num_nodes, num_nodes), dtype=bool)
    for cause, effect in edges:
        graph[cause, effect] = True
    return graph


def test_cycle_is_listed_in_the_direction_of_its_edges():
    graph = adjacency(5, (0, 3), (3, 1), (1, 4), (4, 3))
    cycle = find_cycle(graph)
    assert set(cycle) == {1, 3, 4}
    assert all(graph[a, b] for a, b in itertools.pairwise([*cycle, cycle[0]]))


def test_self_loop_is_a_cycle():
    assert find_cycle(adjacency(3, (1, 1))) == [1]


def test_two_way_edge_is_a_cycle():
    assert sorted(find_cycle(adjacency(3, (0, 2), (2, 0)))) == [0, 2]


@pytest.mark.parametrize("edges", [[], [(0, 1), (1, 2), (0, 2)], [(2, 0), (1, 0)]])
def test_acyclic_graph_has_no_cycle(edges):
    assert find_cycle(adjacency(3, *edges)) == []


def test_order_is_the_first_valid_permutation():
    rng = np.random.default_rng(0)
    for _ in range(20):
        hidden = rng.permutation(5)
        graph = np.triu(rng.random((5, 5)) < 0.4, k=1)[np.ix_(hidden, hidden)]
        valid = [
            list(order)
            for order in itertools.permutations(range(5))
            if all(order.index(a) < order.index(b) for a, b in np.argwhere(graph))
        ]
        assert topological_order(graph) == min(valid)
