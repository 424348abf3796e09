"""Labels beside points, placed so that none covers another, a point, an error bar or the frame."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Annotation, Text
from matplotlib.transforms import Bbox

Segment = tuple[tuple[float, float], tuple[float, float]]

_DISTANCES = (8, 12, 17, 24, 33, 44, 57, 72, 90)  # points, from nearest
_DIRECTIONS = 16
_LINE_FROM = 17  # points from which on a line leads from the label to its point
_CROWD = 60  # points within which others make a crowd
_MARGIN = 4.5  # around points, in points
_GAP = 1.0  # around labels and bars, in points


def label_points(
    figure: Figure,
    ax: Axes,
    labels: Sequence[str],
    positions: Sequence[tuple[float, float]],
    bars: Sequence[Segment] = (),
    *,
    fontsize: float = 8.5,
) -> list[Annotation]:
    """Write each label as near to its point as there is room; a thin line leads to those farther away.

    The limits and the layout must be final. Where there is no room at all, a label takes the farthest place.

    Args:
        positions: of the points, in data coordinates.
        bars: horizontal or vertical lines that labels keep off, in data coordinates.
    """
    canvas = FigureCanvasAgg(figure)
    scale = figure.dpi / 72  # pixels in a point
    anchors = [tuple(map(float, ax.transData.transform(position))) for position in positions]
    taken = [_box(anchor, anchor, _MARGIN * scale) for anchor in anchors]
    taken += [_box(*map(ax.transData.transform, bar), _GAP * scale) for bar in bars]
    frame = ax.get_window_extent(canvas.get_renderer())
    # Points in a crowd first, while there is room.
    crowd = [sum(math.dist(anchor, other) < _CROWD * scale for other in anchors) for anchor in anchors]
    written: dict[int, Annotation] = {}
    for k in sorted(range(len(labels)), key=lambda k: (-crowd[k], anchors[k])):
        text = _write(ax, labels[k], positions[k], fontsize)
        size = Text.get_window_extent(text, canvas.get_renderer())
        half_width, half_height = size.width / 2, size.height / 2
        for place in _places(half_width / scale, half_height / scale):
            _, x, y = place
            left, bottom = anchors[k][0] + x * scale - half_width, anchors[k][1] + y * scale - half_height
            box = _box((left, bottom), (left + size.width, bottom + size.height), _GAP * scale)
            if _inside(box, frame) and not any(box.overlaps(other) for other in taken):
                break
        distance, *offset = place
        text.set_position(offset)
        text.arrow_patch.set_visible(distance >= _LINE_FROM)
        taken.append(box)
        written[k] = text
    return [written[k] for k in range(len(labels))]


def _write(ax: Axes, label: str, position: tuple[float, float], fontsize: float) -> Annotation:
    line = {"arrowstyle": "-", "color": "#777777", "linewidth": 0.6, "shrinkA": 0, "shrinkB": 4}
    return ax.annotate(
        label,
        position,
        xytext=(0, 0),
        textcoords="offset points",
        arrowprops=line,
        fontsize=fontsize,
        ha="center",
        va="center",
        zorder=5,
    )


def _places(half_width: float, half_height: float) -> Iterator[tuple[float, float, float]]:
    """Distance and offset (x, y) of the middle of a label from its point, nearest first; all in points."""
    for distance in _DISTANCES:
        for step in range(_DIRECTIONS):
            angle = 2 * math.pi * step / _DIRECTIONS
            yield distance, math.cos(angle) * (distance + half_width), math.sin(angle) * (distance + half_height)


def _box(one: Sequence[float], other: Sequence[float], margin: float) -> Bbox:
    low, high = (min(one[0], other[0]), min(one[1], other[1])), (max(one[0], other[0]), max(one[1], other[1]))
    return Bbox.from_extents(low[0] - margin, low[1] - margin, high[0] + margin, high[1] + margin)


def _inside(box: Bbox, frame: Bbox) -> bool:
    return bool(frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1)
