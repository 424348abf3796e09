"""Greedy equivalence search, of gCastle or of causal-learn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from baselines.causal_learn import ScoreName, adjacency, check_score, score_arguments
from baselines.packaged import PackagedMethod
from baselines.settings import IMPORT_NAMES, Implementation, check_unread
from bci.dataset import Floats
from bci.posterior import GraphKind, GraphPosterior
from bci.settings import check_choice, check_count


@dataclass(frozen=True, kw_only=True)
class GES(PackagedMethod):
    """GES: greedy search over Markov equivalence classes for the best score, by default the linear-Gaussian BIC.

    Chickering (2002), "Optimal structure identification with greedy search". gCastle's is the one in the paper;
    causal-learn's finds as good graphs several times as fast.

    Two choices of gCastle are left out: its criterion "bdeu" is for discrete data, and its method "r2" gives the BIC
    the wrong sign, so that independent variables come out linked and dependent ones do not.

    Args:
        implementation: "castle" or "causal_learn".
        method: how gCastle computes the BIC, "scatter" (from the covariance matrix; castle only).
        score: "bic", or a kernel score, "cv_general" or "marginal_general" (causal_learn only).
        penalty: of one parameter in the BIC, in units of log N (causal_learn only; gCastle's is 1/2).
        folds, regularisation: of score "cv_general" (causal_learn only); at most as many folds as rows.
        max_indegree: most parents of a node during the search, None for no limit (causal_learn only).
        timeout_seconds: wall-clock limit of a fit.

    Raises:
        InvalidInput: a setting out of range, or one that the implementation or the score does not read.
    """

    graph_kind: ClassVar[GraphKind] = "cpdag"

    implementation: Implementation = "castle"
    method: Literal["scatter"] = "scatter"
    score: ScoreName = "bic"
    penalty: float = 0.5
    folds: int = 10
    regularisation: float = 0.01
    max_indegree: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("implementation", self.implementation, get_args(Implementation))
        check_choice("method", self.method, ["scatter"])
        if self.implementation != "causal_learn":
            keys = ("score", "penalty", "folds", "regularisation", "max_indegree")
            check_unread(self, keys, "implementation=causal_learn")
        check_score(self)
        if self.max_indegree is not None:
            check_count("max_indegree", self.max_indegree, 1)

    @property
    def packages(self) -> tuple[str, ...]:
        return (IMPORT_NAMES[self.implementation],)


def fit(observations: Floats, settings: Mapping[str, Any], seed: int) -> GraphPosterior:  # noqa: ARG001
    """Run in the process of the fit; no part of GES is random."""
    if settings["implementation"] == "castle":
        import castle.algorithms

        # A new one for each fit: a used one would keep its first data.
        learner = castle.algorithms.GES(criterion="bic", method=settings["method"])
        learner.learn(observations)
        return GraphPosterior(np.asarray(learner.causal_matrix)[None] != 0, graph_kind="cpdag")

    from causallearn.search.ScoreBased.GES import ges

    found = ges(observations, maxP=settings["max_indegree"], **score_arguments(settings, len(observations)))
    return GraphPosterior(adjacency(found["G"].graph)[None], graph_kind="cpdag")
