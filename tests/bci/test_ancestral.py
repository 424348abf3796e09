"""Ancestral samples of many graphs at once, against a loop over graphs, interventions and variables."""

import networkx as nx
import numpy as np
import pytest
from mechanism_doubles import LinearMechanisms, WavyMechanisms
from scipy import stats

from bci import ancestral
from bci.ancestral import AncestralSampler

NUM_NODES, PER_GRAPH = 6, 7
INTERVENTIONS = [{}, {0: 1.5}, {3: -0.5, 1: 2.0}, {2: 0.0, 5: 1.0, 4: 0.25}, {5: -1.0}]


@pytest.fixture
def graphs(random_dags):
    drawn = random_dags(12, NUM_NODES, 0.45, np.random.default_rng(0))
    return np.concatenate([drawn, drawn[[3, 3, 7]], np.zeros((1, NUM_NODES, NUM_NODES), dtype=bool)])


def rng(seed=0):
    return np.random.default_rng(seed)


def one_graph(graph, mechanisms, noise, do):
    """Samples and means (n, d) of one graph under do, in plain topological order."""
    values, means = np.full(noise.shape, np.nan), np.full(noise.shape, np.nan)
    for node in nx.topological_sort(nx.from_numpy_array(graph, create_using=nx.DiGraph)):
        parents = tuple(np.nonzero(graph[:, node])[0].tolist())
        if node in do:
            values[:, node] = means[:, node] = do[node]
        elif parents:
            mean, variance = mechanisms.predict(node, parents, values[:, list(parents)])
            means[:, node], values[:, node] = mean, mean + np.sqrt(variance) * noise[:, node]
        else:
            _, location, scale = mechanisms.root(node)
            means[:, node], values[:, node] = location, location + scale * noise[:, node]
    return values, means


def test_all_graphs_and_interventions_together_equal_a_loop(graphs):
    mechanisms = WavyMechanisms()
    sampler = AncestralSampler(graphs, mechanisms)
    reference = sampler.reference(PER_GRAPH, rng())
    together = list(sampler.under(INTERVENTIONS, reference))
    assert len(together) == len(INTERVENTIONS)
    for do, samples in zip(INTERVENTIONS, together, strict=True):
        assert samples.values.shape == (len(graphs), PER_GRAPH, NUM_NODES)
        for number, graph in enumerate(graphs):
            values, means = one_graph(graph, mechanisms, reference.noise[number], do)
            np.testing.assert_allclose(samples.values[number], values, rtol=0, atol=1e-12)
            np.testing.assert_allclose(samples.means[number], means, rtol=0, atol=1e-12)


def test_without_intervention_the_reference_is_left(graphs):
    sampler = AncestralSampler(graphs, WavyMechanisms())
    reference = sampler.reference(PER_GRAPH, rng())
    (samples,) = sampler.under([{}], reference)
    np.testing.assert_array_equal(samples.values, reference.samples.values)


def test_an_intervention_changes_its_descendants_alone(graphs):
    sampler = AncestralSampler(graphs, WavyMechanisms())
    reference = sampler.reference(PER_GRAPH, rng())
    for node in range(NUM_NODES):
        (samples,) = sampler.under([{node: 0.7}], reference)
        changed = (samples.values != reference.samples.values).any(axis=1)
        for graph, moved in zip(graphs, changed, strict=True):
            descendants = nx.descendants(nx.from_numpy_array(graph, create_using=nx.DiGraph), node)
            assert set(np.nonzero(moved)[0].tolist()) == descendants | {node}


def test_graphs_that_share_a_family_share_a_call(random_dags):
    graph = random_dags(1, NUM_NODES, 0.45, rng(2))
    mechanisms = WavyMechanisms()
    AncestralSampler(np.repeat(graph, 50, axis=0), mechanisms).reference(PER_GRAPH, rng())
    assert len(mechanisms.calls) == graph[0].any(axis=0).sum()
    assert {rows for _, _, rows in mechanisms.calls} == {50 * PER_GRAPH}


def test_blocks_do_not_change_samples(graphs, monkeypatch):
    sampler = AncestralSampler(graphs, WavyMechanisms())
    reference = sampler.reference(PER_GRAPH, rng())
    whole = list(sampler.under(INTERVENTIONS, reference))
    for entries in (1, 2 * reference.noise.size):
        monkeypatch.setattr(ancestral, "_ENTRIES_AT_ONCE", entries)
        for ours, theirs in zip(sampler.under(INTERVENTIONS, reference), whole, strict=True):
            np.testing.assert_array_equal(ours.values, theirs.values)
            np.testing.assert_array_equal(ours.means, theirs.means)


def test_samples_of_an_intervention_do_not_depend_on_its_company(graphs):
    sampler = AncestralSampler(graphs, WavyMechanisms())
    reference = sampler.reference(PER_GRAPH, rng())
    alone = [next(sampler.under([do], reference)) for do in INTERVENTIONS]
    for ours, theirs in zip(alone, sampler.under(INTERVENTIONS, reference), strict=True):
        np.testing.assert_array_equal(ours.values, theirs.values)


def test_roots_are_drawn_from_their_student_t():
    mechanisms = LinearMechanisms(np.zeros((2, 2)), np.array([1.0, 4.0]), np.array([0.5, -2.0]), df=3.5)
    sampler = AncestralSampler(np.zeros((4, 2, 2), dtype=bool), mechanisms)
    values = sampler.reference(5000, rng()).samples.values
    for node in range(2):
        df, location, scale = mechanisms.root(node)
        assert stats.kstest(values[:, :, node].ravel(), stats.t(df, location, scale).cdf).pvalue > 1e-3
        assert stats.kstest(values[:, :, node].ravel(), stats.norm(location, scale).cdf).pvalue < 1e-6


def test_a_cycle_is_refused():
    graphs = np.zeros((2, 3, 3), dtype=bool)
    graphs[1, [0, 1, 2], [1, 2, 0]] = True
    with pytest.raises(ValueError, match="expected acyclic graphs"):
        AncestralSampler(graphs, WavyMechanisms()).reference(1, rng())
