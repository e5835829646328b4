"""Tables of parts, merged, are the table of the whole."""

import itertools
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from bayescascade.base.errors import DataError
from bayescascade.data.table import Table

rows = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from([*"abc", None]),
        st.booleans(),
        st.sampled_from([0.5, 1.0, 2.0]),
        st.integers(0, 2**40),
    ),
    min_size=6,
    max_size=30,
)


@pytest.mark.slow
@settings(deadline=None)
@given(rows, st.data())
def test_parts_merged_are_the_whole(listed, data):
    """Rows counted at several places are as good as rows in one, to the last bit."""
    frame = pd.DataFrame(listed, columns=["whole", "text", "truth", "number", "n"])
    frame["n"] += 1
    declared: dict[str, Any] = {
        "missing": "level",
        "ordinal": ["number"],
        "nominal": ["whole", "text", "truth"],
    }
    cuts = data.draw(st.lists(st.integers(1, len(frame) - 1), max_size=3, unique=True))
    parts = [
        frame[start:end].reset_index(drop=True)
        for start, end in itertools.pairwise([0, *sorted(cuts), len(frame)])
    ]
    for weights in (None, "n"):
        used = frame if weights else frame.drop(columns="n")
        try:
            expected = Table.from_frame(used, weights=weights, **declared)
            tables = [
                Table.from_frame(
                    part if weights else part.drop(columns="n"), weights=weights, **declared
                )
                for part in parts
            ]
        except DataError:  # constant, or only missing cells: there is no table
            return
        for some in (tables, tables[::-1], [Table.merge(tables[:1]), *tables[1:]]):
            merged = Table.merge(some)
            assert merged.schema == expected.schema
            assert merged.fingerprint() == expected.fingerprint()
            assert (merged.n_rows, merged.total_weight) == (len(frame), expected.total_weight)


def test_a_schema_makes_parts_alike(rng):
    """Bins and orders are given by one schema; columns may stand in any order."""
    frame = pd.DataFrame({"x": rng.normal(size=300), "age": rng.choice(["child", "adult"], 300)})
    whole = Table.from_frame(frame, continuous={"x": 4}, ordinal={"age": ["child", "adult"]})
    parts = [Table.from_frame(frame[cut::3], schema=whole.schema) for cut in range(3)]
    assert Table.merge(parts).fingerprint() == whole.fingerprint()
    assert Table.merge(part for part in parts).notes == whole.notes
    with pytest.raises(DataError, match="at least one table must be given, got none"):
        Table.merge([])


def test_weights_of_any_size_are_merged():
    """Sums are exact on a grid that the largest weight of all parts sets."""
    few, many = 2.0**-20, 2.0**50
    parts = [
        Table.from_frame(pd.DataFrame({"a": [0, 1], "n": n}), weights="n", nominal=["a"])
        for n in ([few, few], [few, many])
    ]
    assert Table.merge(parts).weights.tolist() == [2 * few, many + few]


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (({"a": [1, 2]}, {}), ({"b": [1, 2]}, {}), 'column "a" is missing; columns: b'),
        (({"a": [1, 2]}, {}), ({"a": [1, 2], "b": [1, 2]}, {}), 'column "b" is missing'),
        (
            ({"a": [1, 2]}, {}),
            ({"a": [1, 2]}, {"ordinal": ["a"]}),
            'column "a" must be alike in all tables, got nominal and ordinal: declare its kind',
        ),
        (
            ({"a": [1, 2]}, {"continuous": {"a": 2}}),
            ({"a": [1, 3]}, {"continuous": {"a": 2}}),
            "got 0.5, 1.5, 2.5 and 0.5, 1.5, 3.5: declare its bin edges when they are read",
        ),
        (({"a": [1, 2]}, {}), ({"a": ["x", "y"]}, {}), "got numbers and text: declare its levels"),
        (
            ({"a": ["x", "y"]}, {"ordinal": {"a": ["y", "x"]}}),
            ({"a": ["x", "y"]}, {"ordinal": {"a": ["x", "y"]}}),
            "got the orders y, x and x, y: declare its levels",
        ),
        (
            ({"a": ["a", "b"]}, {"ordinal": {"a": ["a", "b"]}}),
            ({"a": ["a", "c"]}, {"ordinal": {"a": ["a", "c"]}}),
            "got a, b and a, c: declare its levels in order",
        ),
        (
            ({"a": [*range(40)] * 2}, {"nominal": ["a"]}),
            ({"a": [*range(40, 80)] * 2}, {"nominal": ["a"]}),
            'column "a" must have at most 64 levels in all tables together, got 80: declare it',
        ),
    ],
)
def test_tables_that_are_not_alike(first, second, message):
    """Where the whole could not be known, the user must say what it is."""
    tables = [Table.from_frame(pd.DataFrame(cells), **text) for cells, text in (first, second)]
    with pytest.raises(DataError) as caught:
        Table.merge(tables)
    assert message in str(caught.value)
