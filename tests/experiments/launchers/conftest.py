"""Sweeps of small jobs on a stand-in method, started from the shell."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from shell import from_the_shell

from experiments.store import ResultStore

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a sweep in the temporary folder, in a process group of its own that is killed at the end of the test."""
    folder = tmp_path / "configs" / "method"
    folder.mkdir(parents=True)
    (folder / "mortal.yaml").write_text("_target_: stand_ins.Mortal\nseconds: 0.0\nmode: fit\nonly_once: null\n")
    small = ["data=er", "data.num_nodes=4", "data.expected_degree=1", "data.num_samples=30"]
    started: list[subprocess.Popen[str]] = []

    def sweep(*arguments: str, store: str = "store") -> subprocess.Popen[str]:
        fixed = ["--config-dir", str(folder.parent), "method=mortal", "metrics.names=[eshd]", f"store.path={store}"]
        quiet = ["hydra/job_logging=none", "hydra/hydra_logging=none"]
        started.append(from_the_shell(tmp_path, "-m", *fixed, *small, *quiet, *arguments, own_session=True))
        return started[-1]

    yield sweep
    for process in started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.fixture
def rows(tmp_path: Path) -> Callable[..., list[tuple[object, ...]]]:
    """Status, seeds and value of every row of a store, in order."""

    def read(store: str = "store") -> list[tuple[object, ...]]:
        if not (tmp_path / store / "_delta_log").exists():
            return []
        columns = ["job_id", "metric", "status", "data_seed", "value"]
        return sorted(ResultStore(tmp_path / store).rows()[columns].itertuples(index=False, name=None), key=str)

    return read
