"""Read the `.wandb` file of a run: records of wandb's protocol, framed as in the log files of LevelDB."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wandb.proto.wandb_internal_pb2 import Record

_BLOCK, _HEADER = 32768, 7  # bytes; the file begins with a header of its own, as long as that of a part
_FULL, _FIRST, _LAST = 1, 2, 4  # kinds of parts of a record; no part crosses the end of a block


def records(file: Path) -> Iterator[Record]:
    """The records that are in the file so far; it may still be written to.

    Raises:
        ValueError: the file is damaged, or is not of wandb.
    """
    from wandb.proto.wandb_internal_pb2 import Record

    for content in _contents(file.read_bytes()):
        yield Record.FromString(content)


def is_complete(file: Path) -> bool:
    """Whether the record that ends a run is there."""
    return file.exists() and any(record.HasField("exit") for record in records(file))


def _contents(log: bytes) -> Iterator[bytes]:
    if log[:4] != b":W&B"[: len(log)]:
        raise ValueError("not a file of wandb")
    at, parts = _HEADER, b""
    while at + _HEADER <= len(log):
        left = _BLOCK - at % _BLOCK
        if left < _HEADER:
            at += left
            continue
        checksum, length, kind = struct.unpack("<IHB", log[at : at + _HEADER])
        part = log[at + _HEADER : at + _HEADER + length]
        if len(part) < length:
            return
        if checksum != zlib.crc32(bytes([kind]) + part):
            raise ValueError(f"damaged at byte {at}")
        parts = part if kind in (_FULL, _FIRST) else parts + part
        if kind in (_FULL, _LAST):
            yield parts
        at += _HEADER + length
