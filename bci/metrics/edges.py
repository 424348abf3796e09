"""Structure metrics that compare edge by edge.

With A the truth and P the probabilities of the entries, both (d, d) and taken off the diagonal. A truth that is a
CPDAG, and graphs that are CPDAGs, code an undirected edge by both entries.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import auc, average_precision_score, precision_recall_curve, roc_auc_score

from bci.dataset import Bools, Floats
from bci.metrics.sampled import SampledPosterior
from bci.metrics.undefined import Undefined

NO_EDGE = Undefined("the true graph has no edge")
EVERY_EDGE = Undefined("the true graph has every edge")
NOT_EXCLUSIVE = Undefined("i -> j and j -> i have probabilities that sum to more than one")


def eshd(truth: Bools, sample: SampledPosterior) -> float | Undefined:
    """Expected structural Hamming distance, `sum |A - P|`: a reversed edge costs 2, a directed for an undirected 1."""
    actual, predicted = _entries(truth, sample)
    return float(np.abs(actual - predicted).sum())


def shd_skeletonwise(truth: Bools, sample: SampledPosterior) -> float | Undefined:
    """Expected number of node pairs joined otherwise than in the truth: a reversed edge costs 1.

    Exact for DAGs, where i -> j and j -> i exclude each other; over the sampled graphs for CPDAGs.
    Undefined for a DAG posterior whose edge probabilities violate that.
    """
    if sample.graph_kind == "cpdag":
        graphs, weights = sample.graphs
        differs = graphs != truth
        return float(weights @ _upper(differs | differs.mT).sum(axis=1))
    probabilities = sample.edge_probabilities
    if (probabilities + probabilities.T).max() > 1 + 1e-9:
        return NOT_EXCLUSIVE
    absent = ~(truth | truth.T)
    return float(_upper(absent * (probabilities + probabilities.T)).sum() + (truth * (1 - probabilities)).sum())


def num_edges(sample: SampledPosterior) -> float | Undefined:
    """Expected number of edges: `sum P` for DAGs; the joined pairs of the sampled graphs for CPDAGs, so that an
    undirected edge counts once."""
    if sample.graph_kind == "cpdag":
        graphs, weights = sample.graphs
        return float(weights @ _upper(graphs | graphs.mT).sum(axis=1))
    return float(sample.edge_probabilities.sum())


def tpr(truth: Bools, sample: SampledPosterior) -> float | Undefined:
    """Expected true positive rate, `sum A P / sum A`; undefined for a truth without an edge."""
    actual, predicted = _entries(truth, sample)
    return float(predicted[actual].mean()) if actual.any() else NO_EDGE


def tnr(truth: Bools, sample: SampledPosterior) -> float | Undefined:
    """Expected true negative rate, `sum (1 - A)(1 - P) / sum (1 - A)`; undefined for a truth with every entry."""
    actual, predicted = _entries(truth, sample)
    return float(1 - predicted[~actual].mean()) if not actual.all() else EVERY_EDGE


def auroc(truth: Bools, sample: SampledPosterior) -> float | Undefined:
    """Area under the ROC curve of the entries ranked by P; undefined for a truth with no or with every entry."""
    actual, predicted = _ranked(truth, sample)
    if not actual.any():
        return NO_EDGE
    return float(roc_auc_score(actual, predicted)) if not actual.all() else EVERY_EDGE


def auprc(truth: Bools, sample: SampledPosterior) -> float | Undefined:
    """Trapezoid under the precision-recall curve of the entries ranked by P; undefined for a truth without an edge."""
    actual, predicted = _ranked(truth, sample)
    if not actual.any():
        return NO_EDGE
    precision, recall, _ = precision_recall_curve(actual, predicted)
    return float(auc(recall, precision))


def average_precision(truth: Bools, sample: SampledPosterior) -> float | Undefined:
    """Step-wise area under the same curve, without interpolation; undefined for a truth without an edge."""
    actual, predicted = _ranked(truth, sample)
    return float(average_precision_score(actual, predicted)) if actual.any() else NO_EDGE


def _entries(truth: Bools, sample: SampledPosterior) -> tuple[Bools, Floats]:
    """A and P off the diagonal, each (d (d - 1),)."""
    off_diagonal = ~np.eye(len(truth), dtype=bool)
    return truth[off_diagonal], sample.edge_probabilities[off_diagonal]


def _ranked(truth: Bools, sample: SampledPosterior) -> tuple[Bools, Floats]:
    """As `_entries`, with P to 12 decimals, so that rounding errors do not break ties."""
    actual, predicted = _entries(truth, sample)
    return actual, predicted.round(12)


def _upper(matrices: NDArray[Any]) -> NDArray[Any]:
    """(..., d, d) -> (..., d (d - 1) / 2), one value for every pair of nodes."""
    return matrices[(..., *np.triu_indices(matrices.shape[-1], 1))]
