"""Score test for structure that a smooth Gaussian process leaves in its residuals."""

from __future__ import annotations

import torch
from torch import Tensor

from bci.kernels import rational_quadratic
from bci.pivots import squared_distances
from bci.spectra import Spectrum

_MOST_ROWS = 500  # the test takes dense matrices of this size at most


def roughness_score(
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
    inputs, targets, basis = inputs[:, every], targets[every], spectrum.basis[:, every]
    residuals = targets - basis @ (share * spectrum.projections)
    rough = rational_quadratic(
        squared_distances(inputs, inputs), noise.new_tensor(lengthscale), noise.new_tensor(gamma)
    )
    moved = rough @ basis
    inside = basis.mT @ moved
    energy = (residuals * (rough @ residuals)).sum(dim=1) / noise
    trace = inputs.shape[1] - torch.einsum("bjj,bjt->bt", inside, share)
    squares = rough.square().sum(dim=(1, 2))[:, None] + (share * (inside.square() @ share)).sum(dim=1)
    squares -= 2 * torch.einsum("bj,bjt->bt", moved.square().sum(dim=1), share)
    return (energy - trace) / (2 * squares).sqrt()
