from __future__ import annotations

import pytest

from experiments.store import ResultStore
from experiments.sweep import EndedJob, summary


@pytest.fixture
def store(tmp_path, rows_of_a_job):
    """Two jobs of one method, one of them run twice, and one of another; only a newest run counts."""
    store = ResultStore(tmp_path / "store")
    for number, (job, eshd, p_aid) in enumerate(
        [("a", 90.0, 0.9), ("a", 1.0, None), ("b", 4.0, 0.5), ("c", 7.0, None)]
    ):
        store.append(rows_of_a_job(job, number, {"eshd": eshd, "p_aid": p_aid}))
    return store.path


@pytest.fixture
def rows_of_a_job():
    from datetime import UTC, datetime

    def rows(job, number, metrics):
        common = {
            "run_id": str(number),
            "job_id": job,
            "status": "ok",
            "data_name": "er",
            "method": "m",
            "data_config": "{}",
            "method_config": "{}",
            "metrics_config": "{}",
            "method_seed": 0,
            "package_versions": "{}",
            "started_at": datetime(2025, 1, 1, minute=number, tzinfo=UTC),
            "host": "h",
            "fit_seconds": 10.0 * number,
        }
        return [{**common, "metric": name, "value": value} for name, value in metrics.items()]

    return rows


def jobs(*ended):
    """From (method, data seed, id, status)."""
    return [
        EndedJob({"method": method, "data": "er", "data.seed": str(seed), "seed": "0"}, job, status)
        for method, seed, job, status in ended
    ]


def lines(table):
    return [line.split() for line in table.splitlines()]


def test_seeds_share_a_line_and_skipped_jobs_count(store):
    table = summary(
        jobs(("pc", 0, "a", "ok"), ("ges", 0, "c", "ok"), ("pc", 1, "b", "skipped")), store, ["eshd", "p_aid"]
    )
    assert lines(table) == [
        ["mean", "over", "seeds", "jobs", "eshd", "p_aid", "fit", "s"],
        ["method=pc", "2/2", "2.500", "0.500", "15.0"],
        ["method=ges", "1/1", "7.000", "--", "30.0"],
    ]
    assert len({len(line) for line in table.splitlines()}) == 1


def test_jobs_that_did_not_finish_count_as_such(store):
    table = summary(jobs(("pc", 0, "a", "ok"), ("pc", 1, None, "killed"), ("pc", 2, "b", "timeout")), store, ["eshd"])
    assert lines(table)[1] == ["all", "jobs", "1/3", "1.000", "10.0"]


def test_without_a_store_there_is_no_table(tmp_path):
    assert summary(jobs(("pc", 0, None, "invalid")), tmp_path / "nothing", ["eshd"]) == ""


def test_few_metrics_are_shown(store):
    table = summary(jobs(("pc", 0, "a", "ok")), store, [f"m{number}" for number in range(9)])
    assert "m5" in table
    assert "m6" not in table
