"""CPDAGs against enumeration: a CPDAG is the union of all DAGs with the same skeleton and v-structures."""

from itertools import combinations, product

import networkx as nx
import numpy as np
import pytest

from bci.cpdag import dag_to_cpdag, is_acyclic, is_cpdag


def edges(num_nodes, *arrows):
    graph = np.zeros((num_nodes, num_nodes), dtype=bool)
    for i, j in arrows:
        graph[i, j] = True
    return graph


def acyclic(graph):
    return nx.is_directed_acyclic_graph(nx.from_numpy_array(graph, create_using=nx.DiGraph))


def skeleton_and_v_structures(graph):
    skeleton = graph | graph.T
    nodes = range(len(graph))
    colliders = frozenset(
        (i, j, k)
        for j in nodes
        for i, k in combinations(nodes, 2)
        if graph[i, j] and graph[k, j] and not skeleton[i, k]
    )
    return skeleton.tobytes(), colliders


def all_graphs(num_nodes, states):
    """Every assignment of one of the states (entry [i, j], entry [j, i]) to every pair of nodes."""
    pairs = list(combinations(range(num_nodes), 2))
    for choice in product(states, repeat=len(pairs)):
        graph = np.zeros((num_nodes, num_nodes), dtype=bool)
        for (i, j), (forward, backward) in zip(pairs, choice, strict=True):
            graph[i, j], graph[j, i] = forward, backward
        yield graph


@pytest.fixture(scope="module")
def dags_on_four_nodes():
    return np.array([g for g in all_graphs(4, [(0, 0), (0, 1), (1, 0)]) if acyclic(g)])


@pytest.fixture(scope="module")
def cpdags_on_four_nodes(dags_on_four_nodes):
    """The CPDAG of each of them: the union of its class."""
    keys = [skeleton_and_v_structures(dag) for dag in dags_on_four_nodes]
    unions = {}
    for key, dag in zip(keys, dags_on_four_nodes, strict=True):
        unions[key] = unions.get(key, False) | dag
    return np.array([unions[key] for key in keys])


def test_cpdags_of_all_dags_on_four_nodes(dags_on_four_nodes, cpdags_on_four_nodes):
    assert len(dags_on_four_nodes) == 543
    assert len(np.unique(cpdags_on_four_nodes, axis=0)) == 185  # Andersson, Madigan & Perlman 1997
    np.testing.assert_array_equal(dag_to_cpdag(dags_on_four_nodes), cpdags_on_four_nodes)


@pytest.mark.parametrize("num_nodes", [5, 6])
def test_cpdags_of_random_dags_are_the_union_of_their_class(num_nodes):
    rng = np.random.default_rng(num_nodes)
    for density in rng.uniform(0.2, 0.8, size=25):
        order = rng.permutation(num_nodes)
        dag = np.triu(rng.random((num_nodes, num_nodes)) < density, 1)[np.ix_(order, order)]
        arrows = np.argwhere(dag)
        if len(arrows) > 10:
            continue
        union, key = np.zeros_like(dag), skeleton_and_v_structures(dag)
        for flips in product([False, True], repeat=len(arrows)):
            other = edges(num_nodes, *[(j, i) if flip else (i, j) for (i, j), flip in zip(arrows, flips, strict=True)])
            if skeleton_and_v_structures(other) == key and acyclic(other):
                union |= other
        np.testing.assert_array_equal(dag_to_cpdag(dag), union)


def test_chain_is_undirected_and_collider_is_not():
    np.testing.assert_array_equal(dag_to_cpdag(edges(3, (0, 1), (1, 2))), edges(3, (0, 1), (1, 0), (1, 2), (2, 1)))
    collider = edges(3, (0, 1), (2, 1))
    np.testing.assert_array_equal(dag_to_cpdag(collider), collider)


def test_reversing_a_covered_edge_keeps_the_class():
    """Chickering 1995: i -> j with Pa(j) = Pa(i) + i can be reversed, so it is undirected."""
    rng = np.random.default_rng(15)
    for density in rng.uniform(0.1, 0.9, size=30):
        order = rng.permutation(15)
        dag = np.triu(rng.random((15, 15)) < density, 1)[np.ix_(order, order)]
        cpdag = dag_to_cpdag(dag)
        for i, j in np.argwhere(dag):
            if set(np.nonzero(dag[:, j])[0]) == {*np.nonzero(dag[:, i])[0], i}:
                assert cpdag[j, i]
                reversed_dag = dag.copy()
                reversed_dag[i, j], reversed_dag[j, i] = False, True
                np.testing.assert_array_equal(dag_to_cpdag(reversed_dag), cpdag)


def test_cpdag_of_a_graph_with_a_cycle_is_refused():
    with pytest.raises(ValueError, match="acyclic"):
        dag_to_cpdag(edges(3, (0, 1), (1, 2), (2, 0)))


def test_is_acyclic_on_all_graphs_of_three_nodes_and_long_cycles():
    graphs = np.array(list(all_graphs(3, [(0, 0), (0, 1), (1, 0), (1, 1)])))
    np.testing.assert_array_equal(is_acyclic(graphs), [acyclic(graph) for graph in graphs])
    for num_nodes in (2, 7, 8, 9, 33):
        path = edges(num_nodes, *[(i, i + 1) for i in range(num_nodes - 1)])
        assert is_acyclic(path)
        assert not is_acyclic(path | edges(num_nodes, (num_nodes - 1, 0)))


def test_is_cpdag_on_all_partially_directed_graphs_of_four_nodes(cpdags_on_four_nodes):
    graphs = np.array(list(all_graphs(4, [(0, 0), (0, 1), (1, 0), (1, 1)])))
    known = {cpdag.tobytes() for cpdag in cpdags_on_four_nodes}
    answers = is_cpdag(graphs)
    assert answers.sum() == 185
    np.testing.assert_array_equal(answers, [graph.tobytes() in known for graph in graphs])


@pytest.mark.parametrize("num_nodes", [20, 50])
def test_large_cpdags_are_recognised_and_spoilt_ones_are_not(num_nodes):
    rng = np.random.default_rng(num_nodes)
    dags = np.array([np.triu(rng.random((num_nodes, num_nodes)) < 0.15, 1) for _ in range(20)])
    order = rng.permutation(num_nodes)
    dags = dags[:, order][:, :, order]
    cpdags = dag_to_cpdag(dags)
    assert is_cpdag(cpdags).all()
    np.testing.assert_array_equal(is_cpdag(dags), (dags == cpdags).all(axis=(1, 2)))
    for cpdag in cpdags:
        directed = np.argwhere(cpdag & ~cpdag.T)
        i, j = directed[rng.integers(len(directed))]
        spoilt = cpdag.copy()
        spoilt[j, i] = True  # a compelled edge made undirected stands for no class
        assert not is_cpdag(spoilt)
