"""Pictures of a posterior: the edge probabilities as a heat map and as a drawn graph.

Figures are built without pyplot, so nothing global is touched and no display is needed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import matplotlib
import numpy as np
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, FancyArrowPatch

from bci.dataset import Bools, Floats
from bci.posterior import GraphKind
from experiments.layout import bends, curve, layered_positions

matplotlib.rcParams["text.parse_math"] = False  # names of variables are no formulas

THRESHOLD = 0.05
MOST_EDGES = 400  # more cannot be told apart, and take long to draw
_RADIUS = 0.25  # of a node, inches
_MARGIN = 0.42  # around the outermost node, inches
_LEGEND_COLUMNS = 3
_LONGEST_INSIDE = 6  # characters of a name that fit into a node
_LineStyle = str | tuple[float, tuple[float, float]]
# From the colour-blind-safe palette of Okabe and Ito (2008); line styles say the same again.
_DASHED = (0.0, (3.5, 1.6))
_TRUE, _FALSE, _UNKNOWN, _MISSED = "#0072B2", "#D55E00", "#333333", "#8A8A8A"


def edge_heat_map(probabilities: Floats, names: Sequence[str], truth: Bools | None = None, title: str = "") -> Figure:
    """Edge probabilities (d, d), row causes column, as a heat map; beside it the true graph where it is known."""
    num_nodes = len(names)
    side = float(np.clip(0.24 * num_nodes, 3.0, 14.0))
    panels = [("Edge probability", probabilities)]
    if truth is not None:
        panels.append(("True graph", truth.astype(float)))
    longest = 0.075 * max(map(len, names))
    figure = Figure(figsize=(len(panels) * (side + 0.9 + longest) + 0.9, side + 1.2 + longest), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for ax, (label, matrix) in zip(axes, panels, strict=True):
        image = ax.imshow(matrix, vmin=0.0, vmax=1.0, cmap="Blues", interpolation="nearest")
        ax.set_title(label, fontsize=11)
        ax.set_xlabel("effect")
        label_matrix(ax, names, side)
    figure.colorbar(image, ax=list(axes), label="probability", fraction=0.05, pad=0.02, aspect=30)
    figure.suptitle(title, fontsize=11)
    return figure


def label_matrix(ax: Axes, names: Sequence[str], side: float) -> None:
    """Name rows (causes) and columns of a matrix drawn `side` inches wide, and part its cells by thin lines."""
    num_nodes = len(names)
    size = float(np.clip(72 * 0.75 * side / num_nodes, 4.0, 9.0))
    ax.set_ylabel("cause")
    ax.set_xticks(range(num_nodes), names, rotation=90, fontsize=size)
    ax.set_yticks(range(num_nodes), names, fontsize=size)
    ax.set_xticks(np.arange(num_nodes + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(num_nodes + 1) - 0.5, minor=True)
    ax.grid(which="minor", color="#E3E3E3", linewidth=0.4)
    ax.tick_params(which="both", length=0)


def posterior_graph(
    probabilities: Floats,
    names: Sequence[str],
    truth: Bools | None = None,
    *,
    graph_kind: GraphKind = "dag",
    threshold: float = THRESHOLD,
    title: str = "",
) -> Figure:
    """The posterior drawn as one graph: every edge of at least `threshold`, its width and strength the probability.

    Of more than `MOST_EDGES` edges only the most probable are drawn, and the title says so.

    Causes stand above their effects as far as the posterior has no cycles. Where the truth is known, true edges are
    blue and solid, others orange and dashed, and true edges below the threshold grey and dotted. For a CPDAG the
    probability that both directions share is drawn as an edge without a head.

    Args:
        probabilities: (d, d), row causes column; for a CPDAG an undirected edge is coded by both entries.
        names: d names.
        truth: (d, d) adjacency of the true DAG, or None.
    """
    directed, undirected = _split(probabilities, graph_kind)
    drawn = [(i, j, float(directed[i, j]), True) for i, j in _pairs(directed >= threshold)]
    drawn += [(i, j, float(undirected[i, j]), False) for i, j in _pairs(np.triu(undirected) >= threshold)]
    drawn.sort(key=lambda edge: edge[2])
    if len(drawn) > MOST_EDGES:
        title += f"\n(the {MOST_EDGES} most probable of {len(drawn)} edges)"
        drawn = drawn[-MOST_EDGES:]
    weights = np.zeros_like(probabilities)
    for i, j, *_ in drawn:
        weights[i, j] = probabilities[i, j]
    positions = layered_positions(weights)
    missed = [] if truth is None else _pairs(truth & (np.maximum(directed, undirected) < threshold))
    edges = [*((i, j) for i, j, *_ in drawn), *missed]
    curvature = bends(positions, edges)
    figure, ax = _canvas(
        np.concatenate([positions, *(curve(positions[i], positions[j], curvature[i, j]) for i, j in edges)]),
        title,
        _legend(truth is not None, threshold),
    )
    for i, j in missed:
        _draw_edge(
            ax, positions[i], positions[j], curvature[i, j], color=_MISSED, linewidth=1.2, linestyle=":", zorder=1.0
        )
    for i, j, probability, headed in drawn:
        is_true = None if truth is None else bool(truth[i, j] or (not headed and truth[j, i]))
        _draw_edge(
            ax,
            positions[i],
            positions[j],
            curvature[i, j],
            headed=headed,
            color=_UNKNOWN if is_true is None else _TRUE if is_true else _FALSE,
            linestyle="-" if is_true is not False else _DASHED,
            linewidth=_width(probability),
            alpha=_strength(probability),
            zorder=1.0 + probability,
        )
    for position, name in zip(positions, names, strict=True):
        _draw_node(ax, position, name)
    return figure


def _canvas(points: Floats, title: str, legend: list[Line2D]) -> tuple[Figure, Axes]:
    """A figure with a title, a legend and axes in inches that hold all the points (n, 2)."""
    low, high = points.min(axis=0) - _MARGIN, points.max(axis=0) + _MARGIN
    width, height = max(high[0] - low[0], 6.4), high[1] - low[1]
    header = 0.25 + 0.2 * (title.count("\n") + 1 + math.ceil(len(legend) / _LEGEND_COLUMNS))
    total = height + header
    figure = Figure(figsize=(width, total))
    ax = figure.add_axes((0.0, 0.0, 1.0, height / total))
    middle = (low[0] + high[0]) / 2
    ax.set(xlim=(middle - width / 2, middle + width / 2), ylim=(low[1], high[1]))
    ax.set_axis_off()
    figure.text(0.5, 1 - 0.13 / total, title, ha="center", va="top", fontsize=11)
    above = (0.5, 1 - (0.12 + 0.2 * (title.count("\n") + 1)) / total)
    figure.legend(
        handles=legend, loc="upper center", bbox_to_anchor=above, ncols=_LEGEND_COLUMNS, frameon=False, fontsize=8.5
    )
    return figure, ax


def _split(probabilities: Floats, graph_kind: GraphKind) -> tuple[Floats, Floats]:
    """Directed and undirected edge probabilities (d, d); the undirected ones are symmetric, and zero for DAGs."""
    if graph_kind == "dag":
        return probabilities, np.zeros_like(probabilities)
    both = np.minimum(probabilities, probabilities.T)
    return probabilities - both, both


def _pairs(mask: Bools) -> list[tuple[int, int]]:
    return [(int(i), int(j)) for i, j in np.argwhere(mask)]


def _width(probability: float) -> float:
    return 0.6 + 3.2 * probability


def _strength(probability: float) -> float:
    return 0.3 + 0.7 * probability


def _draw_edge(
    ax: Axes,
    start: Floats,
    end: Floats,
    bend: float,
    *,
    headed: bool = True,
    color: str,
    linestyle: _LineStyle,
    linewidth: float,
    alpha: float = 1.0,
    zorder: float,
) -> None:
    ax.add_patch(
        FancyArrowPatch(
            tuple(start),
            tuple(end),
            arrowstyle=f"-|>,head_length={4 + 1.2 * linewidth},head_width={1.6 + 0.9 * linewidth}" if headed else "-",
            mutation_scale=1.0,
            connectionstyle=f"arc3,rad={bend}",
            shrinkA=72 * _RADIUS + 1,
            shrinkB=72 * _RADIUS + 1,
            color=color,
            linestyle=linestyle,
            linewidth=linewidth,
            alpha=alpha,
            zorder=zorder,
        )
    )


def _draw_node(ax: Axes, position: Floats, name: str) -> None:
    ax.add_patch(Circle(tuple(position), _RADIUS, facecolor="white", edgecolor="#333333", linewidth=1.1, zorder=3))
    inside = len(name) <= _LONGEST_INSIDE
    ax.text(
        position[0],
        position[1] if inside else position[1] - _RADIUS - 0.03,
        name,
        ha="center",
        va="center" if inside else "top",
        fontsize=min(10.0, 46 / max(len(name), 1)) if inside else 7.5,
        zorder=4,
        path_effects=[patheffects.withStroke(linewidth=2.5, foreground="white")],
    )


def _legend(truth_known: bool, threshold: float) -> list[Line2D]:
    kinds = []
    if truth_known:
        kinds = [
            Line2D([], [], color=_TRUE, linewidth=2.5, label="edge of the true graph"),
            Line2D([], [], color=_FALSE, linewidth=2.5, linestyle=_DASHED, label="not in the true graph"),
            Line2D([], [], color=_MISSED, linewidth=1.2, linestyle=":", label=f"true edge below {threshold:g}"),
        ]
    widths = [
        Line2D([], [], color=_UNKNOWN, linewidth=_width(p), alpha=_strength(p), label=f"probability {p:g}")
        for p in (0.1, 0.5, 1.0)
    ]
    # Filled column by column: a kind of edge above each width.
    return [handle for pair in zip(kinds, widths, strict=True) for handle in pair] if kinds else widths
