"""Run jobs from the command line: `python -m experiments.run data=sachs method=arco_gp`."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import MissingConfigException, OverrideParseException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException, ValidationError

from experiments.execute import execute
from experiments.outcome import INTERRUPTED, INVALID, complain, one_line

OmegaConf.register_new_resolver("process_id", os.getpid, replace=True)  # keeps apart runs that start at once

CONFIGS = Path(__file__).resolve().parent.parent / "conf"


@hydra.main(config_path=str(CONFIGS), config_name="config", version_base="1.3")
def run(cfg: DictConfig) -> int:
    """Run the job of a composed config; returns the exit code, in a single run leaves with it."""
    context = HydraConfig.get()
    choices = context.runtime.choices
    run_dir = Path(context.runtime.output_dir)
    code = execute(cfg, method_name=choices.get("method") or "", data_name=choices.get("data") or "", run_dir=run_dir)
    if context.mode == RunMode.RUN:
        sys.exit(code)
    return code  # a job of a sweep must not stop the others; `SweepOutcome` sees to the exit code


def main() -> None:
    """Run the command line, with one line on stderr for whatever is wrong with it."""
    if os.environ.get("HYDRA_FULL_ERROR") == "1":  # asked for tracebacks
        run()
        return
    os.environ["HYDRA_FULL_ERROR"] = "1"  # lets Hydra's errors through to the handlers here
    try:
        run()
    except KeyboardInterrupt:
        complain("interrupted; nothing of the interrupted job was stored")
        sys.exit(INTERRUPTED)
    except Exception as error:  # from Hydra, before a job began; jobs do not raise
        complain(explain(error))
        sys.exit(INVALID)


def explain(error: Exception) -> str:
    """One line on what is wrong with a command line that Hydra refused, and what to do."""
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        group, _, name = str(error.missing_cfg_file).rpartition("/")
        options = ", ".join(error.options or ())
        return f"{group or 'config'}: expected one of {options}, got {name!r}; set {group or '--config-name'}=NAME"
    if isinstance(error, OverrideParseException):
        reason = error.message.splitlines()[0]
        return f"command line: expected key=value, got {error.override!r} ({reason}); correct or quote it"
    unknown = re.match(r"Could not override '([^']+)'", str(error))
    if unknown and not isinstance(error.__cause__, ValidationError):
        return f"{unknown[1]}: unknown key; correct it, --cfg job shows all keys of a command"
    if isinstance(error, OSError):
        return f"hydra.run.dir: expected a folder that can be written to, got: {one_line(error)}"
    reason = f" ({str(error.__cause__).splitlines()[0]})" if isinstance(error.__cause__, OmegaConfBaseException) else ""
    return f"command line: {one_line(error)}{reason}; correct it (HYDRA_FULL_ERROR=1 shows where it comes from)"


if __name__ == "__main__":
    main()
