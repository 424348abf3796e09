"""Pictures of causal queries: distributions under interventions, and the matrix of average causal effects.

Figures are built without pyplot, so nothing global is touched and no display is needed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from sklearn.neighbors import KernelDensity

from bci.dataset import Bools, Floats
from experiments.pictures import label_matrix

BANDWIDTH = 0.2  # of the paper's Figure 3, on the standardised scale
MOST_WRITTEN = 15  # variables up to which effects are written into their cells
_COLUMNS = 4
_GRID_POINTS = 400
_TRUTH = "#333333"
# From the colour-blind-safe palette of Okabe and Ito (2008).
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


@dataclass(frozen=True, eq=False)
class WeightedValues:
    """Samples (n,) of one variable with weights (n,); of equal weight if None."""

    values: Floats
    weights: Floats | None = None

    @property
    def mean(self) -> float:
        return float(np.average(self.values, weights=self.weights))

    def density(self, at: Floats) -> Floats:
        """Gaussian kernel density estimate with the fixed bandwidth, at (m,)."""
        estimate = KernelDensity(kernel="gaussian", bandwidth=BANDWIDTH, rtol=1e-4)
        estimate.fit(self.values[:, None], sample_weight=self.weights)
        density: Floats = np.exp(estimate.score_samples(at[:, None]))
        return density


@dataclass(frozen=True, eq=False)
class DensityPanel:
    """One variable under one intervention.

    Args:
        title: for example `Erk | do(PKA=1)`.
        posteriors: samples from the posterior, by the name of the method.
        truth: samples from the true distribution.
    """

    title: str
    variable: str
    posteriors: dict[str, WeightedValues]
    truth: WeightedValues


def interventional_densities(panels: Sequence[DensityPanel], title: str = "") -> Figure:
    """Posterior (solid) against true (dashed) density estimates, one panel each, with vertical lines at the means.

    As Figure 3 of Toth et al. (2025).
    """
    columns = min(_COLUMNS, len(panels))
    rows = math.ceil(len(panels) / columns)
    width, header = max(3.1 * columns, 5.2), 0.85 + 0.2 * title.count("\n")
    figure = Figure(figsize=(width, 2.35 * rows + header), layout="constrained")
    figure.get_layout_engine().set(rect=(0, 0, 1, 1 - (header - 0.1) / (2.35 * rows + header)), hspace=0.06)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    methods = list(dict.fromkeys(name for panel in panels for name in panel.posteriors))
    colours = {name: _COLOURS[k % len(_COLOURS)] for k, name in enumerate(methods)}
    for ax, panel in zip(axes, panels, strict=False):
        _draw_densities(ax, panel, colours)
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    for ax in axes[::columns]:
        ax.set_ylabel("density")
    total = figure.get_figheight()
    figure.text(0.5, 1 - 0.1 / total, title, ha="center", va="top", fontsize=11)
    handles = [Line2D([], [], color=colours[name], linewidth=1.8, label=f"posterior, {name}") for name in methods]
    handles += [
        Line2D([], [], color=_TRUTH, linewidth=1.5, linestyle="--", label="truth"),
        Line2D([], [], color=_TRUTH, marker="|", markersize=10, linestyle="", label="vertical lines: means"),
    ]
    above = (0.5, 1 - (0.32 + 0.2 * title.count("\n")) / total)
    figure.legend(
        handles=handles, loc="upper center", bbox_to_anchor=above, ncols=len(handles), frameon=False, fontsize=9
    )
    return figure


def effect_heat_map(
    effects: Floats,
    uncertainty: Floats,
    names: Sequence[str],
    truth: Floats | None = None,
    *,
    title: str = "",
    unit: str = "effect",
) -> Figure:
    """Average causal effects (d, d), row causes column, with their standard deviations over graphs.

    Of up to `MOST_WRITTEN` variables each cell holds both numbers; of more the uncertainty has a panel of its own.

    Args:
        effects: `[i, j]` the effect of i on j; the diagonal is left blank.
        uncertainty: their standard deviations.
        truth: the true effects, for a panel beside, or None.
        unit: what the colours mean.
    """
    num_nodes = len(names)
    written = num_nodes <= MOST_WRITTEN
    panels = [("posterior mean ± standard deviation over graphs" if written else "posterior mean", effects)]
    if truth is not None:
        panels.append(("truth", truth))
    spread = None if written else uncertainty
    count = len(panels) + (spread is not None)
    side = float(np.clip((0.5 if written else 0.24) * num_nodes, 3.0, 12.0))
    longest = 0.075 * max(map(len, names))
    figure = Figure(figsize=(count * (side + 0.9 + longest) + 1.0, side + 1.3 + longest), layout="constrained")
    figure.get_layout_engine().set(h_pad=0.1)
    axes = figure.subplots(1, count, squeeze=False)[0]
    largest = max(float(np.abs(_blank_diagonal(matrix)[~np.eye(num_nodes, dtype=bool)]).max()) for _, matrix in panels)
    norm = TwoSlopeNorm(0.0, -max(largest, 1e-9), max(largest, 1e-9))
    for ax, (label, matrix) in zip(axes, panels, strict=False):
        image = ax.imshow(_blank_diagonal(matrix), norm=norm, cmap="RdBu_r", interpolation="nearest")
        _label_effects(ax, label, names, side)
        if written:
            below = uncertainty if matrix is effects else None
            _write_cells(ax, matrix, below, dark=0.6 * largest, size=float(np.clip(30 * side / num_nodes / 2, 5, 7.5)))
    figure.colorbar(image, ax=list(axes[: len(panels)]), label=unit, fraction=0.05, pad=0.02, aspect=30)
    if spread is not None:
        image = axes[-1].imshow(_blank_diagonal(spread), vmin=0.0, cmap="Purples", interpolation="nearest")
        _label_effects(axes[-1], "standard deviation over graphs", names, side)
        figure.colorbar(image, ax=axes[-1], label="standard deviation", fraction=0.05, pad=0.02, aspect=30)
    figure.suptitle(title, fontsize=11)
    if written:
        figure.supxlabel("a cell without a number is zero to two digits", fontsize=8, color="#555555")
    return figure


def _draw_densities(ax: Axes, panel: DensityPanel, colours: dict[str, str]) -> None:
    everything = [panel.truth, *panel.posteriors.values()]
    low = min(float(np.quantile(sample.values, 0.002)) for sample in everything) - 3 * BANDWIDTH
    high = max(float(np.quantile(sample.values, 0.998)) for sample in everything) + 3 * BANDWIDTH
    at = np.linspace(low, high, _GRID_POINTS)
    for name, sample in panel.posteriors.items():
        density = sample.density(at)
        ax.plot(at, density, color=colours[name], linewidth=1.8)
        if len(panel.posteriors) == 1:  # of several the shades would mix
            ax.fill_between(at, density, color=colours[name], alpha=0.12, linewidth=0)
        ax.axvline(sample.mean, color=colours[name], linewidth=1.1)
    ax.plot(at, panel.truth.density(at), color=_TRUTH, linewidth=1.5, linestyle="--")
    ax.axvline(panel.truth.mean, color=_TRUTH, linewidth=1.1, linestyle="--")
    ax.set_title(panel.title, fontsize=10)
    ax.set_xlabel(f"{panel.variable} (standardised)", fontsize=9)
    ax.set_xlim(low, high)
    ax.set_ylim(bottom=0.0)
    ax.tick_params(labelsize=8)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def _label_effects(ax: Axes, label: str, names: Sequence[str], side: float) -> None:
    ax.set_title(label, fontsize=10)
    ax.set_xlabel("effect on")
    label_matrix(ax, names, side)
    ax.set_facecolor("#C8C8C8")  # shows on the diagonal


def _write_cells(ax: Axes, matrix: Floats, below: Floats | None, *, dark: float, size: float) -> None:
    """Write the entries off the diagonal; those that are zero to two digits, with no spread, are left out."""
    for i, j in np.ndindex(matrix.shape):
        spread = 0.0 if below is None else below[i, j]
        if i == j or (abs(matrix[i, j]) < 0.005 and spread < 0.005):
            continue
        number = f"{matrix[i, j]:.2f}".replace("-0.00", "0.00")
        text = number if below is None else f"{number}\n±{spread:.2f}"
        colour = "white" if abs(matrix[i, j]) > dark else "black"
        ax.text(j, i, text, ha="center", va="center", fontsize=size, color=colour, linespacing=1.0)


def _blank_diagonal(matrix: Floats) -> Floats:
    blank: Bools = np.eye(len(matrix), dtype=bool)
    return np.where(blank, np.nan, matrix)
