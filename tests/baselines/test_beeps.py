from __future__ import annotations

import numpy as np
import pytest

from baselines.beeps import BEEPS
from baselines.gadget import GADGET
from bci.linear_posterior import fit_linear_posterior

QUICK = {"burn_in": 100, "iterations": 100, "mc3_chains": 4}


def test_effects_of_a_linear_model_are_recovered(collider, rng):
    """c = a + b and d = c, columns c a d b."""
    posterior = BEEPS(**QUICK).fit(collider, rng)
    effect = posterior.average_causal_effect("d", {"a": 2.0}, {"a": 0.0}, original_scale=True)
    assert np.median(effect.per_graph) == pytest.approx(2, abs=0.15)  # one graph of ten has another direction
    assert effect.mean == pytest.approx(2, abs=0.4)
    assert posterior.average_causal_effect("a", {"d": 2.0}).mean == pytest.approx(0, abs=0.3)
    both = posterior.interventional_mean({"a": 1.0, "b": -3.0}, original_scale=True)
    np.testing.assert_allclose(both, [-2, 1, -2, -3], atol=0.5)


def test_graphs_are_those_of_gadget(collider):
    ours, theirs = (method(**QUICK).fit(collider, np.random.default_rng(1)) for method in (BEEPS, GADGET))
    np.testing.assert_array_equal(ours.query_graphs.graphs, theirs.graphs)
    np.testing.assert_array_equal(ours.edge_probabilities, theirs.edge_probabilities)
    do = {"a": 1.0}
    np.testing.assert_array_equal(
        ours.interventional_mean(do), fit_linear_posterior(theirs, collider).interventional_mean(do)
    )


def test_it_answers_about_means_alone(collider, rng):
    assert BEEPS.answers_queries
    assert not hasattr(BEEPS(**QUICK).fit(collider, rng), "sample_interventional")
