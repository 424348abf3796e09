"""The index of the published tables: how they compare with the paper, and why cells differ."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from bci.errors import InvalidInput
from experiments.outcome import one_line
from experiments.printed import TABLES
from experiments.table_cells import BETTER, DIFFERS, FEW_MODELS, MARKS, OVERLAP, WORSE

EXPLANATIONS, MANIFEST = "explanations.md", "manifest.json"
_FEW = f"on fewer than {FEW_MODELS} models"


def index(out: Path) -> str:
    """The index of the tables published under `out`: links, and how many cells of ours compare how with the paper.

    Raises:
        InvalidInput: the explanations or a published table cannot be read.
    """
    columns = (*MARKS, _FEW)
    lines = [
        "# Tables of the paper, rebuilt",
        "",
        "Made by `make table TABLE=NAME`; not to be edited. A cell is one metric of one method on one graph model and "
        "number of samples. It overlaps where our interval, mean ± 1.96 standard errors over models as in the paper, "
        "meets the printed one, widened by half a unit of its last digit as it is rounded; it differs where neither is "
        "better, as with numbers of edges. It is undefined where no model gives a number, and not printed where the "
        f"paper gives none. Cells compared {_FEW}, counted in the last column too, are marked as if the models were "
        "spread at least as in the paper. Cells that the paper prints in two tables count in both: those of `main_cd` "
        "are those of `num_samples` with 200 samples, and ARCO-K2-GP of `max_parents` is ARCO-GP with 100.",
        "",
        f"| table | store version | jobs done | methods | cells | {' | '.join(columns)} |",
        "|---" * (5 + len(columns)) + "|",
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
            cells = " | ".join(str(counts[each]) for each in columns)
            lines.append(f"| {first} | {jobs} | {kind} | {sum(counts[each] for each in MARKS)} | {cells} |")
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


def _counts(path: Path) -> dict[str, Counter[str]]:
    """How many cells of ARCO-GP and of the other printed methods have which mark, and one on few models."""
    import pandas as pd

    cells = pd.read_csv(path, dtype=str, keep_default_na=False)
    is_arco = cells["variant"].str.partition("/")[0] == "arco_gp"
    is_ours = cells["method"] == cells["variant"]
    is_compared = cells["mark"].isin([OVERLAP, BETTER, WORSE, DIFFERS])
    is_few = is_compared & (cells["num_models"].astype(int) < FEW_MODELS)
    kinds = {"ARCO-GP": is_arco & ~is_ours, "other printed methods": ~is_arco & ~is_ours}
    return {
        kind: Counter(cells.loc[chosen, "mark"]) + Counter({_FEW: int((chosen & is_few).sum())})
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
