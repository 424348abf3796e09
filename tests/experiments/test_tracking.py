from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
import wandb
from wandb_file import read_run

from experiments.command import CONFIGS, sweep_name
from experiments.store import ResultStore

ARCO = {"_target_": "bci.arco_gp.ArcoGP", "max_parents": 1, "steps": 3, "num_orders": 5, "patience": 0}


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    """No key of the user, and nothing written to the user's folders."""
    for key in [key for key in os.environ if key.startswith("WANDB_") and key != "WANDB_SERVICE"]:
        monkeypatch.delenv(key)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture
def tracked(config):
    """The config of a quick job, tracked offline."""
    config.tracking = {"_target_": "experiments.tracking.WandbTracking", "mode": "offline"}
    return config


def runs(folder):
    files = sorted(Path(folder).glob("wandb/offline-run-*/run-*.wandb"), key=lambda file: file.stat().st_mtime_ns)
    return [read_run(file) for file in files]


def stored(tmp_path):
    return ResultStore(tmp_path / "store").rows()


def outcome(tmp_path):
    return json.loads((tmp_path / "run" / "metrics.json").read_text())


def test_a_run_holds_config_series_metrics_pictures_and_table(tracked, run_job, tmp_path):
    tracked.method = ARCO
    tracked.data["seed"] = 4
    ended = run_job()
    assert (ended.code, ended.err) == (0, "")
    (run,) = runs(tmp_path / "run")
    written = outcome(tmp_path)

    assert run.run.run_id == written["job_id"]
    assert (run.run.project, run.run.run_group, list(run.run.tags)) == ("bci", "", [])
    assert run.run.display_name == "random_dag on chain, data.seed=4 seed=3"
    assert run.config["data"] == {"_target_": "stand_ins.chain", "num_nodes": 4, "seed": 4, "graph_model": "chain"}
    assert run.config["method"] == {**ARCO}
    assert run.config["metrics"]["names"] == ["eshd", "auroc", "num_edges"]
    assert (run.config["seed"], run.config["method_name"], run.config["data_name"]) == (3, "random_dag", "chain")

    steps = [row for row in run.history if "orders/step" in row]
    assert [row["orders/step"] for row in steps] == [0, 1, 2]
    assert [row["orders/loss"] for row in steps] == pytest.approx(written["diagnostics"]["losses"])
    sizes = written["diagnostics"]["effective_sample_sizes"]
    assert [row["orders/effective_sample_size"] for row in steps] == pytest.approx(sizes)

    assert {name: run.summary[name] for name in written["metrics"]} == pytest.approx(written["metrics"])
    for name in ("fit_seconds", "eval_seconds", "peak_memory_mb"):
        assert run.summary[name] == pytest.approx(written[name])
    assert run.summary["status"] == "ok"
    assert run.exit_code == 0

    media = next((tmp_path / "run" / "wandb").glob("offline-run-*")) / "files"
    for name in ("edge_probabilities", "graph"):
        picture = (media / run.summary[f"{name}/path"]).read_bytes()
        assert picture == (tmp_path / "run" / f"{name}.png").read_bytes()
    (artifact,) = run.artifacts
    assert (artifact.name, artifact.type) == (f"edge_probabilities-{written['job_id']}", "edge_probabilities")
    assert [Path(entry.local_path) for entry in artifact.manifest.contents] == [
        tmp_path / "run" / "edge_probabilities.csv"
    ]


def test_an_undefined_metric_is_told_with_its_reason(tracked, run_job, tmp_path):  # noqa: ARG001
    run_job({"data.with_truth": False})
    (run,) = runs(tmp_path / "run")
    assert "eshd" not in run.summary
    assert run.summary["undefined/eshd"] == "no ground truth"


