from __future__ import annotations

import multiprocessing
import tempfile
from datetime import timedelta
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from store_rows import START, append_jobs, job, row

from bci.errors import InvalidInput
from experiments.store import SCHEMA, ResultStore, StoreWriteError, latest
from experiments.store.compaction import compact
from experiments.store.history import history
from experiments.store.schema import as_table


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
    for bad in [{"num_nodes": 2.5}, {"num_nodes": "2"}, {"status": "good"}, {"colour": "red"}, {"host": None}]:
        with pytest.raises(StoreWriteError):
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
        (make_other_table, "lacks run_id, status, data_name and others"),
    ],
)
def test_a_path_that_holds_something_else_is_refused(tmp_path, monkeypatch, make, expected):
    monkeypatch.chdir(tmp_path)
    make(Path("store"))
    with pytest.raises(InvalidInput, match=expected):
        ResultStore("store").prepare()
    with pytest.raises(InvalidInput, match=expected):
        ResultStore("store").rows()


@pytest.mark.parametrize(
    "path",
    ["br[b]", "in/per%20cent", "back\\slash", "caret^", "pi|pe", "new\nline", "\0", "file:///tmp/x", "s3://bucket/x"],
)
def test_a_path_that_deltalake_takes_for_another_is_refused_before_anything_is_created(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    for use in (ResultStore(path).prepare, ResultStore(path).rows, lambda: ResultStore(path).done("a")):
        with pytest.raises(InvalidInput, match=r"^store\.path: expected a (local folder|folder without)") as error:
            use()
        assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_a_path_under_a_folder_that_deltalake_cannot_open_is_refused(tmp_path, monkeypatch):
    (tmp_path / "br[b]").mkdir()
    monkeypatch.chdir(tmp_path / "br[b]")
    with pytest.raises(InvalidInput, match="whole path"):
        ResultStore("store").prepare()


def test_a_path_may_begin_at_home_and_have_unusual_names(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("store", "a b#c?d", "c:"):
        ResultStore(f"~/{name}").append([row()])
        assert (tmp_path / name / "_delta_log").is_dir()
        assert ResultStore(tmp_path / name).done("a")


@pytest.mark.parametrize("part", ["", "_delta_log"])
def test_a_folder_that_cannot_be_written_to_is_refused_before_any_row(tmp_path, monkeypatch, part):
    with pytest.raises(InvalidInput, match="can be created and written to, got '/proc/store'"):
        ResultStore("/proc/store").prepare()
    store = ResultStore(tmp_path / "store")
    store.prepare()
    temporary_file = tempfile.NamedTemporaryFile

    def read_only(*, dir, prefix):  # noqa: A002
        if dir == tmp_path / "store" / part:
            raise PermissionError(13, "Permission denied")
        return temporary_file(dir=dir, prefix=prefix)

    monkeypatch.setattr("experiments.store.result_store.tempfile.NamedTemporaryFile", read_only)
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
    with pytest.raises(StoreWriteError, match="at least one row"):
        ResultStore(tmp_path / "store").append([])


def test_a_damaged_store_is_one_clear_error(tmp_path):
    store = ResultStore(tmp_path / "store")
    store.append([row()])
    for commit in (tmp_path / "store" / "_delta_log").glob("*.json"):
        commit.write_text("{")
    with pytest.raises(InvalidInput, match=r"expected a result store that can be read, got .* \(.*reading object\); "):
        store.done("a")


def test_rows_without_their_log_are_not_taken_for_an_empty_store(tmp_path):
    store = ResultStore(tmp_path / "store")
    store.append([row()])
    for commit in (tmp_path / "store" / "_delta_log").glob("*.json"):
        commit.unlink()
    for use in (store.prepare, lambda: store.done("a"), store.rows):
        with pytest.raises(InvalidInput, match=r"no log of a store; .* restore _delta_log from a copy"):
            use()


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:40])])
def test_a_lost_or_cut_file_of_rows_is_one_clear_error_and_earlier_versions_remain(tmp_path, damage):
    store = ResultStore(tmp_path / "store")
    first = store.append([row("a")])
    kept = set(store.path.glob("*.parquet"))
    store.append([row("b")])
    damage(*(set(store.path.glob("*.parquet")) - kept))
    for use in (lambda: store.done("b"), store.table):
        with pytest.raises(
            InvalidInput, match=r"^store\.path: .* restore it from a copy, or export an earlier"
        ) as error:
            use()
        assert "\n" not in str(error.value)
    assert store.rows(first)["job_id"].tolist() == ["a"]


class PanicError(BaseException):
    """As pyo3 raises it where Rust code panics."""


def panic(*_: object, **__: object) -> None:
    raise PanicError("in\nRust")


def test_a_panic_becomes_an_error_of_the_store(tmp_path, monkeypatch):
    store = ResultStore(tmp_path / "store")
    store.append([row()])
    monkeypatch.setattr("experiments.store.result_store.write_deltalake", panic)
    with pytest.raises(StoreWriteError, match=r"could not write to .*: in Rust"):
        store.append([row("b")])
    monkeypatch.setattr("experiments.store.result_store.QueryBuilder", panic)
    with pytest.raises(InvalidInput, match=r"store\.path: .* \(in Rust\)"):
        store.done("a")


