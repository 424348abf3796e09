from __future__ import annotations

import numpy as np
import pytest

from baselines.resit import RESIT
from bci.dataset import Dataset
from bci.errors import InvalidInput


@pytest.mark.parametrize("flipped", [False, True])
def test_a_nonlinear_cause_is_told_from_its_effect(nonlinear_pair, rng, flipped):
    order = [1, 0] if flipped else [0, 1]
    dataset = Dataset.from_raw(nonlinear_pair.observations[:, order], ["a", "b"])
    posterior = RESIT().fit(dataset, rng)
    np.testing.assert_array_equal(posterior.edge_probabilities, nonlinear_pair.graph[np.ix_(order, order)])
    assert posterior.diagnostics["causal_order"] == ([0, 1] if flipped else [1, 0])
    assert posterior.graph_kind == "dag"


def test_independent_variables_have_no_edges(rng):
    dataset = Dataset.from_raw(np.random.default_rng(4).standard_normal((200, 3)), "abc")
    assert not RESIT(alpha=0.001).fit(dataset, rng).edge_probabilities.any()


@pytest.mark.parametrize("alpha", [-0.1, 1.1, float("nan")])
def test_a_level_that_cannot_be_is_refused(alpha):
    with pytest.raises(InvalidInput, match=r"^alpha: expected "):
        RESIT(alpha=alpha)
