"""Published tables: their files and what they were built from."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bci.errors import InvalidInput
from experiments.locks import alone
from experiments.outcome import one_line
from experiments.printed import METRICS, TABLES
from experiments.table_cells import Table
from experiments.table_index import EXPLANATIONS, MANIFEST, explanations, index
from experiments.table_text import cells_csv, csv_text, exact, footnotes, latex, latex_document, markdown

if TYPE_CHECKING:
    import pandas as pd

MACHINES, INDEX = "machines.json", "README.md"
LOCK = ".publish.lock"  # of a folder of published tables: one process at a time writes to it
_VALUES = (
    "job_id",
    "graph",
    "num_samples",
    "variant",
    "data_seed",
    "method_seed",
    "status",
    "metric",
    "value",
    "undefined_reason",
    "fit_seconds",
    "peak_memory_mb",
    "git_commit",
)


def publish(table: Table, out: Path, version: int) -> Path:
    """Write the files of a table to `out/tables/NAME` and the index of all tables to `out`; returns the folder.

    Args:
        out: may hold explanations.md, whose sections `## NAME` go into the index, and machines.json, which describes
            the machines of the manifests by their id; this machine is added to it where jobs ran here.
        version: of the store that the table was built from.

    Raises:
        InvalidInput: a file cannot be read or written.
    """
    folder = out / "tables" / table.name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with alone(out / LOCK):
            explanations(out / EXPLANATIONS)  # refused before anything is written
            _describe_machine(out / MACHINES, set(table.done["host"]) | set(table.failed["host"]))
            texts = {
                f"{table.name}.md": markdown(table),
                f"{table.name}.csv": cells_csv(table),
                f"{table.name}_tables.tex": latex(table),
                f"{table.name}.tex": latex_document(f"{table.name}_tables.tex"),
                "values.csv": values_csv(table),
                MANIFEST: json.dumps(manifest(table, version), indent=1) + "\n",  # the last: what lacks it is not whole
            }
            (folder / MANIFEST).unlink(missing_ok=True)
            for name, text in texts.items():
                _write(folder / name, text)
            _write(out / INDEX, index(out))
    except OSError as error:
        about = f": {error.filename}" if error.filename else ""
        raise InvalidInput(
            f"out: expected a folder of published tables that can be read and written to, got '{out}' "
            f"({error.strerror or one_line(error)}{about}); choose another"
        ) from error
    return folder


def manifest(table: Table, version: int) -> dict[str, Any]:
    """What a table was built from; it depends on the version of the store alone, wherever it is built."""
    runs = table.done.drop_duplicates("run_id")
    tried = _concatenated([runs, table.failed])
    commits = tried.groupby(["git_commit", "git_dirty"], dropna=False).size()
    packages = sorted(set(tried["package_versions"]))
    return {
        "title": f"{table.name}: {TABLES[table.name].title}",
        "footnotes": footnotes(table),
        "store_version": version,
        "newest_run": max(tried["started_at"]).isoformat(),
        "jobs": {
            "all": len(table.jobs),
            "done": len(runs),
            "failed": len(table.failed),
            "missing": len(table.jobs) - len(tried),
        },
        "commits": [
            {"commit": _plain(commit), "uncommitted_changes": _plain(dirty), "jobs": int(count)}
            for (commit, dirty), count in commits.items()
        ],
        "packages": [
            {"jobs": int((tried["package_versions"] == text).sum()), "versions": json.loads(text)} for text in packages
        ],
        "seeds": {
            "data": sorted({int(seed) for seed in tried["data_seed"].dropna()}),
            "method": sorted({int(seed) for seed in tried["method_seed"]}),
        },
        "machines": [
            {
                "id": _machine_id(host),
                "jobs": int((tried["host"] == host).sum()),
                "devices": sorted(set(tried.loc[tried["host"] == host, "device"].dropna())),
            }
            for host in sorted(set(tried["host"]), key=_machine_id)
        ],
    }


def values_csv(table: Table) -> str:
    """Every value that the table rests on, one line per job and metric, and a line for each job that failed."""
    names = [METRICS[metric][0] for metric in TABLES[table.name].metrics]
    rows = _concatenated([table.done[table.done["metric"].isin(names)], table.failed.assign(metric=None, value=None)])
    rows = table.jobs.merge(rows.drop(columns=["num_samples"]), on="job_id", how="inner")
    order = rows["metric"].map({name: place for place, name in enumerate(names)})
    place = rows["job_id"].map({job: place for place, job in enumerate(table.jobs["job_id"])})
    rows = rows.assign(_place=place, _order=order).sort_values(["_place", "_order"], kind="stable")
    rounded = {"value", "fit_seconds", "peak_memory_mb"}
    lines = [
        [
            exact(float(each)) if name in rounded and _plain(each) is not None else _plain(each)
            for name, each in zip(_VALUES, values, strict=True)
        ]
        for values in rows[list(_VALUES)].astype(object).values.tolist()
    ]
    return csv_text(_VALUES, lines)


def _describe_machine(path: Path, hosts: set[str]) -> None:
    """Add this machine to the file of machines by their id if it is among the hosts and not known yet."""
    try:
        known = dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}
    except (TypeError, ValueError) as error:
        reason = f"expected a JSON object, machines by their id, got another file ({one_line(error)})"
        raise InvalidInput(f"{path}: {reason}; correct or remove it") from error
    here = socket.gethostname()
    if here in hosts and _machine_id(here) not in known:
        known[_machine_id(here)] = {"cpu": _cpu(), "cores": os.cpu_count(), "system": platform.system()}
        _write(path, json.dumps(known, indent=1, sort_keys=True) + "\n")


def _machine_id(host: str) -> str:
    """Tells machines apart without their names, which may be private."""
    return hashlib.sha256(host.encode()).hexdigest()[:8]


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # not Linux
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _write(path: Path, text: str) -> None:
    """Replace a file in one step."""
    part = path.with_name(f".{path.name}.part")  # one that a killed process left is written anew
    try:
        part.write_text(text, encoding="utf-8", newline="\n")
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def _concatenated(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    import pandas as pd

    return pd.concat([frame.astype(object) for frame in frames], ignore_index=True)


def _plain(value: Any) -> Any:  # noqa: ANN401
    import pandas as pd

    return None if pd.isna(value) else value
