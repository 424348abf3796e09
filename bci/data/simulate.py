"""Simulated data sets: a random graph, random mechanisms, observations, and interventions for training and test."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from threadpoolctl import threadpool_limits

from bci.dataset import Bools, Dataset, Floats, InterventionalSample, Scaler
from bci.errors import InvalidInput
from bci.mechanisms import NOISE_VARIANCE_PRIOR, GammaPrior
from bci.random_graphs import erdos_renyi, scale_free
from bci.randomness import stream
from bci.scm import AdditiveNoiseModel, MechanismKind, SigmoidSigns, draw_scm
from bci.settings import check_choice, check_count, check_number, settings_from

GRAPH_MODELS = {"er": erdos_renyi, "sf": scale_free}


@dataclass(frozen=True)
class TrainingInterventions:
    """Rows added to the observational ones, under do() on one random node after the other.

    Args:
        num_targets: how many distinct nodes are intervened on.
        samples_per_target: rows for each.
        value: what the node is set to, in standard deviations from its mean over the observational rows.
    """

    num_targets: int = 0
    samples_per_target: int = 10
    value: float = 2.0

    def __post_init__(self) -> None:
        check_count("interventions.num_targets", self.num_targets, 0)
        check_count("interventions.samples_per_target", self.samples_per_target, 1)
        check_number("interventions.value", self.value)


@dataclass(frozen=True)
class InterventionalTest:
    """How many values every node is set to, one node at a time, and how many samples are drawn for each."""

    values_per_node: int = 5
    num_samples: int = 1000

    def __post_init__(self) -> None:
        check_count("interventional_test.values_per_node", self.values_per_node, 0)
        check_count("interventional_test.num_samples", self.num_samples, 1)


def simulated_dataset(
    *,
    graph_model: str,
    num_nodes: int,
    expected_degree: float,
    mechanism: str,
    num_samples: int,
    seed: int,
    noise_variance: Mapping[str, float] | float | None = None,
    sigmoid_signs: str = "per_parent",
    interventions: Mapping[str, Any] | None = None,
    interventional_test: Mapping[str, Any] | None = None,
) -> Dataset:
    """A data set from a random graph, with variables X0 .. X{d-1} in random order.

    The graph, the mechanisms, the observations, the training interventions and the test interventions have
    independent streams of `seed`: `num_samples` changes neither the graph nor the mechanisms.

    Args:
        graph_model: "er" (Erdos-Renyi) or "sf" (scale-free), see `bci.random_graphs`.
        num_nodes: d.
        expected_degree: expected edges per node.
        mechanism: "gp", "sigmoid" or "linear", see `bci.mechanisms`.
        num_samples: observational rows.
        seed: the data seed.
        noise_variance: of nodes with parents; `{shape, rate}` of a gamma prior, or one value; Gamma(50, 50) if None.
        sigmoid_signs: "per_parent" or "per_node", see `bci.mechanisms.draw_sigmoid`.
        interventions: keys of `TrainingInterventions`; none if None.
        interventional_test: keys of `InterventionalTest`; no test interventions if None.

    Raises:
        InvalidInput: a setting that cannot be.
    """
    check_choice("graph_model", graph_model, list(GRAPH_MODELS))
    check_count("num_nodes", num_nodes, 2)
    check_number("expected_degree", expected_degree)
    graph = GRAPH_MODELS[graph_model](num_nodes, expected_degree, stream(seed, "graph"))
    return dataset_on_graph(
        graph,
        [f"X{node}" for node in range(num_nodes)],
        mechanism=mechanism,
        num_samples=num_samples,
        seed=seed,
        noise_variance=noise_variance,
        sigmoid_signs=sigmoid_signs,
        interventions=interventions,
        interventional_test=interventional_test,
    )


def dataset_on_graph(
    graph: Bools,
    names: Sequence[str],
    *,
    mechanism: str,
    num_samples: int,
    seed: int,
    noise_variance: Mapping[str, float] | float | None,
    sigmoid_signs: str,
    interventions: Mapping[str, Any] | None,
    interventional_test: Mapping[str, Any] | None,
) -> Dataset:
    """As `simulated_dataset`, on a given graph (d, d); only the random stream for the graph is left unused."""
    kind: MechanismKind = check_choice("mechanism", mechanism, get_args(MechanismKind))
    signs: SigmoidSigns = check_choice("sigmoid_signs", sigmoid_signs, get_args(SigmoidSigns))
    check_count("num_samples", num_samples, 2)
    noise = _noise_variance(noise_variance)
    training = settings_from(TrainingInterventions, "interventions", interventions or {})
    if training.num_targets > len(names):
        raise InvalidInput(
            f"interventions.num_targets: expected at most {len(names)}, the number of nodes, got {training.num_targets}"
        )
    with threadpool_limits(1):  # the last bits of a matrix product depend on the number of threads
        scm = draw_scm(graph, kind, stream(seed, "mechanisms"), noise_variance=noise, sigmoid_signs=signs)
        observational = scm.sample(num_samples, stream(seed, "observations"))
        interventional, mask = _training_rows(scm, Scaler.fit(observational), training, stream(seed, "interventions"))
    return Dataset.from_raw(
        np.concatenate([observational, interventional]),
        names,
        intervened=np.concatenate([np.zeros(observational.shape, dtype=bool), mask]),
        graph=graph,
        scm=scm,
        draw_interventional_test=None
        if interventional_test is None
        else _test_sampler(scm, settings_from(InterventionalTest, "interventional_test", interventional_test), seed),
    )


def _noise_variance(setting: Mapping[str, float] | float | None) -> GammaPrior | float:
    if setting is None:
        return NOISE_VARIANCE_PRIOR
    if isinstance(setting, Mapping):
        prior = settings_from(GammaPrior, "noise_variance", setting)
        check_number("noise_variance.shape", prior.shape, positive=True)
        check_number("noise_variance.rate", prior.rate, positive=True)
        return prior
    check_number("noise_variance", setting, positive=True)
    return float(setting)


def _training_rows(
    scm: AdditiveNoiseModel, scaler: Scaler, settings: TrainingInterventions, rng: np.random.Generator
) -> tuple[Floats, Bools]:
    """Raw interventional rows (n, d) and their mask (n, d), n = num_targets * samples_per_target."""
    num_nodes = scm.graph.shape[0]
    targets = rng.choice(num_nodes, size=settings.num_targets, replace=False)
    values = scaler.inverse(np.full(num_nodes, settings.value))
    rows = [scm.sample(settings.samples_per_target, rng, do={int(node): float(values[node])}) for node in targets]
    mask = np.repeat(targets, settings.samples_per_target)[:, None] == np.arange(num_nodes)
    return np.concatenate([np.empty((0, num_nodes)), *rows]), mask


def _test_sampler(
    scm: AdditiveNoiseModel, settings: InterventionalTest, seed: int
) -> Callable[[Scaler], list[InterventionalSample]]:
    def draw(scaler: Scaler) -> list[InterventionalSample]:
        rng = stream(seed, "test interventions")  # made here, so that every call gives the same samples
        values = rng.uniform(-1.0, 1.0, size=(scm.graph.shape[0], settings.values_per_node))
        with threadpool_limits(1):
            return [
                _test_intervention(scm, scaler, node, float(value), settings.num_samples, rng)
                for node, row in enumerate(values)
                for value in row
            ]

    return draw


def _test_intervention(
    scm: AdditiveNoiseModel, scaler: Scaler, node: int, value: float, num_samples: int, rng: np.random.Generator
) -> InterventionalSample:
    """`value` and the samples are standardised by `scaler`."""
    raw_value = float(value * scaler.std[node] + scaler.mean[node])
    samples = scaler.transform(scm.sample(num_samples, rng, do={node: raw_value}))
    samples[:, node] = value  # not the value up to rounding
    return InterventionalSample((node,), (value,), samples)
