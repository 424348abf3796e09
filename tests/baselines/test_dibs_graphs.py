from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch

from baselines import dibs_graphs
from bci.graphs import find_cycle


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(0)


@pytest.fixture
def particles(generator):
    """Three, of four nodes."""
    return torch.randn(3, 2, 4, 4, generator=generator, dtype=torch.float64)


def all_graphs(d):
    off_diagonal = ~np.eye(d, dtype=bool)
    graphs = np.zeros((2 ** (d * (d - 1)), d, d), dtype=bool)
    graphs[:, off_diagonal] = list(product([False, True], repeat=d * (d - 1)))
    return graphs


def assert_gradient(function, point, gradient, weights=None):
    """`gradient` is that of the sum of the values (weighted) of `function` at `point`, by automatic differentiation."""
    moving = point.clone().requires_grad_()
    values = function(moving)
    (values if weights is None else values * weights).sum().backward()
    torch.testing.assert_close(gradient, moving.grad)


def test_first_graphs_are_sparse(generator):
    particles = dibs_graphs.initial_particles(200, 8, generator)
    torch.testing.assert_close(
        particles.mean(dim=(0, 2, 3)), torch.tensor([-1.0, 1.0], dtype=torch.float64), rtol=0, atol=0.05
    )
    assert float(particles.std(dim=(0, 2, 3)).sub(1).abs().max()) < 0.05
    graphs = dibs_graphs.sample_graphs(dibs_graphs.edge_logits(particles, 1.0), 5, generator)
    assert 0 < float(graphs.double().mean()) < 0.15


def test_edges_are_as_frequent_as_their_logits_say_and_no_node_causes_itself(particles, generator):
    logits = dibs_graphs.edge_logits(particles, 0.7)
    row, column = 1, 3
    expected = torch.sigmoid(0.7 * (particles[:, 0, row] * particles[:, 1, column]).sum(dim=1))
    graphs = dibs_graphs.sample_graphs(logits, 20_000, generator)
    assert not graphs.diagonal(dim1=2, dim2=3).any()
    torch.testing.assert_close(graphs.double().mean(dim=1)[:, row, column], expected, rtol=0, atol=0.02)
    rounded = dibs_graphs.relaxed_graphs(logits, 20_000, generator) > 0.5
    torch.testing.assert_close(rounded.double().mean(dim=1), graphs.double().mean(dim=1), rtol=0, atol=0.02)


def test_cyclicity_is_zero_for_dags_alone():
    graphs = all_graphs(3)
    values, _ = dibs_graphs.cyclicity(torch.as_tensor(graphs, dtype=torch.float64))
    for graph, value in zip(graphs, values.tolist(), strict=True):
        assert (abs(value) < 1e-12) == (find_cycle(graph) == [])
        walks = np.eye(3) + graph / 3
        assert value == pytest.approx(np.trace(walks @ walks @ walks) - 3)


def test_gradients_of_cyclicity_are_those_of_automatic_differentiation(generator):
    graphs = torch.rand(7, 5, 5, generator=generator, dtype=torch.float64)

    def function(graphs):
        walks = torch.eye(5, dtype=torch.float64) + graphs / 5
        return torch.linalg.matrix_power(walks, 5).diagonal(dim1=1, dim2=2).sum(dim=1) - 5

    values, gradients = dibs_graphs.cyclicity(graphs)
    torch.testing.assert_close(values, function(graphs))
    assert_gradient(function, graphs, gradients)


def test_the_gradient_of_the_prior_is_that_of_automatic_differentiation(particles):
    beta, alpha = 3.0, 0.8

    def function(particles):
        logits = alpha * particles[:, 0] @ particles[:, 1].mT
        logits = logits.masked_fill(torch.eye(4, dtype=torch.bool), -torch.inf)
        graphs = dibs_graphs.relaxed_graphs(logits, 50, torch.Generator().manual_seed(5))
        walks = torch.eye(4, dtype=torch.float64) + graphs / 4
        closed = torch.linalg.matrix_power(walks, 4).diagonal(dim1=2, dim2=3).sum(dim=2) - 4
        normal = torch.distributions.Normal(0.0, 1.0).log_prob(particles).mean(dim=(1, 2, 3))
        return normal - beta * closed.mean(dim=1)

    logits = dibs_graphs.edge_logits(particles, alpha)
    values, in_logits = dibs_graphs.expected_cyclicity(logits, 50, torch.Generator().manual_seed(5))
    prior = dibs_graphs.log_prior(particles, values, beta)
    torch.testing.assert_close(prior - np.log(2 * np.pi) / 2, function(particles))
    assert_gradient(function, particles, dibs_graphs.log_prior_gradient(particles, in_logits, beta, alpha))


def test_the_gradient_of_the_likelihood_is_the_score_function_estimate(particles, generator):
    alpha = 0.8
    graphs = dibs_graphs.sample_graphs(dibs_graphs.edge_logits(particles, alpha), 20, generator)
    scores = 3 * torch.randn(3, 20, generator=generator, dtype=torch.float64)
    weights = scores.softmax(dim=1) - 1 / 20
    off_diagonal = ~torch.eye(4, dtype=torch.bool)

    def log_probability(particles):
        logits = (alpha * particles[:, 0] @ particles[:, 1].mT)[:, off_diagonal]
        edges = torch.distributions.Bernoulli(logits=logits[:, None])
        return edges.log_prob(graphs[..., off_diagonal].double()).sum(dim=2)

    gradient = dibs_graphs.likelihood_gradient(graphs, scores, particles, alpha)
    assert_gradient(log_probability, particles, gradient, weights)
