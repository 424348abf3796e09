"""MAP-II hyper-parameters of many (parent set, target) pairs at once, by a trust-region Newton method.

At a point in (lengthscale, gamma) one spectrum per parent set gives the log marginal likelihoods of all targets to
second order in all four hyper-parameters. A target whose optimum lies within reach of the expansion is done; the
others are expanded again where their optimum is predicted, together with targets of the same set nearby.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from bci.kernels import NOISE_PRIOR, OUTPUTSCALE_PRIOR, SHAPE_PRIOR, Gamma, lengthscale_prior
from bci.likelihood import (
    QuadraticModel,
    ascent_step,
    best_outputscale_and_noise,
    dense_log_marginal_likelihood,
    expand_likelihood,
    log_marginal_likelihood,
)
from bci.spectra import kernel_spectrum, kernel_spectrum_derivatives, select_pivots

# Error allowed in the trace of a kernel matrix of unit diagonal; costs 0.005 nats in the worst case seen.
_TRACE_TOLERANCE = 1e-3
# An expansion is trusted this far in the four logarithms if the gain it predicts, times the step, is small too.
_TRUSTED = (0.2, 0.5, 0.3, 0.3)
_LARGEST_GAIN_TIMES_STEP = 0.02
_LONGEST_MOVE = (0.4, 0.8)
# Beyond, up to this many times as far, the prediction is checked by an exact likelihood, and stands if the loss is small.
_VERIFIABLE = 2.5
_LARGEST_LOSS = 0.01
_DENSE_ROWS = 400  # exact likelihoods take dense matrices up to here
_CELL = (0.15, 0.4)  # pairs whose next (log lengthscale, log gamma) fall into one cell share an expansion
_MAX_ROUNDS = 20
# The likelihood can have a second mode, of a rougher function with less noise. It is looked for at these multiples of
# the prior modes, coarsely, and climbed where this comes within `_PROBE_MARGIN` nats of the best so far.
_ROUGH = (0.45, 0.58)
_PROBE_TRACE_TOLERANCE = 5e-2
_PROBE_MARGIN = 6.0
_BATCH_BYTES = {"cpu": 2**24, "cuda": 2**31}


class MapEstimate(NamedTuple):
    """The maximum for every (set, target); -inf and nan where the target is in the set."""

    objective: Tensor  # (sets, targets), likelihood_weight * log p(x | psi) + log p(psi)
    score: Tensor  # (sets, targets), log p(x | psi) + log p(psi)
    parameters: Tensor  # (sets, targets, 4), logarithms of lengthscale, gamma, outputscale, noise variance


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
        """The better of the mode near the prior's and, where there seems to be one, the rougher mode."""
        valid = ~(self.members[:, :, None] == self.nodes).any(dim=1)
        lengthscale, gamma = self._priors[0].mode, self._priors[1].mode
        # Most targets do not depend on the set, and this is about where they end up.
        flatter = 1 + self.likelihood_weight * 0.25 * 0.7 ** (self._size - 1) * (len(self.rows) / 200) ** 0.25
        estimate = self._climb(valid, (lengthscale * flatter, gamma))
        rough = (lengthscale * _ROUGH[0], gamma * _ROUGH[1])
        promising = valid & (self._probe(rough) > estimate.objective - _PROBE_MARGIN)
        if promising.any():
            other = self._climb(promising, rough)
            better = other.objective > estimate.objective
            for found, alternative in zip(estimate, other, strict=True):
                found[better] = alternative[better]
        return estimate

    @property
    def _size(self) -> int:
        return self.members.shape[1]

    @cached_property
    def _targets(self) -> Tensor:
        return self.rows[:, self.nodes]

    @cached_property
    def _priors(self) -> tuple[Gamma, ...]:
        return lengthscale_prior(self._size), SHAPE_PRIOR, OUTPUTSCALE_PRIOR, NOISE_PRIOR

    def _log_prior(self, parameters: Tensor) -> Tensor:
        columns = zip(self._priors, parameters.unbind(dim=-1), strict=True)
        return torch.stack([prior.log_density(column) for prior, column in columns]).sum(dim=0)

    def _climb(self, wanted: Tensor, start: tuple[float, float]) -> MapEstimate:
        """Maximise for the pairs `wanted` (sets, targets), starting at one (lengthscale, gamma)."""
        trusted, longest, cell = (self.rows.new_tensor(values) for values in (_TRUSTED, _LONGEST_MOVE, _CELL))
        estimate = MapEstimate(
            self.rows.new_full(wanted.shape, -torch.inf),
            self.rows.new_full(wanted.shape, -torch.inf),
            self.rows.new_full((*wanted.shape, 4), torch.nan),
        )
        # Of every pending pair: where its best expansion was, the objective there, and how much of a move to take.
        origin = self.rows.new_zeros(*wanted.shape, 2)
        at_origin = torch.full_like(estimate.objective, -torch.inf)
        fraction = torch.ones_like(at_origin)

        pairs = torch.nonzero(wanted)
        goals = self.rows.new_tensor(start).log().expand(len(pairs), 2)
        for _ in range(_MAX_ROUNDS):
            cells = torch.cat([pairs[:, :1], (goals / cell).round().long()], dim=1)
            groups, group_of = torch.unique(cells[:, [1, 2, 0]], dim=0, return_inverse=True)
            centres = self.rows.new_zeros(len(groups), 2).index_add_(0, group_of, goals)
            centres /= torch.bincount(group_of)[:, None]
            models = self._expand(groups[:, 2], centres)
            model = QuadraticModel(*(part[group_of, pairs[:, 1]] for part in models))

            here = self.likelihood_weight * model.value + self._log_prior(model.centre)
            step = self._best_step(model, trusted)
            likelihood = model.predict(step)
            prior = self._log_prior(model.centre + step)
            predicted = self.likelihood_weight * likelihood + prior
            index = pairs.unbind(dim=1)
            better = here > at_origin[index]
            improved = tuple(part[better] for part in index)
            at_origin[improved] = here[better]
            origin[improved] = model.centre[better, :2]
            estimate.objective[improved] = predicted[better]
            estimate.score[improved] = (likelihood + prior)[better]
            estimate.parameters[improved] = (model.centre + step)[better]
            fraction[index] = torch.where(better, 1.0, fraction[index] / 2)

            near = (step.abs() <= trusted).all(dim=-1)
            gain = predicted - here
            length = (step.abs() / trusted).amax(dim=-1) * trusted[0]
            done = better & near & (gain.abs() * length <= _LARGEST_GAIN_TIMES_STEP)
            verify = better & ~done & (gain > 0) & (step.abs() <= _VERIFIABLE * trusted).all(dim=-1)
            at = tuple(part[verify] for part in index)
            exact = self._likelihood(*at, (model.centre + step)[verify])
            error = self.likelihood_weight * (exact - likelihood[verify])
            good = error.square() * 2.25 / gain[verify] <= _LARGEST_LOSS
            done[verify] = good
            at = tuple(part[good] for part in at)
            estimate.objective[at] = self.likelihood_weight * exact[good] + prior[verify][good]
            estimate.score[at] = exact[good] + prior[verify][good]
            pairs = pairs[~done]
            if not len(pairs):
                break
            index = pairs.unbind(dim=1)
            move = estimate.parameters[index][:, :2] - origin[index]
            shrink = (longest / move.abs()).amin(dim=1).clamp_max(1) * fraction[index]
            goals = origin[index] + shrink[:, None] * move
        return estimate

    def _expand(self, sets: Tensor, log_kernel_parameters: Tensor) -> QuadraticModel:
        """Expansions for all targets, at the best outputscale and noise given (groups, 2) kernel parameters."""
        models = []
        for inputs, chunk, pivots in self._parts(sets, log_kernel_parameters, _TRACE_TOLERANCE):
            parameters = log_kernel_parameters[chunk]
            spectrum, derivatives = kernel_spectrum_derivatives(
                inputs, self._targets, *parameters.exp().unbind(dim=1), pivots
            )
            best = best_outputscale_and_noise(spectrum, len(self.rows), self.likelihood_weight)
            models.append(expand_likelihood(spectrum, derivatives, parameters, *best, len(self.rows)))
        return QuadraticModel(*(torch.cat(parts) for parts in zip(*models, strict=True)))

    def _likelihood(self, sets: Tensor, targets: Tensor, parameters: Tensor) -> Tensor:
        """Log marginal likelihoods (pairs,) at given (pairs, 4) hyper-parameters."""
        num_rows = len(self.rows)
        if not len(sets):
            return self.rows.new_empty(0)
        values = []
        if num_rows > _DENSE_ROWS:
            for inputs, chunk, pivots in self._parts(sets, parameters[:, :2], _TRACE_TOLERANCE):
                spectrum = kernel_spectrum(
                    inputs,
                    self._targets[:, targets[chunk]].T[..., None],
                    *parameters[chunk, :2].exp().unbind(dim=1),
                    pivots,
                )
                values.append(
                    log_marginal_likelihood(spectrum, *parameters[chunk, 2:, None].unbind(dim=1), num_rows)[:, 0]
                )
        else:
            for chunk in torch.arange(len(sets)).split(max(1, 2**23 // (24 * num_rows**2))):
                values.append(
                    dense_log_marginal_likelihood(
                        self._inputs(sets[chunk]), self._targets[:, targets[chunk]].T, parameters[chunk]
                    )
                )
        return torch.cat(values)

    def _probe(self, at: tuple[float, float]) -> Tensor:
        """The objective (sets, targets) at one (lengthscale, gamma), coarsely."""
        sets = torch.arange(len(self.members), device=self.rows.device)
        log_kernel_parameters = self.rows.new_tensor(at).log().expand(len(sets), 2)
        values = []
        for inputs, chunk, pivots in self._parts(sets, log_kernel_parameters, _PROBE_TRACE_TOLERANCE):
            parameters = log_kernel_parameters[chunk]
            spectrum = kernel_spectrum(inputs, self._targets, *parameters.exp().unbind(dim=1), pivots)
            best = best_outputscale_and_noise(spectrum, len(self.rows), self.likelihood_weight)
            likelihood = log_marginal_likelihood(spectrum, *best, len(self.rows))
            kernel_parameters = parameters[:, None, :].expand(*likelihood.shape, 2).unbind(dim=-1)
            prior = self._log_prior(torch.stack([*kernel_parameters, *best], dim=-1))
            values.append(self.likelihood_weight * likelihood + prior)
        return torch.cat(values)

    def _inputs(self, sets: Tensor) -> Tensor:
        return self.rows[:, self.members[sets]].transpose(0, 1).contiguous()

    def _parts(
        self, sets: Tensor, log_kernel_parameters: Tensor, trace_tolerance: float
    ) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Inputs, places in `sets` and pivots, in parts of a size that suits the hardware.

        Pivots are chosen for many sets at once, since that takes many small steps; what follows takes few large ones,
        and fewer sets at a time stay in the cache.
        """
        num_rows = len(self.rows)
        budget = _BATCH_BYTES.get(self.rows.device.type, _BATCH_BYTES["cpu"])
        for chunk in torch.arange(len(sets), device=sets.device).split(max(1, budget // (num_rows * 1200))):
            inputs = self._inputs(sets[chunk])
            pivots = select_pivots(
                inputs, *log_kernel_parameters[chunk].exp().unbind(dim=1), trace_tolerance / num_rows
            )
            part = max(1, budget // (num_rows * pivots.shape[1] * 100))
            for first in range(0, len(chunk), part):
                piece = slice(first, first + part)
                yield inputs[piece], chunk[piece], pivots[piece]

    def _best_step(self, model: QuadraticModel, trusted: Tensor) -> Tensor:
        """Steps (pairs, 4) to the maximum of the expanded objective.

        The prior is expanded as well, but for steps within the trusted reach it is exact.
        """
        powers = trusted.new_tensor([prior.shape - 1 for prior in self._priors])
        rates = trusted.new_tensor([prior.rate for prior in self._priors])
        step = torch.zeros_like(model.gradient)
        for _ in range(4):
            slope = rates * (model.centre + step).exp()
            likelihood = model.gradient + (model.hessian @ step[..., None])[..., 0]
            gradient = self.likelihood_weight * likelihood + powers - slope
            change = ascent_step(gradient, self.likelihood_weight * model.hessian - torch.diag_embed(slope))
            near = (step.abs() <= trusted).all(dim=-1, keepdim=True)
            step = torch.where(near, step + change, step)
        return step
