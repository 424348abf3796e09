from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from shell import errors, from_the_shell

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
    assert first.out.startswith("stand_in on er: 30 samples, 4 variables, data.seed=0 seed=0")
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
        (["method=arco_gp/nope"], "method: expected one of arco_gp/k1, arco_gp/k3, "),
        (["+experiment=quick/nope"], "experiment: expected one of quick/degree_4, "),
        (["-m", "+experiment=degree_4,sachs"], "experiment: expected one for a whole sweep, got several"),
        (["-m", "launcher=basic,processes"], "launcher: expected one for a whole sweep, got several"),
        (["-m", "+experiment=sachs", "num_models=1,2"], "num_models: expected one for a whole sweep, got several"),
        (["metrics=nope"], "metrics: expected one of all, interventional, structure, got 'nope'"),
        (["data=null"], "data: expected one of csv, er, sachs, sachs_gp, sf, got null; set data=NAME"),
        (["method=5"], "method: expected one of arco_gp, bayesdag, beeps, "),
        (["tracking=nope"], "tracking: expected one of none, wandb, got 'nope'; set tracking=NAME"),
        (["tracking.mode=online"], "tracking.mode: unknown key"),
        (["tracking=wandb", "tracking.mode=on"], "tracking.mode: expected one of offline, online, disabled, got 'on'"),
        (["metrics=true"], "metrics: expected one of all, interventional, structure, got True"),
        (["data=er", "data.interventions={foo:1}"], "data.interventions.foo: unknown key"),
        (["+experiment=nope"], "experiment: expected one of degree_4, degree_8, interventional, "),
        (["+seeed=3"], "seeed: unknown key"),
        (["+experiment=sachs", "+seeed=3"], "seeed: unknown key"),
        (["++extra.foo=3"], "extra: unknown key"),
        (["+store.foo=3"], "store.foo: unknown key"),
        (["method=exact_gp", "+method.order_model=mlp"], "method.order_model: unknown key"),
        (["method=exact_gp", "++method.order_model=mlp"], "method.order_model: unknown key"),
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


def test_a_sweep_whose_folder_cannot_be_made_is_one_line(command, stand_in_method):
    ended = command(*stand_in_method, "data.seed=1,2", "hydra.sweep.dir=/proc/sweep", flag="-m")
    assert ended.code == 2
    (line,) = ended.err.splitlines()
    assert line.startswith("error: hydra.sweep.dir: expected a folder that can be written to, got: ")


@pytest.mark.parametrize(("seeds", "code"), [("1,2", 0), ("1,-1,2", 1)])
@pytest.mark.parametrize("reads_errors", [True, False])
def test_a_sweep_goes_on_when_nobody_reads_what_it_says(tmp_path, seeds, code, reads_errors):
    small = ["data=er", "data.num_nodes=6", "data.num_samples=20", "metrics.names=[eshd]"]
    process = from_the_shell(tmp_path, "-m", "method=empty", *small, f"data.seed={seeds}", "store.path=store")
    process.stdout.close()
    if reads_errors:
        said = process.stderr.read()
        assert "Traceback" not in said
        assert len(errors(said)) == 2 * code  # the job, and the sweep
    process.stderr.close()
    assert process.wait() == code
    assert ResultStore(tmp_path / "store").rows()["status"].tolist().count("ok") == 2


@pytest.mark.parametrize("number", ["two", "-1", "0", "1.5", "true", "null"])
def test_a_sweep_over_no_whole_number_of_data_sets_is_one_line(command, recwarn, number):
    ended = command("+experiment=quick/degree_4", f"num_models={number}", flag="-m")
    shown = {"true": "True", "null": "None"}.get(number, number)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == f"error: num_models: expected a whole number of at least 1, got '{shown}'\n"
    assert not [each for each in recwarn if "Callback" in str(each.message)]


def test_an_unknown_name_of_a_config_is_one_line(command, stand_in_method):
    ended = command("--config-name=nope", *stand_in_method)
    assert (ended.code, ended.err) == (2, "error: --config-name: expected config, got 'nope'; leave it out\n")


def test_a_key_that_the_configs_have_may_be_forced(command, stand_in_method):
    assert command(*stand_in_method, *small("++seed=4", "~method.max_parents", "+method.max_parents=1")).code == 0
    row = ResultStore("store").rows().iloc[0]
    assert (row["method_seed"], '"max_parents":1' in row["method_config"]) == (4, True)


def test_help_shows_commands_to_copy(command, stand_in_method):
    shown = command(*stand_in_method, flag="--help")
    assert shown.code == 0
    assert "python -m experiments.run data=sachs method=arco_gp" in shown.out


def test_a_sweep_goes_on_after_a_failure_and_ends_with_an_exit_code(command, stand_in_method):
    swept = command(*stand_in_method, *small("method.mode=crash,invalid,fit", "hydra.sweep.dir=sweep"), flag="-m")
    assert swept.code == 1
    assert sorted(statuses()) == ["failed", "invalid", "ok"]
    assert (
        swept.err.splitlines()[-1]
        == "error: 2 of 3 jobs did not finish (1 failed, 1 invalid), 1 ran, 0 skipped; see sweep"
    )
    assert len(errors(swept.err)) == 3
    assert [line.split() for line in swept.out.splitlines()[-4:]] == [
        ["mean", "over", "seeds", "jobs", "eshd", "fit", "s"],
        ["method.mode=crash", "0/1", "--", "--"],
        ["method.mode=invalid", "0/1", "--", "--"],
        ["method.mode=fit", "1/1", f"{ResultStore('store').rows()['value'].dropna()[2]:.3f}", "0.0"],
    ]
    assert command(*stand_in_method, *small("seed=0,1", "hydra.sweep.dir=sweep2"), flag="-m").code == 0
    assert sorted(statuses()) == ["failed", "invalid", "ok", "ok"]


