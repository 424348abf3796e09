from __future__ import annotations

import pytest
import torch

from baselines.acyclic import is_acyclic
from baselines.order_and_edges import OrderAndEdges
from baselines.sinkhorn import Sinkhorn


def graphs_of(seed=0, **changes):
    settings = {"input_perm": False, "vi_norm": True, "sparse_init": False} | changes
    return OrderAndEdges(4, Sinkhorn(3000, 1e-3), **settings, generator=torch.Generator().manual_seed(seed))


def test_edges_go_from_higher_to_lower_numbers():
    model, p = graphs_of(), torch.tensor([[0.02, -0.05, 0.1, 0.0]]).expand(300, -1)
    with torch.no_grad():
        drawn, _ = model.sample(p)
    allowed = p[0, :, None] > p[0, None, :]
    assert drawn.max(dim=0).values.bool().equal(allowed)


def test_an_order_is_normalised_from_numbers_times_positions():
    model, given = graphs_of(), []
    model.sinkhorn = lambda logits: given.append(logits) or torch.eye(4).expand(len(logits), -1, -1)
    p = torch.tensor([[0.02, -0.05, 0.1, 0.0]])
    model.sample(p)
    torch.testing.assert_close(given[0], p[:, :, None] * torch.tensor([10.0, 20, 30, 40]) / 0.2)


@pytest.mark.parametrize("vi_norm", [False, True])
def test_logits_are_those_of_a_network_with_a_residual_layer(vi_norm):
    model, p = graphs_of(vi_norm=vi_norm), torch.tensor([[0.02, -0.05, 0.1, 0.0], [0.3, 0.1, -0.1, -0.3]])
    (first, a), (second, b), (last, c) = model._layers

    def normed(values):
        if not vi_norm:
            return values
        centred = values - values.mean(dim=1, keepdim=True)
        return centred / (centred.square().mean(dim=1, keepdim=True) + 1e-5).sqrt()

    hidden = (normed(p) @ first + a).relu()
    hidden = hidden + (normed(hidden) @ second + b).relu()
    expected = (normed(hidden) @ last + c).view(2, 4, 4)
    torch.testing.assert_close(model.sample(p)[1], expected)


@pytest.mark.parametrize(
    "changes", [{}, {"input_perm": True}, {"vi_norm": False}, {"input_perm": True, "vi_norm": False}]
)
def test_graphs_are_dags_that_pass_gradients_on(changes):
    model = graphs_of(**changes)
    p = (0.02 * torch.randn(50, 4, generator=torch.Generator().manual_seed(1))).requires_grad_()
    drawn, _ = model.sample(p)
    assert set(drawn.detach().unique().tolist()) == {0, 1}
    assert is_acyclic(drawn.detach().numpy() > 0.5).all()
    weights = torch.randn(4, 4, generator=torch.Generator().manual_seed(2))
    for gradient in torch.autograd.grad((drawn * weights).sum(), [p, *model.parameters]):
        assert gradient.isfinite().all()
        assert gradient.abs().max() > 0


def test_switches_have_the_odds_of_their_logits():
    model, p = graphs_of(), torch.tensor([[0.3, 0.1, -0.1, -0.3]]).expand(4000, -1)
    with torch.no_grad():
        drawn, logits = model.sample(p)
    expected = logits[0].sigmoid().triu(1)
    torch.testing.assert_close(drawn.mean(dim=0), expected, rtol=0, atol=0.04)


def test_switches_have_the_gradient_of_relaxed_ones():
    model, p = graphs_of(), torch.tensor([[0.3, 0.1, -0.1, -0.3]])
    state = model._generator.get_state()
    drawn, logits = model.sample(p)
    model._generator.set_state(state)
    uniform = torch.rand(logits.shape, generator=model._generator)
    relaxed = torch.sigmoid((logits + uniform.logit()) / 0.2)
    (gradient,) = torch.autograd.grad(drawn.sum(), logits)
    torch.testing.assert_close(gradient, (relaxed * (1 - relaxed) / 0.2).triu(1))


def test_a_sparse_start_has_fewer_edges():
    p = torch.tensor([[0.3, 0.1, -0.1, -0.3]])
    (_, plain), (_, sparse) = graphs_of().sample(p), graphs_of(sparse_init=True).sample(p)
    torch.testing.assert_close(sparse, plain - 1)
