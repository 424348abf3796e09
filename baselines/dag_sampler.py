"""Random DAGs with parameters to learn: a random order of the nodes times random edges."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from baselines.permutations import assignment, earlier, gumbel_noise, soft_sort, straight_through
from baselines.sinkhorn import Sinkhorn

OrderType = Literal["top_k", "sinkhorn"]
_NO_LOOP = -300.0  # logit of an edge from a node to itself
_SINKHORN_ITERATIONS, _SINKHORN_TOLERANCE = 3000, 1e-3


class DAGSampler:
    """DAG-DP of Charpentier, Kibler & Guennemann (2022), "Differentiable DAG sampling", section 3.

    `DAG = edges * (P^T U P)`, U strictly upper triangular, row causes column. The permutation P (ranks, nodes) comes
    from logits with Gumbel noise: sorted (`top_k`, logits (d,), log-softmaxed), or normalised by Sinkhorn and assigned
    (`sinkhorn`, logits (d, d), divided by the temperature). An edge is a Gumbel-softmax over
    (log sigmoid(E), log sigmoid(-E)), which is `sigmoid((E + logistic noise) / temperature)`.

    Args:
        num_nodes: d.
        temperature: of permutations and edges.
        hard: DAGs of zeros and ones with straight-through gradients; else the soft ones.
    """

    def __init__(
        self, num_nodes: int, *, temperature: float, hard: bool, order_type: OrderType, generator: torch.Generator
    ) -> None:
        self.temperature, self.hard, self.order_type = temperature, hard, order_type
        shape = (num_nodes,) if order_type == "top_k" else (num_nodes, num_nodes)
        self.order_logits = torch.zeros(shape, requires_grad=True)
        edge_logits = torch.rand(num_nodes, num_nodes, generator=generator)
        self.edge_logits = edge_logits.fill_diagonal_(_NO_LOOP).requires_grad_()
        self._sinkhorn = Sinkhorn(_SINKHORN_ITERATIONS, _SINKHORN_TOLERANCE)

    @property
    def parameters(self) -> list[Tensor]:
        return [self.order_logits, self.edge_logits]

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        """(count, d, d), with gradients."""
        ranks, hard_ranks = self._permutations(gumbel_noise((count, *self.order_logits.shape), generator))
        two = gumbel_noise((2, count, *self.edge_logits.shape), generator)
        edges = ((self.edge_logits + two[0] - two[1]) / self.temperature).sigmoid()
        if not self.hard:
            return edges * earlier(ranks)
        return straight_through((edges > 0.5).to(edges), edges) * earlier(straight_through(hard_ranks, ranks))

    def sample_hard(self, count: int, generator: torch.Generator) -> Tensor:
        """(count, d, d), zeros and ones."""
        with torch.no_grad():
            _, hard_ranks = self._permutations(gumbel_noise((count, *self.order_logits.shape), generator))
            edges = torch.rand((count, *self.edge_logits.shape), generator=generator) < self.edge_logits.sigmoid()
            return edges * earlier(hard_ranks)

    def edge_probabilities(self) -> Tensor:
        """(d, d): sigmoid(E) where the order without noise allows the edge, else zero."""
        with torch.no_grad():
            _, hard_ranks = self._permutations(torch.zeros(1, *self.order_logits.shape))
            return self.edge_logits.sigmoid() * earlier(hard_ranks)[0]

    def _permutations(self, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Soft and hard, (count, ranks, nodes)."""
        if self.order_type == "top_k":
            return soft_sort(self.order_logits.log_softmax(dim=-1) + noise, self.temperature)
        soft = self._sinkhorn((self.order_logits + noise) / self.temperature)
        return soft, assignment(soft)
