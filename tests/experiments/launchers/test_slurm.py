from __future__ import annotations

import os
import signal
import subprocess
import time

import pytest
from shell import errors

pytest.importorskip("hydra_plugins.hydra_submitit_launcher")
DelayedSubmission = pytest.importorskip("submitit.core.utils").DelayedSubmission
SLURM = ["launcher=slurm", "launcher.mem_gb=1", "hydra.sweep.dir=sweep"]


def is_up():
    try:
        looked = subprocess.run(["sinfo", "--noheader"], capture_output=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return looked.returncode == 0


def queued():
    return subprocess.run(
        ["squeue", "--noheader", "--array", "--format=%i"], capture_output=True, text=True, check=True
    )


needs_slurm = pytest.mark.skipif(not is_up(), reason="no SLURM cluster answers; scripts/local_slurm.sh start")


@pytest.mark.slurm
@needs_slurm
def test_eight_jobs_go_through_sbatch_and_failures_count(start, rows):
    sweep = start(*SLURM, "method.mode=fit,crash", "data.seed=range(4)")
    out, err = sweep.communicate(timeout=600)
    assert sweep.returncode == 1
    assert [status for _, _, status, *_ in rows()].count("ok") == 4
    assert errors(err) == ["error: 4 of 8 jobs did not finish (4 failed), 4 ran, 0 skipped; see sweep"]
    assert out.startswith("8 jobs submitted to SLURM")


@pytest.mark.slurm
@needs_slurm
def test_jobs_that_are_killed_or_cancelled_count_and_the_others_run(start, rows, tmp_path):
    modes = ["method.mode=fit,die", "method.seconds=0,600", "launcher.array_parallelism=4"]
    sweep = start(*SLURM, *modes)  # numbers 0 to 3: fit, fit in 600 s, die, die in 600 s
    while len(list(tmp_path.glob("sweep/.jobs-*/[13].json"))) < 2:
        assert sweep.poll() is None
        time.sleep(0.1)
    ids = [folder.name for folder in (tmp_path / "sweep" / ".submitit").iterdir() if folder.name.endswith(("_1", "_3"))]
    subprocess.run(["scancel", *ids], check=True)
    _, err = sweep.communicate(timeout=300)
    assert (sweep.returncode, len(rows())) == (1, 1)
    assert errors(err) == ["error: 3 of 4 jobs did not finish (3 killed), 1 ran, 0 skipped; see sweep"]


@pytest.mark.slurm
@needs_slurm
def test_an_interrupt_cancels_the_jobs(start, tmp_path):
    sweep = start(*SLURM, "method.seconds=600", "data.seed=0,1,2")
    while not list(tmp_path.glob("sweep/.jobs-*/*.json")):
        assert sweep.poll() is None
        time.sleep(0.1)
    sweep.send_signal(signal.SIGINT)
    _, err = sweep.communicate(timeout=60)
    assert (sweep.returncode, len(errors(err))) == (130, 1)
    deadline = time.monotonic() + 60
    while queued().stdout.strip() and time.monotonic() < deadline:
        time.sleep(0.2)
    assert queued().stdout == ""


def test_a_job_at_its_time_limit_does_not_begin_anew(start, tmp_path, monkeypatch):
    says = {"sbatch": "Submitted batch job 7", "srun": "", "squeue": ""}
    (tmp_path / "bin").mkdir()
    for name, line in says.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\necho '{line}'\n")
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    sweep = start(*SLURM, "data.seed=0,1")
    _, err = sweep.communicate(timeout=60)
    assert errors(err) == ["error: 2 of 2 jobs did not finish (2 not run), 0 ran, 0 skipped; see sweep"]
    submitted = list(tmp_path.glob("sweep/.submitit/*/*_submitted.pkl"))
    assert len(submitted) == 2
    assert all(DelayedSubmission.load(path)._timeout_countdown == 0 for path in submitted)


def test_without_slurm_one_line_says_so(start, tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    sweep = start(*SLURM)
    _, err = sweep.communicate(timeout=60)
    assert sweep.returncode == 2
    assert err.startswith("error: launcher: expected a machine with SLURM's sbatch and srun, got none")
    assert len(err.splitlines()) == 1
    assert os.listdir(tmp_path / "bin") == []
