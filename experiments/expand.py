"""The jobs that the command line of a sweep stands for, without running them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import hydra
from hydra.core.config_loader import ConfigLoader
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, open_dict

from bci.errors import InvalidInput
from experiments.combinations import combinations
from experiments.command import CONFIGS, file_name, sweepable
from experiments.job import job_id
from experiments.outcome import one_line
from experiments.sweep import SEEDS


@dataclass(frozen=True)
class SweepJob:
    """A job of a sweep: its overrides, key to value, and its id."""

    overrides: dict[str, str]
    job_id: str


@dataclass(frozen=True)
class RefusedJob:
    """A job that would be refused before it began: its overrides, key to value, and why."""

    overrides: dict[str, str]
    reason: str


@dataclass(frozen=True)
class Sweep:
    """What a command line of overrides stands for: its jobs in the order they would run, and its config."""

    jobs: list[SweepJob]
    config: DictConfig
    refused: list[RefusedJob] = field(default_factory=list)


def expand(overrides: Sequence[str], *, keep_refused: bool = False) -> Sweep:
    """The jobs of `python -m experiments.run -m OVERRIDES`, those of `hydra.sweeper.params` included.

    Jobs that differ in their seeds alone are composed once.

    Args:
        keep_refused: tell of jobs that would be refused, rather than raise at the first one, unless all would be.

    Raises:
        Exception: of Hydra, for overrides that it refuses; `experiments.command.explain` has a line for each.
        InvalidInput: a value is missing or a data file cannot be read.
    """
    overrides = sweepable(overrides)
    with hydra.initialize_config_dir(str(CONFIGS), version_base="1.3"):
        loader = GlobalHydra.instance().config_loader()
        config = loader.load_configuration("config", _fixed(loader, overrides), run_mode=RunMode.MULTIRUN)
        found = list(_jobs(loader, combinations(loader, config, overrides)))
    jobs = [job for job in found if isinstance(job, SweepJob)]
    refused = [job for job in found if isinstance(job, RefusedJob)]
    if refused and not (jobs and keep_refused):
        raise InvalidInput(refused[0].reason)
    return Sweep(jobs, config, refused)


def _fixed(loader: ConfigLoader, overrides: Sequence[str]) -> list[str]:
    """The overrides that are the same for all jobs."""
    parsed = OverridesParser.create(config_loader=loader).parse_overrides(list(overrides))
    return [str(each.input_line) for each in parsed if not each.is_sweep_override()]


def _jobs(loader: ConfigLoader, swept: Sequence[Sequence[str]]) -> Iterator[SweepJob | RefusedJob]:
    composed: dict[tuple[str, ...], tuple[DictConfig, str, str]] = {}
    for combination in swept:
        pairs = dict(each.partition("=")[::2] for each in combination)
        seeds = {key: pairs[key] for key in SEEDS if key in pairs}
        rest = tuple(each for each in combination if each.partition("=")[0] not in seeds)
        if rest not in composed:
            composed[rest] = _composed(loader, combination)
        config, method_name, data_name = composed[rest]
        for key, value in seeds.items():
            OmegaConf.update(config, key, OmegaConf.create(f"value: {value}").value)
        try:
            yield SweepJob(pairs, job_id(config, method_name, data_name))
        except InvalidInput as error:
            yield RefusedJob(pairs, one_line(error))


def _composed(loader: ConfigLoader, combination: Sequence[str]) -> tuple[DictConfig, str, str]:
    """The config of a job without Hydra's part, and the names of its method and data."""
    config = loader.load_configuration("config", list(combination), run_mode=RunMode.RUN)
    choices = config.hydra.runtime.choices
    with open_dict(config):
        del config["hydra"]
    return config, file_name(choices.method), file_name(choices.data)
