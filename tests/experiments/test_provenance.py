from __future__ import annotations

import json
import subprocess
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from experiments.provenance import git_state, peak_memory_mb, provenance, reset_peak_memory

STATUS = Path("/proc/self/status")


@pytest.fixture
def checkout(tmp_path):
    def git(*arguments):
        command = ["git", "-c", "user.name=n", "-c", "user.email=e@e", *arguments]
        return subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    (tmp_path / "bci").mkdir()
    (tmp_path / "bci" / "a.py").write_text("1")
    (tmp_path / "notes.txt").write_text("1")
    git("add", ".")
    git("commit", "-q", "-m", "one")
    return tmp_path, git("rev-parse", "HEAD")


def state(root):
    git_state.cache_clear()
    return git_state(root)


def test_commit_and_whether_code_differs_from_it(checkout):
    root, commit = checkout
    assert state(root) == (commit, False)
    (root / "notes.txt").write_text("2")
    (root / "outputs").mkdir()
    (root / "outputs" / "x").write_text("2")
    assert state(root) == (commit, False)
    (root / "bci" / "b.py").write_text("2")
    assert state(root) == (commit, True)


def test_no_commit_outside_a_checkout_or_below_another_project(checkout, tmp_path_factory):
    root, _ = checkout
    assert state(root / "bci") == (None, None)
    assert state(tmp_path_factory.mktemp("plain")) == (None, None)


def test_versions_are_those_installed():
    versions = json.loads(provenance()["package_versions"])
    assert versions["numpy"] == metadata.version("numpy")
    assert {"python", "torch", "scipy"} <= set(versions)


@pytest.mark.skipif(not STATUS.exists(), reason="the kernel does not tell")
def test_peak_memory_is_what_the_kernel_counts():
    counted = next(line.split()[1] for line in STATUS.read_text().splitlines() if line.startswith("VmHWM"))
    assert peak_memory_mb() == pytest.approx(int(counted) * 1024 / 1e6, rel=0.02)


@pytest.mark.skipif(not STATUS.exists(), reason="the kernel does not count anew")
def test_peak_memory_of_a_job_is_not_that_of_the_one_before():
    large = np.ones(50_000_000)
    with_large = peak_memory_mb()
    del large
    reset_peak_memory()
    assert peak_memory_mb() < with_large - 300
