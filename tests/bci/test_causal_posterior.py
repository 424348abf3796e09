"""Causal queries against the closed form of linear models, and what their answers and errors look like."""

import numpy as np
import pytest
from mechanism_doubles import LinearMechanisms, WavyMechanisms

from bci.causal_posterior import GenerativePosterior
from bci.dataset import Dataset, Scaler
from bci.effect_matrix import effect_matrix
from bci.errors import InvalidInput
from bci.posterior import GraphPosterior, WeightedGraphs
from bci.predictive import fit_gp_mechanisms

NAMES = tuple("abcdef")
SCALER = Scaler(np.array([10.0, -3, 0, 2, 5, 1]), np.array([2.0, 0.5, 1, 4, 3, 0.1]))
INTERVENTIONS = [{}, {0: 1.0}, {2: -0.7, 4: 1.3}, {1: 0.5, 3: 2.0, 5: -1.0}]


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.fixture
def linear():
    generator = rng(5)
    return LinearMechanisms(generator.normal(size=(6, 6)), generator.uniform(0.3, 1, 6), generator.normal(size=6))


@pytest.fixture
def graphs(random_dags):
    return random_dags(5, 6, 0.5, rng(1))


def posterior_of(graphs, mechanisms, weights=None, **settings):
    weights = np.full(len(graphs), 1 / len(graphs)) if weights is None else weights
    structure = GraphPosterior(graphs, weights, diagnostics={"steps": 3})
    settings = {"seed": 11, **settings}
    return GenerativePosterior(structure, WeightedGraphs(graphs, weights), NAMES, SCALER, mechanisms, **settings)


@pytest.fixture
def wavy(graphs):
    return posterior_of(graphs, WavyMechanisms(), mean_samples=100)


@pytest.mark.parametrize("do", INTERVENTIONS)
def test_moments_of_samples_match_a_linear_model_in_closed_form(graphs, linear, do):
    samples, weights = posterior_of(graphs[:1], linear).sample_interventional(do, 200_000, rng())
    mean, covariance = linear.moments(graphs[0], do)
    assert weights == pytest.approx(1 / 200_000)
    errors = np.sqrt(np.diag(covariance) / 200_000)
    assert (np.abs(samples.mean(axis=0) - mean) <= 4.5 * errors + 1e-9).all()
    np.testing.assert_allclose(np.cov(samples.T), covariance, rtol=0.03, atol=0.03 * np.diag(covariance).max())


@pytest.mark.parametrize("do", INTERVENTIONS)
def test_means_match_a_mixture_of_linear_models_in_closed_form(graphs, linear, do):
    weights = rng().dirichlet(np.ones(len(graphs)))
    posterior = posterior_of(graphs, linear, weights, mean_samples=250_000)
    moments = [linear.moments(graph, do) for graph in graphs]
    expected = weights @ [mean for mean, _ in moments]
    variances = np.array([np.diag(covariance) for _, covariance in moments])
    errors = np.sqrt(weights**2 @ variances / 50_000)
    assert (np.abs(posterior.interventional_mean(do) - expected) <= 4.5 * errors + 1e-9).all()
    sampled, by_sample = posterior.sample_interventional(do, 250_000, rng())
    assert (np.abs(by_sample @ sampled - expected) <= 4.5 * errors + 1e-9).all()


def test_predictive_means_are_closer_to_the_truth_than_averages_of_samples(graphs, linear):
    graph, expected = graphs[0], linear.moments(graphs[0], {})[0]
    leaf = int(np.nonzero(~graph.any(axis=1) & graph.any(axis=0))[0][0])
    of_means, of_samples = [], []
    for seed in range(60):
        posterior = posterior_of(graph[None], linear, seed=seed, mean_samples=30)
        of_means.append(posterior.interventional_mean({})[leaf] - expected[leaf])
        samples, weights = posterior.sample_interventional({}, 30, rng(seed))
        of_samples.append(weights @ samples[:, leaf] - expected[leaf])
    assert np.std(of_means) < np.std(of_samples)
    roots = ~graph.any(axis=0)
    np.testing.assert_allclose(posterior.interventional_mean({})[roots], expected[roots], rtol=1e-12)


def test_an_intervention_on_a_leaf_changes_nothing_else(graphs):
    leaf = int(np.nonzero(~graphs[0].any(axis=1))[0][0])
    others = np.arange(6) != leaf
    posterior = posterior_of(graphs[:1], WavyMechanisms())
    before, after = (posterior.sample_interventional(do, 50, rng()).samples for do in ({}, {leaf: 2.0}))
    np.testing.assert_array_equal(before[:, others], after[:, others])
    assert (after[:, leaf] == 2.0).all()
    means = posterior.interventional_means([{}, {leaf: 2.0}])
    np.testing.assert_array_equal(means[0, others], means[1, others])
    assert posterior.average_causal_effect(int(np.nonzero(others)[0][0]), {leaf: 2.0})[:2] == (0, 0)


