"""Standardisation, checks and fingerprint of the data contract."""

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from bci.dataset import Dataset, InterventionalSample, Scaler
from bci.errors import InvalidInput


@pytest.fixture
def raw():
    return np.random.default_rng(0).normal([10.0, -5.0, 0.0], [1.0, 20.0, 1e-3], size=(30, 3))


NAMES = ("a", "b", "c")


def test_observations_have_mean_zero_and_sample_deviation_one(raw):
    dataset = Dataset.from_raw(raw, NAMES)
    np.testing.assert_allclose(dataset.observations.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(dataset.observations.std(axis=0, ddof=1), 1, rtol=1e-12)
    np.testing.assert_allclose(dataset.scaler.inverse(dataset.observations), raw, rtol=1e-12)
    assert (dataset.num_samples, dataset.num_nodes) == (30, 3)


def test_the_scaler_has_the_mean_and_deviation_to_the_last_bit(raw):
    scaler = Scaler.fit(raw)
    assert np.array_equal(scaler.mean, raw.mean(axis=0))
    assert np.array_equal(scaler.std, raw.std(axis=0, ddof=1))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("unit", [2.0**990, 2.0**530, 2.0**-980])
def test_the_unit_of_a_column_does_not_matter(raw, unit):
    units = np.array([unit, 1.0, unit])
    dataset = Dataset.from_raw(raw * units, NAMES)
    assert np.array_equal(dataset.observations, Dataset.from_raw(raw, NAMES).observations)
    np.testing.assert_allclose(dataset.scaler.inverse(dataset.observations), raw * units, rtol=1e-12)


@pytest.mark.filterwarnings("error")
def test_one_large_value_does_not_make_columns_alike(raw):
    Dataset.from_raw(changed(raw, 7, 1, 1e290), NAMES)


def test_rows_are_observational_unless_a_mask_says_otherwise(raw):
    assert not Dataset.from_raw(raw, NAMES).intervened.any()
    mask = np.zeros(raw.shape, dtype=bool)
    mask[3, 1] = True
    assert np.array_equal(Dataset.from_raw(raw, NAMES, intervened=mask).intervened, mask)


def test_raw_data_are_copied_and_fields_are_frozen(raw):
    dataset = Dataset.from_raw(raw, NAMES)
    before = dataset.observations.copy()
    raw[:] = 0
    assert np.array_equal(dataset.observations, before)
    with pytest.raises(FrozenInstanceError):
        dataset.names = ("x", "y", "z")


def test_integers_become_floats():
    assert Dataset.from_raw(np.array([[1, 2], [3, 1], [0, 5]]), ("a", "b")).observations.dtype == np.float64


def test_interventional_test_is_drawn_once_with_the_scaler_of_the_training_data(raw):
    calls = []

    def draw(scaler: Scaler):
        calls.append(scaler)
        return [InterventionalSample((0,), (1.0,), np.zeros((4, 3)))]

    dataset = Dataset.from_raw(raw, NAMES, draw_interventional_test=draw)
    assert calls == []
    assert dataset.interventional_test is dataset.interventional_test
    assert calls == [dataset.scaler]
    assert Dataset.from_raw(raw, NAMES).interventional_test == ()


def test_fingerprint_tells_contents_apart(raw):
    graph = np.zeros((3, 3), dtype=bool)
    other_graph, mask, other_raw = graph.copy(), np.zeros(raw.shape, dtype=bool), raw.copy()
    other_graph[0, 1] = mask[0, 0] = True
    other_raw[0, 0] += 1e-9
    datasets = [
        Dataset.from_raw(raw, NAMES),
        Dataset.from_raw(raw, NAMES, graph=graph),
        Dataset.from_raw(raw, NAMES, graph=other_graph),
        Dataset.from_raw(raw, NAMES, intervened=mask),
        Dataset.from_raw(raw, ("a", "b", "d")),
        Dataset.from_raw(other_raw, NAMES),
        Dataset.from_raw(raw[:-1], NAMES),
    ]
    assert len({dataset.fingerprint for dataset in datasets}) == len(datasets)
    assert datasets[0].fingerprint == Dataset.from_raw(np.asfortranarray(raw), list(NAMES)).fingerprint


def changed(raw, row, column, value):
    raw = raw.copy()
    raw[row, column] = value
    return raw


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda raw: changed(raw, 4, 1, np.nan), "column 'b', data row 5: expected a finite number, got nan"),
        (lambda raw: changed(raw, 0, 2, -np.inf), "column 'c', data row 1: expected a finite number, got -inf"),
        (lambda raw: changed(raw, slice(None), 0, 7.3), "column 'a'.*got a constant"),
        (lambda raw: changed(raw, slice(None), 2, raw[:, 1]), "columns 'b' and 'c'.*the same values"),
        (lambda raw: changed(raw, slice(None), 2, 3 - 2 * raw[:, 0]), "columns 'a' and 'c'.*the same values"),
        (lambda raw: changed(raw, 7, 1, 1e308), r"column 'b'.*magnitude from 1e-300 to 1e\+300, got 1e\+308; correct"),
        (lambda raw: changed(raw, slice(None), 2, raw[:, 2] * 1e-300), "column 'c'.*magnitude from 1e-300"),
        (lambda raw: raw[:2], "at least 3 rows, as all variables look alike in 2"),
        (lambda raw: raw[:1], "at least 2 rows, got 1"),
        (lambda raw: raw[:, 0], "expected a matrix"),
    ],
)
def test_values_that_cannot_be_learnt_from_are_refused(raw, change, message):
    with pytest.raises(InvalidInput, match=message) as caught:
        Dataset.from_raw(change(raw), NAMES)
    assert "\n" not in str(caught.value)


def test_one_column_is_refused(raw):
    with pytest.raises(InvalidInput, match="at least 2 columns"):
        Dataset.from_raw(raw[:, :1], ["a"])


def test_highly_correlated_columns_are_distinct(raw):
    raw[:, 2] = raw[:, 1] + 1e-3 * np.random.default_rng(1).normal(size=30)
    Dataset.from_raw(raw, NAMES)


@pytest.mark.parametrize(
    ("names", "message"), [(("a", "b"), "names: expected 3"), (("a", "b", "a"), "got 'a' more than once")]
)
def test_names_that_do_not_fit_are_refused(raw, names, message):
    with pytest.raises(InvalidInput, match=message):
        Dataset.from_raw(raw, names)


def test_mask_of_another_shape_is_refused(raw):
    with pytest.raises(InvalidInput, match=r"intervention mask: expected shape \(30, 3\)"):
        Dataset.from_raw(raw, NAMES, intervened=np.zeros((29, 3), dtype=bool))


def test_cyclic_graph_is_refused_with_its_cycle(raw):
    graph = np.zeros((3, 3), dtype=bool)
    graph[0, 2] = graph[2, 0] = True
    with pytest.raises(InvalidInput, match=r"cycle (a -> c -> a|c -> a -> c)"):
        Dataset.from_raw(raw, NAMES, graph=graph)


def test_graph_of_another_size_is_refused(raw):
    with pytest.raises(InvalidInput, match=r"shape \(3, 3\)"):
        Dataset.from_raw(raw, NAMES, graph=np.zeros((2, 2), dtype=bool))


def test_changed_copies_are_checked_again(raw):
    with pytest.raises(InvalidInput, match="names"):
        replace(Dataset.from_raw(raw, NAMES), names=("a", "a", "b"))
