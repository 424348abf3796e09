"""A table as Markdown, LaTeX (booktabs) and CSV; the same table gives the same text."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from experiments.printed import TABLES
from experiments.table_cells import (
    BETTER,
    DIFFERS,
    NOT_COMPUTED,
    NOT_PRINTED,
    OVERLAP,
    UNDEFINED,
    WORSE,
    Cell,
    Group,
    Row,
    Table,
)

SIGNS = {OVERLAP: "≈", BETTER: "(+)", WORSE: "(-)", DIFFERS: "(≠)", NOT_PRINTED: "", UNDEFINED: "", NOT_COMPUTED: ""}
LEGEND = (
    "Mean ± 1.96 standard errors over models; under each of ours the printed value. ≈: the intervals overlap (the "
    "printed one widened by half a unit of its last digit); (+): ours is better; (-): ours is worse; (≠): differs, "
    "neither is better; n.c.: not computed; undef.: undefined for all models; -: not printed. [n]: over n models only."
)
_ONE_DECIMAL = ("#Edges", "ESHD")
_LATEX = {
    "\\": r"\textbackslash{}",
    **{sign: "\\" + sign for sign in "#$%&_{}"},
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": "$<$",
    ">": "$>$",
    "±": r"$\pm$",
    "≈": r"$\approx$",
    "≠": r"$\neq$",
}
COLUMNS = (
    "graph",
    "num_samples",
    "method",
    "variant",
    "metric",
    "ours_mean",
    "ours_ci95",
    "num_models",
    "num_failed",
    "num_undefined",
    "printed_mean",
    "printed_ci95",
    "mark",
)


def markdown(table: Table) -> str:
    """One section per group, one table per part of it."""
    lines = [f"# {table.name}: {TABLES[table.name].title}", "", LEGEND]
    for group in table.groups:
        lines += ["", f"## {_caption(group)}"]
        for part in TABLES[table.name].parts:
            header, *body = _lines(group, part)
            lines += ["", _pipes(header), _pipes(["---"] * len(header)), *map(_pipes, body)]
        lines += ["", *[f"- {_numbered(number, text)}" for number, text in _notes(group)]]
    return "\n".join(lines) + "\n"


def latex(table: Table) -> str:
    """One `table` environment per group; needs the package booktabs."""
    lines = []
    for group in table.groups:
        lines += [r"\begin{table}[p]", r"\centering\scriptsize"]
        lines.append(rf"\caption{{{_escaped(f'{TABLES[table.name].title}: {_caption(group)}')}}}")
        for part in TABLES[table.name].parts:
            header, *body = _lines(group, part)
            lines += [rf"\begin{{tabular}}{{llr{'l' * len(part)}}}", r"\toprule", _ampersands(header), r"\midrule"]
            extra = False
            for cells, row in zip(body, _row_of_line(group), strict=True):
                if not row.printed and not extra:
                    lines.append(r"\midrule")
                    extra = True
                lines.append(_ampersands(cells))
            lines += [r"\bottomrule", r"\end{tabular}", r"\par\medskip"]
        lines += [r"\begin{minipage}{\linewidth}\raggedright\tiny", _escaped(LEGEND)]
        lines += [rf"\par {_escaped(_numbered(number, text))}" for number, text in _notes(group)]
        lines += [r"\end{minipage}", r"\end{table}", ""]
    return "\n".join(lines)


def footnotes(table: Table) -> list[str]:
    """All notes as sentences of their own, which name what they are about."""
    places: dict[str, list[str]] = {}
    for group in table.groups:
        for text, labels in _merged(group).items():
            about = f" ({', '.join(dict.fromkeys(labels))})" if labels else ""
            places.setdefault(text, []).append(f"{_caption(group)}{about}")
    return [f"{'; '.join(where)}: {text}" for text, where in places.items()]


def latex_document(body: str) -> str:
    """A document of its own that inputs the file `body`."""
    return "\n".join(
        [
            r"\documentclass[10pt,a4paper]{article}",
            r"\usepackage[margin=15mm]{geometry}",
            r"\usepackage{booktabs}",
            r"\setlength{\tabcolsep}{4pt}",
            r"\begin{document}",
            rf"\input{{{body}}}",
            r"\end{document}",
            "",
        ]
    )


def cells_csv(table: Table) -> str:
    """One line per cell, with the columns `COLUMNS`."""
    lines = [
        (
            group.graph,
            group.num_samples,
            row.label,
            row.variant,
            cell.metric,
            exact(cell.mean),
            exact(cell.ci95),
            cell.count,
            row.num_failed,
            cell.undefined,
            cell.printed_mean,
            cell.printed_ci95,
            cell.mark,
        )
        for group in table.groups
        for row in group.rows
        for cell in row.cells
    ]
    return csv_text(COLUMNS, lines)


def csv_text(header: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """A CSV file as text; None is an empty field."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *lines])
    return text.getvalue()


