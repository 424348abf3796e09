"""What sweeps add to Hydra's plugins: thread caps, and launchers that go on when the process of a job dies.

Hydra takes plugins from packages of its own alone, so that each preset in `conf/launcher` names one of them, and
`Launchers`, a callback, has Hydra take our subclass of it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from hydra.core.plugins import Plugins
from hydra.experimental.callback import Callback
from hydra.types import HydraContext
from omegaconf import DictConfig

from baselines.isolation import THREAD_CAPS
from bci.errors import InvalidInput
from experiments.sweep import SweepOutcome

_ROOT = Path(__file__).resolve().parents[2]
_OURS = {  # by the name of the plugin
    "BasicSweeper": ("experiments.launchers.sweeper", "Sweeper"),
    "JoblibLauncher": ("experiments.launchers.processes", "Processes"),
    "SlurmLauncher": ("experiments.launchers.slurm", "Slurm"),
    "RayLauncher": ("experiments.launchers.ray", "Ray"),
}
INSTALL = {  # what brings the plugin of a preset, by its choice of hydra/launcher
    "joblib": "launcher=processes needs hydra-joblib-launcher; install it with pip install '.[launchers]'",
    "submitit_slurm": "launcher=slurm needs hydra-submitit-launcher; install it with pip install '.[launchers]'",
    "ray": "launcher=ray needs ray and hydra-ray-launcher; install them with make setup-ray",
}


class Launchers(Callback):
    """A Hydra callback that puts our launchers, and our sweeper, in the place of the plugins they extend."""

    def on_multirun_start(self, config: DictConfig, **_: object) -> None:
        for plugin in (str(config.hydra.launcher._target_), str(config.hydra.sweeper._target_)):
            module, name = _OURS.get(plugin.rpartition(".")[2], (None, None))
            if module and name:
                Plugins.instance().class_name_to_class[plugin] = getattr(import_module(module), name)


def environment(threads: int) -> dict[str, str]:
    """Variables for the process of a job: thread caps, and where our packages are if they are not installed."""
    paths = [str(_ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return dict.fromkeys(THREAD_CAPS, str(threads)) | {"PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}


def positive(config: DictConfig, key: str) -> int:
    """The value of a key of the group launcher.

    Raises:
        InvalidInput: it is not a whole number of at least 1.
    """
    value: Any = config.launcher[key]
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidInput(
            f"launcher.{key}: expected a whole number of at least 1, got {value!r}; set launcher.{key}=1"
        )
    return value


def sweep_of(context: HydraContext) -> SweepOutcome:
    """The callback that knows how the jobs of this sweep ended."""
    return next(each for each in context.callbacks.callbacks if isinstance(each, SweepOutcome))


def numbered(job_overrides: Sequence[Sequence[str]], first: int) -> dict[int, list[str]]:
    """The overrides of every job by its number in the sweep."""
    return {first + index: list(overrides) for index, overrides in enumerate(job_overrides)}