def test_an_interrupt_of_the_store_stays_one(tmp_path, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    store = ResultStore(tmp_path / "store")
    store.prepare()
    for name, use in [("write_deltalake", lambda: store.append([row()])), ("QueryBuilder", store.rows)]:
        monkeypatch.setattr(f"experiments.store.result_store.{name}", interrupt)
        with pytest.raises(KeyboardInterrupt):
            use()


LATER = ("git_dirty", "device")  # columns that an older schema lacked


def make_older(path: Path) -> ResultStore:
    """A store without the later columns, with a job in its version 1."""
    schema = pa.schema([field for field in SCHEMA if field.name not in LATER])
    DeltaTable.create(path, schema)
    write_deltalake(path, as_table(job("old")).select(schema.names), mode="append")
    return ResultStore(path)


def test_an_older_schema_is_read_with_nulls_and_not_changed_by_reading(tmp_path):
    store = make_older(tmp_path / "store")
    store.prepare()
    assert store.table().schema == SCHEMA
    assert store.rows()[list(LATER)].isna().all(axis=None)
    assert store.done("old")
    assert store.version == 1


def test_an_append_adds_the_columns_that_an_older_schema_lacks_and_every_version_stays_readable(tmp_path):
    store = make_older(tmp_path / "store")
    assert store.append([row("new", device="cuda", git_dirty=True)]) == 3
    assert store.append([row("newer", device="cpu")]) == 4
    frame = store.rows().set_index("job_id")
    assert frame.loc["new", ["device", "git_dirty"]].tolist() == ["cuda", True]
    assert frame.loc["newer", "device"] == "cpu"
    assert frame.loc["old", list(LATER)].isna().all(axis=None)
    assert [len(store.table(version)) for version in range(5)] == [0, 3, 3, 4, 5]
    assert all(store.table(version).schema == SCHEMA for version in range(5))
    assert compact(store).files_after == 1
    assert store.rows().set_index("job_id").sort_index().equals(frame.sort_index())


def test_writers_that_meet_an_older_schema_at_once_lose_no_rows(tmp_path):
    store = make_older(tmp_path / "store")
    context = multiprocessing.get_context("forkserver")
    writers = [context.Process(target=append_jobs, args=(store.path, writer, 3)) for writer in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == 4 * [0]
    counts = store.rows().groupby("job_id").size().to_dict()
    assert counts == {"old": 3} | {f"{writer}-{k}": 3 for writer in range(4) for k in range(3)}
    assert [version.operation for version in history(store)].count("ADD COLUMN") == 1


def test_an_append_whose_schema_another_process_changes_meanwhile_is_tried_again(tmp_path, monkeypatch):
    store = make_older(tmp_path / "store")
    opened = store._open()
    ResultStore(store.path).append([row("other")])
    with monkeypatch.context() as patch:
        patch.setattr(store, "_writable", lambda: opened)  # as it was before the change
        store.append([row("new")])
    assert sorted(store.rows()["job_id"]) == ["new", "old", "old", "old", "other"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            lambda fields: [*fields, pa.field("colour", pa.string())],
            r"also has colour, probably of a newer version of this project, which can read it; choose",
        ),
        (lambda fields: [field for field in fields if field.name != "host"], "lacks host; choose"),
        (
            lambda fields: [pa.field("value", pa.int64()) if field.name == "value" else field for field in fields],
            r"differs in value \(int64 instead of double\); choose",
        ),
        (
            lambda fields: [field.with_nullable(True) if field.name == "host" else field for field in fields],
            r"differs in host \(string instead of string, required\); choose",
        ),
    ],
)
def test_any_other_schema_is_refused_with_its_columns_and_nothing_is_changed(tmp_path, change, expected):
    DeltaTable.create(tmp_path / "store", pa.schema(change(list(SCHEMA))))
    store = ResultStore(tmp_path / "store")
    for use in (store.prepare, store.rows, lambda: store.append([row()]), lambda: store.done("a")):
        with pytest.raises(InvalidInput, match=rf"^store\.path: expected the columns of a result store, .* {expected}"):
            use()
    assert DeltaTable(store.path).version() == 0


def test_the_log_is_never_cleaned_and_summed_up_from_time_to_time(tmp_path, monkeypatch):
    monkeypatch.setattr("experiments.store.result_store._CHECKPOINT_INTERVAL", 4)
    store = ResultStore(tmp_path / "store")
    for k in range(3):
        store.append([row(str(k))])
    # As if the first versions were of long ago, when Delta Lake would have forgotten them.
    DeltaTable(store.path).alter.set_table_properties(
        {"delta.logRetentionDuration": "interval 0 days", "delta.enableExpiredLogCleanup": "true"}
    )
    for k in range(3, 10):
        store.append([row(str(k))])
    log = store.path / "_delta_log"
    assert [path.name[18:] for path in sorted(log.glob("*.parquet"))] == [
        "05.checkpoint.parquet",
        "09.checkpoint.parquet",
    ]
    assert len(list(log.glob("*.json"))) == 12
    assert [len(store.rows(version)) for version in (0, 1, 3, 5, 11)] == [0, 1, 3, 4, 10]


def test_a_failed_checkpoint_does_not_fail_an_append(tmp_path, monkeypatch):
    monkeypatch.setattr("experiments.store.result_store._CHECKPOINT_INTERVAL", 1)
    monkeypatch.setattr(DeltaTable, "create_checkpoint", panic)
    store = ResultStore(tmp_path / "store")
    assert store.append([row()]) == 1
    assert store.done("a")
