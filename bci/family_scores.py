"""Scores of requested families (a node and its parents, any number of them), and a memory of those known.

Where `bci.scores` has a table of all small parent sets, this scores what is asked for, as methods do that walk through
graphs. Families with the same parents share the expansions of one kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bci.dataset import Dataset
from bci.kernels import NormalInverseGamma
from bci.map_estimation import MapProblem
from bci.scores import LikelihoodWeight, check_rows_to_learn_from, weight_of_likelihood

MapSearch = Literal["thorough", "plain"]
"""How MAP-II hyper-parameters are found: as in `bci.scores`; or, from `_LEAST_PLAIN` parents on, by one climb each."""

_LEAST_PLAIN = 4  # smaller sets have low-rank kernels and many targets
_SETS_AT_ONCE = 512


class FamilyScores(NamedTuple):
    """Scores (families,), and logarithms (families, 4) of lengthscale, gamma, outputscale and noise variance.

    The latter are nan for a node without parents.
    """

    scores: Tensor
    hyperparameters: Tensor


def score_families(
    dataset: Dataset,
    nodes: Tensor,
    parents: Tensor,
    *,
    likelihood_weight: LikelihoodWeight = "full",
    search: MapSearch = "thorough",
) -> FamilyScores:
    """What `score_parent_sets` finds for single pairs: a node is scored on the rows where it was not intervened on.

    Args:
        dataset: standardised observations (N, d).
        nodes: (families,) int64.
        parents: (families, d) bool; a node is no parent of its own.
        likelihood_weight: see `bci.scores.score_parent_sets`.
        search: "thorough", or "plain" to climb from the prior's mode alone where there are four or more parents and at
            most 300 rows: about 4 ms a family at 200 rows where "thorough" takes 7 to 18. Of two modes it may find the
            lower one; on 420 families of 4 to 19 parents in simulated data it never lost more than 0.03 nats.

    Raises:
        InvalidInput: a variable with fewer than two rows to learn from.
        ValueError: a node among its own parents.
    """
    if parents.gather(1, nodes[:, None]).any():
        raise ValueError("expected no node among its own parents")
    check_rows_to_learn_from(dataset)
    observations = torch.as_tensor(dataset.observations, dtype=torch.float64)
    intervened = torch.as_tensor(dataset.intervened)
    scores = observations.new_empty(len(nodes))
    hyperparameters = observations.new_full((len(nodes), 4), torch.nan)
    patterns, pattern_of = torch.unique(intervened, dim=1, return_inverse=True)
    sizes = parents.sum(dim=1)
    for pattern in range(patterns.shape[1]):
        rows = observations[~patterns[:, pattern]]
        weight = weight_of_likelihood(likelihood_weight, len(rows))
        of_pattern = pattern_of[nodes] == pattern
        for place in torch.nonzero(of_pattern & (sizes == 0))[:, 0].tolist():
            scores[place] = NormalInverseGamma().log_marginal_likelihood(rows[:, nodes[place]])
        for size in torch.unique(sizes[of_pattern & (sizes > 0)]).tolist():
            places = torch.nonzero(of_pattern & (sizes == size))[:, 0]
            for part, problem, pairs in _problems(rows, nodes[places], parents[places], size, weight):
                plain = search == "plain" and size >= _LEAST_PLAIN and not problem.many_rows
                estimate = (problem.solve_plainly() if plain else problem.solve()).select(pairs)
                scores[places[part]] = estimate.score
                hyperparameters[places[part]] = estimate.parameters
    return FamilyScores(scores, hyperparameters)


def _problems(
    rows: Tensor, nodes: Tensor, parents: Tensor, size: int, weight: float
) -> Iterator[tuple[Tensor, MapProblem, tuple[Tensor, Tensor]]]:
    """Places of families with `size` parents, a problem that holds them, and where its estimates have them."""
    sets, set_of = torch.unique(parents, dim=0, return_inverse=True)
    members = torch.nonzero(sets)[:, 1].reshape(len(sets), size)
    for first in range(0, len(sets), _SETS_AT_ONCE):
        part = torch.nonzero((set_of >= first) & (set_of < first + _SETS_AT_ONCE))[:, 0]
        targets, target_of = torch.unique(nodes[part], return_inverse=True)
        chosen = members[first : first + _SETS_AT_ONCE]
        wanted = torch.zeros(len(chosen), len(targets), dtype=torch.bool)
        pairs = (set_of[part] - first, target_of)
        wanted[pairs] = True
        yield part, MapProblem(rows, chosen, targets, weight, wanted), pairs


class FamilyScoreCache:
    """Scores of families of one data set, each computed once.

    Args: as `score_families`.
    """

    def __init__(self, dataset: Dataset, *, likelihood_weight: LikelihoodWeight, search: MapSearch) -> None:
        self._dataset, self._likelihood_weight, self._search = dataset, likelihood_weight, search
        self._known: dict[bytes, float] = {}

    def __len__(self) -> int:
        """The number of families scored so far."""
        return len(self._known)

    def scores(self, nodes: Tensor, parents: Tensor) -> Tensor:
        """Scores (families,) for nodes (families,) and distinct or repeated parent sets (families, d) bool."""
        keys = family_keys(nodes, parents)
        unique, first, place = np.unique(keys, return_index=True, return_inverse=True)
        names = [key.tobytes() for key in unique]
        new = [number for number, name in enumerate(names) if name not in self._known]
        if new:
            chosen = torch.as_tensor(first[new])
            found = score_families(
                self._dataset,
                nodes[chosen],
                parents[chosen],
                likelihood_weight=self._likelihood_weight,
                search=self._search,
            )
            self._known.update(zip((names[number] for number in new), found.scores.tolist(), strict=True))
        known = torch.tensor([self._known[name] for name in names], dtype=torch.float64)
        return known[torch.as_tensor(place)]


def family_keys(nodes: Tensor, parents: Tensor) -> NDArray[np.void]:
    """One value (families,) per family, equal for equal families, in an arbitrary but fixed order."""
    number = nodes.numpy().astype(">u4")[:, None].view(np.uint8)
    packed = np.concatenate([number, np.packbits(parents.numpy(), axis=1)], axis=1)
    return np.ascontiguousarray(packed).view(np.dtype((np.void, packed.shape[1])))[:, 0]
