"""Where a result came from: code, packages, machine, and the memory it took."""

from __future__ import annotations

import json
import platform
import resource
import socket
import subprocess
import sys
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from baselines import memory

_ROOT = Path(__file__).resolve().parent.parent
_CLEAR = Path("/proc/self/clear_refs")
_CODE = ("bci", "baselines", "experiments", "conf")
_PACKAGES = (
    "bci",
    "causal-learn",
    "cdt",
    "deltalake",
    "gadjid",
    "gcastle",
    "hydra-core",
    "lingam",
    "networkx",
    "numpy",
    "pandas",
    "scikit-learn",
    "scipy",
    "sumu",
    "torch",
)


def provenance() -> dict[str, Any]:
    """The columns of a result row that tell which code on which machine made it."""
    commit, dirty = git_state(_ROOT)
    return {
        "git_commit": commit,
        "git_dirty": dirty,
        "package_versions": json.dumps(package_versions()),
        "host": socket.gethostname(),
    }


@cache
def git_state(root: Path) -> tuple[str | None, bool | None]:
    """The commit checked out at `root` and whether code or configs differ from it; None outside a git checkout."""
    top = _git(root, "rev-parse", "--show-toplevel")
    if top is None or Path(top).resolve() != root:
        return None, None
    commit = _git(root, "rev-parse", "--verify", "--quiet", "HEAD")
    changes = _git(root, "status", "--porcelain", "--", *[part for part in _CODE if (root / part).exists()])
    return commit, None if commit is None or changes is None else bool(changes)


@cache
def package_versions() -> dict[str, str]:
    """Versions of Python and of the packages that the numbers depend on, those that are installed."""
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions


def reset_peak_memory() -> None:
    """Start counting `peak_memory_mb` anew, where the system lets us (Linux)."""
    with suppress(OSError):
        _CLEAR.write_text("5", encoding="ascii")


def peak_memory_mb() -> float:
    """The most memory this process held since `reset_peak_memory`, in 10^6 bytes; since its start where that fails."""
    counted = memory.peak_memory_mb()
    if counted is not None:
        return counted
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6  # bytes there, KiB elsewhere


def _git(root: Path, *arguments: str) -> str | None:
    """Output of a git command, or None where there is no git, no repository or no answer."""
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
