from __future__ import annotations

import pickle

import pytest
from hydra.core.utils import JobReturn, JobStatus
from hydra.types import RunMode
from omegaconf import OmegaConf

from experiments.outcome import Ended
from experiments.store import ResultStore
from experiments.sweep import EndedJob, SweepOutcome, summary


@pytest.fixture
def store(tmp_path, rows_of_a_job):
    """Two jobs of one method, one of them run twice, and one of another; only a newest run counts."""
    store = ResultStore(tmp_path / "store")
    for number, (job, eshd, p_aid) in enumerate(
        [("a", 90.0, 0.9), ("a", 1.0, None), ("b", 4.0, 0.5), ("c", 7.0, None)]
    ):
        store.append(rows_of_a_job(job, number, {"eshd": eshd, "p_aid": p_aid}))
    return store.path


@pytest.fixture
def rows_of_a_job():
    from datetime import UTC, datetime

    def rows(job, number, metrics):
        common = {
            "run_id": str(number),
            "job_id": job,
            "status": "ok",
            "data_name": "er",
            "method": "m",
            "data_config": "{}",
            "method_config": "{}",
            "metrics_config": "{}",
            "method_seed": 0,
            "package_versions": "{}",
            "started_at": datetime(2025, 1, 1, minute=number, tzinfo=UTC),
            "host": "h",
            "fit_seconds": 10.0 * number,
        }
        return [{**common, "metric": name, "value": value} for name, value in metrics.items()]

    return rows


def jobs(*ended):
    """From (method, data seed, id, status)."""
    return [
        EndedJob({"method": method, "data": "er", "data.seed": str(seed), "seed": "0"}, job, status)
        for method, seed, job, status in ended
    ]


def lines(table):
    return [line.split() for line in table.splitlines()]


def test_seeds_share_a_line_and_skipped_jobs_count(store):
    table = summary(
        jobs(("pc", 0, "a", "ok"), ("ges", 0, "c", "ok"), ("pc", 1, "b", "skipped")), store, ["eshd", "p_aid"]
    )
    assert lines(table) == [
        ["mean", "over", "seeds", "jobs", "eshd", "p_aid", "fit", "s"],
        ["method=pc", "2/2", "2.500", "0.500", "15.0"],
        ["method=ges", "1/1", "7.000", "--", "30.0"],
    ]
    assert len({len(line) for line in table.splitlines()}) == 1


def test_jobs_that_did_not_finish_count_as_such(store):
    table = summary(jobs(("pc", 0, "a", "ok"), ("pc", 1, None, "killed"), ("pc", 2, "b", "timeout")), store, ["eshd"])
    assert lines(table)[1] == ["all", "jobs", "1/3", "1.000", "10.0"]


def test_a_job_that_comes_twice_is_one(store):
    twice = jobs(("pc", 0, "a", "ok"), ("pc", 0, "a", "skipped"), ("pc", 1, None, "killed"), ("pc", 1, None, "not run"))
    assert lines(summary(twice, store, ["eshd"]))[1] == ["all", "jobs", "1/3", "1.000", "10.0"]


def test_without_a_store_there_is_no_table(tmp_path):
    assert summary(jobs(("pc", 0, None, "invalid")), tmp_path / "nothing", ["eshd"]) == ""


def test_few_metrics_are_shown(store):
    table = summary(jobs(("pc", 0, "a", "ok")), store, [f"m{number}" for number in range(9)])
    assert "m5" in table
    assert "m6" not in table


def sweep_config(folder, number, store):
    hydra = {
        "mode": RunMode.MULTIRUN,
        "sweep": {"dir": "sweep"},
        "runtime": {"cwd": str(folder)},
        "job": {"num": number},
        "overrides": {"task": [f"method=m{number}"]},
    }
    return OmegaConf.create({"hydra": hydra, "store": {"path": str(store)}, "metrics": {"names": ["eshd"]}})


def test_jobs_in_other_processes_count_and_those_that_left_nothing_were_killed(tmp_path, store, capsys):
    sweep = SweepOutcome()
    for number, ended in [(10, None), (0, Ended("ok", "a")), (9, Ended("timeout", "b"))]:
        copy = pickle.loads(pickle.dumps(sweep))
        copy.on_job_start(sweep_config(tmp_path, number, store))
        if ended:
            copy.on_job_end(
                sweep_config(tmp_path, number, store), JobReturn(_return_value=ended, status=JobStatus.COMPLETED)
            )
    SweepOutcome().on_job_start(sweep_config(tmp_path, 0, store))  # another sweep in the same folder
    with pytest.raises(SystemExit, match="1"):
        sweep.on_multirun_end(sweep_config(tmp_path, 0, store))
    out, err = capsys.readouterr()
    assert [line[:2] for line in lines(out)[1:]] == [["method=m0", "1/1"], ["method=m9", "0/1"], ["method=m10", "0/1"]]
    assert err == "error: 2 of 3 jobs did not finish (1 killed, 1 timeout), 1 ran, 0 skipped; see sweep\n"


def test_jobs_that_never_began_count(tmp_path, store, capsys):
    sweep = SweepOutcome()
    sweep.expect({number: [f"method=m{number}"] for number in range(3)})
    copy = pickle.loads(pickle.dumps(sweep))
    copy.on_job_start(sweep_config(tmp_path, 1, store))
    assert sweep.begun(sweep_config(tmp_path, 0, store)) == {1}
    done = JobReturn(_return_value=Ended("skipped", "a"), status=JobStatus.COMPLETED)
    copy.on_job_end(sweep_config(tmp_path, 1, store), done)
    with pytest.raises(SystemExit, match="1"):
        sweep.on_multirun_end(sweep_config(tmp_path, 0, store))
    out, err = capsys.readouterr()
    assert [line[:2] for line in lines(out)[1:]] == [["method=m0", "0/1"], ["method=m1", "1/1"], ["method=m2", "0/1"]]
    assert err == "error: 2 of 3 jobs did not finish (2 not run), 0 ran, 1 skipped; see sweep\n"


@pytest.mark.parametrize("metrics", [{"names": "eshd"}, {"names": None}, {}])
def test_names_of_metrics_that_are_no_list_are_no_columns(tmp_path, store, capsys, metrics):
    config = OmegaConf.merge(sweep_config(tmp_path, 0, store), {"metrics": None}, {"metrics": metrics})
    sweep = SweepOutcome()
    sweep.on_job_start(config)
    sweep.on_job_end(config, JobReturn(_return_value=Ended("skipped", "a"), status=JobStatus.COMPLETED))
    sweep.on_multirun_end(config)
    assert lines(capsys.readouterr().out)[:2] == [
        ["mean", "over", "seeds", "jobs", "fit", "s"],
        ["all", "jobs", "1/1", "10.0"],
    ]


def test_a_table_that_fails_does_not_hide_the_jobs_that_did(tmp_path, store, monkeypatch):
    def broken(*_):
        raise ZeroDivisionError

    monkeypatch.setattr("experiments.sweep.summary", broken)
    sweep = SweepOutcome()
    sweep.on_job_start(sweep_config(tmp_path, 0, store))
    with pytest.raises(SystemExit):
        sweep.on_multirun_end(sweep_config(tmp_path, 0, store))
