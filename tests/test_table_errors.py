"""What is wrong with a table is said in one line: name, rule, value, and what to do."""

import datetime
import math

import numpy as np
import pandas as pd
import pytest

from bayescascade import BudgetedForestClassifier
from bayescascade.base.errors import DataError, ParameterError
from bayescascade.data.table import Table

GOOD = {"a": ["x", "y", "x"], "b": [1, 2, 2]}


@pytest.mark.parametrize(
    ("columns", "declared", "message"),
    [
        ({}, {}, "at least one column must be used, got none"),
        ({"a": []}, {}, "the table must have at least one row, got none"),
        (
            {"a": ["x"], "b": [1]},
            {},
            "at least one column must vary, got 1 row with the same values: no split is possible",
        ),
        (
            {"a": ["x", None, "y", None]},
            {"missing": "error"},
            'column "a" has 2 missing cells, the first in row 2: fill them, drop the column, or '
            'make them a level with missing="level"',
        ),
        (
            {"a": [1, None]},
            {"ordinal": {"a": [1, 2]}, "missing": "error"},
            'column "a" has 1 missing cell',
        ),
        ({"a": [None, None]}, {"missing": "level"}, 'column "a" has only missing cells: drop it'),
        (
            {"id": list("abcde")},
            {},
            "column \"id\" has a different value in every row (5 read): drop it (drop=['id']) or "
            "declare its kind",
        ),
        (
            {"s": [f"s{i}" for i in range(65)] * 2},
            {},
            'nominal column "s" has 65 levels, more than 64: group rare levels '
            '(ReadAs(rare={"s": 0.01})), declare it ordinal with its levels in order, or drop '
            "it (drop=['s'])",
        ),
        (
            {
                "s": [f"s{i}" for i in range(65)] * 2,
                "t": [f"t{i}" for i in range(130)],
                "u": pd.date_range("2020", periods=130),
                "v": [None] * 130,
                "x": ["a", "b"] * 65,
            },
            {},
            '4 columns must be declared or dropped: "s" (65 levels), "t" (different in every row), '
            '"u" (dates or times; ReadAs(dates="parts") keeps them as year, month and weekday), '
            '"v" (only missing cells); '
            "drop=['s', 't', 'u', 'v'] leaves them out",
        ),
        (
            {"x": [1.0, math.inf]},
            {"continuous": {"x": 2}},
            'continuous column "x" must hold finite numbers, got inf in row 2',
        ),
        (
            {"x": [1.5, 1.5]},
            {"continuous": {"x": 2}},
            'continuous column "x" must vary, got 1.5 in every row: '
            "drop it (drop=['x']) or give "
            "its bin edges",
        ),
        ({"x": pd.date_range("2020", periods=3)}, {}, 'column "x" holds dates or times such as'),
        ({"x": [datetime.date(2020, 1, 1)]}, {}, 'column "x" holds dates or times such as 2020'),
        ({"x": [datetime.time(9)]}, {}, "09:00:00: convert it to text or numbers, or drop it"),
        (
            {"age": ["child", "adult"]},
            {"ordinal": ["age"]},
            'ordinal column "age" holds text: give its levels in order, as in '
            "ordinal={\"age\": ['adult', 'child']}",
        ),
        (
            {"age": ["child", "adlut"]},
            {"ordinal": {"age": ["child", "adult"]}},
            'column "age" has the unknown level "adlut" in row 2; known levels: child, adult',
        ),
        (
            {"x": range(70_000)},
            {"ordinal": ["x"]},
            'ordinal column "x" must have 1 to 65,536 levels, got 70,000',
        ),
    ],
)
def test_unusable_data(columns, declared, message):
    with pytest.raises(DataError) as caught:
        Table.from_frame(pd.DataFrame(columns), **declared)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("declared", "error", "message"),
    [
        ({"columns": ["z"]}, DataError, 'columns names the unknown column "z"; columns: a, b'),
        ({"nominal": ["z"]}, DataError, 'nominal names the unknown column "z"'),
        ({"drop": ["a", "b"]}, DataError, "at least one column must be used, got none"),
        (
            {"continuous": ["b"]},
            ParameterError,
            "continuous must map column names to a number of bins or a list of edges, got ['b']",
        ),
        ({"missing": "drop"}, ParameterError, "missing must be one of 'error', 'level'"),
        (
            {"drop": ["a"], "nominal": ["a"]},
            ParameterError,
            'nominal names column "a", which is not used',
        ),
        (
            {"ordinal": ["b"], "continuous": {"b": 2}},
            ParameterError,
            'column "b" must be declared once, got ordinal and continuous',
        ),
        (
            {"continuous": {"b": 0}},
            ParameterError,
            'continuous["b"] must be an integer from 1 to 65535, got 0',
        ),
        ({"continuous": {"b": [1, "x"]}}, ParameterError, 'edges of column "b" must be numbers'),
        ({"continuous": {"b": [2, 1]}}, DataError, "strictly increasing numbers, got 2, 1"),
        (
            {"ordinal": {"a": "xy"}},
            ParameterError,
            "levels of column \"a\" must be a list, got 'xy'",
        ),
        ({"ordinal": {"a": ["x", "x"]}}, DataError, 'levels of column "a" must be different'),
    ],
)
def test_wrong_declarations(declared, error, message):
    with pytest.raises(error) as caught:
        Table.from_frame(pd.DataFrame(GOOD), **declared)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, -1, 1], 'weights column "n" must be finite and >= 0, got -1 in row 2'),
        ([0, 0, 0], "weights must not be all zero"),
        (["1", "two", "3"], "weights column \"n\" must hold numbers, got 'two' in row 2"),
    ],
)
def test_wrong_weights(weights, message):
    """A bad count must be found in a column as in an array; those of other rows are not spread."""
    frame = pd.DataFrame({**GOOD, "n": weights})
    with pytest.raises(DataError) as caught:
        Table.from_frame(frame, weights="n")
    assert message in str(caught.value)
    with pytest.raises(DataError, match=r"^weights must "):
        Table.from_frame(frame[["a", "b"]], weights=frame["n"])
    with pytest.raises(ParameterError, match=r"weights must have shape \(3,\), got \(2,\)"):
        Table.from_frame(frame[["a", "b"]], weights=weights[:2])


