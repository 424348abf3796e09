"""How a job says that it ended: a line for the user and `metrics.json` in its run directory."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TextIO

OK, FAILED, INVALID = 0, 1, 2  # exit codes
OUTCOME = "metrics.json"
POSTERIOR = "posterior.npz"  # beside it, of methods that answer queries
FINISHED = ("ok", "skipped")


class Ended(NamedTuple):
    """How a job ended: `ok`, `skipped`, `failed`, `timeout` or `invalid`; the id is None if its config has none."""

    status: str
    job_id: str | None

    @property
    def code(self) -> int:
        """The exit code."""
        return OK if self.status in FINISHED else INVALID if self.status == "invalid" else FAILED


def say(text: str) -> None:
    """Write text for the user to stdout."""
    write(sys.stdout, text)


def complain(message: str) -> None:
    """Write one line that begins with `error:` to stderr."""
    write(sys.stderr, f"error: {message}")


def warn(message: str) -> None:
    """Write one line that begins with `warning:` to stderr."""
    write(sys.stderr, f"warning: {message}")


def write(stream: TextIO, text: str) -> None:
    """Write a line at once; a reader that has gone or a full disk must not end a job that is otherwise well."""
    with suppress(OSError):
        stream.write(text + "\n")
        stream.flush()


def drop_unwritten() -> None:
    """Let go of what nobody takes: Python would write it when it ends, and end with code 120 if it cannot."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def one_line(error: BaseException) -> str:
    """The message of an exception in one line."""
    return " ".join(str(error).split()) or type(error).__name__


def write_outcome(run_dir: Path, outcome: Mapping[str, Any]) -> None:
    """Write `metrics.json`; every job that comes to an end leaves one, with its `status`.

    Raises:
        OSError: it cannot be written.
    """
    text = json.dumps(outcome, indent=2, allow_nan=False)
    (run_dir / OUTCOME).write_text(text + "\n", encoding="utf-8")


def read_outcome(run_dir: Path) -> dict[str, Any]:
    """What `metrics.json` of the run directory holds; empty if there is none that can be read."""
    try:
        outcome = json.loads((run_dir / OUTCOME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return outcome if isinstance(outcome, dict) else {}


def holds_numbers(run_dir: Path, job_id: str) -> bool:
    """Whether `metrics.json` of the run directory has the numbers of this job."""
    outcome = read_outcome(run_dir)
    return outcome.get("job_id") == job_id and "metrics" in outcome


def log_traceback(run_dir: Path) -> str:
    """Write the traceback of the current exception to `error.log` in the run directory; returns where to see it."""
    path = run_dir / "error.log"
    try:
        path.write_text(traceback.format_exc(), encoding="utf-8")
    except OSError as error:
        return f"its traceback could not be written ({one_line(error)})"
    return f"see {path}"
