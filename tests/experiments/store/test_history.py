from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from deltalake import DeltaTable
from store_rows import row

from bci.errors import InvalidInput
from experiments.store import ResultStore
from experiments.store.compaction import compact
from experiments.store.history import history


@pytest.fixture
def store(tmp_path):
    made = ResultStore(tmp_path / "store")
    made.append([row("a", metric=metric, git_commit="a" * 40) for metric in ("eshd", "tpr")])
    made.append([row("b")])
    made.append([row("c", git_commit="c" * 40), row("d", git_commit="a" * 40)])
    return made


def test_every_version_has_its_operation_rows_and_commits(store):
    compact(store)
    found = history(store)
    assert [version.number for version in found] == [0, 1, 2, 3, 4]
    assert [version.operation for version in found] == ["CREATE TABLE", "WRITE", "WRITE", "WRITE", "OPTIMIZE"]
    assert [version.added for version in found] == [0, 2, 1, 2, 0]
    assert [version.rows for version in found] == [len(store.rows(version)) for version in range(5)]
    assert [[commit[0] for commit in version.commits] for version in found] == [[], ["a"], [], ["a", "c"], []]


def test_times_are_those_of_the_commits(store):
    times = [version.time for version in history(store)]
    assert times == sorted(times)
    assert timedelta() <= datetime.now(UTC) - times[-1] < timedelta(minutes=5)


def test_versions_after_a_part_of_the_log_that_is_gone_are_listed_with_all_rows(store):
    DeltaTable(store.path).create_checkpoint()
    store.append([row("e")])
    for number in (0, 1, 2):
        (store.path / "_delta_log" / f"{number:020d}.json").unlink()
    assert [(version.number, version.added, version.rows) for version in history(store)] == [
        (3, 2, 5),
        (4, 1, 6),
    ]


def test_a_damaged_log_or_none_is_one_clear_error(store, tmp_path):
    with pytest.raises(InvalidInput, match="without one"):
        history(ResultStore(tmp_path / "none"))
    DeltaTable(store.path).create_checkpoint()  # so that the store can be opened without its first versions
    (store.path / "_delta_log" / f"{1:020d}.json").write_text("{")
    with pytest.raises(InvalidInput, match=r"^store\.path: expected a result store that can be read"):
        history(store)
