"""Adjustment identification distances: how many causal effects the graph would get wrong.

For every ordered pair (t, y) a graph says how to identify the effect of t on y: that there is none, that it cannot be
identified by adjustment, or by adjusting for a set. The distance is the share of the d (d - 1) pairs for which that is
wrong in the true graph (Henckel, Wuertzen & Weichwald 2024, "Adjustment identification distance"). The set is the
parents of t (`p_aid`; for DAGs the structural intervention distance), its ancestors (`a_aid`) or the optimal
adjustment set (`oset_aid`). Averaged over the sampled graphs. Undefined if one of them has a cycle, or is a partially
directed graph that is not a CPDAG: then it does not say what its effects are.
"""

from __future__ import annotations

from collections.abc import Callable

import gadjid
import numpy as np
from numpy.typing import NDArray

from bci.dataset import Bools
from bci.metrics.sampled import SampledPosterior
from bci.metrics.undefined import Undefined


def p_aid(truth: Bools, sample: SampledPosterior) -> float | Undefined:
    """Mean parent-adjustment distance, in [0, 1]; `truth` a DAG or a CPDAG."""
    return _mean_distance(gadjid.parent_aid, truth, sample)


def a_aid(truth: Bools, sample: SampledPosterior) -> float | Undefined:
    """Mean ancestor-adjustment distance, in [0, 1]; `truth` a DAG or a CPDAG."""
    return _mean_distance(gadjid.ancestor_aid, truth, sample)


def oset_aid(truth: Bools, sample: SampledPosterior) -> float | Undefined:
    """Mean optimal-adjustment distance, in [0, 1]; `truth` a DAG or a CPDAG."""
    return _mean_distance(gadjid.oset_aid, truth, sample)


def _mean_distance(
    distance: Callable[..., tuple[float, int]], truth: Bools, sample: SampledPosterior
) -> float | Undefined:
    if sample.defect is not None:
        return sample.defect
    graphs, weights = sample.graphs
    coded_truth = _code(truth)
    try:
        distances = [distance(coded_truth, graph, edge_direction="from row to column")[0] for graph in _code(graphs)]
    except BaseException as error:
        # A panic in Rust arrives as pyo3_runtime.PanicException: no Exception, and nowhere to import it from.
        if type(error).__name__ != "PanicException":
            raise
        return Undefined(f"gadjid refused a graph: {error}")
    return float(weights @ np.array(distances))


def _code(graphs: Bools) -> NDArray[np.int8]:
    """gadjid's code (..., d, d): 1 at [i, j] for i -> j, 2 for an undirected edge."""
    undirected = graphs & graphs.mT
    return np.ascontiguousarray(graphs.astype(np.int8) + undirected)
