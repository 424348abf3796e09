"""Scores of all parent sets: `log p(x_i | x_S, psi*) + log p(psi*)` at the MAP-II hyper-parameters psi*.

Toth et al. (2025), "Effective Bayesian causal inference via structural marginalisation and autoregressive orders",
section on Gaussian-process inference; a root is scored by its marginal likelihood.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from bci.counting import counted
from bci.dataset import Dataset
from bci.errors import InvalidInput
from bci.kernels import NormalInverseGamma
from bci.map_estimation import MapProblem
from bci.parent_sets import ParentSets

LikelihoodWeight = Literal["full", "per_sample"]

_SETS_AT_ONCE = 512


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """Scores of every (node, parent set).

    Args:
        parent_sets: the numbering of the sets.
        scores: (nodes, sets) float64; -inf where the node is in the set.
        hyperparameters: (nodes, sets, 4), logarithms of lengthscale, gamma, outputscale and noise variance at the
            MAP-II estimate; nan for the empty set and where the score is -inf.
    """

    parent_sets: ParentSets
    scores: Tensor
    hyperparameters: Tensor


def score_parent_sets(
    dataset: Dataset,
    max_parents: int,
    *,
    likelihood_weight: LikelihoodWeight = "full",
    device: torch.device | str = "cpu",
) -> ScoreTable:
    """Score every parent set of every node; node i on the rows where it was not intervened on.

    Args:
        dataset: standardised observations (N, d).
        max_parents: K, the largest parent set; below d.
        likelihood_weight: "full" maximises the objective of the paper; "per_sample" finds the hyper-parameters with
            the log likelihood divided by N, as the published code does. Scores are `log p(x|psi) + log p(psi)` in both.
        device: where the linear algebra runs, in float64.

    Raises:
        InvalidInput: max_parents out of range, or a node with fewer than two rows to learn from.
    """
    parent_sets = ParentSets(dataset.num_nodes, max_parents)
    check_rows_to_learn_from(dataset)
    observations = torch.as_tensor(dataset.observations, dtype=torch.float64, device=device)
    intervened = torch.as_tensor(dataset.intervened, device=device)
    shape = (dataset.num_nodes, len(parent_sets))
    scores = observations.new_full(shape, -torch.inf)
    hyperparameters = observations.new_full((*shape, 4), torch.nan)
    root = NormalInverseGamma()
    for node, rows in enumerate((~intervened).unbind(dim=1)):
        scores[node, 0] = root.log_marginal_likelihood(observations[rows, node])

    batches = _batches(parent_sets)
    # Nodes with the same rows are targets of the same kernel matrices.
    patterns, pattern_of = torch.unique(intervened, dim=1, return_inverse=True)
    work = [(pattern, batch) for pattern in range(patterns.shape[1]) for batch in batches]
    for pattern, batch in counted(work, "parent sets", "batch"):
        rows = ~patterns[:, pattern]
        nodes = torch.nonzero(pattern_of == pattern)[:, 0]
        members = parent_sets.padded_members[batch, : int(parent_sets.sizes[batch[0]])].to(device)
        weight = weight_of_likelihood(likelihood_weight, int(rows.sum()))
        estimate = MapProblem(observations[rows], members, nodes, weight).solve()
        scores[nodes[:, None], batch.to(device)] = estimate.score.T
        hyperparameters[nodes[:, None], batch.to(device)] = estimate.parameters.transpose(0, 1)
    return ScoreTable(parent_sets, scores, hyperparameters)


def check_rows_to_learn_from(dataset: Dataset) -> None:
    """Raise InvalidInput if a variable is left with fewer than two rows where it was not intervened on."""
    for name, rows in zip(dataset.names, (~dataset.intervened).sum(axis=0), strict=True):
        if rows < 2:
            raise InvalidInput(
                f"column {name!r}: expected at least 2 rows without an intervention on it, "
                f"got {rows}; add data or drop the variable"
            )


def weight_of_likelihood(likelihood_weight: LikelihoodWeight, num_rows: int) -> float:
    """The factor of the log likelihood in the objective that hyper-parameters maximise; see `score_parent_sets`."""
    return 1.0 if likelihood_weight == "full" else 1.0 / num_rows


def _batches(parent_sets: ParentSets) -> list[Tensor]:
    """Numbers of the non-empty sets, in runs of equal set size."""
    by_size = (torch.nonzero(parent_sets.sizes == size)[:, 0] for size in range(1, parent_sets.max_size + 1))
    return [batch for numbers in by_size for batch in torch.split(numbers, _SETS_AT_ONCE)]
