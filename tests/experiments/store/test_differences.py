from __future__ import annotations

from datetime import timedelta

import pytest
from store_rows import START, row

from bci.errors import InvalidInput
from experiments.store import ResultStore
from experiments.store.compaction import compact
from experiments.store.differences import Change, Differences, JobCount, differences


@pytest.fixture
def store(tmp_path):
    return ResultStore(tmp_path / "store")


def run(store: ResultStore, job_id: str, minute: int = 0, status: str = "ok", **values: float) -> int:
    common = {"run_id": f"{job_id}-{minute}", "status": status, "started_at": START + timedelta(minutes=minute)}
    return store.append([row(job_id, **common, metric=name, value=value) for name, value in values.items()])


def test_new_jobs_are_counted_by_data_method_and_status(store):
    old = run(store, "a", eshd=1.0)
    for job_id in "bc":
        run(store, job_id, eshd=1.0)
    new = store.append([row("d", status="failed", data_name="sf")])
    added = [JobCount("er", "m", "ok", 2), JobCount("sf", "m", "failed", 1)]
    assert differences(store, old, new) == Differences((1, 4), (1, 4), added, [], 0, [])
    assert differences(store, new, old) == Differences((4, 1), (4, 1), [], added, 0, [])


def test_a_rerun_with_other_values_tells_every_metric_that_differs_exactly(store):
    old = run(store, "a", eshd=1.0, tpr=0.5, tnr=0.1)
    new = run(store, "a", minute=1, eshd=1.0, tpr=0.5, tnr=0.1 + 0.2)
    found = differences(store, old, new)
    assert (found.rerun, found.changes) == (1, [Change("a", "er", "m", "tnr", "0.1", "0.30000000000000004")])


def test_a_rerun_with_the_same_values_changes_nothing(store):
    old = run(store, "a", eshd=1.0)
    new = run(store, "a", minute=1, eshd=1.0)
    found = differences(store, old, new)
    assert (found.rerun, found.changes, found.rows, found.jobs) == (1, [], (1, 2), (1, 1))


def test_a_change_of_status_is_told_and_values_of_the_last_good_run_remain(store):
    failed = store.append([row("a", run_id="0", status="failed")])
    ok = run(store, "a", minute=1, eshd=1.0)
    again = store.append([row("a", run_id="2", status="timeout", started_at=START + timedelta(minutes=2))])
    assert differences(store, failed, ok).changes == [
        Change("a", "er", "m", "status", "failed", "ok"),
        Change("a", "er", "m", "eshd", None, "1.0"),
    ]
    assert differences(store, ok, again).changes == [Change("a", "er", "m", "status", "ok", "timeout")]


def test_an_undefined_value_is_told_by_its_reason(store):
    old = store.append([row("a", run_id="0", metric="tpr", undefined_reason="no edge")])
    new = run(store, "a", minute=1, tpr=0.0)
    assert differences(store, old, new).changes == [Change("a", "er", "m", "tpr", "undefined (no edge)", "0.0")]


def test_compaction_changes_no_result(store):
    run(store, "a", eshd=1.0)
    old = run(store, "b", eshd=1.0)
    new = compact(store).version
    assert differences(store, old, new) == Differences((2, 2), (2, 2), [], [], 0, [])
    assert differences(store, 0, 0) == Differences((0, 0), (0, 0), [], [], 0, [])


def test_a_version_that_is_not_there_is_refused(store):
    run(store, "a", eshd=1.0)
    with pytest.raises(InvalidInput, match="version: expected 0 to 1"):
        differences(store, 0, 7)