def test_every_graph_gives_equally_many_samples_that_share_its_weight(graphs, linear):
    weights = np.array([0.5, 0.2, 0.0, 0.2, 0.1])
    posterior = posterior_of(graphs, linear, weights)
    for n, per_graph in ((1, 1), (5, 1), (6, 2), (50, 10)):
        samples, by_sample = posterior.sample_interventional({0: 1.0}, n, rng())
        assert samples.shape == (5 * per_graph, 6)
        np.testing.assert_allclose(by_sample, np.repeat(weights / per_graph, per_graph))
        assert by_sample.sum() == pytest.approx(1)


def test_many_interventions_are_answered_as_each_alone(wavy):
    together = list(wavy.sample_many(INTERVENTIONS, 20, rng(3)))
    means = wavy.interventional_means(INTERVENTIONS)
    for do, answer, mean in zip(INTERVENTIONS, together, means, strict=True):
        np.testing.assert_array_equal(answer.samples, wavy.sample_interventional(do, 20, rng(3)).samples)
        np.testing.assert_array_equal(mean, wavy.interventional_mean(do))


def test_means_are_a_function_of_the_intervention_and_the_seed_of_the_fit(graphs, wavy):
    do, settings = {1: 0.5, 3: 2.0}, {"mean_samples": 100}
    first = wavy.interventional_mean(do)
    wavy.sample_interventional({2: 1.0}, 10, rng())
    wavy.average_causal_effect(2, {0: 1.0})
    np.testing.assert_array_equal(wavy.interventional_mean(do), first)
    same, other = (posterior_of(graphs, WavyMechanisms(), seed=seed, **settings) for seed in (11, 12))
    np.testing.assert_array_equal(same.interventional_mean(do), first)
    assert (other.interventional_mean(do) != first).any()


def test_samples_are_a_function_of_the_generator(wavy):
    left, again, other = (wavy.sample_interventional({1: 0.5}, 20, rng(seed)).samples for seed in (0, 0, 1))
    np.testing.assert_array_equal(left, again)
    assert (left != other).any()


def test_effects_match_a_mixture_of_linear_models_in_closed_form(graphs, linear):
    """Random numbers cancel: the effect in a linear model has no sampling error at all."""
    weights = rng().dirichlet(np.ones(len(graphs)))
    posterior = posterior_of(graphs, linear, weights, mean_samples=5)
    for do, baseline in (({0: 1.0}, {0: -0.5}), ({1: 0.5, 3: 2.0}, {3: 0.0, 1: 1.0})):
        for target in range(6):
            exact = [linear.moments(g, do)[0][target] - linear.moments(g, baseline)[0][target] for g in graphs]
            effect = posterior.average_causal_effect(target, do, baseline)
            np.testing.assert_allclose(effect.per_graph, exact, rtol=0, atol=1e-9)
            np.testing.assert_array_equal(effect.weights, weights)
            assert effect.mean == pytest.approx(weights @ exact, abs=1e-9)
            assert effect.std == pytest.approx(np.sqrt(np.cov(exact, aweights=weights, ddof=0)), abs=1e-9)


def test_no_baseline_is_no_intervention(wavy):
    effect = wavy.average_causal_effect("e", {"c": 1.0})
    means = wavy.interventional_means([{"c": 1.0}, {}])
    assert effect.mean == pytest.approx(means[0, 4] - means[1, 4])
    np.testing.assert_array_equal(effect.per_graph, wavy.average_causal_effect("e", {"c": 1.0}, {}).per_graph)


def test_variables_go_by_name_or_index(wavy):
    by_index = wavy.interventional_mean({1: 0.5, 3: 2.0})
    np.testing.assert_array_equal(wavy.interventional_mean({"b": 0.5, "d": 2.0}), by_index)
    np.testing.assert_array_equal(wavy.interventional_mean({np.int64(3): 2.0, "b": np.float32(0.5)}), by_index)
    assert wavy.average_causal_effect("f", {"b": 1.0})[:2] == wavy.average_causal_effect(5, {1: 1.0})[:2]


def test_answers_on_the_original_scale_are_those_of_the_standardised_values(wavy):
    raw, standardised = {"a": 13.0, "d": -2.0}, {0: 1.5, 3: -1.0}
    np.testing.assert_allclose(
        wavy.interventional_mean(raw, original_scale=True), SCALER.inverse(wavy.interventional_mean(standardised))
    )
    samples, weights = wavy.sample_interventional(raw, 20, rng(), original_scale=True)
    expected = wavy.sample_interventional(standardised, 20, rng())
    np.testing.assert_allclose(samples, SCALER.inverse(expected.samples))
    np.testing.assert_array_equal(weights, expected.weights)
    np.testing.assert_allclose(samples[:, [0, 3]], np.broadcast_to([13.0, -2.0], (20, 2)))
    effect = wavy.average_causal_effect("e", raw, {"a": 10.0}, original_scale=True)
    ours = wavy.average_causal_effect("e", standardised, {"a": 0.0})
    assert effect[:2] == pytest.approx((3 * ours.mean, 3 * ours.std))  # e has a standard deviation of 3
    np.testing.assert_allclose(effect.per_graph, 3 * ours.per_graph)


