"""Rows of the inputs whose kernel columns span a kernel matrix numerically, many parent sets at a time.

The kernels here are numerically of low rank: a pivoted Cholesky decomposition picks the rows that matter, and all else
happens in matrices of that size. With C the chosen rows of the kernel matrix, M the chosen rows and columns,
K ~ C^T M^-1 C.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor

_JITTER = 1e-12  # on unit diagonals, against rounding


class PivotDistances(NamedTuple):
    """Squared distances from the chosen rows to all rows and among the chosen ones."""

    cross: Tensor  # (batch, rank, N)
    among: Tensor  # (batch, rank, rank)
    padding: Tensor  # (batch, rank) bool, true where a smaller rank is padded

    def isolate_padding(self, cross: Iterable[Tensor], among: Iterable[Tensor]) -> None:
        """Zero the padded rows of matrices like `cross`, and the padded rows and columns of those like `among`."""
        if not self.padding.any():
            return
        padded_rows = self.padding[:, :, None]
        for matrix in cross:
            matrix.masked_fill_(padded_rows, 0)
        padded_entries = padded_rows | self.padding[:, None, :]
        for matrix in among:
            matrix.masked_fill_(padded_entries, 0)

    def cholesky(self, among: Tensor) -> Tensor:
        """Lower Cholesky factor of M = `among`, whose diagonal changes in place: ones in the padding, a jitter."""
        among.diagonal(dim1=1, dim2=2).add_(self.padding + _JITTER)
        root: Tensor = torch.linalg.cholesky(among)
        return root


def select_pivots(
    inputs: Tensor,
    log_kernel_parameters: Tensor,
    tolerance: float,
    precision: torch.dtype = torch.float32,
    most: int | None = None,
) -> Tensor:
    """Rows chosen by a pivoted Cholesky decomposition of unit-variance rational-quadratic kernel matrices.

    Harbrecht, Peters & Schneider (2012), "On the low-rank approximation by the pivoted Cholesky decomposition".

    Args:
        inputs: (batch, N, parents).
        log_kernel_parameters: (batch, 2), logarithms of lengthscale and gamma.
        tolerance: stop when no diagonal entry of the residual is larger.
        precision: of the residual; single carries tolerances from about 1e-6 on, and halves the traffic that the
            loop is made of.
        most: stop at this number of rows at the latest; None for no limit.

    Returns:
        (batch, rank) int64 row numbers; -1 pads those that stopped before the slowest of the batch.
    """
    batch, num_rows, num_inputs = inputs.shape
    lengthscale, gamma = log_kernel_parameters.exp().unbind(dim=1)
    scale = lengthscale * (2 * gamma).sqrt()
    points = (inputs / scale[:, None, None]).to(precision).mT.contiguous()  # (batch, parents, N)
    power = -gamma[:, None].to(points.dtype)
    factor = points.new_empty(batch, min(num_rows, 64), num_rows)
    residual = points.new_ones(batch, num_rows)
    pivots: list[Tensor] = []
    for step in range(num_rows if most is None else min(most, num_rows)):
        largest, pivot = residual.max(dim=1)
        active = largest > tolerance
        if not active.any():
            break
        if step == factor.shape[1]:
            factor = torch.cat([factor, torch.empty_like(factor)], dim=1)
        at_pivot = pivot[:, None, None]
        distances = (points - points.gather(2, at_pivot.expand(-1, num_inputs, -1))).square_().sum(dim=1)
        column = distances.log1p_().mul_(power).exp_()
        if step > 0:
            done = factor[:, :step]
            column[:, None].baddbmm_(done.gather(2, at_pivot.expand(-1, step, -1)).mT, done, alpha=-1)
        column *= (active / largest.clamp_min(tolerance).sqrt())[:, None]
        factor[:, step] = column
        residual = residual.addcmul_(column, column, value=-1).clamp_min_(0)
        residual.scatter_(1, pivot[:, None], 0)
        pivots.append(torch.where(active, pivot, -1))
    return torch.stack(pivots, dim=1)


def pivot_distances(inputs: Tensor, pivots: Tensor) -> PivotDistances:
    """Distances for inputs (batch, N, parents) and pivots (batch, rank) as `select_pivots` gives."""
    each = torch.arange(inputs.shape[0], device=inputs.device)[:, None]
    chosen = inputs[each, pivots.clamp_min(0)]
    return PivotDistances(squared_distances(chosen, inputs), squared_distances(chosen, chosen), pivots < 0)


def squared_distances(first: Tensor, second: Tensor) -> Tensor:
    """(batch, rows of first, rows of second); one input at a time, exact where a product expansion cancels."""
    total = first.new_zeros(first.shape[0], first.shape[1], second.shape[1])
    for column in range(first.shape[2]):
        total += (first[:, :, None, column] - second[:, None, :, column]).square_()
    return total
