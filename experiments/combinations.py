"""The combinations of overrides that a sweep runs through, one per job."""

from __future__ import annotations

from collections.abc import Sequence

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.config_loader import ConfigLoader
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig

from experiments.arguments import whole_number


def combinations(loader: ConfigLoader, config: DictConfig, overrides: Sequence[str]) -> list[list[str]]:
    """The overrides of every job, in the order of Hydra's own sweeper.

    Args:
        config: of the sweep, with Hydra's part; the overrides of its `hydra.sweeper.params` come first.
        overrides: of the command line.

    Raises:
        InvalidInput: as `check_num_models`.
    """
    check_num_models(config)
    params = [f"{key}={value}" for key, value in (config.hydra.sweeper.params or {}).items()]
    parsed = OverridesParser.create(config_loader=loader).parse_overrides([*params, *overrides])
    (jobs,) = BasicSweeper.split_arguments(parsed, None)
    return jobs


def check_num_models(config: DictConfig) -> None:
    """Raises InvalidInput unless the number of data sets, if an experiment asks for it, is one: Hydra takes any."""
    if "num_models" in config:
        whole_number("num_models", str(config.num_models), 1)
