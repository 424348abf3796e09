"""The public fit checks the data, and hands a method only rows it can learn from."""

from __future__ import annotations

import numpy as np
import pytest

from bci.dataset import Dataset, Scaler
from bci.errors import InvalidInput
from bci.method import Method, observational_part
from bci.posterior import GraphPosterior


class Recorder(Method):
    """Keeps what it was asked to learn from."""

    def __init__(self):
        self.seen = []

    def _fit(self, dataset, rng):
        self.seen.append((dataset, rng))
        return GraphPosterior(np.zeros((1, dataset.num_nodes, dataset.num_nodes), dtype=bool))


class InterventionalRecorder(Recorder):
    uses_interventional_data = True


def columns(num_samples=8, num_nodes=3):
    return np.random.default_rng(0).normal(size=(num_samples, num_nodes))


def unchecked(observations):
    """A data set whose values nobody looked at."""
    num_nodes = observations.shape[1]
    scaler = Scaler(np.zeros(num_nodes), np.ones(num_nodes))
    return Dataset(observations, tuple("abcdef"[:num_nodes]), np.zeros(observations.shape, dtype=bool), scaler)


def with_interventions(num_observational):
    intervened = np.zeros((8, 3), dtype=bool)
    intervened[num_observational:, 1] = True
    return Dataset.from_raw(columns(), "abc", intervened=intervened)


def test_a_method_gets_the_data_and_the_generator():
    method, dataset, rng = Recorder(), Dataset.from_raw(columns(), "abc"), np.random.default_rng(0)
    posterior = method.fit(dataset, rng)
    assert method.seen == [(dataset, rng)]
    assert posterior.edge_probabilities.shape == (3, 3)


def test_what_a_method_can_do_is_declared_on_the_class():
    assert (Method.graph_kind, Method.uses_interventional_data, Method.answers_queries) == ("dag", False, False)


def not_finite(value):
    observations = columns()
    observations[3, 1] = value
    return observations


def constant():
    observations = columns()
    observations[:, 2] = 4.0
    return observations


def duplicated(sign):
    observations = columns()
    observations[:, 2] = 3.0 + sign * 2.0 * observations[:, 0]
    return observations


@pytest.mark.parametrize(
    ("observations", "message"),
    [
        (not_finite(np.nan), "column 'b', data row 4: expected a finite number, got nan"),
        (not_finite(np.inf), "column 'b', data row 4: expected a finite number, got inf"),
        (constant(), "column 'c': expected values that vary, got a constant"),
        (duplicated(1.0), "columns 'a' and 'c': expected distinct variables, got the same values"),
        (duplicated(-1.0), "columns 'a' and 'c': expected distinct variables, got the same values"),
    ],
)
@pytest.mark.parametrize("kind", [Recorder, InterventionalRecorder])
def test_data_that_nothing_can_be_learnt_from_is_refused_before_the_fit(kind, observations, message):
    method = kind()
    with pytest.raises(InvalidInput) as caught:
        method.fit(unchecked(observations), np.random.default_rng(0))
    assert str(caught.value).startswith(message)
    assert not method.seen


def test_only_methods_that_use_interventions_see_their_rows():
    dataset = with_interventions(5)
    observational, interventional = Recorder(), InterventionalRecorder()
    observational.fit(dataset, np.random.default_rng(0))
    interventional.fit(dataset, np.random.default_rng(0))
    (left, _), (right, _) = observational.seen[0], interventional.seen[0]
    np.testing.assert_array_equal(left.observations, dataset.observations[:5])
    assert not left.intervened.any()
    assert left.scaler is dataset.scaler
    assert right is dataset


def test_a_column_that_only_interventions_move_is_constant_without_them():
    raw = columns()
    raw[:5, 1] = 1.0
    intervened = np.zeros((8, 3), dtype=bool)
    intervened[5:, 1] = True
    dataset = Dataset.from_raw(raw, "abc", intervened=intervened)
    InterventionalRecorder().fit(dataset, np.random.default_rng(0))
    with pytest.raises(InvalidInput, match="column 'b': expected values that vary"):
        Recorder().fit(dataset, np.random.default_rng(0))


@pytest.mark.parametrize("num_observational", [0, 1])
def test_too_few_observational_rows_are_refused(num_observational):
    with pytest.raises(
        InvalidInput, match=f"expected at least 2 rows without interventions .* got {num_observational}"
    ):
        Recorder().fit(with_interventions(num_observational), np.random.default_rng(0))


def test_data_without_interventions_are_passed_on_as_they_are():
    dataset = Dataset.from_raw(columns(), "abc")
    assert observational_part(dataset) is dataset
