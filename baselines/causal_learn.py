"""What the methods of the package causal-learn have in common. Imported without causal-learn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from baselines.packaged import PackagedMethod
from baselines.settings import check_unread
from bci.dataset import Bools
from bci.errors import InvalidInput
from bci.settings import check_choice, check_count, check_number

ScoreName = Literal["bic", "cv_general", "marginal_general"]
SCORES = {
    "bic": "local_score_BIC_from_cov",
    "cv_general": "local_score_CV_general",
    "marginal_general": "local_score_marginal_general",
}


def check_score(method: PackagedMethod) -> None:
    """Raise InvalidInput if one of the settings of a score is out of range, or changed where it is not read."""
    settings = method.settings
    check_choice("score", settings["score"], list(SCORES))
    check_number("penalty", settings["penalty"], positive=True)
    check_count("folds", settings["folds"], 2)
    check_number("regularisation", settings["regularisation"], positive=True)
    for score, keys in {"bic": ["penalty"], "cv_general": ["folds", "regularisation"]}.items():
        if settings["score"] != score:
            check_unread(method, keys, f"score={score}")


def score_arguments(settings: Mapping[str, Any], num_rows: int) -> dict[str, Any]:
    """Arguments `score_func` and `parameters` for the settings score, penalty, folds and regularisation.

    BIC is `log likelihood - penalty * (number of parents + 1) * log N`, with penalty 1/2 as in Schwarz (1978).

    Raises:
        InvalidInput: more folds than rows.
    """
    if settings["score"] == "cv_general" and settings["folds"] > num_rows:
        raise InvalidInput(
            f"folds: expected at most {num_rows}, the number of rows, got {settings['folds']}; set fewer or add data"
        )
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
