"""Distances of interventional distributions, against naive loops and known distributions."""

import numpy as np
import pytest

from bci.causal_posterior import CausalPosterior, GenerativePosterior, WeightedSamples
from bci.dataset import Dataset, InterventionalSample, Scaler
from bci.metrics import INTERVENTIONAL, METRICS, STRUCTURE, Undefined, evaluate, interventional
from bci.metrics.interventional import squared_mmd
from bci.posterior import GraphPosterior

GRAPHS = np.eye(3, k=1, dtype=bool)[None].repeat(4, axis=0)
NAMES = ["x0", "x1", "x2"]


def rng(seed=0):
    return np.random.default_rng(seed)


def kernel(one, other):
    return 1000 * np.exp(-sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) / (2 * 0.2))


def naive_mmd(x, w, y):
    own = sum(w[i] * w[j] * kernel(x[i], x[j]) for i in range(len(x)) for j in range(len(x)) if i != j)
    true = np.mean([kernel(y[i], y[j]) for i in range(len(y)) for j in range(len(y)) if i != j])
    mixed = sum(w[i] * kernel(x[i], y[j]) for i in range(len(x)) for j in range(len(y))) / len(y)
    return own / (1 - sum(w**2)) + true - 2 * mixed


def example(n, m, seed=0, centre=0.0):
    generator = rng(seed)
    x, y = generator.normal(size=(n, 3)) * 0.4 + centre, generator.normal(size=(m, 3)) * 0.5 + centre
    return x, generator.dirichlet(np.ones(n)), y


@pytest.mark.parametrize("block", [512, 16, 7])
@pytest.mark.parametrize(("n", "m"), [(61, 40), (32, 16), (2, 2), (5, 90)])
def test_blocks_give_the_double_loop(monkeypatch, n, m, block):
    monkeypatch.setattr(interventional, "_BLOCK", block)
    x, w, y = example(n, m)
    assert squared_mmd(x, w, y) == pytest.approx(naive_mmd(x, w, y), rel=1e-10, abs=1e-10)


def test_samples_far_from_the_origin_keep_their_digits():
    x, w, y = example(50, 40, centre=1000.0)
    assert squared_mmd(x, w, y) == pytest.approx(naive_mmd(x, w, y), rel=1e-9)


def test_samples_far_from_the_truth_have_nothing_in_common_with_it():
    x, w, y = example(30, 20)
    alone = naive_mmd(x + 200, w, y)  # the mixed term is zero
    assert squared_mmd(x + 200, w, y) == pytest.approx(alone, rel=1e-9)
    assert np.isfinite(squared_mmd(np.array([[1e8, 0, 0], [0, 0, 0]]), np.array([0.5, 0.5]), y))


def test_equal_distributions_are_at_distance_zero_on_average():
    """Unbiased also with weights: x from N(0, 2) weighted towards the N(0, 1) of y."""
    values = {"plain": [], "weighted": [], "wrongly unweighted": []}
    for seed in range(200):
        generator = rng(seed)
        x, y = generator.normal(size=(60, 2)), generator.normal(size=(50, 2))
        values["plain"].append(squared_mmd(x, np.full(60, 1 / 60), y))
        independent = generator.dirichlet(np.ones(60))
        values["weighted"].append(squared_mmd(x, independent, y))
        wide = np.sqrt(2) * x
        values["wrongly unweighted"].append(squared_mmd(wide, np.full(60, 1 / 60), y))
    for name, sample in values.items():
        error = np.std(sample) / np.sqrt(len(sample))
        if name == "wrongly unweighted":
            assert np.mean(sample) > 5 * error
        else:
            assert abs(np.mean(sample)) < 4 * error
            assert min(sample) < 0


def test_a_sample_of_weight_zero_is_no_sample():
    x, w, y = example(20, 30)
    assert squared_mmd(np.vstack([x, x[:1]]), np.append(w, 0.0), y) == squared_mmd(x, w, y)


def test_one_sample_is_too_few():
    x, _, y = example(3, 4)
    assert squared_mmd(x, np.array([1.0, 0, 0]), y) == Undefined("fewer than two samples")
    assert squared_mmd(x, np.full(3, 1 / 3), y[:1]) == Undefined("fewer than two samples")


class Told(GenerativePosterior):
    """A posterior whose means and samples are given by functions of do."""

    def __init__(self, mean_of, scale=0.4):
        structure = GraphPosterior(GRAPHS)
        super().__init__(
            structure, structure.sample_graphs(1, rng()), tuple(NAMES), Scaler(np.zeros(3), np.ones(3)), None, 0
        )
        object.__setattr__(self, "mean_of", mean_of)
        object.__setattr__(self, "scale", scale)
        object.__setattr__(self, "asked", [])

    def _graph_means(self, interventions):
        return np.array([[self.mean_of(do)] * len(GRAPHS) for do in interventions])

    def sample_many(self, interventions, n, rng, *, original_scale=False):
        assert not original_scale
        for do in interventions:
            self.asked.append(n)
            yield WeightedSamples(rng.normal(self.mean_of(do), self.scale, (n, 3)), rng.dirichlet(np.ones(n)))


class MeansOnly(CausalPosterior):
    """Cannot be sampled from."""

    def _graph_means(self, interventions):
        return np.zeros((len(interventions), len(GRAPHS), 3))


