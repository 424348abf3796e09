"""What the store holds of the jobs of an experiment: one row per planned job, its metrics as columns."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pandas as pd

from bci.errors import InvalidInput
from experiments.command import explain
from experiments.expand import SweepJob, expand
from experiments.paper_methods import printed_name
from experiments.store import latest

METRICS = ("eshd", "a_aid")
_OF_RUN = (
    "run_id",
    "num_nodes",
    "expected_degree",
    "mechanism",
    "num_samples",
    "data_fingerprint",
    "method_config",
    "fit_seconds",
    "git_commit",
    "host",
)


def planned_jobs(experiment: str, rows: pd.DataFrame, overrides: Sequence[str] = ()) -> pd.DataFrame:
    """Every job of an experiment, in the order they would run, with the newest run that finished.

    Args:
        experiment: a name in `conf/experiment`.
        rows: of the store, as from `ResultStore.rows`.
        overrides: replace what the experiment says, as on the command line of a sweep.

    Returns:
        Columns `experiment`, `method` (its printed name), `choice` (of `method`), `graph` (ER or SF), `data_seed`,
        `job_id`, `status` (ok, failed or missing), `max_parents`, those of `METRICS` (NaN where undefined), and some of
        the store; of a job that is not ok the latter are empty.

    Raises:
        InvalidInput: no such experiment, or one that does not sweep over graphs.
    """
    try:
        jobs = expand([f"+experiment={experiment}", *overrides]).jobs
    except InvalidInput:
        raise
    except Exception as error:  # of Hydra, about the overrides
        raise InvalidInput(explain(error)) from error
    planned = pd.DataFrame([_planned(experiment, job) for job in jobs])
    newest = latest(rows[rows["job_id"].isin(planned["job_id"])])
    runs = newest.drop_duplicates("job_id").set_index("job_id")[list(_OF_RUN)]
    values = newest[newest["metric"].isin(METRICS)].pivot(index="job_id", columns="metric", values="value")
    tried = set(rows["job_id"])
    frame = planned.join(runs, on="job_id").join(values.reindex(columns=list(METRICS)).astype(float), on="job_id")
    done = frame["job_id"].isin(runs.index)
    frame["status"] = np.where(done, "ok", np.where(frame["job_id"].isin(tried), "failed", "missing"))
    bounds = [
        json.loads(config).get("max_parents") if finished else None
        for config, finished in zip(frame["method_config"], done, strict=True)
    ]
    frame["max_parents"] = pd.array(bounds, dtype="Int64")
    frame["fit_seconds"] = frame["fit_seconds"].astype(float)
    return frame.drop(columns="method_config")


def _planned(experiment: str, job: SweepJob) -> dict[str, object]:
    graph, choice = job.overrides.get("data"), job.overrides.get("method")
    if graph not in ("er", "sf") or choice is None:
        raise InvalidInput(
            f"experiment: expected one that sweeps over data=er,sf and methods, got {experiment!r}; choose main_cd"
        )
    return {
        "experiment": experiment,
        "method": printed_name(choice),
        "choice": choice,
        "graph": graph.upper(),
        "data_seed": int(job.overrides.get("data.seed", 0)),
        "job_id": job.job_id,
    }
