from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import FancyArrowPatch

from experiments.pictures import MOST_EDGES, edge_heat_map, posterior_graph

NAMES = ("a", "b", "a long name")
PROBABILITIES = np.array([[0.0, 0.9, 0.3], [0.1, 0.0, 0.02], [0.0, 0.0, 0.0]])
TRUTH = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=bool)


def arrows(figure):
    return [patch for patch in figure.axes[0].patches if isinstance(patch, FancyArrowPatch)]


def legend_labels(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_the_heat_map_shows_probabilities_beside_the_truth():
    figure = edge_heat_map(PROBABILITIES, NAMES, TRUTH, title="title")
    shown = [ax.images[0].get_array() for ax in figure.axes[:2]]
    np.testing.assert_array_equal(shown[0], PROBABILITIES)
    np.testing.assert_array_equal(shown[1], TRUTH)
    for ax in figure.axes[:2]:
        assert ax.images[0].get_clim() == (0, 1)
        assert [label.get_text() for label in ax.get_yticklabels()] == list(NAMES)
        assert [label.get_text() for label in ax.get_xticklabels()] == list(NAMES)
        assert (ax.get_ylabel(), ax.get_xlabel()) == ("cause", "effect")


def test_without_a_truth_there_is_one_panel_and_a_colour_bar():
    assert len(edge_heat_map(PROBABILITIES, NAMES).axes) == 2


def test_edges_from_the_threshold_on_are_drawn_and_true_ones_told_apart():
    figure = posterior_graph(PROBABILITIES, NAMES, TRUTH)
    kinds = sorted((to_hex(arrow.get_edgecolor()), arrow.get_linestyle()) for arrow in arrows(figure))
    # true: a -> b; false: a -> c and b -> a; missed: b -> c
    assert [colour.upper() for colour, _ in kinds] == ["#0072B2", "#8A8A8A", "#D55E00", "#D55E00"]
    assert kinds[0][1] == "-"
    assert kinds[1][1] == ":"
    assert all(style not in ("-", ":") for _, style in kinds[2:])
    assert "edge of the true graph" in legend_labels(figure)


def test_the_width_of_an_edge_grows_with_its_probability():
    figure = posterior_graph(PROBABILITIES, NAMES)
    assert len(arrows(figure)) == 3
    widths = [arrow.get_linewidth() for arrow in arrows(figure)]
    assert widths == sorted(widths)
    assert widths[0] < widths[1] < widths[2]
    assert len({to_hex(arrow.get_edgecolor()) for arrow in arrows(figure)}) == 1
    assert "edge of the true graph" not in legend_labels(figure)


def test_an_undirected_edge_of_a_cpdag_is_one_line_without_a_head():
    probabilities = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.6, 0.0, 0.0]])
    undirected_truth = TRUTH[::-1, ::-1].copy()  # c -> b -> a
    figure = posterior_graph(probabilities, NAMES, undirected_truth, graph_kind="cpdag", threshold=0.1)
    drawn = {type(arrow.get_arrowstyle()).__name__: arrow for arrow in arrows(figure) if arrow.get_linestyle() != ":"}
    assert set(drawn) == {"Curve", "CurveFilledB"}
    assert to_hex(drawn["Curve"].get_edgecolor()).upper() == "#0072B2"  # true in one direction
    assert to_hex(drawn["CurveFilledB"].get_edgecolor()).upper() == "#D55E00"
    assert len(arrows(posterior_graph(probabilities, NAMES, threshold=0.1))) == 3


@pytest.mark.parametrize("num_nodes", [2, 50])
def test_figures_are_saved_for_few_and_many_nodes(num_nodes, tmp_path):
    rng = np.random.default_rng(0)
    probabilities = rng.random((num_nodes, num_nodes)) ** 30 * (1 - np.eye(num_nodes))
    names = [f"X{k}" for k in range(num_nodes)]
    edge_heat_map(probabilities, names).savefig(tmp_path / "heat.png", dpi=50)
    posterior_graph(probabilities, names).savefig(tmp_path / "graph.png", dpi=50)
    every_name = {text.get_text() for text in posterior_graph(probabilities, names).axes[0].texts}
    assert every_name == set(names)


def test_of_very_many_edges_the_most_probable_are_drawn():
    probabilities = np.linspace(0.1, 0.9, 30 * 30).reshape(30, 30) * (1 - np.eye(30))
    figure = posterior_graph(probabilities, [f"X{k}" for k in range(30)], title="title")
    assert len(arrows(figure)) == MOST_EDGES
    assert figure.texts[0].get_text() == f"title\n(the {MOST_EDGES} most probable of 870 edges)"
    assert min(arrow.get_linewidth() for arrow in arrows(figure)) > 0.6 + 3.2 * 0.5
