"""A printed tree fits its width, hides no leaf, and its numbers read back."""

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from rich.cells import cell_len

from bayescascade.data.column import Column
from bayescascade.data.schema import Schema
from bayescascade.report.page import render
from tests.report.trees import (
    TITANIC,
    density_tree,
    random_density,
    titanic_tree,
    with_independent_leaves,
)

GOLDEN = """\
                               rows     share   cells   density   x uniform
everyone                      2,201   100.0 %      16    0.0625        1.00
├─ sex is female                470    21.4 %       8    0.0267        0.43
│  ├─ age is child               45     2.0 %       4   0.00511        0.08
│  └─ age is adult              425    19.3 %       4    0.0483        0.77
└─ sex is male                1,731    78.6 %       8    0.0983        1.57
   ├─ age is child               64     2.9 %       4   0.00727        0.12
   └─ age is adult            1,667    75.7 %       4     0.189        3.03
      ├─ class is 1st, 2nd      343    15.6 %       2    0.0779        1.25
      └─ class is 3rd, crew   1,324    60.2 %       2     0.301        4.81"""

# From the right: x uniform, density, cells or volume, share, rows.
NUMBER = r"[\d,]+(?:\.\d+)?(?:e-?\d+)?"
ROW = re.compile(rf"^(.*?) +({NUMBER}) +({NUMBER}) % +({NUMBER}) +({NUMBER}) +({NUMBER})$")

MIXED = Schema(
    (
        Column("color", "nominal", tuple(f"shade {i:02}" for i in range(40))),
        Column("a rather long name of a column that goes on and on", "ordinal", tuple(range(300))),
        Column("income", "continuous", (), (0.0, 10.0, 12.5, 1e6)),
        Column("漢字", "nominal", ("Langeswort" * 6, "女", "男")),
        Column("cell", "nominal", ("x", "y"), (), True),
    )
)


def parsed_rows(text: str) -> list[tuple[str, list[float]]]:
    """Return each line that has numbers as its label and the numbers."""
    found = [ROW.match(line) for line in text.splitlines()]
    return [
        (match[1], [float(number.replace(",", "")) for number in match.groups()[1:]])
        for match in found
        if match
    ]


def test_layout_is_the_documented_one():
    assert str(titanic_tree()) == GOLDEN


def test_levels_that_stand_out_are_below_their_leaf():
    """Guides go on beside them, numbers do not move, and the most telling comes first."""
    inside = [
        [0.7, 0.1, 0.1, 0.1, 1, 0, 1, 0],
        [0.4, 0.3, 0.2, 0.1, 1, 0, 0, 1],
        [0.05, 0.05, 0.85, 0.05, 0, 1, 0.1, 0.9],
    ]
    nested = (1, [((0,), (2, [((0,), None), ((1,), None)])), ((1,), None)])
    density = density_tree(TITANIC, nested, [45, 425, 1731])
    independent = replace(density, level_probabilities=np.array(inside))
    lines = str(independent).splitlines()
    assert lines.pop() == "      mostly class is 3rd 0.85   age is adult 0.90"
    assert lines.pop(4) == "│  │     mostly class is 1st 0.70"
    assert lines == str(density).splitlines()


@given(
    seed=st.integers(0, 2**32 - 1),
    n_splits=st.integers(0, 60),
    depth_bias=st.sampled_from([0.0, 0.5, 1.0]),
    width=st.sampled_from([60, 80, 120]),
    is_independent=st.booleans(),
)
@settings(max_examples=30, deadline=None)
def test_any_tree_fits_its_width_and_shows_every_node(
    seed, n_splits, depth_bias, width, is_independent
):
    """A line that is too long wraps in a terminal and the tree can no longer be read."""
    rng = np.random.default_rng(seed)
    density = random_density(rng, MIXED, n_splits, depth_bias)
    if is_independent:
        density = with_independent_leaves(rng, density)
    text = render(density.page(), width=width)
    assert max(cell_len(line) for line in text.splitlines()) <= width
    rows = parsed_rows(text)
    n_sections = len(re.findall(r"^\[\d+\] ", text, re.MULTILINE))
    assert len(rows) == density.tree.n_nodes + n_sections
    shown = sorted(numbers[0] for _, numbers in rows)
    for leaf in density.tree.leaves:
        assert any(math.isclose(density.counts[leaf], count, rel_tol=0.01) for count in shown)
    ends = {cell_len(line) for line in text.splitlines() if ROW.match(line)}
    assert len(ends) == 1


