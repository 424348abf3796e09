from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, RationalQuadratic, WhiteKernel

from baselines.gp_regressor import GPRegressor
from bci.dataset import Dataset
from bci.scores import score_parent_sets


@pytest.mark.parametrize("likelihood_weight", ["full", "per_sample"])
@pytest.mark.parametrize("num_inputs", [1, 2])
def test_predictions_are_those_of_a_gp_with_the_scored_hyperparameters(num_inputs, likelihood_weight):
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((60, num_inputs))
    outputs = np.sin(2 * inputs[:, 0]) + 0.3 * rng.standard_normal(60)
    dataset = Dataset.from_raw(np.column_stack([inputs, outputs]), "abc"[: num_inputs + 1])
    inputs, outputs = dataset.observations[:, :-1], dataset.observations[:, -1]
    table = score_parent_sets(dataset, num_inputs, likelihood_weight=likelihood_weight)
    everything = next(
        k
        for k, size in enumerate(table.parent_sets.sizes)
        if size == num_inputs and k >= 0 and torch.isfinite(table.scores[num_inputs, k])
    )
    lengthscale, gamma, outputscale, noise = table.hyperparameters[num_inputs, everything].exp().tolist()
    kernel = ConstantKernel(outputscale) * RationalQuadratic(lengthscale, gamma) + WhiteKernel(noise)
    oracle = GaussianProcessRegressor(kernel, optimizer=None).fit(inputs, outputs)
    new = rng.standard_normal((7, num_inputs))
    regressor = GPRegressor(likelihood_weight).fit(inputs, outputs)
    np.testing.assert_allclose(regressor.predict(new), oracle.predict(new), atol=2e-3)


def test_many_inputs_are_no_problem():
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((100, 19))
    outputs = inputs[:, 0] + 0.1 * rng.standard_normal(100)
    predicted = GPRegressor().fit(inputs, outputs).predict(inputs)
    assert np.corrcoef(predicted, outputs)[0, 1] > 0.95


def test_a_second_fit_forgets_the_first():
    rng = np.random.default_rng(0)
    inputs, first, second = rng.standard_normal((3, 50, 1))
    regressor = GPRegressor().fit(inputs, first[:, 0])
    regressor.fit(inputs[:, [0]], second[:, 0])
    np.testing.assert_array_equal(regressor.predict(inputs), GPRegressor().fit(inputs, second[:, 0]).predict(inputs))
