"""How far interventional distributions and means are from the truth, on average over test interventions.

All on the standardised scale. Toth et al. (2025), experiments on causal inference.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement

import numpy as np
import torch
from torch import Tensor

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
_BLOCK = 1024  # rows; a block of the kernel matrix takes 8 MiB


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
        return self.posterior.interventional_means(self._interventions) - truth

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
    if is_weighted.sum() < 2 or len(truth) < 2:
        return TOO_FEW
    centre = truth.mean(axis=0)  # distances are computed from products, and keep their digits near the origin
    x, w = torch.as_tensor(samples[is_weighted] - centre), torch.as_tensor(weights[is_weighted])
    y = torch.as_tensor(truth - centre)
    v = torch.full((len(y),), 1 / len(y), dtype=torch.float64)
    distance = _among(x, w) + _among(y, v) - 2 * _between(x, w, y, v)
    return _KERNEL_HEIGHT * distance


def _among(points: Tensor, weights: Tensor) -> float:
    """Weighted mean of the unit kernel over pairs of different points."""
    left, right = _factors(points), _factors(points, exchanged=True)
    total = 0.0
    blocks = torch.arange(len(points)).split(_BLOCK)
    for first, second in combinations_with_replacement([slice(int(rows[0]), int(rows[-1]) + 1) for rows in blocks], 2):
        part = float(weights[first] @ (torch.mm(left[first], right[second].T).exp_() @ weights[second]))
        total += part if first == second else 2 * part
    squares = float(weights.square().sum())
    return (total - squares) / (1 - squares)


def _between(first: Tensor, first_weights: Tensor, second: Tensor, second_weights: Tensor) -> float:
    """Weighted mean of the unit kernel over pairs of a point of each kind."""
    right = _factors(second, exchanged=True).T
    blocks = zip(_factors(first).split(_BLOCK), first_weights.split(_BLOCK), strict=True)
    return sum(float(weights @ (torch.mm(left, right).exp_() @ second_weights)) for left, weights in blocks)


def _factors(points: Tensor, *, exchanged: bool = False) -> Tensor:
    """(n, d + 2): a row times an exchanged row is the logarithm of their unit kernel."""
    scaled = points / _KERNEL_VARIANCE**0.5
    halves = -scaled.square().sum(dim=1, keepdim=True) / 2
    ones = torch.ones_like(halves)
    return torch.cat([scaled, ones, halves] if exchanged else [scaled, halves, ones], dim=1)
