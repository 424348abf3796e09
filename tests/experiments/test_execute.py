from __future__ import annotations

import errno
import io
import json
import os
import signal
import sys
import threading
import time

import numpy as np
import pandas as pd
import pytest
import stand_ins

from bci.metrics import evaluate
from bci.posterior import GraphPosterior
from bci.randomness import stream
from experiments.saved_run import SavedRun
from experiments.store import ResultStore, StoreWriteError


@pytest.fixture
def stored(tmp_path):
    def rows():
        store = ResultStore(tmp_path / "store")
        return store.rows() if store.path.exists() else pd.DataFrame()

    return rows


@pytest.fixture
def no_fit(monkeypatch):
    def fit(*_):
        raise AssertionError("the method was fitted")

    monkeypatch.setattr(stand_ins.RandomDag, "_fit", fit)


def expected_numbers():
    """The job of the fixture `config`, by hand."""
    dataset = stand_ins.chain(num_nodes=4, seed=5)
    posterior = stand_ins.RandomDag(max_parents=2).fit(dataset, stream(3, "method"))
    names = ["eshd", "auroc", "num_edges"]
    return dataset, posterior, evaluate(posterior, dataset, names=names, num_graphs=10, rng=stream(3, "metrics"))


def test_a_job_stores_one_row_per_metric_with_its_circumstances(run_job, stored):
    dataset, _, metrics = expected_numbers()
    ended = run_job()
    assert (ended.code, ended.err) == (0, "")
    rows = stored()
    assert dict(zip(rows["metric"], rows["value"], strict=True)) == metrics
    for column, value in {
        "status": "ok",
        "data_name": "chain",
        "method": "random_dag",
        "num_nodes": 4,
        "num_samples": 30,
        "data_seed": 5,
        "method_seed": 3,
        "data_fingerprint": dataset.fingerprint,
        "device": "cpu",
    }.items():
        assert rows[column].tolist() == [value] * 3, column
    assert rows["run_id"].nunique() == 1
    assert (rows["fit_seconds"] > 0).all()
    assert (rows["peak_memory_mb"] > 10).all()
    assert rows["error"].isna().all()


def test_a_job_leaves_its_numbers_and_pictures_in_the_run_directory(run_job, tmp_path):
    dataset, posterior, metrics = expected_numbers()
    run_job()
    written = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert written["status"] == "ok"
    assert written["metrics"] == metrics
    assert written["diagnostics"] == {"steps": 3, "loss": 1.5, "losses": [1.0, 2.0], "worst": None}
    frame = pd.read_csv(tmp_path / "run" / "edge_probabilities.csv")
    assert tuple(frame.columns) == dataset.names
    np.testing.assert_array_equal(frame.to_numpy(), posterior.edge_probabilities)
    for picture in ("edge_probabilities.png", "graph.png"):
        assert (tmp_path / "run" / picture).read_bytes().startswith(b"\x89PNG")


def test_the_table_shows_metrics_job_store_and_files(run_job, tmp_path):
    ended = run_job({"data.with_truth": False})
    lines = ended.out.splitlines()
    assert lines[0] == "random_dag on chain: 30 samples, 4 variables, data.seed=5 seed=3"
    assert ["eshd", "--", "no", "ground", "truth"] in [line.split() for line in lines]
    job_id = json.loads((tmp_path / "run" / "metrics.json").read_text())["job_id"]
    assert f"job {job_id} in {tmp_path / 'store'}, version 1" in lines
    assert f"files in {tmp_path / 'run'}" in lines


def test_an_undefined_metric_is_null_with_its_reason(run_job, stored, tmp_path):
    run_job({"data.with_truth": False})
    rows = stored().set_index("metric")
    assert pd.isna(rows.loc["eshd", "value"])
    assert rows.loc["eshd", "undefined_reason"] == "no ground truth"
    assert pd.isna(rows.loc["num_edges", "undefined_reason"])
    written = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert written["metrics"]["eshd"] is None
    assert written["undefined"]["eshd"] == "no ground truth"


def test_a_metric_that_is_not_a_number_is_undefined(run_job, stored, monkeypatch):
    monkeypatch.setattr("experiments.fit.evaluate", lambda *_, names, num_graphs, rng: {"eshd": float("nan")})  # noqa: ARG005
    assert run_job().code == 0
    assert stored()["undefined_reason"].tolist() == ["not a number"]


