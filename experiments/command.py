"""The command line of jobs, its config composed by Hydra."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Sequence, Set
from pathlib import Path

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, Quote, QuotedString
from hydra.errors import ConfigCompositionException, HydraException, MissingConfigException, OverrideParseException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException, ValidationError

from bci.errors import InvalidInput
from experiments.execute import execute
from experiments.launchers import INSTALL
from experiments.outcome import INVALID, Ended, complain, one_line
from experiments.progress import close

OmegaConf.register_new_resolver("process_id", os.getpid, replace=True)  # keeps apart runs that start at once
OmegaConf.register_new_resolver("flat", lambda choice: choice.replace("/", "-"), replace=True)  # arco_gp/k4

CONFIGS = Path(__file__).resolve().parent.parent / "conf"
_OF_SWEEPS = ("experiment", "launcher", "num_models")  # they set keys of Hydra's own, which it reads before any job


@hydra.main(config_path=str(CONFIGS), config_name="config", version_base="1.3")
def run(cfg: DictConfig) -> Ended:
    """Run the job of a composed config; returns how it ended, in a single run leaves with the exit code."""
    context = HydraConfig.get()
    choices = context.runtime.choices
    run_dir = Path(context.runtime.output_dir)
    try:
        _check_keys(context.job.config_name, context.overrides.task)
    except ConfigCompositionException as error:
        complain(explain(error))
        ended = Ended("invalid", None)
    else:
        method_name, data_name = file_name(choices.get("method")), file_name(choices.get("data"))
        sweep = sweep_name(choices.get("experiment"), context.sweep.dir) if context.mode == RunMode.MULTIRUN else None
        ended = execute(cfg, method_name=method_name, data_name=data_name, run_dir=run_dir, sweep=sweep)
    if context.mode == RunMode.RUN:
        sys.exit(ended.code)
    return ended  # a job of a sweep must not stop the others; `SweepOutcome` sees to the exit code


def command() -> None:
    """Run the command line, with one line on stderr for whatever is wrong with it."""
    logging.raiseExceptions = False  # else each message for a terminal that has gone would be a traceback
    try:
        sys.argv[1:] = sweepable(sys.argv[1:])
    except InvalidInput as error:
        complain(explain(error))
        sys.exit(INVALID)
    if os.environ.get("HYDRA_FULL_ERROR") == "1":  # asked for tracebacks
        try:
            run()
        finally:
            close()
        return
    os.environ["HYDRA_FULL_ERROR"] = "1"  # lets Hydra's errors through to the handlers here
    try:
        run()
    except Exception as error:  # from Hydra, before a job began; jobs do not raise
        close()
        complain(explain(error))
        sys.exit(INVALID)
    finally:
        close()


def sweepable(arguments: Sequence[str]) -> list[str]:
    """The same arguments, with `data.num_nodes=5` as a sweep of one value where `data=er,sf` is a sweep.

    Hydra composes what is not swept over before the sweep begins, with the default data, which may lack the key.

    Raises:
        InvalidInput: a sweep over experiments, launchers or numbers of data sets: they say how to sweep, which no
            single job can; or a value that no sweep can be written with.
    """
    parsed = {each: _parsed(each) for each in arguments if "=" in each and not each.startswith("-")}
    swept = {override.key_or_group for override in parsed.values() if override and override.is_sweep_override()}
    for key in _OF_SWEEPS:
        if key in swept:
            raise InvalidInput(f"{key}: expected one for a whole sweep, got several; start a sweep for each")
    return [_as_sweep(parsed[each]) if _is_plain(parsed.get(each), swept) else each for each in arguments]


def explain(error: Exception) -> str:
    """One line on what is wrong with a command line that Hydra refused, and what to do."""
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        group, _, name = str(error.missing_cfg_file).rpartition("/")
        if group == "hydra/launcher" and name in INSTALL:
            return INSTALL[name]
        if not group:
            return f"--config-name: expected {', '.join(_options('.'))}, got {name!r}; leave it out"
        first, _, folder = group.partition("/")
        if folder and (CONFIGS / first).is_dir():  # arco_gp/k4 is chosen as method=arco_gp/k4
            options = [f"{folder}/{option}" for option in _options(group)] or _options(first)
            group, name = first, f"{folder}/{name}"
        else:
            options = error.options or []
        return f"{group}: expected one of {', '.join(options)}, got {name!r}; set {group}=NAME"
    if isinstance(error, OverrideParseException):
        reason = error.message.splitlines()[0]
        return f"command line: expected key=value, got {error.override!r} ({reason}); correct or quote it"
    if str(error).startswith("Config group override must be"):
        for group, given in _choices(sys.argv[1:]):
            if not isinstance(given, str | list):
                shown = "null" if given is None else given
                return f"{group}: expected one of {', '.join(_options(group))}, got {shown}; set {group}=NAME"
    if isinstance(error, InvalidInput):
        return one_line(error)
    unknown = re.match(r"Could not override '([^']+)'", str(error))
    if unknown and not isinstance(error.__cause__, ValidationError):
        key = getattr(error.__cause__, "full_key", None) or unknown[1]
        return f"{key}: unknown key; correct it, --cfg job shows all keys of a command"
    if isinstance(error, OSError):
        key = "hydra.sweep.dir" if {"-m", "--multirun"} & set(sys.argv) else "hydra.run.dir"
        return f"{key}: expected a folder that can be written to, got: {one_line(error)}"
    reason = f" ({str(error.__cause__).splitlines()[0]})" if isinstance(error.__cause__, OmegaConfBaseException) else ""
    return f"command line: {one_line(error)}{reason}; correct it (HYDRA_FULL_ERROR=1 shows where it comes from)"


def _check_keys(config_name: str, overrides: Sequence[str]) -> None:
    """Raise Hydra's error where a `+` or `++` brings a key that the configs do not have: nothing would read it."""
    given = [override for override in overrides if not override.startswith("~")]
    plain = [override if _is_choice(override) else override.lstrip("+") for override in given]
    if plain != given:
        hydra.compose(config_name, overrides=plain)


