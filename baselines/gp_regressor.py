"""The Gaussian-process mechanism of ARCO-GP as a regressor with the interface of scikit-learn."""

from __future__ import annotations

import torch

from bci.dataset import Floats
from bci.kernels import rational_quadratic
from bci.map_estimation import MapProblem
from bci.pivots import squared_distances
from bci.scores import LikelihoodWeight, weight_of_likelihood


class GPRegressor:
    """Posterior mean of a zero-mean GP with rational-quadratic kernel and MAP-II hyper-parameters.

    Args:
        likelihood_weight: "full" or "per_sample"; see `bci.scores`.
    """

    def __init__(self, likelihood_weight: LikelihoodWeight = "full") -> None:
        self.likelihood_weight = likelihood_weight

    def fit(self, X: Floats, y: Floats) -> GPRegressor:
        """Estimate the hyper-parameters of `y` (N,) given `X` (N, inputs), both about standardised."""
        self._inputs, targets = torch.as_tensor(X, dtype=torch.float64), torch.as_tensor(y, dtype=torch.float64)
        num_rows, num_inputs = self._inputs.shape
        weight = weight_of_likelihood(self.likelihood_weight, num_rows)
        rows = torch.cat([self._inputs, targets[:, None]], dim=1)
        members, target = torch.arange(num_inputs)[None], torch.tensor([num_inputs])
        estimate = MapProblem(rows, members, target, weight).solve()
        self._lengthscale, self._gamma, self._outputscale, noise = estimate.parameters[0, 0].exp()
        covariance = self._covariance(self._inputs)
        covariance.diagonal().add_(noise)
        self._weights = torch.cholesky_solve(targets[:, None], torch.linalg.cholesky(covariance))[:, 0]
        return self

    def predict(self, X: Floats) -> Floats:
        """Posterior mean (n,) of the function at `X` (n, inputs)."""
        mean: Floats = (self._covariance(torch.as_tensor(X, dtype=torch.float64)) @ self._weights).numpy()
        return mean

    def _covariance(self, inputs: torch.Tensor) -> torch.Tensor:
        """(n, N) with the rows of the fit."""
        distances = squared_distances(inputs[None], self._inputs[None])[0]
        covariance: torch.Tensor = self._outputscale * rational_quadratic(distances, self._lengthscale, self._gamma)
        return covariance
