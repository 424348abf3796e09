"""Gaussian-process regression at given hyper-parameters: predictive means and variances at new inputs.

Rasmussen & Williams (2006), chapter 2 for the dense form and section 8.3.4 (projected process) for the low-rank form.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from bci.kernels import rational_quadratic
from bci.pivots import select_pivots, squared_distances

# Up to this number of rows the full kernel matrix is factorised; beyond, its numerical range is. The latter differs by
# up to some 1e-4 in means and 1e-5 in variances of data on the unit scale, far less than what a GP leaves open there.
DENSE_ROWS = 200
_PIVOT_TOLERANCE, _JITTER = 1e-10, 1e-12


@dataclass(frozen=True, eq=False)
class GPRegression(ABC):
    """A zero-mean GP with rational-quadratic kernel and Gaussian noise, given data; made by the functions below."""

    points: Tensor  # (points, parents): rows that new inputs are compared with
    log_parameters: Tensor  # (4,)
    weights: Tensor  # (points,)

    @abstractmethod
    def predict(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Means and variances (m,) of new values at `inputs` (m, parents), noise included."""


def gp_regression(inputs: Tensor, targets: Tensor, log_parameters: Tensor) -> GPRegression:
    """Condition on `targets` (N,) at `inputs` (N, parents), float64.

    Args:
        log_parameters: (4,), logarithms of lengthscale, gamma, outputscale and noise variance.
    """
    condition = dense_regression if len(targets) <= DENSE_ROWS else low_rank_regression
    return condition(inputs, targets, log_parameters)


def dense_regression(inputs: Tensor, targets: Tensor, log_parameters: Tensor) -> GPRegression:
    """As `gp_regression`, without approximation, in O(N^3) and O(N^2) a prediction."""
    _, _, outputscale, noise = log_parameters.exp()
    covariance = outputscale * _kernel(inputs, inputs, log_parameters)
    covariance.diagonal().add_(noise)
    root = torch.linalg.cholesky(covariance)
    weights = outputscale * torch.cholesky_solve(targets[:, None], root)[:, 0]
    return _Dense(inputs, log_parameters, weights, root)


def low_rank_regression(inputs: Tensor, targets: Tensor, log_parameters: Tensor) -> GPRegression:
    """As `gp_regression`, with functions in the span of the kernel's numerical range, O(N r^2) and O(r^2)."""
    _, _, outputscale, noise = log_parameters.exp()
    pivots = select_pivots(inputs[None], log_parameters[None, :2], _PIVOT_TOLERANCE, torch.float64)[0]
    points = inputs[pivots]
    among = _kernel(points, points, log_parameters)
    among.diagonal().add_(_JITTER)
    basis = torch.linalg.cholesky(among)
    features = torch.linalg.solve_triangular(basis, _kernel(points, inputs, log_parameters), upper=False)  # (rank, N)
    precision = features @ features.T
    precision.diagonal().add_(noise / outputscale)
    root = torch.linalg.cholesky(precision)
    weights = torch.cholesky_solve((features @ targets)[:, None], root)[:, 0]
    return _LowRank(points, log_parameters, weights, basis, root)


@dataclass(frozen=True, eq=False)
class _Dense(GPRegression):
    root: Tensor  # (points, points), of the covariance of the targets

    def predict(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        _, _, outputscale, noise = self.log_parameters.exp()
        cross = _kernel(self.points, inputs, self.log_parameters)
        explained = torch.linalg.solve_triangular(self.root, cross, upper=False).square_().sum(dim=0)
        signal = (outputscale - outputscale.square() * explained).clamp_min_(0)
        return self.weights @ cross, signal + noise


@dataclass(frozen=True, eq=False)
class _LowRank(GPRegression):
    basis: Tensor  # (points, points), of the kernel of the points
    root: Tensor  # (points, points), of the precision of the weights, in units of 1 / noise

    def predict(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        _, _, outputscale, noise = self.log_parameters.exp()
        cross = _kernel(self.points, inputs, self.log_parameters)
        features = torch.linalg.solve_triangular(self.basis, cross, upper=False)
        outside = (1 - features.square().sum(dim=0)).clamp_min_(0)
        inside = torch.linalg.solve_triangular(self.root, features, upper=False).square_().sum(dim=0)
        return self.weights @ features, outputscale * outside + noise * (1 + inside)


def _kernel(first: Tensor, second: Tensor, log_parameters: Tensor) -> Tensor:
    """(rows of first, rows of second), unit variance."""
    lengthscale, gamma = log_parameters[:2].exp()
    return rational_quadratic(squared_distances(first[None], second[None])[0], lengthscale, gamma)
