"""Small methods and data sets that stand in for real ones in the tests of the entry points."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from baselines.isolation import MethodFailed, MethodTimeout
from baselines.packaged import PackagedMethod
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
        mode: Literal["fit", "invalid", "crash", "memory", "interrupt", "killed", "timeout"] = "fit",
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
        if self.mode == "killed":
            raise MethodFailed("killed by signal 9 (SIGKILL); it said: step 7\nand no more", 123.0)
        if self.mode == "timeout":
            raise MethodTimeout("stopped at its time limit of 3 s; it said nothing", 124.0)
        order = rng.permutation(dataset.num_nodes)
        graph = np.triu(rng.random((dataset.num_nodes, dataset.num_nodes)) < 0.5, 1)[np.ix_(order, order)]
        diagnostics = {"steps": 3, "loss": np.float64(1.5), "losses": [1.0, 2.0], "worst": float("inf")}
        return GraphPosterior(graph[None], diagnostics=diagnostics)


class Mortal(RandomDag):
    """A random DAG after a while; mode `die` kills the process of the job, only once if `only_once` is a new file."""

    def __init__(self, seconds: float = 0.0, mode: str = "fit", only_once: str | None = None) -> None:
        super().__init__(mode=mode if mode != "die" else "fit")  # type: ignore[arg-type]
        self.seconds, self.dies, self.only_once = seconds, mode == "die", only_once

    def _fit(self, dataset: Dataset, rng: np.random.Generator) -> Posterior:
        time.sleep(self.seconds)
        if self.dies and not (self.only_once and Path(self.only_once).exists()):
            if self.only_once:
                Path(self.only_once).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super()._fit(dataset, rng)


class Queried(Method):
    """Answers queries on two graphs: a chain, and the chain without the edge X1 -> X2."""

    answers_queries = True

    def __init__(self, max_parents: int = 1, linear: bool = False) -> None:  # the keys of `RandomDag` and more
        self.max_parents, self.linear = max_parents, linear

    def _fit(self, dataset: Dataset, rng: np.random.Generator) -> Posterior:
        # Here, since the process of `Isolated` reads this module and has no need of torch.
        from bci.causal_posterior import GenerativePosterior
        from bci.linear_posterior import fit_linear_posterior
        from bci.predictive import fit_gp_mechanisms

        chain = np.eye(dataset.num_nodes, k=1, dtype=bool)
        shorter = chain.copy()
        shorter[1] = False
        structure = GraphPosterior(np.stack([chain, shorter]), np.array([0.8, 0.2]))
        if self.linear:
            return fit_linear_posterior(structure, dataset)
        mechanisms = fit_gp_mechanisms(dataset, structure.graphs)
        return GenerativePosterior.of(structure, structure.sample_graphs(2, rng), mechanisms, dataset, rng)


@dataclass(frozen=True, kw_only=True)
class Isolated(PackagedMethod):
    """An empty graph from a process of its own, which sleeps first if it can leave its number in a new file."""

    number_file: str | None = None

    @property
    def packages(self) -> tuple[str, ...]:
        return ()


def fit(observations: np.ndarray, settings: Mapping[str, Any], seed: int) -> GraphPosterior:  # noqa: ARG001
    if settings["number_file"] and not Path(settings["number_file"]).exists():
        print("asleep", flush=True)  # noqa: T201
        Path(settings["number_file"]).write_text(str(os.getpid()))
        time.sleep(600)
    return GraphPosterior(np.zeros((1, observations.shape[1], observations.shape[1])))
