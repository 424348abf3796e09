from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import table_jobs
from scipy.stats import sem

from experiments.store import ResultStore
from experiments.table_cells import BETTER, DIFFERS, FEW, NOT_PRINTED, OVERLAP, UNDEFINED, WORSE, mark, table_of


@pytest.fixture
def build(tmp_path):
    """The table of some rows, as a store gives them."""

    def built(entries, jobs=None):
        ResultStore(tmp_path / "store").append(entries)
        return table_of("interventional", jobs or table_jobs.jobs(), ResultStore(tmp_path / "store").rows())

    return built


def row_of(table, label):
    (group,) = table.groups
    return {row.label: row for row in group.rows}[label]


def cell_of(table, label, metric):
    return {cell.metric: cell for cell in row_of(table, label).cells}[metric]


def texts_about(table, label):
    return [note.text for note in table.groups[0].notes if label in note.labels]


def marked(metric, mean, ci95, count=5, printed=("10", "2"), printed_models=20):
    return mark(metric, mean, ci95, *printed, num_models=count, printed_models=printed_models)


@pytest.mark.parametrize(
    ("metric", "mean", "ci95", "expected"),
    [
        ("ESHD", 10.0, 1.0, OVERLAP),
        ("ESHD", 7.0, 0.5, OVERLAP),  # ours ends at 7.5, the printed one may begin there
        ("ESHD", 6.9, 0.5, BETTER),
        ("ESHD", 13.1, 0.5, WORSE),
        ("AUROC", 6.9, 0.5, WORSE),
        ("AUROC", 13.1, 0.5, BETTER),
        ("#Edges", 6.9, 0.5, DIFFERS),
    ],
)
def test_marks_compare_intervals_in_the_direction_of_the_metric(metric, mean, ci95, expected):
    assert marked(metric, mean, ci95) == expected


def test_a_printed_value_is_as_wide_as_its_last_digit():
    assert marked("MMD", 0.155, 0.0, printed=("0.15", "")) == OVERLAP
    assert marked("MMD", 0.1551, 0.0, printed=("0.15", "0.00")) == WORSE
    assert marked("MMD", 0.2, 0.1, printed=("", "")) == NOT_PRINTED


@pytest.mark.parametrize(
    ("count", "ci95", "printed_models", "reach"),
    [
        (1, None, 20, 2 + 2.5 * 20**0.5),  # one model varies by sqrt(20) times what a mean of 20 does; 2 is up to 2.5
        (1, None, 10, 2 + 2.5 * 10**0.5),
        (2, 0.1, 20, 2 + 2.5 * 10**0.5),
        (2, 9.0, 20, 2 + 9.0),  # what the two themselves show counts where it is more
        (3, 0.1, 20, 2 + 0.1),
    ],
)
def test_the_printed_spread_stands_in_for_that_of_one_or_two_models(count, ci95, printed_models, reach):
    edge = 10 + reach + 0.5
    assert marked("ESHD", edge - 0.01, ci95, count, printed_models=printed_models) == OVERLAP
    assert marked("ESHD", edge + 0.01, ci95, count, printed_models=printed_models) == WORSE


def test_a_printed_interval_of_zero_is_one_that_was_rounded():
    assert marked("TNR", 0.95, None, 1, ("0.97", "0.00")) == OVERLAP
    assert marked("TNR", 0.94, None, 1, ("0.97", "0.00")) == WORSE
    assert marked("TNR", 0.96, None, 1, ("0.97", "")) == WORSE


def test_the_number_of_models_of_the_paper_is_that_of_its_table(build):
    job = table_jobs.jobs(("arco_gp",), 1)[0]
    edge = 0.15 + 0.04 + 0.045 * 10**0.5 + 0.005  # 0.15 and 0.04 are printed over 10 models
    assert cell_of(build(table_jobs.rows(job, {"mmd": edge - 1e-3})), "ARCO-GP", "MMD").mark == OVERLAP
    assert (
        cell_of(build(table_jobs.rows(job, {"mmd": edge + 1e-3}, run="later", hour=2)), "ARCO-GP", "MMD").mark == WORSE
    )


