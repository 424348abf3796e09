"""One network per node, all computed as one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor


class NodeNetworks:
    """For each of d nodes a ReLU network from its parents' values to its own; other inputs are set to zero.

    Weights and biases start uniform on `+-1 / sqrt(inputs of the layer)`.

    Args:
        num_nodes: d.
        hidden: widths of the hidden layers.
    """

    def __init__(self, num_nodes: int, hidden: Sequence[int], generator: torch.Generator) -> None:
        widths = [num_nodes, *hidden, 1]
        self.weights: list[Tensor] = []
        self.biases: list[Tensor] = []
        for inputs, outputs in pairwise(widths):
            bound = inputs**-0.5
            for shape, group in (((inputs, outputs), self.weights), ((1, outputs), self.biases)):
                values = (2 * torch.rand(num_nodes, *shape, generator=generator) - 1) * bound
                group.append(values.requires_grad_())

    @property
    def parameters(self) -> list[Tensor]:
        return [*self.weights, *self.biases]

    def predict(self, rows: Tensor, dag: Tensor) -> Tensor:
        """(rows, d) from values (rows, d) and one graph (d, d), row causes column."""
        values = rows * dag.T[:, None, :]  # (d, rows, parents)
        last = len(self.weights) - 1
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            values = torch.baddbmm(bias, values, weight)
            if layer < last:
                values = values.relu()
        return values[..., 0].T
