from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake.exceptions import CommitFailedError
from pyarrow import parquet
from store_rows import job, row

from bci.errors import InvalidInput
from experiments.export import export
from experiments.store import SCHEMA, ResultStore, StoreWriteError, result_store
from experiments.store.importing import Imported, import_rows


@pytest.fixture
def file(tmp_path):
    """An export of a store with the jobs a and b, of which b failed."""
    there = ResultStore(tmp_path / "there")
    there.append(job("a"))
    there.append([row("b", status="failed", error="no graph", num_nodes=20, git_dirty=False)])
    export(there.path, tmp_path / "rows.parquet")
    return tmp_path / "rows.parquet"


@pytest.fixture
def here(tmp_path):
    return ResultStore(tmp_path / "here")


def test_an_import_into_no_store_makes_one_of_the_same_rows(file, here):
    assert import_rows(here, file) == Imported(rows=4, runs=2, known=0, version=1)
    assert here.table().equals(parquet.read_table(file))
    assert here.done("a")
    assert not here.done("b")


def test_only_runs_that_are_not_there_are_added_and_a_second_import_adds_no_version(file, here):
    here.append(job("a"))
    here.append(job("c"))
    assert import_rows(here, file) == Imported(rows=1, runs=1, known=1, version=3)
    assert sorted(here.table()["job_id"].to_pylist()) == [*"aaa", "b", *"ccc"]
    assert import_rows(here, file) == Imported(rows=0, runs=0, known=2, version=3)


def test_another_run_of_a_job_is_added_and_the_newest_counts(file, here):
    later = datetime(2026, 1, 1, tzinfo=UTC)
    here.append([row("a", run_id="again", started_at=later, metric="eshd", value=2.0)])
    import_rows(here, file)
    newest = result_store.latest(here.rows())
    assert newest.loc[newest["job_id"] == "a", "value"].tolist() == [2.0]
    assert len(here.table()) == 5


def test_of_imports_at_once_one_adds_the_rows(file, here):
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: import_rows(ResultStore(here.path), file), range(4)))
    assert sorted(each.runs for each in done) == [0, 0, 0, 2]
    assert len(here.table()) == 4


def test_columns_that_an_older_export_lacks_are_null(file, here):
    parquet.write_table(parquet.read_table(file).drop_columns(["peak_memory_mb"]), file)
    import_rows(here, file)
    assert here.table()["peak_memory_mb"].null_count == 4


def test_an_import_that_cannot_be_written_changes_nothing(file, here, monkeypatch):
    here.append(job("c"))

    def refused(*_, **__):
        raise CommitFailedError("Failed to commit transaction: 15")

    monkeypatch.setattr(result_store, "write_deltalake", refused)
    with pytest.raises(StoreWriteError, match=r"^could not write to the store '[^']*': Failed to commit"):
        import_rows(here, file)
    assert here.version == 1


def with_status(rows, status):
    return rows.set_column(rows.column_names.index("status"), SCHEMA.field("status"), pa.array([status] * len(rows)))


def started_too_late(rows):
    late = pa.array([2**62] * len(rows), SCHEMA.field("started_at").type)
    return rows.set_column(rows.column_names.index("started_at"), SCHEMA.field("started_at"), late)


def with_text_values(rows):
    return rows.set_column(rows.column_names.index("value"), "value", pc.cast(rows["value"], pa.string()))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows.drop_columns(["job_id"]), "lacks job_id"),
        (with_text_values, r"differs in value \(string instead of double\)"),
        (
            lambda rows: rows.append_column("seed", pa.array([1] * len(rows))),
            "also has seed, probably of a newer version of this project, which can read it",
        ),
        (lambda rows: with_status(rows, "odd"), "expected a status of .*, got 'odd'"),
        (lambda rows: rows.append_column("run_id", rows["run_id"]), "run_id"),
        (started_too_late, "out of range"),
        (lambda rows: rows[:0], "expected at least one row"),
    ],
)
def test_a_file_of_other_rows_is_refused_and_nothing_is_made(file, here, change, message):
    parquet.write_table(change(parquet.read_table(file)), file)
    expected = "import: expected a Parquet file written by experiments.export"
    with pytest.raises(InvalidInput, match=rf"^{expected}, got '.*' \(.*{message}.*\); choose another$"):
        import_rows(here, file)
    assert not here.path.exists()


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", b"PAR1" + bytes(100) + b"PAR1"])
def test_a_file_that_is_no_parquet_is_refused(tmp_path, here, content):
    (tmp_path / "rows.parquet").write_bytes(content)
    with pytest.raises(InvalidInput, match=r"rows\.parquet' .*; choose another"):
        import_rows(here, tmp_path / "rows.parquet")


def test_a_file_cut_short_is_refused(file, here):
    file.write_bytes(file.read_bytes()[:-200])
    with pytest.raises(InvalidInput, match="choose another"):
        import_rows(here, file)


@pytest.mark.parametrize("name", ["none.parquet", "folder"])
def test_a_file_that_is_not_there_is_refused_and_so_is_a_folder_of_files(tmp_path, file, here, name):
    (tmp_path / "folder").mkdir()
    file.rename(tmp_path / "folder" / file.name)
    with pytest.raises(InvalidInput, match="choose another"):
        import_rows(here, tmp_path / name)
    assert not here.path.exists()
