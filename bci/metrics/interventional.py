"""How far interventional distributions and means are from the truth, on average over test interventions.

All on the standardised scale. Toth et al. (2025), experiments on causal inference.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bci.causal_posterior import CausalPosterior, GenerativePosterior
from bci.dataset import Dataset, Floats, InterventionalSample
from bci.metrics.undefined import Undefined
from bci.posterior import Posterior

NUM_SAMPLES = 10_000

NO_TEST = Undefined("no test interventions")
NO_QUERIES = Undefined("the method answers no causal queries")
MEANS_ONLY = Undefined("the method has interventional means only")
TOO_FEW = Undefined("fewer than two samples")

_KERNEL_HEIGHT, _KERNEL_VARIANCE = 1000.0, 0.2
_LEAST_SPREAD = 1e-9  # of the weights, below which all of it is on one sample
_BLOCK = 512  # rows; a block of the kernel matrix takes 2 MiB, which stays in the cache
_LEAST_EXPONENT = -700.0  # below, numbers lose their digits, and processors their pace


@dataclass(frozen=True, eq=False)
class InterventionalComparison:
    """A posterior and the true samples of some interventions; `num_samples` are drawn from it for each."""

    posterior: CausalPosterior
    test: tuple[InterventionalSample, ...]
    rng: np.random.Generator
    num_samples: int = NUM_SAMPLES

    @cached_property
    def mean_differences(self) -> Floats:
        """(interventions, d)"""
        truth = np.stack([intervention.samples.mean(axis=0) for intervention in self.test])
        differences: Floats = self.posterior.interventional_means(self._interventions) - truth
        return differences

    @property
    def _interventions(self) -> list[dict[int | str, float]]:
        return [dict(zip(targets, values, strict=True)) for targets, values, _ in self.test]

    def mmds(self) -> Iterator[float | Undefined]:
        """The squared MMD of every intervention."""
        assert isinstance(self.posterior, GenerativePosterior)
        drawn = self.posterior.sample_many(self._interventions, self.num_samples, self.rng)
        for (samples, weights), intervention in zip(drawn, self.test, strict=True):
            yield squared_mmd(samples, weights, intervention.samples)


def compare(
    posterior: Posterior, dataset: Dataset, rng: np.random.Generator, num_samples: int = NUM_SAMPLES
) -> InterventionalComparison | Undefined:
    """What the metrics of this module take, or why there is no such thing."""
    if not isinstance(posterior, CausalPosterior):
        return NO_QUERIES
    if not dataset.interventional_test:
        return NO_TEST
    return InterventionalComparison(posterior, dataset.interventional_test, rng, num_samples)


def l1(comparison: InterventionalComparison) -> float:
    """Sum of the absolute differences of the interventional means of all variables."""
    return float(np.abs(comparison.mean_differences).sum(axis=1).mean())


def l2(comparison: InterventionalComparison) -> float:
    """Euclidean distance of the interventional means of all variables."""
    return float(np.linalg.norm(comparison.mean_differences, axis=1).mean())


def mmd(comparison: InterventionalComparison) -> float | Undefined:
    """Squared maximum mean discrepancy, `squared_mmd`, of posterior samples and true samples."""
    if not isinstance(comparison.posterior, GenerativePosterior):
        return MEANS_ONLY
    total = 0.0
    for value in comparison.mmds():
        if isinstance(value, Undefined):
            return value
        total += value
    return total / len(comparison.test)


def squared_mmd(samples: Floats, weights: Floats, truth: Floats) -> float | Undefined:
    """Unbiased estimate of the squared MMD with the kernel `k(x, x') = 1000 exp(-|x - x'|^2 / (2 * 0.2))`.

    `sum_{i != j} w_i w_j k(x_i, x_j) / (1 - sum_i w_i^2) + mean_{i != j} k(y_i, y_j) - 2 sum_i w_i mean_j k(x_i, y_j)`,
    in blocks of bounded memory; Gretton et al. (2012), "A kernel two-sample test", lemma 6, with weights. It may be
    below zero.

    Args:
        samples: x, (n, d).
        weights: w, (n,), summing to one.
        truth: y, (m, d), equally weighted.
    """
    is_weighted = weights > 0
    if 1 - weights @ weights < _LEAST_SPREAD or len(truth) < 2:
        return TOO_FEW
    centre = truth.mean(axis=0)  # distances are computed from products, which keep their digits near the origin
    x, w = samples[is_weighted] - centre, weights[is_weighted]
    y, v = truth - centre, np.full(len(truth), 1 / len(truth))
    return _KERNEL_HEIGHT * (_among(x, w) + _among(y, v) - 2 * _kernel_sum(x, w, y, v))


def _among(points: Floats, weights: Floats) -> float:
    """Weighted mean of the unit kernel over pairs of different points."""
    squares = float(weights @ weights)
    return (_kernel_sum(points, weights, points, weights, symmetric=True) - squares) / (1 - squares)


def _kernel_sum(
    first: Floats, first_weights: Floats, second: Floats, second_weights: Floats, *, symmetric: bool = False
) -> float:
    """Weighted sum of the unit kernel over all pairs of a first and a second point; `symmetric` if the same."""
    left, right = _factors(first), _factors(second, exchanged=True).T.copy()
    buffer = np.empty(_BLOCK**2)
    total = 0.0
    for row in range(0, len(first), _BLOCK):
        rows = slice(row, row + _BLOCK)
        for column in range(row if symmetric else 0, len(second), _BLOCK):
            columns = slice(column, column + _BLOCK)
            shape = len(first_weights[rows]), len(second_weights[columns])
            kernel = buffer[: shape[0] * shape[1]].reshape(shape)
            np.matmul(left[rows], right[:, columns], out=kernel)
            np.maximum(kernel, _LEAST_EXPONENT, out=kernel)
            np.exp(kernel, out=kernel)
            part = float(first_weights[rows] @ (kernel @ second_weights[columns]))
            total += 2 * part if symmetric and column > row else part
    return total


def _factors(points: Floats, *, exchanged: bool = False) -> Floats:
    """(n, d + 2): a row times an exchanged row is the logarithm of their unit kernel."""
    scaled = points / _KERNEL_VARIANCE**0.5
    halves = -np.einsum("nd,nd->n", scaled, scaled)[:, None] / 2
    ones = np.ones_like(halves)
    return np.hstack([scaled, ones, halves] if exchanged else [scaled, halves, ones])
