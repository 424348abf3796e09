"""Jobs of a sweep as array jobs of SLURM: hydra-submitit-launcher, waiting for all of them, however they end."""

from __future__ import annotations

import io
import os
import shlex
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import redirect_stderr
from itertools import islice
from pathlib import Path

import submitit
from hydra.core.singleton import Singleton
from hydra.core.utils import JobReturn
from hydra_plugins.hydra_submitit_launcher.config import BaseQueueConf
from hydra_plugins.hydra_submitit_launcher.submitit_launcher import SlurmLauncher
from omegaconf import OmegaConf

from bci.errors import InvalidInput
from experiments.launchers import environment, numbered, positive, sweep_of
from experiments.outcome import complain, one_line, say

_LOOK_EVERY_SECONDS = 2.0
_LONGEST_ARRAY = 1000  # SLURM's MaxArraySize is 1001 unless it is configured


class Slurm(SlurmLauncher):
    """What a job did is in the notes of the sweep and in the store; SLURM is only asked whether it still has the job.

    So it needs no accounting, and a job that is cancelled, killed or never started does not end the sweep. An interrupt
    of this process cancels its jobs.
    """

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        jobs = numbered(job_overrides, initial_job_idx)
        sweep_of(self.hydra_context).expect(jobs)
        folder = Path(self.config.hydra.sweep.dir)
        folder.mkdir(parents=True, exist_ok=True)
        executor = self._executor()
        submitted: list[str] = []
        try:
            for part in _parts(jobs, _LONGEST_ARRAY):
                submitted += self._submit(executor, jobs, part)
            say(f"{len(jobs)} jobs submitted to SLURM; what they say goes to {folder / '.submitit'}")
            _wait(submitted)
        except BaseException:
            _cancel(submitted)
            raise
        return []

    def _executor(self) -> submitit.AutoExecutor:
        threads = positive(self.config, "cpus_per_task")
        for key in ("timeout_min", "mem_gb", "array_parallelism"):
            positive(self.config, key)
        try:
            executor = submitit.AutoExecutor(
                folder=self.params["submitit_folder"],
                cluster="slurm",
                slurm_max_num_timeout=self.params["max_num_timeout"],  # or submitit begins a job anew three times
            )
        except RuntimeError as error:
            raise InvalidInput(
                f"launcher: expected a machine with SLURM's sbatch and srun, got none ({one_line(error)}); "
                "log in to the cluster, or choose launcher=processes"
            ) from error
        exports = [f"export {name}={shlex.quote(value)}" for name, value in environment(threads).items()]
        common = set(OmegaConf.structured(BaseQueueConf).keys())
        settings = {
            key: value for key, value in self.params.items() if key not in ("submitit_folder", "max_num_timeout")
        }
        settings["setup"] = [*exports, *(settings.get("setup") or [])]
        executor.update_parameters(**{key if key in common else f"slurm_{key}": settings[key] for key in settings})
        return executor

    def _submit(self, executor: submitit.AutoExecutor, jobs: dict[int, list[str]], part: Sequence[int]) -> list[str]:
        """Submit some jobs as one array; returns SLURM's ids."""
        state = Singleton.get_state()
        calls = [(jobs[number], "hydra.sweep.dir", number, str(number), state) for number in part]
        try:
            with redirect_stderr(io.StringIO()):  # submitit repeats there what sbatch says
                return [job.job_id for job in executor.map_array(self, *zip(*calls, strict=True))]
        except (submitit.core.utils.FailedJobError, subprocess.CalledProcessError) as error:
            said = " ".join((getattr(error, "stderr", None) or str(error)).split())
            raise InvalidInput(
                f"launcher: expected settings that sbatch accepts, got: {said}; correct launcher.KEY"
            ) from error


def _parts(numbers: Iterable[int], size: int) -> Iterator[list[int]]:
    left = iter(numbers)
    while part := list(islice(left, size)):
        yield part


def _wait(ids: Sequence[str]) -> None:
    """Wait until SLURM has none of these jobs any more, neither pending nor running."""
    left, silent = set(ids), False
    while left:
        time.sleep(_LOOK_EVERY_SECONDS)
        command = ["squeue", "--noheader", "--array", "--format=%i", f"--user={os.getuid()}"]
        looked = subprocess.run(command, capture_output=True, text=True, check=False)
        if looked.returncode == 0:
            left &= set(looked.stdout.split())
        elif not silent:
            complain(f"launcher: squeue does not answer ({' '.join(looked.stderr.split())}); asked again until it does")
        silent = looked.returncode != 0


def _cancel(ids: Sequence[str]) -> None:
    arrays = sorted({each.partition("_")[0] for each in ids})
    if arrays:
        subprocess.run(["scancel", *arrays], capture_output=True, check=False)
