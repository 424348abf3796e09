"""Mechanisms of all nodes as one network that adds up messages of parents."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import leaky_relu

_NORM_FLOOR = 1e-5  # added to a variance


class _Part(NamedTuple):
    """Shape of a parameter, and its start: a mean, with normal noise of this deviation or uniform on +- `bound`."""

    shape: tuple[int, ...]
    deviation: float = 0.0
    bound: float = 0.0
    mean: float = 0.0


class MessageNetworks:
    """`x_i = f(e_i, sum_k A_ki w_ki g(e_k, x_k))`, embeddings e, weights w, networks g and f (BayesDAG, appendix B).

    g and f have one hidden layer of `max(4 d, 64)` leaky ReLUs. As in the authors' program, x_k enters g by weights of
    its own and f has an output of its own for every node; all else is shared. Every chain has its own parameters, kept
    as one vector.

    Args:
        norm_layers: the hidden layers are normalised (Ba, Kiros & Hinton 2016), with a learnt scale and shift.
    """

    def __init__(self, num_nodes: int, *, norm_layers: bool) -> None:
        self.num_nodes = num_nodes
        width = hidden = max(4 * num_nodes, 64)
        into_layer, into_output = 1 / math.sqrt(2 * num_nodes), 1 / math.sqrt(width)
        self._parts = {
            "embedding": _Part((num_nodes, num_nodes), deviation=0.01),
            "weight": _Part((num_nodes, num_nodes), deviation=0.1),
            "g_value": _Part((num_nodes, hidden), bound=into_layer),
            "g_embedding": _Part((num_nodes, hidden), bound=into_layer),
            "g_bias": _Part((1, hidden), bound=into_layer),
            "g_output": _Part((hidden, num_nodes), bound=into_output),
            "g_output_bias": _Part((1, num_nodes), bound=into_output),
            "f_sum": _Part((num_nodes, hidden), bound=into_layer),
            "f_embedding": _Part((num_nodes, hidden), bound=into_layer),
            "f_bias": _Part((1, hidden), bound=into_layer),
            "f_output": _Part((num_nodes, hidden), bound=into_output),
            "f_output_bias": _Part((num_nodes, 1), bound=into_output),
        }
        if norm_layers:
            for network in ("g", "f"):
                self._parts[f"{network}_scale"] = _Part((1, hidden), mean=1.0)
                self._parts[f"{network}_shift"] = _Part((1, hidden))
        self._norm_layers = norm_layers
        self._no_loops = 1 - torch.eye(num_nodes)

    def start(self, chains: int, generator: torch.Generator) -> Tensor:
        """(chains, parameters)"""
        groups = []
        for part in self._parts.values():
            shape = (chains, math.prod(part.shape))
            normal = part.deviation * torch.randn(shape, generator=generator)
            groups.append(part.mean + normal + part.bound * (2 * torch.rand(shape, generator=generator) - 1))
        return torch.cat(groups, dim=1)

    def predict(self, parameters: Tensor, values: Tensor, graphs: Tensor) -> Tensor:
        """(chains, d, rows) from parameters (chains, parameters), values (d, rows) and graphs (chains, d, d)."""
        sizes = [math.prod(part.shape) for part in self._parts.values()]
        part = {
            name: piece.view(-1, *self._parts[name].shape)
            for name, piece in zip(self._parts, torch.split(parameters, sizes, dim=1), strict=True)
        }
        chains, nodes, rows = len(parameters), *values.shape
        batches = chains * nodes
        # With a column of ones: a product of matrices is cheaper than a sum of large arrays, most of all backwards.
        one = values.new_ones(nodes, rows, 1)
        shift = torch.baddbmm(part["g_bias"], part["embedding"], part["g_embedding"])
        inputs = torch.cat([values[:, :, None], one], dim=2).expand(chains, -1, -1, -1).reshape(batches, rows, 2)
        hidden = inputs @ torch.stack([part["g_value"], shift], dim=2).flatten(0, 1)
        hidden = leaky_relu(hidden, inplace=True).view(chains, nodes * rows, -1)
        if self._norm_layers:
            shift = torch.baddbmm(part["g_output_bias"], part["g_shift"], part["g_output"])
            messages = _NormalisedProduct.apply(hidden, part["g_scale"].mT * part["g_output"]) + shift  # type: ignore[no-untyped-call]
        else:
            messages = torch.baddbmm(part["g_output_bias"], hidden, part["g_output"])
        weights = graphs * part["weight"] * self._no_loops
        sums = (weights.mT @ messages.view(chains, nodes, -1)).view(batches, rows, nodes)  # over parents
        shift = torch.baddbmm(part["f_bias"], part["embedding"], part["f_embedding"])
        inputs = torch.cat([sums, one.expand(chains, -1, -1, -1).reshape(batches, rows, 1)], dim=2)
        into_hidden = part["f_sum"][:, None].expand(-1, nodes, -1, -1)
        hidden = inputs @ torch.cat([into_hidden, shift[:, :, None]], dim=2).flatten(0, 1)
        hidden = leaky_relu(hidden, inplace=True).view(chains, nodes, rows, -1)
        if self._norm_layers:
            shift = torch.baddbmm(part["f_output_bias"], part["f_output"], part["f_shift"].mT)
            scaled = part["f_scale"] * part["f_output"]
            weighted = _NormalisedProduct.apply(hidden, scaled[..., None])[..., 0]  # type: ignore[no-untyped-call]
        else:
            shift = part["f_output_bias"]
            weighted = _Weighted.apply(hidden, part["f_output"])  # type: ignore[no-untyped-call]
        predicted: Tensor = weighted + shift
        return predicted


class _Weighted(torch.autograd.Function):
    """`sum_h values[..., r, h] weights[..., h]`; a product of matrices with a derivative that costs a third."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, weights: Tensor) -> Tensor:  # noqa: ANN401
        ctx.save_for_backward(values, weights)
        return (values @ weights[..., None])[..., 0]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None]:  # noqa: ANN401
        values, weights = ctx.saved_tensors
        of_values = gradient[..., None] * weights[..., None, :] if ctx.needs_input_grad[0] else None
        of_weights = (gradient[..., None, :] @ values)[..., 0, :] if ctx.needs_input_grad[1] else None
        return of_values, of_weights