@pytest.mark.parametrize(
    ("do", "message"),
    [
        ({"z": 1.0}, "do: expected a variable among a, b, c, d, e, f or an index below 6, got 'z'"),
        ({6: 1.0}, "do: expected a variable among a, b, c, d, e, f or an index below 6, got 6"),
        ({-1: 1.0}, "do: expected a variable among a, b, c, d, e, f or an index below 6, got -1"),
        ({1.5: 1.0}, "do: expected a variable among a, b, c, d, e, f or an index below 6, got 1.5"),
        ({"b": 1.0, 1: 1.0}, "do: expected every variable once, got 'b' twice"),
        ({"b": float("inf")}, "do(b): expected a finite number, got inf"),
        ({"b": float("nan")}, "do(b): expected a finite number, got nan"),
        ({"b": "high"}, "do(b): expected a finite number, got 'high'"),
    ],
)
def test_interventions_that_cannot_be_are_refused(wavy, do, message):
    asked = [
        lambda: wavy.interventional_mean(do),
        lambda: wavy.sample_interventional(do, 10, rng()),
        lambda: wavy.average_causal_effect("a", do),
        lambda: wavy.average_causal_effect("a", {"c": 1.0}, do),
    ]
    for ask in asked:
        with pytest.raises(InvalidInput) as caught:
            ask()
        assert str(caught.value) == message


def test_what_makes_no_sense_is_refused(wavy):
    with pytest.raises(InvalidInput, match="do: expected at least one variable and its value, got none"):
        wavy.average_causal_effect("a", {})
    with pytest.raises(InvalidInput, match=r"target: expected a variable among a, b, c, d, e, f .*, got 'z'"):
        wavy.average_causal_effect("z", {"a": 1.0})
    with pytest.raises(InvalidInput, match="n: expected a whole number of at least 1, got 0"):
        wavy.sample_interventional({"a": 1.0}, 0, rng())


def test_the_structure_answers_for_the_graph(graphs, wavy):
    structure = wavy.structure
    assert (wavy.graph_kind, wavy.diagnostics) == ("dag", {"steps": 3})
    np.testing.assert_array_equal(wavy.edge_probabilities, structure.edge_probabilities)
    np.testing.assert_array_equal(wavy.sample_graphs(3, rng()).graphs, graphs)


def test_the_end_of_a_fit_fixes_names_scale_and_random_numbers(graphs):
    dataset = Dataset.from_raw(rng().normal(size=(20, 6)), NAMES)
    structure = GraphPosterior(graphs)
    drawn = structure.sample_graphs(5, rng())
    one, same, other = (
        GenerativePosterior.of(structure, drawn, WavyMechanisms(), dataset, rng(seed)) for seed in (0, 0, 1)
    )
    assert (one.names, one.scaler, one.query_graphs) == (NAMES, dataset.scaler, drawn)
    assert one.seed == same.seed != other.seed


def test_the_spread_of_effects_is_over_graphs_alone():
    """Copies of one graph agree, however few samples each has; a second graph without the effect adds its share."""
    rng = np.random.default_rng(0)
    cause = rng.normal(size=200)
    middle = np.sin(2 * cause) + 0.5 * rng.normal(size=200)
    raw = np.column_stack([cause, middle, middle**2 + 0.5 * rng.normal(size=200)])
    chain, empty = np.eye(3, k=1, dtype=bool), np.zeros((3, 3), dtype=bool)
    dataset = Dataset.from_raw(raw, "abc", graph=chain)
    mechanisms = fit_gp_mechanisms(dataset, [chain, empty])

    def effects(graphs):
        weighted = WeightedGraphs(np.stack(graphs), np.full(len(graphs), 1 / len(graphs)))
        structure = GraphPosterior(*weighted)
        posterior = GenerativePosterior.of(structure, weighted, mechanisms, dataset, np.random.default_rng(1))
        return posterior.average_causal_effect("c", {"a": 1.0}), effect_matrix(posterior)

    effect, matrix = effects([chain] * 1000)
    assert effect.std < 1e-6
    assert matrix.std.max() < 1e-6
    mixed, mixed_matrix = effects([chain] * 500 + [empty] * 500)
    assert mixed.std == pytest.approx(abs(effect.mean) / 2, rel=0.2)
    assert mixed_matrix.std[0, 2] == pytest.approx(abs(matrix.mean[0, 2]) / 2, rel=0.2)
