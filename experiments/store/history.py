"""The versions of the store, told from its log alone: none of them is opened and no row is read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

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
        return list(_versions(logs, _sizes(store, first) if first else None))


def _versions(logs: list[Path], start: dict[str, int] | None) -> Iterator[Version]:
    """`start` is the number of rows of every file in the first version, where earlier ones are gone."""
    sizes = start or {}
    rows = sum(sizes.values())
    for index, path in enumerate(logs):
        actions = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        info: dict[str, Any] = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
        files = [action["add"] for action in actions if "add" in action]
        stats = [json.loads(file["stats"]) for file in files]
        removed = sum(sizes.pop(action["remove"]["path"], 0) for action in actions if "remove" in action)
        added = sum(each["numRecords"] for each in stats) - removed
        if index or start is None:
            rows += added
        sizes |= {file["path"]: each["numRecords"] for file, each in zip(files, stats, strict=True)}
        bounds = {each.get(bound, {}).get("git_commit") for each in stats for bound in ("minValues", "maxValues")}
        commits = tuple(sorted(bounds - {None})) if added else ()  # a compaction adds no rows
        yield Version(int(path.stem), _time(info), info.get("operation", ""), added, rows, commits)


def _sizes(store: ResultStore, version: int) -> dict[str, int]:
    files = pa.table(store.delta(version).get_add_actions(flatten=True))
    return dict(zip(files["path"].to_pylist(), files["num_records"].to_pylist(), strict=True))


def _time(info: Mapping[str, Any]) -> datetime | None:
    return datetime.fromtimestamp(info["timestamp"] / 1000, UTC) if "timestamp" in info else None
