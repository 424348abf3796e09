"""Predictive distributions of one variable given its parents: what the mechanisms say once the data are seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from bci.dataset import Bools, Dataset, Floats
from bci.kernels import NormalInverseGamma, rational_quadratic
from bci.map_estimation import MapProblem
from bci.pivots import squared_distances

Family = tuple[int, tuple[int, ...]]
"""A node and its parents in ascending order."""

_ENTRIES_AT_ONCE = 2**20  # of a kernel matrix


class Predictive(NamedTuple):
    """Normal distributions of m new values, noise included: `mean` (m,) and `variance` (m,)."""

    mean: Floats
    variance: Floats


class StudentT(NamedTuple):
    """`location + scale * T` with T of a Student-t distribution of `df` degrees of freedom."""

    df: float
    location: float
    scale: float


class Mechanisms(Protocol):
    """Predictive distributions of every node of the graphs that queries are asked of, on the standardised scale."""

    def root(self, node: int) -> StudentT:
        """The distribution of a node without parents."""
        ...

    def predict(self, node: int, parents: tuple[int, ...], inputs: Floats) -> Predictive:
        """The distributions of a node given values of its parents, `inputs` (m, parents), parents ascending."""
        ...


@dataclass(frozen=True, eq=False)
class GPMechanisms:
    """Gaussian-process mechanisms at fixed hyper-parameters, and normal-inverse-gamma roots.

    A node is learnt from the rows where it was not intervened on. What a family needs is computed once, on first use.

    Args:
        observations: (N, d), standardised.
        intervened: (N, d).
        hyperparameters: of every family with parents that will be asked for, (4,): logarithms of lengthscale, gamma,
            outputscale and noise variance.
    """

    observations: Floats
    intervened: Bools
    hyperparameters: Mapping[Family, Floats]
    _regressions: dict[Family, _Regression] = field(default_factory=dict, init=False, repr=False)

    def root(self, node: int) -> StudentT:
        """Posterior predictive of the normal-inverse-gamma model; Murphy (2007), equation 110."""
        after = NormalInverseGamma().posterior(torch.as_tensor(self.observations[self._rows(node), node]))
        variance = after.beta * (after.kappa + 1) / (after.alpha * after.kappa)
        return StudentT(2 * after.alpha, after.mu, variance**0.5)

    def predict(self, node: int, parents: tuple[int, ...], inputs: Floats) -> Predictive:
        """Posterior predictive of the GP, in blocks of bounded memory."""
        family = (node, parents)
        if family not in self._regressions:
            rows = self.observations[self._rows(node)]
            self._regressions[family] = _Regression.fit(
                torch.as_tensor(rows[:, list(parents)]),
                torch.as_tensor(rows[:, node]),
                torch.as_tensor(self.hyperparameters[family]),
            )
        return self._regressions[family].predict(inputs)

    def _rows(self, node: int) -> Bools:
        rows: Bools = ~self.intervened[:, node]
        return rows


def fit_gp_mechanisms(dataset: Dataset, graphs: Iterable[Bools]) -> GPMechanisms:
    """Mechanisms for every family of the given DAGs (d, d), whatever its size, at MAP-II hyper-parameters."""
    hyperparameters: dict[Family, Floats] = {}
    for family in sorted({family for graph in graphs for family in families(graph)}):
        node, parents = family
        if parents:
            rows = torch.as_tensor(dataset.observations[~dataset.intervened[:, node]])
            estimate = MapProblem(rows, torch.tensor([parents]), torch.tensor([node])).solve()
            hyperparameters[family] = estimate.parameters[0, 0].numpy()
    return GPMechanisms(dataset.observations, dataset.intervened, hyperparameters)


def families(graph: Bools) -> list[Family]:
    """Every node of a graph (d, d) with its parents."""
    return [(node, tuple(parents.nonzero()[0].tolist())) for node, parents in enumerate(graph.T)]


@dataclass(frozen=True, eq=False)
class _Regression:
    """The GP of one family, given its rows."""

    inputs: Tensor
    log_parameters: Tensor
    root: Tensor
    weights: Tensor

    @classmethod
    def fit(cls, inputs: Tensor, targets: Tensor, log_parameters: Tensor) -> _Regression:
        covariance = _covariance(inputs, inputs, log_parameters)
        covariance.diagonal().add_(log_parameters[3].exp())
        root = torch.linalg.cholesky(covariance)
        return cls(inputs, log_parameters, root, torch.cholesky_solve(targets[:, None], root)[:, 0])

    def predict(self, inputs: Floats) -> Predictive:
        blocks = torch.split(torch.as_tensor(inputs), max(1, _ENTRIES_AT_ONCE // len(self.inputs)))
        means, variances = zip(*map(self._predict, blocks), strict=True)
        return Predictive(torch.cat(means).numpy(), torch.cat(variances).numpy())

    def _predict(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        cross = _covariance(self.inputs, inputs, self.log_parameters)
        _, _, outputscale, noise = self.log_parameters.exp()
        explained = torch.linalg.solve_triangular(self.root, cross, upper=False).square().sum(dim=0)
        return cross.T @ self.weights, (outputscale - explained).clamp_min(0) + noise


def _covariance(left: Tensor, right: Tensor, log_parameters: Tensor) -> Tensor:
    lengthscale, gamma, outputscale, _ = log_parameters.exp()
    distances = squared_distances(left[None], right[None])[0]
    return outputscale * rational_quadratic(distances, lengthscale, gamma)
