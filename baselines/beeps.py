"""BEEPS: posterior means of causal effects in linear-Gaussian models, on the graphs of GADGET."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from baselines.gadget import GADGET
from bci.dataset import Dataset
from bci.linear_posterior import LinearPosterior, fit_linear_posterior


@dataclass(frozen=True, kw_only=True)
class BEEPS(GADGET):
    """GADGET's DAGs with Bayesian linear weights, which answer queries about means.

    Viinikka, Hyttinen, Pensar & Koivisto (2020), "Towards scalable Bayesian learning of causal DAGs". Where they draw
    one set of weights for every DAG, `bci.linear_posterior` averages over all. Settings as for GADGET.
    """

    answers_queries: ClassVar[bool] = True

    @property
    def module(self) -> str:
        return GADGET.__module__

    def _fit(self, dataset: Dataset, rng: np.random.Generator) -> LinearPosterior:
        return fit_linear_posterior(self.find_graphs(dataset, rng), dataset)
