from __future__ import annotations

import numpy as np
import pytest

from baselines.dibs_gp import DibsGP
from baselines.isolation import MethodTimeout
from bci.data.simulate import simulated_dataset
from bci.errors import InvalidInput
from bci.family_scores import score_families
from bci.graphs import find_cycle

QUICK = {"num_steps": 60, "num_particles": 4, "num_graphs": 30}


def test_the_mechanism_of_the_graph_is_learnt(nonlinear_pair, rng):
    """effect = sin(2 cause) + 0.3 cause^2 with noise of standard deviation 0.2."""
    posterior = DibsGP(**QUICK).fit(nonlinear_pair, rng)
    np.testing.assert_allclose(posterior.edge_probabilities, nonlinear_pair.graph, atol=0.05)
    for cause in (-1.0, 0.3, 1.0):
        mean = posterior.interventional_mean({"cause": cause}, original_scale=True)
        assert mean[0] == pytest.approx(np.sin(2 * cause) + 0.3 * cause**2, abs=0.1)
    assert posterior.average_causal_effect("cause", {"effect": 2.0}).mean == pytest.approx(0, abs=0.02)


def test_a_fit_says_how_it_went(rng):
    dataset = simulated_dataset(
        graph_model="er", num_nodes=6, expected_degree=2, mechanism="gp", num_samples=60, seed=0
    )
    posterior = DibsGP(**QUICK, max_mechanisms=60).fit(dataset, rng)
    said = posterior.diagnostics
    assert 1 <= said["steps"] == len(said["losses"]) <= 60
    assert 6 < said["mechanisms_scored"] <= 6 * 2**5
    assert 1 <= said["least_graphs_per_step"] <= 30
    assert 0 <= said["cyclic_mass"] <= 1
    assert 0 <= said["cyclic_share"] < 1
    assert said["peak_memory_mb"] > 50
    assert len(said["particle_weights"]) == 4
    graphs, weights = posterior.query_graphs
    assert weights.sum() == pytest.approx(1)
    assert all(find_cycle(graph) == [] for graph in graphs)
    # heavier graphs are those of higher score, but for their particles' priors
    best, worst = graphs[weights.argmax()], graphs[weights.argmin()]
    assert total_score(dataset, best) > total_score(dataset, worst) - 10


def total_score(dataset, graph):
    import torch

    families = score_families(dataset, torch.arange(dataset.num_nodes), torch.as_tensor(graph.T.copy()))
    return float(families.scores.sum())


def test_a_time_limit_ends_the_fit(nonlinear_pair, rng):
    with pytest.raises(MethodTimeout):
        DibsGP(timeout_seconds=0.5).fit(nonlinear_pair, rng)


@pytest.mark.slow
def test_the_paper_length_gives_a_sparse_dag_near_the_truth(rng):
    """A few minutes on one core."""
    dataset = simulated_dataset(
        graph_model="sf", num_nodes=20, expected_degree=2, mechanism="gp", num_samples=200, seed=0
    )
    probabilities = DibsGP().fit(dataset, rng).edge_probabilities
    assert find_cycle(probabilities > 0.5) == []
    assert 25 < np.abs(probabilities - dataset.graph).sum() < 55  # printed mean 39


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"num_particles": 0}, "num_particles"),
        ({"num_graphs": 1}, "num_graphs"),
        ({"num_steps": 0}, "num_steps"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"alpha": -1.0}, "alpha"),
        ({"beta": np.nan}, "beta"),
        ({"beta": -1.0}, "beta"),
        ({"evaluation_beta": -1.0}, "evaluation_beta"),
        ({"tolerance": -1.0}, "tolerance"),
        ({"beta_schedule": "linear"}, "beta_schedule"),
        ({"gradient_clip": 0}, "gradient_clip"),
        ({"max_mechanisms": 0}, "max_mechanisms"),
        ({"map_search": "fast"}, "map_search"),
        ({"likelihood_weight": "half"}, "likelihood_weight"),
        ({"timeout_seconds": 0}, "timeout_seconds"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, key):
    with pytest.raises(InvalidInput, match=f"^{key}: expected "):
        DibsGP(**settings)