def exact(value: float | None) -> str:
    """Six digits, more than any difference of interest and fewer than those that depend on the machine."""
    return "" if value is None else f"{value:.6g}"


def _caption(group: Group) -> str:
    return f"{group.graph}, N = {group.num_samples}"


def _lines(group: Group, part: Sequence[str]) -> list[list[str]]:
    """Header, then for each method a line of ours and one of what is printed."""
    marks = _mark_of_label(group)
    lines = [["method", "", "models", *part]]
    for row in group.rows:
        cells = [cell for cell in row.cells if cell.metric in part]
        label = row.label + "".join(f"[{number}]" for number in marks.get(row.label, ()))
        lines.append([label, "ours", str(row.num_done), *(_ours(cell, row) for cell in cells)])
        if row.printed:
            lines.append(["", "printed", "", *(_printed(cell) for cell in cells)])
    return lines


def _row_of_line(group: Group) -> list[Row]:
    return [row for row in group.rows for _ in range(2 if row.printed else 1)]


def _ours(cell: Cell, row: Row) -> str:
    if cell.mean is None:
        return "undef." if cell.mark == UNDEFINED else "n.c."
    decimals = 1 if cell.metric in _ONE_DECIMAL else 2
    text = f"{cell.mean:.{decimals}f}"
    if cell.ci95 is not None:
        text += f" ± {cell.ci95:.{decimals}f}"
    if cell.count != row.num_done:
        text += f" [{cell.count}]"
    return f"{text} {SIGNS[cell.mark]}".strip()


def _printed(cell: Cell) -> str:
    if not cell.printed_mean:
        return "-"
    return f"{cell.printed_mean} ± {cell.printed_ci95}" if cell.printed_ci95 else cell.printed_mean


def _notes(group: Group) -> list[tuple[str, str]]:
    """Letter and text of every note, '' for a note about all rows; those of one text share a letter."""
    merged = _merged(group)
    return [("", text) for text, labels in merged.items() if not labels] + [
        (letter, text) for letter, (text, _) in zip(_letters(), _lettered(merged), strict=False)
    ]


def _mark_of_label(group: Group) -> dict[str, list[str]]:
    marks: dict[str, list[str]] = {}
    for letter, (_, labels) in zip(_letters(), _lettered(_merged(group)), strict=False):
        for label in labels:
            marks.setdefault(label, []).append(letter)
    return marks


def _merged(group: Group) -> dict[str, list[str]]:
    merged: dict[str, list[str]] = {}
    for note in group.notes:
        merged.setdefault(note.text, []).extend(note.labels)
    return merged


def _lettered(merged: dict[str, list[str]]) -> list[tuple[str, list[str]]]:
    return [(text, labels) for text, labels in merged.items() if labels]


def _letters() -> Iterable[str]:
    alphabet = "abcdefghijklmnopqrstuvwxyz"
    yield from alphabet
    for first in alphabet:
        yield from (first + second for second in alphabet)


def _numbered(letter: str, text: str) -> str:
    return f"[{letter}] {text}" if letter else text


def _pipes(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def _ampersands(cells: Sequence[str]) -> str:
    return " & ".join(map(_escaped, cells)) + r" \\"


def _escaped(text: str) -> str:
    """Text for LaTeX; a character that it may not know becomes a question mark."""
    return "".join(_LATEX.get(sign, sign if sign.isascii() else "?") for sign in text)
