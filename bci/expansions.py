"""Second-order expansions of the log marginal likelihoods of (parent set, target) pairs, in batches that fit a cache.

There are two ways. One low-rank spectrum of a parent set's kernel serves all targets, each at its best outputscale and
noise; a dense covariance serves one pair at any hyper-parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from bci.likelihood import best_outputscale_and_noise, expand_likelihood
from bci.newton import QuadraticModel, concatenate
from bci.pair_likelihood import dense_expansion
from bci.pivots import select_pivots
from bci.roughness import pair_roughness, shared_roughness
from bci.spectra import kernel_spectrum

_BATCH_BYTES = {"cpu": 2**24, "cuda": 2**31}
_DENSE_BYTES = {"cpu": 2**20, "cuda": 2**28}  # of one dense matrix per pair
_LEAST_SINGLE_TOLERANCE = 1e-6  # of an entry, that single precision can tell
_MOST_PIVOTS = 600  # rougher kernels are cut off there and look the worse for it, which ends climbs that run away
_MOST_DENSE_ROWS = 1500  # beyond, a dense expansion takes seconds


@dataclass(frozen=True, eq=False)
class Expansions:
    """Expansions for the pairs of some parent sets and some targets, observed on the same rows.

    Args:
        rows: (N, nodes) float64 observations.
        members: (sets, size) node numbers.
        nodes: (targets,) node numbers.
        likelihood_weight: of the log likelihood in the objective that outputscale and noise maximise.
        trace_tolerance: error allowed to low-rank kernel matrices of unit diagonal in their trace.
    """

    rows: Tensor
    members: Tensor
    nodes: Tensor
    likelihood_weight: float
    trace_tolerance: float

    @cached_property
    def is_member(self) -> Tensor:
        """(sets, targets) bool, whether the target is in the set."""
        return (self.members[:, :, None] == self.nodes).any(dim=1)

    @property
    def can_be_dense(self) -> bool:
        """Whether there are so few rows that `of_pairs` is worth its time."""
        return len(self.rows) <= _MOST_DENSE_ROWS

    def of_sets(
        self, sets: Tensor, log_kernel: Tensor, rough_kernel: tuple[float, float] | None = None
    ) -> tuple[QuadraticModel, Tensor]:
        """For all targets of the sets, at one kernel per set and the best outputscale and noise of each target.

        Args:
            sets: (n,) places in `members`.
            log_kernel: (n, 2), logarithms of lengthscale and gamma.
            rough_kernel: lengthscale and gamma of the component that `shared_roughness` tests for.

        Returns:
            Expansions (n, targets) and scores of roughness (n, targets), zero without a `rough_kernel`.
        """
        num_rows = len(self.rows)
        places, models, roughness = [], [], []
        for part, inputs, pivots in self._parts(sets, log_kernel):
            at = log_kernel[part]
            spectrum, derivatives = kernel_spectrum(inputs, self._targets, at, pivots)
            # A target that is in the set is none; its noise would vanish and hold up the search for the others'.
            spectrum = spectrum.without_signal(self.is_member[sets[part]], num_rows)
            outputscale, noise = best_outputscale_and_noise(spectrum, num_rows, self.likelihood_weight)
            places.append(part)
            models.append(expand_likelihood(spectrum, derivatives, at, outputscale, noise, num_rows))
            if rough_kernel is None:
                roughness.append(torch.zeros_like(noise))
            else:
                roughness.append(shared_roughness(inputs, self._targets, spectrum, outputscale, noise, *rough_kernel))
        back = torch.cat(places).argsort()
        return concatenate(models).select(back), torch.cat(roughness)[back]

    def of_pairs(self, sets: Tensor, targets: Tensor, parameters: Tensor) -> QuadraticModel:
        """At parameters (pairs, 4), with approximate Hessians."""
        return concatenate(
            [dense_expansion(*self._data(sets[part], targets[part]), parameters[part]) for part in self._few(sets)]
        )

    def roughness_of_pairs(
        self, sets: Tensor, targets: Tensor, parameters: Tensor, rough_kernel: tuple[float, float]
    ) -> Tensor:
        """`pair_roughness` (pairs,) at parameters (pairs, 4)."""
        roughness = parameters.new_empty(len(sets))
        for part in self._few(sets):
            data = self._data(sets[part], targets[part])
            roughness[part] = pair_roughness(*data, parameters[part], *rough_kernel)
        return roughness

    @cached_property
    def _targets(self) -> Tensor:
        return self.rows[:, self.nodes]

    def _data(self, sets: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        return self._inputs(sets), self._targets[:, targets].T

    def _inputs(self, sets: Tensor) -> Tensor:
        return self.rows[:, self.members[sets]].transpose(0, 1).contiguous()

    def _budget(self, bytes_on: dict[str, int]) -> int:
        return bytes_on.get(self.rows.device.type, bytes_on["cpu"])

    def _few(self, sets: Tensor) -> list[slice]:
        size = max(1, self._budget(_DENSE_BYTES) // (8 * len(self.rows) ** 2))
        return _slices(len(sets), size)

    def _parts(self, sets: Tensor, log_kernel: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Places in `sets`, their inputs and pivots, in parts of similar rank and of a size that suits the hardware.

        Pivots are chosen for many sets at once, since that takes many small steps; what follows takes few large ones,
        and fewer sets at a time stay in the cache.
        """
        num_rows, budget = len(self.rows), self._budget(_BATCH_BYTES)
        tolerance = self.trace_tolerance / num_rows
        dtype = torch.float32 if tolerance >= _LEAST_SINGLE_TOLERANCE else torch.float64
        for chunk in _slices(len(sets), max(1, budget // (num_rows * 1200))):
            inputs = self._inputs(sets[chunk])
            pivots = select_pivots(inputs, log_kernel[chunk], tolerance, dtype, _MOST_PIVOTS)
            ranks, ascending = (pivots >= 0).sum(dim=1).sort(descending=True)
            first = 0
            while first < len(ranks):
                rank = int(ranks[first])
                last = first + max(1, budget // (num_rows * rank * 100))
                part = ascending[first:last]
                yield part + chunk.start, inputs[part], pivots[part, :rank]
                first = last


def _slices(length: int, size: int) -> list[slice]:
    """Slices that cut `length` places into runs of at most `size`."""
    return [slice(first, min(first + size, length)) for first in range(0, length, size)]