def test_two_jobs_of_one_process_are_two_runs_and_a_job_again_is_its_run_again(tracked, run_job, tmp_path):
    tracked.tracking.dir = str(tmp_path / "all")
    tracked.tracking.tags = ["a", "b"]
    tracked.tracking.group = "g"
    for changes in ({}, {"seed": 4}, {}):  # the third is skipped
        assert run_job(changes).code == 0
    time.sleep(1)  # wandb names its folders by the second and the id
    assert run_job({"force": True}).code == 0
    first, second, again = runs(tmp_path / "all")
    ids = stored(tmp_path).drop_duplicates("run_id")["job_id"].tolist()
    assert sorted(run.run.run_id for run in (first, second, again)) == sorted(ids)
    assert first.run.run_id == again.run.run_id != second.run.run_id
    assert again.run.resume
    assert (second.run.run_group, list(second.run.tags), second.config["seed"]) == ("g", ["a", "b"], 4)
    assert [run.summary["status"] for run in (first, second, again)] == ["ok"] * 3
    assert not (tmp_path / "run" / "wandb").exists()


@pytest.mark.parametrize(
    ("mode", "status", "error"),
    [("crash", "failed", "ZeroDivisionError: a bug in two lines"), ("invalid", "invalid", "method.mode: expected fit")],
)
def test_the_run_of_a_job_that_fails_has_failed(tracked, run_job, tmp_path, mode, status, error):  # noqa: ARG001
    assert len(run_job({"method.mode": mode}).err.splitlines()) == 1
    (run,) = runs(tmp_path / "run")
    assert (run.exit_code, run.summary["status"]) == (1, status)
    assert run.summary["error"].startswith(error)
    assert run.artifacts == []


def test_the_run_of_a_job_that_is_interrupted_ends(tracked, run_job, tmp_path):  # noqa: ARG001
    with pytest.raises(KeyboardInterrupt):
        run_job({"method.mode": "interrupt"})
    (run,) = runs(tmp_path / "run")
    assert (run.exit_code, run.summary["status"]) == (1, "interrupted")


def raising(*_, **__):
    raise RuntimeError("no\nluck")


def not_installed(monkeypatch, _):
    found = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "wandb" else found(name))
    return "wandb is not installed; pip install '.[tracking]' or set tracking=none"


def no_key(_, config):
    config.tracking.mode = "online"
    return "no API key; run `wandb login`, set WANDB_API_KEY or set tracking.mode=offline"


def no_folder(_, config):
    Path(config.store.path).parent.joinpath("file").write_text("")
    config.tracking.dir = str(Path(config.store.path).parent / "file")
    return "FileExistsError: "


def failing(part):
    def break_it(monkeypatch, _):
        monkeypatch.setattr(part, raising)
        return "RuntimeError: no luck"

    return break_it


FAILURES = {
    "not installed": not_installed,
    "no key": no_key,
    "no folder": no_folder,
    "at the start": failing("wandb.init"),
    "in the middle": failing("wandb.Image"),
    "at the end": failing("wandb.Run.finish"),
}


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize(("mode", "code"), [("fit", 0), ("crash", 1)])
def test_whatever_fails_here_is_one_warning_and_the_job_is_as_without(
    tracked, run_job, monkeypatch, tmp_path, failure, mode, code
):
    with monkeypatch.context() as patch:
        reason = FAILURES[failure](patch, tracked)
        ended = run_job({"method.mode": mode})
    warnings = [line for line in ended.err.splitlines() if not line.startswith("error: ")]
    assert ended.code == code
    assert stored(tmp_path)["status"].tolist() == (["ok"] * 3 if mode == "fit" else ["failed"])
    if failure == "in the middle" and mode == "crash":
        assert warnings == []  # there are no pictures
        return
    assert len(warnings) == 1
    assert warnings[0].startswith("warning: tracking: ")
    assert reason in warnings[0]


