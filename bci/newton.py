"""Second-order expansions of functions of a few parameters, and the Newton steps that they suggest."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

_SMALLEST_CURVATURE = 1e-6  # relative to the largest
# A secant correction is left out where it would rest on less than this share of the change of the gradient.
_LEAST_SECANT_COSINE = 0.05


class QuadraticModel(NamedTuple):
    """Expansions of functions of `n` parameters at `centre`."""

    centre: Tensor  # (..., n)
    value: Tensor  # (...)
    gradient: Tensor  # (..., n)
    hessian: Tensor  # (..., n, n)

    def predict(self, step: Tensor) -> Tensor:
        """The value at `centre + step`."""
        bend = (self.hessian @ step[..., None])[..., 0] / 2
        return self.value + (step * (self.gradient + bend)).sum(dim=-1)

    def select(self, where: Tensor) -> QuadraticModel:
        """The expansions that a mask or an index of the leading dimensions picks."""
        return QuadraticModel(*(part[where] for part in self))


def concatenate(models: list[QuadraticModel]) -> QuadraticModel:
    """One batch from several, along the first dimension."""
    return QuadraticModel(*(torch.cat(parts) for parts in zip(*models, strict=True)))


def ascent_step(gradient: Tensor, hessian: Tensor) -> Tensor:
    """Newton step (..., n) uphill for a gradient (..., n) and a Hessian (..., n, n), made concave where it is not."""
    root = torch.linalg.cholesky(-concave(hessian))
    return torch.cholesky_solve(gradient[..., None], root)[..., 0]


def concave(hessian: Tensor) -> Tensor:
    """The Hessian (..., n, n), its eigenvalues replaced by minus their magnitude unless all are negative.

    Saddle-free Newton, Dauphin et al. (2014), "Identifying and attacking the saddle point problem".
    """
    bad = torch.linalg.cholesky_ex(-hessian).info > 0
    if not bad.any():
        return hessian
    eigenvalues, vectors = torch.linalg.eigh(hessian[bad])
    hessian = hessian.clone()
    magnitudes = eigenvalues.abs()
    magnitudes = torch.maximum(magnitudes, _SMALLEST_CURVATURE * (1 + magnitudes.amax(dim=-1, keepdim=True)))
    hessian[bad] = -(vectors * magnitudes[..., None, :]) @ vectors.mT
    return hessian


def secant_corrected(model: QuadraticModel, before: QuadraticModel) -> QuadraticModel:
    """The model with its Hessian changed to map the step from `before.centre` to the change of the gradient.

    Symmetric rank-one update, Nocedal & Wright (2006), "Numerical optimization", eq. 6.24. A Hessian stays as it is
    where the update is ill determined, as for no step at all.
    """
    step = model.centre - before.centre
    missed = model.gradient - before.gradient - (model.hessian @ step[..., None])[..., 0]
    along = (missed * step).sum(dim=-1)
    sound = along.abs() > _LEAST_SECANT_COSINE * missed.norm(dim=-1) * step.norm(dim=-1)
    scaled = missed / torch.where(sound, along, torch.inf)[..., None]
    return model._replace(hessian=model.hessian + missed[..., :, None] * scaled[..., None, :])
