"""Jobs of the table of interventional distributions and what a store holds of them, without Hydra and without a fit."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

from experiments.expand import SweepJob

METHODS = ("arco_gp", "exact_gp", "beeps", "resit_gp")
MMD = {"arco_gp": (0.15, 0.17, 0.13), "exact_gp": (0.1, 0.1, 0.1), "beeps": (9.0, 9.2, 9.1), "resit_gp": (0.01, 0.02)}


def jobs(methods=METHODS, seeds=3) -> list[SweepJob]:
    """Three data sets for each method."""
    return [
        SweepJob(
            {"data": "sachs_gp", "data.num_samples": "100", "method": method, "data.seed": str(seed)}, f"{method}{seed}"
        )
        for method in methods
        for seed in range(seeds)
    ]


def sweep(overrides):
    """In place of `experiments.expand.expand`."""
    assert overrides == ["+experiment=interventional"]
    return SimpleNamespace(jobs=jobs())


def rows(job: SweepJob, values: dict[str, float | None], *, run="a", status="ok", hour=0) -> list[dict[str, Any]]:
    """The rows of one run of a job: one per metric, or one without if it did not finish."""
    row = {
        "run_id": f"{job.job_id}{run}",
        "job_id": job.job_id,
        "status": status,
        "data_name": "sachs_gp",
        "num_samples": 100,
        "data_seed": int(job.overrides["data.seed"]),
        "method": job.overrides["method"].partition("/")[0],
        "method_config": "{}",
        "method_seed": 0,
        "data_config": "{}",
        "metrics_config": "{}",
        "package_versions": json.dumps({"python": "3.11"}),
        "fit_seconds": 1.0 / 3.0,
        "git_commit": "abc",
        "git_dirty": False,
        "device": "cpu",
        "host": "elsewhere",
        "started_at": datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=hour),
    }
    if status != "ok":
        return [{**row, "error": "boom"}]
    return [
        {**row, "metric": metric, "value": value, "undefined_reason": None if value is not None else "no such graph"}
        for metric, value in values.items()
    ]


def stored() -> list[dict[str, Any]]:
    """All jobs but one of resit_gp, which failed, and one of beeps, not run; L2 of beeps is undefined once."""
    entries = []
    for job in jobs():
        method, seed = job.overrides["method"], int(job.overrides["data.seed"])
        if (method, seed) == ("resit_gp", 2):
            entries += rows(job, {}, status="failed")
        elif (method, seed) != ("beeps", 2):
            mmd = MMD[method][seed]
            entries += rows(job, {"mmd": mmd, "l1": 10 * mmd, "l2": None if (method, seed) == ("beeps", 0) else mmd})
    return entries
