"""Rebuild a table of the paper: `python -m experiments.tables name=NAME store.path=DIR [version=N] [out=DIR]`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from bci.errors import InvalidInput
from experiments.arguments import answered, key_values, path, whole_number_if_given
from experiments.expand import expand
from experiments.printed import TABLES
from experiments.publish import publish
from experiments.store import DEFAULT_STORE, ResultStore
from experiments.table_cells import MARKS, Table, table_of

DEFAULTS = {"name": "", "store.path": DEFAULT_STORE, "version": "", "out": "results"}
USAGE = f"""python -m experiments.tables name=NAME [store.path=DIR] [version=N] [out=DIR]

NAME is one of {", ".join(TABLES)}. The table is built from the jobs of `+experiment=NAME` in a
version of the store (default {DEFAULTS["store.path"]}, the newest version), beside the printed values, and written to
out/tables/NAME (default {DEFAULTS["out"]}); out/README.md is the index of all tables there. The same version gives the
same files."""


def build(name: str, store: str | Path, version: int | None = None) -> tuple[Table, int]:
    """A table of the paper from a version of the store, the newest if None; also returns the version.

    Raises:
        InvalidInput: no such table, store or version, or the store has no job of the table.
    """
    if name not in TABLES:
        raise InvalidInput(f"name: expected one of {', '.join(TABLES)}, got {name!r}; set name=NAME")
    results = ResultStore(store)
    version = results.version if version is None else version
    rows = results.rows(version)
    jobs = expand([f"+experiment={name}"]).jobs
    table = table_of(name, jobs, rows)
    if not len(table.done):
        raise InvalidInput(
            f"name: expected a table with jobs in the store, got none of the {len(jobs)} jobs of '{name}' in version "
            f"{version} of '{store}'; run python -m experiments.run -m +experiment={name}"
        )
    return table, version


def summary(table: Table) -> str:
    """One line: how many jobs are done and how the cells compare with the paper."""
    marks = [cell.mark for group in table.groups for row in group.rows if row.printed for cell in row.cells]
    counts = ", ".join(f"{marks.count(mark)} {mark}" for mark in MARKS if mark in marks)
    done = table.done["job_id"].nunique()
    return f"{done} of {len(table.jobs)} jobs done; of {len(marks)} printed cells {counts}"


def main(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code."""
    return answered(arguments, USAGE, _answer)


def _answer(arguments: Sequence[str]) -> str:
    settings = key_values(arguments, DEFAULTS)
    version = whole_number_if_given("version", settings["version"], 0)
    table, version = build(settings["name"], settings["store.path"], version)
    folder = publish(table, path(settings["out"]), version)
    return f"{folder}: {summary(table)}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
