from __future__ import annotations

import numpy as np
import pytest

from baselines.resit import RESIT
from baselines.resit_gp import ResitGP


def test_the_graph_is_that_of_resit_and_its_mechanism_is_learnt(nonlinear_pair, rng):
    """effect = sin(2 cause) + 0.3 cause^2 with noise of standard deviation 0.2."""
    posterior = ResitGP().fit(nonlinear_pair, rng)
    graph = RESIT().fit(nonlinear_pair, np.random.default_rng(0)).graphs
    np.testing.assert_array_equal(posterior.query_graphs.graphs, graph)
    for cause in (-1.0, 0.3, 1.0):
        mean = posterior.interventional_mean({"cause": cause}, original_scale=True)
        assert mean[0] == pytest.approx(np.sin(2 * cause) + 0.3 * cause**2, abs=0.1)
        assert mean[1] == pytest.approx(cause)
    samples, weights = posterior.sample_interventional({"cause": 0.3}, 4000, rng, original_scale=True)
    assert samples[:, 0].std() == pytest.approx(0.2, abs=0.06)
    assert weights.sum() == pytest.approx(1)
    # an intervention on the effect leaves the cause as it is
    assert posterior.average_causal_effect("cause", {"effect": 2.0}).mean == 0
