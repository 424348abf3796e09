from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from matplotlib.patches import ConnectionStyle

from experiments.layout import CLEARANCE, bends, curve, forward_order, layered_positions


def random_dag(num_nodes, seed, share=0.3):
    rng = np.random.default_rng(seed)
    order = rng.permutation(num_nodes)
    upper = np.triu(rng.uniform(0.5, 1.0, (num_nodes, num_nodes)) * (rng.random((num_nodes, num_nodes)) < share), 1)
    weights = np.zeros_like(upper)
    weights[np.ix_(order, order)] = upper
    return weights


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_a_dag_is_topological(seed):
    weights = random_dag(12, seed)
    order = forward_order(weights)
    assert sorted(order) == list(range(12))
    rank = np.argsort(order)
    assert all(rank[i] < rank[j] for i, j in np.argwhere(weights))
    assert nx.is_directed_acyclic_graph(nx.from_numpy_array(weights, create_using=nx.DiGraph))


def test_faint_edges_of_a_cycle_go_backwards():
    weights = np.zeros((3, 3))
    weights[2, 0], weights[0, 1], weights[1, 2] = 0.9, 0.8, 0.1
    assert forward_order(weights) == [2, 0, 1]


def test_what_follows_from_a_cycle_comes_after_it_in_order():
    weights = np.zeros((5, 5))
    for cause, effect in [(0, 1), (1, 2), (2, 0), (2, 4), (4, 3)]:
        weights[cause, effect] = 0.6
    assert forward_order(weights)[3:] == [4, 3]


@pytest.mark.parametrize("seed", range(5))
def test_causes_stand_above_their_effects(seed):
    weights = random_dag(20, seed, share=0.15)
    height = layered_positions(weights)[:, 1]
    assert all(height[i] > height[j] for i, j in np.argwhere(weights))


@pytest.mark.parametrize(("num_nodes", "weight"), [(2, 0.0), (2, 0.1), (11, 0.1), (20, 0.1), (50, 0.0)])
def test_nodes_never_overlap(num_nodes, weight):
    positions = layered_positions(np.full((num_nodes, num_nodes), weight) * (1 - np.eye(num_nodes)))
    gaps = np.linalg.norm(positions[:, None] - positions, axis=2) + 9 * np.eye(num_nodes)
    assert gaps.min() > 0.9


def test_curves_are_those_that_matplotlib_draws():
    start, end = np.array([0.0, 1.0]), np.array([3.0, -1.0])
    path = ConnectionStyle.Arc3(rad=0.3).connect(tuple(start), tuple(end))
    np.testing.assert_allclose(curve(start, end, 0.3)[20], path.vertices.T @ [0.25, 0.5, 0.25])


def test_an_edge_bends_around_a_node_in_its_way():
    positions = np.array([[0.0, 0.0], [0.0, -1.0], [0.0, -2.0]])
    chosen = bends(positions, [(0, 2), (0, 1)])
    assert chosen[0, 1] == 0
    passing = curve(positions[0], positions[2], chosen[0, 2])
    assert np.linalg.norm(passing - positions[1], axis=1).min() >= CLEARANCE


def test_edges_in_both_directions_do_not_cover_each_other():
    positions = np.array([[0.0, 0.0], [1.0, -1.0]])
    chosen = bends(positions, [(0, 1), (1, 0)])
    there, back = (curve(positions[i], positions[j], chosen[i, j])[20] for i, j in [(0, 1), (1, 0)])
    assert np.linalg.norm(there - back) > 0.1
