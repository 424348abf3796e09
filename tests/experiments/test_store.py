from __future__ import annotations

import multiprocessing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from bci.errors import InvalidInput
from experiments.store import SCHEMA, ResultStore, latest

START = datetime(2025, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


def row(job_id: str = "a", **values: object) -> dict[str, object]:
    required = {
        "run_id": f"run-of-{job_id}",
        "status": "ok",
        "data_name": "er",
        "method": "m",
        "method_config": "{}",
        "data_config": "{}",
        "metrics_config": "{}",
        "method_seed": 0,
        "package_versions": "{}",
        "started_at": START,
        "host": "h",
    }
    return {**required, "job_id": job_id, **values}


def append_ten(path: Path, writer: int) -> None:
    for k in range(10):
        ResultStore(path).append([row(f"{writer}-{k}", metric=name) for name in ("eshd", "tpr")])


def test_rows_come_back_with_their_types_and_nulls(tmp_path):
    store = ResultStore(tmp_path / "store")
    store.append(
        [row(metric="eshd", value=1.5, num_nodes=20, git_dirty=True), row(metric="tpr", undefined_reason="no edge")]
    )
    frame = store.rows()
    assert list(frame.columns) == SCHEMA.names
    assert store.table().schema == SCHEMA
    assert frame["metric"].tolist() == ["eshd", "tpr"]
    assert frame["value"].tolist()[0] == 1.5
    assert frame["num_nodes"].tolist() == [20, pd.NA]
    assert isinstance(frame["num_nodes"].tolist()[0], int)
    assert frame.loc[1, ["value", "error", "git_dirty"]].isna().all()
    assert frame.loc[1, "undefined_reason"] == "no edge"
    assert frame["started_at"].tolist() == [START, START]


def test_an_append_is_one_version_that_can_be_read_again(tmp_path):
    store = ResultStore(tmp_path / "store")
    first = store.append([row("a", metric=name) for name in ("eshd", "tpr", "tnr")])
    second = store.append([row("b")])
    assert (second, store.version) == (first + 1, second)
    assert [len(store.rows(version)) for version in (first - 1, first, second, None)] == [0, 3, 4, 4]


def test_writers_in_four_processes_lose_no_rows(tmp_path):
    path = tmp_path / "store"
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=append_ten, args=(path, writer)) for writer in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(timeout=120)
    assert [writer.exitcode for writer in writers] == [0, 0, 0, 0]
    counts = ResultStore(path).rows().groupby("job_id").size()
    assert counts.to_dict() == {f"{writer}-{k}": 2 for writer in range(4) for k in range(10)}


def test_only_status_ok_makes_a_job_done(tmp_path):
    store = ResultStore(tmp_path / "store")
    assert not store.done("a")
    assert not store.path.exists()
    for status in ("failed", "timeout", "invalid"):
        store.append([row("a", status=status)])
    store.append([row("it's")])
    assert not store.done("a")
    assert store.done("it's")
    store.append([row("a")])
    assert store.done("a")


def test_a_value_that_does_not_fit_its_column_is_refused_and_nothing_stored(tmp_path):
    store = ResultStore(tmp_path / "store")
    store.prepare()
    for bad, error in [
        ({"num_nodes": 2.5}, ValueError),
        ({"num_nodes": "2"}, pa.ArrowException),
        ({"status": "good"}, ValueError),
        ({"colour": "red"}, ValueError),
        ({"host": None}, ValueError),
    ]:
        with pytest.raises(error):
            store.append([row("a"), row("b", **bad)])
    assert (store.version, len(store.rows())) == (0, 0)


def make_file(path: Path) -> None:
    path.write_text("text")


def make_other_folder(path: Path) -> None:
    path.mkdir()
    (path / "notes.txt").write_text("text")


def make_other_table(path: Path) -> None:
    write_deltalake(path, pa.table({"job_id": ["a"]}))


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (make_file, "'store' is a file"),
        (make_other_folder, "other files in it"),
        (make_other_table, "differs in run_id, job_id, status and others"),
    ],
)
def test_a_path_that_holds_something_else_is_refused(tmp_path, monkeypatch, make, expected):
    monkeypatch.chdir(tmp_path)
    make(Path("store"))
    with pytest.raises(InvalidInput, match=expected):
        ResultStore("store").prepare()
    with pytest.raises(InvalidInput, match=expected):
        ResultStore("store").rows()


def test_a_folder_that_cannot_be_written_to_is_refused_before_any_row(tmp_path, monkeypatch):
    with pytest.raises(InvalidInput, match="can be created and written to, got '/proc/store'"):
        ResultStore("/proc/store").prepare()
    store = ResultStore(tmp_path / "store")
    store.prepare()

    def read_only(**_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("experiments.store.tempfile.NamedTemporaryFile", read_only)
    with pytest.raises(InvalidInput, match="Permission denied"):
        store.prepare()


def test_reading_where_there_is_no_store_or_version_says_so(tmp_path):
    store = ResultStore(tmp_path / "store")
    with pytest.raises(InvalidInput, match="without one"):
        store.rows()
    store.append([row()])
    for version in (2, -1):
        with pytest.raises(InvalidInput, match=f"expected 0 to 1, .* got {version}"):
            store.rows(version)


def test_latest_keeps_the_newest_finished_run_of_every_job(tmp_path):
    store = ResultStore(tmp_path / "store")
    later = START + timedelta(seconds=1)
    for metric in ("eshd", "tpr"):
        store.append([row("a", run_id="new", started_at=later, metric=metric, value=2.0)])
        store.append([row("a", run_id="old", metric=metric, value=1.0)])
    store.append([row("a", run_id="broken", status="failed", started_at=later + timedelta(seconds=1))])
    store.append([row("b", run_id="other", metric="eshd", value=3.0)])
    kept = latest(store.rows())
    assert sorted(zip(kept["run_id"], kept["metric"], kept["value"], strict=True)) == [
        ("new", "eshd", 2.0),
        ("new", "tpr", 2.0),
        ("other", "eshd", 3.0),
    ]


def test_an_append_of_no_rows_is_refused(tmp_path):
    with pytest.raises(ValueError, match="at least one row"):
        ResultStore(tmp_path / "store").append([])


def test_a_damaged_store_is_one_clear_error(tmp_path):
    store = ResultStore(tmp_path / "store")
    store.append([row()])
    for commit in (tmp_path / "store" / "_delta_log").glob("*.json"):
        commit.write_text("{")
    with pytest.raises(InvalidInput, match="expected a result store that can be read"):
        store.done("a")
