"""Adjustment distances against the effects of linear models: a claim is right iff it gives the true effect."""

import gadjid
import networkx as nx
import numpy as np
import pytest

from bci.cpdag import dag_to_cpdag
from bci.metrics import METRICS, Undefined
from bci.posterior import GraphPosterior

NAMES = ("p_aid", "a_aid", "oset_aid")


def claims(guess):
    """For every (t, y) and metric: the adjustment set the guess prescribes, or None for `no effect`."""
    graph = nx.from_numpy_array(guess, create_using=nx.DiGraph)
    for t in graph:
        parents, ancestors, descendants = set(graph.predecessors(t)), nx.ancestors(graph, t), nx.descendants(graph, t)
        for y in set(graph) - {t}:
            yield "p_aid", t, y, None if y in parents else parents
            yield "a_aid", t, y, ancestors if y in descendants else None
            causal = descendants & (nx.ancestors(graph, y) | {y})
            forbidden = set().union({t}, causal, *(nx.descendants(graph, node) for node in causal))
            optimal = set().union(*(graph.predecessors(node) for node in causal)) - forbidden
            yield "oset_aid", t, y, optimal if y in descendants else None


def share_of_wrong_claims(truth, guess, rng):
    """By a linear Gaussian model with random coefficients on the true graph: regression against the total effect."""
    num_nodes = len(truth)
    coefficients = truth * rng.normal(size=truth.shape)
    effects = np.linalg.inv(np.eye(num_nodes) - coefficients)  # [t, y] total effect of t on y
    covariance = effects.T @ np.diag(rng.uniform(0.5, 2, num_nodes)) @ effects
    wrong = dict.fromkeys(NAMES, 0)
    for name, t, y, adjustment in claims(guess):
        if adjustment is None:
            estimate = 0.0
        else:
            inputs = [t, *adjustment]
            estimate = np.linalg.solve(covariance[np.ix_(inputs, inputs)], covariance[inputs, y])[0]
        wrong[name] += abs(estimate - effects[t, y]) > 1e-8
    return {name: count / (num_nodes * (num_nodes - 1)) for name, count in wrong.items()}


@pytest.fixture
def measure(dataset_with):
    def value(name, truth, graphs, weights=None, kind="dag"):
        posterior = GraphPosterior(np.array(graphs), weights, graph_kind=kind)
        return METRICS[name](posterior, dataset_with(truth), np.random.default_rng(0))

    return value


@pytest.mark.parametrize("num_nodes", [4, 5])
def test_distance_is_the_share_of_wrong_effects(measure, random_dags, num_nodes):
    rng = np.random.default_rng(num_nodes)
    for truth, guess in zip(random_dags(60, num_nodes, 0.5, rng), random_dags(60, num_nodes, 0.5, rng), strict=True):
        expected = share_of_wrong_claims(truth, guess, rng)
        assert {name: measure(name, truth, [guess]) for name in NAMES} == pytest.approx(expected)


@pytest.mark.parametrize("name", NAMES)
def test_known_values_on_three_nodes(measure, arrows, name):
    chain = arrows(3, (0, 1), (1, 2))
    assert measure(name, chain, [chain]) == 0
    assert measure(name, chain, [chain.T]) == 1  # three effects denied, three claimed that are not there
    assert measure(name, chain, [arrows(3)]) == 0.5  # three of six effects denied
    assert measure(name, arrows(3), [chain]) == 0  # the claimed effects are estimated as zero


def test_truth_and_guess_are_not_interchangeable(measure, arrows):
    chain, empty = arrows(3, (0, 1), (1, 2)), arrows(3)
    assert measure("p_aid", chain, [empty]) != measure("p_aid", empty, [chain])


@pytest.mark.parametrize("name", NAMES)
def test_distances_are_averaged_with_the_weights(measure, arrows, name):
    chain = arrows(3, (0, 1), (1, 2))
    graphs, weights = [chain, chain.T, arrows(3), chain.T], [0.4, 0.1, 0.3, 0.2]
    assert measure(name, chain, graphs, weights) == pytest.approx(0.4 * 0 + 0.3 * 1 + 0.3 * 0.5)


@pytest.mark.parametrize("name", NAMES)
def test_undirected_edge_claims_no_effect_to_be_identifiable(measure, arrows, name):
    edge, undirected = arrows(2, (0, 1)), arrows(2, (0, 1), (1, 0))
    assert measure(name, edge, [undirected], kind="cpdag") == 1
    assert measure(f"{name}_cpdag", edge, [undirected], kind="cpdag") == 0


@pytest.mark.parametrize("name", NAMES)
def test_equivalent_dags_have_distance_zero_between_classes(measure, arrows, name):
    chain, fork = arrows(3, (0, 1), (1, 2)), arrows(3, (1, 0), (1, 2))
    assert measure(name, chain, [fork]) > 0
    assert measure(f"{name}_cpdag", chain, [fork, chain.T]) == 0
    assert measure(f"{name}_cpdag", chain, [arrows(3, (0, 1), (2, 1))]) > 0


def test_dag_posterior_and_posterior_of_its_classes_agree(measure, random_dags):
    truth, *dags = random_dags(6, 6, 0.4, np.random.default_rng(1))
    for name in NAMES:
        assert measure(f"{name}_cpdag", truth, dags) == measure(
            f"{name}_cpdag", truth, dag_to_cpdag(np.array(dags)), kind="cpdag"
        )


@pytest.mark.parametrize("name", NAMES)
def test_graph_with_a_cycle_is_undefined_unless_it_has_no_weight(measure, arrows, name):
    edge, cycle = arrows(3, (0, 1)), arrows(3, (0, 1), (1, 2), (2, 0))
    assert measure(name, edge, [edge, cycle]) == Undefined("a graph of the posterior has a cycle")
    assert measure(name, edge, [edge, cycle], [1.0, 0.0]) == 0


@pytest.mark.parametrize("name", [*NAMES, "p_aid_cpdag"])
def test_partially_directed_graph_of_no_class_is_undefined(measure, arrows, name):
    directed_without_reason = arrows(3, (0, 1))
    square = arrows(4, (0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2), (3, 0), (0, 3))  # not chordal
    reason = Undefined("a graph of the posterior is not the CPDAG of any DAG")
    assert measure(name, arrows(3, (0, 1)), [directed_without_reason], kind="cpdag") == reason
    assert measure(name, arrows(4, (0, 1)), [square], kind="cpdag") == reason


def test_panic_of_the_library_is_undefined_but_an_interrupt_is_not(measure, arrows, monkeypatch):
    class PanicException(BaseException):
        pass

    def fail_with(error):
        def fail(*_, **__):
            raise error

        return fail

    monkeypatch.setattr(gadjid, "parent_aid", fail_with(PanicException("no such graph")))
    assert measure("p_aid", arrows(2, (0, 1)), [arrows(2)]) == Undefined("gadjid refused a graph: no such graph")
    monkeypatch.setattr(gadjid, "parent_aid", fail_with(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        measure("p_aid", arrows(2, (0, 1)), [arrows(2)])