@pytest.mark.parametrize("n_splits", [0, 1, 5, 12])
def test_numbers_read_back(rng, n_splits):
    density = random_density(rng, TITANIC, n_splits)
    rows = parsed_rows(density.to_text(full=True))
    assert len(rows) == density.tree.n_nodes
    for node, (label, (count, share, cells, likeliness, ratio)) in enumerate(rows):
        assert label.endswith(density.branch_words(node) if node else "everyone")
        assert count == density.counts[node]
        assert share == pytest.approx(100 * density.probabilities[node], abs=0.051)
        assert cells == pytest.approx(np.exp(density.log_volumes[node]))
        assert likeliness == pytest.approx(np.exp(density.log_densities[node]), rel=0.006)
        assert ratio == pytest.approx(density.relative_densities[node], abs=0.0051)


def test_a_deep_tree_goes_on_in_numbered_sections():
    """Guides of sixty levels would leave no room for a label; no subtree may get lost."""
    nested: Any = None
    for code in reversed(range(60)):
        nested = (0, [((code,), None), (tuple(range(code + 1, 100)), nested)])
    schema = Schema((Column("x", "ordinal", tuple(range(100))),))
    text = density_tree(schema, nested, list(range(61))).to_text(full=True)
    referred = re.findall(r" \[(\d+)\]", text)
    assert referred == [str(i + 1) for i in range(len(referred))]
    assert len(referred) > 3
    assert re.findall(r"^\[(\d+)\] ", text, re.MULTILINE) == referred
    rows = parsed_rows(text)
    for code in range(60):
        assert [row[1][0] for row in rows if row[0].endswith(f"x is {code}")] == [code]


def test_long_labels_keep_the_guides_beside_them():
    """A wrapped list of levels must not cut the line from a node to its later branches."""
    levels = tuple(f"level number {i:02}" for i in range(20))
    schema = Schema((Column("kind", "nominal", levels), Column("sex", "nominal", ("f", "m"))))
    inner = (1, [((0,), None), ((1,), None)])
    nested = (0, [(tuple(range(10)), inner), (tuple(range(10, 20)), None)])
    tree = density_tree(schema, nested, [5, 6, 7])
    lines = tree.to_text(full=True).splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("├─ kind is"))
    child = next(i for i, line in enumerate(lines) if line.startswith("│  ├─ sex is f"))
    assert child - first > 3
    assert all(
        line.startswith("│  │  level") or "number" in line for line in lines[first + 1 : child]
    )
    assert all(line.startswith("│  │  ") for line in lines[first + 1 : child])


def test_rare_leaves_are_never_rounded_away():
    """A share of 0.0 % or a density of 0.00 would say that the leaf cannot happen."""
    nested = (1, [((0,), None), ((1,), None)])
    text = str(density_tree(TITANIC, nested, [1, 10_000_000]))
    rare = parsed_rows(text)[1][1]
    assert rare[0] == 1
    assert rare[1] == pytest.approx(1e-5, rel=0.01)
    assert rare[3] == pytest.approx(1e-7 / 8, rel=0.01)
    assert rare[4] == pytest.approx(2e-7, rel=0.01)
    empty = parsed_rows(str(density_tree(TITANIC, nested, [0, 10])))[1][1]
    assert (empty[0], empty[1], empty[3], empty[4]) == (0, 0, 0, 0)


def test_volumes_beyond_all_floats_are_printed():
    """Two thousand binary columns have 10^602 cells: more than a float can hold."""
    columns = tuple(Column(f"b{i}", "nominal", (0, 1)) for i in range(2000))
    nested = (7, [((0,), None), ((1,), None)])
    lines = str(density_tree(Schema(columns), nested, [1, 3])).splitlines()
    assert "1.1e602" in lines[1]
    assert lines[1].endswith(" 1.00")
    assert lines[2].endswith(" 0.50")
    assert lines[3].endswith(" 1.50")


def test_continuous_columns_have_volumes():
    """Cells cannot be counted where a column is continuous."""
    schema = Schema((Column("income", "continuous", (), (0.0, 2.5, 12.0)),))
    text = str(density_tree(schema, (0, [((0,), None), ((1,), None)]), [3, 1]))
    assert text.splitlines()[0].split() == ["rows", "share", "volume", "density", "x", "uniform"]
    assert [row[1][2] for row in parsed_rows(text)] == [12.0, 2.5, 9.5]
    assert "income is in [2.5, 12]" in text


def test_conditional_density_says_what_is_given():
    """Numbers of a conditional density would be taken for those of the table."""
    given_male = titanic_tree().condition({"sex": "male"})
    lines = str(given_male).splitlines()
    assert lines[0] == "given sex is male (probability 0.786)"
    assert lines[1] == ""
    assert lines[2].split() == ["expected"]
    assert lines[3].split()[0] == "rows"
    assert lines[-3].startswith("expected rows: counted rows, times the share of their group")
    nested = given_male.condition({"age": "adult"})
    assert str(nested).startswith("given sex is male and age is adult (probability 0.757)\n")
