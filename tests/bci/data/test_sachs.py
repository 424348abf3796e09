"""The Sachs data, their graph, conditions and masks, against facts printed elsewhere."""

import importlib.util
import itertools
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from bci.data.sachs import CONDITIONS, consensus_graph, sachs, sachs_gp
from bci.errors import InvalidInput
from bci.graphs import find_cycle

PAPER_ORDER = ("PKC", "PKA", "Jnk", "P38", "Raf", "Mek", "Erk", "Akt", "Plcg", "PIP3", "PIP2")
PAPER_EDGES = (
    "PKC>PKA PKC>Jnk PKC>P38 PKC>Raf PKC>Mek PKA>Jnk PKA>P38 PKA>Akt PKA>Erk PKA>Mek PKA>Raf "
    "Raf>Mek Mek>Erk Erk>Akt Plcg>PIP3 Plcg>PIP2 PIP3>PIP2"
)


def edges(dataset):
    return {f"{dataset.names[cause]}>{dataset.names[effect]}" for cause, effect in np.argwhere(dataset.graph)}


def is_topological(graph):
    return not np.tril(graph).any()


def test_observational_rows_are_the_first_853():
    dataset = sachs()
    raw = dataset.scaler.inverse(dataset.observations)
    assert dataset.observations.shape == (853, 11)
    assert not dataset.intervened.any()
    np.testing.assert_allclose(raw[0, :4], [26.4, 13.2, 8.82, 18.3])
    np.testing.assert_allclose(raw[852, [0, 10]], [46.6, 9.65])
    assert dataset.scm is None


def test_graph_is_the_17_edge_consensus():
    assert edges(sachs()) == set(PAPER_EDGES.split())
    assert consensus_graph().sum() == 17
    assert find_cycle(consensus_graph()) == []


def test_column_order_is_neither_a_causal_order_nor_its_reverse():
    dataset = sachs()
    assert set(dataset.names) == set(PAPER_ORDER)
    assert not is_topological(dataset.graph)
    assert not is_topological(dataset.graph[::-1, ::-1])
    paper = [dataset.names.index(name) for name in PAPER_ORDER]
    assert is_topological(dataset.graph[np.ix_(paper, paper)])  # the order that is avoided


def test_all_conditions_mask_the_manipulated_protein():
    dataset = sachs("all")
    assert dataset.observations.shape == (7466, 11)
    # First and last row, counted from 1, of each condition with a measured target.
    blocks = {
        (1756, 2666): "Akt",
        (2667, 3389): "PKC",
        (3390, 4199): "PIP2",
        (4200, 4998): "Mek",
        (5847, 6759): "PKC",
        (6760, 7466): "PKA",
    }
    expected = np.zeros((7466, 11), dtype=bool)
    for (first, last), protein in blocks.items():
        expected[first - 1 : last, dataset.names.index(protein)] = True
    np.testing.assert_array_equal(dataset.intervened, expected)
    assert sum(condition.num_rows for condition in CONDITIONS) == 7466


def test_blocks_begin_where_the_data_jump():
    raw = sachs("all", log=True).observations
    starts = list(itertools.accumulate(condition.num_rows for condition in CONDITIONS))[:-1]
    jumps = [np.abs(np.median(raw[s : s + 300], axis=0) - np.median(raw[s - 300 : s], axis=0)).max() for s in starts]
    within = [
        np.abs(np.median(raw[s : s + 300], axis=0) - np.median(raw[s + 300 : s + 600], axis=0)).max() for s in starts
    ]
    assert min(jumps) > 0.3
    assert np.median(within) < np.median(jumps) / 3


def test_log_is_taken_before_standardising():
    plain, logged = sachs(), sachs(log=True)
    np.testing.assert_allclose(
        np.exp(logged.scaler.inverse(logged.observations)), plain.scaler.inverse(plain.observations)
    )
    np.testing.assert_allclose(logged.observations.std(axis=0, ddof=1), 1)


def test_cdt_is_not_imported():
    sachs()
    assert "cdt" not in sys.modules


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"conditions": "some"}, "conditions: expected one of"), ({"log": "yes"}, "log: expected")],
)
def test_unknown_choice_is_refused(arguments, message):
    with pytest.raises(InvalidInput, match=message):
        sachs(**arguments)


def test_missing_package_is_reported(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(InvalidInput, match="pip install cdt"):
        sachs()


def test_missing_or_other_file_is_reported(monkeypatch, tmp_path):
    real = importlib.util.find_spec("cdt").submodule_search_locations[0]
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda _: SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    )
    with pytest.raises(InvalidInput, match="got no file"):
        sachs()
    table = pd.read_csv(f"{real}/data/resources/cyto_full_data.csv")
    folder = tmp_path / "data" / "resources"
    folder.mkdir(parents=True)
    shuffled = table.iloc[::-1]
    renamed = table.rename(columns={"praf": "raf"})
    for other in (table.iloc[:-1], shuffled, renamed):
        other.to_csv(folder / "cyto_full_data.csv", index=False)
        with pytest.raises(InvalidInput, match="rows of other data"):
            sachs()


def test_simulation_keeps_the_consensus_graph_under_permuted_names():
    datasets = [sachs_gp(mechanism="gp", num_samples=20, seed=seed) for seed in range(5)]
    assert all(edges(dataset) == set(PAPER_EDGES.split()) for dataset in datasets)
    assert len({dataset.names for dataset in datasets}) == 5
    assert datasets[0].fingerprint == sachs_gp(mechanism="gp", num_samples=20, seed=0).fingerprint
    assert np.array_equal(datasets[0].scm.graph, datasets[0].graph)


def test_simulation_has_test_interventions():
    settings = {"values_per_node": 5, "num_samples": 10}
    dataset = sachs_gp(mechanism="gp", num_samples=20, seed=0, interventional_test=settings)
    assert len(dataset.interventional_test) == 55