def test_a_cell_is_the_mean_over_models_with_1_96_standard_errors(build):
    cell = cell_of(build(table_jobs.stored()), "ARCO-GP", "MMD")
    values = table_jobs.MMD["arco_gp"]
    assert cell.count == 3
    assert cell.mean == pytest.approx(np.mean(values), abs=1e-12)
    assert cell.ci95 == pytest.approx(1.96 * sem(values), abs=1e-12)
    assert (cell.printed_mean, cell.printed_ci95, cell.mark) == ("0.15", "0.04", OVERLAP)


def test_what_is_missing_failed_or_undefined_is_counted_and_said(build):
    table = build(table_jobs.stored())
    beeps, resit = row_of(table, "BEEPS"), row_of(table, "RESIT-GP")
    assert (beeps.num_jobs, beeps.num_done, beeps.num_failed) == (3, 2, 0)
    assert (resit.num_jobs, resit.num_done, resit.num_failed) == (3, 2, 1)
    assert (cell_of(table, "BEEPS", "L2").count, cell_of(table, "BEEPS", "L2").undefined) == (1, 1)
    assert texts_about(table, "BEEPS") == [
        "2 of 3 models computed, 1 not run.",
        FEW,
        "L2 undefined for 1 of 2 models: no such graph.",
    ]
    assert "2 of 3 models computed, 1 failed." in texts_about(table, "RESIT-GP")
    assert any("every edge reversed" in text for text in texts_about(table, "RESIT-GP"))
    assert any("does not run this method" in text for text in texts_about(table, "DIBS-GP"))


def test_one_model_is_compared_only_where_a_value_is_printed(build):
    sets = [*table_jobs.jobs(("arco_gp",), 1), *table_jobs.jobs(("exact_gp",), 1)]
    table = build([row for job in sets for row in table_jobs.rows(job, {"mmd": 1.0})], sets)
    assert FEW in texts_about(table, "ARCO-GP")
    assert FEW not in texts_about(table, "exact_gp")


def test_methods_without_a_printed_row_come_last(build):
    labels = [row.label for row in build(table_jobs.stored()).groups[0].rows]
    assert labels == ["ARCO-GP", "BEEPS", "DIBS-GP", "RESIT-GP", "exact_gp"]
    assert row_of(build(table_jobs.stored()), "exact_gp").printed is False


def test_an_undefined_cell_is_not_one_that_was_not_computed(build):
    job = table_jobs.jobs(("arco_gp",), 1)[0]
    assert cell_of(build(table_jobs.rows(job, {"mmd": None})), "ARCO-GP", "MMD").mark == UNDEFINED


def test_only_the_newest_finished_run_of_a_job_counts(build):
    job = table_jobs.jobs(("arco_gp",), 1)[0]
    entries = [
        *table_jobs.rows(job, {"mmd": 0.7}, run="b", hour=2),
        *table_jobs.rows(job, {"mmd": 0.9}, run="a", hour=1),
        *table_jobs.rows(job, {}, run="c", status="failed", hour=3),
    ]
    table = build(entries)
    assert cell_of(table, "ARCO-GP", "MMD").mean == 0.7
    assert row_of(table, "ARCO-GP").num_failed == 0


def test_rows_of_other_jobs_are_left_out(build):
    other = table_jobs.jobs(("arco_gp",), 9)[8]
    table = build([*table_jobs.stored(), *table_jobs.rows(other, {"mmd": 1e9})])
    assert cell_of(table, "ARCO-GP", "MMD").count == 3


def test_sizes_that_are_printed_each_have_a_group():
    jobs = [
        table_jobs.SweepJob({"data": "er", "data.num_samples": size, "method": "ges"}, f"ges{size}")
        for size in ("100", "1000")
    ]
    frame = pd.DataFrame(table_jobs.rows(table_jobs.jobs()[0], {"mmd": 1.0}))
    groups = table_of("num_samples", jobs, frame).groups
    assert [(group.graph, group.num_samples) for group in groups] == [
        (graph, size) for graph in ("SF", "ER") for size in (100, 200, 500, 1000)
    ]
    found = {(g.graph, g.num_samples): {row.label: row.num_jobs for row in g.rows}["GES"] for g in groups}
    assert [key for key, number in found.items() if number] == [("ER", 100), ("ER", 1000)]
