"""What every distribution over causal orders offers."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from torch import Tensor


class OrderModel(Protocol):
    """A distribution over the permutations of d nodes; `orders[n, p]` is the node at place p, causes first."""

    def sample(self, n: int, rng: np.random.Generator) -> Tensor:
        """`n` independent orders, (n, d) int64."""
        ...

    def log_prob(self, orders: Tensor) -> Tensor:
        """Log probabilities (n,) of orders (n, d); over all d! orders they sum to one."""
        ...
