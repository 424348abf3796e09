from __future__ import annotations

import io
import json
import os
import re
import sys
import time
from pathlib import Path

import pytest
from screen import run_on_terminal, screen

from experiments import progress
from experiments.command import CONFIGS
from experiments.progress import EndedJob, SweepProgress, duration


@pytest.fixture
def note(tmp_path):
    """Write the note of a job; `seconds` is None while it runs."""

    def write(number, status="ok", seconds=None, started=0.0, **overrides):
        job = EndedJob(overrides, None, status, started, seconds)
        (tmp_path / f"{number}.json").write_text(json.dumps(job._asdict()))

    return write


def line(folder, total):
    sweep = SweepProgress(folder, total)
    sweep.look()
    return sweep.line()


def test_a_sweep_counts_jobs_done_failed_and_running(tmp_path, note):
    assert line(tmp_path, 9) == "0/9 done"
    note(0, seconds=1.0)
    note(1, "skipped", seconds=0.0)
    note(2, "timeout", seconds=1.0)
    note(3, "killed")
    assert line(tmp_path, 9).startswith("2/9 done, 1 failed, 1 running, about ")
    assert line(tmp_path, None) == "2 done, 1 failed, 1 running"


def test_what_is_left_follows_from_the_mean_of_jobs_that_ran_and_from_how_many_run_at_once(tmp_path, note):
    note(0, seconds=50.0)
    note(1, seconds=70.0)
    note(2, "skipped", seconds=0.0)
    assert line(tmp_path, 5).endswith("about 2 min left")
    note(3, "killed", started=time.time() - 1000)  # may end at any moment
    note(4, "killed", started=time.time() - 1000)
    assert line(tmp_path, 9).endswith("2 running, about 2 min left")
    assert line(tmp_path, 5).endswith("2 running, about 0 s left")


def test_nothing_is_said_of_the_time_left_where_nothing_is_known_of_it(tmp_path, note):
    note(0, "skipped", seconds=0.0)
    assert line(tmp_path, 5) == "1/5 done"
    note(1, seconds=3.0)
    assert line(tmp_path, 2) == "2/2 done"


def test_a_note_that_is_being_written_is_read_later(tmp_path, note):
    sweep = SweepProgress(tmp_path, 2)
    (tmp_path / "0.json").write_text('{"overr')
    assert not sweep.look()
    note(0, seconds=1.0)
    assert sweep.look()
    assert not sweep.look()


def test_of_jobs_in_other_processes_the_longest_running_is_named_by_what_is_its_own(tmp_path, note):
    note(0, "killed", started=time.time() - 65, data="er", method="pc", seed="0")
    note(1, "killed", started=time.time() - 5, data="er", method="pc", seed="1")
    sweep = SweepProgress(tmp_path, 2)
    assert sweep.longest_running() == ""
    sweep.look()
    assert re.fullmatch(r"seed=0: 1 min \d s", sweep.longest_running())


@pytest.mark.parametrize(
    ("seconds", "exact", "rough"),
    [
        (0.2, "0 s", "0 s"),
        (59.4, "59 s", "59 s"),
        (185, "3 min 5 s", "3 min"),
        (7800, "2 h 10 min", "2 h 10 min"),
        (360000, "100 h 0 min", "100 h 0 min"),
    ],
)
def test_durations_are_short(seconds, exact, rough):
    assert (duration(seconds), duration(seconds, rough=True)) == (exact, rough)


def test_jobs_that_end_in_other_processes_are_told_of(tmp_path, note, monkeypatch):
    told = io.StringIO()  # emptying what capsys holds could lose a line written in that moment
    monkeypatch.setattr(sys, "stderr", told)
    monkeypatch.setattr(progress, "_POLL", 0.01)
    progress.open_sweep(tmp_path, 2)
    note(0, seconds=1.0)
    end = time.monotonic() + 30
    while "\n" not in told.getvalue() and time.monotonic() < end:
        time.sleep(0.01)
    note(1, "failed", seconds=1.0)
    progress.close()
    assert told.getvalue() == "1/2 done, about 1 s left\n1/2 done, 1 failed\n"


def sweep_of(folder, *jobs):
    method = folder / "configs" / "method"
    method.mkdir(parents=True)
    (method / "stand_in.yaml").write_text("_target_: stand_ins.RandomDag\nmax_parents: 2\nmode: fit\n")
    (method.parent / "experiment").mkdir()
    (method.parent / "experiment" / "two_seeds.yaml").write_text(
        "# @package _global_\nhydra: {sweeper: {params: {seed: 'range(2)'}}}\n"
    )
    data = ["data=er", "data.num_nodes=4", "data.expected_degree=1", "data.num_samples=30"]
    return ["--config-dir", str(method.parent), "method=stand_in", "metrics.names=[eshd]", *data, *jobs]


def test_in_a_file_every_job_that_ends_is_one_plain_line(command, tmp_path):
    swept = command(*sweep_of(tmp_path, "method.mode=fit,crash,fit", "+experiment=two_seeds"), flag="-m")
    assert swept.code == 1
    lines = [line for line in swept.err.splitlines() if not line.startswith("error: ")]
    assert [re.sub(", about .* left", "", line) for line in lines] == [
        "1/6 done",
        "1/6 done, 1 failed",
        "2/6 done, 1 failed",
        "3/6 done, 1 failed",
        "3/6 done, 2 failed",
        "4/6 done, 2 failed",
    ]
    assert all(line.isprintable() for line in lines)


def test_a_job_on_its_own_says_nothing_in_a_file(command, tmp_path):
    assert command(*sweep_of(tmp_path)).err == ""


def test_on_a_terminal_a_sweep_has_two_live_lines_below_all_output(tmp_path):
    paths = os.pathsep.join([str(CONFIGS.parent), str(Path(__file__).parent)])
    arguments = sweep_of(
        tmp_path, "method.mode=fit,crash", "hydra.sweep.dir=sweep", "hydra/hydra_logging=none", "hydra/job_logging=none"
    )
    code, pieces = run_on_terminal(
        [sys.executable, "-m", "experiments.run", "-m", *arguments], tmp_path, {**os.environ, "PYTHONPATH": paths}
    )
    assert code == 1
    screens = [screen("".join(pieces[: number + 1])) for number in range(len(pieces))]
    assert any(
        re.match("[01]/2 done.* running", shown[-2]) and shown[-1].startswith("stand_in on er, data.seed=0 seed=0: ")
        for shown in screens
        if len(shown) > 1
    )
    final = screens[-1]
    assert final[0] == "stand_in on er: 30 samples, 4 variables, data.seed=0 seed=0"
    assert [line for line in final if " done" in line] == []
    assert ["method.mode=fit", "1/1"] in [line.split()[:2] for line in final]
    assert final[-2:] == ["error: 1 of 2 jobs did not finish (1 failed), 1 ran, 0 skipped; see sweep", ""]
