"""The objective of a MAP-II estimate, and where a second-order expansion of the likelihood puts its maximum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from bci.kernels import NOISE_PRIOR, OUTPUTSCALE_PRIOR, SHAPE_PRIOR, Gamma, lengthscale_prior
from bci.newton import QuadraticModel, ascent_step

# Expansions are trusted this far in the four logarithms.
TRUSTED = (0.2, 0.5, 0.3, 0.3)
_PRIOR_STEPS = 4  # Newton steps for the prior, whose curvature changes along the way
_FARTHEST = 3.0  # that a step may change any logarithm


class MapEstimate(NamedTuple):
    """Hyper-parameters and their worth, for pairs of a parent set and a target."""

    objective: Tensor  # (...), likelihood_weight * log p(x | psi) + log p(psi)
    score: Tensor  # (...), log p(x | psi) + log p(psi)
    parameters: Tensor  # (..., 4), logarithms of lengthscale, gamma, outputscale, noise variance

    def select(self, where: Tensor | tuple[Tensor, ...]) -> MapEstimate:
        """The estimates that a mask or an index of the leading dimensions picks."""
        return MapEstimate(*(part[where] for part in self))

    def update(self, where: Tensor, other: MapEstimate) -> None:
        """Replace what `where` picks by all of `other`, in place."""
        for mine, new in zip(self, other, strict=True):
            mine[where] = new


class Prediction(NamedTuple):
    """What an expansion says: the estimate at its centre, and the maximum that it predicts."""

    here: MapEstimate
    there: MapEstimate
    reach: Tensor  # (...), the step between them in units of `TRUSTED`, largest of the four

    @property
    def gain(self) -> Tensor:
        return (self.there.objective - self.here.objective).abs()


@dataclass(frozen=True)
class MapObjective:
    """`likelihood_weight * log p(x | psi) + log p(psi)` for parent sets of `num_parents` members."""

    num_parents: int
    likelihood_weight: float

    @property
    def priors(self) -> Sequence[Gamma]:
        """In the order of the parameters."""
        return lengthscale_prior(self.num_parents), SHAPE_PRIOR, OUTPUTSCALE_PRIOR, NOISE_PRIOR

    def estimate(self, log_likelihood: Tensor, parameters: Tensor) -> MapEstimate:
        """What parameters (..., 4) with log marginal likelihoods (...) are worth."""
        columns = zip(self.priors, parameters.unbind(dim=-1), strict=True)
        log_prior = torch.stack([prior.log_density(column) for prior, column in columns]).sum(dim=0)
        return MapEstimate(self.likelihood_weight * log_likelihood + log_prior, log_likelihood + log_prior, parameters)

    def predict(self, model: QuadraticModel) -> Prediction:
        """The maximum, for expansions of the log marginal likelihood; the prior is exact within `TRUSTED`."""
        trusted = model.centre.new_tensor(TRUSTED)
        powers = model.centre.new_tensor([prior.shape - 1 for prior in self.priors])
        rates = model.centre.new_tensor([prior.rate for prior in self.priors])
        step = torch.zeros_like(model.centre)
        for _ in range(_PRIOR_STEPS):
            slope = rates * (model.centre + step).exp()
            likelihood = model.gradient + (model.hessian @ step[..., None])[..., 0]
            gradient = self.likelihood_weight * likelihood + powers - slope
            change = ascent_step(gradient, self.likelihood_weight * model.hessian - torch.diag_embed(slope))
            change *= (_FARTHEST / change.abs().amax(dim=-1, keepdim=True)).clamp_max(1)
            near = (step.abs() <= trusted).all(dim=-1, keepdim=True)
            step = torch.where(near, step + change, step)
        here = self.estimate(model.value, model.centre)
        there = self.estimate(model.predict(step), model.centre + step)
        return Prediction(here, there, (step.abs() / trusted).amax(dim=-1))
