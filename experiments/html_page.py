"""The page of all published tables and figures, as one HTML text that loads nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from typing import Any, NamedTuple

from experiments.paper_methods import GRAPHS
from experiments.printed import METRICS
from experiments.published import Cell, Group, PublishedFigure, PublishedTable

_SHORT = 4  # entries up to which a list of a manifest is shown outright


class _Mark(NamedTuple):
    style: str
    sign: str
    text: str


_MARKS = {  # by a word of what a table says; signs and words, as colours alone would not reach everyone
    "overlap": _Mark("overlap", "≈", "overlaps"),
    "better": _Mark("better", "▲", "better"),
    "worse": _Mark("worse", "▼", "worse"),
    "differs": _Mark("none", "≠", "differs"),
    "not computed": _Mark("none", "∅", "not computed"),
}


def page(tables: Sequence[PublishedTable], figures: Sequence[PublishedFigure], title: str) -> str:
    """The whole page; the same input gives the same text."""
    style, script = (files("experiments").joinpath("page", name).read_text("utf-8") for name in ("page.css", "page.js"))
    policy = f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'"
    sections = [*(_figure(each) for each in figures), *(_table(each) for each in tables)]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">\n'
        f'<title>{escape(title)}</title>\n<link rel="icon" href="data:,">\n<style>{style}</style>\n</head>\n'
        f"<body>\n<header>\n<h1>{escape(title)}</h1>\n{_introduction(tables)}{_navigation(tables, figures)}</header>\n"
        f"<main>\n{_overview(tables)}{''.join(sections)}</main>\n<script>{script}</script>\n</body>\n</html>\n"
    )


def _introduction(tables: Sequence[PublishedTable]) -> str:
    text = "<p>Tables and figures rebuilt by this project. Every number says how many models it is the mean of.</p>\n"
    if not tables:
        return text
    marks = ", ".join(f'<span class="{mark.style}">{mark.sign} {mark.text}</span>' for mark in _MARKS.values())
    return (
        f"{text}<p>In a cell: the mean here with its 95&nbsp;% interval, the number the paper printed, and how they "
        f"compare ({marks}). Intervals that overlap are no difference; ↓ lower is better, ↑ higher is better. "
        "A header sorts its column.</p>\n"
    )


def _navigation(tables: Sequence[PublishedTable], figures: Sequence[PublishedFigure]) -> str:
    links = [("figure-" + each.name, f"Figure: {_figure_title(each)}") for each in figures]
    links += [("table-" + each.name, f"Table: {_title(each)}") for each in tables]
    items = "".join(f'<li><a href="#{_anchor(target)}">{escape(text)}</a></li>' for target, text in links)
    return f'<nav aria-label="Contents">\n<ul>{items}</ul>\n</nav>\n'


def _overview(tables: Sequence[PublishedTable]) -> str:
    """How many cells of every table that the paper prints bear which mark."""
    if not tables:
        return ""
    rows = []
    for table in tables:
        printed = [each for group in table.groups for each in group.cells.values() if each.printed]
        counts = Counter(_mark(each.mark) for each in printed)
        cells = "".join(f'<td data-value="{counts[mark]}">{counts[mark]}</td>' for mark in _MARKS.values())
        link = f'<a href="#{_anchor("table-" + table.name)}">{escape(_title(table))}</a>'
        rows.append(f"<tr>{_row_header(_title(table), link)}{cells}</tr>\n")
    headers = ["Table", *(f"{mark.sign} {mark.text}" for mark in _MARKS.values())]
    heading = "Cells beside the printed ones"
    return f"<section>\n<h2>{heading}</h2>\n{_grid(heading, headers, rows)}</section>\n"


def _table(table: PublishedTable) -> str:
    parts = [f'<section id="{_anchor("table-" + table.name)}">\n<h2>{escape(_title(table))}</h2>\n']
    for group in table.groups:
        heading = _group_title(group.keys)
        parts.append(f"<h3>{escape(heading)}</h3>\n" if heading else "")
        parts.append(_group(group, f"{_title(table)}, {heading}"))
    for note in _texts(table.manifest.get("footnotes")):
        parts.append(f'<p class="quiet">{escape(note)}</p>\n')
    parts.append(_provenance(table.manifest, ("title", "footnotes")))
    return "".join([*parts, "</section>\n"])


def _group(group: Group, label: str) -> str:
    headers = ["Method", *(_with_direction(metric) for metric in group.metrics)]
    rows = []
    for method in group.methods:
        cells = "".join(_cell(group.cells.get((method, metric))) for metric in group.metrics)
        rows.append(f"<tr>{_row_header(method, escape(method))}{cells}</tr>\n")
    return _grid(label, headers, rows)


def _grid(label: str, headers: Sequence[str], rows: Iterable[str]) -> str:
    head = "".join(
        f'<th scope="col" aria-sort="none"><button type="button">{escape(header)}</button></th>' for header in headers
    )
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(label)}">\n<table class="wide">\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{''.join(rows)}</tbody>\n</table>\n</div>\n"
    )


def _row_header(value: str, content: str) -> str:
    return f'<th scope="row" data-value="{escape(value)}">{content}</th>'


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return '<td data-value=""></td>'
    mark = _mark(cell.mark)
    known = math.isfinite(cell.ours_mean)
    lines = [f'<span class="ours">{_interval(cell.ours_mean, cell.ours_ci95)}</span>' if known else ""]
    if cell.printed:
        lines.append(f'<span class="paper">paper {escape(cell.printed)}</span>')
    if mark.text:
        lines.append(f'<span class="mark {mark.style}">{escape(f"{mark.sign} {mark.text}".strip())}</span>')
    lines.append(f'<span class="note">{_models(cell)}</span>')
    value = repr(cell.ours_mean) if known else ""
    return f'<td data-value="{value}">{"".join(lines)}</td>'


def _models(cell: Cell) -> str:
    counts = [("n =", cell.num_models, ""), ("", cell.num_failed, " failed"), ("", cell.num_undefined, " undefined")]
    return ", ".join(f"{before} {count:.0f}{after}".strip() for before, count, after in counts if count > 0)


def _figure(figure: PublishedFigure) -> str:
    title = _figure_title(figure)
    alt, caption = (str(figure.facts.get(key) or title) for key in ("alt", "caption"))
    image = base64.b64encode(figure.png).decode("ascii")
    files_beside = f" Also in {', '.join(figure.beside)}." if figure.beside else ""
    return (
        f'<section id="{_anchor("figure-" + figure.name)}">\n<h2>{escape(title)}</h2>\n<figure>\n'
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(title)}">'
        f'<img alt="{escape(alt)}" src="data:image/png;base64,{image}"></div>\n'
        f"<figcaption>{escape(caption + files_beside)}</figcaption>\n</figure>\n"
        f"{_provenance(figure.facts, ('title', 'alt', 'caption', 'figure'))}</section>\n"
    )


def _provenance(manifest: dict[str, Any], shown: Sequence[str]) -> str:
    """The entries of a manifest: short ones as a list, all of them as JSON to unfold."""
    rest = {key: value for key, value in manifest.items() if key not in shown}
    if not rest:
        return '<p class="quiet">No manifest.</p>\n'
    entries = "".join(
        f"<dt>{escape(_words(key))}</dt><dd>{escape(', '.join(texts))}</dd>"
        for key, value in rest.items()
        if 0 < len(texts := _texts(value)) <= _SHORT
    )
    text = json.dumps(rest, indent=2, ensure_ascii=False)
    return f"<dl>{entries}</dl>\n<details><summary>Manifest</summary><pre>{escape(text)}</pre></details>\n"


def _texts(value: object) -> list[str]:
    """A number or a text, or a list of them, as texts; nothing of anything else."""
    values = value if isinstance(value, list) else [] if value is None else [value]
    return [str(each) for each in values] if all(isinstance(each, str | int | float) for each in values) else []


def _group_title(keys: dict[str, str]) -> str:
    """What a group is of, in words."""
    parts = [
        GRAPHS.get(value, value)
        if key == "graph"
        else value
        if key == "subtable"
        else f"N = {value}"
        if key == "num_samples"
        else f"{_words(key)} {value}"
        for key, value in keys.items()
        if value
    ]
    return ", ".join(parts)


def _mark(said: str) -> _Mark:
    words = said.replace("_", " ").strip().lower()
    return next((mark for word, mark in _MARKS.items() if word in words), _Mark("none", "", words))


def _interval(mean: float, half: float) -> str:
    digits = 1 if abs(mean) >= 10 else 2
    return f"{mean:.{digits}f}" + (f" ± {half:.{digits}f}" if math.isfinite(half) else "")


def _with_direction(metric: str) -> str:
    _, lower_is_better = METRICS.get(metric, ("", None))
    return metric if lower_is_better is None else f"{metric} ↓" if lower_is_better else f"{metric} ↑"


def _title(table: PublishedTable) -> str:
    return str(table.manifest.get("title") or _words(table.name))


def _figure_title(figure: PublishedFigure) -> str:
    return str(figure.facts.get("title") or _words(figure.name))


def _words(name: str) -> str:
    return name.replace("_", " ")


def _anchor(name: str) -> str:
    """Letters, digits, - and _ of a name, others by their code: an id that links can name."""
    return "".join(each if each.isascii() and (each.isalnum() or each in "-_") else f".{ord(each):x}" for each in name)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"
