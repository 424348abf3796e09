from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from experiments.run import CONFIGS
from experiments.store import ResultStore


@pytest.fixture
def stand_in_method(tmp_path):
    """A folder of configs with the method of the stand-ins."""
    folder = tmp_path / "configs" / "method"
    folder.mkdir(parents=True)
    (folder / "stand_in.yaml").write_text("_target_: stand_ins.RandomDag\nmax_parents: 2\nmode: fit\n")
    return ["--config-dir", str(folder.parent), "method=stand_in", "metrics.names=[eshd]"]


def statuses():
    return ResultStore("store").rows()["status"].tolist() if Path("store").exists() else []


def small(*changes):
    return ["data=er", "data.num_nodes=4", "data.expected_degree=1", "data.num_samples=30", *changes]


def test_a_job_runs_once_and_is_then_skipped(command, stand_in_method):
    first = command(*stand_in_method, *small())
    assert (first.code, first.err) == (0, "")
    assert first.out.startswith("stand_in on er: 30 samples, 4 variables, seed 0")
    row = ResultStore("store").rows().iloc[0]
    assert (row["graph_model"], row["mechanism"], row["expected_degree"]) == ("er", "gp", 1.0)
    again = command(*stand_in_method, *small())
    assert "skipped" in again.out
    assert statuses() == ["ok"]
    run_dirs = [path.parent for path in Path("outputs").glob("*/*/metrics.json")]
    assert len(run_dirs) == 2
    assert all("stand_in" in path.name for path in run_dirs)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["data.foo=1"], "data.foo: unknown key"),
        (["foo=1"], "foo: unknown key"),
        (["data=nope"], "data: expected one of csv, er, sachs, sachs_gp, sf, got 'nope'; set data=NAME"),
        (["method=nope"], "method: expected one of "),
        (["metrics=nope"], "metrics: expected one of all, interventional, structure, got 'nope'"),
        (["data=null"], "command line: "),
        (["data.seed"], "command line: expected key=value, got 'data.seed'"),
        (["metrics.names=[eshd,nope"], "command line: expected key=value, got 'metrics.names=[eshd,nope'"),
        (["hydra.job.chdir=zz"], "command line: Error merging override hydra.job.chdir=zz (Value 'zz' is not"),
        (["hydra.run.dir=/proc/run"], "hydra.run.dir: expected a folder that can be written to"),
        (["~data"], "data: expected a group of settings"),
        (["data=csv"], "data.path: expected a value, got none; set data.path=..."),
        (["seed=-1"], "seed: expected a whole number from 0 to 9223372036854775807, got -1"),
        (["seed=abc"], "seed: expected a whole number from 0 to 9223372036854775807, got 'abc'"),
    ],
)
def test_a_command_that_cannot_be_run_is_one_line_and_stores_nothing(command, stand_in_method, arguments, message):
    ended = command(*stand_in_method, *arguments)
    assert ended.code == 2
    assert ended.err.startswith(f"error: {message}")
    assert len(ended.err.splitlines()) == 1
    assert statuses() == []


def test_help_shows_commands_to_copy(command, stand_in_method):
    shown = command(*stand_in_method, flag="--help")
    assert shown.code == 0
    assert "python -m experiments.run data=sachs method=arco_gp" in shown.out


def test_a_sweep_goes_on_after_a_failure_and_ends_with_an_exit_code(command, stand_in_method):
    swept = command(*stand_in_method, *small("method.mode=crash,invalid,fit", "hydra.sweep.dir=sweep"), flag="-m")
    assert swept.code == 1
    assert sorted(statuses()) == ["failed", "invalid", "ok"]
    assert swept.err.splitlines()[-1] == "error: 2 of 3 jobs did not finish (1 failed, 1 invalid); see sweep"
    assert len(swept.err.splitlines()) == 3
    assert [line.split() for line in swept.out.splitlines()[-4:]] == [
        ["mean", "over", "seeds", "jobs", "eshd", "fit", "s"],
        ["method.mode=crash", "0/1", "--", "--"],
        ["method.mode=invalid", "0/1", "--", "--"],
        ["method.mode=fit", "1/1", f"{ResultStore('store').rows()['value'].dropna()[2]:.3f}", "0.0"],
    ]
    assert command(*stand_in_method, *small("seed=0,1", "hydra.sweep.dir=sweep2"), flag="-m").code == 0
    assert sorted(statuses()) == ["failed", "invalid", "ok", "ok"]


