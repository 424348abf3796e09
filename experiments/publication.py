"""Publish one version of the store: its tables, figures, rows and page: `python -m experiments.publication`."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from bci.errors import InvalidInput
from experiments.arguments import answered, key_values, path, whole_number_if_given
from experiments.export import export
from experiments.figures import FROM_STORE, draw_from_store
from experiments.html_report import write_report
from experiments.locks import alone
from experiments.outcome import one_line
from experiments.printed import TABLES
from experiments.publish import LOCK, MACHINES, publish
from experiments.store import DEFAULT_STORE, ResultStore
from experiments.table_index import EXPLANATIONS
from experiments.tables import build, summary

_DEFAULTS = {"store.path": DEFAULT_STORE, "version": "", "out": "results"}
USAGE = f"""python -m experiments.publication [store.path=DIR] [version=N] [out=DIR]

Writes all tables of the paper, the figures drawn from the store, the rows that they rest on (rows.parquet, which
`python -m experiments.store import` reads) and the page of results to out (default {_DEFAULTS["out"]}), all from one
version of the store (default {_DEFAULTS["store.path"]}, the newest version). Other figures there stay, and are on the
page."""
_ROWS, _PAGE = "rows.parquet", "report.html"


def publish_all(store: str | Path, version: int | None, out: Path) -> list[str]:
    """Publish a version of the store, the newest if None; files are replaced once all are made.

    Returns:
        A line for each table, and one for all.

    Raises:
        InvalidInput: no such store or version, a table or figure without jobs, or a file that cannot be read or
            written.
    """
    version = ResultStore(store).version if version is None else version
    try:
        out.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=out, prefix=".publishing-") as folder:
            made = Path(folder)
            given = _copied(out, made)
            lines, jobs = [], set()
            for name in TABLES:
                table, _ = build(name, store, version)
                publish(table, made, version)
                jobs |= set(table.jobs["job_id"])
                lines.append(f"{name}: {summary(table)}")
            for name in FROM_STORE:
                draw_from_store(name, store, version, made / "figures" / name)
            rows = export(store, made / _ROWS, version, jobs)
            write_report(made / _PAGE, made / "tables", made / "figures")
            with alone(out / LOCK):
                _move(made, out, given)
    except OSError as error:
        raise InvalidInput(f"out: expected a folder that can be written to, got '{out}' ({one_line(error)})") from error
    return [*lines, f"{len(lines)} tables, {len(FROM_STORE)} figures and {rows} rows of version {version} in {out}"]


def _copied(out: Path, made: Path) -> set[Path]:
    """Copy what index and page take from elsewhere; returns the copies that are not written to."""
    (made / "figures").mkdir()
    others = [each for each in (out / "figures").glob("*") if each.is_file() and each.stem not in FROM_STORE]
    copies = [each.relative_to(out) for each in (out / EXPLANATIONS, out / MACHINES, *others) if each.exists()]
    for each in copies:
        shutil.copy(out / each, made / each)
    return set(copies) - {Path(MACHINES)}


def _move(made: Path, out: Path, given: set[Path]) -> None:
    for file in sorted(made.rglob("*")):
        place = file.relative_to(made)
        if file.is_file() and place not in given and not file.name.startswith("."):
            (out / place).parent.mkdir(parents=True, exist_ok=True)
            os.replace(file, out / place)


def main(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code."""
    return answered(arguments, USAGE, _answer)


def _answer(arguments: Sequence[str]) -> str:
    settings = key_values(arguments, _DEFAULTS)
    version = whole_number_if_given("version", settings["version"], 0)
    return "\n".join(publish_all(settings["store.path"], version, path(settings["out"])))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
