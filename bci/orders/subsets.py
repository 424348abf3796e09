"""Sums over subsets and supersets of all 2^d sets at once, of numbers given by their logarithms.

A set is a bit mask: bit j is set iff node j is a member.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bci.dataset import Floats

# Below this range of logarithms the sums are taken directly: all terms fit a float64 and none is subnormal.
_DIRECT_RANGE = 1300.0


def log_subset_sums(log_values: Floats) -> Floats:
    """`log sum_{S subset of U} exp(log_values[S])` for every U, (2^d,); the zeta transform."""
    return _log_transform(log_values, into_upper=True)


def log_superset_sums(log_values: Floats) -> Floats:
    """`log sum_{U superset of S} exp(log_values[U])` for every S, (2^d,)."""
    return _log_transform(log_values, into_upper=False)


def popcounts(num_nodes: int) -> NDArray[np.uint8]:
    """(2^d,) number of members of every set."""
    counts: NDArray[np.uint8] = np.bitwise_count(np.arange(1 << num_nodes, dtype=np.uint32))
    return counts


def _log_transform(log_values: Floats, *, into_upper: bool) -> Floats:
    finite = log_values[np.isfinite(log_values)]
    if not finite.size:
        return log_values.copy()
    highest, lowest = float(finite.max()), float(finite.min())
    if highest - lowest > _DIRECT_RANGE:
        return _transform(log_values.copy(), np.logaddexp, into_upper=into_upper)
    shift = (highest + lowest) / 2
    sums = _transform(np.exp(log_values - shift), np.add, into_upper=into_upper)
    with np.errstate(divide="ignore"):
        logs: Floats = np.log(sums, out=sums)
    return np.add(logs, shift, out=logs)


def _transform(values: Floats, add: np.ufunc, *, into_upper: bool) -> Floats:
    """In place: for every bit, add the half without it to the half with it, or the other way round."""
    width = 1
    while width < len(values):
        without, with_bit = values.reshape(-1, 2, width)[:, 0], values.reshape(-1, 2, width)[:, 1]
        target, source = (with_bit, without) if into_upper else (without, with_bit)
        add(target, source, out=target)
        width *= 2
    return values
