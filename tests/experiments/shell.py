"""The command line started from the shell, with the stand-ins at hand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from experiments.command import CONFIGS


def from_the_shell(folder: Path, *arguments: str, own_session: bool = False) -> subprocess.Popen[str]:
    """Start the command line in a folder whose modules come first."""
    paths = os.pathsep.join([str(folder), str(CONFIGS.parent), str(Path(__file__).parent)])
    return subprocess.Popen(
        [sys.executable, "-m", "experiments.run", *arguments],
        cwd=folder,
        env={**buffered(), "PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=own_session,
    )


def buffered() -> dict[str, str]:
    """The environment, in which Python writes what is left of its output when it ends."""
    return {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}


def errors(text: str) -> list[str]:
    """The lines that a sweep writes to stderr, those on its progress left out."""
    return [line for line in text.splitlines() if not re.match(r"\d+/\d+ done", line)]
