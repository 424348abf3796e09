"""Load for the result store: many appended jobs, and a store with many commits.

python scripts/store_load.py STORE WRITER COUNT appends COUNT jobs.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from pyarrow import parquet

from experiments.store import ResultStore
from experiments.store.schema import as_table

METRICS = ("eshd", "num_edges", "tpr", "tnr", "auroc", "auprc", "a_aid", "p_aid", "oset_aid")


def job_id(name: str) -> str:
    """An id as those of jobs are."""
    return hashlib.sha256(name.encode()).hexdigest()[:16]


def job_rows(name: str) -> list[dict[str, Any]]:
    """The rows of a job, as many and as long as a benchmark's."""
    common = {
        "run_id": job_id(f"run of {name}") * 2,
        "job_id": job_id(name),
        "status": "ok",
        "data_name": "er",
        "method": "arco_gp",
        "method_config": json.dumps({f"setting_{k}": k for k in range(15)}),
        "data_config": json.dumps({f"setting_{k}": k for k in range(10)}),
        "metrics_config": json.dumps(METRICS),
        "method_seed": 0,
        "package_versions": json.dumps({f"package_{k}": "1.0.0" for k in range(15)}),
        "git_commit": 40 * "c",
        "started_at": datetime.now(UTC),
        "host": "host",
    }
    return [{**common, "metric": metric, "value": 1.0} for metric in METRICS]


def make_store(path: Path, commits: int) -> ResultStore:
    """A store with one commit a job, as as many appends leave it, in a fraction of their time.

    The files of rows and of the log are written without deltalake, on the model of those of one append.
    """
    store = ResultStore(path)
    store.append(job_rows("0"))
    log = path / "_delta_log"
    model = (log / f"{1:020d}.json").read_text(encoding="utf-8")
    [add] = [action["add"] for action in map(json.loads, model.splitlines()) if "add" in action]
    [commit] = [line for line in model.splitlines() if "commitInfo" in line]
    for version in range(2, commits):
        name = str(version - 1)
        file = path / f"part-{version:05d}.parquet"
        parquet.write_table(as_table(job_rows(name)), file)
        stats = add["stats"].replace(job_id("0"), job_id(name))
        action = json.dumps({"add": {**add, "path": file.name, "size": file.stat().st_size, "stats": stats}})
        (log / f"{version:020d}.json").write_text(f"{commit}\n{action}", encoding="utf-8")
        if version % 1000 == 0 or version == commits - 90:
            DeltaTable(str(path)).create_checkpoint()
    return store


def append_from_processes(path: Path, writers: int, count: int) -> None:
    """Append `count` jobs from each of several processes at once.

    Raises:
        RuntimeError: an append failed.
    """
    commands = [[sys.executable, __file__, str(path), str(writer), str(count)] for writer in range(writers)]
    processes = [subprocess.Popen(command) for command in commands]
    failed = sum(process.wait() != 0 for process in processes)
    if failed:
        raise RuntimeError(f"expected every append to succeed, {failed} of {writers} writers failed")


if __name__ == "__main__":
    for number in range(int(sys.argv[3])):
        ResultStore(sys.argv[1]).append(job_rows(f"{sys.argv[2]}-{number}"))
