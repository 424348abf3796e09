"""The result store: a Delta Lake table with one tidy row per job and metric.

Every append is one atomic commit and one new version that can be read again; writers in several processes
do not lose rows. The schema is declared in full before the first write.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, QueryBuilder, write_deltalake
from deltalake.exceptions import DeltaError

from bci.errors import InvalidInput

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = pa.schema(
    [
        pa.field("run_id", pa.string(), nullable=False),
        pa.field("job_id", pa.string(), nullable=False),
        pa.field("status", pa.string(), nullable=False),  # one of STATUSES
        pa.field("error", pa.string()),
        pa.field("data_name", pa.string(), nullable=False),
        pa.field("graph_model", pa.string()),
        pa.field("mechanism", pa.string()),
        pa.field("num_nodes", pa.int64()),
        pa.field("expected_degree", pa.float64()),
        pa.field("num_samples", pa.int64()),
        pa.field("data_seed", pa.int64()),
        pa.field("data_config", pa.string(), nullable=False),  # JSON
        pa.field("data_fingerprint", pa.string()),
        pa.field("method", pa.string(), nullable=False),
        pa.field("method_config", pa.string(), nullable=False),  # JSON
        pa.field("method_seed", pa.int64(), nullable=False),
        pa.field("metrics_config", pa.string(), nullable=False),  # JSON
        pa.field("metric", pa.string()),  # null where the job did not finish
        pa.field("value", pa.float64()),  # null where undefined
        pa.field("undefined_reason", pa.string()),
        pa.field("fit_seconds", pa.float64()),
        pa.field("eval_seconds", pa.float64()),
        pa.field("peak_memory_mb", pa.float64()),
        pa.field("git_commit", pa.string()),
        pa.field("git_dirty", pa.bool_()),
        pa.field("package_versions", pa.string(), nullable=False),  # JSON
        pa.field("device", pa.string()),
        pa.field("started_at", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("host", pa.string(), nullable=False),
    ]
)
_WHOLE = tuple(field.name for field in SCHEMA if field.type == pa.int64())
STATUSES = ("ok", "failed", "timeout", "invalid")
_COMMITS = CommitProperties(max_commit_retries=200)  # with the default, concurrent writers lose commits


class StoreWriteError(RuntimeError):
    """Rows could not be written although the store could be opened; the message is one line."""


class ResultStore:
    """The table under the folder `path`; nothing is read or created before the first call that needs it."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def prepare(self) -> None:
        """Create the table if there is none, and make sure that rows can be written.

        Several processes may call this at once.

        Raises:
            InvalidInput: the path cannot hold a store, holds something else, or cannot be written to.
        """
        self._check_location()
        if not self._exists():
            try:
                DeltaTable.create(self.path, SCHEMA, mode="ignore", name="results")
            except (DeltaError, OSError) as error:
                if not self._exists():  # else another process was first
                    raise InvalidInput(
                        f"store.path: expected a folder that can be created and written to, got '{self.path}' "
                        f"({_first_line(error)}); choose another store.path"
                    ) from error
        self._open()
        try:
            with tempfile.NamedTemporaryFile(dir=self.path / "_delta_log", prefix=".writable-"):
                pass
        except OSError as error:
            raise InvalidInput(
                f"store.path: expected a folder that can be written to, got '{self.path}' ({error.strerror}); "
                "change its permissions or choose another store.path"
            ) from error

    def append(self, rows: Sequence[Mapping[str, Any]]) -> int:
        """Add rows in one atomic commit, all or nothing; returns a version of the table that holds them.

        Args:
            rows: keys are columns of `SCHEMA`; a nullable column may be left out.

        Raises:
            InvalidInput: as `prepare`.
            ValueError: there is no row, or one has an unknown column, an unknown status or lacks a required value.
            StoreWriteError: the commit failed.
        """
        if not rows:
            raise ValueError("expected at least one row to append, got none")
        table = _as_table(rows)
        self.prepare()
        delta = self._open()
        try:
            write_deltalake(delta, table, mode="append", commit_properties=_COMMITS)
        except (DeltaError, OSError) as error:
            raise StoreWriteError(f"could not write to the store '{self.path}': {_first_line(error)}") from error
        return int(delta.version())

    @property
    def version(self) -> int:
        """The newest version.

        Raises:
            InvalidInput: there is no store.
        """
        return int(self._open().version())

    def rows(self, version: int | None = None) -> pd.DataFrame:
        """All rows of a version, the newest if None, in the order of their start; nulls are pandas' NA.

        Raises:
            InvalidInput: there is no store, or no such version.
        """
        import pandas as pd  # here, as a job that only appends does without it

        nullable = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
        frame: pd.DataFrame = self.table(version).to_pandas(types_mapper=nullable.get)
        return frame

    def table(self, version: int | None = None) -> pa.Table:
        """As `rows`, as an Arrow table of `SCHEMA`."""
        query = "SELECT * FROM results ORDER BY started_at, run_id, metric"
        return self._query(self._open(version), query).select(SCHEMA.names).cast(SCHEMA)

    def done(self, job_id: str) -> bool:
        """Whether the job finished with status ok; false where there is no store yet.

        Raises:
            InvalidInput: the path holds something else than a store.
        """
        self._check_location()
        if not self._exists():
            return False
        literal = job_id.replace("'", "''")
        query = f"SELECT status FROM results WHERE job_id = '{literal}' AND status = 'ok' LIMIT 1"
        return bool(self._query(self._open(), query).num_rows)

    def _query(self, delta: DeltaTable, query: str) -> pa.Table:
        try:
            return pa.table(QueryBuilder().register("results", delta).execute(query))
        except (DeltaError, OSError) as error:
            raise self._damaged(error) from error

    def _exists(self) -> bool:
        return DeltaTable.is_deltatable(str(self.path))

    def _check_location(self) -> None:
        for place in (self.path, *self.path.parents):
            if place.exists() and not place.is_dir():
                raise InvalidInput(f"store.path: expected a folder, but '{place}' is a file; choose another store.path")
        if self.path.is_dir() and not self._exists() and any(self.path.iterdir()):
            if (self.path / "_delta_log").is_dir():  # another process is creating the table
                return
            raise InvalidInput(
                f"store.path: expected a result store or an empty folder, got '{self.path}' with other files in it; "
                "choose another store.path"
            )

    def _open(self, version: int | None = None) -> DeltaTable:
        self._check_location()
        if not self._exists():
            raise InvalidInput(
                f"store.path: expected a result store, got '{self.path}' without one; check store.path or run a job"
            )
        try:
            delta = DeltaTable(self.path)
        except (DeltaError, OSError) as error:
            raise self._damaged(error) from error
        if version is not None and version != delta.version():
            newest = delta.version()
            try:
                delta.load_as_version(version)
            except (DeltaError, OverflowError) as error:
                raise InvalidInput(
                    f"version: expected 0 to {newest}, the versions of the store '{self.path}', got {version}"
                ) from error
        self._check_schema(delta)
        return delta

    def _damaged(self, error: Exception) -> InvalidInput:
        return InvalidInput(
            f"store.path: expected a result store that can be read, got '{self.path}' ({_first_line(error)}); "
            "restore it from a copy or choose another store.path"
        )

    def _check_schema(self, delta: DeltaTable) -> None:
        found = pa.schema(delta.schema().to_arrow())
        if found.equals(SCHEMA):
            return
        names = dict.fromkeys([*SCHEMA.names, *found.names])
        differing = [name for name in names if _column(SCHEMA, name) != _column(found, name)]
        shown = ", ".join(differing[:3]) + (" and others" if len(differing) > 3 else "")
        raise InvalidInput(
            f"store.path: expected the columns of a result store, got a table at '{self.path}' that differs in "
            f"{shown}; choose another store.path"
        )


