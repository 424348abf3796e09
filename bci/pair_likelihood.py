"""GP log marginal likelihood of single (parent set, target) pairs at given hyper-parameters, with its gradient.

Hyper-parameters stand in this order in every last dimension of four, as logarithms:
lengthscale, gamma, outputscale, noise variance.
"""

from __future__ import annotations

import torch
from torch import Tensor

from bci.kernels import rational_quadratic_first_derivatives
from bci.likelihood import cholesky, log_density, log_determinant_of
from bci.newton import QuadraticModel
from bci.pivots import squared_distances


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
