"""A posterior in which edges are independent of each other, all along one order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bci.dataset import Floats
from bci.posterior import GraphKind, Posterior, WeightedGraphs


@dataclass(frozen=True, eq=False)
class IndependentEdges(Posterior):
    """DAGs whose edges are independent.

    Args:
        probabilities: (d, d), `[i, j]` the probability of i -> j; those above zero form a DAG.
    """

    probabilities: Floats
    graph_kind: GraphKind = "dag"
    diagnostics: Mapping[str, Any] = field(default_factory=dict)

    @property
    def edge_probabilities(self) -> Floats:
        return self.probabilities

    def sample_graphs(self, n: int, rng: np.random.Generator) -> WeightedGraphs:
        graphs = rng.random((n, *self.probabilities.shape)) < self.probabilities
        return WeightedGraphs(graphs, np.full(n, 1 / n))
