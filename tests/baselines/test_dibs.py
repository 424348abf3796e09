from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch

from baselines import dibs, dibs_graphs
from baselines.acyclic import is_acyclic
from baselines.dibs import Dibs, graph_scores, log_mean_exp, num_to_drop
from baselines.dibs_gp import DibsGP
from bci.graphs import find_cycle

MECHANISMS = ("likelihood_weight", "map_search")


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(0)


def settings(**changes):
    every = DibsGP(**changes).settings
    return Dibs(**{key: value for key, value in every.items() if key not in MECHANISMS})


def gain_per_edge(gains):
    """Scores of families: the sum of the gains (d, d) of their edges."""
    return lambda nodes, parents: (parents * gains.T[nodes]).sum(dim=1)


def random_graphs(num_particles, num_graphs, d, generator):
    graphs = torch.rand(num_particles, num_graphs, d, d, generator=generator) < 0.3
    graphs.diagonal(dim1=2, dim2=3).fill_(False)
    return graphs


def test_scores_of_graphs_are_sums_over_nodes_and_their_causes(generator):
    graphs = random_graphs(3, 5, 4, generator)
    table = torch.randn(4, 16, generator=generator, dtype=torch.float64)
    code = torch.tensor([1, 2, 4, 8])
    scores = graph_scores(graphs, lambda nodes, parents: table[nodes, (parents * code).sum(dim=1)])
    for particle, number in product(range(3), range(5)):
        expected = 0.0
        for node in range(4):
            causes = [cause for cause in range(4) if graphs[particle, number, cause, node]]
            expected += float(table[node, sum(2**cause for cause in causes)])
        assert float(scores[particle, number]) == pytest.approx(expected)


def test_as_few_first_graphs_are_dropped_as_the_bound_asks_for(generator):
    graphs = random_graphs(3, 10, 4, generator)

    def num_families(kept):
        columns = kept.mT.reshape(-1, 4).tolist()
        return len({(place % 4, *parents) for place, parents in enumerate(columns)})

    left = [num_families(graphs[:, dropped:]) for dropped in range(10)]
    assert left[0] > left[9]
    for bound in range(left[9], left[0] + 2):
        assert num_to_drop(graphs, bound) == next(dropped for dropped in range(10) if left[dropped] <= bound)
    assert num_to_drop(graphs, 1) == 9  # one graph of each stays


def test_training_climbs_to_the_edges_that_gain(generator):
    """Three edges of a chain gain five nats each, all others lose as much."""
    gains = torch.full((4, 4), -5.0, dtype=torch.float64)
    chain = torch.tensor([2, 0, 3]), torch.tensor([0, 3, 1])
    gains[chain] = 5.0
    method = settings(num_steps=150, num_particles=4, num_graphs=40)
    trained = method.train(gain_per_edge(gains), 4, generator)
    posterior = method.posterior(trained.particles, gain_per_edge(gains), generator)
    np.testing.assert_array_equal(posterior.edge_probabilities.round(2), (gains > 0).numpy())
    assert trained.losses[-1] < trained.losses[0]
    assert len(trained.graphs_used) == len(trained.losses)


def test_the_penalty_keeps_cycles_away(generator):
    gains = torch.zeros(3, 3, dtype=torch.float64)
    gains[0, 1] = gains[1, 2] = gains[2, 0] = 3.0
    logits = []
    for beta in (0.0, 10.0):
        method = settings(num_steps=150, num_graphs=40, beta=beta, num_particles=4)
        trained = method.train(gain_per_edge(gains), 3, torch.Generator().manual_seed(1))
        logits.append(dibs_graphs.edge_logits(trained.particles, 1.0))
    shares = [
        is_acyclic(dibs_graphs.sample_graphs(each, 200, generator).flatten(0, 1).numpy()).mean() for each in logits
    ]
    assert shares[0] < 0.3
    assert shares[1] > 0.95


def test_a_schedule_by_steps_ends_at_a_higher_penalty():
    """With the same random numbers, a constant beta of one is that of the first step."""
    gains = torch.zeros(3, 3, dtype=torch.float64)
    by_step, constant = (
        settings(num_steps=3, beta_schedule=schedule)
        .train(gain_per_edge(gains), 3, torch.Generator().manual_seed(0))
        .losses
        for schedule in ("step", "constant")
    )
    assert by_step[0] == constant[0]
    assert by_step[1] > constant[1]


def test_training_ends_when_the_loss_stays_but_not_before_its_time(generator):
    flat = gain_per_edge(torch.zeros(3, 3, dtype=torch.float64))
    method = settings(num_steps=60, min_steps=20, tolerance=1e3)
    assert len(method.train(flat, 3, generator).losses) == 21
    assert len(settings(num_steps=30, min_steps=20, tolerance=0.0).train(flat, 3, generator).losses) == 30


def test_the_posterior_weighs_dags_by_prior_and_likelihood_and_cycles_with_zero(generator, monkeypatch):
    particles = 0.5 * torch.randn(2, 2, 3, 3, generator=generator, dtype=torch.float64)
    gains = torch.randn(3, 3, generator=generator, dtype=torch.float64)
    drawn = random_graphs(2, 30, 3, generator)
    monkeypatch.setattr(dibs_graphs, "sample_graphs", lambda *_: drawn)
    cyclicity = torch.tensor([0.01, 0.03], dtype=torch.float64)
    monkeypatch.setattr(dibs_graphs, "expected_cyclicity", lambda *_: (cyclicity, None))
    posterior = settings(num_graphs=30, evaluation_beta=50.0).posterior(particles, gain_per_edge(gains), generator)

    expected, cyclic, num_cyclic = np.zeros((3, 3)), 0.0, 0
    total = 0.0
    for particle, graph in ((p, g) for p in range(2) for g in drawn[p].numpy()):
        prior = -float(particles[particle].square().mean()) / 2 - 50 * float(cyclicity[particle])
        weight = np.exp(prior + (gains.numpy() * graph).sum())
        if find_cycle(graph):
            cyclic, num_cyclic = cyclic + weight, num_cyclic + 1
        else:
            expected, total = expected + weight * graph, total + weight
    assert num_cyclic > 0
    np.testing.assert_allclose(posterior.edge_probabilities, expected / total, atol=1e-5)
    assert posterior.diagnostics["cyclic_share"] == pytest.approx(num_cyclic / 60)
    assert posterior.diagnostics["cyclic_mass"] == pytest.approx(cyclic / (cyclic + total))
    assert sum(posterior.diagnostics["particle_weights"]) == pytest.approx(1)
    assert len({graph.tobytes() for graph in posterior.graphs}) == len(posterior.graphs)


def test_cyclic_graphs_alone_are_no_posterior(generator, monkeypatch):
    cycle = torch.tensor([[False, True], [True, False]]).expand(2, 4, 2, 2)
    monkeypatch.setattr(dibs_graphs, "sample_graphs", lambda *_: cycle)
    monkeypatch.setattr(dibs, "_MOST_DRAWS", 2)
    particles = torch.zeros(2, 2, 2, 2, dtype=torch.float64)
    with pytest.raises(ArithmeticError, match="expected acyclic graphs"):
        settings().posterior(particles, gain_per_edge(torch.zeros(2, 2)), generator)


def test_means_in_log_space_do_not_overflow():
    values = torch.tensor([[-1000.0, -1001.0], [800.0, 800.0]], dtype=torch.float64)
    expected = [-1000 + np.log((1 + np.exp(-1)) / 2), 800]
    np.testing.assert_allclose(log_mean_exp(values).numpy(), expected)
