"""Protein signalling in human T cells (Sachs et al. 2005): the real data, and simulations on its consensus graph.

Sachs, Perez, Pe'er, Lauffenburger and Nolan 2005, "Causal protein-signaling networks derived from multiparameter
single-cell data", Science 308.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import pandas as pd

from bci.data.simulate import dataset_on_graph
from bci.dataset import Bools, Dataset, Floats
from bci.errors import InvalidInput
from bci.randomness import stream
from bci.settings import check_choice

# Column of the file -> protein, in the order of the file, which is not a topological order of the consensus graph.
PROTEINS = {
    "praf": "Raf",
    "pmek": "Mek",
    "plcg": "Plcg",
    "PIP2": "PIP2",
    "PIP3": "PIP3",
    "p44/42": "Erk",
    "pakts473": "Akt",
    "PKA": "PKA",
    "PKC": "PKC",
    "P38": "P38",
    "pjnk": "Jnk",
}
CONSENSUS_EDGES = {  # 17 edges, cause -> effects
    "PKC": ("PKA", "Jnk", "P38", "Raf", "Mek"),
    "PKA": ("Jnk", "P38", "Akt", "Erk", "Mek", "Raf"),
    "Raf": ("Mek",),
    "Mek": ("Erk",),
    "Erk": ("Akt",),
    "Plcg": ("PIP3", "PIP2"),
    "PIP3": ("PIP2",),
}


class Condition(NamedTuple):
    """A block of rows of the file: the reagent, and the measured protein that it acts on directly, if any."""

    reagent: str
    num_rows: int
    target: str | None


# Blocks in the order of the file. The general stimulations (cd3cd28, icam2) act on receptors that are not measured.
# LY294002 inhibits PI3K, which is not measured either: PIP3 and Akt respond to it like any effect of a hidden cause,
# no measured value is set by it, so no entry is masked.
CONDITIONS = (
    Condition("cd3cd28", 853, None),
    Condition("cd3cd28 + icam2", 902, None),
    Condition("cd3cd28 + aktinhib", 911, "Akt"),
    Condition("cd3cd28 + g0076", 723, "PKC"),
    Condition("cd3cd28 + psitect", 810, "PIP2"),
    Condition("cd3cd28 + u0126", 799, "Mek"),
    Condition("cd3cd28 + ly", 848, None),
    Condition("pma", 913, "PKC"),
    Condition("b2camp", 707, "PKA"),
)
FIRST_ROW = {"praf": 26.4, "pmek": 13.2, "plcg": 8.82}

Conditions = Literal["observational", "all"]


def sachs(conditions: str = "observational", log: bool = False) -> Dataset:
    """The measured data with the 17-edge consensus graph; columns in the order of the file, named as in the paper.

    Args:
        conditions: "observational", the 853 rows under general stimulation alone; or "all", the 7,466 rows of
            nine conditions with the directly manipulated protein of each marked as intervened.
        log: take logarithms before standardising; the raw intensities are heavy-tailed.

    Raises:
        InvalidInput: an unknown choice, or the package `cdt`, which carries the data, is missing or has other data.
    """
    chosen: Conditions = check_choice("conditions", conditions, get_args(Conditions))
    check_choice("log", log, (False, True))
    raw: Floats = _measurements().to_numpy(dtype=np.float64)
    targets = [condition.target for condition in CONDITIONS for _ in range(condition.num_rows)]
    names = list(PROTEINS.values())
    intervened = np.array([[target == name for name in names] for target in targets])
    num_rows = CONDITIONS[0].num_rows if chosen == "observational" else raw.shape[0]
    raw, intervened = raw[:num_rows], intervened[:num_rows]
    return Dataset.from_raw(np.log(raw) if log else raw, names, intervened=intervened, graph=consensus_graph())


def sachs_gp(
    *,
    mechanism: str,
    num_samples: int,
    seed: int,
    noise_variance: Mapping[str, float] | float | None = None,
    sigmoid_signs: str = "per_parent",
    interventions: Mapping[str, Any] | None = None,
    interventional_test: Mapping[str, Any] | None = None,
) -> Dataset:
    """Simulated data on the consensus graph, proteins in random order; arguments as `simulated_dataset`."""
    names = list(PROTEINS.values())
    order = stream(seed, "columns").permutation(len(names))
    return dataset_on_graph(
        consensus_graph()[np.ix_(order, order)],
        [names[node] for node in order],
        mechanism=mechanism,
        num_samples=num_samples,
        seed=seed,
        noise_variance=noise_variance,
        sigmoid_signs=sigmoid_signs,
        interventions=interventions,
        interventional_test=interventional_test,
    )


def consensus_graph() -> Bools:
    """The 17-edge consensus graph (11, 11), row causes column, nodes in the order of `PROTEINS`."""
    names = list(PROTEINS.values())
    graph = np.zeros((len(names), len(names)), dtype=bool)
    for cause, effects in CONSENSUS_EDGES.items():
        for effect in effects:
            graph[names.index(cause), names.index(effect)] = True
    return graph


def _measurements() -> pd.DataFrame:
    """The file as it is, 7,466 rows, after checking that it is the one that `CONDITIONS` describes."""
    spec = importlib.util.find_spec("cdt")  # importing cdt takes seconds and changes the loggers
    if spec is None or not spec.submodule_search_locations:
        raise InvalidInput("sachs: expected the package cdt, which carries the data, got none; run `pip install cdt`")
    path = Path(spec.submodule_search_locations[0]) / "data" / "resources" / "cyto_full_data.csv"
    if not path.is_file():
        raise InvalidInput(f"{path}: expected the Sachs data, got no file; reinstall cdt 0.6")
    table = pd.read_csv(path)
    num_rows = sum(condition.num_rows for condition in CONDITIONS)
    if (
        list(table.columns) != list(PROTEINS)
        or len(table) != num_rows
        or any(table[column].iloc[0] != value for column, value in FIRST_ROW.items())
    ):
        raise InvalidInput(
            f"{path}: expected the Sachs data, {num_rows} rows starting with praf 26.4, pmek 13.2, plcg 8.82, "
            f"got {len(table)} rows of other data; reinstall cdt 0.6"
        )
    return table
