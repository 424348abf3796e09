"""Ground-truth mechanisms: the functions from parents to child, and their noise, drawn from the generating priors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg import cho_solve, cholesky
from scipy.spatial.distance import cdist

from bci.dataset import Floats

SUPPORT_POINTS_PER_PARENT = 50
SUPPORT_BOUND = 10.0
JITTER = 1e-8  # in units of the output scale; keeps the Cholesky factor of close support points finite
KERNEL_BLOCK = 2**20  # kernel entries held at once, 8 MiB


class Mechanism(Protocol):
    """The noise-free part of a structural equation."""

    def __call__(self, parents: Floats) -> Floats:
        """Values of the child (n,) given the parents (n, p)."""
        ...


@dataclass(frozen=True)
class GammaPrior:
    """Gamma distribution with density proportional to `x^(shape - 1) exp(-rate x)`; mean `shape / rate`."""

    shape: float
    rate: float

    def draw(self, rng: np.random.Generator) -> float:
        return float(rng.gamma(self.shape, 1.0 / self.rate))


NOISE_VARIANCE_PRIOR = GammaPrior(50.0, 50.0)
OUTPUTSCALE_PRIOR = GammaPrior(100.0, 10.0)
GAMMA_PRIOR = GammaPrior(20.0, 10.0)
ROOT_PRECISION_PRIOR = GammaPrior(5.0, 10.0)
SIGMOID_SCALE_PRIOR = GammaPrior(50.0, 10.0)


def lengthscale_prior(num_parents: int) -> GammaPrior:
    """Prior of the lengthscale shared by `num_parents` inputs; its mean grows with their number."""
    return GammaPrior(30.0 * num_parents, 30.0)


@dataclass(frozen=True)
class Constant:
    """A root: no parents, one value around which the noise varies."""

    value: float

    def __call__(self, parents: Floats) -> Floats:
        return np.full(parents.shape[0], self.value)


@dataclass(frozen=True, eq=False)
class Linear:
    """`sum_j weights_j x_j`, weights (p,)."""

    weights: Floats

    def __call__(self, parents: Floats) -> Floats:
        return np.asarray(parents @ self.weights, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Sigmoid:
    """`sum_j scales_j u_j / (1 + |u_j|)` with `u_j = slopes_j (x_j + shifts_j)`; every parameter (p,).

    An additive and invertible mechanism (Buhlmann, Peters and Ernest 2014, section 4.1).
    """

    scales: Floats
    slopes: Floats
    shifts: Floats

    def __call__(self, parents: Floats) -> Floats:
        scaled = self.slopes * (parents + self.shifts)
        return np.asarray((scaled / (1.0 + np.abs(scaled))) @ self.scales, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class KernelExpansion:
    """`sum_k coefficients_k k(x, support_k)`, the form of every GP posterior mean.

    Kernel: `k(x, x') = (1 + |x - x'|^2 / (2 gamma lengthscale^2))^(-gamma)`.

    Args:
        support: (m, p) inputs.
        coefficients: (m,).
    """

    support: Floats
    coefficients: Floats
    lengthscale: float
    gamma: float

    def __call__(self, parents: Floats) -> Floats:
        values = np.empty(parents.shape[0])
        rows = max(1, KERNEL_BLOCK // self.support.shape[0])
        for start in range(0, parents.shape[0], rows):
            block = slice(start, start + rows)
            squared_distances = cdist(parents[block], self.support, "sqeuclidean")
            values[block] = _rational_quadratic(squared_distances, self.lengthscale, self.gamma) @ self.coefficients
        return values


def draw_gp(num_parents: int, rng: np.random.Generator) -> KernelExpansion:
    """A smooth random function of all parents jointly.

    Hyper-parameters come from the generating priors. The function is the posterior mean of the GP given values
    drawn from its prior at 50 support points per parent, uniform in [-10, 10] in every coordinate.
    """
    outputscale = OUTPUTSCALE_PRIOR.draw(rng)
    lengthscale = lengthscale_prior(num_parents).draw(rng)
    gamma = GAMMA_PRIOR.draw(rng)
    num_points = SUPPORT_POINTS_PER_PARENT * num_parents
    support = rng.uniform(-SUPPORT_BOUND, SUPPORT_BOUND, size=(num_points, num_parents))
    kernel = _rational_quadratic(cdist(support, support, "sqeuclidean"), lengthscale, gamma)
    kernel[np.diag_indices(num_points)] += JITTER
    factor = cholesky(kernel, lower=True)
    values = np.sqrt(outputscale) * (factor @ rng.standard_normal(num_points))
    return KernelExpansion(support, cho_solve((factor, True), values), lengthscale, gamma)


def draw_sigmoid(num_parents: int, rng: np.random.Generator, signs: str = "per_parent") -> Sigmoid:
    """Scales Gamma(50, 10), |slopes| uniform on [0.5, 2], shifts uniform on [-2, 2].

    Args:
        signs: "per_parent" gives every slope a random sign, "per_node" gives all slopes of the node one.
    """
    scales = rng.gamma(SIGMOID_SCALE_PRIOR.shape, 1.0 / SIGMOID_SCALE_PRIOR.rate, size=num_parents)
    sign = rng.choice([-1.0, 1.0], size=num_parents if signs == "per_parent" else 1)
    slopes = sign * rng.uniform(0.5, 2.0, size=num_parents)
    return Sigmoid(scales, slopes, rng.uniform(-2.0, 2.0, size=num_parents))


def draw_linear(num_parents: int, rng: np.random.Generator) -> Linear:
    """Weights uniform on [-2, -0.5] u [0.5, 2]: bounded away from zero so that every edge has an effect."""
    return Linear(rng.choice([-1.0, 1.0], size=num_parents) * rng.uniform(0.5, 2.0, size=num_parents))


def draw_root(rng: np.random.Generator) -> tuple[Constant, float]:
    """Mean and noise variance of a root: variance inverse-gamma(5, 10), mean N(0, variance)."""
    variance = 1.0 / ROOT_PRECISION_PRIOR.draw(rng)
    return Constant(float(rng.normal(0.0, np.sqrt(variance)))), variance


def _rational_quadratic(squared_distances: Floats, lengthscale: float, gamma: float) -> Floats:
    kernel: Floats = np.log1p(squared_distances / (2.0 * gamma * lengthscale**2))
    kernel *= -gamma
    np.exp(kernel, out=kernel)
    return kernel
