"""How far a job and a sweep are: live lines on a terminal, plain lines without control characters in a file."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException
from omegaconf import DictConfig

from bci.counting import reporting
from bci.errors import InvalidInput
from experiments.combinations import combinations
from experiments.live_lines import LiveLines, is_terminal
from experiments.outcome import FINISHED, write

_POLL = 2.0  # seconds between two looks at the notes of jobs, which may be many and on a network drive


class EndedJob(NamedTuple):
    """A job of a sweep: its overrides, key to value, its id if it had one, and how it ended.

    If it did not end, it was `killed`, or `not run` if it did not even begin.
    Times in seconds: when it started, since the epoch, and how long it took if it has ended.
    """

    overrides: dict[str, str]
    job_id: str | None
    status: str
    started: float = 0.0
    seconds: float | None = None


class _RunningJob:
    """The job that runs in this process."""

    def __init__(self, label: str) -> None:
        self._label, self._stage, self._detail = label, "start", ""
        self._start = time.monotonic()

    def enter(self, stage: str) -> None:
        self._stage, self._detail = stage, ""

    def report(self, what: str, done: int, total: int) -> None:
        self._detail = f"{what} {done}/{total}"

    def line(self) -> str:
        parts = [self._stage, self._detail, duration(time.monotonic() - self._start)]
        return f"{self._label}: {', '.join(filter(None, parts))}"


class SweepProgress:
    """How far a sweep is, by the notes that its jobs leave.

    Args:
        notes: folder with one JSON file per job that has begun, a `EndedJob` each.
        total: number of jobs, if known.
    """

    def __init__(self, notes: Path, total: int | None) -> None:
        self._notes, self._total = notes, total
        self._ended: dict[str, EndedJob] = {}
        self._running: list[EndedJob] = []
        self._lock = threading.Lock()

    def look(self) -> bool:
        """Read what is new; returns whether jobs have ended since the last look."""
        with self._lock:
            running, ended = [], dict(self._ended)
            for file in self._notes.glob("*.json"):
                if file.name in ended:
                    continue
                try:
                    job = EndedJob(**json.loads(file.read_text(encoding="utf-8")))
                except (OSError, ValueError):  # being written
                    continue
                if job.seconds is None:
                    running.append(job)
                else:
                    ended[file.name] = job
            new = len(ended) > len(self._ended)
            self._ended, self._running = ended, running  # replaced, as another thread may be going through them
            return new

    def line(self) -> str:
        """Such as `12/40 done, 1 failed, 2 running, about 3 min left`; done are also jobs that were skipped."""
        statuses = [job.status for job in self._ended.values()]
        done = sum(status in FINISHED for status in statuses)
        failed = len(statuses) - done
        left = self._seconds_left()
        parts = [
            f"{done} done" if self._total is None else f"{done}/{self._total} done",
            f"{failed} failed" if failed else "",
            f"{len(self._running)} running" if self._running else "",
            "" if left is None else f"about {duration(left, rough=True)} left",
        ]
        return ", ".join(filter(None, parts))

    def longest_running(self) -> str:
        """The job that has run for the longest time, by what it does not share with all others; empty if none runs."""
        running, ended = self._running, self._ended
        if not running:
            return ""
        job = min(running, key=lambda job: job.started)
        others = [other.overrides.items() for other in (*running, *ended.values()) if other is not job]
        own = [pair for pair in job.overrides.items() if not others or any(pair not in other for other in others)]
        what = " ".join(f"{key}={value}" for key, value in own) or "job"
        return f"{what}: {duration(max(time.time() - job.started, 0))}"

    def _seconds_left(self) -> float | None:
        """From the mean time of the jobs that ended (not of those skipped) and the number that run at once."""
        times = [job.seconds or 0.0 for job in self._ended.values() if job.status != "skipped"]
        if self._total is None or not times or len(self._ended) >= self._total:
            return None
        mean, now = sum(times) / len(times), time.time()
        waiting = max(self._total - len(self._ended) - len(self._running), 0)
        of_running = sum(max(mean - (now - job.started), 0.0) for job in self._running)
        return (mean * waiting + of_running) / max(len(self._running), 1)


class _Shown:
    """What this process shows: at most one job and one sweep."""

    job: _RunningJob | None = None
    sweep: SweepProgress | None = None
    live: LiveLines | None = None
    stop = threading.Event()  # of the thread that looks at the notes
    watcher: threading.Thread | None = None


@contextmanager
def running_job(label: str) -> Iterator[None]:
    """Show a job of this process while it runs."""
    _Shown.job = _RunningJob(label)
    alone = _Shown.live is None and is_terminal(sys.stderr)
    if alone:
        _Shown.live = LiveLines(_lines)
        _Shown.live.start()
    try:
        with reporting(_Shown.job.report):
            yield
    finally:
        _Shown.job = None
        if alone:
            close()


def enter(stage: str) -> None:
    """Say what the job of this process does from now on."""
    if _Shown.job is not None:
        _Shown.job.enter(stage)


def open_sweep(notes: Path, total: int | None) -> None:
    """Show a sweep that this process launches, until `close`."""
    close()
    _Shown.sweep = SweepProgress(notes, total)
    if is_terminal(sys.stderr):
        _Shown.live = LiveLines(_lines)
        _Shown.live.start()
    _Shown.stop = threading.Event()
    _Shown.watcher = threading.Thread(target=_watch, args=(_Shown.stop,), name="progress", daemon=True)
    _Shown.watcher.start()


def job_began() -> None:
    """A job of a sweep begins in this process, which may not be the one that shows the sweep but share its terminal."""
    if _Shown.sweep is not None:
        _Shown.sweep.look()
    elif _Shown.live is None and is_terminal(sys.stderr):
        _Shown.live = LiveLines()
        _Shown.live.start()


def job_ended() -> None:
    """A job of a sweep has ended in this process."""
    if _Shown.sweep is not None:
        _look(_Shown.sweep)


def close() -> None:
    """Show nothing any more; in a file, jobs that ended since the last line are told of first."""
    if _Shown.watcher is not None:
        _Shown.stop.set()
        _Shown.watcher.join()
        _Shown.watcher = None
    if _Shown.sweep is not None:
        _look(_Shown.sweep)
        _Shown.sweep = None
    if _Shown.live is not None:
        _Shown.live.stop()
        _Shown.live = None


def number_of_jobs(config: DictConfig) -> int | None:
    """Number of jobs of a sweep, from its composed config.

    None if another sweeper than Hydra's own decides, or if it will refuse the overrides, which is its to say.
    """
    if not str(config.hydra.sweeper.get("_target_")).endswith(".BasicSweeper"):
        return None
    try:
        return len(combinations(GlobalHydra.instance().config_loader(), config, config.hydra.overrides.task))
    except (HydraException, InvalidInput):
        return None


def duration(seconds: float, *, rough: bool = False) -> str:
    """`41 s`, `3 min 5 s`, `2 h 10 min`; `rough` leaves out seconds beside minutes."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{round(seconds / 60)} min" if rough else f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def _lines() -> Sequence[str]:
    sweep, job = _Shown.sweep, _Shown.job
    of_job = job.line() if job is not None else sweep.longest_running() if sweep is not None else ""
    return [line for line in (sweep.line() if sweep is not None else "", of_job) if line]


def _watch(stop: threading.Event) -> None:
    while not stop.wait(_POLL):
        if _Shown.sweep is not None:
            _look(_Shown.sweep)


def _look(sweep: SweepProgress) -> None:
    if sweep.look() and _Shown.live is None:
        write(sys.stderr, sweep.line())
