"""The contract of methods that a package of others implements: each fit runs in a process of its own."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from baselines.isolation import MAX_SEED, fit_in_process
from bci.dataset import Dataset
from bci.errors import InvalidInput
from bci.method import Method
from bci.posterior import GraphPosterior, Posterior
from bci.settings import check_number

EXTRA = "baselines"


@dataclass(frozen=True, kw_only=True)
class PackagedMethod(Method):
    """A method of a package that is imported only in the process that fits.

    The module of a subclass has a function `fit(observations, settings, seed) -> GraphPosterior`, called there with the
    fields of the subclass. Its packages are imported in that function and nowhere else, since importing some of them
    changes global state.

    Args:
        timeout_seconds: wall-clock limit of a fit; None for no limit.

    Raises:
        InvalidInput: a setting out of range.
    """

    timeout_seconds: float | None = None

    def __post_init__(self) -> None:
        if self.timeout_seconds is not None:
            check_number("timeout_seconds", self.timeout_seconds, positive=True)

    @property
    def packages(self) -> tuple[str, ...]:
        """Import names of the packages that a fit needs."""
        raise NotImplementedError

    @property
    def settings(self) -> dict[str, Any]:
        """The hyper-parameters, as plain values."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "timeout_seconds"}

    @property
    def module(self) -> str:
        """The module whose `fit` is called."""
        return type(self).__module__

    def _fit(self, dataset: Dataset, rng: np.random.Generator) -> Posterior:
        return self.find_graphs(dataset, rng)

    def find_graphs(self, dataset: Dataset, rng: np.random.Generator) -> GraphPosterior:
        """What the package finds; raises InvalidInput if a package is missing, and as `fit_in_process`."""
        for package in self.packages:
            if importlib.util.find_spec(package) is None:
                raise InvalidInput(
                    f"method: expected the package {package!r}, which is not installed; "
                    f"pip install '.[{EXTRA}]' brings it"
                )
        return fit_in_process(
            self.module,
            dataset.observations,
            self.settings,
            int(rng.integers(MAX_SEED, endpoint=True)),
            packages=self.packages,
            timeout_seconds=self.timeout_seconds,
        )
