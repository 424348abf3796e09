"""Runs a packaged method in a process of its own, so that nothing it does to its surroundings reaches the caller."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from baselines.memory import peak_memory_mb
from bci.dataset import Floats
from bci.errors import InvalidInput
from bci.posterior import GraphPosterior

_HERE = Path(__file__).resolve().parent.parent
MAX_SEED = 2**32 - 1  # of numpy's global generator
THREAD_CAPS = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "RAYON_NUM_THREADS",
)
_LOOK_EVERY_SECONDS = 0.05
_LINES_IN_MESSAGE, _LINES_IN_NOTE = 3, 100
_LONGEST_SAID = 400
_BYTES_READ = 100_000  # of the output, from its end


class MethodFailed(RuntimeError):
    """The process of a method ended without an answer; the message holds the last lines of what it said.

    Args:
        message: one or more lines.
        peak_memory_mb: the most memory that process was seen to hold, in 10^6 bytes; None if not known.
    """

    def __init__(self, message: str, peak_memory_mb: float | None = None) -> None:
        super().__init__(message)
        self.peak_memory_mb = peak_memory_mb


class MethodTimeout(MethodFailed):
    """The process of a method was ended at its time limit."""


def fit_in_process(
    module: str,
    observations: Floats,
    settings: Mapping[str, Any],
    seed: int,
    *,
    packages: Sequence[str] = (),
    timeout_seconds: float | None = None,
) -> GraphPosterior:
    """Call `fit(observations, settings, seed) -> GraphPosterior` of a module in a new process and return its answer.

    The process has one thread, its own working directory, standard streams and session; the global generators of
    `random`, numpy and torch and the hash seed are seeded. It, and all that it started, ends when `fit` ends, at the
    time limit, and when an exception such as KeyboardInterrupt ends the wait for it. When this process is killed by a
    signal that raises nothing here, it ends too (on Linux), but what it started goes on, and its folder under the
    system's temporary folder stays.

    Needs `os.waitid`, which Linux has, and macOS from Python 3.13 on.

    Args:
        module: dotted name.
        observations: (N, d).
        settings: plain values, as in JSON.
        seed: 0 to `MAX_SEED`.
        packages: imported before the generators are seeded.
        timeout_seconds: wall-clock limit, start of the process included; None for no limit.

    Returns:
        The answer; its diagnostics get `peak_memory_mb`, the most memory that the process held, in 10^6 bytes, if the
        system tells.

    Raises:
        InvalidInput: what `fit` raised.
        MethodTimeout: the time limit was reached.
        MethodFailed: the process was killed, or ended without an answer.
    """
    with tempfile.TemporaryDirectory(prefix="bci-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "work").mkdir()
        np.save(folder / "observations.npy", observations, allow_pickle=False)
        request = {
            "module": module,
            "settings": dict(settings),
            "seed": seed,
            "packages": list(packages),
            "parent": os.getpid(),
        }
        (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
        ended = _run(folder, seed, timeout_seconds)
        if ended.timed_out:
            raise _error(MethodTimeout, f"stopped at its time limit of {timeout_seconds:g} s", folder, ended)
        if ended.code < 0:
            names = {known.value: known.name for known in signal.Signals}
            name_of_signal = names.get(-ended.code, "real-time")
            raise _error(MethodFailed, f"killed by signal {-ended.code} ({name_of_signal})", folder, ended)
        if ended.code > 0:
            raise _error(MethodFailed, f"ended with exit code {ended.code}", folder, ended)
        if not (folder / "answer.json").exists():
            raise _error(MethodFailed, "ended without an answer", folder, ended)
        return _answer(folder)


@dataclass(frozen=True)
class _Ended:
    """`code` as in `subprocess`: minus the signal that killed it."""

    code: int
    timed_out: bool
    peak_memory_mb: float | None


def _run(folder: Path, seed: int, timeout_seconds: float | None) -> _Ended:
    """Start the worker, wait for its end, and end whatever it leaves behind."""
    deadline = time.monotonic() + (math.inf if timeout_seconds is None else timeout_seconds)
    process: subprocess.Popen[bytes] | None = None
    peak, timed_out = None, False
    try:
        with (folder / "output.txt").open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "baselines.worker", str(folder)],
                cwd=folder / "work",
                env=_environment(seed),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        # Without reaping it, so that its number, and with it the group's, cannot be given to another process.
        while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            peak = max(peak or 0.0, peak_memory_mb(process.pid) or 0.0) or None
            left = deadline - time.monotonic()
            if left <= 0:
                timed_out = True
                break
            time.sleep(min(_LOOK_EVERY_SECONDS, left))
    finally:
        if process is not None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return _Ended(process.returncode, timed_out, peak)


def _environment(seed: int) -> dict[str, str]:
    """The caller's environment and import path, one thread for every library, and a fixed hash seed."""
    path = [str(_HERE), *(os.path.abspath(entry) for entry in sys.path)]  # first, or folders of that name would hide it
    return {
        **os.environ,
        **dict.fromkeys(THREAD_CAPS, "1"),
        "PYTHONHASHSEED": str(seed),
        "PYTHONPATH": os.pathsep.join(path),
        "PYTHONUNBUFFERED": "1",
        "MPLBACKEND": "Agg",
    }


def _answer(folder: Path) -> GraphPosterior:
    answer = json.loads((folder / "answer.json").read_text(encoding="utf-8"))
    if "invalid" in answer:
        raise InvalidInput(answer["invalid"])
    graphs, weights = (np.load(folder / f"{name}.npy", allow_pickle=False) for name in ("graphs", "weights"))
    return GraphPosterior(graphs, weights, answer["graph_kind"], answer["diagnostics"])


def _error(kind: type[MethodFailed], what: str, folder: Path, ended: _Ended) -> MethodFailed:
    """An error whose message ends with the last lines of the output, and whose note holds more of them."""
    with (folder / "output.txt").open("rb") as output:
        output.seek(max(0, output.seek(0, os.SEEK_END) - _BYTES_READ))
        text = output.read().decode(errors="replace")
    lines = [line.rstrip() for line in text.splitlines() if line.strip(" ~^")]  # not what underlines code
    said = "\n".join(lines[-_LINES_IN_MESSAGE:])[-_LONGEST_SAID:]
    error = kind(f"{what}; it said: {said}" if said else f"{what}; it said nothing", ended.peak_memory_mb)
    if lines:
        error.add_note("\n".join(["The last lines of its output:", *lines[-_LINES_IN_NOTE:]]))
    return error
