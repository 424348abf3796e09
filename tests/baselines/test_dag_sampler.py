from __future__ import annotations

import numpy as np
import pytest
import torch

from baselines.acyclic import is_acyclic
from baselines.dag_sampler import DAGSampler


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(0)


def sampler_of(generator, order_type="top_k", hard=True):
    return DAGSampler(4, temperature=0.7, hard=hard, order_type=order_type, generator=generator)


@pytest.mark.parametrize("order_type", ["top_k", "sinkhorn"])
def test_hard_samples_are_dags_that_pass_gradients_on(generator, order_type):
    sampler = sampler_of(generator, order_type)
    graphs = sampler.sample(200, generator)
    assert set(graphs.detach().unique().tolist()) == {0, 1}
    assert is_acyclic(graphs.detach().numpy() > 0.5).all()
    weights = torch.randn(4, 4, generator=generator)
    for gradient in torch.autograd.grad((graphs * weights).sum(), sampler.parameters):
        assert gradient.isfinite().all()
        assert gradient.abs().max() > 0


@pytest.mark.parametrize("order_type", ["top_k", "sinkhorn"])
def test_edges_have_the_odds_of_their_logits_and_of_the_order(generator, order_type):
    sampler = sampler_of(generator, order_type)
    with torch.no_grad():
        order = torch.tensor([0.0, 8.0, 16.0, 24.0])  # 3, then 2, 1, 0
        ranks = torch.arange(4.0)
        sampler.order_logits.copy_(order if order_type == "top_k" else -20 * (ranks[:, None] - (3 - ranks)).abs())
    expected = np.tril(sampler.edge_logits.sigmoid().detach().numpy(), -1)
    np.testing.assert_allclose(sampler.edge_probabilities(), expected, rtol=0, atol=1e-6)
    for graphs in (sampler.sample(4000, generator), sampler.sample_hard(4000, generator)):
        np.testing.assert_allclose(graphs.detach().mean(dim=0), expected, rtol=0, atol=0.04)


def test_soft_samples_are_not_rounded(generator):
    graphs = sampler_of(generator, hard=False).sample(50, generator).detach()
    assert ((graphs > 0.01) & (graphs < 0.99)).float().mean() > 0.3
    assert graphs.diagonal(dim1=1, dim2=2).max() < 1e-6


@pytest.mark.parametrize("order_type", ["top_k", "sinkhorn"])
def test_cold_soft_samples_are_nearly_hard(generator, order_type):
    sampler = DAGSampler(4, temperature=1e-3, hard=False, order_type=order_type, generator=generator)
    graphs = sampler.sample(200, generator).detach()
    assert ((graphs > 0.01) & (graphs < 0.99)).float().mean() < 0.03
    assert 0.2 < graphs.mean() < 0.3  # half of the pairs that an order allows, or more
