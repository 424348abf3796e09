"""The method that knows the graph."""

from dataclasses import replace

import numpy as np
import pytest

from bci.data.sachs import sachs_gp
from bci.errors import InvalidInput
from bci.oracle_gp import OracleGP
from bci.predictive import fit_gp_mechanisms


@pytest.fixture(scope="module")
def dataset():
    return sachs_gp(mechanism="gp", num_samples=40, seed=1)


def test_the_graph_is_the_true_one(dataset):
    posterior = OracleGP().fit(dataset, np.random.default_rng(0))
    np.testing.assert_array_equal(posterior.edge_probabilities, dataset.graph)
    np.testing.assert_array_equal(posterior.query_graphs.graphs, dataset.graph[None])
    assert OracleGP.answers_queries


@pytest.mark.parametrize("kind", ["full", "per_sample"])
def test_the_mechanisms_are_fitted_to_the_data(dataset, kind):
    mechanisms = OracleGP(likelihood_weight=kind).fit(dataset, np.random.default_rng(0)).mechanisms
    expected = fit_gp_mechanisms(dataset, [dataset.graph], kind).hyperparameters
    assert mechanisms.hyperparameters.keys() == expected.keys()
    for family, logs in expected.items():
        np.testing.assert_array_equal(mechanisms.hyperparameters[family], logs)


def test_strong_effects_are_found():
    """Predicted means under interventions are nearer to the true ones than means without are."""
    data = sachs_gp(mechanism="linear", num_samples=200, seed=2, interventional_test={"num_samples": 500})
    posterior = OracleGP().fit(data, np.random.default_rng(0))
    tests = data.interventional_test
    truth = np.array([test.samples.mean(axis=0) for test in tests])
    predicted = posterior.interventional_means([dict(zip(t.targets, t.values, strict=True)) for t in tests])
    assert np.abs(predicted - truth).mean() < 0.5 * np.abs(posterior.interventional_mean({}) - truth).mean()


def test_without_a_true_graph_there_is_no_oracle(dataset):
    with pytest.raises(InvalidInput, match="data: expected a data set with its true graph, got none"):
        OracleGP().fit(replace(dataset, graph=None), np.random.default_rng(0))


def test_an_unknown_weight_is_refused():
    with pytest.raises(InvalidInput, match="likelihood_weight: expected one of full, per_sample, got 'half'"):
        OracleGP(likelihood_weight="half")
