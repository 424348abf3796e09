"""GP log marginal likelihood of single (parent set, target) pairs at given hyper-parameters, with its gradient.

Two ways to the same `Expansion`: dense covariance matrices, best for few rows, and low-rank ones for many.
Hyper-parameters stand in this order in every last dimension of four, as logarithms:
lengthscale, gamma, outputscale, noise variance.
"""

from __future__ import annotations

import torch
from torch import Tensor

from bci.kernels import rational_quadratic_first_derivatives
from bci.likelihood import cholesky, log_density, log_determinant_of
from bci.newton import QuadraticModel
from bci.pivots import pivot_distances, squared_distances


def dense_expansion(inputs: Tensor, targets: Tensor, log_parameters: Tensor) -> QuadraticModel:
    """Value and gradient of the log marginal likelihood, and minus the average information for its Hessian.

    The value is -inf where rounding leaves the covariance not positive definite.

    The average information is the mean of the observed and the expected one: `(A_a s)^T A^-1 (A_b s) / 2` for
    parameters a, b and s = A^-1 y. It needs no product of matrices and is never indefinite. Gilmour, Thompson &
    Cullis (1995), "Average information REML".
    Args:
        inputs: (batch, N, parents).
        targets: (batch, N).
        log_parameters: (batch, 4).
    """
    lengthscale, gamma, outputscale, noise = log_parameters.exp()[:, :, None, None].unbind(dim=1)
    kernel, first = rational_quadratic_first_derivatives(squared_distances(inputs, inputs), lengthscale, gamma)
    covariance = kernel.mul_(outputscale)
    covariance.diagonal(dim1=1, dim2=2).add_(noise[:, 0])
    root, failed = cholesky(covariance)
    inverse = torch.cholesky_inverse(root)
    solved = inverse @ targets[..., None]
    images = torch.cat([outputscale * (matrix @ solved) for matrix in first], dim=2)
    traces = torch.stack([(inverse * matrix).sum(dim=(1, 2)) for matrix in first], dim=1) * outputscale[:, 0]
    noise_trace = noise[:, 0] * inverse.diagonal(dim1=1, dim2=2).sum(dim=1, keepdim=True)

    moved = torch.cat([images, targets[..., None] - noise * solved, noise * solved], dim=2)  # A_a s, (batch, N, 4)
    traces = torch.cat([traces, targets.shape[1] - noise_trace, noise_trace], dim=1)  # tr(A^-1 A_a)
    value = log_density(targets, solved[..., 0], log_determinant_of(root))
    gradient = ((moved.mT @ solved)[..., 0] - traces) / 2
    return QuadraticModel(
        log_parameters, value.masked_fill(failed, -torch.inf), gradient, moved.mT @ (inverse @ moved) / -2
    )


def low_rank_expansion(inputs: Tensor, targets: Tensor, log_parameters: Tensor, pivots: Tensor) -> QuadraticModel:
    """As `dense_expansion` for the kernel that the rows `pivots` (batch, rank) span, in O(N rank^2).

    With M = L L^T, F = L^-1 C and B = noise I + outputscale F F^T, A^-1 = (I - outputscale F^T B^-1 F) / noise, and
    with W = M^-1 C the derivatives of the kernel are W^T C_a + C_a^T W - W^T M_a W.
    """
    lengthscale, gamma, outputscale, noise = log_parameters.exp()[:, :, None, None].unbind(dim=1)
    distances = pivot_distances(inputs, pivots)
    cross, cross_first = rational_quadratic_first_derivatives(distances.cross, lengthscale, gamma)
    among, among_first = rational_quadratic_first_derivatives(distances.among, lengthscale, gamma)
    distances.isolate_padding([cross, *cross_first], [among, *among_first])
    root = distances.cholesky(among)
    factor = torch.linalg.solve_triangular(root, cross, upper=False)
    inner = outputscale * (factor @ factor.mT)
    inner.diagonal(dim1=1, dim2=2).add_(noise[:, 0])
    inner_root, failed = cholesky(inner)
    inner_inverse = torch.cholesky_inverse(inner_root)

    def solve(right: Tensor) -> Tensor:
        fitted: Tensor = outputscale * (factor.mT @ (inner_inverse @ (factor @ right)))
        return (right - fitted) / noise

    def weigh(right: Tensor) -> Tensor:  # W right, for F right
        weighed: Tensor = torch.linalg.solve_triangular(root.mT, right, upper=True)
        return weighed

    solved = solve(targets[..., None])
    weights = weigh(factor @ solved)  # W s
    projected = weigh(inner_inverse) @ factor  # W A^-1
    shrunk = weigh(weigh(torch.eye(pivots.shape[1]).to(inner) - noise * inner_inverse).mT)  # outputscale W A^-1 W^T
    images, traces = [], []
    for cross_a, among_a in zip(cross_first, among_first, strict=True):
        bent = torch.linalg.solve_triangular(root, cross_a @ solved - among_a @ weights, upper=False)
        images.append(outputscale * (cross_a.mT @ weights + factor.mT @ bent))
        across = (cross_a * projected).sum(dim=(1, 2)) * 2 * outputscale[:, 0, 0]
        traces.append(across - (among_a * shrunk).sum(dim=(1, 2)))
    spare = targets.shape[1] - pivots.shape[1]
    noise_trace = spare + noise[:, 0] * inner_inverse.diagonal(dim1=1, dim2=2).sum(dim=1, keepdim=True)
    moved = torch.cat([*images, targets[..., None] - noise * solved, noise * solved], dim=2)
    all_traces = torch.cat([torch.stack(traces, dim=1), targets.shape[1] - noise_trace, noise_trace], dim=1)
    log_determinant = log_determinant_of(inner_root) + spare * log_parameters[:, 3]
    value = log_density(targets, solved[..., 0], log_determinant)
    gradient = ((moved.mT @ solved)[..., 0] - all_traces) / 2
    return QuadraticModel(log_parameters, value.masked_fill(failed, -torch.inf), gradient, moved.mT @ solve(moved) / -2)
