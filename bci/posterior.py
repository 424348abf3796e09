"""What a fitted method returns: a distribution over graphs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from bci.dataset import Bools, Floats

GraphKind = Literal["dag", "cpdag"]


class WeightedGraphs(NamedTuple):
    """Graphs (n, d, d), row causes column, with weights (n,) that sum to one."""

    graphs: Bools
    weights: Floats


class Posterior(ABC):
    """A distribution over graphs on d nodes.

    `graph_kind` "cpdag" codes an undirected edge by both entries. `diagnostics` holds what the fit wants to
    report: numbers, or lists of numbers for curves.
    """

    graph_kind: GraphKind
    diagnostics: Mapping[str, Any]

    @property
    @abstractmethod
    def edge_probabilities(self) -> Floats:
        """(d, d), `[i, j]` the posterior probability that i -> j is in the graph; zero diagonal."""

    @abstractmethod
    def sample_graphs(self, n: int, rng: np.random.Generator) -> WeightedGraphs:
        """`n` graphs with weights; a finite posterior may return all its graphs instead."""

    def expectation(self, function: Callable[[Bools], float | Floats], n: int, rng: np.random.Generator) -> Floats:
        """Estimate of `E[function(graph) | D]` from `n` graphs, for a number or array from a (d, d) adjacency."""
        graphs, weights = self.sample_graphs(n, rng)
        values = np.stack([np.asarray(function(graph), dtype=np.float64) for graph in graphs])
        mean: Floats = np.einsum("n,n...->...", weights, values)
        return mean


@dataclass(frozen=True, eq=False)
class GraphPosterior(Posterior):
    """Finitely many weighted graphs; a point estimate is the case of one.

    Args:
        graphs: (n, d, d) adjacency matrices, row causes column.
        weights: (n,) non-negative, summing to one; uniform if None.
    """

    graphs: Bools
    weights: Floats | None = None
    graph_kind: GraphKind = "dag"
    diagnostics: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        graphs = np.asarray(self.graphs, dtype=bool)
        if (
            graphs.ndim != 3
            or not len(graphs)
            or graphs.shape[1] != graphs.shape[2]
            or graphs.diagonal(axis1=1, axis2=2).any()
        ):
            raise ValueError(f"expected one or more graphs (n, d, d) without self-loops, got shape {graphs.shape}")
        n = len(graphs)
        weights = np.full(n, 1.0 / n) if self.weights is None else np.asarray(self.weights, dtype=np.float64)
        if weights.shape != (n,) or weights.min() < 0 or not np.isclose(weights.sum(), 1.0):
            raise ValueError(
                f"expected {n} non-negative weights summing to one, got {weights.shape}, sum {weights.sum()}"
            )
        object.__setattr__(self, "graphs", graphs)
        object.__setattr__(self, "weights", weights)

    @property
    def edge_probabilities(self) -> Floats:
        assert self.weights is not None
        probabilities: Floats = np.einsum("n,nij->ij", self.weights, self.graphs)
        return probabilities.clip(0, 1)  # sums of weights exceed one by rounding

    def sample_graphs(self, n: int, rng: np.random.Generator) -> WeightedGraphs:  # noqa: ARG002
        """All graphs with their weights, whatever `n`: no Monte-Carlo error where none is needed."""
        assert self.weights is not None
        return WeightedGraphs(self.graphs, self.weights)
