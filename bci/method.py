"""The contract of every method: `fit(dataset, rng)` returns a posterior."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import ClassVar

import numpy as np

from bci.dataset import Dataset, check_shapes, check_values
from bci.errors import InvalidInput
from bci.posterior import GraphKind, Posterior


class Method(ABC):
    """A causal discovery method. Subclasses hold their settings as attributes and write only `_fit`.

    Class attributes declare what it can do: `graph_kind`, the kind of graph it returns;
    `uses_interventional_data`, whether rows with interventions are learnt from (else they are left out);
    `answers_queries`, whether the posterior answers interventional queries.
    """

    graph_kind: ClassVar[GraphKind] = "dag"
    uses_interventional_data: ClassVar[bool] = False
    answers_queries: ClassVar[bool] = False

    def fit(self, dataset: Dataset, rng: np.random.Generator) -> Posterior:
        """Learn from `dataset`, with all randomness from `rng`.

        Raises:
            InvalidInput: the data cannot be learnt from (see `bci.dataset.check_values`).
        """
        if not self.uses_interventional_data:
            dataset = observational_part(dataset)
        check_shapes(dataset.observations, dataset.names, dataset.intervened)
        check_values(dataset.observations, dataset.names)
        return self._fit(dataset, rng)

    @abstractmethod
    def _fit(self, dataset: Dataset, rng: np.random.Generator) -> Posterior:
        """Learn from data that passed the checks. Must not write to `dataset`."""


def observational_part(dataset: Dataset) -> Dataset:
    """The rows without any intervention, on the scale of the whole data set.

    Raises:
        InvalidInput: fewer than two such rows.
    """
    rows = ~dataset.intervened.any(axis=1)
    if rows.all():
        return dataset
    if rows.sum() < 2:
        raise InvalidInput(
            "data: expected at least 2 rows without interventions for a method that cannot learn from others, "
            f"got {rows.sum()}; add such rows or use another method"
        )
    return replace(dataset, observations=dataset.observations[rows], intervened=dataset.intervened[rows])
