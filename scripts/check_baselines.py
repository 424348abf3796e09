"""Run the packaged baselines on the paper's settings and print their mean ESHD beside the printed one.

python scripts/check_baselines.py [--store DIR] [--seeds N] [--report] [METHOD ...]

Jobs go to the result store; what is there already is not run again, so an interrupted check goes on where it was.
GOLEM takes two to three minutes a job, DAG-GNN and GADGET more than one. `--report` runs nothing.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from experiments.store import ResultStore, latest

ROOT = Path(__file__).resolve().parent.parent
PRINTED = ROOT / "results" / "paper" / "tables.csv"
GRAPHS = ("sf", "er")
METRICS = ("eshd", "num_edges")
ONE_CORE = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"), "1")


class Check(NamedTuple):
    """A method, its name in the printed tables, and the setting that is compared there."""

    method: str
    printed: str
    expected_degree: int = 2
    num_samples: int = 200
    overrides: tuple[str, ...] = ()


CHECKS = (
    Check("grasp", "GRASP"),
    Check("pc", "PC", overrides=("method.implementation=castle",)),
    Check("pc", "PC"),
    Check("ges", "GES"),
    Check("ges", "GES", overrides=("method.implementation=causal_learn",)),
    Check("sort_regress", "--"),
    Check("random", "--"),
    Check("empty", "--"),
    Check("resit", "RESIT", expected_degree=4, num_samples=100),  # not printed for the others' setting
    Check("resit", "RESIT"),
    Check("gadget", "GADGET"),
    Check("dag_gnn", "DAG-GNN"),
    Check("golem", "GOLEM"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("methods", nargs="*", metavar="METHOD", help="all if none is given")
    parser.add_argument("--store", default="results/store")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--report", action="store_true", help="only print what the store holds")
    arguments = parser.parse_args()
    checks = [check for check in CHECKS if not arguments.methods or check.method in arguments.methods]
    if not checks:
        parser.error(f"expected methods among {', '.join(sorted({check.method for check in CHECKS}))}")
    if not arguments.report:
        for check in checks:
            for graph in GRAPHS:
                run(check, graph, arguments.seeds, arguments.store)
    print(report(checks, ResultStore(arguments.store).rows(), arguments.seeds).to_string(index=False))


def run(check: Check, graph: str, num_seeds: int, store: str) -> None:
    """Run the jobs that the store does not have; a job that fails is in the store and does not stop the others."""
    command = [
        *(sys.executable, "-m", "experiments.run", "-m"),
        f"method={check.method}",
        f"data={graph}",
        f"data.seed=range(0,{num_seeds})",
        f"data.expected_degree={check.expected_degree}",
        f"data.num_samples={check.num_samples}",
        f"store.path={store}",
        *check.overrides,
    ]
    subprocess.run(command, env={**os.environ, **ONE_CORE}, stdout=subprocess.DEVNULL, check=False)


def report(checks: list[Check], rows: pd.DataFrame, num_seeds: int) -> pd.DataFrame:
    """Mean and 95 % interval (1.96 standard errors) of every check, ours and printed."""
    done = latest(rows)
    lines = []
    for check in checks:
        for graph in GRAPHS:
            chosen = done[
                (done["method"] == check.method)
                & (done["data_name"] == graph)
                & (done["expected_degree"] == check.expected_degree)
                & (done["num_samples"] == check.num_samples)
                & (done["num_nodes"] == 20)
                & (done["mechanism"] == "gp")
                & (done["data_seed"] < num_seeds)
                & implementation_is(done, check)
            ]
            values = {name: chosen.loc[chosen["metric"] == name, "value"].to_numpy(float) for name in METRICS}
            count = len(values["eshd"])
            spread = 1.96 * values["eshd"].std(ddof=1) / np.sqrt(count) if count > 1 else np.nan
            mean = values["eshd"].mean() if count else np.nan
            printed, printed_spread = printed_eshd(check, graph)
            lines.append(
                {
                    "method": " ".join([check.method, *(text.partition("=")[2] for text in check.overrides)]),
                    "data": f"{graph} degree {check.expected_degree} N {check.num_samples}",
                    "jobs": count,
                    "edges": round(values["num_edges"].mean(), 1) if count else np.nan,
                    "eshd": round(mean, 1),
                    "+-": round(spread, 1),
                    "printed": printed,
                    "printed +-": printed_spread,
                    "overlap": "--" if np.isnan(printed + spread) else abs(mean - printed) <= spread + printed_spread,
                    "seconds": round(chosen["fit_seconds"].median(), 1) if count else np.nan,
                    "MB": round(chosen["peak_memory_mb"].max()) if count else np.nan,
                }
            )
    return pd.DataFrame(lines)


def implementation_is(rows: pd.DataFrame, check: Check) -> pd.Series[bool]:
    """Whether rows belong to the implementation that a check names, or to the default where it names none."""
    default = {"pc": "causal_learn", "ges": "castle"}.get(check.method)
    wanted = check.overrides[0].partition("=")[2] if check.overrides else default
    if wanted is None:
        return pd.Series(True, index=rows.index)
    return rows["method_config"].str.contains(f'"implementation":"{wanted}"', regex=False)


def printed_eshd(check: Check, graph: str) -> tuple[float, float]:
    """Printed mean and half width of the interval, nan where the paper has none."""
    printed = pd.read_csv(PRINTED)
    chosen = printed[
        (printed["graph"] == graph.upper())
        & (printed["num_nodes"] == 20)
        & (printed["expected_degree"] == check.expected_degree)
        & (printed["num_samples"] == check.num_samples)
        & (printed["mechanism"] == "gp")
        & (printed["method"] == check.printed)
        & (printed["metric"] == "ESHD")
    ]
    return (chosen["mean"].iloc[0], chosen["ci95"].iloc[0]) if len(chosen) else (np.nan, np.nan)


if __name__ == "__main__":
    main()