def test_an_interrupt_ends_with_130_and_stores_nothing(command, stand_in_method):
    ended = command(*stand_in_method, *small("method.mode=interrupt"))
    assert ended.code == 130
    assert len(ended.err.splitlines()) == 1
    assert statuses() == []


def test_from_the_shell_the_store_is_where_the_command_was_started(tmp_path, stand_in_method):
    arguments = [*stand_in_method, *small("data.num_samples=0")]
    paths = os.pathsep.join([str(CONFIGS.parent), str(Path(__file__).parent)])
    ended = subprocess.run(
        [sys.executable, "-m", "experiments.run", *arguments],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: data.num_samples: ")
    assert len(ended.stderr.splitlines()) == 1
    assert ResultStore(tmp_path / "results" / "store").rows()["status"].tolist() == ["invalid"]


def write_csv(path, names="a,b,c", change=None):
    """Sixty rows of three variables, with one cell of the third data row replaced."""
    rows = np.random.default_rng(0).standard_normal((60, len(names.split(",")))).astype(str).tolist()
    if change is not None:
        rows[2][1] = change
    Path(path).write_text("\n".join([names, *(",".join(row) for row in rows)]) + "\n")
    return rows


def missing_file():
    return ["data.path=nowhere.csv"], "nowhere.csv"


def cell(change):
    def make():
        write_csv("data.csv", change=change)
        return ["data.path=data.csv"], "'b'"

    return make


def constant_column():
    Path("data.csv").write_text("a,b\n" + "".join(f"{k},1\n" for k in range(9)))
    return ["data.path=data.csv"], "'b'"


def duplicated_column():
    Path("data.csv").write_text("a,b\n" + "".join(f"{k**2},{k**2}\n" for k in range(9)))
    return ["data.path=data.csv"], "'b'"


def duplicated_name():
    write_csv("data.csv", names="a,b,b")
    return ["data.path=data.csv"], "'b'"


def one_row():
    Path("data.csv").write_text("a,b\n1,2\n")
    return ["data.path=data.csv"], "2 rows"


def one_column():
    Path("data.csv").write_text("a\n1\n2\n4\n")
    return ["data.path=data.csv"], "2 columns"


def foreign_graph():
    write_csv("data.csv")
    Path("graph.csv").write_text("cause,effect\na,b\nb,other\n")
    return ["data.path=data.csv", "data.graph_path=graph.csv"], "other"


def cyclic_graph():
    write_csv("data.csv")
    Path("graph.csv").write_text("cause,effect\na,b\nb,c\nc,a\n")
    return ["data.path=data.csv", "data.graph_path=graph.csv"], "cycle"


BAD_DATA = {
    "missing file": missing_file,
    "non-numeric cell": cell("abc"),
    "empty cell": cell(""),
    "nan": cell("nan"),
    "infinite": cell("inf"),
    "constant column": constant_column,
    "duplicated column": duplicated_column,
    "duplicated name": duplicated_name,
    "one row": one_row,
    "one column": one_column,
    "graph with other names": foreign_graph,
    "cyclic graph": cyclic_graph,
}


@pytest.mark.parametrize("case", BAD_DATA)
def test_bad_data_is_one_line_that_names_the_place(command, stand_in_method, case):
    arguments, place = BAD_DATA[case]()
    ended = command(*stand_in_method, "data=csv", *arguments)
    assert ended.code == 2
    assert ended.err.startswith("error: ")
    assert place in ended.err
    assert len(ended.err.splitlines()) == 1
    assert statuses() == ([] if case == "missing file" else ["invalid"])


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        (small("method=arco_gp", "method.max_parents=4"), "method.max_parents"),
        (small("method=exact_gp", "data.num_nodes=60"), "memory"),
    ],
    ids=["as many parents as variables", "exact orders beyond memory"],
)
def test_a_model_too_large_for_the_data_or_the_machine_is_one_line(command, arguments, key):
    ended = command("metrics.names=[eshd]", *arguments)
    assert ended.code == 2
    assert key in ended.err
    assert len(ended.err.splitlines()) == 1
    assert statuses() == ["invalid"]
