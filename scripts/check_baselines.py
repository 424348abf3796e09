"""Run the baselines on the paper's settings and print their mean ESHD beside the printed one.

python scripts/check_baselines.py [--store DIR] [--seeds N] [--report] [METHOD ...]

Jobs go to the result store; what is there already is not run again, so an interrupted check goes on where it was.
GOLEM takes two to three minutes a job, DAG-GNN and GADGET more than one, DiBS-GP half to one, BayesDAG four to ten.
`--report` runs nothing.
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
from hydra import compose, initialize_config_dir

from experiments.command import CONFIGS
from experiments.intervals import mean_and_ci95
from experiments.job import job_id
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

    def arguments(self, graph: str, seeds: str) -> list[str]:
        """What the command line of its jobs says."""
        return [
            f"method={self.method}",
            f"data={graph}",
            f"data.seed={seeds}",
            f"data.expected_degree={self.expected_degree}",
            f"data.num_samples={self.num_samples}",
            *self.overrides,
        ]


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
    Check("dibs_gp", "DIBS-GP"),
    Check("dibs_gp", "DIBS-GP", overrides=("method.likelihood_weight=per_sample",)),
    Check("gadget", "GADGET"),
    Check("dag_gnn", "DAG-GNN"),
    Check("golem", "GOLEM"),
    Check("dds", "DDS"),
    Check("dds", "DDS", overrides=("method.regulariser=bernoulli_kl",)),
    Check("bayesdag", "BAYESDAG"),
    Check("bayesdag", "BAYESDAG", overrides=("method.extra_sampler_steps=0",)),
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
    arguments = [*check.arguments(graph, f"range(0,{num_seeds})"), f"store.path={store}"]
    command = [sys.executable, "-m", "experiments.run", "-m", *arguments]
    subprocess.run(command, env={**os.environ, **ONE_CORE}, stdout=subprocess.DEVNULL, check=False)


def job_ids(check: Check, graph: str, num_seeds: int) -> list[str]:
    """The ids of the jobs of a check, one per seed of the data."""
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        config = compose("config", overrides=check.arguments(graph, seeds="0"))
    ids = []
    for seed in range(num_seeds):
        config.data.seed = seed
        ids.append(job_id(config, check.method, graph))
    return ids


def report(checks: list[Check], rows: pd.DataFrame, num_seeds: int) -> pd.DataFrame:
    """Mean and 95 % interval (1.96 standard errors) of every check, ours and printed."""
    done = latest(rows)
    lines = []
    for check in checks:
        for graph in GRAPHS:
            chosen = done[done["job_id"].isin(job_ids(check, graph, num_seeds))]
            values = {name: chosen.loc[chosen["metric"] == name, "value"] for name in METRICS}
            mean, spread = mean_and_ci95(values["eshd"])
            printed, printed_spread = printed_eshd(check, graph)
            lines.append(
                {
                    "method": " ".join([check.method, *(text.partition("=")[2] for text in check.overrides)]),
                    "data": f"{graph} degree {check.expected_degree} N {check.num_samples}",
                    "jobs": len(values["eshd"]),
                    "edges": round(mean_and_ci95(values["num_edges"])[0], 1),
                    "eshd": round(mean, 1),
                    "+-": round(spread, 1),
                    "printed": printed,
                    "printed +-": printed_spread,
                    "overlap": "--" if np.isnan(printed + spread) else abs(mean - printed) <= spread + printed_spread,
                    "seconds": round(chosen["fit_seconds"].median(), 1),
                    "MB": chosen["peak_memory_mb"].round().max(),
                }
            )
    return pd.DataFrame(lines)


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
