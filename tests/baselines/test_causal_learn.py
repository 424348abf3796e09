from __future__ import annotations

import numpy as np
import pytest

from baselines.causal_learn import adjacency, check_score, score_arguments
from baselines.grasp import GRaSP
from bci.errors import InvalidInput

SETTINGS = {"score": "bic", "penalty": 1.0, "folds": 10, "regularisation": 0.01}


def test_end_points_become_row_causes_column():
    # 0 -> 1 has its tail at 0, entry [0, 1] = -1, and its head at 1, entry [1, 0] = 1; 1 - 2 is undirected.
    endpoints = np.array([[0, -1, 0], [1, 0, -1], [0, -1, 0]])
    np.testing.assert_array_equal(adjacency(endpoints), [[0, 1, 0], [0, 0, 1], [0, 1, 0]])


def test_the_penalty_is_given_whatever_the_default_of_the_package():
    assert score_arguments(SETTINGS, 5) == {
        "score_func": "local_score_BIC_from_cov",
        "parameters": {"lambda_value": 1.0},
    }


def test_there_are_at_most_as_many_folds_as_rows():
    settings = SETTINGS | {"score": "cv_general"}
    assert score_arguments(settings, 10)["parameters"] == {"kfold": 10, "lambda": 0.01}
    with pytest.raises(InvalidInput, match=r"^folds: expected at most 9, the number of rows, got 10; "):
        score_arguments(settings, 9)


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"score": "aic"}, "score"),
        ({"penalty": 0.0}, "penalty"),
        ({"score": "cv_general", "folds": 1}, "folds"),
        ({"score": "cv_general", "regularisation": 0}, "regularisation"),
    ],
)
def test_settings_out_of_range_are_refused(settings, key):
    with pytest.raises(InvalidInput, match=f"^{key}: "):
        check_score(GRaSP(**settings))


@pytest.mark.parametrize(
    ("settings", "key", "reader"),
    [
        ({"score": "cv_general", "penalty": 2.0}, "penalty", "bic"),
        ({"score": "marginal_general", "penalty": 2.0}, "penalty", "bic"),
        ({"score": "bic", "folds": 5}, "folds", "cv_general"),
        ({"score": "marginal_general", "regularisation": 0.1}, "regularisation", "cv_general"),
    ],
)
def test_settings_that_the_score_does_not_read_are_refused(settings, key, reader):
    with pytest.raises(InvalidInput, match=f"^{key}: expected .*, since only score={reader} reads it, got "):
        check_score(GRaSP(**settings))


def test_settings_that_the_score_reads_are_taken():
    check_score(GRaSP(score="cv_general", folds=5, regularisation=0.1))
    check_score(GRaSP(score="bic", penalty=2.0))