def means_only():
    structure = GraphPosterior(GRAPHS)
    return MeansOnly(structure, structure.sample_graphs(1, rng()), tuple(NAMES), Scaler(np.zeros(3), np.ones(3)))


def truth_of(do):
    return np.array([sum(do.values()), 2 * do.get(0, 0), -do.get(2, 0)])


TESTS = [
    InterventionalSample(targets, values, truth_of(dict(zip(targets, values, strict=True))) + 0.4 * offsets)
    for targets, values, offsets in (
        ((0,), (0.5,), rng(1).normal(size=(40, 3))),
        ((1,), (-0.3,), rng(2).normal(size=(40, 3))),
        ((0, 2), (0.2, 0.9), rng(3).normal(size=(40, 3))),
    )
]


def dataset_with_tests(tests=TESTS):
    return Dataset.from_raw(
        rng().normal(size=(10, 3)), NAMES, graph=GRAPHS[0], draw_interventional_test=lambda _: tests
    )


def value(name, posterior, dataset=None, seed=0, **settings):
    dataset = dataset_with_tests() if dataset is None else dataset
    return evaluate(posterior, dataset, names=[name], rng=rng(seed), **settings)[name]


def test_distances_of_means_are_averages_over_interventions():
    posterior = Told(lambda do: truth_of(do) + np.array([0.3, -0.4, 1.2]))
    differences = [
        posterior.mean_of(dict(zip(test.targets, test.values, strict=True))) - test.samples.mean(axis=0)
        for test in TESTS
    ]
    assert value("l1", posterior) == pytest.approx(np.mean([sum(abs(d)) for d in differences]))
    assert value("l2", posterior) == pytest.approx(np.mean([sum(d**2) ** 0.5 for d in differences]))
    assert value("l1", posterior) == pytest.approx(1.9, abs=0.3)
    assert value("l2", posterior) == pytest.approx(1.3, abs=0.3)


def test_mmd_is_the_average_over_interventions():
    posterior = Told(truth_of)
    generator = rng(5).spawn(1)[0]
    interventions = [dict(zip(test.targets, test.values, strict=True)) for test in TESTS]
    drawn = posterior.sample_many(interventions, 25, generator)
    expected = [naive_mmd(*samples, test.samples) for samples, test in zip(drawn, TESTS, strict=True)]
    assert value("mmd", posterior, seed=5, num_samples=25) == pytest.approx(np.mean(expected), rel=1e-10)


def test_the_true_distribution_is_closer_than_a_wrong_one():
    right, shifted = Told(truth_of), Told(lambda do: truth_of(do) + 0.5)
    deaf, narrow = Told(lambda _: np.zeros(3)), Told(truth_of, scale=0.2)
    for name in ("mmd", "l1", "l2"):
        assert value(name, right, num_samples=500) < value(name, shifted, num_samples=500)
        assert value(name, right, num_samples=500) < value(name, deaf, num_samples=500)
    assert value("mmd", right, num_samples=500) < value("mmd", narrow, num_samples=500)


def test_the_number_of_samples_is_that_asked_for():
    posterior = Told(truth_of)
    value("mmd", posterior, num_samples=12)
    assert posterior.asked == [12] * 3


def test_each_metric_alone_has_the_value_it_has_among_all():
    posterior = Told(truth_of)
    together = evaluate(
        posterior, dataset_with_tests(), names=[*STRUCTURE, *INTERVENTIONAL], rng=rng(3), num_samples=20
    )
    backwards = evaluate(posterior, dataset_with_tests(), names=list(together)[::-1], rng=rng(3), num_samples=20)
    assert together == backwards
    for name in together:
        assert value(name, posterior, seed=3, num_samples=20) == together[name]
    assert METRICS["l1"](posterior, dataset_with_tests(), rng(3)) == together["l1"]


def test_without_test_interventions_there_is_no_value():
    reason = Undefined("no test interventions")
    for dataset in (dataset_with_tests([]), Dataset.from_raw(rng().normal(size=(10, 3)), NAMES)):
        assert {value(name, Told(truth_of), dataset) for name in INTERVENTIONAL} == {reason}


def test_a_method_without_queries_has_no_value():
    values = {value(name, GraphPosterior(GRAPHS)) for name in INTERVENTIONAL}
    assert values == {Undefined("the method answers no causal queries")}


def test_a_method_with_means_only_has_no_mmd():
    assert value("mmd", means_only()) == Undefined("the method has interventional means only")
    assert value("l1", means_only()) > 0
    assert value("l2", means_only()) > 0


def test_test_interventions_are_drawn_for_metrics_that_need_them_alone():
    def refuse(_):
        raise AssertionError("test interventions were drawn")

    dataset = Dataset.from_raw(rng().normal(size=(10, 3)), NAMES, graph=GRAPHS[0], draw_interventional_test=refuse)
    assert value("eshd", Told(truth_of), dataset) == 0
    assert value("mmd", GraphPosterior(GRAPHS), dataset) == Undefined("the method answers no causal queries")


def test_one_sample_with_all_the_weight_has_no_mmd():
    points = np.random.default_rng(0).normal(size=(5, 2))
    assert isinstance(squared_mmd(points[:2], np.array([1.0, 1e-20]), points), Undefined)
