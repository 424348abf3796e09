"""The cells of a table: mean and 95 % interval over models from the store, beside the printed ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from experiments.expand import SweepJob
from experiments.intervals import mean_and_ci95
from experiments.paper_methods import config_of
from experiments.printed import GRAPHS, METRICS, TABLES, defects, printed_cells
from experiments.store import latest

if TYPE_CHECKING:
    import pandas as pd

OVERLAP, BETTER, WORSE, DIFFERS = "overlap", "better", "worse", "differs"
NOT_COMPUTED, UNDEFINED, NOT_PRINTED = "not computed", "undefined", "not printed"
MARKS = (OVERLAP, BETTER, WORSE, DIFFERS, NOT_COMPUTED, UNDEFINED, NOT_PRINTED)
FEW_MODELS = 3
FEW = (
    f"Fewer than {FEW_MODELS} models: the mark assumes the spread between models that the paper prints, if it is wider."
)


@dataclass(frozen=True)
class Cell:
    """One metric of one method: over `count` models with a value; `undefined` further ones have none.

    `mean` is None without a model and `ci95`, 1.96 standard errors, with fewer than two. `printed_mean` and
    `printed_ci95` are the text of the paper, '' where it has none.
    """

    metric: str
    mean: float | None
    ci95: float | None
    count: int
    undefined: int
    printed_mean: str
    printed_ci95: str
    mark: str


@dataclass(frozen=True)
class Row:
    """A method; `label` is the paper's name of it or, where `printed` is false, its config."""

    label: str
    variant: str
    printed: bool
    num_jobs: int
    num_done: int
    num_failed: int
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Note:
    """A sentence under a table and the labels of the rows it is about, none for all."""

    text: str
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Group:
    """The methods on one graph model with one number of samples."""

    graph: str
    num_samples: int
    rows: tuple[Row, ...]
    notes: tuple[Note, ...]


@dataclass(frozen=True)
class Table:
    """A table with its groups in the paper's order, and its jobs with the rows of the store that it rests on.

    Attributes:
        jobs: columns job_id, graph, num_samples, variant, in the order of the sweep.
        done: the rows of the newest run with status ok of each job.
        failed: the last row of each job that was tried and is not done.
    """

    name: str
    groups: tuple[Group, ...]
    jobs: pd.DataFrame
    done: pd.DataFrame
    failed: pd.DataFrame


def table_of(name: str, jobs: Sequence[SweepJob], rows: pd.DataFrame) -> Table:
    """The table of an experiment.

    Args:
        name: a key of `experiments.printed.TABLES`.
        jobs: those of the experiment.
        rows: of the store, as from `ResultStore.rows`.
    """
    printed = printed_cells(name)
    placed = _placed(jobs, printed)
    rows = rows[rows["job_id"].isin(set(placed["job_id"]))]
    done = latest(rows)
    failed = rows[~rows["job_id"].isin(set(done["job_id"]))].drop_duplicates("job_id", keep="last")
    keys = printed[["graph", "num_samples", "num_samples_source"]].drop_duplicates().values.tolist()
    groups: list[Group] = []
    for graph, num_samples, source in keys:
        chosen = placed[placed["graph"] == graph]
        if source == "printed":
            chosen = chosen[chosen["num_samples"] == int(num_samples)]
        cells = printed[(printed["graph"] == graph) & (printed["num_samples"] == num_samples)]
        for size in chosen["num_samples"].drop_duplicates() if len(chosen) else [int(num_samples)]:
            here = chosen[chosen["num_samples"] == size]
            groups.append(_group(name, graph, int(size), cells, here, done, failed))
    return Table(name, tuple(groups), placed, done, failed)


def mark(
    metric: str,
    mean: float,
    ci95: float | None,
    printed_mean: str,
    printed_ci95: str,
    *,
    num_models: int,
    printed_models: int,
) -> str:
    """How a mean over `num_models` compares with the printed one, which is over `printed_models`.

    Printed numbers are widened by half a unit of their last digit, as they are rounded. Fewer than three models tell
    next to nothing of their spread: their interval is taken to be no narrower than the printed one over as many.
    """
    if not printed_mean:
        return NOT_PRINTED
    reach, printed_reach = ci95 or 0.0, float(printed_ci95 or 0)
    if num_models < FEW_MODELS and printed_ci95:
        reach = max(reach, (printed_reach + _rounding(printed_ci95)) * math.sqrt(printed_models / num_models))
    difference = mean - float(printed_mean)
    if abs(difference) <= reach + printed_reach + _rounding(printed_mean) + 1e-12:  # not decided by the last bit
        return OVERLAP
    lower_is_better = METRICS[metric][1]
    if lower_is_better is None:
        return DIFFERS
    return BETTER if (difference < 0) == lower_is_better else WORSE


