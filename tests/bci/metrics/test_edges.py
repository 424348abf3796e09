"""Edge-wise metrics against hand-computed values, naive loops, gadjid's SHD and scikit-learn."""

from itertools import combinations, permutations

import gadjid
import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from bci.cpdag import dag_to_cpdag
from bci.metrics import METRICS, Undefined
from bci.posterior import GraphPosterior


@pytest.fixture
def measure(dataset_with):
    """A function: metric, truth, graphs, weights, kind -> value."""

    def value(name, truth, graphs, weights=None, kind="dag"):
        posterior = GraphPosterior(np.array(graphs), weights, graph_kind=kind)
        return METRICS[name](posterior, dataset_with(truth), np.random.default_rng(0))

    return value


@pytest.fixture
def case(random_dags):
    """A truth, graphs and uneven weights on six nodes."""
    rng = np.random.default_rng(5)
    truth, *graphs = random_dags(8, 6, 0.4, rng)
    return truth, np.array(graphs), rng.dirichlet(np.ones(7))


def test_reversed_edge_costs_two_and_one(measure, arrows):
    truth, guess = arrows(3, (0, 1), (1, 2)), arrows(3, (1, 0), (1, 2))
    assert measure("eshd", truth, [guess]) == 2
    assert measure("shd_skeletonwise", truth, [guess]) == 1


def test_missing_and_added_edges_cost_one_each(measure, arrows):
    truth, guess = arrows(3, (0, 1)), arrows(3, (1, 2))
    assert measure("eshd", truth, [guess]) == 2
    assert measure("shd_skeletonwise", truth, [guess]) == 2


def test_undirected_edge_costs_what_its_entries_say(measure, arrows):
    undirected = arrows(2, (0, 1), (1, 0))
    assert measure("eshd", arrows(2, (0, 1)), [undirected], kind="cpdag") == 1
    assert measure("shd_skeletonwise", arrows(2, (0, 1)), [undirected], kind="cpdag") == 1
    assert measure("eshd", arrows(2), [undirected], kind="cpdag") == 2
    assert measure("shd_skeletonwise", arrows(2), [undirected], kind="cpdag") == 1


def test_undirected_edge_counts_once(measure, arrows):
    one_of_each = arrows(3, (0, 1), (1, 0), (1, 2))
    assert measure("num_edges", arrows(3), [one_of_each, arrows(3)], [0.25, 0.75], kind="cpdag") == pytest.approx(0.5)
    assert measure("num_edges", arrows(3), [arrows(3, (0, 1), (1, 2)), arrows(3)], [0.25, 0.75]) == pytest.approx(0.5)


def test_expected_distances_are_weighted_means_of_naive_counts(measure, case):
    truth, graphs, weights = case
    cells = list(permutations(range(6), 2))
    pairs = list(combinations(range(6), 2))
    by_entry = [sum(truth[i, j] != g[i, j] for i, j in cells) for g in graphs]
    by_pair = [sum((truth[i, j], truth[j, i]) != (g[i, j], g[j, i]) for i, j in pairs) for g in graphs]
    assert measure("eshd", truth, graphs, weights) == pytest.approx(np.dot(weights, by_entry))
    assert measure("shd_skeletonwise", truth, graphs, weights) == pytest.approx(np.dot(weights, by_pair))
    assert measure("num_edges", truth, graphs, weights) == pytest.approx(np.dot(weights, graphs.sum((1, 2))))
    assert measure("eshd", truth, graphs) != pytest.approx(np.dot(weights, by_entry))


def test_rates_are_those_of_naive_loops(measure, case):
    truth, graphs, weights = case
    hits = edges = rejections = gaps = 0.0
    for i, j in permutations(range(6), 2):
        probability = sum(w for w, g in zip(weights, graphs, strict=True) if g[i, j])
        if truth[i, j]:
            hits, edges = hits + probability, edges + 1
        else:
            rejections, gaps = rejections + 1 - probability, gaps + 1
    assert measure("tpr", truth, graphs, weights) == pytest.approx(hits / edges)
    assert measure("tnr", truth, graphs, weights) == pytest.approx(rejections / gaps)


