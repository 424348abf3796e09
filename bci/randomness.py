"""Independent random streams from one seed; no global generator is read or written."""

from __future__ import annotations

from numbers import Integral

import numpy as np
import torch

from bci.errors import InvalidInput

MAX_SEED = 2**63 - 1


def stream(seed: int, purpose: str) -> np.random.Generator:
    """The generator of one purpose: independent of those of all other purposes, at this seed and at any other.

    Raises:
        InvalidInput: the seed is not a whole number from 0 to 2**63 - 1.
    """
    if not isinstance(seed, Integral) or isinstance(seed, bool) or not 0 <= seed <= MAX_SEED:
        raise InvalidInput(f"seed: expected a whole number from 0 to {MAX_SEED}, got {seed!r}")
    return np.random.default_rng(np.random.SeedSequence(int(seed), spawn_key=tuple(purpose.encode())))


def torch_generator(rng: np.random.Generator, device: torch.device | str = "cpu") -> torch.Generator:
    """A torch generator on `device`, seeded by one draw from `rng`."""
    generator = torch.Generator(device=device)
    generator.manual_seed(int(rng.integers(MAX_SEED)))
    return generator
