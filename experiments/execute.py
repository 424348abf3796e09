"""Run one job: fit, evaluate, store; whatever goes wrong ends as a status, never as a traceback on the terminal."""

from __future__ import annotations

import re
import signal
import traceback
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from baselines.isolation import MethodFailed, MethodTimeout
from bci.errors import InvalidInput
from experiments.claims import claim
from experiments.job import Job, job_columns
from experiments.outcome import POSTERIOR, Ended, complain, holds_numbers, log_traceback, one_line, say, write_outcome
from experiments.progress import enter, running_job
from experiments.provenance import peak_memory_mb, provenance, reset_peak_memory
from experiments.store import ResultStore, StoreWriteError
from experiments.tracking import tracking_of


def execute(cfg: DictConfig, *, method_name: str, data_name: str, run_dir: Path, sweep: str | None = None) -> Ended:
    """Run the job that a composed config describes and report to the terminal.

    A job that is in the store with status ok is skipped unless `force`. Rows go to the store, files to `run_dir`.
    Bad input ends in one line on stderr, and in a row of status invalid if the job had begun, that is if its config
    was in order and the store could be written to. A method that reaches its time limit ends in one line, a row of
    status timeout and what it said in `run_dir/error.log`; any other error likewise, with status failed and the
    traceback. Numbers that `run_dir` holds of this job are kept where it is skipped. A job that another process works
    on is waited for, and skipped if that one finished it. Tracking is told of every job that has begun, as one of
    `sweep` if that is its name.
    """
    try:
        job = Job.from_config(cfg, method_name, data_name)
        tracking = tracking_of(job)
        store = ResultStore(job.store_path)
        if store.done(job.job_id) and not job.force:
            return _skip(job, run_dir)
        store.prepare()
    except InvalidInput as error:
        write_outcome(run_dir, {"status": "invalid", "error": one_line(error)})
        (run_dir / POSTERIOR).unlink(missing_ok=True)
        complain(one_line(error))
        return Ended("invalid", None)
    waiting = f"job {job.job_id} runs in another process now: waiting for it to end"
    with claim(store.path, job.job_id, waiting=lambda: say(waiting)):
        if not job.force and _stored_meanwhile(store, job.job_id):
            return _skip(job, run_dir)
        return _run_claimed(job, store, run_dir, tracking.job(job, run_dir, sweep))


def _run_claimed(job: Job, store: ResultStore, run_dir: Path, tracked: AbstractContextManager[None]) -> Ended:
    (run_dir / POSTERIOR).unlink(missing_ok=True)  # of another job in the same folder
    reset_peak_memory()
    columns = {
        **job_columns(job),
        **provenance(),
        "run_id": uuid.uuid4().hex,
        "started_at": datetime.now(UTC),
        "device": str(job.method.get("device") or "cpu"),
    }
    with running_job(job.label), tracked:
        return _attempt(_Run(job, store, run_dir, columns))


def _skip(job: Job, run_dir: Path) -> Ended:
    if not holds_numbers(run_dir, job.job_id):
        write_outcome(run_dir, {"status": "skipped", "job_id": job.job_id})
    say(f"job {job.job_id} already in {job.store_path} (status ok): skipped; force=true runs it again")
    return Ended("skipped", job.job_id)


def _stored_meanwhile(store: ResultStore, job_id: str) -> bool:
    """Whether another process finished the job between the first look into the store and the claim."""
    try:
        return store.done(job_id)
    except InvalidInput:  # damaged since; the append will say so
        return False


@dataclass(frozen=True)
class _Run:
    """A job that has begun; `columns` holds what its rows have in common and fills as the job goes on."""

    job: Job
    store: ResultStore
    run_dir: Path
    columns: dict[str, Any]

    def append(self, rows: list[dict[str, Any]]) -> int:
        return self.store.append([{**self.columns, **row} for row in rows])


