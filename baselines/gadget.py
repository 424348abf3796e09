"""GADGET, of sumu."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from baselines.isolation import FittedGraphs
from baselines.packaged import PackagedMethod
from bci.dataset import Bools, Floats
from bci.settings import check_choice, check_count, check_number

CandidateAlgorithm = Literal["opt", "top", "greedy", "greedy-lite"]


@dataclass(frozen=True, kw_only=True)
class GADGET(PackagedMethod):
    """GADGET: DAGs from the posterior of a linear-Gaussian model by Markov chains over ordered partitions.

    Viinikka, Hyttinen, Pensar & Koivisto (2020), "Towards scalable Bayesian learning of causal DAGs". Memory and time
    grow with 2^K.

    Args:
        scoref: the score, "bge" (Bayesian Gaussian equivalent).
        max_id: most parents of a node among its candidates, -1 for no limit.
        K: candidate parents of a node; all other variables if there are fewer.
        d: most parents of a node where one of them is no candidate.
        cp_algo: how candidates are chosen.
        mc3_chains: Metropolis-coupled chains.
        burn_in, iterations: steps before and while samples are taken.
        thinning: steps per sampled DAG.
        tolerance: relative difference under which two sums count as equal and are computed anew.
        timeout_seconds: wall-clock limit of a fit.

    Raises:
        InvalidInput: a setting out of range.
    """

    scoref: Literal["bge"] = "bge"
    max_id: int = -1
    K: int = 16
    d: int = 2
    cp_algo: CandidateAlgorithm = "greedy-lite"
    mc3_chains: int = 16
    burn_in: int = 1000
    iterations: int = 1000
    thinning: int = 10
    tolerance: float = 2.0**-32

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("scoref", self.scoref, ["bge"])
        check_choice("cp_algo", self.cp_algo, get_args(CandidateAlgorithm))
        check_count("max_id", self.max_id, -1)
        check_count("burn_in", self.burn_in, 0)
        for key in ("K", "d", "mc3_chains", "iterations", "thinning"):
            check_count(key, getattr(self, key), 1)
        check_number("tolerance", self.tolerance, positive=True)

    @property
    def packages(self) -> tuple[str, ...]:
        return ("sumu",)


def fit(observations: Floats, settings: Mapping[str, Any], seed: int) -> FittedGraphs:  # noqa: ARG001
    """Run in the process of the fit; the chains draw from numpy's global generator, seeded there."""
    import sumu

    num_nodes = observations.shape[1]
    data = sumu.Data(observations, discrete=False)
    dags, _ = sumu.Gadget(data=data, **{**settings, "K": min(num_nodes - 1, settings["K"])}).sample()
    return FittedGraphs(np.stack([_adjacency(dag, num_nodes) for dag in dags]))


def _adjacency(families: list[tuple[Any, ...]], num_nodes: int) -> Bools:
    """(d, d), row causes column, from one (node,) or (node, parents) per node."""
    graph = np.zeros((num_nodes, num_nodes), dtype=bool)
    for node, *parents in families:
        for parent in parents[0] if parents else ():
            graph[parent, node] = True
    return graph
