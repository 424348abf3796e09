"""Greedy equivalence search, of gCastle or of causal-learn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, get_args

import numpy as np

from baselines.causal_learn import ScoreName, adjacency, check_score, score_arguments
from baselines.implementations import IMPORT_NAMES, Implementation, check_only_used
from baselines.isolation import FittedGraphs
from baselines.packaged import PackagedMethod
from bci.dataset import Floats
from bci.posterior import GraphKind
from bci.settings import check_choice, check_count


@dataclass(frozen=True, kw_only=True)
class GES(PackagedMethod):
    """GES: greedy search over Markov equivalence classes for the best score, by default the linear-Gaussian BIC.

    Chickering (2002), "Optimal structure identification with greedy search". gCastle's is the one in the paper;
    causal-learn's finds as good graphs several times as fast.

    Args:
        implementation: "castle" or "causal_learn".
        score: "bic", or a kernel score, "cv_general" or "marginal_general" (causal_learn only).
        penalty: of one parameter in the BIC, in units of log N (causal_learn only; gCastle's is 1/2).
        folds, regularisation: of score "cv_general" (causal_learn only).
        max_indegree: most parents of a node during the search, None for no limit (causal_learn only).
        timeout_seconds: wall-clock limit of a fit.

    Raises:
        InvalidInput: a setting out of range, or one that the implementation does not read.
    """

    graph_kind: ClassVar[GraphKind] = "cpdag"

    implementation: Implementation = "castle"
    score: ScoreName = "bic"
    penalty: float = 0.5
    folds: int = 10
    regularisation: float = 0.01
    max_indegree: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("implementation", self.implementation, get_args(Implementation))
        check_score(self.score, self.penalty, self.folds, self.regularisation)
        if self.max_indegree is not None:
            check_count("max_indegree", self.max_indegree, 1)
        check_only_used(
            self,
            self.implementation,
            {"causal_learn": ("score", "penalty", "folds", "regularisation", "max_indegree")},
        )

    @property
    def packages(self) -> tuple[str, ...]:
        return (IMPORT_NAMES[self.implementation],)


def fit(observations: Floats, settings: Mapping[str, Any], seed: int) -> FittedGraphs:  # noqa: ARG001
    """Run in the process of the fit; no part of GES is random."""
    if settings["implementation"] == "castle":
        import castle.algorithms

        learner = castle.algorithms.GES(criterion="bic", method="scatter")  # a used one would keep its first data
        learner.learn(observations)
        return FittedGraphs(np.asarray(learner.causal_matrix)[None] != 0, graph_kind="cpdag")

    from causallearn.search.ScoreBased.GES import ges

    found = ges(observations, maxP=settings["max_indegree"], **score_arguments(settings))
    return FittedGraphs(adjacency(found["G"].graph)[None], graph_kind="cpdag")
