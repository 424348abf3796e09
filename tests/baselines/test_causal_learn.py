from __future__ import annotations

import numpy as np
import pytest

from baselines.causal_learn import adjacency, check_score, score_arguments
from bci.errors import InvalidInput


def test_end_points_become_row_causes_column():
    # 0 -> 1 has its tail at 0, entry [0, 1] = -1, and its head at 1, entry [1, 0] = 1; 1 - 2 is undirected.
    endpoints = np.array([[0, -1, 0], [1, 0, -1], [0, -1, 0]])
    np.testing.assert_array_equal(adjacency(endpoints), [[0, 1, 0], [0, 0, 1], [0, 1, 0]])


def test_the_penalty_is_given_whatever_the_default_of_the_package():
    settings = {"score": "bic", "penalty": 1.0, "folds": 10, "regularisation": 0.01}
    assert score_arguments(settings) == {
        "score_func": "local_score_BIC_from_cov",
        "parameters": {"lambda_value": 1.0},
    }


@pytest.mark.parametrize(
    ("changes", "key"),
    [({"score": "aic"}, "score"), ({"folds": 1}, "folds"), ({"regularisation": 0}, "regularisation")],
)
def test_settings_out_of_range_are_refused(changes, key):
    with pytest.raises(InvalidInput, match=f"^{key}: "):
        check_score(**({"score": "bic", "penalty": 1.0, "folds": 10, "regularisation": 0.01} | changes))
