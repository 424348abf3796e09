"""How good a posterior is, given the truth: every metric by name, and their evaluation together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bci.cpdag import dag_to_cpdag
from bci.dataset import Bools, Dataset
from bci.errors import InvalidInput
from bci.metrics import adjustment, edges, interventional
from bci.metrics.interventional import NUM_SAMPLES, InterventionalComparison
from bci.metrics.sampled import NUM_GRAPHS, SampledPosterior
from bci.metrics.undefined import Metric, Undefined
from bci.posterior import Posterior

__all__ = [
    "INTERVENTIONAL",
    "METRICS",
    "NUM_GRAPHS",
    "NUM_SAMPLES",
    "STRUCTURE",
    "Metric",
    "Undefined",
    "check_request",
    "evaluate",
]

NO_TRUTH = Undefined("no ground truth")

AgainstTruth = Callable[[Bools, SampledPosterior], "float | Undefined"]


@dataclass(frozen=True, eq=False)
class _Evaluation:
    """What metrics look at; what several of them need is drawn once, whichever of them asks first."""

    posterior: Posterior
    dataset: Dataset
    rng: np.random.Generator
    num_graphs: int = NUM_GRAPHS
    num_samples: int = NUM_SAMPLES

    @cached_property
    def sample(self) -> SampledPosterior:
        return SampledPosterior(self.posterior, self.rng, self.num_graphs)

    @cached_property
    def comparison(self) -> InterventionalComparison | Undefined:
        rng = self.rng.spawn(1)[0]  # so that neither kind of metric moves the random numbers of the other
        return interventional.compare(self.posterior, self.dataset, rng, self.num_samples)


_Evaluated = Callable[[_Evaluation], "float | Undefined"]

_AGAINST_TRUTH: dict[str, AgainstTruth] = {
    "eshd": edges.eshd,
    "shd_skeletonwise": edges.shd_skeletonwise,
    "tpr": edges.tpr,
    "tnr": edges.tnr,
    "auroc": edges.auroc,
    "auprc": edges.auprc,
    "average_precision": edges.average_precision,
    "a_aid": adjustment.a_aid,
    "p_aid": adjustment.p_aid,
    "oset_aid": adjustment.oset_aid,
}


def evaluate(
    posterior: Posterior,
    dataset: Dataset,
    *,
    names: Sequence[str],
    rng: np.random.Generator,
    num_graphs: int = NUM_GRAPHS,
    num_samples: int = NUM_SAMPLES,
) -> dict[str, float | Undefined]:
    """The named metrics, in that order; graphs and interventional means are computed once and serve them all.

    Args:
        names: keys of `METRICS`.
        num_graphs: graphs drawn for the metrics that average over graphs; a finite posterior returns all it has.
        num_samples: posterior samples of every test intervention.

    Raises:
        InvalidInput: as `check_request`.
    """
    check_request(names, num_graphs, num_samples)
    evaluation = _Evaluation(posterior, dataset, rng, num_graphs, num_samples)
    return {name: _REGISTRY[name](evaluation) for name in names}


def check_request(names: Sequence[str], num_graphs: int = NUM_GRAPHS, num_samples: int = NUM_SAMPLES) -> None:
    """For callers that want to know before a fit.

    Raises:
        InvalidInput: no names, an unknown name, or `num_graphs` or `num_samples` below 1.
    """
    if not names:
        raise InvalidInput("metrics.names: expected at least one name, got none; name some or leave the key out")
    unknown = [name for name in names if name not in METRICS]
    if unknown:
        raise InvalidInput(f"metrics.names: expected names among {', '.join(METRICS)}, got {unknown[0]!r}; correct it")
    for key, count in (("num_graphs", num_graphs), ("num_samples", num_samples)):
        if count < 1:
            raise InvalidInput(f"metrics.{key}: expected at least 1, got {count}; raise it")


def _between_graphs(metric: AgainstTruth) -> _Evaluated:
    """Compare the posterior's graphs with the true graph."""

    def measure(evaluation: _Evaluation) -> float | Undefined:
        truth = evaluation.dataset.graph
        return NO_TRUTH if truth is None else metric(truth, evaluation.sample)

    return measure


def _between_classes(metric: AgainstTruth) -> _Evaluated:
    """Compare the CPDAGs of the posterior's graphs with the CPDAG of the truth."""

    def measure(evaluation: _Evaluation) -> float | Undefined:
        truth = evaluation.dataset.graph
        if truth is None:
            return NO_TRUTH
        classes = evaluation.sample.classes
        return classes if isinstance(classes, Undefined) else metric(dag_to_cpdag(truth), classes)

    return measure


def _num_edges(evaluation: _Evaluation) -> float | Undefined:
    return edges.num_edges(evaluation.sample)


def _of_interventions(metric: Callable[[InterventionalComparison], float | Undefined]) -> _Evaluated:
    """Compare interventional distributions with the true ones."""

    def measure(evaluation: _Evaluation) -> float | Undefined:
        comparison = evaluation.comparison
        return comparison if isinstance(comparison, Undefined) else metric(comparison)

    return measure


def _standalone(evaluated: _Evaluated) -> Metric:
    """The metric as a function of posterior, data set and generator, with draws of its own."""

    def measure(posterior: Posterior, dataset: Dataset, rng: np.random.Generator) -> float | Undefined:
        return evaluated(_Evaluation(posterior, dataset, rng))

    return measure


_STRUCTURE: dict[str, _Evaluated] = {
    "num_edges": _num_edges,
    **{name: _between_graphs(metric) for name, metric in _AGAINST_TRUTH.items()},
    **{f"{name}_cpdag": _between_classes(metric) for name, metric in _AGAINST_TRUTH.items()},
}
_INTERVENTIONAL: dict[str, _Evaluated] = {
    "mmd": _of_interventions(interventional.mmd),
    "l1": _of_interventions(interventional.l1),
    "l2": _of_interventions(interventional.l2),
}
_REGISTRY = _STRUCTURE | _INTERVENTIONAL

STRUCTURE: tuple[str, ...] = tuple(_STRUCTURE)
INTERVENTIONAL: tuple[str, ...] = tuple(_INTERVENTIONAL)
METRICS: dict[str, Metric] = {name: _standalone(evaluated) for name, evaluated in _REGISTRY.items()}
