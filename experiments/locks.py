"""A lock that processes of one machine wait for."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def alone(file: Path) -> Iterator[None]:
    """Wait until no other process is in such a block with the same file, which is made if it is not there.

    The lock ends with the process, so a killed one leaves none behind.

    Raises:
        OSError: the file cannot be written to.
    """
    with file.open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
