"""Dump the result store to a file: `python -m experiments.export store.path=DIR out=FILE.csv|.parquet [version=N]`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet

from bci.errors import InvalidInput
from bci.replacing import replacing
from experiments.arguments import answered, key_values, path, whole_number_if_given
from experiments.outcome import one_line
from experiments.store import DEFAULT_STORE, ResultStore

USAGE = "python -m experiments.export store.path=DIR out=FILE.csv|.parquet [version=N]"
_WRITERS: dict[str, Callable[[pa.Table, Path], None]] = {".csv": csv.write_csv, ".parquet": parquet.write_table}


def export(store: str | Path, out: str | Path, version: int | None = None, jobs: Collection[str] | None = None) -> int:
    """Write the tidy rows of a version of the store, the newest if None, to a CSV or Parquet file.

    `jobs` are the ids of those whose rows are written, all if None.

    A file that is there is replaced in one step, so a reader never sees half of one. In a CSV file a null is an empty
    cell and times are UTC.

    Returns:
        The number of rows.

    Raises:
        InvalidInput: no such store or version, a file type other than .csv and .parquet, or a folder that cannot be
            written to.
    """
    out = Path(out)
    if out.suffix not in _WRITERS:
        raise InvalidInput(f"out: expected a file that ends in {' or '.join(_WRITERS)}, got '{out}'; rename it")
    rows = ResultStore(store).table(version)
    if jobs is not None:
        rows = rows.filter(pc.is_in(rows["job_id"], pa.array(sorted(jobs), pa.string())))
    try:
        if out.is_dir():
            raise InvalidInput(f"out: expected a file, but '{out}' is a folder; name a file in it")
        out.parent.mkdir(parents=True, exist_ok=True)
        with replacing(out) as complete:
            _WRITERS[out.suffix](rows, complete)
    except OSError as error:
        reason = error.strerror or one_line(error)
        raise InvalidInput(
            f"out: expected a place that can be written to, got '{out}' ({reason}); choose another"
        ) from error
    return int(rows.num_rows)


def main(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code."""
    return answered(arguments, f"{USAGE}\n\nstore.path defaults to {DEFAULT_STORE}, version to the newest.", _answer)


def _answer(arguments: Sequence[str]) -> str:
    store, out, version = _parse(arguments)
    return f"{export(store, out, version)} rows in {out}"


def _parse(arguments: Sequence[str]) -> tuple[str, Path, int | None]:
    settings = key_values(arguments, {"store.path": DEFAULT_STORE, "out": "", "version": ""})
    if not settings["out"]:
        raise InvalidInput("out: expected a file, got none; set out=FILE.csv or out=FILE.parquet")
    version = whole_number_if_given("version", settings["version"], 0)
    return settings["store.path"], path(settings["out"]), version


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
