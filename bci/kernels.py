"""The Gaussian-process mechanism: rational-quadratic kernel, its hyper-parameter priors, and the root model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

LOG_2PI = math.log(2 * math.pi)


@dataclass(frozen=True)
class Gamma:
    """Gamma distribution with `shape` and `rate`; densities are per unit of the variable, not of its logarithm."""

    shape: float
    rate: float

    @property
    def mode(self) -> float:
        """Where the density peaks; needs shape > 1."""
        return (self.shape - 1) / self.rate

    def log_density(self, log_value: Tensor) -> Tensor:
        """Log density at exp(`log_value`), elementwise."""
        constant = self.shape * math.log(self.rate) - math.lgamma(self.shape)
        return constant + (self.shape - 1) * log_value - self.rate * log_value.exp()


# Priors for inference; paper, appendix on GP mechanisms.
OUTPUTSCALE_PRIOR = Gamma(100, 10)
SHAPE_PRIOR = Gamma(20, 10)
NOISE_PRIOR = Gamma(2, 8)


def lengthscale_prior(num_parents: int) -> Gamma:
    """Prior of the lengthscale shared by all inputs; its mode grows with their number."""
    return Gamma(30 * num_parents, 30)


def rational_quadratic(squared_distances: Tensor, lengthscale: Tensor, gamma: Tensor) -> Tensor:
    """`(1 + r^2 / (2 gamma lengthscale^2))^(-gamma)` for squared distances r^2, elementwise with broadcasting.

    The unit-variance kernel; the GP's covariance is outputscale times this.
    """
    return torch.exp(-gamma * torch.log1p(squared_distances / (2 * gamma * lengthscale**2)))


class KernelDerivatives(NamedTuple):
    """A kernel and its derivatives in u = log lengthscale and v = log gamma, all of one shape."""

    value: Tensor
    first: tuple[Tensor, Tensor]  # u, v
    second: tuple[Tensor, Tensor, Tensor]  # uu, uv, vv


def rational_quadratic_derivatives(squared_distances: Tensor, lengthscale: Tensor, gamma: Tensor) -> KernelDerivatives:
    """The kernel of `rational_quadratic` with first and second derivatives in the logarithms of its parameters.

    With q = r^2 / (2 gamma lengthscale^2), w = q / (1 + q) and l = log k = -gamma log(1 + q):
    l_u = 2 gamma w, l_v = l + gamma w, l_uu = -4 gamma w (1 - w), l_uv = 2 gamma w^2, l_vv = l + gamma w (1 + w).
    """
    q = squared_distances / (2 * gamma * lengthscale**2)
    log_kernel = torch.log1p(q).mul_(-gamma)
    kernel = log_kernel.exp()
    w = q.div_(q + 1)
    scaled = gamma * w
    log_u = 2 * scaled
    log_v = log_kernel.add_(scaled)
    first_u, first_v = kernel * log_u, kernel * log_v
    # k_ab = k (l_ab + l_a l_b), with l_uu = -2 l_u (1 - w), l_uv = l_u w and l_vv = l_v + gamma w^2.
    second_uu = (log_u + 2 * w).sub_(2).mul_(first_u)
    second_uv = (log_v + w).mul_(first_u)
    second_vv = (log_v + 1).mul_(first_v).addcmul_(scaled.mul_(w), kernel)
    return KernelDerivatives(kernel, (first_u, first_v), (second_uu, second_uv, second_vv))


def rational_quadratic_first_derivatives(
    squared_distances: Tensor, lengthscale: Tensor, gamma: Tensor
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """The value and first derivatives of `rational_quadratic_derivatives`, without the second."""
    q = squared_distances / (2 * gamma * lengthscale**2)
    log_kernel = torch.log1p(q).mul_(-gamma)
    kernel = log_kernel.exp()
    scaled = q.div_(q + 1).mul_(gamma)
    first_v = log_kernel.add_(scaled).mul_(kernel)
    return kernel, (scaled.mul_(2).mul_(kernel), first_v)


@dataclass(frozen=True)
class NormalInverseGamma:
    """Conjugate model of a root: x ~ N(m, v), v ~ InvGamma(alpha, beta), m | v ~ N(mu, v / kappa).

    Murphy (2007), "Conjugate Bayesian analysis of the Gaussian distribution", section 6.
    """

    mu: float = 0.0
    kappa: float = 1.0
    alpha: float = 10.0
    beta: float = 10.0

    def posterior(self, values: Tensor) -> NormalInverseGamma:
        """The model given `values` (N,)."""
        n = values.shape[0]
        mean = float(values.mean())
        scatter = float(((values - mean) ** 2).sum())
        kappa = self.kappa + n
        return NormalInverseGamma(
            mu=(self.kappa * self.mu + n * mean) / kappa,
            kappa=kappa,
            alpha=self.alpha + n / 2,
            beta=self.beta + scatter / 2 + self.kappa * n * (mean - self.mu) ** 2 / (2 * kappa),
        )

    def log_marginal_likelihood(self, values: Tensor) -> float:
        """Log density of `values` (N,) with mean and variance integrated out."""
        after = self.posterior(values)
        return (
            math.lgamma(after.alpha)
            - math.lgamma(self.alpha)
            + self.alpha * math.log(self.beta)
            - after.alpha * math.log(after.beta)
            + (math.log(self.kappa) - math.log(after.kappa) - values.shape[0] * LOG_2PI) / 2
        )
