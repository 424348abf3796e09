"""Means over models and their intervals, as the paper gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def mean_and_ci95(values: pd.Series[float]) -> tuple[float, float]:
    """Mean and half the 95 % interval, 1.96 s / sqrt(n), over defined values; NaN where there are too few."""
    defined = values.dropna().to_numpy(float)
    if not len(defined):
        return float("nan"), float("nan")
    half = 1.96 * float(defined.std(ddof=1)) / len(defined) ** 0.5 if len(defined) > 1 else float("nan")
    return float(defined.mean()), half
