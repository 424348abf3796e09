"""RESIT, of lingam, with the Gaussian-process regression of ARCO-GP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from baselines.isolation import FittedGraphs
from baselines.packaged import PackagedMethod
from bci.dataset import Floats
from bci.errors import InvalidInput
from bci.scores import LikelihoodWeight
from bci.settings import check_choice, check_number


@dataclass(frozen=True, kw_only=True)
class RESIT(PackagedMethod):
    """RESIT: the variable whose regression residuals depend least on the others comes last, and so on.

    Peters, Mooij, Janzing & Schoelkopf (2014), "Causal discovery with continuous additive noise models". Regressions
    are Gaussian processes with the kernel, priors and MAP-II hyper-parameters of ARCO-GP; HSIC measures dependence.
    Edges are tested one after the other in the order of the columns, on which the result may depend a little.

    Args:
        alpha: level of the tests that leave out edges.
        likelihood_weight: "full" or "per_sample"; see `bci.scores`.
        timeout_seconds: wall-clock limit of a fit.

    Raises:
        InvalidInput: a setting out of range.
    """

    alpha: float = 0.01
    likelihood_weight: LikelihoodWeight = "full"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("alpha", self.alpha)
        if not 0 <= self.alpha <= 1:
            raise InvalidInput(f"alpha: expected a level from 0 to 1, got {self.alpha}")
        check_choice("likelihood_weight", self.likelihood_weight, get_args(LikelihoodWeight))

    @property
    def packages(self) -> tuple[str, ...]:
        return ("lingam", "torch")


def fit(observations: Floats, settings: Mapping[str, Any], seed: int) -> FittedGraphs:
    """Run in the process of the fit."""
    import lingam

    from baselines.gp_regressor import GPRegressor

    regressor = GPRegressor(likelihood_weight=settings["likelihood_weight"])
    learner = lingam.RESIT(regressor=regressor, alpha=settings["alpha"], random_state=seed)
    learner.fit(observations)
    effects_by_causes = np.asarray(learner.adjacency_matrix_) != 0  # lingam: entry [i, j] is j -> i
    order = [int(node) for node in learner.causal_order_]
    return FittedGraphs(effects_by_causes.T[None], diagnostics={"causal_order": order})
