"""Tell others of a job while it runs and when it has ended; what goes wrong here is a warning and never fails a job."""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from bci.errors import InvalidInput
from experiments.build import build
from experiments.job import Job
from experiments.outcome import OUTCOME, one_line, warn
from experiments.wandb_log import is_complete

if TYPE_CHECKING:
    from wandb import Run

_SERIES = {"losses": "orders/loss", "effective_sample_sizes": "orders/effective_sample_size"}  # one entry per step
_NUMBERS = ("fit_seconds", "eval_seconds", "peak_memory_mb")
_TABLE = "edge_probabilities.csv"
_PICTURES = ("edge_probabilities.png", "graph.png")
_START_SECONDS, _END_SECONDS, _WRITE_SECONDS = 20, 60, 20  # patience with the network and the disk


@runtime_checkable
class Tracking(Protocol):
    """Where jobs are told of."""

    def job(self, job: Job, run_dir: Path, sweep: str | None) -> AbstractContextManager[None]:
        """Around a job: it begins on entering, and on leaving `run_dir` holds its outcome and files.

        Args:
            sweep: name of the sweep that the job belongs to, if any.
        """
        ...


@dataclass(frozen=True)
class NoTracking:
    """Nobody is told."""

    def job(self, job: Job, run_dir: Path, sweep: str | None) -> AbstractContextManager[None]:  # noqa: ARG002
        """As `Tracking.job`."""
        return nullcontext()


@dataclass(frozen=True, kw_only=True)
class WandbTracking:
    """One run of Weights & Biases per job, with the id of the job, so that a job that runs again resumes its run.

    Args:
        mode: "offline" writes files for `wandb sync`, "online" uploads, "disabled" does nothing.
        project: name of the project.
        entity: user or team; None is the user's default.
        group: what the runs are grouped by; None is the sweep.
        tags: of every run.
        dir: where wandb writes its files; None is the run directory.
    """

    mode: Literal["offline", "online", "disabled"] = "offline"
    project: str = "bci"
    entity: str | None = None
    group: str | None = None
    tags: list[str] | None = None
    dir: str | None = None

    def __post_init__(self) -> None:
        if not 0 < len(self.project) <= 128 or re.search(r"[/\\#?%:]", self.project):
            raise InvalidInput(
                f"project: expected 1 to 128 characters without any of / \\ # ? % :, got {self.project!r}; "
                "set tracking.project=NAME"
            )
        for tag in self.tags or []:
            if not 0 < len(tag) <= 64:
                raise InvalidInput(f"tags: expected texts of 1 to 64 characters, got {tag!r}; shorten or drop it")

    @contextmanager
    def job(self, job: Job, run_dir: Path, sweep: str | None) -> Iterator[None]:
        """As `Tracking.job`; at most one warning per job."""
        if self.mode == "disabled":
            yield
            return
        warnings = _OneWarning()
        run = None
        with warnings:
            run = self._start(job, run_dir, sweep)
        outcome = {"status": "interrupted"}
        try:
            yield
            with warnings:
                outcome = _outcome(run_dir)
                if run is not None:
                    _log(run, outcome, run_dir, job.job_id)
        finally:
            with warnings:
                if run is not None:
                    _end(run, outcome)

    def _start(self, job: Job, run_dir: Path, sweep: str | None) -> Run:
        if importlib.util.find_spec("wandb") is None:
            raise _NotTracked("wandb is not installed; pip install '.[tracking]' or set tracking=none")
        import wandb

        wandb.setup(wandb.Settings(silent=True))  # or a login says that it succeeded
        if self.mode == "online" and not wandb.login(prompt=False):
            raise _NotTracked("no API key; run `wandb login`, set WANDB_API_KEY or set tracking.mode=offline")
        folder = Path(self.dir or run_dir).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):  # wandb would write elsewhere
            raise PermissionError(f"{folder} cannot be written to")
        run = wandb.init(
            id=job.job_id,
            resume="allow",
            reinit="create_new",
            mode=self.mode,
            project=self.project,
            entity=self.entity,
            group=self.group or sweep,
            name=job.label,
            tags=self.tags,
            dir=str(folder),
            config=_config(job),
            settings=wandb.Settings(
                silent=True,
                console="off",
                disable_git=True,
                disable_code=True,
                save_code=False,
                x_disable_stats=True,
                x_disable_meta=True,
                x_disable_machine_info=True,
                x_save_requirements=False,
                init_timeout=_START_SECONDS,
                finish_timeout=_END_SECONDS,
                finish_timeout_raises=True,
            ),
        )
        for handler in logging.getLogger("wandb").handlers:  # else a full disk is told of by the logging as well
            handler.handleError = _ignore  # type: ignore[method-assign]
        return run