def test_metrics_may_be_numbers_of_numpy_and_are_undefined_where_infinite(run_job, stored, monkeypatch, tmp_path):
    values = {"eshd": np.int64(7), "auroc": np.float32(0.5), "num_edges": np.float64("inf")}
    monkeypatch.setattr("experiments.fit.evaluate", lambda *_, names, num_graphs, rng: values)  # noqa: ARG005
    assert run_job().code == 0
    rows = stored().set_index("metric")
    assert (rows.loc["eshd", "value"], rows.loc["auroc", "value"]) == (7.0, 0.5)
    assert rows.loc["num_edges", "undefined_reason"] == "infinite"
    assert json.loads((tmp_path / "run" / "metrics.json").read_text())["metrics"]["eshd"] == 7.0


class Unusual(GraphPosterior):
    """Edge probabilities that are given, whatever they are."""

    def __init__(self, probabilities):
        super().__init__(np.zeros((1, 4, 4)))
        object.__setattr__(self, "given", probabilities)

    edge_probabilities = property(lambda self: self.given)


@pytest.mark.parametrize(
    ("returned", "got"),
    [
        (None, "TypeError: expected a posterior from the method's _fit, got NoneType"),
        (Unusual(np.zeros((3, 3))), "got shape (3, 3)"),
        (Unusual(np.triu(np.full((4, 4), -0.5), 1)), "got -0.5 at [0, 1]"),
        (Unusual(np.tril(np.full((4, 4), np.nan), -1)), "got nan at [1, 0]"),
        (Unusual(np.eye(4)), "got 1.0 at [0, 0]"),
    ],
)
def test_what_a_method_returns_is_checked(run_job, stored, monkeypatch, returned, got):
    monkeypatch.setattr(stand_ins.RandomDag, "_fit", lambda *_: returned)
    assert run_job().code == 1
    (error,) = stored()["error"]
    assert got in error
    assert error.endswith("correct it")


def test_a_finished_job_is_skipped_and_force_runs_it_again(run_job, stored):
    run_job()
    again = run_job()
    assert again.code == 0
    assert "skipped" in again.out
    assert "force=true" in again.out
    assert len(again.out.splitlines()) == 1
    assert len(stored()) == 3
    run_job({"force": True})
    rows = stored()
    assert rows["run_id"].nunique() == 2
    assert rows.groupby("metric")["value"].nunique().tolist() == [1, 1, 1]


def test_a_skipped_job_keeps_the_numbers_of_its_run_directory(run_job, tmp_path):
    outcome = tmp_path / "run" / "metrics.json"
    run_job()
    numbers = outcome.read_text()
    assert "skipped" in run_job().out
    assert outcome.read_text() == numbers
    for other in (numbers.replace('"job_id": "', '"job_id": "0'), '{"status": "failed"}', "[]", "{"):
        outcome.write_text(other)
        assert "skipped" in run_job().out
        assert json.loads(outcome.read_text())["status"] == "skipped"


def test_memory_that_cannot_be_had_is_told_with_the_settings_to_reduce(run_job, stored, monkeypatch):
    def allocate(*_):
        raise RuntimeError("[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory")

    monkeypatch.setattr(stand_ins.RandomDag, "_fit", allocate)
    ended = run_job()
    assert ended.code == 1
    assert "failed, out of memory (RuntimeError: [enforce fail" in ended.err
    assert "; reduce method.max_parents or data.num_nodes; see " in ended.err
    assert stored()["error"][0].endswith("reduce method.max_parents or data.num_nodes")


@pytest.mark.parametrize(
    ("changes", "code", "status", "message"),
    [
        ({"method.mode": "invalid"}, 2, "invalid", "method.mode: expected fit"),
        ({"method.mode": "crash"}, 1, "failed", "ZeroDivisionError: a bug in two lines"),
        ({"method.mode": "memory"}, 1, "failed", "out of memory (MemoryError: MemoryError); reduce method.max_parents"),
        ({"method.mode": "killed"}, 1, "failed", "killed by signal 9 (SIGKILL); it said: step 7 and no more"),
        ({"method.mode": "timeout"}, 1, "timeout", "stopped at its time limit of 3 s; it said nothing"),
        ({"method.max_parents": "abc"}, 2, "invalid", "method.max_parents: expected a whole number"),
        ({"method.max_parents": -1}, 2, "invalid", "method.max_parents: expected at least 0"),
        ({"data.num_samples": 1}, 2, "invalid", "expected at least 2 rows"),
        ({"data.num_nodes": "x"}, 2, "invalid", "data.num_nodes: expected a whole number"),
        ({"metrics.names": ["nope"]}, 2, "invalid", "metrics.names: "),
        ({"metrics.num_graphs": "x"}, 2, "invalid", "metrics.num_graphs: expected a whole number"),
    ],
)
def test_an_error_is_one_line_one_row_and_an_exit_code(run_job, stored, tmp_path, changes, code, status, message):
    ended = run_job(changes)
    assert (ended.code, ended.out) == (code, "")
    assert ended.err.startswith("error: ")
    assert message in ended.err
    assert len(ended.err.splitlines()) == 1
    rows = stored()
    assert rows["status"].tolist() == [status]
    assert message in rows["error"][0]
    assert rows[["metric", "value"]].isna().all(axis=None)
    assert json.loads((tmp_path / "run" / "metrics.json").read_text())["status"] == status
    log = tmp_path / "run" / "error.log"
    assert log.exists() == (status != "invalid")
    if status != "invalid":
        assert str(log) in ended.err
        assert "Traceback" in log.read_text()
    assert run_job({**changes}).code == code  # not skipped


