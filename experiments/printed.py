"""The printed tables of the paper: which experiment reproduces which, their layout, and what is known to be wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

FILE = Path(__file__).resolve().parent.parent / "results" / "paper" / "tables.csv"
GRAPHS = {"sf": "SF", "er": "ER", "sachs": "Sachs", "sachs_gp": "Sachs"}  # of the data of a job
AID = ("#Edges", "A-AID", "P-AID", "OSET-AID")
EDGES = ("ESHD", "AUROC", "AUPRC", "TPR", "TNR")
EFFECTS = ("MMD", "L1", "L2")
METRICS = {  # printed name: (name in the store, better if lower; None where neither is better)
    "#Edges": ("num_edges", None),
    "A-AID": ("a_aid", True),
    "P-AID": ("p_aid", True),
    "OSET-AID": ("oset_aid", True),
    "ESHD": ("eshd", True),
    "AUROC": ("auroc", False),
    "AUPRC": ("auprc", False),
    "TPR": ("tpr", False),
    "TNR": ("tnr", False),
    "MMD": ("mmd", True),
    "L1": ("l1", True),
    "L2": ("l2", True),
}


@dataclass(frozen=True)
class PrintedTable:
    """A table of the paper.

    Attributes:
        title: what it varies.
        sources: the names of its parts in the file of printed values.
        parts: the metrics of each part, as columns.
        num_samples: the sample sizes taken from the sources, all if None.
    """

    title: str
    sources: tuple[str, ...]
    parts: tuple[tuple[str, ...], ...] = (AID, EDGES)
    num_samples: int | None = None

    @property
    def metrics(self) -> tuple[str, ...]:
        """All columns."""
        return tuple(metric for part in self.parts for metric in part)


_SIZES = tuple(f"ablations_n_data_{graph}_nl_{part}" for graph in ("sf", "er") for part in (1, 2))
TABLES = {  # the name of the experiment: the table
    "main_cd": PrintedTable("structure learning, 20 variables, 200 samples", _SIZES, num_samples=200),
    "sachs": PrintedTable("the Sachs data", ("sachs",)),
    "interventional": PrintedTable("interventional distributions", ("dist-scores",), (EFFECTS,)),
    "nodes_50": PrintedTable("50 variables", ("ablations_50_nodes_1",)),
    "max_parents": PrintedTable("largest number of parents K", ("ablations_max_pssize_1",)),
    "degree_4": PrintedTable("expected degree 4", ("ablations_avg_deg_4",)),
    "degree_8": PrintedTable("expected degree 8", ("ablations_avg_deg_8",)),
    "invertible": PrintedTable("invertible mechanisms", ("ablations_invertible_nl",)),
    "num_samples": PrintedTable("number of samples", _SIZES),
}


def printed_cells(name: str) -> pd.DataFrame:
    """The printed cells of a table, as text and in the paper's order; '' where nothing is printed."""
    import pandas as pd

    table = TABLES[name]
    cells = pd.read_csv(FILE, dtype=str, keep_default_na=False)
    cells = cells[cells["table"].isin(table.sources)]
    return cells if table.num_samples is None else cells[cells["num_samples"] == str(table.num_samples)]


def defects(name: str, graph: str) -> list[tuple[str, Sequence[str]]]:
    """What is known to be wrong with printed rows: a sentence and the methods it is about, none for all."""
    found: list[tuple[str, Sequence[str]]] = [
        (
            "The printed row has every edge reversed: the authors' code reads lingam's adjacency matrix (child, "
            "parent) as (parent, child). Ours does not imitate that.",
            ("RESIT", "RESIT-GP"),
        )
    ]
    if graph == "ER" and name in ("degree_8", "invertible"):
        found.append(("The printed rows of DDS and DIBS-GP look swapped with each other.", ("DDS", "DIBS-GP")))
    if name == "sachs":
        found.append(
            (
                "The 20 models are 20 seeds of the method on one data set: the intervals tell nothing of other data, "
                "and are zero for methods without randomness.",
                (),
            )
        )
    return found
