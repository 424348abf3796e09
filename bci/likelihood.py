"""GP log marginal likelihood from a spectrum, with its gradient and Hessian in all four hyper-parameters.

Hyper-parameters stand in this order in every last dimension of four, as logarithms:
lengthscale, gamma, outputscale, noise variance.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bci.kernels import LOG_2PI, NOISE_PRIOR, OUTPUTSCALE_PRIOR, rational_quadratic
from bci.newton import QuadraticModel, ascent_step
from bci.pivots import squared_distances
from bci.spectra import Spectrum, SpectrumDerivatives

_STARTING_NOISE = (0.04, 0.2, 0.8)
_LEAST_NOISE = 1e-4  # below, what a low-rank kernel leaves out matters
_LONGEST_STEP = 1.0


def log_marginal_likelihood(spectrum: Spectrum, log_outputscale: Tensor, log_noise: Tensor, num_rows: int) -> Tensor:
    """`log N(y; 0, outputscale K + noise I)`, (batch, targets), for parameters (batch, targets)."""
    noise = log_noise.exp()
    variances = log_outputscale.exp()[:, None, :] * spectrum.eigenvalues[:, :, None] + noise[:, None, :]
    outside = num_rows - spectrum.eigenvalues.shape[1]
    energy = (spectrum.projections.square() / variances).sum(dim=1) + spectrum.residual / noise
    return -0.5 * (energy + variances.log().sum(dim=1) + outside * log_noise + num_rows * LOG_2PI)


def dense_log_marginal_likelihood(inputs: Tensor, targets: Tensor, log_parameters: Tensor) -> Tensor:
    """`log N(y; 0, outputscale K + noise I)` without approximation, in O(N^3).

    Args:
        inputs: (batch, N, parents).
        targets: (batch, N).
        log_parameters: (batch, 4).

    Returns:
        (batch,)
    """
    root = torch.linalg.cholesky(dense_covariance(squared_distances(inputs, inputs), log_parameters))
    solved = torch.cholesky_solve(targets[..., None], root)[..., 0]
    return log_density(targets, solved, log_determinant_of(root))


def dense_covariance(distances: Tensor, log_parameters: Tensor) -> Tensor:
    """`outputscale K + noise I` (batch, N, N) for squared distances (batch, N, N) and parameters (batch, 4)."""
    lengthscale, gamma, outputscale, noise = log_parameters.exp()[:, :, None, None].unbind(dim=1)
    covariance = outputscale * rational_quadratic(distances, lengthscale, gamma)
    covariance.diagonal(dim1=1, dim2=2).add_(noise[:, 0])
    return covariance


def log_density(targets: Tensor, solved: Tensor, log_determinant: Tensor) -> Tensor:
    """`log N(y; 0, A)` (batch,) for targets y and `solved` = A^-1 y, each (batch, N)."""
    return -0.5 * ((targets * solved).sum(dim=1) + log_determinant + targets.shape[1] * LOG_2PI)


def cholesky(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Lower Cholesky factors of matrices (batch, n, n), and which failed (batch,); those have the identity instead."""
    root, info = torch.linalg.cholesky_ex(matrix)
    failed = info > 0
    if failed.any():
        root[failed] = torch.eye(matrix.shape[1]).to(root)
    return root, failed


def log_determinant_of(root: Tensor) -> Tensor:
    """Log determinants (batch,) of the matrices with Cholesky factors `root` (batch, n, n)."""
    return 2 * root.diagonal(dim1=1, dim2=2).log().sum(dim=1)


def best_outputscale_and_noise(
    spectrum: Spectrum, num_rows: int, likelihood_weight: float, *, max_steps: int = 50, tolerance: float = 1e-3
) -> tuple[Tensor, Tensor]:
    """Maximise `likelihood_weight * log likelihood + log prior` over outputscale and noise variance, down to 1e-4.

    Newton steps in their logarithms, from the best of several starting noise variances.

    Returns:
        Logarithms of outputscale and noise variance, each (batch, targets).
    """
    log_outputscale = torch.full_like(spectrum.residual, OUTPUTSCALE_PRIOR.mode).log()
    log_noise, highest = log_outputscale, torch.full_like(log_outputscale, -torch.inf)
    for start in _STARTING_NOISE:
        candidate = torch.full_like(log_outputscale, start).log()
        value = likelihood_weight * log_marginal_likelihood(spectrum, log_outputscale, candidate, num_rows)
        value += NOISE_PRIOR.log_density(candidate)
        log_noise = torch.where(value > highest, candidate, log_noise)
        highest = torch.maximum(value, highest)

    for _ in range(max_steps):
        gradient, hessian = _noise_derivatives(spectrum, log_outputscale, log_noise, num_rows)
        gradient, hessian = likelihood_weight * gradient, likelihood_weight * hessian
        for index, (prior, parameter) in enumerate(((OUTPUTSCALE_PRIOR, log_outputscale), (NOISE_PRIOR, log_noise))):
            gradient[..., index] += prior.shape - 1 - prior.rate * parameter.exp()
            hessian[..., index, index] -= prior.rate * parameter.exp()
        step = ascent_step(gradient, hessian).clamp(-_LONGEST_STEP, _LONGEST_STEP)
        log_outputscale = log_outputscale + step[..., 0]
        log_noise = (log_noise + step[..., 1]).clamp_min(math.log(_LEAST_NOISE))
        if step.abs().max() < tolerance:
            break
    return log_outputscale, log_noise


