"""The value of a metric that does not exist on this input."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bci.dataset import Dataset
from bci.posterior import Posterior


class Undefined(NamedTuple):
    """No value, and the reason in a few words; stored as null and printed as `--`."""

    reason: str


Metric = Callable[[Posterior, Dataset, np.random.Generator], "float | Undefined"]
