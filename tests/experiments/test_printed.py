from __future__ import annotations

import pandas as pd
import pytest

from experiments.printed import FILE, METRICS, TABLES, defects, printed_cells


def test_every_printed_cell_belongs_to_a_table():
    printed = pd.read_csv(FILE, dtype=str, keep_default_na=False)
    of_tables = pd.concat([printed_cells(name) for name in TABLES if name != "main_cd"])  # a part of num_samples
    assert len(of_tables) == len(printed) == 1713


@pytest.mark.parametrize("name", TABLES)
def test_a_table_has_the_metrics_of_its_printed_cells(name):
    assert set(TABLES[name].metrics) == set(printed_cells(name)["metric"])
    assert set(TABLES[name].metrics) <= set(METRICS)


def test_the_main_table_is_that_of_200_samples():
    assert set(printed_cells("main_cd")["num_samples"]) == {"200"}


def test_defects_are_told_where_they_are():
    about = {
        (name, graph): {m for _, names in defects(name, graph) for m in names}
        for name in TABLES
        for graph in ("ER", "SF")
    }
    assert {"DDS", "DIBS-GP"} <= about["degree_8", "ER"]
    assert {"DDS", "DIBS-GP"} <= about["invertible", "ER"]
    assert "DDS" not in about["degree_8", "SF"] | about["degree_4", "ER"]
    assert any("one data set" in text for text, _ in defects("sachs", "Sachs"))
