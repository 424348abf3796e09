"""Stochastic-gradient Markov chain Monte Carlo with adaptive step sizes."""

from __future__ import annotations

import math

import torch
from torch import Tensor


class AdamSGMCMC:
    """Sampler of BayesDAG (Annadani et al. 2023, appendix B), with its noise scaled by `scale_noise`.

    With the gradient g of the negative log posterior of all rows, l = sqrt(learning_rate) and beta = (1 - 0.9) / l:

        V <- 0.99 V + 0.01 g^2,  G = 1 / sqrt(1e-8 + sqrt(1e-8 + V)),
        m <- 0.9 m + l G g + scale_noise sqrt(2 l (beta - l / 2)) N(0, 1),  state <- state - l G m.

    Args:
        state: any shape, updated in place.
        learning_rate: at most 0.2 for noise with a positive variance.
    """

    MOMENTUM, DECAY, FLOOR = 0.9, 0.99, 1e-8

    def __init__(self, state: Tensor, *, learning_rate: float, scale_noise: float, generator: torch.Generator) -> None:
        self.state, self._generator = state, generator
        self._step = math.sqrt(learning_rate)
        friction = (1 - self.MOMENTUM) / self._step
        self._noise = scale_noise * math.sqrt(2 * self._step * (friction - self._step / 2))
        self._momentum, self._square = torch.zeros_like(state), torch.zeros_like(state)

    def update(self, gradient: Tensor) -> None:
        """One step, `gradient` as the state."""
        self._square.mul_(self.DECAY).addcmul_(gradient, gradient, value=1 - self.DECAY)
        scale = 1 / (self.FLOOR + (self.FLOOR + self._square).sqrt()).sqrt()
        noise = torch.randn(self.state.shape, dtype=self.state.dtype, generator=self._generator)
        self._momentum.mul_(self.MOMENTUM).addcmul_(scale, gradient, value=self._step).add_(noise, alpha=self._noise)
        self.state.addcmul_(scale, self._momentum, value=-self._step)
