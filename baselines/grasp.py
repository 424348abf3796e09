"""Greedy relaxations of the sparsest permutation, of causal-learn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from baselines.causal_learn import ScoreName, adjacency, check_score, score_arguments
from baselines.isolation import FittedGraphs
from baselines.packaged import PackagedMethod
from bci.dataset import Floats
from bci.posterior import GraphKind
from bci.settings import check_count


@dataclass(frozen=True, kw_only=True)
class GRaSP(PackagedMethod):
    """GRaSP: a random order of the variables is improved by depth-first tucks for as long as the score rises.

    Lam, Andrews & Ramsey (2022), "Greedy relaxations of the sparsest permutation algorithm". A penalty of 1 is what
    the releases of causal-learn up to 0.1.4.3, and with them the paper, had by default; those since have 2.

    Args:
        score: "bic", or a kernel score, "cv_general" or "marginal_general".
        penalty: of one parameter in the BIC, in units of log N.
        folds, regularisation: of score "cv_general".
        depth: of the search.
        timeout_seconds: wall-clock limit of a fit.

    Raises:
        InvalidInput: a setting out of range.
    """

    graph_kind: ClassVar[GraphKind] = "cpdag"

    score: ScoreName = "bic"
    penalty: float = 1.0
    folds: int = 10
    regularisation: float = 0.01
    depth: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        check_score(self.score, self.penalty, self.folds, self.regularisation)
        check_count("depth", self.depth, 1)

    @property
    def packages(self) -> tuple[str, ...]:
        return ("causallearn",)


def fit(observations: Floats, settings: Mapping[str, Any], seed: int) -> FittedGraphs:  # noqa: ARG001
    """Run in the process of the fit; the search draws from the global generator of `random`, seeded there."""
    from causallearn.search.PermutationBased.GRaSP import grasp

    found = grasp(observations, depth=settings["depth"], verbose=False, **score_arguments(settings))
    return FittedGraphs(adjacency(found.graph)[None], graph_kind="cpdag")
