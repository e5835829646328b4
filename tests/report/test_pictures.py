"""Pictures can be read: nothing overlaps, nothing is cut off, nothing global is touched."""

import os
import re
import sys
from dataclasses import replace
from itertools import combinations

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from bayescascade import BranchCascade
from bayescascade.base.errors import DataError
from bayescascade.base.files import FileError
from bayescascade.data.column import Column
from bayescascade.data.schema import Schema
from bayescascade.methods.density.trees.density import LearnedDensityTree
from bayescascade.model.pictures import plot_ranks, plot_sizes, plot_traces
from bayescascade.model.trace import Trace
from bayescascade.report.pair_arcs import PairArcs, plot_arcs
from tests.contracts.test_plots import assert_readable
from tests.methods.density.trees.fits import people
from tests.report.runs import toy_run
from tests.report.trees import TITANIC, density_tree, random_density, titanic_tree

LONG = Schema(
    (
        Column("kind", "nominal", tuple(f"level number {i:02}" for i in range(30))),
        Column("$x_1$ & <b>", "ordinal", tuple(range(50))),
        *TITANIC.columns,
    )
)


def drawn_boxes(density: LearnedDensityTree) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the boxes and the text lines as drawn, (left, bottom, right, top) in pixels."""
    figure = Figure(figsize=(60, 120), dpi=50)
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    density.plot(axes)
    canvas.draw()
    boxes = [patch.get_window_extent().extents for patch in axes.patches]
    texts = [text.get_window_extent().extents for text in axes.texts]
    return boxes, texts


def overlap(first: np.ndarray, second: np.ndarray) -> bool:
    return bool((first[:2] < second[2:]).all() and (second[:2] < first[2:]).all())


@pytest.mark.parametrize("n_splits", [0, 14])
def test_boxes_and_texts_do_not_overlap(rng, n_splits):
    density = random_density(rng, LONG, n_splits, depth_bias=0.3)
    boxes, texts = drawn_boxes(density)
    assert len(boxes) == density.tree.n_nodes
    assert not any(overlap(a, b) for a, b in combinations(boxes, 2))
    slack = 1.5  # pixels of rounding
    for text in texts:
        assert any(
            (text[:2] >= box[:2] - slack).all() and (text[2:] <= box[2:] + slack).all()
            for box in boxes
        )
    shrunk = [text + np.array([0, 1, 0, -1]) for text in texts]
    assert not any(overlap(a, b) for a, b in combinations(shrunk, 2))


def test_arcs_of_many_panels_and_long_names_can_be_read():
    """A leaf deep in a tree has a long rule, and columns of surveys have whole questions."""
    names = ["a", "how often do you go there, and why, in your own words?", "b" * 60]
    title = "a rule of many conditions " * 3
    panels = [PairArcs(title, names, [(0, 1, 0.5), (1, 2, 1.0)]) for _ in range(5)]
    panels.append(PairArcs("short", [str(n) for n in range(30)], [(0, 29, 0.9), (3, 7, 0.6)]))
    assert_readable(plot_arcs(panels))


def test_png_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "tree.png"
    titanic_tree().draw(path)
    old = path.read_bytes()
    assert old.startswith(b"\x89PNG")
    titanic_tree().draw(str(path))
    assert path.read_bytes() == old

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileError, match=r"cannot write .*tree\.png: No space left on device"):
        titanic_tree().condition({"sex": "male"}).draw(path)
    assert path.read_bytes() == old
    assert [file.name for file in tmp_path.iterdir()] == ["tree.png"]


def test_characters_that_the_font_lacks_are_no_failure(tmp_path):
    schema = Schema((Column("漢", "nominal", ("女", "男")),))
    density = density_tree(schema, (0, [((0,), None), ((1,), None)]), [1, 2])
    density.draw(tmp_path / "tree.png")
    assert (tmp_path / "tree.png").stat().st_size > 1000


def test_dot_is_valid_and_complete():
    """Quotes, backslashes and line breaks in levels would end a label early."""
    schema = Schema((Column('say "x"', "nominal", ("a\\", 'b"];', "c\nd")),))
    nested = (0, [((0,), None), ((1,), None), ((2,), None)])
    text = density_tree(schema, nested, [1, 2, 3]).to_dot()
    assert text.startswith("digraph cascade {\n")
    assert text.endswith("}\n")
    string = r'"(?:[^"\\]|\\.)*"'
    node = rf"  n\d+ \[label={string}(?:, fillcolor={string})?\];"
    lines = text.splitlines()[3:-1]
    assert len(lines) == 4 + 3
    assert all(re.fullmatch(node, line) for line in lines[:4])
    assert lines[4:] == ["  n0 -> n1;", "  n0 -> n2;", "  n0 -> n3;"]
    assert r"say \"x\" is a\\" in lines[1]
    assert r"say \"x\" is c\\nd" in lines[3]


def test_plots_show_the_draws():
    """A picture of other numbers than those drawn would mislead more than none."""
    run = toy_run(n_chains=2)
    trace = Trace.of(run)
    panels = plot_traces(run).axes
    assert panels[1].get_ylabel() == plot_sizes(run).axes[0].get_xlabel() == "rules"
    assert plot_ranks(run).axes[1].get_title("left") == "rules"
    for panel, name in zip(panels, ("log_posterior", "n_rules"), strict=True):
        for line, draws in zip(panel.lines, trace.quantities[name], strict=True):
            np.testing.assert_array_equal(line.get_ydata(), draws)
    bars = plot_sizes(run).axes[0].patches
    heights = {round(bar.get_x() + bar.get_width() / 2): bar.get_height() for bar in bars}
    assert {n: h for n, h in heights.items() if h} == pytest.approx(
        {int(n): share for n, share in trace.shares()["rules"].items()}
    )


def test_what_no_draw_has_is_no_heading_without_bars():
    """A posterior of lists without a rule uses no column."""
    model = BranchCascade(leaf="uniform", search="exact", random_state=0).fit(people())
    shares = {"leaves": {"1": 1.0}, "columns used": {"sex": 0.001, "age": 0.0}}
    model.summary_ = replace(model.summary_, shares=shares)
    texts = [text.get_text() for text in model.plot_posterior().findobj(Text)]
    assert "leaves" in texts
    assert "columns used" not in texts


@pytest.mark.slow
def test_ranks_of_equal_chains_are_flat_and_of_others_not(rng):
    """The plot must show a chain that stays elsewhere, and be calm when none does."""
    run = toy_run(n_chains=2)
    flat = Trace.of(run)

    def heights(shift):
        draws = rng.normal(size=(2, 2000)) + np.array([[0.0], [shift]])
        quantities = {name: draws for name in flat.quantities}
        trace = replace(flat, quantities=quantities)
        return np.array([patch.get_data().values for patch in plot_ranks(trace).axes[0].patches])

    # 20 bins of two chains: each height has variance (1 - 1/2) / 100 around 1
    sd = np.sqrt(0.5 / 100)
    assert np.abs(heights(0.0) - 1).max() < 5 * sd
    assert np.abs(heights(1.0) - 1).max() > 5 * sd
    assert heights(0.5).sum(axis=0) == pytest.approx(2.0)


def test_no_draws_no_plot():
    flat = Trace.of(toy_run())
    empty = {name: np.empty((3, 0)) for name in flat.quantities}
    trace = replace(flat, quantities=empty)
    for plot in (plot_traces, plot_sizes, plot_ranks):
        with pytest.raises(DataError, match="a trace must have draws to be plotted, got none"):
            plot(trace)


def test_nothing_global_is_touched(tmp_path):
    before = dict(mpl.rcParams)
    titanic_tree().draw(tmp_path / "tree.png")
    plot_traces(toy_run())
    assert dict(mpl.rcParams) == before
    if "matplotlib.pyplot" in sys.modules:
        assert sys.modules["matplotlib.pyplot"].get_fignums() == []
