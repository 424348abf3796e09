"""Small methods and data sets that stand in for real ones in the tests of the entry points."""

from __future__ import annotations

from typing import Literal

import numpy as np

from bci.dataset import Dataset
from bci.errors import InvalidInput
from bci.method import Method
from bci.posterior import GraphPosterior, Posterior


def chain(num_nodes: int = 4, num_samples: int = 30, seed: int = 0, with_truth: bool = True, **_: object) -> Dataset:
    """A linear chain X0 -> X1 -> ... with standard normal noise."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((num_samples, num_nodes))
    graph = np.eye(num_nodes, k=1, dtype=bool)
    return Dataset.from_raw(
        np.cumsum(noise, axis=1), [f"X{i}" for i in range(num_nodes)], graph=graph if with_truth else None
    )


class RandomDag(Method):
    """One random DAG, or an error on request."""

    def __init__(
        self,
        max_parents: int = 2,
        mode: Literal["fit", "invalid", "crash", "memory", "interrupt"] = "fit",
        scale: float = 1.0,
        names: list[str] | None = None,
    ) -> None:
        if max_parents < 0:
            raise InvalidInput(f"max_parents: expected at least 0, got {max_parents}")
        self.max_parents, self.mode, self.scale, self.names = max_parents, mode, scale, names

    def _fit(self, dataset: Dataset, rng: np.random.Generator) -> Posterior:
        if self.mode == "invalid":
            raise InvalidInput("mode: expected fit, got invalid; set method.mode=fit")
        if self.mode == "crash":
            raise ZeroDivisionError("a bug\nin two lines")
        if self.mode == "memory":
            raise MemoryError
        if self.mode == "interrupt":
            raise KeyboardInterrupt
        order = rng.permutation(dataset.num_nodes)
        graph = np.triu(rng.random((dataset.num_nodes, dataset.num_nodes)) < 0.5, 1)[np.ix_(order, order)]
        diagnostics = {"steps": 3, "loss": np.float64(1.5), "losses": [1.0, 2.0], "worst": float("inf")}
        return GraphPosterior(graph[None], diagnostics=diagnostics)
