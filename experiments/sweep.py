"""What is left to say when all jobs of a sweep have ended: one table, and how many did not finish."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf

from bci.errors import InvalidInput
from experiments.outcome import FAILED, OUTCOME, complain, say
from experiments.store import ResultStore, latest

if TYPE_CHECKING:
    import pandas as pd

SEEDS = ("seed", "data.seed")  # jobs that differ in these alone share a line
_METRICS_SHOWN = 6
_FINISHED = ("ok", "skipped")


class SweepOutcome(Callback):
    """A Hydra callback that ends a sweep with a table, and with a code other than 0 if a job did not finish.

    The jobs themselves never raise, so that the others go on, and may run in other processes; what they leave in
    their run directories tells how they ended.
    """

    def on_multirun_end(self, config: DictConfig, **_: object) -> None:
        sweep_dir = Path(config.hydra.sweep.dir)
        jobs = list(_ended_jobs(sweep_dir))
        table = summary(jobs, Path(config.store.path), list(config.metrics.names))
        if table:
            say(table)
        unfinished = [job.status for job in jobs if job.status not in _FINISHED]
        if unfinished:
            counts = ", ".join(f"{unfinished.count(status)} {status}" for status in sorted(set(unfinished)))
            complain(f"{len(unfinished)} of {len(jobs)} jobs did not finish ({counts}); see {sweep_dir}")
            raise SystemExit(FAILED)


class EndedJob(NamedTuple):
    """A job of a sweep: its overrides, key to value, its id if it had one, and how it ended."""

    overrides: dict[str, str]
    job_id: str | None
    status: str


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
    for job, label in zip(jobs, _labels([job.overrides for job in jobs]), strict=True):
        lines.setdefault(label, []).append(job)
    table = []
    for label, group in lines.items():
        done = rows[rows["job_id"].isin([job.job_id for job in group if job.status in _FINISHED])]
        means = [_mean(done.loc[done["metric"] == name, "value"], 3) for name in shown]
        seconds = _mean(done.drop_duplicates("run_id")["fit_seconds"], 1)
        table.append([label, f"{done['job_id'].nunique()}/{len(group)}", *means, seconds])
    return _aligned([["mean over seeds", "jobs", *shown, "fit s"], *table])


def _ended_jobs(sweep_dir: Path) -> Iterator[EndedJob]:
    """The jobs of a sweep in their order; one that left no outcome was killed."""
    folders = [config.parent.parent for config in sweep_dir.glob("**/.hydra/config.yaml")]
    for folder in sorted(folders, key=lambda path: (len(path.name), path.name)):
        outcome = {"status": "killed"}
        if (folder / OUTCOME).is_file():
            outcome = json.loads((folder / OUTCOME).read_text(encoding="utf-8"))
        overrides = OmegaConf.to_container(OmegaConf.load(folder / ".hydra" / "overrides.yaml"))
        pairs = (str(override).partition("=") for override in overrides or ())
        yield EndedJob({key: value for key, _, value in pairs}, outcome.get("job_id"), outcome["status"])


def _labels(overrides: Sequence[dict[str, str]]) -> list[str]:
    """Of every job the overrides that not all jobs share, seeds left out."""
    keys = dict.fromkeys(key for each in overrides for key in each if key not in SEEDS)
    varying = [key for key in keys if len({each.get(key) for each in overrides}) > 1]
    return [" ".join(f"{key}={each[key]}" for key in varying if key in each) or "all jobs" for each in overrides]


def _mean(values: pd.Series[float], digits: int) -> str:
    defined = values.dropna()
    return f"{defined.mean():.{digits}f}" if len(defined) else "--"


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    """The first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *others in rows:
        cells = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([first.ljust(widths[0]), *cells]))
    return "\n".join(lines)
