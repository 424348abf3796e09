"""Predictive distributions: the right rows, the right hyper-parameters, every family factorised once."""

import gp_oracle
import numpy as np
import pytest
import torch
from scipy import stats

from bci import predictive
from bci.data.simulate import simulated_dataset
from bci.dataset import Dataset
from bci.errors import InvalidInput
from bci.gp_regression import gp_regression
from bci.kernels import NormalInverseGamma
from bci.predictive import GPMechanisms, families, fit_gp_mechanisms, scored_gp_mechanisms
from bci.scores import score_parent_sets

LOGS = np.log([1.1, 1.9, 9.6, 0.4])


def data(num_nodes=4, num_samples=30, seed=0, interventions=None):
    return simulated_dataset(
        graph_model="er",
        num_nodes=num_nodes,
        expected_degree=1,
        mechanism="gp",
        num_samples=num_samples,
        seed=seed,
        interventions=interventions,
    )


def mechanisms_of(dataset, *families_with_parents):
    return GPMechanisms(dataset.observations, dataset.intervened, dict.fromkeys(families_with_parents, LOGS))


@pytest.fixture
def graphs(random_dags):
    return random_dags(6, 4, 0.5, np.random.default_rng(1))


def test_roots_follow_the_student_t_that_the_marginal_likelihood_implies():
    """p(x | data) = p(data, x) / p(data), with scipy's density on the left."""
    dataset = data(num_samples=12)
    values = torch.as_tensor(dataset.observations[:, 2])
    df, location, scale = mechanisms_of(dataset).root(2)
    model = NormalInverseGamma()
    for x in (-2.5, 0.0, 0.3, 4.0):
        together = torch.cat([values, torch.tensor([x], dtype=torch.float64)])
        expected = model.log_marginal_likelihood(together) - model.log_marginal_likelihood(values)
        assert stats.t.logpdf(x, df, location, scale) == pytest.approx(expected, rel=1e-10)


def test_roots_have_the_parameters_of_murphy():
    dataset = Dataset.from_raw(np.array([[0.0, 1], [3, 0], [1, 2], [2, 9]]), "ab")
    values = dataset.observations[:, 0]  # mean 0, sum of squares 3
    assert (values**2).sum() == pytest.approx(3)
    df, location, scale = mechanisms_of(dataset).root(0)
    assert (df, location, scale**2) == pytest.approx((24, 0, (10 + 3 / 2) * 6 / (12 * 5)))


def test_only_rows_without_an_intervention_on_the_node_are_learnt_from():
    dataset = data(interventions={"num_targets": 2, "samples_per_target": 7})
    node = int(np.nonzero(dataset.intervened.any(axis=0))[0][0])
    rows = dataset.observations[~dataset.intervened[:, node]]
    assert len(rows) == 37
    parents = tuple(sorted({0, 1, 2, 3} - {node}))[:2]
    mechanisms, inputs = mechanisms_of(dataset, (node, parents)), np.random.default_rng(0).normal(size=(5, 2))
    unmasked = GPMechanisms(rows, np.zeros(rows.shape, dtype=bool), {(node, parents): LOGS})
    assert mechanisms.root(node) == unmasked.root(node)
    for ours, theirs in zip(
        mechanisms.predict(node, parents, inputs), unmasked.predict(node, parents, inputs), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)
    assert mechanisms.root(node) != mechanisms_of(data()).root(node)


def test_columns_of_the_inputs_are_the_parents_in_ascending_order():
    dataset, inputs = data(), np.array([[0.5, -1.0]])
    mean, _ = mechanisms_of(dataset, (1, (0, 3))).predict(1, (0, 3), inputs)
    by_hand = gp_regression(*map(torch.as_tensor, (dataset.observations[:, [0, 3]], dataset.observations[:, 1], LOGS)))
    assert mean == pytest.approx(by_hand.predict(torch.as_tensor(inputs))[0].numpy())


def test_every_family_is_factorised_once(monkeypatch):
    made = []

    def count(*arguments):
        made.append(arguments)
        return gp_regression(*arguments)

    monkeypatch.setattr(predictive, "gp_regression", count)
    mechanisms = mechanisms_of(data(), (1, (0, 3)), (0, (3,)))
    for _ in range(3):
        mechanisms.predict(1, (0, 3), np.zeros((4, 2)))
        mechanisms.predict(0, (3,), np.zeros((4, 1)))
    assert len(made) == 2


def test_blocks_do_not_change_predictions(monkeypatch):
    inputs = np.random.default_rng(0).normal(size=(50, 2))
    whole = mechanisms_of(data(), (1, (0, 3))).predict(1, (0, 3), inputs)
    monkeypatch.setattr(predictive, "_ENTRIES_AT_ONCE", 100)  # three rows at a time
    for ours, theirs in zip(mechanisms_of(data(), (1, (0, 3))).predict(1, (0, 3), inputs), whole, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("num_parents", [1, 3, 5])
def test_fitted_hyperparameters_are_those_of_an_independent_optimum(num_parents):
    dataset = data(num_nodes=6, num_samples=40, seed=3)
    graph = np.zeros((6, 6), dtype=bool)
    graph[:num_parents, 5] = True
    mechanisms = fit_gp_mechanisms(dataset, [graph])
    family = (5, tuple(range(num_parents)))
    assert list(mechanisms.hyperparameters) == [family]
    inputs, target = dataset.observations[:, :num_parents], dataset.observations[:, 5]
    _, best, _ = gp_oracle.optimum(inputs, target)
    found = mechanisms.hyperparameters[family]
    score = gp_oracle.log_likelihood(inputs, target, found) + gp_oracle.log_prior(num_parents, found)
    assert score == pytest.approx(best, abs=0.05)


def test_the_weight_of_the_likelihood_reaches_the_fit(graphs):
    dataset = data()
    full, lighter = (fit_gp_mechanisms(dataset, graphs, kind).hyperparameters for kind in ("full", "per_sample"))
    table = score_parent_sets(dataset, 3, likelihood_weight="per_sample")
    for family, logs in lighter.items():
        assert np.abs(logs - full[family]).max() > 1e-3
        np.testing.assert_allclose(logs, scored(table, family), atol=0.05)


def scored(table, family):
    return table.hyperparameters[family[0], table.parent_sets.number(family[1])].numpy()


def test_scored_mechanisms_have_the_hyperparameters_of_the_table(graphs):
    dataset = data()
    table = score_parent_sets(dataset, 3)
    mechanisms = scored_gp_mechanisms(dataset, graphs, table)
    expected = {family for graph in graphs for family in families(graph) if family[1]}
    assert set(mechanisms.hyperparameters) == expected
    for family, logs in mechanisms.hyperparameters.items():
        np.testing.assert_array_equal(logs, scored(table, family))


def test_families_are_nodes_with_their_causes():
    graph = np.zeros((3, 3), dtype=bool)
    graph[0, 2] = graph[1, 2] = graph[0, 1] = True
    assert families(graph) == [(0, ()), (1, (0,)), (2, (0, 1))]


def test_a_node_always_intervened_on_is_refused(graphs):
    dataset = data()
    dataset.intervened[1:, 2] = True
    with pytest.raises(InvalidInput, match="'X2': expected at least 2 rows without an intervention on it, got 1"):
        fit_gp_mechanisms(dataset, graphs)
