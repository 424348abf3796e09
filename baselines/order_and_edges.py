"""The random graphs of BayesDAG: an order given by one number per node, times edges that a network switches on."""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn.functional import layer_norm

from baselines.permutations import assignment, straight_through
from baselines.sinkhorn import Sinkhorn

_WIDTH, _WIDTH_FOR_PERMUTATIONS = 48, 128
_POSITION_SCALE = 10.0
_TEMPERATURE = 0.2  # of orders and edges
_SPARSE_LOGIT = -1.0


class OrderAndEdges:
    """`A = W * (S L S^T)` given p: the matrix allows edges from higher to lower p, W in {0, 1} switches them on.

    S (nodes, positions) is the assignment of the Sinkhorn normalisation of `p o^T / 0.2`, o = 10 (1, ..., d), and L is
    strictly lower triangular. W is relaxed Bernoulli with temperature 0.2, rounded; its logits come from the helper
    network. Both have straight-through gradients (Annadani et al. 2023, section 3).

    Args:
        sinkhorn: normalises; keep it for one chain of p.
        input_perm: the helper network sees S, not p.
        vi_norm: p is normalised over nodes, and the layers of the helper network as well.
        sparse_init: logits start lower by one.
    """

    def __init__(
        self,
        num_nodes: int,
        sinkhorn: Sinkhorn,
        *,
        input_perm: bool,
        vi_norm: bool,
        sparse_init: bool,
        generator: torch.Generator,
    ) -> None:
        self.num_nodes, self.sinkhorn = num_nodes, sinkhorn
        self.input_perm, self.vi_norm = input_perm, vi_norm
        self._shift = _SPARSE_LOGIT if sparse_init else 0.0
        self._generator = generator
        self._positions = _POSITION_SCALE * torch.arange(1, num_nodes + 1) / _TEMPERATURE
        self._lower = torch.ones(num_nodes, num_nodes).tril(-1)
        width = _WIDTH_FOR_PERMUTATIONS if input_perm else _WIDTH
        widths = [num_nodes**2 if input_perm else num_nodes, width, width, num_nodes**2]
        self._layers = [self._linear(inputs, outputs) for inputs, outputs in pairwise(widths)]
        self._norms = [(torch.ones(width).requires_grad_(), torch.zeros(width).requires_grad_()) for _ in range(2)]

    @property
    def parameters(self) -> list[Tensor]:
        """Of the helper network."""
        pairs = [*self._layers, *self._norms] if self.vi_norm else self._layers
        return [parameter for pair in pairs for parameter in pair]

    def sample(self, p: Tensor) -> tuple[Tensor, Tensor]:
        """One graph per row of p (n, d), row causes column, and the logits of W; both (n, d, d), with gradients."""
        soft = self.sinkhorn(p[:, :, None] * self._positions)
        order = straight_through(assignment(soft), soft)
        logits = self._logits(order.flatten(1) if self.input_perm else p)
        uniform = torch.rand(logits.shape, generator=self._generator).clamp_(1e-7, 1 - 1e-7)
        relaxed = ((logits + uniform.logit()) / _TEMPERATURE).sigmoid()
        switches = straight_through((relaxed > 0.5).to(relaxed), relaxed)
        return switches * (order @ self._lower @ order.mT), logits

    def _logits(self, inputs: Tensor) -> Tensor:
        """Helper network, (n, d, d): two ReLU layers, the second one beside an identity."""
        if self.vi_norm and not self.input_perm:
            inputs = layer_norm(inputs, inputs.shape[-1:])
        (first, first_bias), (second, second_bias), (last, last_bias) = self._layers
        hidden = torch.addmm(first_bias, inputs, first).relu()
        hidden = hidden + torch.addmm(second_bias, self._normed(hidden, 0), second).relu()
        logits = torch.addmm(last_bias, self._normed(hidden, 1), last) + self._shift
        return logits.view(-1, self.num_nodes, self.num_nodes)

    def _normed(self, hidden: Tensor, which: int) -> Tensor:
        return layer_norm(hidden, hidden.shape[-1:], *self._norms[which]) if self.vi_norm else hidden

    def _linear(self, inputs: int, outputs: int) -> tuple[Tensor, Tensor]:
        """Weights and biases, uniform on +- 1 / sqrt(inputs)."""
        values = (2 * torch.rand(inputs + 1, outputs, generator=self._generator) - 1) / math.sqrt(inputs)
        return values[:-1].clone().requires_grad_(), values[-1].clone().requires_grad_()
