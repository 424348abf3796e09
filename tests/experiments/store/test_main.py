from __future__ import annotations

import subprocess
import sys
from datetime import timedelta

import pytest
from store_rows import START, row

from experiments.export import export
from experiments.store import ResultStore
from experiments.store.__main__ import main


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = ResultStore("results/store")
    for k, value in enumerate((1.0, 2.0)):
        started = START + timedelta(minutes=k)
        names = ("eshd", "tpr")
        made.append(
            [
                row("a", run_id=str(k), started_at=started, metric=name, value=value, git_commit=40 * "c")
                for name in names
            ]
        )
    return made


@pytest.mark.usefixtures("store")
def test_compact_tells_files_and_version_and_then_that_there_is_nothing_to_do(capsys):
    assert main(["compact"]) == 0
    assert capsys.readouterr().out == "2 files -> 1 file, version 3; earlier versions stay readable\n"
    assert main(["compact", "store.path=results/store"]) == 0
    assert capsys.readouterr().out == "nothing to compact: 1 file, version 3\n"


def test_history_has_a_line_for_every_version_the_newest_first(store, capsys):
    store.append([row("b")])
    assert main(["history"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["version", "time", "(UTC)", "operation", "added", "rows", "commit"]
    assert [[line[0], *line[3:]] for line in lines[1:]] == [
        ["3", "WRITE", "1", "5", "-"],
        ["2", "WRITE", "2", "4", "ccccccc"],
        ["1", "WRITE", "2", "2", "ccccccc"],
        ["0", "CREATE", "TABLE", "0", "0", "-"],
    ]
    assert main(["history", "limit=1"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["version", "3"]


def test_diff_tells_new_jobs_and_what_reruns_changed(store, capsys):
    store.append([row("b"), row("c", status="failed")])
    assert main(["diff", "1", "3"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "version 1 -> 3: rows 2 -> 6, jobs 1 -> 3",
        "+ 1 job: m on er, failed",
        "+ 1 job: m on er, ok",
        "1 job run again, 1 with other results",
        "  a m on er: eshd 1.0 -> 2.0",
        "  a m on er: tpr 1.0 -> 2.0",
    ]
    assert main(["diff", "3", "1", "limit=1"]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "  a m on er: eshd 2.0 -> 1.0",
        "  and 1 more change; set a larger limit=N",
    ]


@pytest.mark.usefixtures("store")
def test_diff_across_a_compaction_shows_no_change(capsys):
    main(["compact"])
    capsys.readouterr()
    assert main(["diff", "2", "3"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "version 2 -> 3: rows 4 -> 4, jobs 1 -> 1",
        "no change in the results",
    ]


@pytest.mark.usefixtures("store")
def test_import_tells_what_it_added_and_what_was_there(capsys):
    export("results/store", "rows.parquet", version=1)
    assert main(["import", "rows.parquet", "store.path=other"]) == 0
    assert capsys.readouterr().out == "1 run added with 2 rows, version 1\n"
    export("results/store", "rows.parquet")
    assert main(["import", "rows.parquet", "store.path=other"]) == 0
    assert capsys.readouterr().out == "1 run added with 2 rows, version 2; 1 run was there\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "command line: expected compact, history, diff A B or import FILE first, got nothing"),
        (["vacuum"], "command line: expected compact, history, diff A B or import FILE first, got 'vacuum'"),
        (["compact", "3"], "compact: expected no versions, got 3"),
        (["compact", "limit=3"], "command line: expected store.path=..., got 'limit=3'"),
        (["history", "limit=0"], "limit: expected a whole number of at least 1, got '0'"),
        (["history", "store.path=a", "store.path=b"], "store.path: expected one value, got it twice"),
        (["diff", "1"], "diff: expected two versions, as in diff 3 5, got 1"),
        (["diff", "1", "two"], "diff: expected a whole number of at least 0, got 'two'"),
        (["diff", "1", "9"], "version: expected 0 to 2"),
        (["import"], "import: expected one file, as in import results/rows.parquet, got none"),
        (["import", "a=b.csv"], "import: expected a Parquet file written by experiments.export, got 'a=b.csv'"),
        (["import", "rows.csv", "limit=3"], "command line: expected store.path=..., got 'limit=3'"),
        (["import", "rows.csv"], "import: expected a Parquet file written by experiments.export, got 'rows.csv'"),
        (["history", "store.path=nowhere"], "store.path: expected a result store, got 'nowhere' without one"),
        (["compact", "store.path=nowhere"], "store.path: expected a result store, got 'nowhere' without one"),
    ],
)
@pytest.mark.usefixtures("store")
def test_a_wrong_command_is_one_line(capsys, arguments, message):
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"error: {message}")
    assert len(err.splitlines()) == 1


def test_a_compaction_that_fails_is_one_line_and_exit_code_one(store, capsys):
    next(store.path.glob("*.parquet")).unlink()
    assert main(["compact"]) == 1
    err = capsys.readouterr().err
    assert err.startswith("error: could not write to the store")
    assert len(err.splitlines()) == 1


def test_help_tells_the_usage(capsys):
    assert main(["--help"]) == 0
    assert "diff A B" in capsys.readouterr().out


def test_it_runs_as_a_module_without_torch():
    code = "import sys, experiments.store.__main__; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    done = subprocess.run(
        [sys.executable, "-m", "experiments.store", "-h"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
