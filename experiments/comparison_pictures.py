"""Pictures that compare methods: box plots, the exact posterior against the learnt one, accuracy against seconds.

Figures are built without pyplot, so nothing global is touched and no display is needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bci.dataset import Floats
from experiments.label_placement import Segment, label_points

# From the colour-blind-safe palette of Okabe and Ito (2008); hatches and markers say the same again.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#666666"
_TEXT = "#222222"
_PANEL_COLUMNS = 4
_MIDDLE = {"ha": "center", "va": "center", "color": "#555555"}


@dataclass(frozen=True)
class Kind:
    """A kind of methods or of pairs: what the legend says, and how it is drawn."""

    label: str
    colour: str
    marker: str
    filled: bool = True


@dataclass(frozen=True, eq=False)
class Box:
    """A method's values (n,) in one panel, undefined ones left out."""

    name: str
    values: Floats
    kind: Kind


@dataclass(frozen=True, eq=False)
class BoxPanel:
    """The boxes of one panel, under `title`, of the quantity `label`."""

    title: str
    label: str
    boxes: Sequence[Box]


@dataclass(frozen=True, eq=False)
class PairPanel:
    """Paired values of one setting: of every kind the exact posterior's (n,) and the other's (n,)."""

    title: str
    pairs: Sequence[tuple[Kind, Floats, Floats]]


@dataclass(frozen=True)
class Mark:
    """A method in the plane of cost and accuracy, each with half its 95 % interval (NaN where there is none)."""

    name: str
    kind: Kind
    seconds: tuple[float, float]
    error: tuple[float, float]


@dataclass(frozen=True, eq=False)
class CostPanel:
    """Methods by seconds and by the error `label`."""

    title: str
    label: str
    marks: Sequence[Mark]


def box_plots(rows: Sequence[Sequence[BoxPanel]], title: str) -> Figure:
    """Box plots, one row of panels per quantity; under each box its method and how many values it holds.

    Boxes span the quartiles, whiskers reach the last value within 1.5 of their distance; points are single data sets.
    """
    widest = max(len(panel.boxes) for row in rows for panel in row)
    height = 3.1 * len(rows) + 0.9
    figure = Figure(figsize=(max(len(rows[0]) * max(0.66 * widest + 0.9, 3.2), 9.0), height), layout="constrained")
    axes = figure.subplots(len(rows), len(rows[0]), squeeze=False, sharey="row")
    for row, line in zip(rows, axes, strict=True):
        for panel, ax in zip(row, line, strict=True):
            _draw_boxes(ax, panel)
        line[0].set_ylabel(row[0].label)
        line[0].set_ylim(bottom=0.0)  # of the whole row, once all its boxes are there
    _head(figure, title, (box.kind for row in rows for panel in row for box in panel.boxes))
    return figure


def exact_against_learnt(panels: Sequence[PairPanel], title: str, label: str) -> Figure:
    """A panel per setting with the diagonal, and under them the differences of all settings as box plots."""
    columns = min(_PANEL_COLUMNS, len(panels))
    rows = math.ceil(len(panels) / columns)
    lines = sum(len(panel.pairs) for panel in panels) + len(panels)
    below = 0.24 * lines + 0.9
    height = 2.9 * rows + below + 1.0
    figure = Figure(figsize=(max(2.75 * columns, 8.0), height), layout="constrained")
    above, under = figure.subfigures(2, 1, height_ratios=[2.9 * rows, below])
    axes = above.subplots(rows, columns, squeeze=False).ravel()
    for ax, panel in zip(axes, panels, strict=False):
        _draw_pairs(ax, panel)
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    above.supxlabel(f"{label} of the exact posterior", fontsize=10)
    above.supylabel(f"{label} of ARCO-GP", fontsize=10)
    _draw_differences(under.subplots(), panels, label)
    _head(figure, title, (kind for panel in panels for kind, *_ in panel.pairs))
    return figure


