"""What is published in `results/` belongs together: the tables and figures are those of the published rows."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest
from pyarrow import parquet

from experiments.publication import main
from experiments.store import ResultStore
from experiments.store.importing import import_rows
from experiments.table_text import exact

RESULTS = Path(__file__).resolve().parents[2] / "results"


def test_the_published_values_are_those_of_the_published_rows():
    stored = {
        (row["job_id"], row["metric"] or "", row["git_commit"], "" if row["value"] is None else exact(row["value"]))
        for row in parquet.read_table(RESULTS / "rows.parquet").to_pylist()
    }
    files = sorted(RESULTS.glob("tables/*/values.csv"))
    assert len(files) == 9
    for file in files:
        with file.open(encoding="utf-8") as lines:
            published = {
                tuple(line[key] for key in ("job_id", "metric", "git_commit", "value"))
                for line in csv.DictReader(lines)
            }
        assert published
        assert published <= stored


def folder(path):
    """The files of a folder; of JSON what it says, but for the version of the store."""
    files = {str(each.relative_to(path)): each for each in path.rglob("*") if each.is_file() and each.name[0] != "."}
    said = {name: json.loads(each.read_text()) for name, each in files.items() if each.suffix == ".json"}
    return {name: each.read_bytes() for name, each in files.items()} | {
        name: {**content, "store_version": None} for name, content in said.items()
    }


@pytest.fixture
def out(tmp_path):
    """A folder with what of the published one is not made from the store."""
    (tmp_path / "out" / "figures").mkdir(parents=True)
    for name in ("explanations.md", "machines.json"):
        shutil.copy(RESULTS / name, tmp_path / "out")
    for file in RESULTS.glob("figures/interventional_distributions.*"):
        shutil.copy(file, tmp_path / "out" / "figures")
    return tmp_path / "out"


@pytest.mark.slow
def test_the_published_rows_give_what_is_published_to_the_byte(tmp_path, out, capsys):
    store = ResultStore(tmp_path / "store")
    import_rows(store, RESULTS / "rows.parquet")
    other = {**store.table().to_pylist()[0], "run_id": "other", "job_id": "other", "data_config": "private"}
    store.append([other])
    assert main([f"store.path={store.path}", f"out={out}"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    count = parquet.read_metadata(RESULTS / "rows.parquet").num_rows
    assert last == f"9 tables, 3 figures and {count} rows of version 2 in {out}"
    made, published = folder(out), folder(RESULTS)
    del published["paper/tables.csv"]
    assert set(made) == set(published)
    for files in (made, published):
        assert "version" in files.pop("README.md").decode()  # both say it in their text
        assert "version" in files.pop("report.html").decode()
    assert parquet.read_table(out / "rows.parquet").equals(parquet.read_table(RESULTS / "rows.parquet"))
    del made["rows.parquet"], published["rows.parquet"]  # its bytes depend on the version of pyarrow
    assert made == published
    assert not list(out.glob(".publishing-*"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["version=0"], "name: expected a table with jobs in the store, got none of the 520 jobs of 'main_cd'"),
        (["version=7"], "version: expected 0 to 1"),
        (["version=x"], "version: expected a whole number of at least 0, got 'x'"),
        (["store.path=nowhere"], "store.path: expected a result store, got 'nowhere' without one"),
        (["name=main_cd"], "command line: expected store.path=..., version=..., out=..., got 'name=main_cd'"),
    ],
)
def test_what_cannot_be_published_is_one_line_and_leaves_what_is_there(tmp_path, out, capsys, arguments, message):
    import_rows(ResultStore(tmp_path / "store"), RESULTS / "rows.parquet")
    before = folder(out)
    settings = {"store.path": str(tmp_path / "store"), "out": str(out)} | dict(each.split("=") for each in arguments)
    assert main([f"{key}={value}" for key, value in settings.items()]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"error: {message}")
    assert len(err.splitlines()) == 1
    assert folder(out) == before
    assert not list(out.glob(".publishing-*"))


def test_a_place_that_is_a_file_is_one_line(tmp_path, capsys):
    import_rows(ResultStore(tmp_path / "store"), RESULTS / "rows.parquet")
    (tmp_path / "file").touch()
    assert main([f"store.path={tmp_path / 'store'}", f"out={tmp_path / 'file'}"]) == 2
    assert capsys.readouterr().err.startswith(f"error: out: expected a folder that can be written to, got '{tmp_path}")


def test_help_tells_the_usage(capsys):
    assert main(["--help"]) == 0
    assert "rows.parquet" in capsys.readouterr().out
