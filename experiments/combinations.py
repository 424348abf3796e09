"""The combinations of overrides that a sweep runs through, one per job."""

from __future__ import annotations

from collections.abc import Sequence

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.config_loader import ConfigLoader
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig


def combinations(loader: ConfigLoader, config: DictConfig, overrides: Sequence[str]) -> list[list[str]]:
    """The overrides of every job, in the order of Hydra's own sweeper.

    Args:
        config: of the sweep, with Hydra's part; the overrides of its `hydra.sweeper.params` come first.
        overrides: of the command line.
    """
    params = [f"{key}={value}" for key, value in (config.hydra.sweeper.params or {}).items()]
    parsed = OverridesParser.create(config_loader=loader).parse_overrides([*params, *overrides])
    (jobs,) = BasicSweeper.split_arguments(parsed, None)
    return jobs