def test_a_failure_in_the_middle_still_ends_the_run(tracked, run_job, monkeypatch, tmp_path):  # noqa: ARG001
    with monkeypatch.context() as patch:
        patch.setattr(wandb, "Image", raising)
        run_job()
    (run,) = runs(tmp_path / "run")
    assert (run.exit_code, run.summary["status"]) == (0, "ok")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("tracking.mode", "on", "tracking.mode: expected one of offline, online, disabled, got 'on'"),
        ("tracking.foo", 1, "tracking.foo: unknown key; expected one of mode, project, "),
        ("tracking.project", "a/b", "tracking.project: expected 1 to 128 characters"),
        ("tracking.tags", "a", "tracking.tags: expected a list of a text or null, got 'a'"),
        ("tracking.tags", [""], "tracking.tags: expected texts of 1 to 64 characters, got ''"),
        ("tracking", 3, "tracking: expected a group of settings, got 3; set tracking=none"),
    ],
)
def test_settings_that_cannot_be_are_refused_before_the_job_begins(tracked, run_job, tmp_path, key, value, message):  # noqa: ARG001
    ended = run_job({key: value})
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"error: {message}")
    assert not (tmp_path / "store").exists()


def test_disabled_does_nothing(tracked, run_job, monkeypatch, tmp_path):  # noqa: ARG001
    monkeypatch.setattr(wandb, "init", raising)
    ended = run_job({"tracking.mode": "disabled"})
    assert (ended.code, ended.err) == (0, "")
    assert not (tmp_path / "run" / "wandb").exists()


def commanded(folder, *arguments):
    method = folder / "configs" / "method"
    method.mkdir(parents=True)
    (method / "stand_in.yaml").write_text("_target_: stand_ins.RandomDag\nmax_parents: 2\nmode: fit\n")
    (method / "slow.yaml").write_text(f"_target_: stand_ins.Isolated\nnumber_file: {folder / 'number'}\n")
    data = ["data=er", "data.num_nodes=4", "data.expected_degree=1", "data.num_samples=30"]
    return ["--config-dir", str(method.parent), "metrics.names=[eshd]", *data, "tracking=wandb", *arguments]


def test_the_jobs_of_a_sweep_are_runs_of_one_group(command, tmp_path):
    sweep = commanded(tmp_path, "method=stand_in", "seed=0,1", "hydra.sweep.dir=nightly", "tracking.tags=[x]")
    assert command(*sweep, flag="-m").code == 0
    of_jobs = [runs(f"nightly/{number}")[0] for number in range(2)]
    assert [run.run.run_group for run in of_jobs] == ["nightly"] * 2
    assert [run.config["seed"] for run in of_jobs] == [0, 1]
    assert [run.run.run_id for run in of_jobs] == pd.unique(ResultStore("store").rows()["job_id"]).tolist()


@pytest.mark.parametrize(
    ("experiment", "folder", "name"),
    [
        (None, "multirun/2025-01-31/10-20-30-123456", "2025-01-31/10-20-30-123456"),
        (None, "/results/nightly", "nightly"),
        (None, "nightly", "nightly"),
        ("quick/main_cd", "multirun/2025-01-31/10-20-30-123456", "quick/main_cd"),
    ],
)
def test_a_sweep_is_named_by_its_experiment_or_its_folder(experiment, folder, name):
    assert sweep_name(experiment, folder) == name


def test_no_tracking_is_the_default(command, tmp_path, monkeypatch):
    monkeypatch.setattr(wandb, "init", raising)
    assert command(*[each for each in commanded(tmp_path, "method=stand_in") if each != "tracking=wandb"]).err == ""
    assert list(tmp_path.rglob("*.wandb")) == []


def test_a_termination_ends_the_run_and_the_command(tmp_path):
    paths = os.pathsep.join([str(CONFIGS.parent), str(Path(__file__).parent)])
    arguments = commanded(tmp_path, "method=slow", "hydra.run.dir=run")
    process = subprocess.Popen(
        [sys.executable, "-m", "experiments.run", *arguments],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (tmp_path / "number").exists() and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (143, "error: terminated; nothing of a job that had not ended was stored\n")
    (run,) = runs(tmp_path / "run")
    assert (run.exit_code, run.summary["status"]) == (1, "interrupted")