def accuracy_against_seconds(rows: Sequence[Sequence[CostPanel]], title: str) -> Figure:
    """Mean error against mean seconds on a logarithmic axis, bars of 95 % intervals, methods named at their points."""
    height = 3.9 * len(rows) + 1.0
    figure = Figure(figsize=(5.6 * len(rows[0]), height), layout="constrained")
    figure.get_layout_engine().set(hspace=0.04)
    axes = figure.subplots(len(rows), len(rows[0]), squeeze=False, sharex=True, sharey="row")
    panels = [(ax, panel) for line, row in zip(axes, rows, strict=True) for ax, panel in zip(line, row, strict=True)]
    for ax, panel in panels:
        _draw_marks(ax, panel)
    _head(figure, title, (mark.kind for _, panel in panels for mark in panel.marks))
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for ax, panel in panels:
        positions = [(mark.seconds[0], mark.error[0]) for mark in panel.marks]
        bars = [bar for mark in panel.marks for bar in _bars(mark)]
        label_points(figure, ax, [mark.name for mark in panel.marks], positions, bars)
    return figure


def _head(figure: Figure, title: str, kinds: Iterable[Kind]) -> None:
    """The title and a legend of the kinds, above the panels."""
    height = figure.get_figheight()
    figure.get_layout_engine().set(rect=(0, 0, 1, 1 - 0.7 / height))
    figure.text(0.5, 1 - 0.1 / height, title, ha="center", va="top", fontsize=12)
    handles = [_handle(kind) for kind in dict.fromkeys(kinds)]
    above = (0.5, 1 - 0.34 / height)
    figure.legend(
        handles=handles, loc="upper center", bbox_to_anchor=above, ncols=len(handles), frameon=False, fontsize=9
    )


def _draw_boxes(ax: Axes, panel: BoxPanel) -> None:
    places = np.arange(len(panel.boxes))
    for place, box in zip(places, panel.boxes, strict=True):
        if not len(box.values):
            ax.text(place, 0.5, "undefined", transform=ax.get_xaxis_transform(), rotation=90, fontsize=8, **_MIDDLE)
            continue
        ax.boxplot(
            [box.values],
            positions=[place],
            widths=0.6,
            showfliers=False,
            patch_artist=True,
            boxprops={"facecolor": box.kind.colour + "40", "edgecolor": box.kind.colour},
            whiskerprops={"color": box.kind.colour},
            capprops={"color": box.kind.colour},
            medianprops={"color": _TEXT, "linewidth": 2.0},
        )
        _strip(ax, box.values, float(place), box.kind, along_x=False)
    ax.set_xticks(places, [f"{box.name.replace(' (', chr(10) + '(')}\nn = {len(box.values)}" for box in panel.boxes])
    ax.tick_params(axis="x", labelsize=7.5, length=0)
    ax.tick_params(axis="y", labelsize=9, labelleft=True)
    ax.set_xlim(-0.6, len(places) - 0.4)
    ax.set_title(panel.title, fontsize=10.5)
    _bare(ax, "y")


def _draw_pairs(ax: Axes, panel: PairPanel) -> None:
    everything = np.concatenate([values for _, *both in panel.pairs for values in both])
    low, high = float(everything.min()), float(everything.max())
    margin = 0.06 * (high - low) or 1.0
    limits = (low - margin, high + margin)
    ax.plot(limits, limits, color=GREY, linewidth=1.0, linestyle="--", zorder=1)
    for kind, exact, learnt in panel.pairs:
        ax.plot(exact, learnt, linestyle="", alpha=0.85, zorder=2, **_style(kind, 5.0))
    ax.set(xlim=limits, ylim=limits, aspect="equal")
    ax.set_title(f"{panel.title}\n{sum(len(exact) for _, exact, _ in panel.pairs)} pairs", fontsize=9)
    ax.tick_params(labelsize=8)
    ax.locator_params(nbins=5)
    ax.text(0.04, 0.96, "exact better", transform=ax.transAxes, fontsize=7.5, color="#555555", va="top")
    _bare(ax, None)


