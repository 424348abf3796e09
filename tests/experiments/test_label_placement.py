from __future__ import annotations

import itertools

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from experiments.label_placement import label_points


@pytest.fixture
def placed():
    """Labels of points in a crowd, with bars through them: boxes of labels, points, bars and the frame in pixels."""
    rng = np.random.default_rng(3)
    points = [tuple(point) for point in rng.uniform(0.45, 0.55, (9, 2))]
    bars = [((x - 0.05, y), (x + 0.05, y)) for x, y in points]
    figure = Figure(figsize=(6, 5))
    renderer = FigureCanvasAgg(figure).get_renderer()
    ax = figure.subplots()
    ax.set(xlim=(0, 1), ylim=(0, 1))
    texts = label_points(figure, ax, [f"METHOD-{k}" for k in range(9)], points, bars)
    for text in texts:
        text.update_positions(renderer)
    boxes = [Text.get_window_extent(text, renderer) for text in texts]
    bars = ax.transData.transform(np.reshape(bars, (-1, 2))).reshape(-1, 2, 2)
    return texts, boxes, ax.transData.transform(points), bars, ax.get_window_extent(renderer)


def test_labels_keep_off_each_other_and_in_the_frame(placed):
    _, boxes, _, _, frame = placed
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
    assert all(frame.x0 <= box.x0 and box.x1 <= frame.x1 for box in boxes)
    assert all(frame.y0 <= box.y0 and box.y1 <= frame.y1 for box in boxes)


def test_labels_keep_off_points_and_bars(placed):
    _, boxes, points, bars, _ = placed
    for box in boxes:
        assert not any(box.contains(*point) for point in points)
        assert not any(box.contains(*place) for start, end in bars for place in np.linspace(start, end, 50))


def test_a_label_far_from_its_point_has_a_line_to_it(placed):
    texts, boxes, points, _, _ = placed
    for text, box, point in zip(texts, boxes, points, strict=True):
        gap = np.maximum(np.maximum([box.x0, box.y0] - point, point - [box.x1, box.y1]), 0.0)
        assert text.arrow_patch.get_visible() or np.hypot(*gap) < 30
    assert any(text.arrow_patch.get_visible() for text in texts)


def test_a_label_with_room_stands_beside_its_point():
    figure = Figure()
    ax = figure.subplots()
    ax.set(xlim=(0, 1), ylim=(0, 1))
    (text,) = label_points(figure, ax, ["A"], [(0.5, 0.5)])
    assert text.get_position()[0] > 0
    assert text.get_position()[1] == 0
    assert not text.arrow_patch.get_visible()
