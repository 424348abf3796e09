"""What a finished job leaves behind besides its rows: a table on the terminal and files in the run directory."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from pathlib import Path

from bci.metrics import Undefined
from bci.posterior_file import can_be_saved, save_posterior
from experiments.fit import Fitted, Result
from experiments.job import Job
from experiments.outcome import POSTERIOR, write_outcome
from experiments.pictures import edge_heat_map, posterior_graph


def write_posterior(fit: Fitted, run_dir: Path) -> None:
    """Write `posterior.npz`, which `experiments.query` asks, if the posterior can answer, and `edge_probabilities.csv`.

    The CSV has a header of the variable names and then one row per cause in the same order, without row names:
    the entry in row i and column j is the probability of i -> j. It is read back as an adjacency matrix.
    """
    if can_be_saved(fit.posterior):
        save_posterior(fit.posterior, run_dir / POSTERIOR)
    with (run_dir / "edge_probabilities.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(fit.dataset.names)
        writer.writerows(fit.posterior.edge_probabilities.tolist())


def write_numbers(job: Job, result: Result, run_dir: Path, *, error: str | None = None) -> None:
    """Write `metrics.json`; with an `error`, the status is failed for all its numbers."""
    defined = {name: value for name, value in result.metrics.items() if not isinstance(value, Undefined)}
    undefined = {name: value.reason for name, value in result.metrics.items() if isinstance(value, Undefined)}
    write_outcome(
        run_dir,
        {
            "status": "ok" if error is None else "failed",
            "error": error,
            "job_id": job.job_id,
            "data": job.data_name,
            "method": job.method_name,
            "seed": job.seed,
            "metrics": defined | dict.fromkeys(undefined),
            "undefined": undefined,
            "fit_seconds": result.fit_seconds,
            "eval_seconds": result.eval_seconds,
            "peak_memory_mb": result.peak_memory_mb,
            "diagnostics": _plain(result.posterior.diagnostics),
        },
    )


def write_pictures(job: Job, result: Result, run_dir: Path) -> None:
    """Write `edge_probabilities.png` and `graph.png`."""
    title = f"{job.method_name} on {job.data_name}, N = {result.dataset.num_samples}"
    probabilities, names, truth = result.posterior.edge_probabilities, result.dataset.names, result.dataset.graph
    edge_heat_map(probabilities, names, truth, title=title).savefig(run_dir / "edge_probabilities.png", dpi=150)
    graph = posterior_graph(probabilities, names, truth, graph_kind=result.posterior.graph_kind, title=title)
    graph.savefig(run_dir / "graph.png", dpi=150)


def table(job: Job, result: Result, *, store_version: int, run_dir: Path) -> str:
    """One compact table of a finished job; an undefined metric reads `--` and its reason."""
    dataset = result.dataset
    width = max([len("metric"), *map(len, result.metrics)])
    lines = [
        f"{job.method_name} on {job.data_name}: {dataset.num_samples} samples, {dataset.num_nodes} variables, "
        f"{job.seeds}",
        "",
        f"{'metric':<{width}}  {'value':>9}",
    ]
    for name, value in result.metrics.items():
        shown = f"{'--':>9}  {value.reason}" if isinstance(value, Undefined) else f"{value:>9.3f}"
        lines.append(f"{name:<{width}}  {shown}")
    lines += [
        "",
        f"fit {result.fit_seconds:.1f} s, metrics {result.eval_seconds:.1f} s, "
        f"peak memory {result.peak_memory_mb:.0f} MB",
        f"job {job.job_id} in {job.store_path}, version {store_version}",
        f"files in {run_dir}",
    ]
    return "\n".join(lines)


def _plain(value: object) -> object:
    """Diagnostics as JSON knows them: numbers, texts, lists and mappings; a number that is not finite becomes null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):  # numpy and torch
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, bool | int | str):
        return value
    return float(value) if isinstance(value, float) and math.isfinite(value) else None
