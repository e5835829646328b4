"""Volumes of what each rule captures first: exact, on any domain, and zero only of no cells."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose

from bayescascade import ParameterError
from bayescascade.data.column import Column
from bayescascade.data.schema import Schema
from bayescascade.methods.lists.antecedents import Condition
from bayescascade.methods.lists.parts import log_first_volumes
from tests import rules_reference as reference


@st.composite
def domains(draw):
    """Draw a schema of at most 5 columns; bins are up to 10^9 times as wide as others."""
    columns = []
    for j in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(["nominal", "ordinal", "continuous"]))
        size = draw(st.integers(1, 4))
        levels = () if kind == "continuous" else tuple(range(size))
        widths = [10.0 ** draw(st.integers(-4, 5)) for _ in range(size)]
        edges = tuple(np.cumsum([0.0, *widths]).tolist()) if kind == "continuous" else ()
        columns.append(Column(f"c{j}", kind, levels, edges, draw(st.booleans())))
    return Schema(tuple(columns))


@st.composite
def lists_on(draw, schema, max_rules=7):
    """Draw rules that overlap, repeat each other, and may leave nothing."""
    ranges = [
        reference.ranges_of((c.kind, c.n_levels, c.has_missing_level)) for c in schema.columns
    ]
    usable = [j for j, choices in enumerate(ranges) if choices]
    rules = []
    for _ in range(draw(st.integers(0, max_rules if usable else 0))):
        chosen = draw(st.sets(st.sampled_from(usable), min_size=1, max_size=3))
        rules.append(tuple((j, *draw(st.sampled_from(ranges[j]))) for j in sorted(chosen)))
    return rules


def log_volumes(schema, rules, evidence=None):
    converted = [tuple(Condition(*condition) for condition in rule) for rule in rules]
    return log_first_volumes(schema, converted, evidence)


def assert_same(found, expected, tolerance=1e-9):
    """Check logarithms against volumes: relative error, and -inf exactly where there is no cell."""
    expected = np.array([math.log(volume) if volume > 0 else -math.inf for volume in expected])
    assert found.shape == expected.shape
    assert found.dtype == np.float64
    assert (np.isneginf(found) == np.isneginf(expected)).all()
    finite = np.isfinite(expected)
    assert np.abs(found[finite] - expected[finite]).max(initial=0.0) < tolerance


@settings(max_examples=40, deadline=None)
@given(data=st.data(), has_evidence=st.booleans())
def test_volumes_are_those_of_the_cells(data, has_evidence):
    """A wrong one is a wrong density, of all cells, or of any subset of codes that is known."""
    schema = data.draw(domains())
    rules = data.draw(lists_on(schema))
    evidence = {
        j: tuple(sorted(data.draw(st.sets(st.integers(0, c.n_levels - 1), min_size=1))))
        for j, c in enumerate(schema.columns)
        if has_evidence and data.draw(st.booleans())
    }
    widths = [column.widths.tolist() for column in schema.columns]
    expected = reference.first_volumes(rules, widths, evidence)
    assert_same(log_volumes(schema, rules, evidence or None), expected)


def test_order_matters():
    """The comparisons above must be able to fail."""
    schema = Schema((Column("c0", "nominal", (0, 1, 2)), Column("c1", "ordinal", (0, 1, 2))))
    rules = [((0, 0, 1),), ((0, 0, 1), (1, 0, 2)), ((1, 1, 3),)]
    found = log_volumes(schema, rules)
    assert_same(found, [3, 0, 4, 2])
    with pytest.raises(AssertionError):
        assert_same(found, reference.first_volumes(rules[::-1], [[1.0] * 3] * 2))


def binary(n_columns):
    return Schema(tuple(Column(f"c{j}", "nominal", (0, 1)) for j in range(n_columns)))


def random_rules(rng, n_columns, n_rules, size):
    rules = []
    for _ in range(n_rules):
        chosen = sorted(rng.choice(n_columns, size=size, replace=False).tolist())
        codes = rng.integers(2, size=size).tolist()
        rules.append(tuple((j, low, low + 1) for j, low in zip(chosen, codes, strict=True)))
    return rules


@pytest.mark.parametrize("n_used", [200, 40, 12, 6])
def test_volumes_of_200_binary_columns(n_used, rng):
    """2^200 cells cannot be enumerated; inclusion and exclusion of whole boxes counts them."""
    for _ in range(5):
        rules = random_rules(rng, n_used, 15, 3)
        expected = reference.first_volumes_of_binary(rules, 200)
        assert_same(log_volumes(binary(200), rules), expected)
        assert sum(expected) == 2**200


def test_the_last_cell_counts():
    """One cell in 2^40 is left: a difference of large numbers would call it none."""
    n = 40
    rules = [((j, 0, 1),) for j in range(n)]
    found = log_volumes(binary(n), rules)
    assert found[-1] == pytest.approx(0.0, abs=1e-9)
    assert_allclose(found[:-1], np.arange(n - 1, -1, -1) * math.log(2), atol=1e-9)
    covered = log_volumes(binary(n), [*rules, ((0, 1, 2),)])
    assert np.isneginf(covered[-1])
    assert covered[-2] == pytest.approx(0.0, abs=1e-9)


def test_narrow_bins_are_not_rounded_away():
    """A bin of width 1e-12 beside one of 1e6 keeps its own digits."""
    schema = Schema(
        (Column("x", "continuous", (), (0.0, 1e-12, 1e6)), Column("y", "nominal", "ab"))
    )
    rules = [((0, 1, 2),), ((1, 0, 1),)]
    assert_same(log_volumes(schema, rules), [(1e6 - 1e-12) * 2, 1e-12, 1e-12], 1e-12)


@pytest.mark.parametrize("n_columns", [4, 7, 11])
def test_as_many_rules_as_a_list_may_have(n_columns, rng):
    """All 62 of them connected: the deepest splitting there is."""
    for size in (2, 3, 4):
        rules = random_rules(rng, n_columns, 62, size)
        expected = reference.first_volumes(rules, [[1.0, 1.0]] * n_columns)
        assert_same(log_volumes(binary(n_columns), rules), expected)


def test_one_rule_more_is_refused():
    """Kernels would write beyond their arrays."""
    schema = Schema((Column("a", "nominal", tuple(range(63))),))
    rules = [(Condition(0, k, k + 1),) for k in range(63)]
    assert log_first_volumes(schema, rules[:62]).shape == (63,)
    with pytest.raises(ParameterError, match="rules must be at most 62, got 63"):
        log_first_volumes(schema, rules)