def _attempt(run: _Run) -> Ended:
    what = f"{run.job.method_name} on {run.job.data_name}"
    try:
        return _fit_and_store(run)
    except KeyboardInterrupt:
        raise
    except InvalidInput as error:
        return _record_end(run, "invalid", one_line(error), one_line(error))
    except MethodFailed as error:
        run.columns["peak_memory_mb"] = error.peak_memory_mb
        status, reason = "timeout" if isinstance(error, MethodTimeout) else "failed", one_line(error)
        return _record_end(run, status, reason, f"{what}: {reason}; {log_traceback(run.run_dir)}")
    except BaseException as error:  # also a method's call of sys.exit and the panics of Rust extensions
        if isinstance(error, SystemExit) and _raised_by_a_signal(error):
            raise
        reason = _reason(error, run.job)
        return _record_end(run, "failed", reason, f"{what} failed, {reason}; {log_traceback(run.run_dir)}")


def _raised_by_a_signal(error: BaseException) -> bool:
    """Whether an exception comes from the handler of a signal: a worker of SLURM or Ray is told so to leave a job."""
    handlers = [signal.getsignal(number) for number in signal.valid_signals()]
    codes = {getattr(getattr(each, "__func__", each), "__code__", None) for each in handlers}
    return any(frame.f_code in codes for frame, _ in traceback.walk_tb(error.__traceback__))


def _fit_and_store(run: _Run) -> Ended:
    """Whatever goes wrong after the fit, what is known by then is written and stored as far as that can be done."""
    # Imported here, as torch takes seconds that a skipped job need not spend.
    from experiments.fit import evaluated, fitted, metric_rows
    from experiments.report import table, write_numbers, write_pictures, write_posterior

    fit = fitted(run.job, run.columns)
    unwritten = _unwritten(partial(write_posterior, fit, run.run_dir))
    result = evaluated(run.job, fit, run.columns)
    write = partial(write_numbers, run.job, result, run.run_dir)
    enter("store")
    unwritten = _unwritten(write) or unwritten
    try:
        version = run.append(metric_rows(result))
    except (InvalidInput, StoreWriteError) as error:
        _unwritten(partial(write, error=f"not stored: {one_line(error)}"))
        where = f"neither in {run.run_dir} ({one_line(unwritten)}) nor" if unwritten else f"in {run.run_dir} but not"
        complain(f"the results are {where} in the store: {one_line(error)}")
        return Ended("failed", run.job.job_id)
    say(table(run.job, result, store_version=version, run_dir=run.run_dir))
    try:
        if unwritten:
            raise unwritten
        write_pictures(run.job, result, run.run_dir)
    except Exception as error:
        lacking = "written" if error is unwritten else "drawn"
        _unwritten(partial(write, error=f"not {lacking}: {one_line(error)}"))
        log = log_traceback(run.run_dir)
        complain(f"the results are stored but could not be {lacking}, {one_line(error)}; {log}")
        return Ended("failed", run.job.job_id)
    return Ended("ok", run.job.job_id)


def _unwritten(write: Callable[[], None]) -> OSError | None:
    """Write files; returns the error if that cannot be done."""
    try:
        write()
    except OSError as error:
        return error
    return None


def _record_end(run: _Run, status: str, reason: str, message: str) -> Ended:
    """Record a job that ended without results and tell the user."""
    _unwritten(partial(write_outcome, run.run_dir, {"status": status, "job_id": run.job.job_id, "error": reason}))
    run.columns.setdefault("peak_memory_mb", peak_memory_mb())
    try:
        run.append([{"status": status, "error": reason}])
    except (InvalidInput, StoreWriteError) as error:
        message = f"{message}; nor could this be stored: {one_line(error)}"
    complain(message)
    return Ended(status, run.job.job_id)


_LARGE = {"method": "max_parents", "data": "num_nodes"}  # settings that memory grows with most


def _reason(error: BaseException, job: Job) -> str:
    """What an error that nobody foresaw says, and what to do where memory ran out."""
    said = f"{type(error).__name__}: {one_line(error)}"
    # torch raises a RuntimeError where there is too little for an array on the CPU
    if not (isinstance(error, MemoryError) or re.search("allocate memory|out of memory", str(error))):
        return said
    keys = [f"{group}.{key}" for group, key in _LARGE.items() if key in getattr(job, group)]
    return f"out of memory ({said}); reduce {' or '.join(keys or ['the number of variables'])}"
