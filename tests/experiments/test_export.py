from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime

import pandas as pd
import pyarrow.parquet as pq
import pytest

from bci.errors import InvalidInput
from experiments.export import export, main
from experiments.store import SCHEMA, ResultStore

COMMON = {
    "status": "ok",
    "data_name": "er",
    "method": "m",
    "method_config": '{"a":1}',
    "data_config": "{}",
    "metrics_config": "{}",
    "method_seed": 0,
    "package_versions": "{}",
    "started_at": datetime(2025, 1, 2, tzinfo=UTC),
    "host": "h",
}


@pytest.fixture
def store(tmp_path):
    made = ResultStore(tmp_path / "store")
    made.append([{**COMMON, "run_id": "1", "job_id": "a", "metric": "eshd", "value": 0.1 + 0.2, "num_nodes": 20}])
    made.append([{**COMMON, "run_id": "2", "job_id": "b", "metric": "eshd", "undefined_reason": "no, truth"}])
    return made


def test_csv_and_parquet_hold_the_rows_of_the_store(store, tmp_path):
    assert export(store.path, tmp_path / "new" / "rows.csv") == 2
    assert export(store.path, tmp_path / "rows.parquet") == 2
    assert pq.read_table(tmp_path / "rows.parquet").equals(store.table())
    frame = pd.read_csv(tmp_path / "new" / "rows.csv", dtype={"run_id": str})
    assert list(frame.columns) == SCHEMA.names
    assert frame["value"][0] == 0.1 + 0.2
    assert pd.isna(frame["value"][1])
    assert frame["undefined_reason"][1] == "no, truth"
    assert frame["method_config"][0] == '{"a":1}'
    assert ",20," in (tmp_path / "new" / "rows.csv").read_text()


def test_an_older_version_can_be_exported(store, tmp_path):
    assert main([f"store.path={store.path}", f"out={tmp_path / 'rows.csv'}", "version=1"]) == 0
    assert pd.read_csv(tmp_path / "rows.csv")["job_id"].tolist() == ["a"]


def test_a_file_is_replaced_whole_or_left_alone(store, tmp_path, monkeypatch):
    out = tmp_path / "rows.csv"
    out.write_text("old")

    def broken(_, path):
        path.write_text("half")
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setitem(sys.modules["experiments.export"]._WRITERS, ".csv", broken)
        with pytest.raises(InvalidInput, match="No space left"):
            export(store.path, out)
    assert out.read_text() == "old"
    with out.open() as reading:
        export(store.path, out)
        assert reading.read() == "old"
    assert out.read_text().startswith('"run_id"')
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.csv", "store"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["out=rows.txt"], "out: expected a file that ends in .csv or .parquet, got 'rows.txt'"),
        ([], "out: expected a file, got none"),
        (
            ["out=rows.csv", "colour=red"],
            "command line: expected store.path=..., out=..., version=..., got 'colour=red'",
        ),
        (["out=a.csv", "out=b.csv"], "out: expected one value, got it twice"),
        (["out=rows.csv", "version"], "command line: expected"),
        (["out=rows.csv", "version=9"], "version: expected 0 to 2"),
        (["out=rows.csv", "version=-1"], "version: expected a whole number of at least 0, got '-1'"),
        (["out=rows.csv", "store.path=nowhere"], "store.path: expected a result store, got 'nowhere' without one"),
        (["out=/proc/rows.csv"], "out: expected a place that can be written to"),
        (["out=" + 300 * "x" + ".csv"], "out: expected a place that can be written to"),
        (["out=folder.csv"], "out: expected a file, but 'folder.csv' is a folder"),
    ],
)
@pytest.mark.usefixtures("store")
def test_a_wrong_command_is_one_line(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.csv").mkdir()
    if not any(argument.startswith("store.path=") for argument in arguments):
        arguments = ["store.path=store", *arguments]
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"error: {message}")
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "rows.csv").exists()


def test_help_tells_the_usage(capsys):
    assert main(["--help"]) == 0
    assert "out=FILE" in capsys.readouterr().out


def test_it_starts_without_torch():
    code = "import sys, experiments.export; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
