"""Stands in for a package that misbehaves, in the process of a fit: does what `settings["do"]` says."""

from __future__ import annotations

import logging
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from baselines.isolation import FittedGraphs
from bci.errors import InvalidInput


def fit(observations, settings, seed):
    diagnostics = {
        "seed": seed,
        "draws": [random.random(), float(np.random.random())],  # noqa: NPY002
        "hash": hash("a text"),
        "sum": float(observations.sum()),
        "folder": os.getcwd(),
        "process": os.getpid(),
        "threads": os.environ["OMP_NUM_THREADS"] + os.environ["RAYON_NUM_THREADS"],
    }
    _ACTIONS[settings["do"]](settings)
    num_nodes = observations.shape[1]
    graphs = np.zeros((2, num_nodes, num_nodes))
    graphs[1, 0, 1] = 1
    return FittedGraphs(graphs, np.array([0.25, 0.75]), "dag", diagnostics)


def upset_everything(_):
    sys.stdout.write("noise on stdout\n")
    sys.stderr.write("noise on stderr\n")
    os.system("echo noise from a shell")
    logging.getLogger().setLevel(logging.DEBUG)
    Path("psets.npy").write_text("left behind")
    os.environ["UPSET"] = "1"


def say_and_raise(_):
    for line in range(150):
        sys.stdout.write(f"line {line}\n")
    raise FloatingPointError("the matrix is singular")


def start_a_child_and_sleep(settings):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(settings["file"]).write_text(f"{os.getpid()} {child.pid}")
    sys.stdout.write("iteration 7\n")
    sys.stdout.flush()
    time.sleep(600)


def leave_a_child_behind(settings):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(settings["file"]).write_text(f"{os.getpid()} {child.pid}")


def leave(_):
    sys.stdout.write("INFFI\n")
    sys.exit()


def refuse(_):
    raise InvalidInput("K: expected less")


def take_memory(_):
    np.ones(50_000_000)  # 400 MB


_ACTIONS = {
    "nothing": lambda _: None,
    "upset": upset_everything,
    "raise": say_and_raise,
    "sleep": start_a_child_and_sleep,
    "orphan": leave_a_child_behind,
    "leave": leave,
    "refuse": refuse,
    "memory": take_memory,
}
