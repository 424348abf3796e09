"""Order models with parameters: ARCO's autoregressive network and the Plackett-Luce distribution."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from bci.orders.protocol import OrderModel
from bci.randomness import torch_generator


class TrainableOrders(OrderModel, Protocol):
    """An order model whose `log_prob` is differentiable in `parameters`."""

    parameters: list[Tensor]


class AutoregressiveOrders:
    """ARCO: `p(L | theta) = prod_k Categorical(L_k | g_theta(Q(L_<k)))`, used elements masked out.

    Toth et al. (2025), section on autoregressive causal orders. `g_theta` is a network d*d -> hidden -> d with ReLU on
    the d x d permutation matrix of the prefix. Multiplying by a permutation matrix is a look-up: every placed node
    adds one row of the first layer.

    Args:
        num_nodes: d.
        hidden: width of the hidden layer.
        rng: draws the initial weights, uniform in +-1/sqrt(fan-in).
        device: where to compute, in float64.
    """

    def __init__(
        self, num_nodes: int, rng: np.random.Generator, *, hidden: int = 30, device: torch.device | str = "cpu"
    ) -> None:
        def uniform(fan_in: int, *shape: int) -> Tensor:
            values = torch.as_tensor(rng.uniform(-1, 1, shape) / fan_in**0.5, dtype=torch.float64, device=device)
            return values.requires_grad_()

        self.num_nodes = num_nodes
        fan_in = num_nodes * num_nodes
        self._placed = uniform(fan_in, num_nodes, num_nodes, hidden)  # (place, node, hidden)
        self._hidden_bias = uniform(fan_in, hidden)
        self._output = uniform(hidden, hidden, num_nodes)
        self._output_bias = uniform(hidden, num_nodes)
        self.parameters = [self._placed, self._hidden_bias, self._output, self._output_bias]

    @torch.no_grad()
    def sample(self, n: int, rng: np.random.Generator) -> Tensor:
        """As `OrderModel.sample`."""
        generator = torch_generator(rng, self._output.device)
        hidden = self._hidden_bias.expand(n, -1)
        free = hidden.new_ones(n, self.num_nodes, dtype=torch.bool)
        orders = torch.empty(n, self.num_nodes, dtype=torch.int64, device=hidden.device)
        for place in range(self.num_nodes):
            scores = self._logits(hidden) + gumbel((n, self.num_nodes), generator)
            node = torch.where(free, scores, -torch.inf).argmax(dim=1)
            orders[:, place] = node
            free.scatter_(1, node[:, None], value=False)
            hidden = hidden + self._placed[place, node]
        return orders

    def log_prob(self, orders: Tensor) -> Tensor:
        """As `OrderModel.log_prob`."""
        places = torch.arange(self.num_nodes, device=orders.device)
        placed = self._placed[places, orders]  # (n, place, hidden)
        hidden = placed.cumsum(dim=1) - placed + self._hidden_bias
        free = torch.argsort(orders, dim=1)[:, None, :] >= places[:, None]  # (n, place, node)
        logits = torch.where(free, self._logits(hidden), -torch.inf)
        return torch.log_softmax(logits, dim=2).gather(2, orders[:, :, None]).sum(dim=(1, 2))

    def _logits(self, hidden: Tensor) -> Tensor:
        return torch.relu(hidden) @ self._output + self._output_bias


class PlackettLuceOrders:
    """Orders drawn node by node with fixed odds: `p(L | theta) = prod_k softmax(theta over the nodes left)[L_k]`.

    Sampled by sorting Gumbel-perturbed logits (Gumbel-top-k). It cannot make the place of a node depend on which nodes
    came before, which is why the paper argues for ARCO.

    Args:
        num_nodes: d.
        device: where to compute, in float64.
    """

    def __init__(self, num_nodes: int, *, device: torch.device | str = "cpu") -> None:
        self._logits = torch.zeros(num_nodes, dtype=torch.float64, device=device, requires_grad=True)
        self.parameters = [self._logits]

    @torch.no_grad()
    def sample(self, n: int, rng: np.random.Generator) -> Tensor:
        """As `OrderModel.sample`."""
        noise = gumbel((n, len(self._logits)), torch_generator(rng, self._logits.device))
        return torch.argsort(self._logits + noise, dim=1, descending=True)

    def log_prob(self, orders: Tensor) -> Tensor:
        """As `OrderModel.log_prob`."""
        chosen = self._logits[orders]
        left = chosen.flip(1).logcumsumexp(dim=1).flip(1)
        return (chosen - left).sum(dim=1)


def gumbel(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Standard Gumbel noise, float64; adding it to logits and taking the largest samples from their softmax."""
    noise = torch.empty(shape, dtype=torch.float64, device=generator.device)
    return -noise.exponential_(generator=generator).log()
