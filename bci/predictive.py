"""Predictive distributions of one variable given its parents: what the mechanisms say once the data are seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import torch

from bci.dataset import Bools, Dataset, Floats
from bci.family_scores import score_families
from bci.gp_regression import GPRegression, gp_regression
from bci.kernels import NormalInverseGamma
from bci.scores import LikelihoodWeight, ScoreTable

Family = tuple[int, tuple[int, ...]]
"""A node and its parents in ascending order."""

_ENTRIES_AT_ONCE = 2**17  # of a kernel matrix between new and known rows


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
    _regressions: dict[Family, GPRegression] = field(default_factory=dict, init=False, repr=False)

    def root(self, node: int) -> StudentT:
        """Posterior predictive of the normal-inverse-gamma model; Murphy (2007), equation 110."""
        after = NormalInverseGamma().posterior(torch.as_tensor(self.observations[self._rows(node), node]))
        variance = after.beta * (after.kappa + 1) / (after.alpha * after.kappa)
        return StudentT(2 * after.alpha, after.mu, variance**0.5)

    def predict(self, node: int, parents: tuple[int, ...], inputs: Floats) -> Predictive:
        """Posterior predictive of the GP, in blocks of bounded memory."""
        regression = self._regression(node, parents)
        blocks = torch.split(torch.as_tensor(inputs), max(1, _ENTRIES_AT_ONCE // len(regression.points)))
        means, variances = zip(*map(regression.predict, blocks), strict=True)
        return Predictive(torch.cat(means).numpy(), torch.cat(variances).numpy())

    def _regression(self, node: int, parents: tuple[int, ...]) -> GPRegression:
        family = (node, parents)
        if family not in self._regressions:
            rows = torch.as_tensor(self.observations[self._rows(node)])
            log_parameters = torch.as_tensor(self.hyperparameters[family])
            self._regressions[family] = gp_regression(rows[:, list(parents)], rows[:, node], log_parameters)
        return self._regressions[family]

    def _rows(self, node: int) -> Bools:
        rows: Bools = ~self.intervened[:, node]
        return rows


def fit_gp_mechanisms(
    dataset: Dataset, graphs: Iterable[Bools], likelihood_weight: LikelihoodWeight = "full"
) -> GPMechanisms:
    """Mechanisms for every family of the given DAGs (d, d), whatever its size, at MAP-II hyper-parameters.

    Raises:
        InvalidInput: a variable with fewer than two rows to learn from.
    """
    wanted = _with_parents(graphs)
    nodes = torch.tensor([node for node, _ in wanted], dtype=torch.int64)
    parents = torch.zeros(len(wanted), dataset.num_nodes, dtype=torch.bool)
    for row, (_, members) in zip(parents, wanted, strict=True):
        row[list(members)] = True
    found = score_families(dataset, nodes, parents, likelihood_weight=likelihood_weight).hyperparameters.numpy()
    return GPMechanisms(dataset.observations, dataset.intervened, dict(zip(wanted, found, strict=True)))


def scored_gp_mechanisms(dataset: Dataset, graphs: Iterable[Bools], table: ScoreTable) -> GPMechanisms:
    """As `fit_gp_mechanisms`, for DAGs whose parent sets have all been scored on `dataset`."""
    known = table.hyperparameters.cpu().numpy()
    hyperparameters = {
        (node, parents): known[node, table.parent_sets.number(parents)] for node, parents in _with_parents(graphs)
    }
    return GPMechanisms(dataset.observations, dataset.intervened, hyperparameters)


def families(graph: Bools) -> list[Family]:
    """Every node of a graph (d, d) with its parents."""
    return [(node, tuple(parents.nonzero()[0].tolist())) for node, parents in enumerate(graph.T)]


def _with_parents(graphs: Iterable[Bools]) -> list[Family]:
    """The distinct families of the graphs, sorted, without roots."""
    return sorted({family for graph in graphs for family in families(graph) if family[1]})
