"""Gather the many small files that appends leave in a few large ones; every version stays readable."""

from __future__ import annotations

from typing import NamedTuple

from deltalake.exceptions import CommitFailedError

from experiments.locks import alone
from experiments.store.result_store import COMMIT_ONLY, COMMITS, ResultStore, checkpoint

_ATTEMPTS = 20  # each gives up after 15 commits of other processes, whatever COMMITS says


class Compaction(NamedTuple):
    """What a compaction did: files of rows that the newest version had, and has now, and its number."""

    files_before: int
    files_after: int
    version: int


def compact(store: ResultStore) -> Compaction:
    """Write the rows of the newest version anew into few files, as a new version; nothing is deleted from the disk.

    Rows can be appended at the same time; a second compaction waits for the first. Where there is nothing to gather no
    version is added. Files that a killed process left behind are not touched.

    Raises:
        InvalidInput: there is no store, or it cannot be written to.
        StoreWriteError: the commit failed; the store is as it was.
    """
    store.delta()
    store.check_writable()
    # Of two compactions at once deltalake would keep both copies of the rows.
    with store.writing(), alone(store.maintenance_lock):
        for attempt in range(1, _ATTEMPTS + 1):
            delta = store.delta()
            before = len(delta.file_uris())
            try:
                done = delta.optimize.compact(commit_properties=COMMITS, post_commithook_properties=COMMIT_ONLY)
                break
            except CommitFailedError:  # nothing was committed
                if attempt == _ATTEMPTS:
                    raise
    if done["numFilesRemoved"]:
        checkpoint(delta)
    return Compaction(before, before - done["numFilesRemoved"] + done["numFilesAdded"], int(delta.version()))
