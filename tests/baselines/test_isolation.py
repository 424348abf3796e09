"""Whatever a package does, the caller gets an answer or an error, and keeps its surroundings."""

from __future__ import annotations

import io
import logging
import os
import random
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from pathlib import Path

import numpy as np
import psutil
import pytest

from baselines import isolation
from baselines.isolation import MethodFailed, MethodTimeout, fit_in_process
from bci.errors import InvalidInput

ROOT = Path(__file__).resolve().parents[2]
DATA = np.arange(12.0).reshape(4, 3)


def fit(do="nothing", *, seed=5, timeout_seconds=60, **settings):
    return fit_in_process("noisy_packages", DATA, {"do": do, **settings}, seed, timeout_seconds=timeout_seconds)


def alive(number):
    try:
        return psutil.Process(number).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_for(condition):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def processes(file):
    """The numbers of the worker and of the child it started, once it has written them."""
    wait_for(lambda: file.exists() and len(file.read_text().split()) == 2)
    return [int(number) for number in file.read_text().split()]


def test_the_answer_comes_back_whole():
    fitted = fit()
    np.testing.assert_array_equal(fitted.graphs, [np.zeros((3, 3)), [[0, 1, 0], [0, 0, 0], [0, 0, 0]]])
    assert fitted.graphs.dtype == bool
    np.testing.assert_array_equal(fitted.weights, [0.25, 0.75])
    assert fitted.graph_kind == "dag"
    assert fitted.diagnostics["sum"] == DATA.sum()
    assert fitted.diagnostics["process"] != os.getpid()
    assert fitted.diagnostics["threads"] == "11"


def test_generators_and_hashes_are_seeded():
    first, again, other = fit().diagnostics, fit().diagnostics, fit(seed=6).diagnostics
    assert (first["draws"], first["hash"]) == (again["draws"], again["hash"])
    assert first["draws"] == [random.Random(5).random(), np.random.RandomState(5).random()]
    assert first["draws"] != other["draws"]
    assert first["hash"] != other["hash"]


def test_torch_is_seeded_with_the_largest_seed_and_has_one_thread():
    module = "import torch; torch.initial_seed() == 2**32 - 1 and torch.get_num_threads() == 1 or exit(3)"
    code = f"import torch; from baselines.worker import seed_global_generators as s; s(2**32 - 1); {module}"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_surroundings_are_untouched(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = (random.getstate(), str(np.random.get_state()), logging.getLogger().level, dict(os.environ))  # noqa: NPY002
    fitted = fit("upset")
    after = (random.getstate(), str(np.random.get_state()), logging.getLogger().level, dict(os.environ))  # noqa: NPY002
    assert before == after
    assert capfd.readouterr() == ("", "")
    assert Path.cwd() == tmp_path
    assert list(tmp_path.iterdir()) == []
    assert not Path(fitted.diagnostics["folder"]).exists()


def test_a_folder_of_the_same_name_on_the_path_is_no_obstacle(tmp_path, monkeypatch):
    for name in ("baselines/isolation", "bci/errors"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *(entry for entry in sys.path if Path(entry).resolve() != ROOT)])
    assert fit().graph_kind == "dag"


def test_an_error_tells_the_exit_code_and_the_last_lines():
    with pytest.raises(MethodFailed) as caught:
        fit("raise")
    message = str(caught.value)
    assert message.startswith("ended with exit code 1; it said: ")
    assert message.endswith("FloatingPointError: the matrix is singular")
    assert not isinstance(caught.value, MethodTimeout)
    (note,) = caught.value.__notes__
    assert "line 149" in note
    assert "line 10\n" not in note


def test_a_silent_exit_without_an_answer_is_an_error():
    with pytest.raises(MethodFailed) as caught:
        fit("leave")
    assert str(caught.value) == "ended without an answer; it said: INFFI"


def test_what_the_method_refuses_is_bad_input():
    with pytest.raises(InvalidInput, match=r"^K: expected less$"):
        fit("refuse")


def test_a_time_limit_ends_the_method_and_what_it_started(tmp_path):
    start = time.monotonic()
    with pytest.raises(MethodTimeout) as caught:
        fit("sleep", timeout_seconds=3, file=str(tmp_path / "numbers"))
    assert time.monotonic() - start < 10
    assert str(caught.value) == "stopped at its time limit of 3 s; it said: iteration 7"
    assert caught.value.peak_memory_mb > 10
    wait_for(lambda: not any(map(alive, processes(tmp_path / "numbers"))))


def test_a_method_killed_from_outside_is_an_error(tmp_path):
    def kill():
        worker, _ = processes(tmp_path / "numbers")
        os.kill(worker, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(MethodFailed) as caught:
        fit("sleep", file=str(tmp_path / "numbers"))
    killer.join()
    assert str(caught.value) == "killed by signal 9 (SIGKILL); it said: iteration 7"
    wait_for(lambda: not any(map(alive, processes(tmp_path / "numbers"))))


def test_a_signal_without_a_name_is_an_error_like_others():
    with pytest.raises(MethodFailed, match=rf"^killed by signal {signal.SIGRTMIN + 3} \(real-time\); it said nothing$"):
        fit("die", signal=signal.SIGRTMIN + 3)


def test_an_interrupt_as_soon_as_the_method_runs_ends_it(monkeypatch):
    started = []

    class Started(subprocess.Popen):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            started.append(self.pid)

    class InterruptedWhenClosed(io.FileIO):
        def close(self):
            super().close()
            if started and alive(started[0]):
                raise KeyboardInterrupt

    def opened(path, mode="r", *args, **kwargs):
        return InterruptedWhenClosed(path, mode) if path.name == "output.txt" else open(path, mode, *args, **kwargs)

    monkeypatch.setattr(isolation.subprocess, "Popen", Started)
    monkeypatch.setattr(Path, "open", opened)
    with pytest.raises(KeyboardInterrupt):
        fit("sleep", file="numbers")
    assert not alive(started[0])


def test_of_a_long_output_only_the_end_is_read():
    size = 300_000_000
    tracemalloc.start()
    with pytest.raises(MethodFailed, match=r"FloatingPointError: the last line$"):
        fit("fill", size=size)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < size / 10


def test_what_a_method_leaves_running_is_ended(tmp_path):
    fit("orphan", file=str(tmp_path / "numbers"))
    wait_for(lambda: not any(map(alive, processes(tmp_path / "numbers"))))


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_method_dies_with_its_caller(tmp_path, signal_number):
    file = tmp_path / "numbers"
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "  # ignored in background jobs
        "from baselines.isolation import fit_in_process; import numpy; "
        f"fit_in_process('noisy_packages', numpy.ones((4, 3)), {{'do': 'sleep', 'file': {str(file)!r}}}, 1)"
    )
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    caller = subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": paths, "TMPDIR": str(tmp_path)},  # it cannot clean up
        stderr=subprocess.DEVNULL,
    )
    worker, child = processes(file)
    caller.send_signal(signal_number)
    assert caller.wait(timeout=30) != 0
    wait_for(lambda: not alive(worker))
    if alive(child):  # no one was left to end it
        assert signal_number != signal.SIGINT
        os.kill(child, signal.SIGKILL)


def test_memory_is_that_of_the_method_alone():
    ballast = np.ones(40_000_000)  # 320 MB here, which must not count there
    small, large = fit().diagnostics["peak_memory_mb"], fit("memory").diagnostics["peak_memory_mb"]
    assert 10 < small < 150
    assert 380 < large - small < 450
    assert ballast.size
