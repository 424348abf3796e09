"""Published tables and figures for tests of the page, with names that need escaping."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

HEADER = [
    "graph",
    "num_samples",
    "method",
    "metric",
    "ours_mean",
    "ours_ci95",
    "num_models",
    "num_failed",
    "num_undefined",
    "printed_mean",
    "printed_ci95",
    "mark",
]
EVIL = '<script>alert("x")</script>&amp;'
ROWS = [
    ["ER", "100", "ARCO-GP", "ESHD", "9.5", "1.25", "20", "0", "0", "10", "2", "overlap"],
    ["ER", "100", "ARCO-GP", "A-AID", "0.1234", "0.01", "20", "0", "0", "0.2", "0.02", "ours better"],
    ["ER", "100", "GES", "ESHD", "100.26", "3", "18", "2", "0", "90", "2", "ours worse"],
    ["ER", "100", "GES", "A-AID", "", "", "18", "2", "18", "", "", "not printed"],
    ["ER", "100", EVIL, "ESHD", "", "", "0", "0", "0", "33", "4", "not computed"],
    ["SF", "100", "ARCO-GP", "ESHD", "-1.5", "", "1", "0", "0", "", "", ""],
]
WIDE = [f"METRIC-{k}" for k in range(12)]
MEANS = ("0.25", "-1.5", "0.125")  # in an order that texts would not give


def write_table(folder: Path, name: str, rows: list[list[str]], manifest: dict[str, object], header=HEADER) -> None:
    """Write `folder/NAME/NAME.csv` and its manifest."""
    (folder / name).mkdir(parents=True)
    with (folder / name / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])
    (folder / name / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def publish(root: Path) -> tuple[Path, Path]:
    """Two tables, one of them wide, and two figures, one of them without a JSON file; the folders of both."""
    tables, figures = root / "tables", root / "figures"
    notes = {"store_version": 7, "git_commits": ["abc"], "footnotes": [f"A note {EVIL}"], "numbers": {"a": [1]}}
    write_table(tables, "degree_4", ROWS, notes)
    wide = [
        ["ER", "200", f"METHOD-{k}", metric, mean, "1", "20", "0", "0", mean, "1", "overlap"]
        for k, mean in enumerate(MEANS)
        for metric in WIDE
    ]
    write_table(tables, "wide", wide, {"title": f"Wide {EVIL}"})
    figures.mkdir()
    for name in ("main_cd", "plain"):
        picture = Figure(figsize=(12, 3))
        picture.subplots().plot(np.arange(3))
        picture.savefig(figures / f"{name}.png", metadata={"Software": None})
    facts = {"title": "A figure", "caption": f"Caption {EVIL}", "alt": 'Alt "text"', "store_version": 7}
    (figures / "main_cd.json").write_text(json.dumps(facts), encoding="utf-8")
    (figures / "main_cd.pdf").write_bytes(b"%PDF")
    return tables, figures
