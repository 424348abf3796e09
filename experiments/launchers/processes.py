"""Several jobs of a sweep at once on this machine: hydra-joblib-launcher, for workers that may die."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from collections.abc import Iterable, Sequence

from hydra.core.singleton import Singleton
from hydra.core.utils import JobReturn
from hydra_plugins.hydra_joblib_launcher._core import execute_job
from hydra_plugins.hydra_joblib_launcher.joblib_launcher import JoblibLauncher
from joblib.externals.loky import ProcessPoolExecutor, as_completed, cpu_count
from joblib.externals.loky.process_executor import BrokenProcessPool

from experiments.launchers import environment, numbered, positive, sweep_of
from experiments.outcome import complain

_LOOK_EVERY_SECONDS = 0.5


class Processes(JoblibLauncher):
    """Jobs on a pool of workers, which end with this process and ignore Ctrl-C, as that is its to answer.

    When a worker dies, loky ends the others. The jobs that ran then are set aside, the sweep goes on with new
    workers, and at last each of those jobs gets a worker to itself. If that dies too, the job counts as killed.
    """

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        jobs = numbered(job_overrides, initial_job_idx)
        sweep = sweep_of(self.hydra_context)
        sweep.expect(jobs)
        workers, cap = self._workers(), environment(positive(self.config, "threads"))
        os.makedirs(self.config.hydra.sweep.dir, exist_ok=True)  # also settles its time for all jobs
        ended: dict[int, JobReturn] = {}
        left, suspects = set(jobs), []
        while left:
            ended |= self._run(jobs, sorted(left), min(workers, len(left)), cap)
            left -= set(ended)
            if left:  # a worker died
                begun = sorted(left & sweep.begun(self.config))
                if not begun:  # or could not even start
                    complain(
                        "launcher: the worker processes die before a job begins; run with launcher=basic to see why"
                    )
                    break
                one_of = "job" if len(begun) == 1 else "one of the jobs"
                complain(f"the process of {one_of} {', '.join(map(str, begun))} died; tried again after the others")
                suspects += begun
                left -= set(begun)
        for number in suspects:
            ended |= self._run(jobs, [number], 1, cap)
        return list(ended.values())

    def _run(
        self, jobs: dict[int, list[str]], numbers: Iterable[int], workers: int, cap: dict[str, str]
    ) -> dict[int, JobReturn]:
        """What came back of the jobs; all of them unless a worker died."""
        ended: dict[int, JobReturn] = {}
        warnings.filterwarnings(
            "ignore", "A worker stopped while some jobs", UserWarning
        )  # it grew; there is a new one
        pool = ProcessPoolExecutor(workers, env=cap, initializer=_begin_worker, initargs=(os.getpid(),))
        try:
            futures = {
                pool.submit(
                    execute_job,
                    number,
                    jobs[number],
                    self.hydra_context,
                    self.config,
                    self.task_function,
                    Singleton.get_state(),
                ): number
                for number in numbers
            }
            for future in as_completed(futures):
                ended[futures[future]] = future.result()
        except BrokenProcessPool:
            for future, number in futures.items():
                if future.done() and not future.cancelled() and future.exception() is None:
                    ended[number] = future.result()
        except BaseException:
            pool.shutdown(wait=False, kill_workers=True)
            raise
        pool.shutdown(kill_workers=True)  # all is done, and they would take a second to leave
        return ended

    def _workers(self) -> int:
        if self.joblib["n_jobs"] == -1:
            return int(cpu_count())
        return positive(self.config, "jobs")


def _begin_worker(parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK_EVERY_SECONDS)
    os._exit(1)
