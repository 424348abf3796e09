"""The process that a packaged method runs in: `python -m baselines.worker FOLDER`, started by `baselines.isolation`.

FOLDER holds `request.json` and `observations.npy`; the answer goes there too. Without one, the method has failed.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import random
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np

from baselines.isolation import FittedGraphs
from baselines.memory import peak_memory_mb
from bci.errors import InvalidInput

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def main(folder: Path) -> None:
    """Answer the request in `folder`; errors of the method end the process with a traceback."""
    request = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    _die_with(request["parent"])
    for package in request["packages"]:
        importlib.import_module(package)
    fit = importlib.import_module(request["module"]).fit
    seed_global_generators(request["seed"])
    observations = np.load(folder / "observations.npy", allow_pickle=False)
    try:
        fitted: FittedGraphs = fit(observations, request["settings"], request["seed"])
    except InvalidInput as error:
        _write(folder, {"invalid": str(error)})
        return
    np.save(folder / "answer-graphs.npy", np.asarray(fitted.graphs, dtype=bool), allow_pickle=False)
    if fitted.weights is not None:
        np.save(folder / "answer-weights.npy", np.asarray(fitted.weights, dtype=np.float64), allow_pickle=False)
    peak = peak_memory_mb()
    diagnostics = {**fitted.diagnostics, **({} if peak is None else {"peak_memory_mb": peak})}
    _write(folder, {"graph_kind": fitted.graph_kind, "diagnostics": diagnostics})


def seed_global_generators(seed: int) -> None:
    """Seed the generators that packages use unasked; torch's if it is loaded."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002  # the packages use this one
    if "torch" in sys.modules:
        torch = sys.modules["torch"]
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        torch.set_num_interop_threads(1)


def _die_with(parent: int) -> None:
    """Have the system kill this process when its parent dies, even if that is killed (Linux only)."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before that
        os._exit(1)


def _write(folder: Path, answer: dict[str, Any]) -> None:
    """All of the answer or nothing."""
    draft = folder / "answer.draft"
    draft.write_text(json.dumps(answer, default=_plain), encoding="utf-8")
    draft.rename(folder / "answer.json")


def _plain(value: np.ndarray[Any, Any] | np.generic) -> object:
    plain: object = value.tolist()
    return plain


if __name__ == "__main__":
    main(Path(sys.argv[1]))