def test_a_sweep_counts_its_own_jobs_alone(command, stand_in_method):
    shared = ["hydra.sweep.dir=sweep", "hydra.sweep.subdir=same"]
    assert command(*stand_in_method, *small("method.mode=crash", "seed=0,1,2"), "hydra.sweep.dir=sweep", flag="-m").code
    again = command(*stand_in_method, *small("seed=0,1", "hydra.sweep.dir=sweep"), flag="-m")
    assert (again.code, errors(again.err)) == (0, [])
    assert again.out.splitlines()[-1] == "2 jobs: 2 ran, 0 skipped, 0 failed"
    assert again.out.splitlines()[-2].split()[:3] == ["all", "jobs", "2/2"]
    swept = command(*stand_in_method, *small("method.mode=crash,fit", *shared), flag="-m")
    assert swept.code == 1
    assert swept.err.splitlines()[-1] == "error: 1 of 2 jobs did not finish (1 failed), 0 ran, 1 skipped; see sweep"
    assert [line.split()[:2] for line in swept.out.splitlines()[-2:]] == [
        ["method.mode=crash", "0/1"],
        ["method.mode=fit", "1/1"],
    ]
    assert list(Path("sweep").glob(".jobs*")) == []


def test_a_sweep_goes_on_where_the_store_is_damaged(command, stand_in_method):
    assert command(*stand_in_method, *small()).code == 0
    for rows in Path("store").glob("*.parquet"):
        rows.unlink()
    swept = command(*stand_in_method, *small("seed=0,0"), flag="-m")
    assert swept.code == 1
    assert [line.startswith("error: store.path: ") for line in errors(swept.err)] == [True, True, False]
    assert "2 of 2 jobs did not finish (2 invalid)" in swept.err


def test_a_key_that_nothing_reads_is_refused_in_every_job_of_a_sweep(command, stand_in_method):
    swept = command(*stand_in_method, *small("seed=0,1", "+seeed=3"), flag="-m")
    assert swept.code == 1
    assert [line.startswith("error: seeed: unknown key") for line in errors(swept.err)] == [True, True, False]
    assert statuses() == []


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            ["data.interventions.value=1e308"],
            "data.interventions.value: expected settings that give finite data, got 1e+",
        ),
        (["data.interventions.value=1e304"], "column 'X"),
    ],
)
def test_simulated_data_out_of_range_name_their_cause(command, stand_in_method, changes, message):
    linear = ["data.mechanism=linear", "data.interventions.num_targets=4"]
    ended = command(*stand_in_method, *small(*linear, *changes))
    assert ended.code == 2
    assert ended.err.startswith(f"error: {message}")
    assert len(ended.err.splitlines()) == 1


@pytest.mark.filterwarnings("error")
def test_large_noise_is_no_reason_to_refuse(command, stand_in_method):
    assert command(*stand_in_method, *small("data.mechanism=linear", "data.noise_variance=1e308")).code == 0


def test_an_interrupt_ends_with_130_and_stores_nothing(command, stand_in_method):
    ended = command(*stand_in_method, *small("method.mode=interrupt"))
    assert ended.code == 130
    assert len(ended.err.splitlines()) == 1
    assert statuses() == []


def interrupt_at(file, process, number):
    """Send a signal once the file is there; returns the exit code, stdout and stderr."""
    while not (file.exists() and file.read_text()) and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


SIGNALS = pytest.mark.parametrize(
    ("number", "code", "what"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
)


@SIGNALS
def test_a_signal_before_anything_began_is_one_line(tmp_path, number, code, what):
    (tmp_path / "hydra.py").write_text(
        "import time\n"
        "try:\n    open('here', 'w').write('1')\n    time.sleep(60)\n"
        "except BaseException:\n    raise ImportError"
    )
    ended = interrupt_at(tmp_path / "here", from_the_shell(tmp_path), number)
    assert ended == (code, "", f"error: {what}; nothing of a job that had not ended was stored\n")


@SIGNALS
def test_a_signal_in_the_middle_of_a_fit_is_one_line_and_keeps_finished_jobs(tmp_path, number, code, what):
    folder = tmp_path / "configs" / "method"
    folder.mkdir(parents=True)
    (folder / "slow.yaml").write_text(f"_target_: stand_ins.Isolated\nnumber_file: {tmp_path / 'number'}\n")
    (folder / "quick.yaml").write_text("_target_: stand_ins.RandomDag\n")
    sweep = ["--config-dir", str(folder.parent), "method=quick,slow", "metrics.names=[eshd]", "hydra/job_logging=none"]
    process = from_the_shell(tmp_path, *sweep, *small("hydra/hydra_logging=none"), "-m")
    ended = interrupt_at(tmp_path / "number", process, number)
    line = f"error: {what}; nothing of a job that had not ended was stored"
    assert (ended[0], errors(ended[2])) == (code, [line])
    assert list((tmp_path / "multirun").rglob(".jobs*")) == []
    assert ResultStore(tmp_path / "results" / "store").rows()[["method", "status"]].to_numpy().tolist() == [
        ["quick", "ok"]
    ]
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "number").read_text()), 0)


def test_from_the_shell_the_store_is_where_the_command_was_started(tmp_path, stand_in_method):
    arguments = [*stand_in_method, *small("data.num_samples=0")]
    process = from_the_shell(tmp_path, *arguments)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert err.startswith("error: data.num_samples: ")
    assert len(err.splitlines()) == 1
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
