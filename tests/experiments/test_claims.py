from __future__ import annotations

import subprocess
import sys

import pytest

from experiments.claims import claim

HOLDER = """
import sys
from pathlib import Path
from experiments.claims import claim
with claim(Path(sys.argv[1]), sys.argv[2], waiting=lambda: print("waiting", flush=True)):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def hold(tmp_path):
    """Start a process that claims a job until it is killed or its standard input closes."""
    started = []

    def start(job_id):
        command = [sys.executable, "-c", HOLDER, str(tmp_path), job_id]
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_a_claimed_job_is_waited_for_until_its_holder_is_killed(hold):
    holder = hold("ff00ff00ff00ff00")
    assert holder.stdout.readline() == "held\n"
    other = hold("ff00ff00ff00ff00")
    assert other.stdout.readline() == "waiting\n"
    holder.kill()
    assert other.stdout.readline() == "held\n"


def test_other_jobs_are_free(hold):
    assert hold("ff00ff00ff00ff00").stdout.readline() == "held\n"
    assert hold("ff00ff00ff00ff01").stdout.readline() == "held\n"


def test_a_claim_ends_with_its_block(tmp_path, hold):
    with claim(tmp_path, "0a", waiting=pytest.fail):
        other = hold("0a")
        assert other.stdout.readline() == "waiting\n"
    assert other.stdout.readline() == "held\n"


def test_without_a_place_for_locks_the_block_goes_on(tmp_path):
    with claim(tmp_path / "missing", "0a", waiting=pytest.fail):
        assert not (tmp_path / "missing").exists()
