"""The result store: a Delta Lake table with one tidy row per job and metric.

Every append is one atomic commit and one new version that can be read again; writers in several processes
do not lose rows. The schema is declared in full before the first write.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, QueryBuilder, write_deltalake

from bci.errors import InvalidInput
from experiments.outcome import one_line

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
_INTERRUPTS = (KeyboardInterrupt, SystemExit, GeneratorExit)  # all other BaseExceptions are panics of Rust code
_URL = re.compile(r"[a-z][a-z0-9+.-]+:/", re.IGNORECASE)
_UNUSABLE = re.compile(r"[][^|%\\\x00-\x1f\x7f]")  # in a path: deltalake panics at them, or reads another path


class StoreWriteError(RuntimeError):
    """Rows could not be written although the store could be opened; the message is one line."""


class ResultStore:
    """The table under the local folder `path`; nothing is read or created before the first call that needs it.

    Whatever goes wrong in it, panics of its Rust code included, is an `InvalidInput` that names `store.path`, or a
    `StoreWriteError`.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(os.path.expanduser(path))

    def prepare(self) -> None:
        """Create the table if there is none, and make sure that rows can be written.

        Several processes may call this at once.

        Raises:
            InvalidInput: the path cannot hold a store, holds something else, or cannot be written to.
        """
        self._check_location()
        with self._expecting("a folder that can be created and written to", "choose another store.path"):
            if not self._exists():
                try:
                    DeltaTable.create(str(self._folder), SCHEMA, mode="ignore", name="results")
                except Exception:
                    if not self._exists():  # else another process was first
                        raise
        self._open()
        with self._expecting("a folder that can be written to", "change its permissions or choose another store.path"):
            for folder in (self._folder, self._folder / "_delta_log"):
                with tempfile.NamedTemporaryFile(dir=folder, prefix=".writable-"):
                    pass

    def append(self, rows: Sequence[Mapping[str, Any]]) -> int:
        """Add rows in one atomic commit, all or nothing; returns a version of the table that holds them.

        Args:
            rows: keys are columns of `SCHEMA`; a nullable column may be left out.

        Raises:
            InvalidInput: as `prepare`.
            StoreWriteError: the commit failed, or there is no row, or one has an unknown column, an unknown status, a
                value that does not fit its column, or lacks a required value.
        """
        self.prepare()
        delta = self._open()
        try:
            write_deltalake(delta, _as_table(rows), mode="append", commit_properties=_COMMITS)
            return int(delta.version())
        except _INTERRUPTS:
            raise
        except BaseException as error:
            raise StoreWriteError(f"could not write to the store '{self.path}': {one_line(error)}") from error

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

    @cached_property
    def _folder(self) -> Path:
        """Absolute, as deltalake would take the beginning of another path for a home folder or a URL."""
        return self.path.resolve()

    def _exists(self) -> bool:
        with self._reading():
            return bool(DeltaTable.is_deltatable(str(self._folder)))

    def _check_location(self) -> None:
        if _URL.match(str(self.path)):
            raise InvalidInput(f"store.path: expected a local folder, got the URL '{self.path}'; name a folder")
        with self._expecting("a folder that can be read and written to", "choose another store.path"):
            unusable = _UNUSABLE.search(str(self.path)) or _UNUSABLE.search(str(self._folder))
            if unusable:
                raise InvalidInput(
                    f"store.path: expected a folder without any of []^|%\\ and control characters in its whole path, "
                    f"got {str(unusable.string)!r}; choose another store.path"
                )
            for place in (self.path, *self.path.parents):
                if place.exists() and not place.is_dir():
                    raise InvalidInput(
                        f"store.path: expected a folder, but '{place}' is a file; choose another store.path"
                    )
            # Listed first, so that what another process adds once it has created the table is not held against it.
            others = {path.name for path in self.path.iterdir()} - {"_delta_log"} if self.path.is_dir() else set()
            if others and not self._exists():
                raise InvalidInput(
                    f"store.path: expected a result store or an empty folder, got '{self.path}' with other files in it "
                    "and no log of a store; choose another store.path, or restore _delta_log from a copy"
                )

    def _open(self, version: int | None = None) -> DeltaTable:
        self._check_location()
        with self._reading():
            if not self._exists():
                raise InvalidInput(
                    f"store.path: expected a result store, got '{self.path}' without one; check store.path or run a job"
                )
            delta = DeltaTable(str(self._folder))
            newest = delta.version()
            if version is not None and not 0 <= version <= newest:
                raise InvalidInput(
                    f"version: expected 0 to {newest}, the versions of the store '{self.path}', got {version}"
                )
            if version is not None:
                delta.load_as_version(version)
            self._check_schema(delta)
        return delta

    def _query(self, delta: DeltaTable, query: str) -> pa.Table:
        with self._reading():
            return pa.table(QueryBuilder().register("results", delta).execute(query))

    def _reading(self) -> AbstractContextManager[None]:
        return self._expecting(
            "a result store that can be read",
            "restore it from a copy, or export an earlier version (version=N) and choose another store.path",
        )

    @contextmanager
    def _expecting(self, expected: str, remedy: str) -> Iterator[None]:
        """Tell whatever goes wrong in the block in one line that names the store."""
        try:
            yield
        except (InvalidInput, *_INTERRUPTS):
            raise
        except BaseException as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else one_line(error)
            raise InvalidInput(f"store.path: expected {expected}, got '{self.path}' ({reason}); {remedy}") from error

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
    if not rows:
        raise ValueError("expected at least one row to append, got none")
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