def expand_likelihood(
    spectrum: Spectrum,
    derivatives: SpectrumDerivatives,
    log_kernel_parameters: Tensor,
    log_outputscale: Tensor,
    log_noise: Tensor,
    num_rows: int,
) -> QuadraticModel:
    """The log marginal likelihood to second order in all four log hyper-parameters.

    Rasmussen & Williams (2006), eq. 5.9, and its derivative, in the eigenbasis of the kernel.

    Args:
        log_kernel_parameters: (batch, 2), where the spectra were taken.
        log_outputscale, log_noise: (batch, targets).
    """
    eigenvalues = spectrum.eigenvalues[:, :, None]
    scale = log_outputscale.exp()[:, None, :]
    precision = 1 / (scale * eigenvalues + log_noise.exp()[:, None, :])
    solved = spectrum.projections * precision  # U^T A^-1 y
    share = scale * eigenvalues * precision  # of the signal in each direction's variance
    scale = scale[:, 0]

    batch, targets = log_noise.shape
    gradient = spectrum.residual.new_empty(batch, targets, 4)
    hessian = spectrum.residual.new_empty(batch, targets, 4, 4)
    gradient[..., 2:], hessian[..., 2:, 2:] = _noise_derivatives(spectrum, log_outputscale, log_noise, num_rows)
    images = [matrix @ solved for matrix in derivatives.first]
    for a, (matrix, image) in enumerate(zip(derivatives.first, images, strict=True)):
        diagonal = matrix.diagonal(dim1=1, dim2=2)[:, :, None]
        forms, traces = image * solved, precision * diagonal
        gradient[..., a] = scale / 2 * (forms - traces).sum(dim=1)
        in_signal = scale * (share * (traces / 2 - forms)).sum(dim=1)
        overall = scale * (traces / 2 - forms).sum(dim=1)
        hessian[..., a, 2] = hessian[..., 2, a] = gradient[..., a] + in_signal
        hessian[..., a, 3] = hessian[..., 3, a] = overall - in_signal
    for (a, b), product in zip(((0, 0), (0, 1), (1, 1)), derivatives.second, strict=True):
        curvature = product.forms(solved) - (precision * product.diagonal()[:, :, None]).sum(dim=1)
        products = ((derivatives.first[a] * derivatives.first[b]) @ precision) * precision / 2
        products -= images[a] * precision * images[b]
        hessian[..., a, b] = hessian[..., b, a] = scale / 2 * curvature + scale.square() * products.sum(dim=1)

    centre = torch.empty_like(gradient)
    centre[..., :2] = log_kernel_parameters[:, None, :]
    centre[..., 2], centre[..., 3] = log_outputscale, log_noise
    value = log_marginal_likelihood(spectrum, log_outputscale, log_noise, num_rows)
    return QuadraticModel(centre, value, gradient, hessian)


def _noise_derivatives(
    spectrum: Spectrum, log_outputscale: Tensor, log_noise: Tensor, num_rows: int
) -> tuple[Tensor, Tensor]:
    """Gradient (batch, targets, 2) and Hessian (batch, targets, 2, 2) in log outputscale and log noise."""
    noise = log_noise.exp()
    signal = log_outputscale.exp()[:, None, :] * spectrum.eigenvalues[:, :, None]
    total = signal + noise[:, None, :]
    share = signal / total
    ratio = spectrum.projections.square() / total
    share_ratio = share * ratio
    # Sums over directions of s, s^2, t, s t, s^2 t, with s the share of the signal, t the ratio power / variance.
    s, s2 = share.sum(dim=1), share.square().sum(dim=1)
    t, st, s2t = ratio.sum(dim=1), share_ratio.sum(dim=1), (share * share_ratio).sum(dim=1)
    outside = spectrum.residual / noise
    rank = spectrum.eigenvalues.shape[1]
    gradient = torch.stack([st - s, t - rank - st + s + outside - (num_rows - rank)], dim=-1) / 2
    mixed = s - s2 - 2 * st + 2 * s2t
    diagonal_outputscale = st - 2 * s2t - s + s2
    diagonal_noise = 3 * st - t - 2 * s2t - s + s2 - outside
    hessian = torch.stack([diagonal_outputscale, mixed, mixed, diagonal_noise], dim=-1) / 2
    return gradient, hessian.reshape(*hessian.shape[:-1], 2, 2)
