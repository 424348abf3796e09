"""Figures of what the store holds: `main_cd`, `exact_posterior` and `accuracy_seconds`, with the numbers in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from bci.errors import InvalidInput
from experiments.comparison_pictures import (
    BLUE,
    GREEN,
    ORANGE,
    Box,
    BoxPanel,
    CostPanel,
    Kind,
    Mark,
    PairPanel,
    accuracy_against_seconds,
    box_plots,
    exact_against_learnt,
)
from experiments.figure_data import planned_jobs
from experiments.intervals import mean_and_ci95
from experiments.paper_methods import GRAPHS, POSTERIORS, PRINTED, in_order, without_variant

METRICS = {"eshd": "ESHD", "a_aid": "A-AID"}
_OURS = Kind("Gaussian processes, parent sets marginalised", BLUE, "o")
_POSTERIOR = Kind("other posteriors over graphs", GREEN, "s")
_ONE_GRAPH = Kind("one graph or equivalence class", ORANGE, "^")
_JOB = ["experiment", "graph", "method", "choice", "num_samples", "max_parents", "data_seed", "job_id"]
_SETTING = ["mechanism", "expected_degree", "num_nodes", "num_samples", "max_parents"]
_PAIRED = {  # experiments with the exact posterior, and the methods of theirs that are compared with it
    "num_samples": "arco_gp,arco_gp/per_sample,exact_gp",
    "max_parents": "arco_gp/k1,arco_gp,arco_gp/k3,arco_gp/k4,exact_gp/k1,exact_gp,exact_gp/k3,exact_gp/k4",
    "degree_4": "arco_gp,arco_gp/k4,exact_gp,exact_gp/k4",
    "degree_8": "arco_gp,arco_gp/k4,exact_gp,exact_gp/k4",
    "invertible": "arco_gp,exact_gp",
}
_PER_SAMPLE = ["data.num_samples=200", "method=arco_gp/per_sample"]


@dataclass(frozen=True, eq=False)
class Drawn:
    """A figure, the values in it, one row per job or pair, and what is to be said about it, as JSON knows it."""

    figure: Figure
    values: pd.DataFrame
    facts: dict[str, Any]


def main_cd(rows: pd.DataFrame) -> Drawn:
    """ESHD and A-AID of every method as box plots, as Figure 2 of Toth et al. (2025)."""
    jobs = _finished("main_cd", planned_jobs("main_cd", rows))
    done = jobs[jobs["status"] == "ok"]
    panels = [
        [
            BoxPanel(
                title,
                f"{label} (lower is better)",
                [
                    Box(name, group[metric].dropna().to_numpy(float), _kind(name))
                    for name, group in _by_method(done[done["graph"] == graph])
                ],
            )
            for graph, title in GRAPHS.items()
        ]
        for metric, label in METRICS.items()
    ]
    left_out = _left_out(done)
    caption = (
        "Structure learning on simulated data, 20 variables, 200 samples, as Figure 2 of the paper: one point is one "
        "data set, boxes span the quartiles, n is the number of data sets with a defined value."
    )
    return Drawn(
        box_plots(panels, "Structure learning: 20 variables, expected degree 2, 200 samples"),
        done[[*_JOB, *METRICS, "data_fingerprint"]],
        {
            **_said("main_cd", "Structure learning", caption, _summary(jobs), done, left_out),
            "alt": "Box plots of ESHD and A-AID per method on scale-free and Erdős-Rényi graphs. "
            + _medians(done, "eshd"),
            "boxes": _counts(jobs),
        },
    )


def exact_posterior(rows: pd.DataFrame) -> Drawn:
    """ESHD of ARCO-GP against that of the exact posterior on the same data, in every setting that has both."""
    planned = {name: planned_jobs(name, rows, [f"method={methods}"]) for name, methods in _PAIRED.items()}
    jobs = pd.concat(planned.values(), ignore_index=True).drop_duplicates("job_id")
    done = _finished("num_samples", jobs)
    done = done[(done["status"] == "ok") & done["eshd"].notna()]
    is_exact = done["choice"].str.startswith("exact_gp")
    keys = [*_SETTING, "graph", "data_seed"]
    pairs = done[~is_exact].merge(
        done.loc[is_exact, [*keys, "eshd", "job_id", "data_fingerprint"]], on=keys, suffixes=("", "_exact")
    )
    unequal = pairs["data_fingerprint"] != pairs["data_fingerprint_exact"]  # of versions that make other data
    pairs = pairs[~unequal]
    if pairs.empty:
        raise InvalidInput(
            "store.path: expected jobs of arco_gp and exact_gp on the same data, got none; "
            "run python -m experiments.run -m +experiment=num_samples method=arco_gp,exact_gp"
        )
    pairs = pairs.assign(
        difference=pairs["eshd"] - pairs["eshd_exact"],
        fit=pairs["choice"].map(lambda choice: "per sample" if choice.endswith("per_sample") else "full likelihood"),
    ).sort_values([*_SETTING, "fit", "graph", "data_seed"], kind="stable")
    panels, settings = [], []
    for setting, group in pairs.groupby(_SETTING, sort=True):
        drawn = []
        for (fit, graph), same in group.groupby(["fit", "graph"], sort=True):
            colour, marker = (BLUE, "o") if graph == "ER" else (ORANGE, "^")
            kind = Kind(graph if fit == "full likelihood" else f"{graph}, {fit}", colour, marker, fit != "per sample")
            drawn.append((kind, same["eshd_exact"].to_numpy(float), same["eshd"].to_numpy(float)))
            mean, half = mean_and_ci95(same["difference"])
            settings.append(
                {
                    **dict(zip(_SETTING, setting, strict=True)),
                    "graph": graph,
                    "hyper_parameters": fit,
                    "n": len(same),
                    "mean_exact": _number(same["eshd_exact"].mean()),
                    "mean_learnt": _number(same["eshd"].mean()),
                    "mean_difference": _number(mean),
                    "ci95_difference": _number(half),
                }
            )
        panels.append(PairPanel(_setting_title(*setting), drawn))
    full = pairs[pairs["fit"] == "full likelihood"]
    caption = (
        "How much of the error is approximate inference, how much is the model. Each point is a data set: ESHD of "
        "ARCO-GP, which learns a distribution of causal orders, against that of the exact posterior of the same model, "
        "which sums over all orders. Above the diagonal, approximate inference lost something; the ESHD of the exact "
        "posterior itself is the model's. Hyper-parameters found per sample, as in the published code (open markers), "
        "make it another model, so their distance is not approximate inference alone."
    )
    summary = (
        f"With the full likelihood, ARCO-GP has {full['eshd'].mean():.1f} on average and the exact posterior "
        f"{full['eshd_exact'].mean():.1f}, over {len(full)} pairs."
        if len(full)
        else "No pair with the full likelihood."
    )
    return Drawn(
        exact_against_learnt(panels, "Approximate inference against the exact posterior", "ESHD"),
        pairs[[*_JOB, "mechanism", "expected_degree", "fit", "eshd", "eshd_exact", "difference", "job_id_exact"]],
        {
            **_said("exact_posterior", "Approximate inference against the exact posterior", caption, summary, done, []),
            "alt": f"Scatter plots of {len(panels)} settings and box plots of the differences. {summary}",
            "pairs_of": {name: int(pairs["job_id"].isin(frame["job_id"]).sum()) for name, frame in planned.items()},
            "pairs_left_out_as_data_differ": int(unequal.sum()),
            "settings": settings,
        },
    )


def accuracy_seconds(rows: pd.DataFrame) -> Drawn:
    """Mean ESHD and A-AID against mean seconds of a fit."""
    parts = [planned_jobs("main_cd", rows), planned_jobs("num_samples", rows, _PER_SAMPLE)]
    jobs = _finished("main_cd", pd.concat(parts, ignore_index=True).drop_duplicates("job_id"))
    done = jobs[jobs["status"] == "ok"]
    points, panels = [], []
    for metric, label in METRICS.items():
        row = []
        for graph, title in GRAPHS.items():
            marks = []
            for name, group in _by_method(done[done["graph"] == graph]):
                seconds, error = mean_and_ci95(group["fit_seconds"]), mean_and_ci95(group[metric])
                point = {"graph": graph, "metric": metric, "method": name, "n": int(group[metric].notna().sum())}
                numbers = dict(
                    zip(("mean_seconds", "ci95_seconds", "mean", "ci95"), map(_number, (*seconds, *error)), strict=True)
                )
                points.append(point | numbers)
                if point["n"]:
                    marks.append(Mark(name, _kind(name), seconds, error))
            row.append(CostPanel(title, f"{label} (mean, lower is better)", marks))
        panels.append(row)
    left_out = _left_out(done)
    caption = (
        "Accuracy against cost, 20 variables, 200 samples: means over data sets with 95 % intervals, seconds of a fit "
        "on a logarithmic axis. Jobs may have shared their machine with others, so times are good to a factor."
    )
    return Drawn(
        accuracy_against_seconds(panels, "Accuracy against seconds: 20 variables, 200 samples"),
        done[[*_JOB, *METRICS, "fit_seconds", "host"]],
        {
            **_said("accuracy_seconds", "Accuracy against seconds", caption, _summary(jobs), done, left_out),
            "alt": "Mean error against mean seconds of a fit, per method. " + _medians(done, "fit_seconds"),
            "points": points,
        },
    )


FIGURES: dict[str, Callable[[pd.DataFrame], Drawn]] = {
    "main_cd": main_cd,
    "exact_posterior": exact_posterior,
    "accuracy_seconds": accuracy_seconds,
}


def _finished(experiment: str, jobs: pd.DataFrame) -> pd.DataFrame:
    """The same jobs; InvalidInput unless one has finished."""
    if not (jobs["status"] == "ok").any():
        raise InvalidInput(
            f"store.path: expected finished jobs of {experiment}, got none; "
            f"run python -m experiments.run -m +experiment={experiment}"
        )
    return jobs


def _kind(name: str) -> Kind:
    if name.startswith(("ARCO", "Exact")):
        return _OURS
    return _POSTERIOR if without_variant(name) in POSTERIORS else _ONE_GRAPH


def _by_method(jobs: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    return [(name, jobs[jobs["method"] == name]) for name in in_order(jobs["method"])]


def _left_out(done: pd.DataFrame) -> list[str]:
    return [name for name in PRINTED if name not in set(done["method"])]


def _said(
    name: str, title: str, caption: str, summary: str, done: pd.DataFrame, left_out: Sequence[str]
) -> dict[str, Any]:
    missing = f" Not computed, so left out: {', '.join(left_out)}." if left_out else ""
    return {
        "figure": name,
        "title": title,
        "caption": f"{caption} {summary}{missing}",
        "not_computed": list(left_out),
        "git_commits": sorted(set(done["git_commit"].dropna())),
        "hosts": sorted(set(done["host"].dropna())),
    }


def _summary(jobs: pd.DataFrame) -> str:
    counts = jobs["status"].value_counts()
    parts = [f"{counts.get('ok', 0)} of {len(jobs)} jobs finished"]
    if counts.get("failed", 0):
        parts.append(f"{counts['failed']} failed")
    few = []
    for name, group in _by_method(jobs):
        finished = int((group["status"] == "ok").sum())
        if 0 < finished < len(group):
            few.append(f"{name} {finished} of {len(group)}")
    return ", ".join(parts) + (f" (fewer than planned: {', '.join(few)})." if few else ".")


def _counts(jobs: pd.DataFrame) -> list[dict[str, Any]]:
    """Per graph and method how many jobs were planned, finished and failed, and how many values each box holds."""
    return [
        {
            "graph": graph,
            "method": name,
            "planned": len(group),
            "finished": int((group["status"] == "ok").sum()),
            "failed": int((group["status"] == "failed").sum()),
            **{f"n_{metric}": int(group[metric].notna().sum()) for metric in METRICS},
        }
        for graph in GRAPHS
        for name, group in _by_method(jobs[jobs["graph"] == graph])
    ]


def _medians(done: pd.DataFrame, column: str) -> str:
    label = METRICS.get(column, "seconds")
    parts = [f"{name} {group[column].median():.3g}" for name, group in _by_method(done)]
    return f"Median {label} over both graph models: {', '.join(parts)}."


def _setting_title(mechanism: str, degree: float, num_nodes: int, num_samples: int, max_parents: int) -> str:
    kind = "" if mechanism == "gp" else f"{mechanism}, "
    return f"{kind}degree {degree:g}, d = {num_nodes}\nN = {num_samples}, K = {max_parents}"


def _number(value: float) -> float | None:
    return None if pd.isna(value) else round(float(value), 6)