class _NormalisedProduct(torch.autograd.Function):
    """`layer_norm(values) @ weights` of (..., r, h) and (..., h, m), without the array of normalised values.

    Centred weights take the mean out of the product; the deviation divides it.
    """

    @staticmethod
    def forward(ctx: Any, values: Tensor, weights: Tensor) -> Tensor:  # noqa: ANN401
        # Much faster than torch.var_mean; the mean of leaky ReLUs is about their deviation, so no digits are lost.
        mean = values.mean(dim=-1, keepdim=True)
        square = torch.linalg.vector_norm(values, dim=-1, keepdim=True).square() / values.shape[-1]
        scale = ((square - mean.square()).clamp(min=0) + _NORM_FLOOR).rsqrt()
        weights = weights - weights.mean(dim=-2, keepdim=True)
        product: Tensor = (values @ weights) * scale
        ctx.save_for_backward(values, weights, mean, scale, product)
        return product

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None]:  # noqa: ANN401
        values, weights, mean, scale, product = ctx.saved_tensors
        scaled = gradient * scale
        of_values = of_weights = None
        if ctx.needs_input_grad[0]:
            slope = (gradient * product).sum(dim=-1, keepdim=True).mul_(scale.square()).div_(-values.shape[-1])
            of_values = scaled * weights.mT if weights.shape[-1] == 1 else scaled @ weights.mT
            of_values = of_values.addcmul_(values, slope).sub_(mean * slope)
        if ctx.needs_input_grad[1]:
            of_weights = values.mT @ scaled
            of_weights = of_weights - of_weights.mean(dim=-2, keepdim=True)
        return of_values, of_weights
