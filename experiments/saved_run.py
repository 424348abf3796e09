"""A run directory read back: the posterior it holds, and the data set it was fitted to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from bci.causal_posterior import CausalPosterior
from bci.dataset import Dataset
from bci.errors import InvalidInput
from bci.posterior_file import load_posterior
from experiments.build import build
from experiments.outcome import POSTERIOR, read_outcome


@dataclass(frozen=True)
class SavedRun:
    """A run directory with a posterior that answers queries; build it with `SavedRun.read`."""

    folder: Path
    posterior: CausalPosterior

    @classmethod
    def read(cls, key: str, folder: str | Path) -> SavedRun:
        """Read the posterior of a run directory.

        Args:
            key: what the folder is given for, for messages.

        Raises:
            InvalidInput: no such folder, or none with a posterior that this version can read.
        """
        folder = Path(folder)
        if not folder.is_dir():
            raise InvalidInput(f"{key}: expected a run directory, got '{folder}' (no such folder); see outputs/")
        if not (folder / POSTERIOR).is_file():
            outcome = read_outcome(folder)
            if outcome.get("status") == "skipped":
                raise InvalidInput(
                    f"{key}: expected a run directory with {POSTERIOR}, got '{folder}', where job "
                    f"{outcome.get('job_id')} was skipped; name the directory of its earlier run, or run it again with "
                    "force=true"
                )
            raise InvalidInput(
                f"{key}: expected a run directory with {POSTERIOR}, got '{folder}' without one; "
                "run a method that answers queries, such as arco_gp"
            )
        return cls(folder, load_posterior(folder / POSTERIOR))

    @property
    def method_name(self) -> str:
        """As chosen on the command line, or the name of the folder if that is not known."""
        return self._choices.get("method") or self.folder.name

    @property
    def data_name(self) -> str:
        return self._choices.get("data") or "data"

    @cached_property
    def dataset(self) -> Dataset:
        """The data set of the run, made again from its config.

        Raises:
            InvalidInput: there is no config, or its data cannot be made any more.
        """
        config = self._config("config")
        if "data" not in config:
            raise InvalidInput(
                f"{self.folder}: expected a run directory with .hydra/config.yaml, got none; run it again"
            )
        dataset = build("data", config["data"], Dataset)
        if dataset.names != self.posterior.names:
            raise InvalidInput(
                f"{self.folder}: expected the variables of the data and the posterior to agree; run it again"
            )
        return dataset

    @cached_property
    def _choices(self) -> dict[str, str]:
        try:
            return dict(self._config("hydra")["hydra"]["runtime"]["choices"])
        except (KeyError, TypeError):
            return {}

    def _config(self, name: str) -> dict[str, Any]:
        path = self.folder / ".hydra" / f"{name}.yaml"
        try:
            found = OmegaConf.to_container(OmegaConf.load(path), resolve=name == "config")
        except OSError:
            return {}
        except (OmegaConfBaseException, YAMLError, ValueError) as error:
            raise InvalidInput(f"{path}: expected a config, got another file; run the job again") from error
        return {str(key): value for key, value in found.items()} if isinstance(found, dict) else {}
