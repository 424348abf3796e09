"""The numbers of a job: build its data and method, fit, evaluate."""

from __future__ import annotations

import math
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
class Fitted:
    """A job whose method has been fitted, in seconds."""

    dataset: Dataset
    posterior: Posterior
    fit_seconds: float


@dataclass(frozen=True, eq=False)
class Result(Fitted):
    """A fitted and evaluated job; times in seconds, memory in MB.

    The memory is that of the process that the method ran in, if it had one of its own; else of the whole job.
    """

    metrics: Mapping[str, float | Undefined]
    eval_seconds: float
    peak_memory_mb: float


def fitted(job: Job, columns: dict[str, Any]) -> Fitted:
    """Build the data and the method of the job and fit, with a random stream of the job's seed.

    Args:
        columns: row columns that become known on the way are added here, so that an error can be recorded with them.

    Raises:
        InvalidInput: settings or data that cannot be used.
        TypeError, ValueError: what the method returns is no posterior over graphs on the variables.
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
    _check_posterior(posterior, dataset.num_nodes)
    return Fitted(dataset, posterior, columns["fit_seconds"])


def evaluated(job: Job, fit: Fitted, columns: dict[str, Any]) -> Result:
    """Evaluate the metrics of the job, with another random stream of its seed; `columns` as in `fitted`."""
    enter("evaluate")
    start = time.perf_counter()
    metrics = evaluate(fit.posterior, fit.dataset, rng=stream(job.seed, "metrics"), **job.metrics)
    columns["eval_seconds"] = time.perf_counter() - start
    columns["peak_memory_mb"] = fit.posterior.diagnostics.get("peak_memory_mb") or peak_memory_mb()
    return Result(
        **vars(fit),
        metrics={name: _storable(value) for name, value in metrics.items()},
        eval_seconds=columns["eval_seconds"],
        peak_memory_mb=columns["peak_memory_mb"],
    )


def _check_posterior(posterior: object, num_nodes: int) -> None:
    """Whether a method, which may be a plugin, kept to the contract."""
    if not isinstance(posterior, Posterior):
        raise TypeError(f"expected a posterior from the method's _fit, got {type(posterior).__name__}; correct it")
    probabilities = np.asarray(posterior.edge_probabilities)
    expected = f"expected edge probabilities ({num_nodes}, {num_nodes}) from 0 to 1 with a zero diagonal"
    if probabilities.shape != (num_nodes, num_nodes):
        raise ValueError(f"{expected} from the method's _fit, got shape {probabilities.shape}; correct it")
    wrong = ~((probabilities >= 0) & (probabilities <= 1)) | np.diag(probabilities.diagonal() != 0)
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        raise ValueError(f"{expected} from the method's _fit, got {probabilities[i, j]} at [{i}, {j}]; correct it")


def _storable(value: float | Undefined) -> float | Undefined:
    """A value as the store and JSON know it: NaN would read as missing, so it is given its reason here."""
    if isinstance(value, Undefined):
        return value
    number = float(value)
    if math.isnan(number):
        return Undefined("not a number")
    return number if math.isfinite(number) else Undefined("infinite")


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
        else {"status": "ok", "metric": name, "value": value, "undefined_reason": None}
        for name, value in result.metrics.items()
    ]
