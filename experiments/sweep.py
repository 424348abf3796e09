"""What is left to say when all jobs of a sweep have ended: one table, and how many did not finish."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hydra.core.utils import JobReturn, JobStatus
from hydra.experimental.callback import Callback
from hydra.types import RunMode
from omegaconf import DictConfig, ListConfig, OmegaConf

from bci.errors import InvalidInput
from experiments.outcome import FAILED, FINISHED, Ended, complain, say
from experiments.progress import EndedJob, close, job_began, job_ended, number_of_jobs, open_sweep
from experiments.store import ResultStore, latest

if TYPE_CHECKING:
    import pandas as pd

SEEDS = ("seed", "data.seed")  # jobs that differ in these alone share a line
_METRICS_SHOWN = 6


class SweepOutcome(Callback):
    """A Hydra callback that ends a sweep with a table, and with a code other than 0 if a job did not finish.

    The jobs themselves never raise, so that the others go on. They may run in other processes, which get a copy of
    this object, and share run directories with other sweeps: each leaves a note in a folder of this sweep alone.
    """

    def __init__(self) -> None:
        self._name = f".jobs-{uuid.uuid4().hex}"  # of the folder of notes, which is there until the sweep ends
        self._expected: dict[int, list[str]] = {}
        self._started = 0.0  # of the job in this process, since the epoch

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_expected": {}}  # copies do without the overrides of all jobs

    def expect(self, jobs: Mapping[int, Sequence[str]]) -> None:
        """Count these jobs, overrides by number, even if they never begin."""
        self._expected |= {number: list(overrides) for number, overrides in jobs.items()}

    def begun(self, config: DictConfig) -> set[int]:
        """The numbers of the jobs that began."""
        return {int(note.stem) for note in self._folder(config).glob("*.json")}

    def on_multirun_start(self, config: DictConfig, **_: object) -> None:
        atexit.register(shutil.rmtree, self._folder(config), ignore_errors=True)  # a sweep may be interrupted
        open_sweep(self._folder(config), number_of_jobs(config))

    def on_job_start(self, config: DictConfig, **_: object) -> None:
        if config.hydra.mode == RunMode.MULTIRUN:
            self._started = time.time()
            self._note(config, Ended("killed", None), None)  # until it ends
            job_began()

    def on_job_end(self, config: DictConfig, job_return: JobReturn, **_: object) -> None:
        if config.hydra.mode == RunMode.MULTIRUN and job_return.status == JobStatus.COMPLETED:
            self._note(config, job_return.return_value, time.time() - self._started)
            job_ended()

    def on_multirun_end(self, config: DictConfig, **_: object) -> None:
        close()
        notes = {number: self._folder(config) / f"{number}.json" for number in self.begun(config)}
        ended = {number: EndedJob(**json.loads(note.read_text(encoding="utf-8"))) for number, note in notes.items()}
        lost = {number: EndedJob(_pairs(overrides), None, "not run") for number, overrides in self._expected.items()}
        jobs = [job for _, job in sorted((lost | ended).items())]
        shutil.rmtree(self._folder(config), ignore_errors=True)
        unfinished = [job.status for job in jobs if job.status not in FINISHED]
        try:
            names = OmegaConf.select(config, "metrics.names")
            shown = list(names) if isinstance(names, ListConfig) else []  # else the jobs have said what is wrong
            table = summary(jobs, Path(config.store.path), shown)
            if table:
                say(table)
        finally:  # Hydra goes on after an exception of a callback as if there had been none
            count = {status: [job.status for job in jobs].count(status) for status in FINISHED}
            done = f"{count['ok']} ran, {count['skipped']} skipped"
            if not unfinished:
                say(f"{len(jobs)} jobs: {done}, 0 failed")
            else:
                counts = ", ".join(f"{unfinished.count(status)} {status}" for status in sorted(set(unfinished)))
                see = config.hydra.sweep.dir
                complain(f"{len(unfinished)} of {len(jobs)} jobs did not finish ({counts}), {done}; see {see}")
                raise SystemExit(FAILED)

    def _note(self, config: DictConfig, ended: Ended, seconds: float | None) -> None:
        pairs = _pairs(config.hydra.overrides.task)
        job = EndedJob(pairs, ended.job_id, ended.status, self._started, seconds)
        folder = self._folder(config)
        folder.mkdir(parents=True, exist_ok=True)
        note = folder / f"{config.hydra.job.num}.json"
        whole = note.with_suffix(f".{os.getpid()}")  # so that a process that is killed here leaves no half of a note
        whole.write_text(json.dumps(job._asdict()), encoding="utf-8")
        whole.replace(note)

    def _folder(self, config: DictConfig) -> Path:
        return Path(config.hydra.runtime.cwd) / config.hydra.sweep.dir / self._name


def _pairs(overrides: Iterable[str]) -> dict[str, str]:
    """Overrides as key to value."""
    return {key: value for key, _, value in (str(override).partition("=") for override in overrides)}


def summary(jobs: Sequence[EndedJob], store: Path, metrics: Sequence[str]) -> str:
    """One line for all jobs that differ in their seeds alone: how many finished, and the means of their first metrics.

    Jobs that were skipped count with the numbers in the store. A metric that is undefined for some of them is averaged
    over the others, and reads `--` if it is for all.

    Returns:
        The table; empty if the store cannot be read.
    """
    try:
        rows = latest(ResultStore(store).rows())
    except InvalidInput:
        return ""
    shown = list(metrics)[:_METRICS_SHOWN]
    lines: dict[str, list[EndedJob]] = {}
    for job, label in zip(jobs, labels([job.overrides for job in jobs]), strict=True):
        lines.setdefault(label, []).append(job)
    table = []
    for label, group in lines.items():
        done = rows[rows["job_id"].isin([job.job_id for job in group if job.status in FINISHED])]
        means = [_mean(done.loc[done["metric"] == name, "value"], 3) for name in shown]
        seconds = _mean(done.drop_duplicates("run_id")["fit_seconds"], 1)
        number = len({job.job_id or place for place, job in enumerate(group)})  # a job that comes twice is one
        table.append([label, f"{done['job_id'].nunique()}/{number}", *means, seconds])
    return aligned([["mean over seeds", "jobs", *shown, "fit s"], *table])


def labels(overrides: Sequence[dict[str, str]]) -> list[str]:
    """Of every job the overrides that not all jobs share, seeds left out."""
    keys = dict.fromkeys(key for each in overrides for key in each if key not in SEEDS)
    varying = [key for key in keys if len({each.get(key) for each in overrides}) > 1]
    return [" ".join(f"{key}={each[key]}" for key in varying if key in each) or "all jobs" for each in overrides]


def _mean(values: pd.Series[float], digits: int) -> str:
    defined = values.dropna()
    return f"{defined.mean():.{digits}f}" if len(defined) else "--"


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """The first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *others in rows:
        cells = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([first.ljust(widths[0]), *cells]))
    return "\n".join(lines)