def test_what_was_known_when_a_job_failed_is_in_its_row(run_job, stored):
    run_job({"method.mode": "crash"})
    row = stored().iloc[0]
    assert (row["num_nodes"], row["num_samples"]) == (4, 30)
    assert pd.isna(row["fit_seconds"])


@pytest.mark.parametrize(("mode", "peak"), [("killed", 123.0), ("timeout", 124.0)])
def test_the_memory_of_a_method_in_its_own_process_is_in_the_row(run_job, stored, mode, peak):
    run_job({"method.mode": mode})
    assert stored()["peak_memory_mb"].tolist() == [peak]


def test_a_method_in_its_own_process_runs_as_any_other(run_job, stored, config):
    config.method = {"_target_": "stand_ins.Isolated", "timeout_seconds": 60}
    assert run_job().code == 0
    assert stored()["status"].tolist() == ["ok"] * 3
    assert (stored()["peak_memory_mb"] < 200).all()  # this process has loaded torch, that one has not


def test_a_method_killed_from_outside_leaves_a_failed_row(run_job, stored, config, tmp_path):
    file = tmp_path / "number"
    config.method = {"_target_": "stand_ins.Isolated", "number_file": str(file), "timeout_seconds": 60}

    def kill():
        while not (file.exists() and file.read_text()):
            time.sleep(0.02)
        os.kill(int(file.read_text()), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    ended = run_job()
    killer.join()
    assert ended.code == 1
    assert "killed by signal 9 (SIGKILL); it said: asleep" in ended.err
    assert stored()["status"].tolist() == ["failed"]
    assert run_job().code == 0  # the next one is not affected


def test_a_time_limit_leaves_a_row_of_its_own_status(run_job, stored, config, tmp_path):
    config.method = {"_target_": "stand_ins.Isolated", "number_file": str(tmp_path / "number"), "timeout_seconds": 3}
    assert run_job().code == 1
    assert stored()["status"].tolist() == ["timeout"]
    assert "it said: asleep" in stored()["error"][0]


def test_a_panic_that_is_no_exception_is_a_failure_too(run_job, stored, monkeypatch):
    class PanicError(BaseException):
        pass

    def panic(*_):
        raise PanicError("in Rust")

    monkeypatch.setattr(stand_ins.RandomDag, "_fit", panic)
    assert run_job().code == 1
    assert stored()["error"].tolist() == ["PanicError: in Rust"]


@pytest.mark.parametrize("code", [0, "usage: ..."])
def test_a_method_that_leaves_the_program_is_a_failure_too(run_job, stored, monkeypatch, code):
    monkeypatch.setattr(stand_ins.RandomDag, "_fit", lambda *_: sys.exit(code))
    assert run_job().code == 1
    assert stored()["error"].tolist() == [f"SystemExit: {code}"]


def test_a_signal_that_tells_a_worker_to_leave_ends_its_job(run_job, stored, monkeypatch):
    class Handler:
        def leave(self, *_):
            sys.exit(-1)

    def signalled(*_):
        os.kill(os.getpid(), signal.SIGUSR2)
        time.sleep(60)

    monkeypatch.setattr(stand_ins.RandomDag, "_fit", signalled)
    previous = signal.signal(signal.SIGUSR2, Handler().leave)
    try:
        with pytest.raises(SystemExit):
            run_job()
    finally:
        signal.signal(signal.SIGUSR2, previous)
    assert len(stored()) == 0


def test_a_reader_of_the_terminal_that_has_gone_fails_no_job(run_job, stored, monkeypatch, tmp_path):
    class Gone(io.StringIO):
        def write(self, _):
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stdout", Gone())
    monkeypatch.setattr(sys, "stderr", Gone())
    assert run_job().code == 0
    assert stored()["status"].tolist() == ["ok"] * 3
    assert (tmp_path / "run" / "graph.png").exists()
    assert run_job({"method.mode": "crash"}).code == 1
    assert stored()["status"].tolist() == ["ok"] * 3 + ["failed"]


def test_an_interrupted_job_stores_nothing(run_job, stored):
    with pytest.raises(KeyboardInterrupt):
        run_job({"method.mode": "interrupt"})
    assert len(stored()) == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"seed": -1}, "seed: "), ({"data.path": "nowhere.csv"}, "data.path: "), ({"force": 3}, "force: ")],
)
def test_a_config_that_cannot_be_used_stores_nothing(run_job, stored, changes, message):
    ended = run_job(changes)
    assert ended.code == 2
    assert ended.err.startswith(f"error: {message}")
    assert len(ended.err.splitlines()) == 1
    assert len(stored()) == 0


