"""What is in a `.wandb` file: records of wandb's protocol in LevelDB's log format."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wandb.proto import wandb_internal_pb2

_BLOCK, _HEADER = 32768, 7  # bytes; the file begins with seven of its own, in its first block
_FULL, _FIRST, _LAST = 1, 2, 4


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
    """Read all records of a run; a damaged file raises."""
    read = WandbRun()
    for content in _records(file.read_bytes()):
        record = wandb_internal_pb2.Record.FromString(content)
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


def _records(content: bytes) -> Iterator[bytes]:
    assert content[:4] == b":W&B"
    at, parts = _HEADER, b""
    while at + _HEADER <= len(content):
        if _BLOCK - at % _BLOCK < _HEADER:
            at += _BLOCK - at % _BLOCK
            continue
        checksum, length, kind = struct.unpack("<IHB", content[at : at + _HEADER])
        part = content[at + _HEADER : at + _HEADER + length]
        assert checksum == zlib.crc32(bytes([kind]) + part)
        parts = part if kind in (_FULL, _FIRST) else parts + part
        if kind in (_FULL, _LAST):
            yield parts
        at += _HEADER + length
