"""RESIT-GP: the graph of RESIT, then Gaussian-process mechanisms on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from baselines.resit import RESIT
from bci.causal_posterior import GenerativePosterior
from bci.dataset import Dataset
from bci.posterior import WeightedGraphs
from bci.predictive import fit_gp_mechanisms
from bci.randomness import MAX_SEED


@dataclass(frozen=True, kw_only=True)
class ResitGP(RESIT):
    """In two stages: the graph of RESIT, then the mechanisms of ARCO-GP on it.

    Settings as for RESIT; `likelihood_weight` is that of its regressions, mechanisms have the full likelihood.
    """

    answers_queries: ClassVar[bool] = True

    @property
    def module(self) -> str:
        return RESIT.__module__

    def _fit(self, dataset: Dataset, rng: np.random.Generator) -> GenerativePosterior:
        structure = self.find_graphs(dataset, rng)
        assert structure.weights is not None
        return GenerativePosterior(
            structure=structure,
            query_graphs=WeightedGraphs(structure.graphs, structure.weights),
            names=dataset.names,
            scaler=dataset.scaler,
            mechanisms=fit_gp_mechanisms(dataset, structure.graphs),
            seed=int(rng.integers(MAX_SEED)),
        )
