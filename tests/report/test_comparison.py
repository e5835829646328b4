"""A comparison can be read: aligned columns, errors of means, points that hide none."""

import math
from dataclasses import replace

import pandas as pd
import pytest

from bayescascade import Table
from bayescascade.methods.density.listed import DENSITIES
from bayescascade.model.comparison import Comparison
from bayescascade.model.halvings import Outcome
from bayescascade.model.pictures import plot_comparisons
from tests.cli.conftest import TITANIC

MODELS = ("leaf", "rules", "histogram")
TITLES = {name: each.made().title for name, each in DENSITIES.items()}


def comparison(n_outcomes: int = 6, n_cells: float = 32.0, spread: float = 0.01) -> Comparison:
    scores = {"leaf": -2.35, "rules": -2.45, "histogram": -2.37}
    parts = {"leaf": 9, "rules": 7, "histogram": n_cells}
    outcomes = [
        Outcome(
            halving,
            model,
            scores[model] + (spread if halving else 0.0) * (2 if model == "rules" else 1),
            parts[model] + (halving if model == "leaf" else 0),
            1.25,
            {"expected_leaves": 8.0} if model == "leaf" else {},
        )
        for halving in range(2)
        for model in MODELS
    ]
    return Comparison(Table.from_csv(TITANIC), MODELS, tuple(outcomes[:n_outcomes]), TITLES)


def test_the_table():
    """Differences have the error of differences: halves differ more than densities do."""
    assert (
        str(comparison())
        == """\
titanic.csv   2,201 rows   24 distinct   4 columns   32 cells
2 random splits into halves: learned on one, scored on the other, nats a row

                                  held out       behind best    parts  seconds
leaf cascade              -2.3450 ± 0.0561                        9.5      1.2
density rule list         -2.4400 ± 0.1123   0.0950 ± 0.0642        7      1.2
smoothed histogram        -2.3650 ± 0.0561            0.0200       32      1.2

±: standard error, for other rows
  parts: leaves, rules (with else), cells or classes"""
    )


def test_few_rows_have_no_error():
    """Of a rare level, a half of few rows often has none: the splits do not show the error."""
    few = Table.from_frame(pd.read_csv(TITANIC).head(900))
    text = str(replace(comparison(), data=few))
    assert "no standard errors: less than 1,000 rows" in text
    assert "±" not in text


def test_one_halving_has_no_error():
    text = str(comparison(3))
    assert "1 random split into halves: " in text
    assert "±" not in text
    assert "density rule list                  -2.4500            0.1000        7" in text


def test_an_interrupted_comparison_shows_whole_halvings():
    assert str(comparison(5)) == str(comparison(3))
    assert "smoothed histogram" not in str(comparison(2))
    assert str(comparison(0)).endswith("\nnothing has been learned yet")


@pytest.mark.parametrize(
    ("n_cells", "shown"), [(39366.0, "  39,366 "), (3.0**60, " 4.2e28 "), (math.inf, " > 1e308 ")]
)
def test_many_cells(n_cells, shown):
    lines = str(comparison(n_cells=n_cells)).splitlines()
    assert any(shown in line for line in lines)
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("n_panels", [1, 3])
def test_the_picture_has_a_point_for_each_halving(n_panels):
    figure = plot_comparisons([comparison()] * n_panels)
    figure.canvas.draw()
    panels = [axes for axes in figure.axes if axes.axison]
    assert len(panels) == n_panels
    for panel in panels:
        points = {line.get_label(): line.get_xydata() for line in panel.lines}
        assert list(points) == ["leaf cascade", "density rule list", "smoothed histogram"]
        assert points["leaf cascade"].tolist() == [[9.0, -2.35], [10.0, pytest.approx(-2.34)]]
        assert panel.get_title() == "titanic.csv"
        assert panel.get_xscale() == "linear"
    (legend,) = figure.legends
    assert len(legend.get_texts()) == 3
    box = legend.get_window_extent()
    titles = [panel.title.get_window_extent() for panel in panels]
    assert all(title.y1 <= box.y0 for title in titles)


@pytest.mark.parametrize("n_panels", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_the_legend_of_all_densities_fits(n_panels):
    (one, *_) = comparison().outcomes
    outcomes = tuple(replace(one, model=model) for model in DENSITIES)
    every = Comparison(comparison().data, tuple(DENSITIES), outcomes, TITLES)
    figure = plot_comparisons([every] * n_panels)
    figure.canvas.draw()
    box, edge = figure.legends[0].get_window_extent(), figure.bbox
    assert edge.x0 <= box.x0
    assert box.x1 <= edge.x1
    assert box.y1 <= edge.y1


def test_sizes_far_apart_have_a_log_scale():
    panel = plot_comparisons([comparison(n_cells=39366.0)]).axes[0]
    assert panel.get_xscale() == "log"
    assert panel.xaxis.get_major_formatter()(1000.0) == "1,000"


def test_points_at_infinity_are_left_out():
    panel = plot_comparisons([comparison(n_cells=math.inf)]).axes[0]
    assert [line.get_xydata().shape[0] for line in panel.lines] == [2, 2, 0]
    plot_comparisons([comparison(0)]).canvas.draw()
