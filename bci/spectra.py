"""Low-rank spectra of kernel matrices and of their derivatives, many parent sets at a time.

The kernel of a parent set S at (lengthscale, gamma) does not depend on the target, so its spectrum serves every
target at once.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from bci.kernels import rational_quadratic_derivatives
from bci.pivots import pivot_distances

_SMALLEST_EIGENVALUE = 1e-12


class Spectrum(NamedTuple):
    """Eigendecomposition of kernel matrices, K ~ U diag(eigenvalues) U^T, and the targets y seen in it.

    Directions outside the span of U have eigenvalue zero; there are N - rank of them.
    """

    eigenvalues: Tensor  # (batch, rank)
    basis: Tensor  # U, (batch, N, rank)
    projections: Tensor  # U^T y, (batch, rank, targets)
    residual: Tensor  # |y|^2 outside the span, (batch, targets)

    def without_signal(self, where: Tensor, power: float) -> Spectrum:
        """With all of |y|^2 = `power` outside the span, for the pairs of the mask `where` (batch, targets)."""
        return self._replace(
            projections=self.projections.masked_fill(where[:, None, :], 0),
            residual=self.residual.masked_fill(where, power),
        )


class SymmetricProduct(NamedTuple):
    """The sum of `left^T right + right^T left` over pairs of matrices (batch, n, rank).

    Only diagonals and quadratic forms of it are needed.
    """

    pairs: tuple[tuple[Tensor, Tensor], ...]

    def diagonal(self) -> Tensor:
        """(batch, rank)"""
        return 2 * torch.stack([(left * right).sum(dim=1) for left, right in self.pairs]).sum(dim=0)

    def forms(self, vectors: Tensor) -> Tensor:
        """Quadratic forms (batch, m) of vectors (batch, rank, m)."""
        forms = [((left @ vectors) * (right @ vectors)).sum(dim=1) for left, right in self.pairs]
        return 2 * torch.stack(forms).sum(dim=0)


class SpectrumDerivatives(NamedTuple):
    """U^T (dK) U for the first and second derivatives of `KernelDerivatives`."""

    first: tuple[Tensor, Tensor]  # (batch, rank, rank)
    second: tuple[SymmetricProduct, SymmetricProduct, SymmetricProduct]


def kernel_spectrum(
    inputs: Tensor, targets: Tensor, log_kernel_parameters: Tensor, pivots: Tensor
) -> tuple[Spectrum, SpectrumDerivatives]:
    """Spectra of the kernels of `batch` parent sets, each at its own hyper-parameters, with their derivatives.

    The derivatives are those of the low-rank approximation on fixed pivots, within its span. With C the chosen rows of
    the kernel, M the chosen entries and E = M^-1 C U, the low-rank kernel is C^T M^-1 C and
    U^T K_a U = E^T (C_a U - M_a E / 2) + transpose.

    Args:
        inputs: (batch, N, parents).
        targets: (N, targets).
        log_kernel_parameters: (batch, 2), logarithms of lengthscale and gamma.
        pivots: (batch, rank) as `select_pivots` gives.
    """
    distances = pivot_distances(inputs, pivots)
    lengthscale, gamma = log_kernel_parameters.exp()[:, :, None, None].unbind(dim=1)
    cross = rational_quadratic_derivatives(distances.cross, lengthscale, gamma)
    among = rational_quadratic_derivatives(distances.among, lengthscale, gamma)
    distances.isolate_padding([cross.value, *cross.first, *cross.second], [among.value, *among.first, *among.second])
    root = distances.cholesky(among.value)
    spectrum, solved = _decompose(cross.value, root, targets)

    first, gaps = [], []
    for cross_a, among_a in zip(cross.first, among.first, strict=True):
        moved, bent = cross_a @ spectrum.basis, among_a @ solved
        half = solved.mT @ torch.sub(moved, bent, alpha=0.5)
        first.append(half + half.mT)
        gaps.append(torch.linalg.solve_triangular(root, moved - bent, upper=False))
    second = []
    for (a, b), cross_ab, among_ab in zip(((0, 0), (0, 1), (1, 1)), cross.second, among.second, strict=True):
        moved = torch.baddbmm(cross_ab @ spectrum.basis, among_ab, solved, alpha=-0.5)
        second.append(SymmetricProduct(((solved, moved), (gaps[a], gaps[b]))))
    return spectrum, SpectrumDerivatives((first[0], first[1]), (second[0], second[1], second[2]))


def _decompose(cross: Tensor, root: Tensor, targets: Tensor) -> tuple[Spectrum, Tensor]:
    """Spectrum of C^T M^-1 C for C = cross (batch, rank, N) and M = root root^T, and E = M^-1 C U."""
    factor = torch.linalg.solve_triangular(root, cross, upper=False)
    eigenvalues, rotation = torch.linalg.eigh(factor @ factor.mT)
    inside = eigenvalues > _SMALLEST_EIGENVALUE
    eigenvalues = torch.where(inside, eigenvalues, 0.0)
    scale = torch.where(inside, eigenvalues.clamp_min(_SMALLEST_EIGENVALUE).rsqrt(), 0.0)
    basis = factor.mT @ (rotation * scale[:, None, :])
    projections = basis.mT @ targets
    residual = (targets.square().sum(dim=0) - projections.square().sum(dim=1)).clamp_min(0)
    solved = torch.linalg.solve_triangular(root.mT, rotation * eigenvalues.sqrt()[:, None, :], upper=True)
    return Spectrum(eigenvalues, basis, projections, residual), solved
