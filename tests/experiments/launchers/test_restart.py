"""A sweep that is killed at any moment and started again ends with the table of one that ran through."""

from __future__ import annotations

import os
import signal
import time

import numpy as np
import pytest
from shell import errors


def wait_for_rows(rows, number, sweep):
    while len(rows()) < number and sweep.poll() is None:
        time.sleep(0.02)


@pytest.mark.parametrize("kills", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_a_sweep_killed_at_random_moments_ends_like_one_that_ran_through(start, rows, kills):
    rng = np.random.default_rng(kills)
    command = ["launcher=processes", "launcher.jobs=2", "method.seconds=0.2", f"data.seed=range({3 * kills})"]
    through = start(*command, store="through")
    assert through.wait() == 0
    kinds = rng.permutation(np.arange(kills) % 2)  # half of them the whole group, half this process alone
    for kind in kinds:
        sweep = start(*command)
        wait_for_rows(rows, len(rows()) + rng.integers(0, 3), sweep)
        time.sleep(rng.uniform(0, 0.5))
        if sweep.poll() is None:
            os.killpg(sweep.pid, signal.SIGKILL) if kind else sweep.kill()
    last = start(*command)
    out, err = last.communicate(timeout=120)
    assert (last.returncode, errors(err)) == (0, [])
    counts = out.splitlines()[-1].replace(":", "").split()
    assert counts[:2] == [str(3 * kills), "jobs"]
    assert int(counts[2]) + int(counts[4]) == 3 * kills
    assert len(rows("through")) == 3 * kills
    assert rows() == rows("through")


def test_two_sweeps_at_once_store_each_row_once(start, rows):
    command = ["launcher=processes", "launcher.jobs=2", "method.seconds=0.3", "data.seed=range(4)"]
    sweeps = [start(*command, f"hydra.sweep.dir=sweep{number}") for number in range(2)]
    lines = []
    for sweep in sweeps:
        out, err = sweep.communicate(timeout=120)
        assert (sweep.returncode, errors(err)) == (0, [])
        lines.append(out.splitlines()[-1].split())
    assert sum(int(line[2]) for line in lines) == 4
    assert len({job for job, *_ in rows()}) == len(rows()) == 4
