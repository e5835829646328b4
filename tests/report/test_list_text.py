"""Printed lists: read downward, aligned, complete, and never wider than asked."""

import re

import numpy as np
import pytest
from rich.cells import cell_len

from bayescascade.data.column import Column
from bayescascade.data.schema import Schema
from bayescascade.methods.lists.antecedents import Condition
from bayescascade.methods.lists.density_list import LearnedDensityList
from bayescascade.methods.lists.label_list import LabelList
from bayescascade.report.page import render
from tests.report.lists import label_list, random_rules, titanic_list, wide_schema

TITANIC_TEXT = """\
                                       rows   share  cells  density  x uniform
if class is crew and sex is male        862  39.2 %      2    0.196       3.13
else if class is 3rd and age is adult   627  28.5 %      2    0.142       2.28
else                                    712  32.3 %     12   0.0270       0.43"""

BINARY_TEXT = """\
                                        rows   P(positive)   95 % interval
if class is crew and sex is male         810          0.99       0.98-0.99
else if class is 3rd and age is adult    627          0.52       0.48-0.56
else                                     712          0.02       0.01-0.03"""

CLASSES_TEXT = """\
                                        rows   unacc    acc    good   vgood
if class is crew and sex is male         816    0.01   0.98   0.005   0.005
else if class is 3rd and age is adult    627    0.48   0.52   0.002   0.002
else                                     713    0.98   0.02   0.001   0.003"""


def test_a_density_list_reads_downward():
    """The layout is documented; rows and shares are those of what is captured first."""
    assert str(titanic_list()) == TITANIC_TEXT


def test_evidence_is_told_first():
    """Expected rows must not be taken for rows that were seen."""
    lines = str(titanic_list().condition({"sex": "male"})).splitlines()
    assert lines[0] == "given sex is male (probability 0.669)"
    assert lines[2].strip() == "expected"
    assert lines[3].split()[0] == "rows"
    assert lines[4].startswith("if class is crew   ")


def test_two_classes_have_one_probability_with_its_interval():
    labels = label_list(["negative", "positive"], [[10, 800], [300, 327], [700, 12]])
    assert str(labels) == BINARY_TEXT


def test_more_classes_have_a_column_each():
    counts = [[10.0, 800, 3, 3], [300, 327, 0, 0], [700, 12, 0, 1]]
    labels = label_list(["unacc", "acc", "good", "vgood"], counts)
    assert str(labels) == CLASSES_TEXT


@pytest.mark.parametrize("width", [60, 80])
def test_classes_that_do_not_fit_follow_their_part(width):
    """The most probable comes first, and those that are hardly probable are others."""
    counts = np.arange(27.0).reshape(3, 9) ** 3
    labels = label_list([f"long class {i}" for i in range(9)], counts.tolist())
    lines = render(labels.page(), width=width).splitlines()
    assert max(map(len, lines)) <= width
    parts = re.split(r"\n(?=\S)", "\n".join(lines))[1:]
    assert len(parts) == 3
    for part, expected in zip(parts, labels.probabilities, strict=True):
        result = re.findall(r"long class (\d) ([\d.]+) \(([\d.]+)-([\d.]+)\)", part)
        n = len(result)
        assert [int(i) for i, *_ in result] == list(range(8, 8 - n, -1))
        if n < 9:  # one other would have its name
            rest = expected[: 9 - n].sum()
            assert rest <= 0.1 < rest + expected[9 - n]
            others = re.search(rf"{9 - n} others ([\d.]+)", part)
            assert float(others[1]) == pytest.approx(rest, abs=0.005)
        for i, p, low, high in result:
            assert float(p) == pytest.approx(expected[int(i)], abs=0.005)
            assert float(low) <= float(p) <= float(high)


@pytest.mark.parametrize("classes", [[False, True], [0, 1], [0.5, 1.5], ["a\x1b", "b\x1b\n"]])
def test_classes_of_any_type(classes):
    """Numbers, truth values, and text that would drive a terminal."""
    text = str(label_list(classes, [[3, 5], [2, 0]]))
    assert {0: "P(True)", 1: "P(1)"}.get(0 if classes[1] is True else classes[1], "P(") in text
    assert "\x1b" not in text
    assert len(text.splitlines()) == 3


def test_nothing_is_certain_from_few_rows():
    """0.9997 must not be printed as 1.00, nor 0.0003 as 0.00."""
    labels = label_list([0, 1], [[0, 4000], [4000, 0]])
    first, last = str(labels).splitlines()[1:]
    assert first.split()[-2:] == ["0.9998", "0.99908-0.99999"]
    assert last.split()[-2:] == ["0.0002", "0.00001-0.00092"]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_every_part_is_told_within_the_width(rng, width):
    """Long rules wrap; none is cut off, and control characters cannot reach the terminal."""
    schema = wide_schema()
    rules = random_rules(rng, schema, 30)
    counts = rng.exponential(1e6, 31)
    density = LearnedDensityList(schema, rules, counts, counts / counts.sum())
    labels = LabelList(schema, np.array(["no", "yes"]), rules, rng.exponential(1e6, (31, 2)), 1.0)
    for text in (render(printed.page(), width=width) for printed in (density, labels)):
        lines = text.splitlines()
        assert max(map(cell_len, lines)) <= width
        starts = [line for line in lines if re.match(r"(if|else if|else)\b", line)]
        assert len(starts) == 31
        assert all(line.isprintable() for line in lines)
        names = (re.sub(r"\s{2,}[\d.,\s-]+$", "", line) for line in lines)  # without numbers
        letters = re.sub(r"\s", "", "".join(names))
        for rule in rules:
            for column, *_ in rule:
                assert f"column{column}" in letters


@pytest.mark.parametrize("width", [60, 80])
def test_numbers_that_leave_no_room_stand_below(width):
    """Billions of fractional rows over 1e300 cells take most of a narrow terminal."""
    schema = Schema(tuple(Column(f"c{i}", "continuous", (), (0.0, 1e-9, 1.0)) for i in range(40)))
    counts = np.array([123_456_789_012.5, 0.25])
    probabilities = np.array([1 - 1e-12, 1e-12])
    density = LearnedDensityList(schema, ((Condition(0, 0, 1),),), counts, probabilities)
    lines = render(density.page(), width=width).splitlines()
    assert max(map(len, lines)) <= width
    assert lines[1].startswith("if c0 is in [0, 1e-09)" if width == 60 else "if c0 is in ")
    is_below = re.fullmatch(r" *123,456,789,012\.5( .*)", lines[2]) is not None
    assert is_below == (width == 60)
