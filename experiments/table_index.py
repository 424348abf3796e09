"""The index of the published tables: how they compare with the paper, and why cells differ."""

from __future__ import annotations

import json
from pathlib import Path

from bci.errors import InvalidInput
from experiments.outcome import one_line
from experiments.printed import TABLES
from experiments.table_cells import MARKS

EXPLANATIONS, MANIFEST = "explanations.md", "manifest.json"


def index(out: Path) -> str:
    """The index of the tables published under `out`: links, and how many cells of ours compare how with the paper.

    Raises:
        InvalidInput: the explanations or a published table cannot be read.
    """
    lines = [
        "# Tables of the paper, rebuilt",
        "",
        "Made by `make table TABLE=NAME`; not to be edited. A cell is one metric of one method on one graph model and "
        "number of samples. It overlaps where our 95 % interval meets the printed one.",
        "",
        "| table | store version | jobs done | methods | cells " + "".join(f"| {each} " for each in MARKS) + "|",
        "|---" * (5 + len(MARKS)) + "|",
    ]
    explained = explanations(out / EXPLANATIONS)
    texts = []
    for name in TABLES:
        folder = out / "tables" / name
        if not (folder / MANIFEST).exists():
            continue
        try:
            built = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
            first = f"[{name}](tables/{name}/{name}.md) | {built['store_version']}"
            jobs = f"{built['jobs']['done']} of {built['jobs']['all']}"
            kinds = _counts(folder / f"{name}.csv")
        except (FileNotFoundError, KeyError, TypeError, ValueError) as error:
            raise InvalidInput(
                f"{folder}: expected a published table, got other files ({type(error).__name__}: {one_line(error)}); "
                "build it again or remove it"
            ) from error
        for kind, counts in kinds.items():
            cells = " | ".join(str(counts.get(each, 0)) for each in MARKS)
            lines.append(f"| {first} | {jobs} | {kind} | {sum(counts.values())} | {cells} |")
        files = ", ".join(
            f"[{label}](tables/{name}/{file})"
            for label, file in (
                ("Markdown", f"{name}.md"),
                ("LaTeX", f"{name}.tex"),
                ("CSV", f"{name}.csv"),
                ("values of all jobs", "values.csv"),
                ("manifest", MANIFEST),
            )
        )
        title = TABLES[name].title
        texts += ["", f"## {name}", "", f"{title[0].upper()}{title[1:]}. {files}."]
        texts += ["", explained[name]] if explained.get(name) else []
    if explained.get(""):
        lines += ["", explained[""]]
    return "\n".join([*lines, *texts]) + "\n"


def _counts(path: Path) -> dict[str, dict[str, int]]:
    """How many cells have which mark, for ARCO-GP, the other printed methods and rows that the paper lacks."""
    import pandas as pd

    cells = pd.read_csv(path, dtype=str, keep_default_na=False)
    is_arco = cells["variant"].str.partition("/")[0] == "arco_gp"
    is_ours = cells["method"] == cells["variant"]
    kinds = {"ARCO-GP": is_arco & ~is_ours, "other printed methods": ~is_arco & ~is_ours}
    return {
        kind: {str(mark): int(count) for mark, count in cells.loc[chosen, "mark"].value_counts().items()}
        for kind, chosen in kinds.items()
        if chosen.any()
    }


def explanations(path: Path) -> dict[str, str]:
    """The text under each heading `## NAME`; that before the first one under ''."""
    if not path.exists():
        return {}
    sections: dict[str, list[str]] = {"": []}
    name = ""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path}: expected text in UTF-8, got others ({one_line(error)}); correct it") from error
    for line in text.splitlines():
        if line.startswith("## "):
            name = line[3:].strip()
            if name not in TABLES:
                raise InvalidInput(f"{path}: expected headings among {', '.join(TABLES)}, got {name!r}; correct it")
        elif not line.startswith("# "):
            sections.setdefault(name, []).append(line)
    return {name: "\n".join(lines).strip() for name, lines in sections.items()}
