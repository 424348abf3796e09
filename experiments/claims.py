"""One process at a time works on a job: a claim is a lock that the kernel gives back when its holder dies."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

CLAIMS = "_claims"  # in the folder of the store; Delta Lake leaves names with an underscore alone


@contextmanager
def claim(store: Path, job_id: str, waiting: Callable[[], object]) -> Iterator[None]:
    """Hold the claim of a job for the block, waiting for the process that has it now, whichever machine it is on.

    All claims of a store are POSIX record locks on one empty file, each on the byte that the job's id names: no file is
    left per job, a process that is killed leaves no claim, and children do not inherit it. On a network file system
    it is as good as that system's locks; where there can be none, the block goes on without a claim. A process holds
    at most one claim at a time, as closing the file gives up all that it has there.

    Args:
        store: folder of a store that exists.
        job_id: hexadecimal.
        waiting: called once if another process has the claim.
    """
    place = int(job_id, 16) % 2**63  # the largest offset
    with ExitStack() as held:
        with suppress(OSError):  # of another user, or on a file system without locks
            file = held.enter_context(open(os.open(store / CLAIMS, os.O_RDWR | os.O_CREAT, 0o666), "wb", buffering=0))
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
            except (BlockingIOError, PermissionError):  # which of the two is up to the system
                waiting()
                fcntl.lockf(file, fcntl.LOCK_EX, 1, place)
        yield
