"""Data sets from CSV files of the user, with an optional graph and an optional intervention mask."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bci.dataset import Bools, Dataset, Floats, check_graph
from bci.errors import InvalidInput

MISSING_VALUES = {"", "na", "n/a", "nan", "null", "none"}
EDGE_HEADERS = (("cause", "effect"), ("from", "to"), ("source", "target"), ("parent", "child"))


class Row(NamedTuple):
    """A row and its line number in the file."""

    line: int
    cells: list[str]


def csv_file(
    path: str | Path, graph_path: str | Path | None = None, intervened_path: str | Path | None = None
) -> Dataset:
    """Read a data set from comma-separated files in UTF-8.

    Args:
        path: data, one variable a column, with a header row of names.
        graph_path: the true graph. Either an adjacency matrix: a header row of all names in any order, entries 0 or
            1, row causes column, rows in the order of the header or labelled by a first column. Or an edge list:
            two columns, cause and effect, with or without a header row. Only one of `EDGE_HEADERS` that holds no name
            of a variable is such a header, in letters of either case.
        intervened_path: a mask of the data: the same names in any order, the same rows, 1 where the value was
            set by an intervention and 0 elsewhere.

    Raises:
        InvalidInput: a file that cannot be read or does not say what it should; the message names file and place.
    """
    names, raw = _read_data(path)
    graph = None if graph_path is None else _read_graph(graph_path, names)
    intervened = None if intervened_path is None else _read_mask(intervened_path, names, raw.shape[0])
    try:
        return Dataset.from_raw(raw, names, intervened=intervened, graph=graph)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from error


def _read_data(path: str | Path) -> tuple[list[str], Floats]:
    header, *rows = _read_rows(path)
    names = _names(path, header)
    _check_width(path, rows, len(names))
    values = [
        [_number(path, row.line, name, cell) for name, cell in zip(names, row.cells, strict=True)] for row in rows
    ]
    return names, np.array(values, dtype=np.float64).reshape(len(rows), len(names))


def _read_mask(path: str | Path, names: Sequence[str], num_rows: int) -> Bools:
    header, *rows = _read_rows(path)
    columns = _names(path, header)
    _check_same_names(path, columns, names, "the mask to have the columns of the data")
    if len(rows) != num_rows:
        raise InvalidInput(f"{path}: expected {num_rows} rows below the header, as the data, got {len(rows)}")
    _check_width(path, rows, len(columns))
    entries = _zeros_and_ones(path, rows, columns)
    mask: Bools = entries[:, [columns.index(name) for name in names]]
    return mask


def _read_graph(path: str | Path, names: Sequence[str]) -> Bools:
    rows = _read_rows(path)
    width = len(rows[0].cells)
    has_binary_body = len(rows) > 1 and all(cell in ("0", "1") for row in rows[1:] for cell in row.cells)
    is_edge_list = width == 2 and not (len(names) == 2 and has_binary_body)
    graph = _edge_list(path, rows, names) if is_edge_list else _adjacency(path, rows, names)
    try:
        check_graph(graph, names)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from error
    return graph


def _edge_list(path: str | Path, rows: Sequence[Row], names: Sequence[str]) -> Bools:
    _check_width(path, rows, 2)
    first = rows[0].cells
    has_header = tuple(map(str.lower, first)) in EDGE_HEADERS and not any(cell in names for cell in first)
    graph = np.zeros((len(names), len(names)), dtype=bool)
    for row in rows[has_header:]:
        for cell in row.cells:
            if cell not in names:
                header = f" or a header row ({' or '.join(map(','.join, EDGE_HEADERS))})" if row is rows[0] else ""
                raise InvalidInput(
                    f"{path}, line {row.line}: expected cause,effect from the variables {_listed(names)}{header}, "
                    f"got {cell!r}; correct it"
                )
        cause, effect = (names.index(cell) for cell in row.cells)
        graph[cause, effect] = True
    return graph


def _adjacency(path: str | Path, rows: Sequence[Row], names: Sequence[str]) -> Bools:
    header, *body = rows
    is_labelled = len(header.cells) == len(names) + 1
    columns = _names(path, Row(header.line, header.cells[is_labelled:]))
    _check_same_names(
        path, columns, names, "a two-column edge list or an adjacency matrix whose header has the names of the data"
    )
    _check_width(path, body, len(header.cells))
    causes = [row.cells[0] for row in body] if is_labelled else columns
    if len(body) != len(names):
        raise InvalidInput(f"{path}: expected {len(names)} rows below the header, one per variable, got {len(body)}")
    if is_labelled:
        _check_same_names(path, causes, names, "the first column to label the rows with the names of the data")
    entries = _zeros_and_ones(path, [Row(row.line, row.cells[is_labelled:]) for row in body], columns)
    graph: Bools = entries[np.ix_([causes.index(name) for name in names], [columns.index(name) for name in names])]
    return graph


def _read_rows(path: str | Path) -> list[Row]:
    """All rows that are not blank, cells stripped; at least one."""
    try:
        text = Path(str(path)).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InvalidInput(f"{path}: expected a CSV file, got no such file; check the path") from None
    except IsADirectoryError:
        raise InvalidInput(f"{path}: expected a CSV file, got a directory; name a file in it") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"{path}: expected text in UTF-8, got other bytes; save it as a UTF-8 CSV file") from None
    except OSError as error:
        raise InvalidInput(f"{path}: expected a readable CSV file, got: {error.strerror}") from None
    if "\0" in text:
        raise InvalidInput(f"{path}: expected text in UTF-8, got a binary file; save it as a UTF-8 CSV file")
    reader = csv.reader(io.StringIO(text), strict=True)
    try:
        rows = [
            Row(reader.line_num, [cell.strip() for cell in cells]) for cells in reader if any(map(str.strip, cells))
        ]
    except csv.Error as error:
        raise InvalidInput(f"{path}, line {reader.line_num}: expected comma-separated values, got: {error}") from None
    if not rows:
        raise InvalidInput(f"{path}: expected a header row and data, got an empty file")
    for separator in (";", "\t"):
        if len(rows[0].cells) == 1 and separator in rows[0].cells[0]:
            raise InvalidInput(f"{path}: expected commas between the cells, got {separator!r}; save it with commas")
    return rows


def _names(path: str | Path, header: Row) -> list[str]:
    names = header.cells
    if all(_is_number(name) for name in names):
        raise InvalidInput(
            f"{path}, line {header.line}: expected a header row of variable names, got numbers; add a header row"
        )
    if "" in names:
        raise InvalidInput(
            f"{path}, line {header.line}: expected a name for every column, got none for column {names.index('') + 1}; "
            "name it, or drop it if it only numbers the rows"
        )
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise InvalidInput(
            f"{path}, line {header.line}: expected unique variable names, got {repeated[0]!r} twice; rename one"
        )
    return names


def _check_width(path: str | Path, rows: Sequence[Row], width: int) -> None:
    for row in rows:
        if len(row.cells) != width:
            raise InvalidInput(
                f"{path}, line {row.line}: expected {width} comma-separated cells, as in the first row, "
                f"got {len(row.cells)}; repair the row"
            )


def _check_same_names(path: str | Path, found: Sequence[str], names: Sequence[str], expected: str) -> None:
    unknown = [name for name in found if name not in names]
    missing = [name for name in names if name not in found]
    if unknown or missing or len(found) != len(names):
        wrong = ", ".join([*(f"unknown {name!r}" for name in unknown), *(f"no {name!r}" for name in missing)])
        raise InvalidInput(f"{path}: expected {expected} ({_listed(names)}), got {wrong or 'a repeated name'}")


def _zeros_and_ones(path: str | Path, rows: Sequence[Row], columns: Sequence[str]) -> Bools:
    for row in rows:
        for name, cell in zip(columns, row.cells, strict=True):
            if not (_is_number(cell) and float(cell) in (0.0, 1.0)):
                raise InvalidInput(f"{path}, line {row.line}, column {name!r}: expected 0 or 1, got {cell!r}")
    return np.array([[float(cell) == 1.0 for cell in row.cells] for row in rows], dtype=bool)


def _number(path: str | Path, line: int, name: str, cell: str) -> float:
    if _is_number(cell) and math.isfinite(value := float(cell)):
        return value
    place = f"{path}, line {line}, column {name!r}"
    if cell.lower() in MISSING_VALUES:
        raise InvalidInput(
            f"{place}: expected a number, got a missing value ({cell!r}); remove the row or fill the value in"
        )
    if not _is_number(cell):
        raise InvalidInput(f"{place}: expected a number, got {cell!r}; encode it as a number or drop the column")
    raise InvalidInput(f"{place}: expected a finite number, got {cell!r}; remove the row or correct the value")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # Python reads 1_000 as a number; other programs do not


def _listed(names: Sequence[str], limit: int = 12) -> str:
    return ", ".join(names[:limit]) + (", ..." if len(names) > limit else "")
