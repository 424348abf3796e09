"""Names of graph models and methods in tables and figures, as in the paper; the exact posterior comes second."""

from __future__ import annotations

import re
from collections.abc import Iterable

GRAPHS = {"SF": "Scale-free graphs", "ER": "Erdős-Rényi graphs"}
_NAMES = {
    "arco_gp": "ARCO-GP",
    "exact_gp": "Exact-GP",
    "bayesdag": "BAYESDAG",
    "dag_gnn": "DAG-GNN",
    "dds": "DDS",
    "dibs_gp": "DIBS-GP",
    "gadget": "GADGET",
    "ges": "GES",
    "golem": "GOLEM",
    "grasp": "GRASP",
    "pc": "PC",
    "resit": "RESIT",
}
PRINTED = tuple(name for name in _NAMES.values() if name != "Exact-GP")  # those of the paper's Figure 2
POSTERIORS = frozenset({"BAYESDAG", "DDS", "DIBS-GP", "GADGET"})  # of the baselines: many graphs, not one
_UNNAMED = ("quick", "castle")  # variants that the paper does not tell apart


def printed_name(choice: str) -> str:
    """The name of a choice of `method`: `arco_gp/k4` is ARCO-K4-GP, `arco_gp/per_sample` is ARCO-GP (per sample)."""
    base, _, variant = choice.partition("/")
    name = _NAMES.get(base, base.upper().replace("_", "-"))
    bound, _, rest = variant.partition("_") if variant[:1] == "k" and variant[1:2].isdigit() else ("", "", variant)
    if bound:
        name = name.removesuffix("-GP") + f"-{bound.upper()}-GP"
    return f"{name} ({rest.replace('_', ' ')})" if rest and rest not in _UNNAMED else name


def config_of(name: str) -> str:
    """The choice of `method` that reproduces a printed method, whose name is its `printed_name`; there need not be one.

    ARCO-K2-GP is `arco_gp`, as ARCO-GP is; the printed PC is CASTLE's, `pc/castle`.
    """
    if bound := re.fullmatch(r"ARCO-K(\d+)-GP", name):
        return "arco_gp" if bound[1] == "2" else f"arco_gp/k{bound[1]}"
    choice = {printed: choice for choice, printed in _NAMES.items()}.get(name, name.lower().replace("-", "_"))
    return f"{choice}/castle" if choice == "pc" else choice


def without_variant(name: str) -> str:
    """A name as `printed_name` gives it, less what it has in parentheses."""
    return name.partition(" (")[0]


def in_order(names: Iterable[str]) -> list[str]:
    """Distinct names in the order of the paper; variants in parentheses follow their method, other names come last."""
    places = {name: place for place, name in enumerate(_NAMES.values())}

    def place(name: str) -> tuple[int, str]:
        return places.get(without_variant(name), len(places)), name

    return sorted(set(names), key=place)
