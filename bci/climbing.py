"""Trust-region Newton climbs of many (parent set, target) pairs at once, together or one by one."""

from __future__ import annotations

import torch
from torch import Tensor

from bci.expansions import Expansions
from bci.map_objective import TRUSTED, MapEstimate, MapObjective, Prediction
from bci.newton import QuadraticModel, secant_corrected

# An exact expansion settles a pair whose predicted gain times step (in units of `TRUSTED`) is at most this, in nats.
_LARGEST_GAIN_TIMES_REACH = 0.1
# An approximate Hessian settles a pair that has no more than this to gain; less where noise is low, since ridges are
# flat and modes are close to each other there.
_LARGEST_GAIN, _LARGEST_GAIN_OF_LOW_NOISE = 0.05, 0.01
_LOW_NOISE = 0.15
_LONGEST_MOVE = (0.4, 0.8, 0.5, 1.0)
_SHORTEST_MOVE = 1e-3  # as a share of the move first tried
_MAX_ROUNDS = 40
_LEAST_SHARED_NOISE = 1e-3  # below, what a low-rank kernel leaves out matters


def settled(prediction: Prediction, largest_gain_times_reach: Tensor | float) -> Tensor:
    """Whether the maxima that exact expansions predict are so close that they can be taken for the maxima."""
    return (prediction.reach <= 1) & (prediction.gain * prediction.reach <= largest_gain_times_reach)


def has_low_noise(estimate: MapEstimate) -> Tensor:
    """Whether the noise is so low that pairs take more care."""
    return estimate.parameters[..., 3].exp() < _LOW_NOISE


class Climb:
    """Pairs on their way up, each from where its `origin` points.

    Args:
        expansions: of the log likelihood.
        objective: to be maximised.
        sets, targets: (pairs,) places in those of `expansions`.
        origin: expansions (pairs) to start with.
        known: other maxima (pairs); climbs that get near one are abandoned.
    """

    def __init__(
        self,
        expansions: Expansions,
        objective: MapObjective,
        sets: Tensor,
        targets: Tensor,
        origin: QuadraticModel,
        known: MapEstimate | None = None,
    ) -> None:
        self._expansions, self._objective = expansions, objective
        self._sets, self._targets, self._origin, self._known = sets, targets, origin, known
        best, self._goal, _ = objective.predict(origin)
        self.best = MapEstimate(*(part.clone() for part in best))  # it changes in place, the origin in its own time
        self._fraction = torch.ones_like(self.best.objective)
        self._climbing = torch.ones_like(sets, dtype=torch.bool)
        self._trusted = origin.centre.new_tensor(TRUSTED)
        self._longest = origin.centre.new_tensor(_LONGEST_MOVE)

    def run(self, *, together: bool) -> MapEstimate:
        """Climb to the maxima (pairs), by expansions shared by the pairs of a set or by each pair's own."""
        if together:
            self._climb_together()
        if self._expansions.can_be_dense:
            self._climb_alone()
        return self.best

    def _climb_together(self) -> None:
        """Move pairs of a set by expansions at one kernel, the proposal that most of them are near to."""
        num_targets = len(self._expansions.nodes)
        low_noise = self.best.parameters.new_tensor(_LEAST_SHARED_NOISE).log()
        for _ in range(_MAX_ROUNDS * num_targets):
            moving = self._climbing & (self._fraction >= _SHORTEST_MOVE) & (self._goal.parameters[:, 3] > low_noise)
            pairs = torch.nonzero(moving)[:, 0]
            if not len(pairs):
                return
            sets, place = torch.unique(self._sets[pairs], return_inverse=True)
            targets, wanted = self._targets[pairs], self._proposals(pairs)
            kernels = wanted.new_full((len(sets), num_targets, 2), torch.nan)
            kernels[place, targets] = wanted[:, :2]
            near = ((kernels[:, :, None] - kernels[:, None]).abs() <= self._trusted[:2]).all(dim=3)
            leader = near.sum(dim=2).argmax(dim=1)
            model, _ = self._expansions.of_sets(sets, kernels[torch.arange(len(sets), device=sets.device), leader])
            self._learn(pairs, model.select((place, targets)), leading=targets == leader[place])

    def _climb_alone(self) -> None:
        """Move every pair by expansions of its own, without the error of low-rank kernels."""
        outputscale, noise = self.best.parameters[:, 2:].exp().unbind(dim=1)
        error = outputscale * self._expansions.trace_tolerance / noise  # at most, of what was seen up to here
        self.best.objective[self._climbing] -= (self._objective.likelihood_weight * error)[self._climbing]
        self._fraction[:] = 1
        for _ in range(_MAX_ROUNDS):
            pairs = torch.nonzero(self._climbing)[:, 0]
            if not len(pairs):
                break
            model = self._expansions.of_pairs(self._sets[pairs], self._targets[pairs], self._proposals(pairs))
            self._learn(pairs, secant_corrected(model, self._origin.select(pairs)), leading=None)

    def _proposals(self, pairs: Tensor) -> Tensor:
        """Parameters (pairs, 4) that the pairs would like to see next."""
        move = self._goal.parameters[pairs] - self._origin.centre[pairs]
        shrink = (self._longest / move.abs()).amin(dim=1).clamp_max(1) * self._fraction[pairs]
        return self._origin.centre[pairs] + move * shrink[:, None]

    def _learn(self, pairs: Tensor, model: QuadraticModel, leading: Tensor | None) -> None:
        """Move pairs to where expansions are better, and stop those that are settled.

        Args:
            leading: (pairs,) bool, those whose proposals the expansions are taken at; None if all are, with
                approximate Hessians.
        """
        here, there, reach = prediction = self._objective.predict(model)
        better = here.objective > self.best.objective[pairs]
        for kept, new in ((self.best, here), (self._goal, there)):
            kept.update(pairs[better], new.select(better))
        for kept_part, new_part in zip(self._origin, model, strict=True):
            kept_part[pairs[better]] = new_part[better]
        failed = ~better if leading is None else ~better & leading
        self._fraction[pairs[better]] = 1.0
        self._fraction[pairs[failed]] /= 2
        if leading is None:
            largest = torch.where(has_low_noise(here), _LARGEST_GAIN_OF_LOW_NOISE, _LARGEST_GAIN)
            close = (reach <= 1) & (prediction.gain <= largest * self._objective.likelihood_weight)
        else:
            close = settled(prediction, _LARGEST_GAIN_TIMES_REACH * self._objective.likelihood_weight)
        close &= better
        self.best.update(pairs[close], there.select(close))
        self._climbing[pairs[close]] = False
        if leading is None:
            self._climbing[pairs[self._fraction[pairs] < _SHORTEST_MOVE]] = False
        if self._known is not None:
            at_known = (self._goal.parameters - self._known.parameters)[pairs].abs() <= self._trusted
            self._climbing[pairs[at_known.all(dim=1)]] = False
