"""What of a sweep is done, failed and missing: `python -m experiments.status OVERRIDES of the sweep`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from bci.errors import InvalidInput
from experiments.arguments import exit_code, tell
from experiments.command import explain
from experiments.expand import Sweep, expand
from experiments.outcome import FAILED, INVALID, OK
from experiments.store import ResultStore
from experiments.sweep import aligned, labels

if TYPE_CHECKING:
    import pandas as pd

USAGE = """python -m experiments.status OVERRIDES
python -m experiments.status SWEEP_DIR

OVERRIDES are those of a sweep, as in `python -m experiments.run -m OVERRIDES`; SWEEP_DIR is the folder of a sweep that
was started. A job is done if the store holds it with status ok; failed if it was tried and is not done, or would
be refused at once; else missing.
The exit code is 0 if all jobs are done, else 1."""
_STATES = ("done", "failed", "missing")
_ERRORS_SHOWN = 10


def status(sweep: Sweep, rows: pd.DataFrame) -> tuple[str, bool]:
    """A line for all jobs that differ in their seeds alone, the last errors of failed jobs, and the totals.

    Args:
        rows: of the store, as from `ResultStore.rows`; no row where there is no store.

    Returns:
        The text, and whether all jobs are done.
    """
    ids = {job.job_id for job in sweep.jobs}
    rows = rows[rows["job_id"].isin(ids)]
    done = set(rows.loc[rows["status"] == "ok", "job_id"])
    tried = rows[~rows["job_id"].isin(done)].drop_duplicates("job_id", keep="last").set_index("job_id")
    states = [
        "done" if job.job_id in done else "failed" if job.job_id in tried.index else "missing" for job in sweep.jobs
    ]
    states += ["failed"] * len(sweep.refused)

    names = labels([job.overrides for job in (*sweep.jobs, *sweep.refused)])
    lines: dict[str, list[str]] = {}
    for name, state in zip(names, states, strict=True):
        lines.setdefault(name, []).append(state)
    table = [["jobs that differ in their seeds", "all", *_STATES]]
    for name, group in [*lines.items(), ("all", states)]:
        table.append([name, str(len(group)), *(str(group.count(state)) for state in _STATES)])

    refused = zip(names[len(sweep.jobs) :], sweep.refused, strict=True)
    errors = list(dict.fromkeys(f"{name}: refused: {job.reason}" for name, job in refused))  # seeds do not matter
    errors += [f"{job}: {tried.loc[job, 'status']}: {tried.loc[job, 'error']}" for job in tried.index]
    if len(errors) > _ERRORS_SHOWN:
        errors[_ERRORS_SHOWN:] = [f"and {len(errors) - _ERRORS_SHOWN} more errors"]
    return "\n".join([aligned(table), *errors]), set(states) <= {"done"}


def main(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code."""
    return exit_code(lambda: _answer(arguments))


def _answer(arguments: Sequence[str]) -> int:
    if not arguments or {"-h", "--help"} & set(arguments):
        tell(USAGE)
        return OK if arguments else INVALID
    overrides = _overrides(arguments)
    try:
        sweep = expand(overrides, keep_refused=True)
    except Exception as error:  # of Hydra, about the overrides
        raise InvalidInput(explain(error)) from error
    text, complete = status(sweep, _rows(Path(str(sweep.config.store.path))))
    tell(text)
    return OK if complete else FAILED


def _overrides(arguments: Sequence[str]) -> list[str]:
    """The overrides themselves, or those that the folder of a sweep holds."""
    if len(arguments) > 1 or "=" in arguments[0]:
        return list(arguments)
    path = Path(arguments[0]) / "multirun.yaml"
    try:
        return [str(each) for each in OmegaConf.load(path).hydra.overrides.task]
    except (OSError, OmegaConfBaseException, YAMLError, AttributeError) as error:
        raise InvalidInput(
            f"command line: expected overrides (key=value) or the folder of a sweep, got {arguments[0]!r} "
            f"(no {path.name} of a sweep in it); see multirun/"
        ) from error


def _rows(path: Path) -> pd.DataFrame:
    store = ResultStore(path)
    with store.reading():
        begun = store.path.exists() and not (store.path.is_dir() and not any(store.path.iterdir()))
    if not begun:
        import pandas as pd

        return pd.DataFrame({"job_id": [], "status": [], "error": []}, dtype=object)
    return store.rows()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
