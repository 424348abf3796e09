"""Gaussian-process mechanisms on the true graph: what causal queries cost in accuracy if the graph is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, get_args

import numpy as np

from bci.causal_posterior import GenerativePosterior
from bci.dataset import Dataset
from bci.errors import InvalidInput
from bci.method import Method
from bci.posterior import GraphPosterior
from bci.predictive import fit_gp_mechanisms
from bci.scores import LikelihoodWeight
from bci.settings import check_choice


@dataclass(frozen=True, kw_only=True)
class OracleGP(Method):
    """The mechanisms of ARCO-GP on the true graph, whatever the number of parents; a floor for the others.

    Args:
        likelihood_weight: "full" or "per_sample"; see `bci.scores`.

    Raises:
        InvalidInput: a setting out of range.
    """

    uses_interventional_data: ClassVar[bool] = True
    answers_queries: ClassVar[bool] = True

    likelihood_weight: LikelihoodWeight = "full"

    def __post_init__(self) -> None:
        check_choice("likelihood_weight", self.likelihood_weight, get_args(LikelihoodWeight))

    def _fit(self, dataset: Dataset, rng: np.random.Generator) -> GenerativePosterior:
        if dataset.graph is None:
            raise InvalidInput("data: expected a data set with its true graph, got none; use another method")
        structure = GraphPosterior(dataset.graph[None])
        mechanisms = fit_gp_mechanisms(dataset, structure.graphs, self.likelihood_weight)
        return GenerativePosterior.of(structure, structure.sample_graphs(1, rng), mechanisms, dataset, rng)
