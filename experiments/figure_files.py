"""Figures as files: the same figure gives the same bytes, as no file holds the time it was written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib

from bci.errors import InvalidInput
from experiments.outcome import one_line

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

ENDINGS = (".png", ".pdf", ".svg")
PUBLISHED = (".png", ".pdf")  # where the name of the picture has no ending
_TIMELESS: dict[str, dict[str, None]] = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}


def picture_paths(out: Path) -> list[Path]:
    """The pictures that `out` stands for: itself, or PNG and PDF if its name has no ending.

    Raises:
        InvalidInput: another ending.
    """
    if not out.name or out.suffix not in ("", *ENDINGS):
        raise InvalidInput(f"out: expected a file that ends in {', '.join(ENDINGS)}, got '{out}'; rename it")
    return [out] if out.suffix else [out.with_suffix(ending) for ending in PUBLISHED]


def save_pictures(figure: Figure, out: Path) -> list[Path]:
    """Write the pictures that `out` stands for, and return their paths.

    Raises:
        InvalidInput: another ending, or a place that cannot be written to.
    """
    paths = picture_paths(out)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with matplotlib.rc_context({"svg.hashsalt": "bci"}):
            for path in paths:
                figure.savefig(path, dpi=150, metadata=_TIMELESS.get(path.suffix))
    except OSError as error:
        raise _unwritable(out, error) from error
    return paths


def save_facts(facts: Mapping[str, Any], out: Path) -> Path:
    """Write what is to be said about a figure beside it, as JSON: `caption`, `alt` and where its numbers come from."""
    path = out.with_suffix(".json")
    text = json.dumps(facts, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise _unwritable(path, error) from error
    return path


def save_values(values: pd.DataFrame, out: Path) -> Path:
    """Write the values of a figure beside it, as CSV; an undefined one is an empty cell."""
    path = out.with_suffix(".csv")
    try:
        values.to_csv(path, index=False, lineterminator="\n")
    except OSError as error:
        raise _unwritable(path, error) from error
    return path


def _unwritable(path: Path, error: OSError) -> InvalidInput:
    reason = error.strerror or one_line(error)
    return InvalidInput(f"out: expected a place that can be written to, got '{path}' ({reason}); choose another")
