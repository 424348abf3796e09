from __future__ import annotations

import numpy as np
import pytest

from experiments.query_pictures import DensityPanel, WeightedValues, effect_heat_map, interventional_densities


def test_densities_are_gaussian_kernels_of_the_fixed_bandwidth():
    sample = WeightedValues(np.array([0.0, 1.0]), np.array([0.75, 0.25]))
    at = np.array([-0.3, 0.4, 1.2])
    kernels = np.exp(-((at[:, None] - sample.values) ** 2) / (2 * 0.2**2)) / np.sqrt(2 * np.pi * 0.2**2)
    np.testing.assert_allclose(sample.density(at), kernels @ sample.weights, rtol=1e-3)
    assert sample.mean == 0.25
    assert WeightedValues(np.array([0.0, 1.0])).mean == 0.5


def panels(count, methods=("arco_gp",)):
    rng = np.random.default_rng(0)
    return [
        DensityPanel(
            f"X | do(Y={k})",
            "X",
            {method: WeightedValues(rng.normal(k, 1, 100), np.full(100, 0.01)) for method in methods},
            WeightedValues(rng.normal(k, 1, 100)),
        )
        for k in range(count)
    ]


def test_posteriors_are_solid_and_the_truth_dashed_with_lines_at_the_means():
    drawn = panels(3, ("arco_gp", "exact_gp"))
    figure = interventional_densities(drawn, "title")
    for ax, panel in zip(figure.axes, drawn, strict=False):
        curves = [line for line in ax.lines if len(line.get_xdata()) > 2]
        verticals = [line for line in ax.lines if len(line.get_xdata()) == 2]
        expected = [*panel.posteriors.values(), panel.truth]
        assert [line.get_linestyle() for line in curves] == ["-", "-", "--"]
        assert [line.get_xdata()[0] for line in verticals] == [sample.mean for sample in expected]
        assert [line.get_color() for line in curves] == [line.get_color() for line in verticals]
        for curve, sample in zip(curves, expected, strict=True):
            np.testing.assert_allclose(np.trapezoid(curve.get_ydata(), curve.get_xdata()), 1, atol=0.03)
            np.testing.assert_allclose(curve.get_ydata(), sample.density(curve.get_xdata()))
        assert ax.get_title() == panel.title
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["posterior, arco_gp", "posterior, exact_gp", "truth", "vertical lines: means"]


@pytest.mark.parametrize("count", [1, 4, 9])
def test_any_number_of_panels_is_saved(count, tmp_path):
    figure = interventional_densities(panels(count), "title")
    figure.savefig(tmp_path / "p.png", dpi=50)
    assert sum(ax.axison for ax in figure.axes) == count


def test_cells_hold_effect_and_uncertainty_and_the_diagonal_is_blank():
    effects = np.array([[0, 0.5, 0], [-0.001, 0, -1.25], [0, 0.001, 0]])
    spread = np.array([[0, 0.1, 0], [0.2, 0, 0.3], [0, 0.001, 0]])
    figure = effect_heat_map(effects, spread, "abc", 2 * effects, unit="change")
    posterior, truth = figure.axes[:2]
    assert {text.get_text() for text in posterior.texts} == {"0.50\n±0.10", "0.00\n±0.20", "-1.25\n±0.30"}
    assert {text.get_text() for text in truth.texts} == {"1.00", "-2.50"}
    assert (posterior.get_ylabel(), posterior.get_xlabel()) == ("cause", "effect on")
    for ax, matrix in ((posterior, effects), (truth, 2 * effects)):
        image = ax.images[0]
        assert image.get_clim() == (-2.5, 2.5)
        assert np.isnan(np.ma.filled(image.get_array(), np.nan).diagonal()).all()
        assert image.get_array()[0, 1] == matrix[0, 1]


def test_the_uncertainty_of_many_variables_has_a_panel_of_its_own(tmp_path):
    rng = np.random.default_rng(0)
    names = [f"X{k}" for k in range(30)]
    figure = effect_heat_map(rng.normal(size=(30, 30)), rng.random((30, 30)), names, unit="change")
    assert [ax.get_title() for ax in figure.axes[:2]] == ["posterior mean", "standard deviation over graphs"]
    assert not figure.axes[0].texts
    figure.savefig(tmp_path / "e.png", dpi=50)


def test_no_effects_at_all_are_drawn_too(tmp_path):
    effect_heat_map(np.zeros((2, 2)), np.zeros((2, 2)), "ab").savefig(tmp_path / "e.png", dpi=50)
