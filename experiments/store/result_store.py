"""Append rows to the store and read those of any version."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Field, PostCommitHookProperties, QueryBuilder, write_deltalake
from deltalake.exceptions import CommitFailedError

from bci.errors import InvalidInput
from experiments.outcome import one_line
from experiments.store.schema import SCHEMA, as_table, missing_columns, with_all_columns

if TYPE_CHECKING:
    import pandas as pd

DEFAULT_STORE = "results/store"
LOG = "_delta_log"
COMMITS = CommitProperties(max_commit_retries=200)  # with the default, concurrent writers lose commits
# The log is never cleaned, or older versions could not be read; checkpoints are made apart from the commit, so that
# one that fails (a full disk) is not taken for a failed commit.
COMMIT_ONLY = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
_PROPERTIES = {
    "delta.enableExpiredLogCleanup": "false",
    "delta.dataSkippingStatsColumns": "job_id,status,git_commit",  # of all columns, a long log is slow to open
}
_CHECKPOINT_INTERVAL = 100  # commits that a reader may have to replay
_ATTEMPTS = 20  # at a commit that meets a change of the schema
_INTERRUPTS = (KeyboardInterrupt, SystemExit, GeneratorExit)  # all other BaseExceptions are panics of Rust code
_URL = re.compile(r"[a-z][a-z0-9+.-]+:/", re.IGNORECASE)
_UNUSABLE = re.compile(r"[][^|%\\\x00-\x1f\x7f]")  # in a path: deltalake panics at them, or reads another path
_NO_ROOM = re.compile(r"(os error|Errno) (27|28|122)\b")  # EFBIG, ENOSPC, EDQUOT
_STACK = re.compile(r" 0: .* 1: .*")
_LOG_FILE = re.compile(r"\d{20}\.(json|checkpoint\..*)")


class StoreWriteError(RuntimeError):
    """Rows could not be written although the store could be opened; the message is one line."""


class ResultStore:
    """The table under the local folder `path`; nothing is read or created before the first call that needs it.

    Whatever goes wrong in it, panics of its Rust code included, is an `InvalidInput` that names `store.path`, or a
    `StoreWriteError`. A process that is killed while it appends leaves all of its rows or none, and at most files that
    no version refers to.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(os.path.expanduser(path))

    def prepare(self) -> None:
        """Create the table if there is none, and make sure that rows can be written.

        Several processes may call this at once.

        Raises:
            InvalidInput: the path cannot hold a store, holds something else, or cannot be written to.
        """
        self._writable()

    def append(self, rows: Sequence[Mapping[str, Any]]) -> int:
        """Add rows in one atomic commit, all or nothing; returns a version of the table that holds them.

        A table of an older schema first gets the columns that it lacks, in a commit of its own.

        Args:
            rows: keys are columns of `SCHEMA`; a nullable column may be left out.

        Raises:
            InvalidInput: as `prepare`.
            StoreWriteError: the commit failed, or there is no row, or one has an unknown column, an unknown status, a
                value that does not fit its column, or lacks a required value.
        """
        with self.writing():
            table = as_table(rows)
        return self.append_table(table)

    def append_table(self, table: pa.Table) -> int:
        """As `append`, of an Arrow table from `as_table`."""
        delta = self._writable()
        with self.writing():
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    _add_missing_columns(delta)
                    columns = table.select(pa.schema(delta.schema().to_arrow()).names)
                    write_deltalake(
                        delta,
                        columns,
                        mode="append",
                        commit_properties=COMMITS,
                        post_commithook_properties=COMMIT_ONLY,
                    )
                    break
                except CommitFailedError:  # another process changed the schema meanwhile; nothing was committed
                    if attempt == _ATTEMPTS:
                        raise
                    delta = self.delta()
            version = int(delta.version())
        self._checkpoint_if_due(delta)
        return version

    @property
    def version(self) -> int:
        """The newest version.

        Raises:
            InvalidInput: there is no store.
        """
        return int(self.delta().version())

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
        return with_all_columns(self._query(self.delta(version), query))

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

    def delta(self, version: int | None = None) -> DeltaTable:
        """The Delta table of a version, the newest if None.

        Raises:
            InvalidInput: there is no store, or no such version.
        """
        self._check_location()
        if not self._exists():
            raise InvalidInput(
                f"store.path: expected a result store, got '{self.path}' without one; check store.path, run a job, or "
                "python -m experiments.store import results/rows.parquet"
            )
        return self._open(version)

    def check_writable(self) -> None:
        """Raises InvalidInput unless files can be written to the folders of the store, which is there."""
        with self._expecting("a folder that can be written to", "change its permissions or choose another store.path"):
            for folder in (self.folder, self.folder / LOG):
                with tempfile.NamedTemporaryFile(dir=folder, prefix=".writable-"):
                    pass

    def reading(self) -> AbstractContextManager[None]:
        """Turn whatever goes wrong in the block into an InvalidInput."""
        return self._expecting(
            "a result store that can be read",
            "restore it from a copy, or export an earlier version (version=N) and choose another store.path",
        )

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Turn whatever goes wrong in the block into a StoreWriteError; an InvalidInput stays one."""
        try:
            yield
        except (InvalidInput, StoreWriteError, *_INTERRUPTS):
            raise
        except BaseException as error:
            reason = _reason(error)
            if _NO_ROOM.search(reason):
                reason += "; nothing stored is lost, free space and run again"
            raise StoreWriteError(f"could not write to the store '{self.path}': {reason}") from error

    @cached_property
    def folder(self) -> Path:
        """Absolute, as deltalake would take the beginning of another path for a home folder or a URL."""
        return self.path.resolve()

    @property
    def maintenance_lock(self) -> Path:
        """Held by a command that looks after the store, which exists; jobs may append meanwhile."""
        return self.folder / LOG / ".maintenance.lock"

    def _writable(self) -> DeltaTable:
        self._check_location()
        with self._expecting("a folder that can be created and written to", "choose another store.path"):
            if not self._exists():
                try:
                    DeltaTable.create(
                        str(self.folder), SCHEMA, mode="ignore", name="results", configuration=_PROPERTIES
                    )
                except Exception:
                    if not self._exists():  # else another process was first
                        raise
        delta = self._open()
        self.check_writable()
        return delta

    def _exists(self) -> bool:
        with self.reading():
            try:
                with os.scandir(self.folder / LOG) as entries:
                    return any(_LOG_FILE.fullmatch(entry.name) for entry in entries)
            except (FileNotFoundError, NotADirectoryError):
                return False

    def _check_location(self) -> None:
        if _URL.match(str(self.path)):
            raise InvalidInput(f"store.path: expected a local folder, got the URL '{self.path}'; name a folder")
        with self._expecting("a folder that can be read and written to", "choose another store.path"):
            unusable = _UNUSABLE.search(str(self.path)) or _UNUSABLE.search(str(self.folder))
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
            # Looked at first, so that what another process adds once it has created the table is not held against it.
            others = self.path.is_dir() and any(path.name != LOG for path in self.path.iterdir())
            if others and not self._exists():
                raise InvalidInput(
                    f"store.path: expected a result store or an empty folder, got '{self.path}' with other files in it "
                    "and no log of a store; choose another store.path, or restore _delta_log from a copy"
                )

    def _open(self, version: int | None = None) -> DeltaTable:
        with self.reading():
            delta = DeltaTable(str(self.folder))
            newest = delta.version()
            if version is not None and not 0 <= version <= newest:
                raise InvalidInput(
                    f"version: expected 0 to {newest}, the versions of the store '{self.path}', got {version}"
                )
            if version is not None:
                delta.load_as_version(version)
            found = pa.schema(delta.schema().to_arrow())
        try:
            missing_columns(found)
        except ValueError as error:
            raise InvalidInput(
                f"store.path: expected the columns of a result store, got a table at '{self.path}' that {error}; "
                "choose another store.path"
            ) from error
        return delta

    def _query(self, delta: DeltaTable, query: str) -> pa.Table:
        with self.reading():
            return pa.table(QueryBuilder().register("results", delta).execute(query))

    def _checkpoint_if_due(self, delta: DeltaTable) -> None:
        """Sum the log up from time to time, which makes opening quick; the rows are stored with or without it."""
        try:
            last = json.loads((self.folder / LOG / "_last_checkpoint").read_text(encoding="utf-8"))["version"]
        except (OSError, ValueError, KeyError):
            last = 0
        if delta.version() - last >= _CHECKPOINT_INTERVAL:
            checkpoint(delta)

    @contextmanager
    def _expecting(self, expected: str, remedy: str) -> Iterator[None]:
        """Tell whatever goes wrong in the block in one line that names the store."""
        try:
            yield
        except (InvalidInput, *_INTERRUPTS):
            raise
        except BaseException as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else _reason(error)
            raise InvalidInput(f"store.path: expected {expected}, got '{self.path}' ({reason}); {remedy}") from error


def checkpoint(delta: DeltaTable) -> None:
    """Sum up the log in a checkpoint; where this fails the log is read without, and the next one is tried."""
    try:
        delta.create_checkpoint()
    except _INTERRUPTS:
        raise
    except BaseException:
        return


def latest(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of the newest run with status ok of every job; the order of the rows is kept.

    Args:
        frame: rows as from `ResultStore.rows`; a job that was run again is in it several times.
    """
    ok = frame[frame["status"] == "ok"]
    runs = ok.drop_duplicates("run_id").sort_values(["started_at", "run_id"], kind="stable")
    newest = runs.drop_duplicates("job_id", keep="last")["run_id"]
    return ok[ok["run_id"].isin(newest)]


def _reason(error: BaseException) -> str:
    """The message of an exception in one line, without the stack of Rust code that deltalake may put after it."""
    return _STACK.sub("", one_line(error))


def _add_missing_columns(delta: DeltaTable) -> None:
    missing = missing_columns(pa.schema(delta.schema().to_arrow()))
    if missing:
        fields = [Field.from_arrow(field) for field in missing]
        delta.alter.add_columns(fields, commit_properties=COMMITS, post_commithook_properties=COMMIT_ONLY)
