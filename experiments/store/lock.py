"""One command at a time looks after a store; jobs may append to it meanwhile."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

from experiments.store.result_store import LOG, ResultStore

_LOCK = ".maintenance.lock"


@contextmanager
def alone(store: ResultStore) -> Iterator[None]:
    """Wait until no other process holds the lock of the store, which must exist.

    The lock ends with the process, so a killed one leaves none behind.
    """
    with (store.folder / LOG / _LOCK).open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
