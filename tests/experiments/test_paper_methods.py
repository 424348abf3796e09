from __future__ import annotations

import csv
from pathlib import Path

import pytest

from experiments.paper_methods import PRINTED, config_of, in_order, printed_name

TABLES = Path(__file__).parents[2] / "results" / "paper" / "tables.csv"


@pytest.mark.parametrize(
    ("choice", "name"),
    [
        ("arco_gp", "ARCO-GP"),
        ("arco_gp/k4", "ARCO-K4-GP"),
        ("arco_gp/per_sample", "ARCO-GP (per sample)"),
        ("arco_gp/k3_per_sample", "ARCO-K3-GP (per sample)"),
        ("exact_gp/k1", "Exact-K1-GP"),
        ("pc/castle", "PC"),
        ("golem/quick", "GOLEM"),
        ("sort_regress", "SORT-REGRESS"),
    ],
)
def test_choices_are_named_as_the_paper_prints_them(choice, name):
    assert printed_name(choice) == name


def test_every_printed_method_of_the_structure_tables_has_its_name():
    with TABLES.open(newline="", encoding="utf-8") as file:
        printed = {row["method"] for row in csv.DictReader(file) if row["table"] == "ablations_invertible_nl"}
    assert printed == set(PRINTED)


@pytest.mark.parametrize(
    ("name", "choice"),
    [
        ("ARCO-GP", "arco_gp"),
        ("ARCO-K2-GP", "arco_gp"),
        ("ARCO-K4-GP", "arco_gp/k4"),
        ("DAG-GNN", "dag_gnn"),
        ("PC", "pc/castle"),
        ("RESIT-GP", "resit_gp"),
    ],
)
def test_printed_methods_have_configs(name, choice):
    assert config_of(name) == choice


def test_every_printed_method_is_named_by_its_config():
    with TABLES.open(newline="", encoding="utf-8") as file:
        printed = {row["method"] for row in csv.DictReader(file)} - {"ARCO-K2-GP"}  # ARCO-GP elsewhere
    assert {name: printed_name(config_of(name)) for name in printed} == {name: name for name in printed}


def test_methods_come_in_the_order_of_the_paper_with_variants_beside():
    names = ["PC", "Other", "GES", "ARCO-GP (per sample)", "Exact-GP", "GES", "ARCO-GP"]
    assert in_order(names) == ["ARCO-GP", "ARCO-GP (per sample)", "Exact-GP", "GES", "PC", "Other"]
