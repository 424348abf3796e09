"""GOLEM, of gCastle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from baselines.isolation import FittedGraphs
from baselines.packaged import PackagedMethod
from bci.dataset import Floats
from bci.settings import check_count, check_number


@dataclass(frozen=True, kw_only=True)
class GOLEM(PackagedMethod):
    """GOLEM: one linear structural equation model by gradient ascent on its likelihood with soft penalties.

    Ng, Ghassemi & Zhang (2020), "On the role of sparsity and DAG constraints for learning linear DAGs". The result
    depends on the scale of the variables. It starts at zero and uses all rows at every step: nothing in it is random.

    Args:
        lambda_1: weight of the L1 penalty.
        lambda_2: weight of the penalty on cycles.
        equal_variances: assume equal noise variances.
        learning_rate: of Adam.
        num_iter: steps.
        graph_thres: edges of smaller absolute weight are left out, and then the weakest until no cycle is left.
        timeout_seconds: wall-clock limit of a fit.

    Raises:
        InvalidInput: a setting out of range.
    """

    lambda_1: float = 0.02
    lambda_2: float = 5.0
    equal_variances: bool = True
    learning_rate: float = 0.001
    num_iter: int = 100_000
    graph_thres: float = 0.3

    def __post_init__(self) -> None:
        super().__post_init__()
        for key in ("lambda_1", "lambda_2", "graph_thres"):
            check_number(key, getattr(self, key))
        check_number("learning_rate", self.learning_rate, positive=True)
        check_count("num_iter", self.num_iter, 1)

    @property
    def packages(self) -> tuple[str, ...]:
        return ("castle", "torch")


def fit(observations: Floats, settings: Mapping[str, Any], seed: int) -> FittedGraphs:
    """Run in the process of the fit; diagnostics hold all d * d weights, before any was left out, row by row."""
    import castle.algorithms

    learner = castle.algorithms.GOLEM(**settings, seed=seed, checkpoint_iter=None)
    learner.learn(observations)
    graph = np.asarray(learner.causal_matrix) != 0
    return FittedGraphs(graph[None], diagnostics={"weights": np.asarray(learner.weight_causal_matrix).ravel()})
