"""The versions of the store, told from its log alone: none of them is opened and no row is read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from experiments.store.result_store import LOG, ResultStore


class Version(NamedTuple):
    """A version of the store; `commits` are the git commits of the rows it added, the least and the greatest."""

    number: int
    time: datetime | None  # UTC
    operation: str
    added: int  # rows, less those that it removed
    rows: int
    commits: tuple[str, ...]


def history(store: ResultStore) -> list[Version]:
    """All versions, the oldest first; those whose log is gone are left out.

    Raises:
        InvalidInput: there is no store, or its log cannot be read.
    """
    newest = store.delta()
    with store.reading():
        logs = sorted(path for path in (store.folder / LOG).glob("*.json") if path.stem.isdecimal())
        logs = [path for path in logs if int(path.stem) <= newest.version()]
        first = int(logs[0].stem)
        sizes = _sizes(store, first - 1) if first else {}
        return list(_versions(logs, sizes))


def _versions(logs: list[Path], sizes: dict[str, int]) -> Iterator[Version]:
    """`sizes` is the number of rows of every file in the version before the first."""
    rows = sum(sizes.values())
    for path in logs:
        time, operation, added, commits = None, "", 0, set()
        for line in path.read_text(encoding="utf-8").splitlines():
            action = json.loads(line)
            if "commitInfo" in action:
                time = _time(action["commitInfo"])
                operation = action["commitInfo"].get("operation", "")
            elif "add" in action:
                stats = json.loads(action["add"]["stats"])
                sizes[action["add"]["path"]] = stats["numRecords"]
                added += stats["numRecords"]
                commits |= {stats[bound].get("git_commit") for bound in ("minValues", "maxValues") if bound in stats}
            elif "remove" in action:
                added -= sizes.pop(action["remove"]["path"])
        rows += added
        new = tuple(sorted(commits - {None})) if added else ()  # a compaction adds no rows
        yield Version(int(path.stem), time, operation, added, rows, new)


def _sizes(store: ResultStore, version: int) -> dict[str, int]:
    actions = store.delta(version).get_add_actions(flatten=True)
    paths, counts = (list(actions.column(name)) for name in ("path", "num_records"))
    return {str(path): int(str(count)) for path, count in zip(paths, counts, strict=True)}


def _time(info: Mapping[str, Any]) -> datetime | None:
    return datetime.fromtimestamp(info["timestamp"] / 1000, UTC) if "timestamp" in info else None
