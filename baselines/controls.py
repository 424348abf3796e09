"""Controls that do not look at the data: what an empty graph and random graphs score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bci.dataset import Dataset
from bci.errors import InvalidInput
from bci.method import Method
from bci.posterior import GraphPosterior
from bci.random_graphs import erdos_renyi
from bci.settings import check_count, check_number


@dataclass(frozen=True, kw_only=True)
class EmptyGraph(Method):
    """The graph without edges."""

    def _fit(self, dataset: Dataset, rng: np.random.Generator) -> GraphPosterior:  # noqa: ARG002
        return GraphPosterior(np.zeros((1, dataset.num_nodes, dataset.num_nodes), dtype=bool))


@dataclass(frozen=True, kw_only=True)
class RandomGraphs(Method):
    """Random DAGs with independent edges in a random causal order, as `bci.random_graphs.erdos_renyi`.

    Args:
        expected_degree: expected edges per node; (d - 1) / 2 and more give complete graphs.
        num_graphs: equally weighted graphs of the posterior.

    Raises:
        InvalidInput: a setting out of range.
    """

    expected_degree: float = 2.0
    num_graphs: int = 100

    def __post_init__(self) -> None:
        check_number("expected_degree", self.expected_degree)
        if self.expected_degree < 0:
            raise InvalidInput(f"expected_degree: expected at least 0, got {self.expected_degree}")
        check_count("num_graphs", self.num_graphs, 1)

    def _fit(self, dataset: Dataset, rng: np.random.Generator) -> GraphPosterior:
        degree = min(self.expected_degree, (dataset.num_nodes - 1) / 2)
        graphs = [erdos_renyi(dataset.num_nodes, degree, rng) for _ in range(self.num_graphs)]
        return GraphPosterior(np.stack(graphs))
