from __future__ import annotations

import pytest
from deltalake.exceptions import CommitFailedError
from deltalake.table import TableOptimizer
from store_rows import job

from bci.errors import InvalidInput
from experiments.store import ResultStore, StoreWriteError
from experiments.store.compaction import Compaction, compact


@pytest.fixture
def store(tmp_path):
    made = ResultStore(tmp_path / "store")
    for name in "abc":
        made.append(job(name))
    return made


def test_compaction_is_one_version_with_the_same_rows_and_earlier_versions_stay_readable(store):
    before = [store.table(version) for version in range(4)]
    assert compact(store) == Compaction(files_before=3, files_after=1, version=4)
    assert store.table().equals(before[3])
    assert all(store.table(version).equals(table) for version, table in enumerate(before))
    assert store.done("b")
    assert not store.done("d")


def test_where_there_is_nothing_to_gather_no_version_is_added(store):
    compact(store)
    assert compact(store) == Compaction(files_before=1, files_after=1, version=4)
    assert store.version == 4


def test_rows_are_appended_after_a_compaction_as_before(store):
    compact(store)
    assert store.append(job("d")) == 5
    assert compact(store) == Compaction(files_before=2, files_after=1, version=6)
    assert len(store.table()) == 12


def refuse(monkeypatch, times):
    """Let the first commits of compactions fail, as where other processes commit without a pause."""
    original, calls = TableOptimizer.compact, []

    def refused(self, **settings):
        calls.append(settings)
        if len(calls) <= times:
            raise CommitFailedError("Failed to commit transaction: 15")
        return original(self, **settings)

    monkeypatch.setattr(TableOptimizer, "compact", refused)


def test_a_compaction_that_others_overtake_is_tried_again(store, monkeypatch):
    refuse(monkeypatch, times=3)
    assert compact(store) == Compaction(files_before=3, files_after=1, version=4)


def test_a_compaction_that_others_always_overtake_is_one_clear_error(store, monkeypatch):
    refuse(monkeypatch, times=1000)
    with pytest.raises(StoreWriteError, match=r"could not write to the store .*: Failed to commit"):
        compact(store)
    assert store.version == 3


def test_rows_that_are_gone_are_an_error_and_the_version_stays(store):
    next(store.path.glob("*.parquet")).unlink()
    with pytest.raises(StoreWriteError, match="could not write to the store"):
        compact(store)
    assert store.version == 3


def test_without_a_store_it_says_so_and_makes_none(tmp_path):
    with pytest.raises(InvalidInput, match="without one"):
        compact(ResultStore(tmp_path / "none"))
    assert not (tmp_path / "none").exists()
