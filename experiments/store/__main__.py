"""Look after the result store: `python -m experiments.store compact|history|diff A B|import FILE [store.path=DIR]`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from bci.errors import InvalidInput
from experiments.arguments import answered, key_values, path, whole_number, whole_number_if_given
from experiments.outcome import FAILED, complain, one_line
from experiments.store.result_store import DEFAULT_STORE, ResultStore, StoreWriteError

USAGE = f"""python -m experiments.store compact [store.path=DIR]
python -m experiments.store history [store.path=DIR] [limit=N]
python -m experiments.store diff A B [store.path=DIR] [limit=N]
python -m experiments.store import FILE.parquet [store.path=DIR]

compact gathers many small files in a few; every version stays readable. history lists the versions, the newest first.
diff tells what changed in the results from version A to version B. import adds the runs of a file that
experiments.export wrote, those that the store lacks. limit is the most versions or changes to print.
store.path defaults to {DEFAULT_STORE}."""
_COMMANDS: dict[
    str, tuple[int, str, dict[str, str]]
] = {  # the number of operands, what they are, and the settings beside store.path
    "compact": (0, "no versions", {}),
    "history": (0, "no versions", {"limit": ""}),
    "diff": (2, "two versions, as in diff 3 5", {"limit": ""}),
    "import": (1, "one file, as in import results/rows.parquet", {}),
}


def main(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code."""
    try:
        return answered(arguments, USAGE, _answer)
    except StoreWriteError as error:
        complain(one_line(error))
        return FAILED


def _answer(arguments: Sequence[str]) -> str:
    if not arguments or arguments[0] not in _COMMANDS:
        got = repr(arguments[0]) if arguments else "nothing"
        raise InvalidInput(f"command line: expected compact, history, diff A B or import FILE first, got {got}")
    command, *rest = arguments
    given = [each for each in rest if each.startswith(("store.path=", "limit="))]
    operands = [each for each in rest if each not in given]
    number, expected, keys = _COMMANDS[command]
    if len(operands) != number:
        raise InvalidInput(f"{command}: expected {expected}, got {' '.join(operands) or 'none'}")
    settings = key_values(given, {"store.path": DEFAULT_STORE, **keys})
    store = ResultStore(settings["store.path"])
    limit = whole_number_if_given("limit", settings.get("limit", ""), 1)
    if command == "compact":
        return _compact(store)
    if command == "import":
        return _import(store, path(operands[0]))
    if command == "history":
        return _history(store, limit)
    old, new = (whole_number("diff", operand, 0) for operand in operands)
    return _diff(store, old, new, limit)


def _compact(store: ResultStore) -> str:
    from experiments.store.compaction import compact

    done = compact(store)
    if done.files_after == done.files_before:
        return f"nothing to compact: {_count(done.files_before, 'file')}, version {done.version}"
    return (
        f"{_count(done.files_before, 'file')} -> {_count(done.files_after, 'file')}, version {done.version}; "
        "earlier versions stay readable"
    )


def _import(store: ResultStore, file: Path) -> str:
    from experiments.store.importing import import_rows

    done = import_rows(store, file)
    known = f"; {_count(done.known, 'run')} {'was' if done.known == 1 else 'were'} there" if done.known else ""
    return f"{_count(done.runs, 'run')} added with {_count(done.rows, 'row')}, version {done.version}{known}"


def _history(store: ResultStore, limit: int | None) -> str:
    from experiments.store.history import history

    lines = [f"{'version':>7}  {'time (UTC)':<19}  {'operation':<12}  {'added':>7}  {'rows':>8}  commit"]
    for version in list(reversed(history(store)))[:limit]:
        time = version.time.strftime("%Y-%m-%d %H:%M:%S") if version.time else "-"
        commits = " to ".join(commit[:7] for commit in version.commits) or "-"
        cells = f"{version.number:>7}  {time:<19}  {version.operation:<12}  {version.added:>7}  {version.rows:>8}"
        lines.append(f"{cells}  {commits}")
    return "\n".join(lines)


def _diff(store: ResultStore, old: int, new: int, limit: int | None) -> str:
    from experiments.store.differences import differences  # loads pandas

    found = differences(store, old, new)
    lines = [
        f"version {old} -> {new}: rows {found.rows[0]} -> {found.rows[1]}, jobs {found.jobs[0]} -> {found.jobs[1]}"
    ]
    for sign, counts in (("+", found.added), ("-", found.removed)):
        lines += [f"{sign} {_count(each.jobs, 'job')}: {each.method} on {each.data}, {each.status}" for each in counts]
    if found.rerun:
        changed = len({change.job_id for change in found.changes})
        lines.append(f"{_count(found.rerun, 'job')} run again, {changed} with other results")
    for change in found.changes[:limit]:
        job = f"{change.job_id} {change.method} on {change.data}"
        lines.append(f"  {job}: {change.what} {change.old or 'none'} -> {change.new or 'none'}")
    if limit is not None and len(found.changes) > limit:
        lines.append(f"  and {_count(len(found.changes) - limit, 'more change')}; set a larger limit=N")
    if not (found.added or found.removed or found.rerun):
        lines.append("no change in the results")
    return "\n".join(lines)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
