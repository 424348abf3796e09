"""Add the rows of an export to a store: results of another machine, or published ones, then count as done."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from bci.errors import InvalidInput
from experiments.locks import alone
from experiments.outcome import one_line
from experiments.store.result_store import ResultStore
from experiments.store.schema import as_table, missing_columns, with_all_columns


class Imported(NamedTuple):
    """What an import did: rows and runs that it added, runs that the store held before, and a version with all."""

    rows: int
    runs: int
    known: int
    version: int


def import_rows(store: ResultStore, file: Path) -> Imported:
    """Append the rows of a Parquet file that `experiments.export` wrote, less those of runs that the store holds.

    All of them are added in one commit or none, so that an import that was killed can be started again. Where there is
    nothing to add no version is added. Imports into a store wait for each other; jobs may be stored meanwhile. A store
    that is not there is made.

    Raises:
        InvalidInput: the file cannot be read or is no such export, or the store cannot be written to.
        StoreWriteError: the commit failed; the store is as it was.
    """
    rows = _exported(file)
    store.prepare()
    with store.writing(), alone(store.maintenance_lock):
        known = store.table()["run_id"].unique()
        runs = rows["run_id"].unique()
        added = rows.filter(pc.invert(pc.is_in(rows["run_id"], known)))
        version = store.append_table(added) if len(added) else store.version
    count = len(added["run_id"].unique())
    return Imported(len(added), count, len(runs) - count, version)


def _exported(file: Path) -> pa.Table:
    try:
        rows = parquet.ParquetFile(file).read()  # unlike read_table it takes no folders
        missing_columns(rows.schema)
        return as_table(with_all_columns(rows).to_pylist())
    except (OSError, ValueError, KeyError, OverflowError, pa.ArrowException) as error:
        raise InvalidInput(
            f"import: expected a Parquet file written by experiments.export, got '{file}' ({one_line(error)}); "
            "choose another"
        ) from error
