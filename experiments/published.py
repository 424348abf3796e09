"""What is published under `results/`: tables beside the printed numbers, and figures, read back from their files."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bci.errors import InvalidInput
from experiments.outcome import one_line

_NUMBERS = ("ours_mean", "ours_ci95", "num_models", "num_failed", "num_undefined", "printed_mean", "printed_ci95")
_NEEDED = ("method", "metric", *_NUMBERS, "mark")
_BESIDE = ("variant",)  # says more of a method
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Cell:
    """One metric of one method: ours and the paper's, NaN where there is none, and the mark of the comparison.

    `printed` is what the paper prints, with its number of digits; '' where it prints nothing.
    """

    ours_mean: float
    ours_ci95: float
    num_models: float
    num_failed: float
    num_undefined: float
    printed_mean: float
    printed_ci95: float
    mark: str
    printed: str


@dataclass(frozen=True)
class Group:
    """A part of a table that is shown as one, for example a graph model and a number of samples.

    Args:
        keys: what its cells share, column to value.
        methods, metrics: in the order of the file.
        cells: by method and metric.
    """

    keys: dict[str, str]
    methods: list[str]
    metrics: list[str]
    cells: dict[tuple[str, str], Cell]


@dataclass(frozen=True)
class PublishedTable:
    """A table and its manifest."""

    name: str
    groups: list[Group]
    manifest: dict[str, Any]


@dataclass(frozen=True)
class PublishedFigure:
    """A picture as PNG and what its JSON file says about it; nothing if there is no such file."""

    name: str
    png: bytes
    facts: dict[str, Any]
    beside: list[str]  # names of the other files of the figure


def read_tables(folder: Path) -> list[PublishedTable]:
    """The tables in `folder/NAME/NAME.csv`, by name; none where there is no folder.

    Raises:
        InvalidInput: a file that cannot be read or is no such table.
    """
    paths = sorted(path / f"{path.name}.csv" for path in _entries("tables", folder) if path.is_dir())
    return [_table(path) for path in paths if path.is_file()]


def read_figures(folder: Path) -> list[PublishedFigure]:
    """The figures in `folder/NAME.png`, by name; none where there is no folder.

    Raises:
        InvalidInput: a file that cannot be read.
    """
    entries = _entries("figures", folder)
    figures = []
    for path in sorted(entries):
        if path.suffix == ".png":
            beside = sorted(
                other.name for other in entries if other.stem == path.stem and other.suffix in (".pdf", ".csv")
            )
            figures.append(PublishedFigure(path.stem, _bytes(path), _json(path.with_suffix(".json")), beside))
    return figures


def _entries(key: str, folder: Path) -> list[Path]:
    if folder.exists() and not folder.is_dir():
        raise InvalidInput(f"{key}: expected a folder, got the file '{folder}'; name the folder it is in")
    return list(folder.iterdir()) if folder.is_dir() else []


def _table(path: Path) -> PublishedTable:
    try:
        lines = list(csv.reader(_bytes(path).decode("utf-8").splitlines(), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise _unreadable(path, one_line(error)) from error
    header, *rows = lines or [[]]
    missing = [column for column in _NEEDED if column not in header]
    if missing:
        raise _unreadable(path, f"no column {', '.join(missing)}")
    shared = [column for column in header if column not in (*_NEEDED, *_BESIDE)]
    groups: dict[tuple[str, ...], Group] = {}
    for number, values in enumerate(rows, start=2):
        if len(values) != len(header):
            raise _unreadable(path, f"line {number} has {len(values)} cells, not {len(header)}")
        row = dict(zip(header, values, strict=True))
        keys = {column: row[column] for column in shared}
        group = groups.setdefault(tuple(keys.values()), Group(keys, [], [], {}))
        _add(group, row, path, number)
    return PublishedTable(path.parent.name, list(groups.values()), _json(path.with_name(MANIFEST)))


def _add(group: Group, row: dict[str, str], path: Path, number: int) -> None:
    method, metric = row["method"], row["metric"]
    if (method, metric) in group.cells:
        raise _unreadable(path, f"line {number} has {metric} of {method} a second time")
    try:
        numbers = [float(row[column]) if row[column] else math.nan for column in _NUMBERS]
    except ValueError as error:
        raise _unreadable(path, f"line {number}: {one_line(error)}") from error
    printed = " ± ".join(text for text in (row["printed_mean"], row["printed_ci95"]) if text)
    group.cells[method, metric] = Cell(*numbers, row["mark"], printed)
    _append_new(group.methods, method)
    _append_new(group.metrics, metric)


def _append_new(names: list[str], name: str) -> None:
    if name not in names:
        names.append(name)


def _json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        found = json.loads(_bytes(path).decode("utf-8"))
    except ValueError as error:
        raise _unreadable(path, one_line(error)) from error
    if not isinstance(found, dict):
        raise _unreadable(path, "not an object")
    return found


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error.strerror or one_line(error)) from error


def _unreadable(path: Path, reason: str) -> InvalidInput:
    return InvalidInput(f"{path}: expected a published table or figure, got another file ({reason}); build it again")
