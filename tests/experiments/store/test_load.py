"""The store under load: many writers, killed writers, no room, no permission."""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest
from store_rows import (
    METRICS,
    append_as_nobody,
    append_jobs,
    append_until_killed,
    append_with_little_room,
    compact_until,
    job,
)

from bci.errors import InvalidInput
from experiments.store import ResultStore, StoreWriteError
from experiments.store.compaction import compact
from experiments.store.history import history

# Processes that begin in a moment, with nothing of the tests in them but the modules.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["store_rows", "pandas"])


def rows_of_jobs(path: Path) -> Counter[str]:
    return Counter(ResultStore(path).table().column("job_id").to_pylist())


def run(target: object, *arguments: object) -> list[object]:
    """Everything that a function tells, which runs in a process of its own."""
    receiving, sending = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=target, args=(*arguments, sending))
    process.start()
    sending.close()
    told = []
    try:
        while True:
            told.append(receiving.recv())
    except EOFError:
        process.join()
    assert process.exitcode == 0
    return told


def test_eight_writers_lose_no_rows_while_two_others_compact_the_store(tmp_path):
    path = tmp_path / "store"
    ResultStore(path).append(job("first"))
    stop = PROCESSES.Event()
    receiving, sending = PROCESSES.Pipe(duplex=False)
    writers = [PROCESSES.Process(target=append_jobs, args=(path, writer, 25)) for writer in range(8)]
    compactors = [PROCESSES.Process(target=compact_until, args=(path, stop, sending)) for _ in range(2)]
    for process in (*compactors, *writers):
        process.start()
    for writer in writers:
        writer.join()
    stop.set()
    for compactor in compactors:
        compactor.join()
    assert [process.exitcode for process in (*compactors, *writers)] == 10 * [0]
    assert receiving.recv() + receiving.recv() > 1
    jobs = ["first", *(f"{writer}-{k}" for writer in range(8) for k in range(25))]
    assert rows_of_jobs(path) == dict.fromkeys(jobs, len(METRICS))
    version = ResultStore(path).version
    for earlier in range(0, version, 20):
        counts = Counter(ResultStore(path).table(earlier).column("job_id").to_pylist())
        assert set(counts.values()) <= {len(METRICS)}


def test_a_writer_that_is_killed_leaves_all_of_its_append_or_nothing(tmp_path):
    path, rng, expected = tmp_path / "store", random.Random(0), {}
    for name in "abcdefgh":
        receiving, sending = PROCESSES.Pipe(duplex=False)
        writer = PROCESSES.Process(target=append_until_killed, args=(path, name, sending))
        writer.start()
        sending.close()
        returned = receiving.recv() + 1
        time.sleep(rng.uniform(0, 0.1))
        writer.kill()
        writer.join()
        while True:
            try:
                returned = receiving.recv() + 1
            except EOFError:
                break
        found = rows_of_jobs(path)
        expected |= {f"{name}-{k}": len(METRICS) for k in range(returned)}
        unsaid = {f"{name}-{returned}": len(METRICS)}
        assert found in (expected, expected | unsaid)
        expected = dict(found)
    store = ResultStore(path)
    compact(store)
    store.append(job("after"))
    assert rows_of_jobs(path) == expected | {"after": len(METRICS)}


def test_what_a_killed_writer_leaves_behind_does_no_harm(tmp_path):
    store = ResultStore(tmp_path / "store")
    store.append(job("a"))
    log = store.path / "_delta_log"
    leftovers = [
        *(store.path / name for name in ("part-00000-orphan.parquet", "part-00000-orphan.parquet#1", ".writable-x")),
        *(log / name for name in (f"{2:020d}.json#1", "_commit_x.json.tmp", f"{2:020d}.checkpoint.parquet#1")),
    ]
    for path in leftovers:
        path.write_text("half")
    store.append(job("b"))
    assert compact(store).files_after == 1
    assert rows_of_jobs(store.path) == {"a": len(METRICS), "b": len(METRICS)}
    assert [version.rows for version in history(store)] == [0, 3, 6, 6]
    assert all(path.read_text() == "half" for path in leftovers)


