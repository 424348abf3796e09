"""Score test for structure that a smooth Gaussian process leaves in its residuals."""

from __future__ import annotations

import torch
from torch import Tensor

from bci.kernels import rational_quadratic
from bci.likelihood import cholesky, dense_covariance
from bci.pivots import squared_distances
from bci.spectra import Spectrum

_LEAST_VARIANCE = 1e-12  # where rounding leaves none
_MOST_ROWS = 500  # the test takes dense matrices of this size at most


def shared_roughness(
    inputs: Tensor,
    targets: Tensor,
    spectrum: Spectrum,
    log_outputscale: Tensor,
    log_noise: Tensor,
    lengthscale: float,
    gamma: float,
) -> Tensor:
    """Standardised score of adding a kernel R at (lengthscale, gamma) to the covariance A of `spectrum`.

    `(s^T R s - tr(A^-1 R)) / sqrt(2 tr(A^-1 R A^-1 R))` with s = A^-1 y: about standard normal where the targets y
    come from N(0, A), large where they vary within shorter distances. Lin (1997), "Variance component testing in
    generalised linear models with random effects". Of many rows an even choice has the rough component.

    Args:
        inputs: (batch, N, parents).
        targets: (N, targets).
        log_outputscale, log_noise: (batch, targets).

    Returns:
        (batch, targets)
    """
    noise = log_noise.exp()
    signal = log_outputscale.exp()[:, None, :] * spectrum.eigenvalues[:, :, None]
    share = signal / (signal + noise[:, None, :])  # A^-1 = (I - U share U^T) / noise
    every = slice(None, None, -(-len(targets) // _MOST_ROWS))
    inputs, basis = inputs[:, every], spectrum.basis[:, every]
    residuals = targets[every] - basis @ (share * spectrum.projections)
    # A test needs no double precision from here on.
    inputs, basis, residuals, share = (part.float() for part in (inputs, basis, residuals, share))
    rough = rational_quadratic(
        squared_distances(inputs, inputs), inputs.new_tensor(lengthscale), inputs.new_tensor(gamma)
    )
    moved = rough @ basis
    inside = basis.mT @ moved
    energy = (residuals * (rough @ residuals)).sum(dim=1) / noise
    trace = inputs.shape[1] - torch.einsum("bjj,bjt->bt", inside, share)
    squares = rough.square().sum(dim=(1, 2))[:, None] + (share * (inside.square() @ share)).sum(dim=1)
    squares -= 2 * torch.einsum("bj,bjt->bt", moved.square().sum(dim=1), share)
    return (energy - trace) / (2 * squares).clamp_min(_LEAST_VARIANCE).sqrt()


def pair_roughness(inputs: Tensor, targets: Tensor, log_parameters: Tensor, lengthscale: float, gamma: float) -> Tensor:
    """The score of `shared_roughness` for pairs with covariances A at parameters of their own, without low rank.

    Args:
        inputs: (batch, N, parents).
        targets: (batch, N).
        log_parameters: (batch, 4).

    Returns:
        (batch,)
    """
    # A test needs no double precision.
    inputs, targets, log_parameters = inputs.float(), targets.float(), log_parameters.float()
    distances = squared_distances(inputs, inputs)
    root, failed = cholesky(dense_covariance(distances, log_parameters))
    inverse = torch.cholesky_inverse(root)
    rough = rational_quadratic(distances, inputs.new_tensor(lengthscale), inputs.new_tensor(gamma))
    solved = inverse @ targets[..., None]
    energy = (solved * (rough @ solved)).sum(dim=(1, 2))
    weighted = inverse @ rough
    squares = (weighted * weighted.mT).sum(dim=(1, 2))
    score = (energy - weighted.diagonal(dim1=1, dim2=2).sum(dim=1)) / (2 * squares).sqrt()
    return score.masked_fill(failed, torch.inf).double()