def _is_choice(override: str) -> bool:
    """Whether an override chooses from a config group, as `+experiment=NAME` does; others set a key."""
    return (CONFIGS / override.lstrip("+").partition("=")[0]).is_dir()


def _parsed(argument: str) -> Override | None:
    try:
        return OverridesParser.create().parse_override(argument)
    except HydraException:  # it comes again when Hydra reads the command line
        return None


def _is_plain(override: Override | None, swept: Set[str]) -> bool:
    """Whether an override sets a key of a group that is swept over, to one value."""
    if override is None or override.is_delete() or override.is_sweep_override():
        return False
    group, dot, _ = override.key_or_group.partition(".")
    return bool(dot) and group in swept


def _as_sweep(override: Override | None) -> str:
    """A sweep whose only value is that of a plain override, which Hydra takes the quotes off, or refuses, in some."""
    assert override is not None
    key, value = override.get_key_element(), override.get_value_element_as_str()
    for choice in (value, QuotedString(value, Quote.double).with_quotes()):
        sweep = f"{key}=choice({choice})"
        if _only_value(sweep) == repr(override.value()):
            return sweep
    group, given = override.key_or_group.partition(".")[0], str(override.input_line).partition("=")[2]
    raise InvalidInput(
        f"{override.key_or_group}: expected a value that a sweep over {group} can be written with, got {given}; "
        f"start a sweep for each {group}"
    )


def _only_value(sweep: str) -> str | None:
    """What the only job of a sweep is given, in Python's notation; None if it cannot be read."""
    parsed = _parsed(sweep)
    job = _parsed(f"key={next(parsed.sweep_string_iterator())}") if parsed else None
    return repr(job.value()) if job else None


def file_name(choice: str | None) -> str:
    """The file that a chosen config is or is a variant of: `arco_gp` for arco_gp and for arco_gp/k4."""
    return (choice or "").partition("/")[0]


def sweep_name(experiment: str | None, folder: str) -> str:
    """The experiment, which stays the same when the sweep is started again, or else the folder of the sweep."""
    date, name = Path(folder).parts[-2:] if len(Path(folder).parts) > 1 else ("", Path(folder).name)
    return experiment or (f"{date}/{name}" if re.fullmatch(r"\d{4}-\d\d-\d\d", date) else name)


def _options(group: str) -> list[str]:
    return sorted(file.stem for file in (CONFIGS / group).glob("*.yaml"))


def _choices(arguments: Sequence[str]) -> list[tuple[str, object]]:
    """Groups and the values that a command line gives them."""
    groups = {folder.name for folder in CONFIGS.iterdir() if folder.is_dir()}
    parsed = OverridesParser.create().parse_overrides([each for each in arguments if each.partition("=")[0] in groups])
    return [
        (override.key_or_group, value)
        for override in parsed
        for value in (override.sweep_iterator() if override.is_sweep_override() else [override.value()])
    ]
