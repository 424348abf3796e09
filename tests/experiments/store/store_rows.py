"""Rows for tests of the store, and what runs in processes of its own there."""

from __future__ import annotations

import os
import random
import time
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path

from experiments.store import ResultStore

START = datetime(2025, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
METRICS = ("eshd", "tpr", "tnr")


def row(job_id: str = "a", **values: object) -> dict[str, object]:
    required = {
        "run_id": f"run-of-{job_id}",
        "status": "ok",
        "data_name": "er",
        "method": "m",
        "method_config": "{}",
        "data_config": "{}",
        "metrics_config": "{}",
        "method_seed": 0,
        "package_versions": "{}",
        "started_at": START,
        "host": "h",
    }
    return {**required, "job_id": job_id, **values}


def job(job_id: str) -> list[dict[str, object]]:
    return [row(job_id, metric=metric, value=1.0, error=10_000 * "x") for metric in METRICS]


def append_jobs(path: Path, writer: int, count: int) -> None:
    for k in range(count):
        ResultStore(path).append(job(f"{writer}-{k}"))


def append_until_killed(path: Path, name: str, done: Connection) -> None:
    """Tell the number of every append that has returned."""
    k = 0
    while True:
        ResultStore(path).append(job(f"{name}-{k}"))
        done.send(k)
        k += 1


def append_with_little_room(path: Path, seed: int, told: Connection) -> None:
    """Append while there is room for fewer bytes in a file than an append takes; tell what became of it."""
    import resource
    import signal

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write then fails as on a full disk
    limit = random.Random(seed).randrange(6000)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    told.send(_outcome_of_append(path))


def append_as_nobody(path: Path, told: Connection) -> None:
    os.setgid(65534)
    os.setuid(65534)
    told.send(_outcome_of_append(path))
    told.send(ResultStore(path).rows()["job_id"].unique().tolist())


def compact_until(path: Path, stop: object, told: Connection) -> None:
    from experiments.store.compaction import compact

    done = 0
    while not stop.is_set():
        result = compact(ResultStore(path))
        done += result.files_after < result.files_before
        time.sleep(0.05)
    told.send(done)


def _outcome_of_append(path: Path) -> tuple[str, str]:
    try:
        ResultStore(path).append(job("late"))
    except Exception as error:
        return type(error).__name__, str(error)
    return "stored", ""
