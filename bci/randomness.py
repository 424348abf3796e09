"""Independent random streams from one seed; no global generator is read or written."""

from __future__ import annotations

from numbers import Integral

import numpy as np
import torch

from bci.errors import InvalidInput

MAX_SEED = 2**63 - 1


def streams(seed: int, n: int) -> list[np.random.Generator]:
    """`n` independent generators spawned from one integer seed; stream k does not depend on n.

    Raises:
        InvalidInput: the seed is not a whole number of at least 0.
    """
    if not isinstance(seed, Integral) or isinstance(seed, bool) or seed < 0:
        raise InvalidInput(f"seed: expected a whole number of at least 0, got {seed!r}")
    return [np.random.default_rng(child) for child in np.random.SeedSequence(int(seed)).spawn(n)]


def torch_generator(rng: np.random.Generator, device: torch.device | str = "cpu") -> torch.Generator:
    """A torch generator on `device`, seeded by one draw from `rng`."""
    generator = torch.Generator(device=device)
    generator.manual_seed(int(rng.integers(MAX_SEED)))
    return generator