def _rounding(printed: str) -> float:
    """Half a unit of the last digit."""
    return 0.5 * 10.0 ** -len(printed.partition(".")[2])


def _placed(jobs: Sequence[SweepJob], printed: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    size = int(printed["num_samples"].iloc[0])  # of data that do not take one
    return pd.DataFrame(
        {
            "job_id": [job.job_id for job in jobs],
            "graph": [GRAPHS[job.overrides["data"]] for job in jobs],
            "num_samples": [int(job.overrides.get("data.num_samples", size)) for job in jobs],
            "variant": [job.overrides["method"] for job in jobs],
        }
    )


def _group(
    name: str,
    graph: str,
    num_samples: int,
    printed: pd.DataFrame,
    jobs: pd.DataFrame,
    done: pd.DataFrame,
    failed: pd.DataFrame,
) -> Group:
    printed_models = int(printed["num_models"].iloc[0])
    methods = list(dict.fromkeys(printed["method"]))
    named = {config_of(method) for method in methods}
    lines = [(method, config_of(method), True) for method in methods]
    lines += [(each, each, False) for each in dict.fromkeys(jobs["variant"]) if each not in named]
    rows, notes = [], []
    for label, config, is_printed in lines:
        ids = set(jobs.loc[jobs["variant"] == config, "job_id"])
        of_method = done[done["job_id"].isin(ids)]
        texts = printed[printed["method"] == label].set_index("metric")
        cells = tuple(_cell(metric, of_method, texts, printed_models) for metric in TABLES[name].metrics)
        num_failed = int(failed["job_id"].isin(ids).sum())
        row = Row(label, config, is_printed, len(ids), of_method["job_id"].nunique(), num_failed, cells)
        rows.append(row)
        notes += _row_notes(row, of_method)
    return Group(graph, num_samples, tuple(rows), (*_notes(name, graph, num_samples, printed, rows), *notes))


def _cell(metric: str, done: pd.DataFrame, printed: pd.DataFrame, printed_models: int) -> Cell:
    values = done.loc[done["metric"] == METRICS[metric][0], "value"]
    count = int(values.notna().sum())
    mean, ci95 = (None if math.isnan(each) else each for each in mean_and_ci95(values))
    texts = (
        (str(printed.loc[metric, "mean"]), str(printed.loc[metric, "ci95"])) if metric in printed.index else ("", "")
    )
    if mean is None:
        how = UNDEFINED if len(values) else NOT_COMPUTED
    else:
        how = mark(metric, mean, ci95, *texts, num_models=count, printed_models=printed_models)
    return Cell(metric, mean, ci95, count, len(values) - count, *texts, how)


def _notes(name: str, graph: str, num_samples: int, printed: pd.DataFrame, rows: Sequence[Row]) -> list[Note]:
    notes = []
    assumed, source = printed[["num_samples", "num_samples_source"]].iloc[0]
    if source != "printed":
        why = "" if int(assumed) == num_samples else ", as the printed edge counts of PC and GRaSP ask for"
        notes.append(Note(f"The paper does not print the number of samples; N = {num_samples} here{why}."))
    labels = {row.label for row in rows if row.printed}
    for text, about in defects(name, graph):
        if not about or labels & set(about):
            notes.append(Note(text, tuple(each for each in about if each in labels)))
    absent = tuple(row.label for row in rows if not row.num_jobs)
    if absent:
        notes.append(Note("Not computed: the experiment does not run this method.", absent))
    added = tuple(row.label for row in rows if not row.printed)
    if added:
        notes.append(Note("Ours alone: the printed table has no such row.", added))
    return notes


def _row_notes(row: Row, done: pd.DataFrame) -> list[Note]:
    """What of a row is missing, failed or undefined, or rests on few models."""
    notes = []
    if row.num_done < row.num_jobs:
        missing = row.num_jobs - row.num_done - row.num_failed
        parts = [f"{row.num_done} of {row.num_jobs} models computed"]
        parts += [f"{row.num_failed} failed"] if row.num_failed else []
        parts += [f"{missing} not run"] if missing else []
        notes.append(Note(f"{', '.join(parts)}.", (row.label,)))
    if any(0 < cell.count < FEW_MODELS and cell.printed_mean for cell in row.cells):
        notes.append(Note(FEW, (row.label,)))
    undefined: dict[tuple[int, str], list[str]] = {}
    for cell in row.cells:
        if cell.undefined:
            lines = done[(done["metric"] == METRICS[cell.metric][0]) & done["value"].isna()]
            reason = "; ".join(sorted({" ".join(text.split()) for text in lines["undefined_reason"].dropna()}))
            undefined.setdefault((cell.undefined, reason), []).append(cell.metric)
    for (count, reason), metrics in undefined.items():
        why = f": {reason}" if reason else ""
        notes.append(Note(f"{', '.join(metrics)} undefined for {count} of {row.num_done} models{why}.", (row.label,)))
    return notes