def latest(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of the newest run with status ok of every job; the order of the rows is kept.

    Args:
        frame: rows as from `ResultStore.rows`; a job that was run again is in it several times.
    """
    ok = frame[frame["status"] == "ok"]
    runs = ok.drop_duplicates("run_id").sort_values(["started_at", "run_id"], kind="stable")
    newest = runs.drop_duplicates("job_id", keep="last")["run_id"]
    return ok[ok["run_id"].isin(newest)]


def _as_table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    for row in rows:
        unknown = sorted(set(row) - set(SCHEMA.names))
        if unknown:
            raise ValueError(f"expected columns of the result store, got {unknown}")
        if row.get("status") not in STATUSES:
            raise ValueError(f"expected a status of {STATUSES}, got {row.get('status')!r}")
        missing = [field.name for field in SCHEMA if not field.nullable and row.get(field.name) is None]
        if missing:
            raise ValueError(f"expected a value in every required column, got none for {missing}")
        # Arrow would cut the fraction off without a word.
        fractions = [name for name in _WHOLE if isinstance(row.get(name), float)]
        if fractions:
            raise ValueError(
                f"expected whole numbers in the columns {fractions}, got {[row[name] for name in fractions]}"
            )
    return pa.Table.from_pylist([dict(row) for row in rows], schema=SCHEMA)


def _column(schema: pa.Schema, name: str) -> tuple[pa.DataType, bool] | None:
    return (schema.field(name).type, schema.field(name).nullable) if name in schema.names else None


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
