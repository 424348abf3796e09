from __future__ import annotations

import os
import signal
import time

import psutil
from shell import errors

JOBS = ["launcher=processes", "launcher.jobs=2"]


def test_a_sweep_goes_on_when_processes_of_jobs_fail_or_die(start, rows):
    slow = "method.seconds=1"  # so that the fits have ended when the first process dies
    sweep = start(*JOBS, slow, "method.mode=fit,crash,die", "data.seed=0,1", "hydra.sweep.dir=sweep")
    out, err = sweep.communicate(timeout=120)
    assert sweep.returncode == 1
    assert [status for _, _, status, *_ in rows()].count("ok") == 2
    assert "mean over seeds" in out
    assert errors(err)[-1] == ("error: 4 of 6 jobs did not finish (2 failed, 2 killed), 2 ran, 0 skipped; see sweep")
    assert "Traceback" not in err


def test_a_job_whose_process_died_once_is_tried_again(start, rows, tmp_path):
    # No other job dies: that could end this one's worker first, so that its own death came in the last attempt.
    once = f"method.only_once={tmp_path / 'died'}"
    sweep = start(*JOBS, "method.mode=fit,die", once, "hydra.sweep.dir=sweep")
    _, err = sweep.communicate(timeout=120)
    assert "died; tried again after the others" in err
    assert (sweep.returncode, [status for _, _, status, *_ in rows()]) == (0, ["ok", "ok"]), err


def test_an_interrupt_is_one_line_and_leaves_no_worker(start, tmp_path):
    sweep = start(*JOBS, "method.seconds=60", "data.seed=0,1,2", "hydra.sweep.dir=sweep")
    while len(list(tmp_path.glob("sweep/.jobs-*/*.json"))) < 2:
        assert sweep.poll() is None
        time.sleep(0.05)
    workers = psutil.Process(sweep.pid).children(recursive=True)
    os.killpg(sweep.pid, signal.SIGINT)
    _, err = sweep.communicate(timeout=60)
    assert (sweep.returncode, errors(err)) == (
        130,
        ["error: interrupted; nothing of a job that had not ended was stored"],
    )
    assert len(workers) >= 2
    _, alive = psutil.wait_procs(workers, timeout=10)
    assert alive == []


def test_the_number_of_workers_is_checked(start):
    sweep = start("launcher=processes", "launcher.jobs=0")
    _, err = sweep.communicate(timeout=60)
    assert (sweep.returncode, err) == (
        2,
        "error: launcher.jobs: expected a whole number of at least 1, got 0; set launcher.jobs=1\n",
    )