@pytest.mark.usefixtures("no_fit")
def test_a_store_that_cannot_be_written_to_is_told_before_the_fit(run_job):
    ended = run_job({"store.path": "/proc/store"})
    assert ended.code == 2
    assert ended.err.startswith("error: store.path: expected a folder that can be created")


@pytest.mark.usefixtures("no_fit")
def test_a_wrong_metric_is_told_before_the_fit(run_job):
    assert "metrics.names" in run_job({"metrics.names": ["eshd", "nope"]}).err


def test_results_that_cannot_be_stored_remain_in_the_run_directory(run_job, tmp_path, monkeypatch):
    def full(*_):
        raise StoreWriteError("disk full")

    monkeypatch.setattr(ResultStore, "append", full)
    ended = run_job()
    assert ended.code == 1
    assert ended.err == f"error: the results are in {tmp_path / 'run'} but not in the store: disk full\n"
    written = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert (written["status"], written["error"]) == ("failed", "not stored: disk full")
    assert written["metrics"]["eshd"] is not None


def test_a_panic_of_the_store_loses_no_numbers(run_job, tmp_path, monkeypatch):
    class PanicError(BaseException):
        pass

    def panic(*_, **__):
        raise PanicError("in Rust")

    monkeypatch.setattr("experiments.store.result_store.write_deltalake", panic)
    ended = run_job()
    assert ended.code == 1
    assert len(ended.err.splitlines()) == 1
    written = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert written["error"].startswith("not stored: could not write to the store")
    assert written["metrics"]["eshd"] is not None
    assert run_job({"method.mode": "crash"}).err.count("nor could this be stored: could not write") == 1


def test_the_posterior_outlives_a_metric_that_raises(run_job, stored, tmp_path, monkeypatch):
    def bug(*_, **__):
        raise ZeroDivisionError("in a metric")

    monkeypatch.setattr("experiments.fit.evaluate", bug)
    ended = run_job({"method._target_": "stand_ins.Queried", "method.linear": True})
    assert ended.code == 1
    assert "failed, ZeroDivisionError: in a metric; see " in ended.err
    assert (stored()["fit_seconds"] > 0).all()
    assert SavedRun.read("run", tmp_path / "run").posterior.names == ("X0", "X1", "X2", "X3")
    assert len((tmp_path / "run" / "edge_probabilities.csv").read_text().splitlines()) == 5


@pytest.mark.parametrize("name", ["write_posterior", "write_numbers"])
def test_results_whose_files_cannot_be_written_are_stored(run_job, stored, monkeypatch, name):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(f"experiments.report.{name}", full)
    ended = run_job()
    assert ended.code == 1
    assert "the results are stored but could not be written, [Errno 28] No space left on device; see " in ended.err
    assert stored()["status"].tolist() == ["ok"] * 3


def test_a_failure_that_leaves_no_files_is_told_and_stored(run_job, stored, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_text", full)
    ended = run_job({"method.mode": "crash"})
    assert ended.code == 1
    assert ended.err.endswith("its traceback could not be written ([Errno 28] No space left on device)\n")
    assert stored()["status"].tolist() == ["failed"]


def test_results_that_can_be_kept_nowhere_are_told(run_job, monkeypatch, tmp_path):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    def refuse(*_):
        raise StoreWriteError("disk full")

    monkeypatch.setattr("experiments.report.write_numbers", full)
    monkeypatch.setattr(ResultStore, "append", refuse)
    said = run_job().err
    assert said == (
        f"error: the results are neither in {tmp_path / 'run'} ([Errno 28] No space left on device) nor in the store: "
        "disk full\n"
    )


def test_results_that_cannot_be_drawn_are_stored(run_job, stored, tmp_path, monkeypatch):
    def broken(*_, **__):
        raise ValueError("no ink")

    monkeypatch.setattr("experiments.report.edge_heat_map", broken)
    ended = run_job()
    assert ended.code == 1
    assert "no ink" in ended.err
    assert json.loads((tmp_path / "run" / "metrics.json").read_text())["status"] == "failed"
    assert stored()["status"].tolist() == ["ok"] * 3