def tracking_of(job: Job) -> Tracking:
    """What the group `tracking` of the config asks for.

    Raises:
        InvalidInput: unknown keys or values.
    """
    return build("tracking", job.tracking, Tracking) if job.tracking else NoTracking()  # type: ignore[type-abstract]


def _ignore(_: logging.LogRecord) -> None:
    """Leave out what cannot be written to wandb's own log."""


class _NotTracked(Exception):
    """Says itself why, and what to do."""


class _OneWarning:
    """A context, to be entered again and again, in which the first exception is a warning and others are nothing."""

    def __init__(self) -> None:
        self._warned = False

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if isinstance(error, Exception) and not self._warned:
            self._warned = True
            reason = one_line(error) if isinstance(error, _NotTracked) else f"{type(error).__name__}: {one_line(error)}"
            warn(f"tracking: this job is not or not fully tracked, its results are not affected: {reason}")
        return isinstance(error, Exception)


def _config(job: Job) -> dict[str, Any]:
    return {
        "job_id": job.job_id,
        "data_name": job.data_name,
        "method_name": job.method_name,
        "data": job.data,
        "method": job.method,
        "metrics": job.metrics,
        "seed": job.seed,
        "store": {"path": str(job.store_path)},
        "force": job.force,
        "tracking": job.tracking,
    }


def _outcome(run_dir: Path) -> dict[str, Any]:
    outcome = json.loads((run_dir / OUTCOME).read_text(encoding="utf-8"))
    assert isinstance(outcome, dict)
    return outcome


def _log(run: Run, outcome: Mapping[str, Any], run_dir: Path, job_id: str) -> None:
    """Series by step, metrics and what they cost as the summary, then the files that the job has drawn and written."""
    import wandb

    diagnostics = outcome.get("diagnostics", {})
    run.define_metric("orders/*", step_metric="orders/step")  # not the step of wandb, which a resumed run goes on with
    series = {name: diagnostics[key] for key, name in _SERIES.items() if isinstance(diagnostics.get(key), list)}
    for step in range(max(map(len, series.values()), default=0)):
        values = {name: of_steps[step] for name, of_steps in series.items() if step < len(of_steps)}
        run.log({"orders/step": step} | {name: value for name, value in values.items() if value is not None})

    run.summary.update({name: value for name, value in outcome.get("metrics", {}).items() if value is not None})
    run.summary.update({f"undefined/{name}": reason for name, reason in outcome.get("undefined", {}).items()})
    run.summary.update({name: outcome[name] for name in _NUMBERS if name in outcome})
    scalars = {name: value for name, value in diagnostics.items() if isinstance(value, bool | int | float | str)}
    run.summary.update({f"diagnostics/{name}": value for name, value in scalars.items()})

    if outcome["status"] == "ok":  # else they are missing, or another job's in the same folder
        run.log({Path(name).stem: wandb.Image(str(run_dir / name)) for name in _PICTURES})
        artifact = wandb.Artifact(f"edge_probabilities-{job_id}", type="edge_probabilities")
        artifact.add_file(str(run_dir / _TABLE), skip_cache=True, policy="immutable")
        run.log_artifact(artifact)


def _end(run: Run, outcome: Mapping[str, Any]) -> None:
    run.summary["status"] = outcome["status"]
    run.summary["error"] = outcome.get("error")  # also None, as a resumed run may hold one
    written = Path(run.settings.sync_file) if run.offline else None
    run.finish(exit_code=0 if outcome["status"] == "ok" else 1)
    if written is not None:
        _wait_for(written)


def _wait_for(written: Path) -> None:
    """Wait for the file of a finished run, which another process still writes to; it may also be unable to."""
    until = time.monotonic() + _WRITE_SECONDS
    while not is_complete(written):
        if time.monotonic() > until:
            raise OSError(f"{written} is not complete; is the disk full?")
        time.sleep(0.005)
