"""Posteriors of sampled graphs in which cyclic ones have no weight."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bci.dataset import Bools
from bci.posterior import GraphPosterior


def is_acyclic(graphs: Bools) -> Bools:
    """(n,) from adjacency matrices (n, d, d): parentless nodes are taken away until none is left, or none is found."""
    left = np.ones(graphs.shape[:2], dtype=bool)
    for _ in range(graphs.shape[1]):
        left &= (graphs & left[:, :, None]).any(axis=1)
    return np.logical_not(left.any(axis=1))


def posterior_of_samples(graphs: Bools, diagnostics: Mapping[str, Any]) -> GraphPosterior:
    """Equal weights for the acyclic of `graphs` (n, d, d), zero for the others; `cyclic_mass` is the share of these.

    Raises:
        FloatingPointError: all are cyclic.
    """
    acyclic = is_acyclic(graphs)
    if not acyclic.any():
        raise FloatingPointError(f"expected an acyclic graph among {len(graphs)} samples, but all have cycles")
    return GraphPosterior(
        graphs, acyclic / acyclic.sum(), diagnostics={**diagnostics, "cyclic_mass": float(1 - acyclic.mean())}
    )
