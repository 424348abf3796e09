"""One static page of all published tables and figures: `python -m experiments.html_report`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from bci.errors import InvalidInput
from bci.replacing import replacing
from experiments.arguments import answered, key_values, path
from experiments.html_page import page
from experiments.outcome import one_line
from experiments.published import read_figures, read_tables

USAGE = """python -m experiments.html_report [out=FILE.html] [tables=DIR] [figures=DIR]

  out      the page (default results/report.html); it needs no other file and no network
  tables   published tables, DIR/NAME/NAME.csv with manifest.json beside (default results/tables)
  figures  published figures, DIR/NAME.png with NAME.json beside (default results/figures)"""
_DEFAULTS = {"out": "results/report.html", "tables": "results/tables", "figures": "results/figures"}
_TITLE = "Bayesian causal inference: tables and figures beside the paper's"


def main(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code."""
    return answered(arguments, USAGE, _answer)


def _answer(arguments: Sequence[str]) -> str:
    settings = key_values(arguments, _DEFAULTS)
    paths = {key: path(text) for key, text in settings.items()}
    for key in ("tables", "figures"):
        if settings[key] != _DEFAULTS[key] and not paths[key].exists():
            raise InvalidInput(f"{key}: expected a folder, got '{paths[key]}' (no such folder); check the path")
    return write_report(**paths)


def write_report(out: Path, tables: Path, figures: Path) -> str:
    """Write the page in one step, so that a reader never sees half of it; returns a line about it.

    Raises:
        InvalidInput: nothing is published there, a file of it cannot be read, or the page cannot be written.
    """
    if out.suffix != ".html":
        raise InvalidInput(f"out: expected a file that ends in .html, got '{out}'; rename it")
    found_tables, found_figures = read_tables(tables), read_figures(figures)
    if not found_tables and not found_figures:
        raise InvalidInput(
            f"tables, figures: expected published tables or figures, got none in '{tables}' and '{figures}'; "
            "draw one with python -m experiments.figures name=main_cd"
        )
    text = page(found_tables, found_figures, _TITLE)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with replacing(out) as complete:
            complete.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise InvalidInput(
            f"out: expected a place that can be written to, got '{out}' ({error.strerror or one_line(error)}); "
            "choose another"
        ) from error
    return f"{len(found_tables)} tables and {len(found_figures)} figures in {out}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
