"""A posterior as the structure metrics see it: what several of them need is computed once, on first use."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bci.cpdag import dag_to_cpdag, is_acyclic, is_cpdag
from bci.dataset import Floats
from bci.graphs import groups_of_equal
from bci.metrics.undefined import Undefined
from bci.posterior import GraphKind, GraphPosterior, Posterior, WeightedGraphs

NUM_GRAPHS = 1000

CYCLIC = Undefined("a graph of the posterior has a cycle")
NOT_A_CPDAG = Undefined("a graph of the posterior is not the CPDAG of any DAG")


@dataclass(frozen=True, eq=False)
class SampledPosterior:
    """A posterior and `num_graphs` graphs drawn from it (all graphs, if the posterior is finite and returns them)."""

    posterior: Posterior
    rng: np.random.Generator
    num_graphs: int = NUM_GRAPHS

    @property
    def graph_kind(self) -> GraphKind:
        return self.posterior.graph_kind

    @cached_property
    def edge_probabilities(self) -> Floats:
        """(d, d) as the posterior states them, without the sampling error of `graphs`."""
        return self.posterior.edge_probabilities

    @cached_property
    def graphs(self) -> WeightedGraphs:
        """The distinct graphs drawn, (distinct, d, d), with their total weights."""
        return distinct(self.posterior.sample_graphs(self.num_graphs, self.rng))

    @cached_property
    def defect(self) -> Undefined | None:
        """Why the graphs cannot be read causally, or None if all are DAGs (kind `dag`) or CPDAGs (kind `cpdag`)."""
        if self.graph_kind == "dag":
            return None if is_acyclic(self.graphs.graphs).all() else CYCLIC
        return None if is_cpdag(self.graphs.graphs).all() else NOT_A_CPDAG

    @cached_property
    def classes(self) -> SampledPosterior | Undefined:
        """The distribution of the CPDAG; graphs of a CPDAG posterior are taken as they are."""
        if self.graph_kind == "cpdag":
            return self
        if self.defect is not None:
            return self.defect
        cpdags = distinct(WeightedGraphs(dag_to_cpdag(self.graphs.graphs), self.graphs.weights))
        return SampledPosterior(GraphPosterior(*cpdags, graph_kind="cpdag"), self.rng, self.num_graphs)


def distinct(sample: WeightedGraphs) -> WeightedGraphs:
    """The same distribution with every graph once and none of weight zero."""
    kept = sample.weights > 0
    graphs, weights = sample.graphs[kept], sample.weights[kept]
    first, group = groups_of_equal(graphs)
    return WeightedGraphs(graphs[first], np.bincount(group, weights=weights).astype(np.float64))
