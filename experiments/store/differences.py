"""What changed in the results from one version of the store to another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import pandas as pd

from experiments.store.result_store import ResultStore, latest


class JobCount(NamedTuple):
    """Jobs of one data source and method whose newest run ended alike."""

    data: str
    method: str
    status: str
    jobs: int


class Change(NamedTuple):
    """Of one job: its status (`what` is "status") or the value of the metric `what`; None where there is none."""

    job_id: str
    data: str
    method: str
    what: str
    old: str | None
    new: str | None


class Differences(NamedTuple):
    """From one version to another; of a job that was run again its newest run counts, for values the newest ok one."""

    rows: tuple[int, int]
    jobs: tuple[int, int]
    added: list[JobCount]
    removed: list[JobCount]
    rerun: int  # jobs of both versions whose newest run is another
    changes: list[Change]


def differences(store: ResultStore, old: int, new: int) -> Differences:
    """Values are compared exactly; times, memory and commits are not compared.

    Raises:
        InvalidInput: there is no store, or no such version.
    """
    frames = store.rows(old), store.rows(new)
    before, after = (_newest_runs(frame) for frame in frames)
    common = before.index.intersection(after.index)
    again = common[(before.loc[common, "run_id"] != after.loc[common, "run_id"]).to_numpy()]
    cells = _cells(frames[0]), _cells(frames[1])
    return Differences(
        (len(frames[0]), len(frames[1])),
        (len(before), len(after)),
        _counts(after.drop(common)),
        _counts(before.drop(common)),
        len(again),
        [change for job in again for change in _changes(before.loc[job], after.loc[job], *cells)],
    )


def _changes(
    before: pd.Series, after: pd.Series, old: dict[str, dict[str, str]], new: dict[str, dict[str, str]]
) -> Iterator[Change]:
    """Of one job, whose newest runs are `before` and `after`."""
    job_id = str(after.name)
    job = (job_id, str(after["data_name"]), str(after["method"]))
    if before["status"] != after["status"]:
        yield Change(*job, "status", before["status"], after["status"])
    values, others = old.get(job_id, {}), new.get(job_id, {})
    for metric in {**values, **others}:
        if values.get(metric) != others.get(metric):
            yield Change(*job, metric, values.get(metric), others.get(metric))


def _newest_runs(frame: pd.DataFrame) -> pd.DataFrame:
    runs = frame.drop_duplicates("run_id").sort_values(["started_at", "run_id"], kind="stable")
    newest = runs.drop_duplicates("job_id", keep="last").set_index("job_id")
    return newest[["run_id", "status", "data_name", "method"]]


def _counts(runs: pd.DataFrame) -> list[JobCount]:
    kinds = Counter(zip(runs["data_name"], runs["method"], runs["status"], strict=True))
    return [JobCount(*kind, count) for kind, count in sorted(kinds.items())]


def _cells(frame: pd.DataFrame) -> dict[str, dict[str, str]]:
    """Of every job the exact text of its values, by metric."""
    cells: dict[str, dict[str, str]] = {}
    finished = latest(frame).dropna(subset=["metric"])
    columns = (finished[name] for name in ("job_id", "metric", "value", "undefined_reason"))
    for job_id, metric, value, reason in zip(*columns, strict=True):
        cells.setdefault(job_id, {})[metric] = repr(float(value)) if pd.notna(value) else f"undefined ({reason})"
    return cells
