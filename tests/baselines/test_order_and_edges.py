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


def test_a_sparse_start_has_fewer_edges():
    p = torch.tensor([[0.3, 0.1, -0.1, -0.3]])
    (_, plain), (_, sparse) = graphs_of().sample(p), graphs_of(sparse_init=True).sample(p)
    torch.testing.assert_close(sparse, plain - 1)
