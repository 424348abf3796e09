"""What the methods of the package causal-learn have in common. Imported without causal-learn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from bci.dataset import Bools
from bci.settings import check_choice, check_count, check_number

ScoreName = Literal["bic", "cv_general", "marginal_general"]
SCORES = {
    "bic": "local_score_BIC_from_cov",
    "cv_general": "local_score_CV_general",
    "marginal_general": "local_score_marginal_general",
}


def check_score(score: str, penalty: float, folds: int, regularisation: float) -> None:
    """Raise InvalidInput for settings of a score that are out of range."""
    check_choice("score", score, list(SCORES))
    check_number("penalty", penalty)
    check_count("folds", folds, 2)
    check_number("regularisation", regularisation, positive=True)


def score_arguments(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments `score_func` and `parameters` for the settings score, penalty, folds and regularisation.

    BIC is `log likelihood - penalty * (number of parents + 1) * log N`, with penalty 1/2 as in Schwarz (1978).
    """
    parameters: dict[str, Any] = {
        "bic": {"lambda_value": settings["penalty"]},
        "cv_general": {"kfold": settings["folds"], "lambda": settings["regularisation"]},
        "marginal_general": {},
    }[settings["score"]]
    return {"score_func": SCORES[settings["score"]], "parameters": parameters}


def adjacency(endpoints: np.ndarray[Any, Any]) -> Bools:
    """A graph (d, d), row causes column, from causal-learn's matrix of end points.

    There, entry [i, j] is the mark at i of the edge between i and j: -1 a tail, 1 an arrowhead. So i -> j is a tail at
    i, [i, j] = -1, and a head at j, [j, i] = 1; an undirected edge has two tails.
    """
    tails = np.asarray(endpoints) == -1
    return np.asarray(tails & (np.asarray(endpoints).T != 0))
