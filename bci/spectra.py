"""Low-rank spectra of kernel matrices and of their derivatives, many parent sets at a time.

The kernel of a parent set S at (lengthscale, gamma) does not depend on the target, so its spectrum serves every
target at once. It is numerically of low rank: a pivoted Cholesky decomposition picks the rows that matter, and all
else happens in matrices of that size, never N x N.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from bci.kernels import rational_quadratic, rational_quadratic_derivatives

_SMALLEST_EIGENVALUE = 1e-12


class Spectrum(NamedTuple):
    """Eigendecomposition of kernel matrices, K ~ U diag(eigenvalues) U^T, and the targets y seen in it.

    Directions outside the span of U have eigenvalue zero; there are N - rank of them.
    """

    eigenvalues: Tensor  # (batch, rank)
    projections: Tensor  # (batch, rank, targets), U^T y
    residual: Tensor  # (batch, targets), |y|^2 outside the span


class SpectrumDerivatives(NamedTuple):
    """U^T (dK) U, each (batch, rank, rank), for the first and second derivatives of `KernelDerivatives`."""

    first: tuple[Tensor, Tensor]
    second: tuple[Tensor, Tensor, Tensor]


def select_pivots(inputs: Tensor, lengthscale: Tensor, gamma: Tensor, tolerance: float) -> Tensor:
    """Rows chosen by a pivoted Cholesky decomposition of unit-variance kernel matrices.

    Harbrecht, Peters & Schneider (2012), "On the low-rank approximation by the pivoted Cholesky decomposition".

    Args:
        inputs: (batch, N, parents).
        lengthscale, gamma: (batch,).
        tolerance: stop when no diagonal entry of the residual is larger.

    Returns:
        (batch, rank) int64 row numbers; -1 pads those that stopped before the slowest of the batch.
    """
    batch, num_rows, _ = inputs.shape
    factor = inputs.new_empty(batch, min(num_rows, 64), num_rows)
    residual = inputs.new_ones(batch, num_rows)
    each = torch.arange(batch, device=inputs.device)
    pivots: list[Tensor] = []
    for step in range(num_rows):
        largest, pivot = residual.max(dim=1)
        active = largest > tolerance
        if not active.any():
            break
        if step == factor.shape[1]:
            factor = torch.cat([factor, torch.empty_like(factor)], dim=1)
        distances = (inputs - inputs[each, pivot][:, None]).square_().sum(dim=2)
        column = rational_quadratic(distances, lengthscale[:, None], gamma[:, None])
        done = factor[:, :step]
        column -= torch.bmm(done[each, :, pivot][:, None], done)[:, 0]
        column *= (active / largest.clamp_min(tolerance).sqrt())[:, None]
        factor[:, step] = column
        residual = (residual - column.square()).clamp_min_(0)
        residual[each, pivot] = torch.where(active, 0.0, residual[each, pivot])
        pivots.append(torch.where(active, pivot, -1))
    return torch.stack(pivots, dim=1)


def kernel_spectrum(inputs: Tensor, targets: Tensor, lengthscale: Tensor, gamma: Tensor, pivots: Tensor) -> Spectrum:
    """Spectra of the kernels of `batch` parent sets, each at its own hyper-parameters.

    Args:
        inputs: (batch, N, parents).
        targets: (N, targets), or (batch, N, targets) where they differ.
        lengthscale, gamma: (batch,).
        pivots: (batch, rank) as `select_pivots` gives.
    """
    chosen, padding = _chosen_rows(inputs, pivots)
    parameters = lengthscale[:, None, None], gamma[:, None, None]
    cross = rational_quadratic(squared_distances(chosen, inputs), *parameters)
    among = rational_quadratic(squared_distances(chosen, chosen), *parameters)
    _isolate_padding(padding, [cross], [among])
    return _decompose(cross, among, padding, targets).spectrum


def kernel_spectrum_derivatives(
    inputs: Tensor, targets: Tensor, lengthscale: Tensor, gamma: Tensor, pivots: Tensor
) -> tuple[Spectrum, SpectrumDerivatives]:
    """As `kernel_spectrum`, with derivatives: those of the low-rank approximation on fixed pivots, within its span.

    With B the chosen rows of the kernel, M the chosen entries and E = M^-1 B U, the low-rank kernel is B^T M^-1 B and
    U^T K_a U = E^T (B_a U - M_a E / 2) + transpose.
    """
    chosen, padding = _chosen_rows(inputs, pivots)
    parameters = lengthscale[:, None, None], gamma[:, None, None]
    cross = rational_quadratic_derivatives(squared_distances(chosen, inputs), *parameters)
    among = rational_quadratic_derivatives(squared_distances(chosen, chosen), *parameters)
    _isolate_padding(padding, [cross.value, *cross.first, *cross.second], [among.value, *among.first, *among.second])
    spectrum, basis, root, solved = _decompose(cross.value, among.value, padding, targets)

    first, gaps = [], []
    for cross_a, among_a in zip(cross.first, among.first, strict=True):
        moved, bent = cross_a @ basis, among_a @ solved
        first.append(_symmetric(solved.mT @ (moved - bent / 2)))
        gaps.append(torch.linalg.solve_triangular(root, moved - bent, upper=False))
    second = []
    for (a, b), cross_ab, among_ab in zip(((0, 0), (0, 1), (1, 1)), cross.second, among.second, strict=True):
        moved = cross_ab @ basis - among_ab @ solved / 2
        second.append(_symmetric(solved.mT @ moved + gaps[a].mT @ gaps[b]))
    return spectrum, SpectrumDerivatives((first[0], first[1]), (second[0], second[1], second[2]))


class _Decomposition(NamedTuple):
    spectrum: Spectrum
    basis: Tensor  # U, (batch, N, rank)
    root: Tensor  # lower Cholesky factor of M, (batch, rank, rank)
    solved: Tensor  # E = M^-1 B U, (batch, rank, rank)


def _decompose(cross: Tensor, among: Tensor, padding: Tensor, targets: Tensor) -> _Decomposition:
    """Spectrum of B^T M^-1 B for B = cross (batch, rank, N) and M = among (batch, rank, rank)."""
    among.diagonal(dim1=-2, dim2=-1).add_(padding + _SMALLEST_EIGENVALUE)
    root = torch.linalg.cholesky(among)
    factor = torch.linalg.solve_triangular(root, cross, upper=False)
    eigenvalues, rotation = torch.linalg.eigh(factor @ factor.mT)
    inside = eigenvalues > _SMALLEST_EIGENVALUE
    eigenvalues = torch.where(inside, eigenvalues, 0.0)
    scale = torch.where(inside, eigenvalues.clamp_min(_SMALLEST_EIGENVALUE).rsqrt(), 0.0)
    basis = factor.mT @ (rotation * scale[:, None, :])
    projections = basis.mT @ targets
    residual = (targets.square().sum(dim=-2) - projections.square().sum(dim=1)).clamp_min(0)
    solved = torch.linalg.solve_triangular(root.mT, rotation * eigenvalues.sqrt()[:, None, :], upper=True)
    return _Decomposition(Spectrum(eigenvalues, projections, residual), basis, root, solved)


def _chosen_rows(inputs: Tensor, pivots: Tensor) -> tuple[Tensor, Tensor]:
    """Inputs of the pivots (batch, rank, parents), and which of them are padding (batch, rank)."""
    each = torch.arange(inputs.shape[0], device=inputs.device)[:, None]
    return inputs[each, pivots.clamp_min(0)], pivots < 0


def _isolate_padding(padding: Tensor, cross: list[Tensor], among: list[Tensor]) -> None:
    """Zero the padded rows of `cross` and the padded rows and columns of `among`, in place."""
    padded_rows = padding[:, :, None]
    padded_entries = padded_rows | padding[:, None, :]
    for matrix in cross:
        matrix.masked_fill_(padded_rows, 0)
    for matrix in among:
        matrix.masked_fill_(padded_entries, 0)


def _symmetric(half: Tensor) -> Tensor:
    return half + half.mT


def squared_distances(first: Tensor, second: Tensor) -> Tensor:
    """(batch, rows of first, rows of second); one input at a time, exact where a product expansion cancels."""
    total = first.new_zeros(first.shape[0], first.shape[1], second.shape[1])
    for column in range(first.shape[2]):
        total += (first[:, :, None, column] - second[:, None, :, column]).square_()
    return total