def test_an_append_without_room_for_it_is_one_clear_error_and_loses_nothing(tmp_path):
    path = tmp_path / "store"
    store = ResultStore(path)
    for k in range(3):
        store.append(job(str(k)))
    before = rows_of_jobs(path)
    for seed in range(8):
        [(error, message)] = run(append_with_little_room, path, seed)
        assert error == "StoreWriteError"
        assert "nothing stored is lost, free space" in message
        assert "\n" not in message
        assert rows_of_jobs(path) == before
    store.append(job("after"))
    assert rows_of_jobs(path) == before | {"after": len(METRICS)}


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 256 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def leave_free(disk: Path, size: int) -> None:
    """Fill the disk but for `size` bytes."""
    ballast = disk / "ballast"
    ballast.unlink(missing_ok=True)
    state = os.statvfs(disk)
    ballast.write_bytes(bytes(state.f_bavail * state.f_bsize - size))


def test_a_full_disk_is_one_clear_error_wherever_it_fills_up_and_loses_nothing(small_disk):
    store, page = ResultStore(small_disk / "store"), 4096
    store.append(job("first"))
    before, refused = rows_of_jobs(store.path), 0
    for pages in range(6):
        leave_free(small_disk, pages * page)
        try:
            store.append(job(f"with-{pages}"))
        except StoreWriteError as error:
            refused += 1
            assert "nothing stored is lost, free space" in str(error)  # noqa: PT017
            assert "\n" not in str(error)  # noqa: PT017
        else:
            before |= {f"with-{pages}": len(METRICS)}
        assert rows_of_jobs(store.path) == before
    assert 2 <= refused < 6  # no room for the rows, room for them and not for the log, room for both
    leave_free(small_disk, 10 * page)
    store.append(job("after"))
    assert rows_of_jobs(store.path) == before | {"after": len(METRICS)}


def test_a_full_disk_does_not_hinder_an_append_whose_checkpoint_finds_no_room(small_disk, monkeypatch):
    monkeypatch.setattr("experiments.store.result_store._CHECKPOINT_INTERVAL", 1)
    store, page, failed = ResultStore(small_disk / "store"), 4096, 0
    store.append(job("first"))
    before = rows_of_jobs(store.path)
    for pages in range(2, 9):
        checkpoints = len(list(store.path.glob("_delta_log/*.parquet")))
        leave_free(small_disk, pages * page)
        try:
            store.append(job(f"with-{pages}"))
        except StoreWriteError:
            continue
        before |= {f"with-{pages}": len(METRICS)}
        failed += len(list(store.path.glob("_delta_log/*.parquet"))) == checkpoints
        assert rows_of_jobs(store.path) == before
    assert failed


def test_a_disk_too_full_for_a_new_store_is_one_clear_error_and_it_can_be_made_later(small_disk):
    leave_free(small_disk, 0)
    with pytest.raises(InvalidInput, match=r"^store\.path: expected a folder that can be created and written to"):
        ResultStore(small_disk / "store").prepare()
    leave_free(small_disk, 40960)
    ResultStore(small_disk / "store").append(job("after"))
    assert rows_of_jobs(small_disk / "store") == {"after": len(METRICS)}


def test_a_full_disk_leaves_the_store_as_it_was_where_it_is_compacted(small_disk):
    store = ResultStore(small_disk / "store")
    for k in range(3):
        store.append(job(str(k)))
    version, before = store.version, rows_of_jobs(store.path)
    leave_free(small_disk, 0)
    with pytest.raises(StoreWriteError, match="nothing stored is lost, free space"):
        compact(store)
    assert (store.version, rows_of_jobs(store.path)) == (version, before)


def test_a_read_only_disk_can_be_read_and_says_why_it_cannot_be_written_to(small_disk):
    store = ResultStore(small_disk / "store")
    store.append(job("first"))
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    for write in (store.prepare, lambda: store.append(job("late")), lambda: compact(store)):
        with pytest.raises(InvalidInput, match=r"folder that can be written to, .*Read-only file system.*permissions"):
            write()
    with pytest.raises(InvalidInput, match="can be created and written to"):
        ResultStore(small_disk / "other").prepare()
    assert store.done("first")
    assert rows_of_jobs(store.path) == {"first": len(METRICS)}


def test_a_folder_without_permission_can_be_read_and_says_why_it_cannot_be_written_to():
    if os.geteuid():
        pytest.skip("another user's folder needs root")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        ResultStore(Path(folder) / "store").append(job("first"))
        (error, message), jobs = run(append_as_nobody, Path(folder) / "store")
    assert error == "InvalidInput"
    assert "expected a folder that can be written to" in message
    assert "Permission denied" in message
    assert jobs == ["first"]