def test_a_few_different_values_are_no_identifier():
    """Four rows may differ by chance, counts say nothing of the kind, a declaration settles it."""
    frame = pd.DataFrame({"id": list("abcde")})
    assert Table.from_frame(frame[:4]).n_distinct == 4
    assert Table.from_frame(frame, nominal=["id"]).n_distinct == 5
    assert Table.from_frame(frame, weights=[3, 1, 4, 1, 5]).n_distinct == 5
    assert Table.from_frame(frame.astype("category")).n_distinct == 5


def test_declared_levels_allow_a_single_row():
    """One row says something about a domain that is known beforehand."""
    table = Table.from_frame(pd.DataFrame({"a": ["x"]}), ordinal={"a": ["x", "y"]})
    assert table.codes.tolist() == [[0]]


def test_repeated_column_names():
    """Two columns of one name cannot be told apart when scoring."""
    frame = pd.DataFrame([[1, 2, 3], [2, 1, 3]], columns=["a", "b", "a"])
    with pytest.raises(DataError, match='column names must be different, got "a" more than once'):
        Table.from_frame(frame)


def test_messages_name_a_few_of_many_columns():
    """A file of another kind may have thousands of names, and none is worth a page."""
    names = [f"column {place}" for place in range(2000)]
    wide = pd.DataFrame([range(2000), range(2000)], columns=names)
    first = ", ".join(names[:8])
    for asked, message in (
        (
            lambda: Table.from_frame(wide, drop=["z"]),
            f'column "z"; columns: {first} and 1,992 more',
        ),
        (
            lambda: Table.from_frame(wide, schema=Table.from_frame(pd.DataFrame(GOOD)).schema),
            f'column "a" is missing; columns: {first} and 1,992 more',
        ),
        (lambda: Table.from_frame(pd.concat([wide, wide], axis=1)), 'got "column 0", "column 1", '),
    ):
        with pytest.raises(DataError) as caught:
            asked()
        assert message in str(caught.value)
        assert len(str(caught.value)) < 200


def test_missing_cells_are_refused_though_a_schema_has_a_level_for_them():
    """What is asked for must not be ignored."""
    frame = pd.DataFrame({"a": ["x", None, "y"] * 4000, "b": [1, 2, 3] * 4000})
    schema = Table.from_frame(frame).schema
    message = 'column "a" has a missing cell in row 2, which missing="error" refuses'
    for rows in (frame, frame[:9]):
        assert Table.from_frame(rows, schema=schema).n_rows == len(rows)
        with pytest.raises(DataError, match=message):
            Table.from_frame(rows, schema=schema, missing="error")
        whole = rows.dropna()
        assert Table.from_frame(whole, schema=schema, missing="error").n_rows == len(whole)


def test_a_schema_excludes_declarations():
    frame = pd.DataFrame(GOOD)
    schema = Table.from_frame(frame).schema
    with pytest.raises(ParameterError, match="schema excludes columns, drop, nominal, ordinal"):
        Table.from_frame(frame, schema=schema, drop=["a"])
    with pytest.raises(DataError, match='column "b" is missing; columns: a'):
        Table.from_frame(frame[["a"]], schema=schema)
    with pytest.raises(DataError, match='column "n" is missing; columns: a, b'):
        Table.from_frame(frame, schema=schema, weights="n")
    with pytest.raises(DataError, match='column "a" has the unknown level "z" in row 3'):
        Table.from_frame(frame.replace({"a": {"x": "x"}}).assign(a=["x", "y", "z"]), schema=schema)
    with pytest.raises(DataError, match='column "a" has a missing cell in row 2 but no level'):
        Table.from_frame(frame.assign(a=["x", None, "y"]), schema=schema)


def test_only_frames_are_frames():
    """An array has no column names: from_arrays reads it."""
    with pytest.raises(ParameterError, match="frame must be a pandas DataFrame, got ndarray"):
        Table.from_frame(np.zeros((2, 2)))


def test_columns_are_rows_and_what_is_none_is_told():
    """Where scores take a mapping of columns, so does fit; of other forms, what to pass instead."""
    frame = pd.DataFrame(GOOD)
    expected = Table.from_frame(frame).fingerprint()
    assert Table.from_arrays(GOOD).fingerprint() == expected
    assert Table.from_arrays({name: frame[name] for name in GOOD}).fingerprint() == expected
    with pytest.raises(DataError, match="columns must have the same length"):
        Table.from_arrays({"a": [1, 2], "b": [1]})
    for rows, message in (
        (frame.to_dict("records"), r"got dicts: use DataFrame\(rows\)"),
        (frame.to_records(index=False), r"got records: use DataFrame\(rows\)"),
        (frame["a"], r"got a Series: pass rows.to_frame\(\) for a column"),
    ):
        with pytest.raises(DataError, match=message):
            Table.from_arrays(rows)
        if not isinstance(rows, pd.Series):
            with pytest.raises(DataError, match=message):
                BudgetedForestClassifier().fit(rows, [0, 1, 0])