def _draw_differences(ax: Axes, panels: Sequence[PairPanel], label: str) -> None:
    place, ticks = 0.0, []
    for panel in panels:
        for kind, exact, learnt in panel.pairs:
            difference = learnt - exact
            ax.boxplot(
                [difference],
                positions=[place],
                widths=0.62,
                orientation="horizontal",
                showfliers=False,
                patch_artist=True,
                boxprops={"facecolor": kind.colour + ("40" if kind.filled else "00"), "edgecolor": kind.colour},
                whiskerprops={"color": kind.colour},
                capprops={"color": kind.colour},
                medianprops={"color": _TEXT, "linewidth": 2.0},
            )
            _strip(ax, difference, place, kind, along_x=True)
            said = f"{difference.mean():+.2f} (of {learnt.mean():.1f}), n = {len(difference)}"
            ax.text(1.01, place, said, transform=ax.get_yaxis_transform(), va="center", fontsize=7.5)
            ticks.append((place, f"{panel.title.replace(chr(10), ', ')}, {kind.label}"))
            place += 1.0
        place += 0.6
    ax.axvline(0.0, color=GREY, linewidth=1.0, linestyle="--", zorder=1)
    ax.set_yticks([at for at, _ in ticks], [said for _, said in ticks], fontsize=7.5)
    ax.set_ylim(place - 1.0, -0.7)
    ax.tick_params(axis="x", labelsize=8)
    ax.set_xlabel(f"{label} of ARCO-GP minus that of the exact posterior (right of 0: exact better)", fontsize=9)
    ax.text(1.01, -0.75, f"mean (of mean {label})", transform=ax.get_yaxis_transform(), va="bottom", fontsize=7.5)
    _bare(ax, "x")


def _draw_marks(ax: Axes, panel: CostPanel) -> None:
    for mark in panel.marks:
        (seconds, _), (error, half_error) = mark.seconds, mark.error
        for (x0, y0), (x1, y1) in _bars(mark):
            ax.plot([x0, x1], [y0, y1], color=mark.kind.colour, linewidth=1.1, alpha=0.7, zorder=2)
        ax.plot([seconds], [error], linestyle="", zorder=3, **_style(mark.kind, 7.0))
        ax.update_datalim([(seconds, error - np.nan_to_num(half_error)), (seconds, error + np.nan_to_num(half_error))])
    ax.set_xscale("log")
    ax.margins(x=0.16, y=0.14)
    ax.autoscale_view()
    ax.set_title(panel.title, fontsize=10.5)
    ax.set_xlabel("seconds of a fit (mean)")
    ax.set_ylabel(panel.label)
    ax.tick_params(labelsize=9, labelleft=True, labelbottom=True)
    ax.grid(which="major", color="#E6E6E6", linewidth=0.6)
    _bare(ax, None)


def _bars(mark: Mark) -> list[Segment]:
    """The 95 % intervals as lines; one that reaches below zero seconds ends at a tenth of the mean."""
    (seconds, half_seconds), (error, half_error) = mark.seconds, mark.error
    bars = []
    if math.isfinite(half_seconds):
        low = max(seconds - half_seconds, 0.1 * seconds)
        bars.append(((low, error), (seconds + half_seconds, error)))
    if math.isfinite(half_error):
        bars.append(((seconds, error - half_error), (seconds, error + half_error)))
    return bars


def _strip(ax: Axes, values: Floats, place: float, kind: Kind, *, along_x: bool) -> None:
    """The values as points in the width of a box, spread evenly in the order they come in."""
    across = place + np.linspace(-0.17, 0.17, len(values)) if len(values) > 1 else np.array([place])
    x, y = (values, across) if along_x else (across, values)
    ax.plot(x, y, linestyle="", alpha=0.75, zorder=3, **_style(kind, 2.8))


def _style(kind: Kind, size: float) -> dict[str, object]:
    return {
        "marker": kind.marker,
        "markersize": size,
        "markerfacecolor": kind.colour if kind.filled else "white",
        "markeredgecolor": kind.colour,
        "markeredgewidth": 0.9,
    }


def _handle(kind: Kind) -> Line2D:
    return Line2D([], [], linestyle="", label=kind.label, **_style(kind, 6.0))


def _bare(ax: Axes, grid: str | None) -> None:
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    if grid:
        ax.grid(axis=grid, color="#E6E6E6", linewidth=0.6)
    ax.set_axisbelow(True)
