"""MAP-II hyper-parameters of many (parent set, target) pairs at once, by a trust-region Newton method.

One spectrum of a parent set's kernel gives the log marginal likelihoods of all targets to second order in all four
hyper-parameters. It is taken where targets that do not depend on the set end up, which settles most pairs. The others
climb on from there, and so do pairs whose residuals suggest a second mode, of a rougher function with less noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from bci.climbing import Climb, has_low_noise, settled
from bci.expansions import Expansions
from bci.map_objective import MapEstimate, MapObjective

# Up to this number of rows dense expansions of single pairs cost less than shared ones of their sets.
_DENSE_ROWS = 300
# Costs up to 0.02 nats where signals are weak, and dense expansions take over where they are not.
_TRACE_TOLERANCE, _TRACE_TOLERANCE_OF_MANY_ROWS = 2e-3, 1e-3
# An exact expansion settles a pair whose predicted gain times step (in units of `TRUSTED`) is at most this, in nats and
# per member of the set; or this share of it where residuals are rough and the likelihood may bend upwards again.
_LARGEST_GAIN_TIMES_REACH, _SHARE_IF_ROUGH, _SMOOTH = 0.06, 0.2, 2.5
# A second climb starts at these multiples of the prior modes of lengthscale and gamma and of the noise found.
_ROUGH_LENGTHSCALE, _ROUGH_GAMMA, _ROUGH_NOISE = 0.5, 0.58, 0.5
# It is made where the score of a yet rougher kernel is above a threshold that pairs with a second mode were seen to
# exceed, unless the first climb ended at a lengthscale below the last factor times the prior mode.
_TEST_LENGTHSCALE, _TEST_GAMMA = 0.25, 0.58
_LEAST_ROUGHNESS, _LEAST_ROUGHNESS_OF_LOW_NOISE, _LEAST_ROUGHNESS_OF_MANY_ROWS = 3.5, 1.0, 2.0
_LEAST_OWN_ROUGHNESS, _LEAST_OWN_ROUGHNESS_OF_LOW_NOISE = 4.0, 1.5
_ROUGH_ALREADY = 0.65
_TYPICAL_NOISE = 0.35  # of standardised data
# Below this noise variance what a low-rank kernel leaves out matters to the score.
_EXACT_NOISE = 0.05


@dataclass(frozen=True, eq=False)
class MapProblem:
    """All pairs of some parent sets of equal size and some targets, observed on the same rows.

    Args:
        rows: (N, nodes) float64 observations.
        members: (sets, size) node numbers, size at least 1.
        nodes: (targets,) node numbers.
        likelihood_weight: of the log likelihood in the objective that the hyper-parameters maximise.
        wanted: (sets, targets) bool, the pairs to estimate; None for all.
    """

    rows: Tensor
    members: Tensor
    nodes: Tensor
    likelihood_weight: float = 1.0
    wanted: Tensor | None = None

    def solve(self) -> MapEstimate:
        """Estimates (sets, targets); -inf and nan where the target is in the set or the pair is not wanted."""
        valid = self._valid
        lengthscale, gamma = self._central_kernel
        kernel = self.rows.new_tensor([lengthscale, gamma]).log().expand(len(self.members), 2)
        every = torch.arange(len(kernel), device=kernel.device)
        model, roughness = self._expansions.of_sets(every, kernel, self._test_kernel)
        prediction = self._objective.predict(model)
        estimate = prediction.there
        pending = valid & ~settled(prediction, self._allowance(roughness))
        if not self.many_rows:
            pending |= valid & has_low_noise(estimate)
        if pending.any():
            sets, targets = torch.nonzero(pending, as_tuple=True)
            climb = Climb(self._expansions, self._objective, sets, targets, model.select(pending))
            estimate.update(pending, climb.run(together=self.many_rows))
        suspect = self._suspects(valid, pending, roughness, estimate)
        if suspect.any():
            estimate.update(suspect, self._second_climb(suspect, estimate.select(suspect)))
        inexact = valid & (estimate.parameters[..., 3].exp() < _EXACT_NOISE)
        if self.many_rows and self._expansions.can_be_dense and inexact.any():
            sets, targets = torch.nonzero(inexact, as_tuple=True)
            exact = self._expansions.of_pairs(sets, targets, estimate.parameters[inexact])
            estimate.update(inexact, self._objective.estimate(exact.value, exact.centre))
        estimate.objective[~valid] = -torch.inf
        estimate.score[~valid] = -torch.inf
        estimate.parameters[~valid] = torch.nan
        return estimate

    def solve_plainly(self) -> MapEstimate:
        """As `solve`, by one climb per pair from about the prior's mode, in dense matrices; no look for a second mode.

        The way for few rows and large sets, whose kernels have nearly full rank and seldom more than one target.
        """
        valid = self._valid
        sets, targets = torch.nonzero(valid, as_tuple=True)
        lengthscale, gamma = self._central_kernel
        start = self.rows.new_tensor([lengthscale, gamma, self._prior_modes[2], _TYPICAL_NOISE]).log()
        origin = self._expansions.of_pairs(sets, targets, start.expand(len(sets), 4))
        found = Climb(self._expansions, self._objective, sets, targets, origin).run(together=False)
        shape = valid.shape
        estimate = MapEstimate(
            self.rows.new_full(shape, -torch.inf),
            self.rows.new_full(shape, -torch.inf),
            self.rows.new_full((*shape, 4), torch.nan),
        )
        estimate.update(valid, found)
        return estimate

    @cached_property
    def _valid(self) -> Tensor:
        """(sets, targets) bool, the pairs to estimate."""
        outside = ~self._expansions.is_member
        return outside if self.wanted is None else outside & self.wanted

    @cached_property
    def _expansions(self) -> Expansions:
        tolerance = _TRACE_TOLERANCE_OF_MANY_ROWS if self.many_rows else _TRACE_TOLERANCE
        return Expansions(self.rows, self.members, self.nodes, self.likelihood_weight, tolerance)

    @cached_property
    def _objective(self) -> MapObjective:
        return MapObjective(self._size, self.likelihood_weight)

    @cached_property
    def _prior_modes(self) -> list[float]:
        return [prior.mode for prior in self._objective.priors]

    @property
    def _size(self) -> int:
        return self.members.shape[1]

    def _suspects(self, valid: Tensor, moved: Tensor, roughness: Tensor, estimate: MapEstimate) -> Tensor:
        """Pairs (sets, targets) that may have a second mode; of few rows, `moved` ones are tested where they are."""
        suspect = valid & (estimate.parameters[..., 0].exp() > _ROUGH_ALREADY * self._prior_modes[0])
        if self.many_rows:
            return suspect & (roughness > _LEAST_ROUGHNESS_OF_MANY_ROWS)
        low_noise = has_low_noise(estimate)
        suspect &= roughness > torch.where(low_noise, _LEAST_ROUGHNESS_OF_LOW_NOISE, _LEAST_ROUGHNESS)
        tested = suspect & moved
        sets, targets = torch.nonzero(tested, as_tuple=True)
        own = roughness.clone()
        own[tested] = self._expansions.roughness_of_pairs(sets, targets, estimate.parameters[tested], self._test_kernel)
        return suspect & (own > torch.where(low_noise, _LEAST_OWN_ROUGHNESS_OF_LOW_NOISE, _LEAST_OWN_ROUGHNESS))

    def _allowance(self, roughness: Tensor) -> Tensor:
        """The most gain times reach, as expansions predict it, at which errors of the score were seen to be small."""
        largest = _LARGEST_GAIN_TIMES_REACH * self._size * self.likelihood_weight
        return torch.where(roughness < _SMOOTH, largest, largest * _SHARE_IF_ROUGH)

    @property
    def many_rows(self) -> bool:
        """Whether shared low-rank expansions serve better than dense ones of single pairs."""
        return len(self.rows) > _DENSE_ROWS

    @property
    def _central_kernel(self) -> tuple[float, float]:
        """Lengthscale and gamma about where targets end up that do not depend on the set; found by experiment."""
        lengthscale, gamma, *_ = self._prior_modes
        flatter = 1 + self.likelihood_weight * 0.22 * 0.7 ** (self._size - 1) * (len(self.rows) / 200) ** 0.3
        return lengthscale * flatter, gamma

    @property
    def _test_kernel(self) -> tuple[float, float]:
        lengthscale, gamma, *_ = self._prior_modes
        return _TEST_LENGTHSCALE * lengthscale, _TEST_GAMMA * gamma

    def _second_climb(self, wanted: Tensor, known: MapEstimate) -> MapEstimate:
        """The better of the `known` maxima (pairs) and those that climbs from a rough start reach."""
        sets, targets = torch.nonzero(wanted, as_tuple=True)
        start = known.parameters.clone()
        start[:, 0] = _ROUGH_LENGTHSCALE * self._prior_modes[0]
        start[:, 1] = _ROUGH_GAMMA * self._prior_modes[1]
        start[:, :2].log_()
        start[:, 3] += self.rows.new_tensor(_ROUGH_NOISE).log()
        if self.many_rows:
            chosen, place = torch.unique(sets, return_inverse=True)
            model, _ = self._expansions.of_sets(chosen, start[:1, :2].expand(len(chosen), 2))
            origin = model.select((place, targets))
        else:
            origin = self._expansions.of_pairs(sets, targets, start)
        climb = Climb(self._expansions, self._objective, sets, targets, origin, known)
        other = climb.run(together=self.many_rows)
        better = other.objective > known.objective
        known.update(better, other.select(better))
        return known
