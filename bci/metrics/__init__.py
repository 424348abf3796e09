"""How good a posterior is, given the truth: every metric by name, and their evaluation together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from bci.cpdag import dag_to_cpdag
from bci.dataset import Bools, Dataset
from bci.errors import InvalidInput
from bci.metrics import adjustment, edges
from bci.metrics.sampled import NUM_GRAPHS, SampledPosterior
from bci.metrics.undefined import Metric, Undefined
from bci.posterior import Posterior

__all__ = ["METRICS", "NUM_GRAPHS", "STRUCTURE", "Metric", "Undefined", "check_request", "evaluate"]

NO_TRUTH = Undefined("no ground truth")

AgainstTruth = Callable[[Bools, SampledPosterior], "float | Undefined"]
StructureMetric = Callable[["Bools | None", SampledPosterior], "float | Undefined"]

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
) -> dict[str, float | Undefined]:
    """The named metrics, in that order; graphs are drawn once and serve them all.

    Args:
        names: keys of `METRICS`.
        num_graphs: graphs drawn for the metrics that average over graphs; a finite posterior returns all it has.

    Raises:
        InvalidInput: as `check_request`.
    """
    check_request(names, num_graphs)
    sample = SampledPosterior(posterior, rng, num_graphs)
    return {name: STRUCTURE[name](dataset.graph, sample) for name in names}


def check_request(names: Sequence[str], num_graphs: int = NUM_GRAPHS) -> None:
    """For callers that want to know before a fit.

    Raises:
        InvalidInput: no names, an unknown name, or `num_graphs` below 1.
    """
    if not names:
        raise InvalidInput("metrics.names: expected at least one name, got none; name some or leave the key out")
    unknown = [name for name in names if name not in METRICS]
    if unknown:
        raise InvalidInput(f"metrics.names: expected names among {', '.join(METRICS)}, got {unknown[0]!r}; correct it")
    if num_graphs < 1:
        raise InvalidInput(f"metrics.num_graphs: expected at least 1, got {num_graphs}; raise it")


def _between_graphs(metric: AgainstTruth) -> StructureMetric:
    """Compare the posterior's graphs with the true graph."""

    def compare(truth: Bools | None, sample: SampledPosterior) -> float | Undefined:
        return NO_TRUTH if truth is None else metric(truth, sample)

    return compare


def _between_classes(metric: AgainstTruth) -> StructureMetric:
    """Compare the CPDAGs of the posterior's graphs with the CPDAG of the truth."""

    def compare(truth: Bools | None, sample: SampledPosterior) -> float | Undefined:
        if truth is None:
            return NO_TRUTH
        classes = sample.classes
        return classes if isinstance(classes, Undefined) else metric(dag_to_cpdag(truth), classes)

    return compare


def _num_edges(_: Bools | None, sample: SampledPosterior) -> float | Undefined:
    return edges.num_edges(sample)


def _standalone(metric: StructureMetric) -> Metric:
    """The metric as a function of posterior, data set and generator, drawing `NUM_GRAPHS` graphs of its own."""

    def measure(posterior: Posterior, dataset: Dataset, rng: np.random.Generator) -> float | Undefined:
        return metric(dataset.graph, SampledPosterior(posterior, rng))

    return measure


STRUCTURE: dict[str, StructureMetric] = {
    "num_edges": _num_edges,
    **{name: _between_graphs(metric) for name, metric in _AGAINST_TRUTH.items()},
    **{f"{name}_cpdag": _between_classes(metric) for name, metric in _AGAINST_TRUTH.items()},
}

METRICS: dict[str, Metric] = {name: _standalone(metric) for name, metric in STRUCTURE.items()}
