"""What is in the `.wandb` file of a run, decoded."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from experiments.wandb_log import records


@dataclass
class WandbRun:
    """What was recorded of a run; values are decoded."""

    run: Any = None
    config: dict[str, Any] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)
    summary: dict[str, Any] = field(default_factory=dict)
    artifacts: list[Any] = field(default_factory=list)
    exit_code: int | None = None


def read_run(file: Path) -> WandbRun:
    """Read all records of a run."""
    read = WandbRun()
    for record in records(file):
        if record.HasField("run"):
            read.run = record.run
            read.config |= _items(record.run.config.update)
        if record.HasField("config"):
            read.config |= _items(record.config.update)
        if record.HasField("history"):
            read.history.append(_items(record.history.item))
        if record.HasField("summary"):
            read.summary |= _items(record.summary.update)
        if record.HasField("artifact"):
            read.artifacts.append(record.artifact)
        if record.HasField("request") and record.request.HasField("log_artifact"):
            read.artifacts.append(record.request.log_artifact.artifact)
        if record.HasField("exit"):
            read.exit_code = record.exit.exit_code
    return read


def _items(items: Any) -> dict[str, Any]:
    return {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in items}
