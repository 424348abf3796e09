"""Jobs of a sweep on a Ray cluster: hydra-ray-launcher, for jobs whose process dies."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Sequence

# Before Ray is loaded: what jobs say comes whole and without colours.
os.environ.update({"RAY_DEDUP_LOGS": "0", "RAY_COLOR_PREFIX": "0"})

import ray
from hydra.core.singleton import Singleton
from hydra.core.utils import JobReturn
from hydra_plugins.hydra_ray_launcher._launcher_util import launch_job_on_ray
from hydra_plugins.hydra_ray_launcher.ray_launcher import RayLauncher
from omegaconf import OmegaConf, open_dict
from ray.exceptions import RayError

from bci.errors import InvalidInput
from experiments.launchers import environment, numbered, positive, sweep_of
from experiments.outcome import one_line

_ANSWER_SECONDS = 5
_OBJECT_STORE_BYTES = 200_000_000  # jobs exchange nothing but their settings


class Ray(RayLauncher):
    """A job whose process dies is tried again once; after that it counts as killed and the sweep goes on."""

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        jobs = numbered(job_overrides, initial_job_idx)
        sweep_of(self.hydra_context).expect(jobs)
        threads = positive(self.config, "threads")
        if self.config.launcher.jobs is not None:
            positive(self.config, "jobs")
        self._start(threads)
        ended: list[JobReturn] = []
        try:
            self._check_room(threads)
            tasks = [self._begin(number, overrides) for number, overrides in jobs.items()]
            while tasks:
                done, tasks = ray.wait(tasks, num_returns=1)
                try:
                    ended += ray.get(done)
                except RayError:  # what became of the job is in the notes of the sweep
                    continue
        finally:
            ray.shutdown()  # ends our jobs, and the cluster if it is our own
        return ended

    def _start(self, threads: int) -> None:
        settings = OmegaConf.to_container(self.ray_cfg.init, resolve=True)
        cores = settings.pop("num_cpus")  # of which a job takes one per thread
        if settings["address"] is None:
            settings["object_store_memory"] = _OBJECT_STORE_BYTES
            settings["num_cpus"] = None if cores is None else cores * threads
        try:
            _check_answers(settings["address"])
            ray.init(**settings, runtime_env={"env_vars": environment(threads)}, logging_level=logging.ERROR)
        except (OSError, RayError, ValueError) as error:
            raise InvalidInput(
                f"launcher.address: expected a running Ray cluster, got {settings['address']!r} ({one_line(error)}); "
                "leave it out for one of our own"
            ) from error

    def _check_room(self, threads: int) -> None:
        """Refuse jobs that no cluster of our own can hold: Ray would wait for a larger one. Others may still grow."""
        cores = int(ray.cluster_resources().get("CPU", 0))
        if self.config.launcher.address is None and threads > cores:
            raise InvalidInput(
                f"launcher.threads: expected at most the {cores} cores of this machine, got {threads}; "
                f"set launcher.threads={max(cores, 1)}"
            )

    def _begin(self, number: int, overrides: list[str]) -> ray.ObjectRef:
        config = self.hydra_context.config_loader.load_sweep_config(self.config, overrides)
        with open_dict(config):
            config.hydra.job.id, config.hydra.job.num = str(number), number
        remote = self.ray_cfg.remote
        return launch_job_on_ray(self.hydra_context, remote, config, self.task_function, Singleton.get_state())


def _check_answers(address: str | None) -> None:
    """Raise OSError where nothing listens at HOST:PORT or ray://HOST:PORT, as Ray would try for minutes."""
    host, colon, port = (address or "").rpartition("/")[2].rpartition(":")
    if colon and port.isdecimal():
        with socket.create_connection((host, int(port)), timeout=_ANSWER_SECONDS):
            pass
