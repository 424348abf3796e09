from __future__ import annotations

import numpy as np
import pytest

from bci.causal_posterior import GenerativePosterior
from bci.dataset import Dataset
from bci.effect_matrix import effect_matrix
from bci.linear_posterior import fit_linear_posterior
from bci.posterior import GraphPosterior
from bci.predictive import fit_gp_mechanisms

GRAPHS = np.array([[[0, 1, 1], [0, 0, 1], [0, 0, 0]], [[0, 0, 0], [1, 0, 0], [0, 1, 0]]], dtype=bool)


def linear(structure, dataset):
    return fit_linear_posterior(structure, dataset)


def generative(structure, dataset):
    graphs = structure.sample_graphs(1, np.random.default_rng(0))
    mechanisms = fit_gp_mechanisms(dataset, structure.graphs)
    return GenerativePosterior(structure, graphs, dataset.names, dataset.scaler, mechanisms, 7, 100)


@pytest.mark.parametrize("make", [linear, generative])
def test_every_entry_is_the_average_causal_effect_of_row_on_column(make):
    rng = np.random.default_rng(0)
    dataset = Dataset.from_raw(np.cumsum(rng.normal(size=(30, 3)), axis=1), "abc")
    posterior = make(GraphPosterior(GRAPHS, np.array([0.7, 0.3])), dataset)
    mean, std = effect_matrix(posterior)
    assert (np.diag(mean) == 0).all()
    assert (np.diag(std) == 0).all()
    for i, j in np.argwhere(~np.eye(3, dtype=bool)):
        effect = posterior.average_causal_effect(int(j), {int(i): 1.0}, {int(i): 0.0})
        assert mean[i, j] == pytest.approx(effect.mean, abs=1e-12)
        assert std[i, j] == pytest.approx(effect.std, abs=1e-12)
    assert mean[0, 1] > 0.1
