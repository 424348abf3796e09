"""MAP-II hyper-parameters of many (parent set, target) pairs at once, by a trust-region Newton method.

One spectrum of a parent set's kernel gives the log marginal likelihoods of all targets to second order in all four
hyper-parameters. It is taken where targets that do not depend on the set end up, which settles most pairs. The others
are climbed one by one, and so are pairs whose residuals suggest a second mode, of a rougher function with less noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from bci.likelihood import best_outputscale_and_noise, expand_likelihood
from bci.map_objective import TRUSTED, MapEstimate, MapObjective
from bci.newton import QuadraticModel, concatenate, secant_corrected
from bci.pair_likelihood import dense_expansion, low_rank_expansion
from bci.pivots import select_pivots
from bci.roughness import roughness_score
from bci.spectra import kernel_spectrum

# Error allowed in the trace of a kernel matrix of unit diagonal; costs up to 0.01 nats.
_TRACE_TOLERANCE = 1e-3
# A shared expansion settles a pair whose predicted gain times step (in units of `TRUSTED`) is at most this, in nats.
_LARGEST_GAIN_TIMES_REACH = 0.1
# A climb, with its approximate Hessians, ends where no more than this is to be gained.
_LARGEST_GAIN = 0.01
_LONGEST_MOVE = (0.5, 0.8, 0.5, 1.0)
_SHORTEST_MOVE = 1e-3  # as a share of the move first tried
_MAX_ROUNDS = 40
# Climbs take dense matrices up to this number of rows, so many bytes of one at a time as stay in the cache.
_DENSE_ROWS = 300
_DENSE_BYTES = {"cpu": 2**20, "cuda": 2**28}
# A second climb starts at these multiples of the prior modes of lengthscale and gamma and of the noise found. It is
# made where the score of a yet rougher kernel is above a threshold that pairs with a second mode were seen to exceed,
# unless the first climb ended at a lengthscale below the last factor times the prior mode.
_ROUGH_LENGTHSCALE, _ROUGH_GAMMA, _ROUGH_NOISE = 0.45, 0.58, 0.4
_TEST_LENGTHSCALE, _TEST_GAMMA, _LEAST_ROUGHNESS = 0.25, 0.58, 3.5
_ROUGH_ALREADY = 0.65
_BATCH_BYTES = {"cpu": 2**24, "cuda": 2**31}


@dataclass(frozen=True, eq=False)
class MapProblem:
    """All pairs of some parent sets of equal size and some targets, observed on the same rows.

    Args:
        rows: (N, nodes) float64 observations.
        members: (sets, size) node numbers, size at least 1.
        nodes: (targets,) node numbers.
        likelihood_weight: of the log likelihood in the objective that the hyper-parameters maximise.
    """

    rows: Tensor
    members: Tensor
    nodes: Tensor
    likelihood_weight: float = 1.0

    def solve(self) -> MapEstimate:
        """Estimates (sets, targets); -inf and nan where the target is in the set."""
        valid = ~self._is_member
        model, roughness = self._expand_sets()
        prediction = self._objective.predict(model)
        estimate = prediction.there
        settled = (prediction.reach <= 1) & (prediction.gain * prediction.reach <= _LARGEST_GAIN_TIMES_REACH)
        pending = valid & ~settled
        if pending.any():
            estimate.update(pending, self._climb(pending, model.select(pending)))
        suspect = valid & (roughness > _LEAST_ROUGHNESS)
        suspect &= estimate.parameters[..., 0].exp() > _ROUGH_ALREADY * self._prior_modes[0]
        if suspect.any():
            estimate.update(suspect, self._second_climb(suspect, estimate.select(suspect)))
        estimate.objective[~valid] = -torch.inf
        estimate.score[~valid] = -torch.inf
        estimate.parameters[~valid] = torch.nan
        return estimate

    @cached_property
    def _is_member(self) -> Tensor:
        """(sets, targets) bool, whether the target is in the set."""
        return (self.members[:, :, None] == self.nodes).any(dim=1)

    @property
    def _size(self) -> int:
        return self.members.shape[1]

    @cached_property
    def _targets(self) -> Tensor:
        return self.rows[:, self.nodes]

    @cached_property
    def _objective(self) -> MapObjective:
        return MapObjective(self._size, self.likelihood_weight)

    @cached_property
    def _prior_modes(self) -> list[float]:
        return [prior.mode for prior in self._objective.priors]

    def _climb(self, wanted: Tensor, origin: QuadraticModel, known: MapEstimate | None = None) -> MapEstimate:
        """Maxima (pairs) for the pairs of the mask `wanted` (sets, targets), climbing from where `origin` points.

        Args:
            origin: expansions (pairs) to start with.
            known: other maxima; climbs that get near one are abandoned.
        """
        sets, targets = torch.nonzero(wanted, as_tuple=True)
        trusted, longest = self.rows.new_tensor(TRUSTED), self.rows.new_tensor(_LONGEST_MOVE)
        best, goal, _ = self._objective.predict(origin)
        fraction = torch.ones_like(best.objective)
        pairs = torch.arange(len(sets), device=sets.device)
        for _ in range(_MAX_ROUNDS):
            move = goal.parameters[pairs] - origin.centre[pairs]
            move *= ((longest / move.abs()).amin(dim=1).clamp_max(1) * fraction[pairs])[:, None]
            model = self._expand_pairs(sets[pairs], targets[pairs], origin.centre[pairs] + move)
            model = secant_corrected(model, origin.select(pairs))
            here, there, reach = prediction = self._objective.predict(model)
            better = here.objective > best.objective[pairs]
            for kept, new in ((best, here), (goal, there)):
                kept.update(pairs[better], new.select(better))
            for kept_part, new_part in zip(origin, model, strict=True):
                kept_part[pairs[better]] = new_part[better]
            fraction[pairs] = torch.where(better, 1.0, fraction[pairs] / 2)
            settled = better & (reach <= 1) & (prediction.gain <= _LARGEST_GAIN)
            best.update(pairs[settled], there.select(settled))
            done = settled | (fraction[pairs] < _SHORTEST_MOVE)
            if known is not None:
                done |= ((goal.parameters - known.parameters)[pairs].abs() <= trusted).all(dim=1)
            pairs = pairs[~done]
            if not len(pairs):
                break
        return best

    def _second_climb(self, wanted: Tensor, known: MapEstimate) -> MapEstimate:
        """The better of the `known` maxima (pairs) and those that climbs from a rough start reach."""
        sets, targets = torch.nonzero(wanted, as_tuple=True)
        start = known.parameters.clone()
        start[:, 0] = _ROUGH_LENGTHSCALE * self._prior_modes[0]
        start[:, 1] = _ROUGH_GAMMA * self._prior_modes[1]
        start[:, :2].log_()
        start[:, 3] += self.rows.new_tensor(_ROUGH_NOISE).log()
        other = self._climb(wanted, self._expand_pairs(sets, targets, start), known)
        better = other.objective > known.objective
        known.update(better, other.select(better))
        return known

    def _expand_sets(self) -> tuple[QuadraticModel, Tensor]:
        """Expansions (sets, targets) at one kernel and the best outputscales and noises, and their roughness."""
        num_rows = len(self.rows)
        lengthscale, gamma, *_ = self._prior_modes
        # About where targets end up that do not depend on the set; found by experiment.
        flatter = 1 + self.likelihood_weight * 0.25 * 0.7 ** (self._size - 1) * (num_rows / 200) ** 0.25
        kernel = self.rows.new_tensor([lengthscale * flatter, gamma]).log().expand(len(self.members), 2)
        rough = _TEST_LENGTHSCALE * lengthscale, _TEST_GAMMA * gamma
        models, roughness = [], []
        for inputs, part, pivots in self._parts(torch.arange(len(kernel), device=kernel.device), kernel):
            at = kernel[part]
            spectrum, derivatives = kernel_spectrum(inputs, self._targets, at, pivots)
            # A target that is in the set is none; its noise would vanish and hold up the search for the others'.
            spectrum = spectrum.without_signal(self._is_member[part], num_rows)
            outputscale, noise = best_outputscale_and_noise(spectrum, num_rows, self.likelihood_weight)
            models.append(expand_likelihood(spectrum, derivatives, at, outputscale, noise, num_rows))
            roughness.append(roughness_score(inputs, self._targets, spectrum, outputscale, noise, *rough))
        return concatenate(models), torch.cat(roughness)

    def _expand_pairs(self, sets: Tensor, targets: Tensor, parameters: Tensor) -> QuadraticModel:
        """Expansions (pairs) at parameters (pairs, 4), with approximate Hessians."""
        num_rows = len(self.rows)
        if num_rows > _DENSE_ROWS:
            return concatenate(
                [
                    low_rank_expansion(inputs, self._targets[:, targets[part]].T, parameters[part], pivots)
                    for inputs, part, pivots in self._parts(sets, parameters[:, :2])
                ]
            )
        size = max(1, self._budget(_DENSE_BYTES) // (8 * num_rows**2))
        return concatenate(
            [
                dense_expansion(self._inputs(sets[part]), self._targets[:, targets[part]].T, parameters[part])
                for part in _slices(len(sets), size)
            ]
        )

    def _inputs(self, sets: Tensor) -> Tensor:
        return self.rows[:, self.members[sets]].transpose(0, 1).contiguous()

    def _budget(self, bytes_on: dict[str, int]) -> int:
        return bytes_on.get(self.rows.device.type, bytes_on["cpu"])

    def _parts(self, sets: Tensor, log_kernel: Tensor) -> Iterator[tuple[Tensor, slice, Tensor]]:
        """Inputs, places in `sets` and pivots, in parts of a size that suits the hardware.

        Pivots are chosen for many sets at once, since that takes many small steps; what follows takes few large ones,
        and fewer sets at a time stay in the cache.
        """
        num_rows, budget = len(self.rows), self._budget(_BATCH_BYTES)
        for chunk in _slices(len(sets), max(1, budget // (num_rows * 1200))):
            inputs = self._inputs(sets[chunk])
            pivots = select_pivots(inputs, log_kernel[chunk], _TRACE_TOLERANCE / num_rows)
            size = max(1, budget // (num_rows * pivots.shape[1] * 100))
            for part in _slices(len(inputs), size):
                yield inputs[part], slice(chunk.start + part.start, chunk.start + part.stop), pivots[part]


def _slices(length: int, size: int) -> list[slice]:
    """Slices that cut `length` places into runs of at most `size`."""
    return [slice(first, min(first + size, length)) for first in range(0, length, size)]
