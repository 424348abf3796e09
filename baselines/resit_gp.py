"""RESIT-GP: the graph of RESIT, then Gaussian-process mechanisms on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from baselines.resit import RESIT
from bci.causal_posterior import GenerativePosterior
from bci.dataset import Dataset
from bci.predictive import fit_gp_mechanisms


@dataclass(frozen=True, kw_only=True)
class ResitGP(RESIT):
    """In two stages: the graph of RESIT, then the mechanisms of ARCO-GP on it. Settings as for RESIT."""

    answers_queries: ClassVar[bool] = True

    @property
    def module(self) -> str:
        return RESIT.__module__

    def _fit(self, dataset: Dataset, rng: np.random.Generator) -> GenerativePosterior:
        structure = self.find_graphs(dataset, rng)
        mechanisms = fit_gp_mechanisms(dataset, structure.graphs, self.likelihood_weight)
        return GenerativePosterior.of(structure, structure.sample_graphs(1, rng), mechanisms, dataset, rng)