def test_areas_are_those_of_scikit_learn(measure, case):
    truth, graphs, weights = case
    off_diagonal = ~np.eye(6, dtype=bool)
    actual, predicted = truth[off_diagonal], np.tensordot(weights, graphs, 1)[off_diagonal]
    assert measure("auroc", truth, graphs, weights) == pytest.approx(roc_auc_score(actual, predicted))
    assert measure("average_precision", truth, graphs, weights) == pytest.approx(
        average_precision_score(actual, predicted)
    )


def test_auprc_joins_the_points_by_straight_lines(measure, arrows):
    # Six cells, truth 0 -> 1 alone. Ranked: 0 -> 2 (0.6), 0 -> 1 (0.4), then the rest at 0.
    # Points (recall, precision): (0, 1), (0, 0), (1, 1/2), (1, 1/6); so 1/4 by trapezoids and 1/2 by steps.
    graphs, weights = [arrows(3, (0, 2)), arrows(3, (0, 1))], [0.6, 0.4]
    assert measure("auprc", arrows(3, (0, 1)), graphs, weights) == pytest.approx(1 / 4)
    assert measure("average_precision", arrows(3, (0, 1)), graphs, weights) == pytest.approx(1 / 2)


def test_rounding_errors_do_not_break_ties(measure, arrows):
    # 0 -> 1 has 0.1 + 0.2 > 0.3 and 0 -> 2 has 0.3, in truth a tie.
    graphs = [arrows(3, (0, 1)), arrows(3, (0, 1)), arrows(3, (0, 2)), arrows(3)]
    weights = [0.1, 0.2, 0.3, 0.4]
    assert measure("auroc", arrows(3, (0, 1)), graphs, weights) == measure("auroc", arrows(3, (0, 2)), graphs, weights)


def test_truth_without_edges(measure, arrows):
    for name in ("tpr", "auroc", "auprc", "average_precision"):
        assert measure(name, arrows(3), [arrows(3, (0, 1))]) == Undefined("the true graph has no edge")
    assert measure("tnr", arrows(3), [arrows(3, (0, 1))]) == pytest.approx(5 / 6)
    assert measure("eshd", arrows(3), [arrows(3, (0, 1))]) == 1


def test_complete_class_has_no_negatives(measure, arrows):
    complete = arrows(3, (0, 1), (0, 2), (1, 2))
    for name in ("tnr_cpdag", "auroc_cpdag"):
        assert measure(name, complete, [complete]) == Undefined("the true graph has every edge")
    assert measure("tpr_cpdag", complete, [complete]) == 1
    assert measure("tnr", complete, [complete]) == 1


def test_two_cycle_in_a_dag_posterior_leaves_pairs_undefined(measure, arrows):
    value = measure("shd_skeletonwise", arrows(3, (0, 1)), [arrows(3, (0, 1), (1, 0))])
    assert isinstance(value, Undefined)


def test_distances_between_classes_are_weighted_means_over_classes(measure, case):
    truth, graphs, weights = case
    cpdag = dag_to_cpdag(truth)

    def code(graph):
        return np.triu(graph & graph.T) * np.int8(2) + (graph & ~graph.T)

    by_entry = [(cpdag != dag_to_cpdag(g)).sum() for g in graphs]
    by_pair = [gadjid.shd(code(cpdag), code(dag_to_cpdag(g)))[1] for g in graphs]
    assert measure("eshd_cpdag", truth, graphs, weights) == pytest.approx(np.dot(weights, by_entry))
    assert measure("shd_skeletonwise_cpdag", truth, graphs, weights) == pytest.approx(np.dot(weights, by_pair))


def test_graphs_of_a_cpdag_posterior_are_used_as_they_are(measure, arrows):
    chain = arrows(3, (0, 1), (1, 2))
    assert measure("eshd_cpdag", chain, [dag_to_cpdag(chain)], kind="cpdag") == 0
    assert measure("eshd_cpdag", chain, [chain]) == 0
    assert measure("eshd_cpdag", chain, [chain], kind="cpdag") == 2
    assert measure("tpr_cpdag", chain, [chain], kind="cpdag") == 0.5


def test_classes_of_cyclic_graphs_are_undefined(measure, arrows):
    cycle = arrows(3, (0, 1), (1, 2), (2, 0))
    assert measure("eshd_cpdag", arrows(3, (0, 1)), [cycle]) == Undefined("a graph of the posterior has a cycle")
    assert measure("eshd", arrows(3, (0, 1)), [cycle]) == 2
