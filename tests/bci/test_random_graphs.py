"""Edge counts, acyclicity and label symmetry of the random graphs."""

import numpy as np
import pytest
from scipy import stats

from bci.errors import InvalidInput
from bci.graphs import find_cycle
from bci.random_graphs import erdos_renyi, permute_labels, scale_free


@pytest.mark.parametrize("draw", [erdos_renyi, scale_free])
@pytest.mark.parametrize(("num_nodes", "degree"), [(2, 1), (5, 2), (20, 2), (50, 4)])
def test_graphs_are_acyclic_boolean_matrices(draw, num_nodes, degree):
    if draw is erdos_renyi and num_nodes == 2:
        degree = 0.5
    graph = draw(num_nodes, degree, np.random.default_rng(0))
    assert graph.shape == (num_nodes, num_nodes)
    assert graph.dtype == bool
    assert find_cycle(graph) == []


def test_er_edge_count_is_binomial():
    rng = np.random.default_rng(1)
    counts = np.array([erdos_renyi(20, 2, rng).sum() for _ in range(2000)])
    expected = stats.binom(190, 4 / 19)
    assert abs(counts.mean() - 40) < 4 * expected.std() / np.sqrt(2000)
    assert abs(counts.var() / expected.var() - 1) < 0.15


def test_er_extremes_are_the_empty_and_the_full_graph():
    rng = np.random.default_rng(2)
    assert erdos_renyi(6, 0, rng).sum() == 0
    assert erdos_renyi(6, 2.5, rng).sum() == 15


@pytest.mark.parametrize(("num_nodes", "degree", "edges"), [(20, 2, 36), (20, 1, 19), (50, 4, 184), (3, 2, 2)])
def test_sf_edge_count_is_exact(num_nodes, degree, edges):
    assert scale_free(num_nodes, degree, np.random.default_rng(3)).sum() == edges


def test_sf_nodes_have_at_most_m_parents_and_old_nodes_have_many_children():
    graphs = [scale_free(20, 2, np.random.default_rng(seed)) for seed in range(200)]
    assert max(graph.sum(axis=0).max() for graph in graphs) == 2
    hubs = np.mean([graph.sum(axis=1).max() for graph in graphs])
    assert hubs > 6  # 36 edges spread evenly over the older nodes would give about 4


@pytest.mark.parametrize("draw", [erdos_renyi, scale_free])
def test_labels_say_nothing_about_the_direction(draw):
    rng = np.random.default_rng(4)
    total = sum(draw(6, 2, rng).astype(int) for _ in range(3000))
    off_diagonal = total[~np.eye(6, dtype=bool)]
    # Each of the 30 directed edges is as likely as any other; the counts sum to a fixed or nearly fixed total.
    assert stats.chisquare(off_diagonal).pvalue > 1e-3


def test_permutation_of_labels_is_uniform():
    rng = np.random.default_rng(5)
    graph = np.zeros((3, 3), dtype=bool)
    graph[0, 1] = graph[1, 2] = True  # a chain: six labellings, all different
    counts: dict[bytes, int] = {}
    for _ in range(3000):
        key = permute_labels(graph, rng).tobytes()
        counts[key] = counts.get(key, 0) + 1
    assert len(counts) == 6
    assert stats.chisquare(list(counts.values())).pvalue > 1e-3


@pytest.mark.parametrize("draw", [erdos_renyi, scale_free])
def test_same_stream_gives_the_same_graph(draw):
    graphs = [draw(12, 2, np.random.default_rng(seed)) for seed in (8, 8, 9)]
    assert np.array_equal(graphs[0], graphs[1])
    assert not np.array_equal(graphs[0], graphs[2])


@pytest.mark.parametrize(
    ("draw", "num_nodes", "degree", "key"),
    [
        (erdos_renyi, 5, 2.1, "expected_degree"),
        (erdos_renyi, 5, -1, "expected_degree"),
        (erdos_renyi, 5, float("nan"), "expected_degree"),
        (erdos_renyi, 1, 0, "num_nodes"),
        (scale_free, 5, 5, "expected_degree"),
        (scale_free, 5, 0, "expected_degree"),
        (scale_free, 5, 1.5, "expected_degree"),
        (scale_free, 1, 1, "num_nodes"),
    ],
)
def test_impossible_settings_are_refused_by_key(draw, num_nodes, degree, key):
    with pytest.raises(InvalidInput, match=f"^{key}: expected"):
        draw(num_nodes, degree, np.random.default_rng(0))
