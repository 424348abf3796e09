"""The numbers of a job: build its data and method, fit, evaluate."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bci.dataset import Dataset
from bci.errors import InvalidInput
from bci.method import Method
from bci.metrics import Undefined, check_request, evaluate
from bci.posterior import Posterior
from bci.randomness import stream
from experiments.build import build, check_settings, naming_keys
from experiments.job import Job, dataset_columns
from experiments.progress import enter
from experiments.provenance import peak_memory_mb


@dataclass(frozen=True, eq=False)
class Result:
    """A fitted and evaluated job; times in seconds, memory in MB.

    The memory is that of the process that the method ran in, if it had one of its own; else of the whole job.
    """

    dataset: Dataset
    posterior: Posterior
    metrics: Mapping[str, float | Undefined]
    fit_seconds: float
    eval_seconds: float
    peak_memory_mb: float


def fit_and_evaluate(job: Job, columns: dict[str, Any]) -> Result:
    """Run the job with two independent random streams of its seed, one to fit and one to evaluate.

    Args:
        columns: row columns that become known on the way are added here, so that an error can be recorded with them.

    Raises:
        InvalidInput: settings or data that cannot be used.
    """
    check_settings("metrics", job.metrics, evaluate, given=("posterior", "dataset", "rng"))
    check_request(**job.metrics)  # rather than after a long fit
    method = build("method", job.method, Method)  # type: ignore[type-abstract]  # it serves isinstance alone
    dataset = _dataset(job.data)
    columns |= dataset_columns(dataset)

    enter("fit")
    start = time.perf_counter()
    with naming_keys("method", job.method):
        posterior = method.fit(dataset, stream(job.seed, "method"))
    columns["fit_seconds"] = time.perf_counter() - start
    enter("evaluate")
    start = time.perf_counter()
    metrics = evaluate(posterior, dataset, rng=stream(job.seed, "metrics"), **job.metrics)
    columns["eval_seconds"] = time.perf_counter() - start
    columns["peak_memory_mb"] = posterior.diagnostics.get("peak_memory_mb") or peak_memory_mb()
    return Result(
        dataset=dataset,
        posterior=posterior,
        # NaN would read as missing in the store, so it is given its reason here.
        metrics={name: Undefined("not a number") if value != value else value for name, value in metrics.items()},
        fit_seconds=columns["fit_seconds"],
        eval_seconds=columns["eval_seconds"],
        peak_memory_mb=columns["peak_memory_mb"],
    )


def _dataset(settings: Mapping[str, Any]) -> Dataset:
    try:
        with np.errstate(over="raise", invalid="raise"):
            return build("data", settings, Dataset)
    except FloatingPointError as error:
        key, value = max(_numbers("data", settings), key=lambda item: abs(item[1]), default=("data", None))
        raise InvalidInput(
            f"{key}: expected settings that give finite data, got {value} ({error}); lower it"
        ) from error


def _numbers(key: str, value: object) -> Iterator[tuple[str, float]]:
    """Dotted keys and values of all numbers in nested settings."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _numbers(f"{key}.{name}", item)
    elif isinstance(value, int | float):
        yield key, value


def metric_rows(result: Result) -> list[dict[str, Any]]:
    """The columns status, metric, value and undefined_reason, one row per metric."""
    return [
        {"status": "ok", "metric": name, "value": None, "undefined_reason": value.reason}
        if isinstance(value, Undefined)
        else {"status": "ok", "metric": name, "value": float(value), "undefined_reason": None}
        for name, value in result.metrics.items()
    ]
