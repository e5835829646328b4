"""Tables from DataFrames and arrays: kinds, levels, distinct rows and weights."""

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from bayescascade.base.errors import DataError, ParameterError
from bayescascade.data import bins
from bayescascade.data.bins import RowSample, equal_frequency_edges
from bayescascade.data.column import Column
from bayescascade.data.table import Table

DATA = Path(__file__).parents[1] / "data"


def only_column(values: object, **declared: object) -> Column:
    """Return the column that is inferred beside one that varies."""
    frame = pd.DataFrame({"x": values})
    frame["other"] = ["a", "b"] * (len(frame) // 2) + ["a"] * (len(frame) % 2)
    return Table.from_frame(frame, **declared).schema.columns[0]


def test_arrays_are_compact_sorted_and_read_only():
    """Kernels rely on the layout, and nobody may change the counts behind a posterior."""
    table = Table.from_frame(pd.read_csv(DATA / "tic_tac_toe.csv"))
    assert table.codes.dtype == np.uint8
    assert table.codes.flags.c_contiguous
    assert table.codes.shape == (10, 958)
    assert table.weights.dtype == np.float64
    assert not table.codes.flags.writeable
    assert not table.weights.flags.writeable
    rows = [tuple(row) for row in table.codes.T.tolist()]
    assert rows == sorted(set(rows))


def test_many_codes_need_two_bytes():
    """256 codes fit a byte, 257 do not: they must not wrap around."""
    for n_codes, dtype in ((256, np.uint8), (257, np.uint16)):
        table = Table.from_frame(pd.DataFrame({"x": range(n_codes)}), ordinal=["x"])
        assert table.codes.dtype == dtype
        assert table.codes[0].tolist() == list(range(n_codes))


@pytest.mark.parametrize(
    ("values", "kind", "levels"),
    [
        (["b", "a", "b"], "nominal", ("a", "b")),
        ([True, False, True], "nominal", (False, True)),
        ([10.0, 9.0, 10.0], "nominal", (9, 10)),
        (np.array([3, 1, 1], dtype=np.uint8), "nominal", (1, 3)),
        (pd.array([1, 2, 1], dtype="Int64"), "nominal", (1, 2)),
        (pd.array([True, False, True], dtype="boolean"), "nominal", (False, True)),
        ([1, "a", 1], "nominal", ("1", "a")),
        ([1, True, 1], "nominal", ("1", "True")),
        (pd.Categorical(["b", "a", "b"], ["c", "b", "a"]), "nominal", ("a", "b", "c")),
        (
            pd.Categorical(["lo", "hi", "lo"], ["lo", "mid", "hi"], ordered=True),
            "ordinal",
            ("lo", "mid", "hi"),
        ),
        (pd.cut(pd.Series([0.5, 1.5, 0.5]), [0, 1, 2]), "ordinal", ("(0, 1]", "(1, 2]")),
    ],
)
def test_kinds_are_inferred(values, kind, levels):
    """A user declares nothing for an ordinary table, and unused categories stay possible."""
    column = only_column(values)
    assert column.kind == kind
    assert column.levels == levels
    assert [type(level) for level in column.levels] == [type(level) for level in levels]


@pytest.mark.parametrize(
    ("declared", "levels"),
    [
        ({"ordinal": ["x"]}, (1, 2, 5)),
        ({"ordinal": {"x": [5, 2, 1, 0]}}, (5, 2, 1, 0)),
        ({"ordinal": {"x": ("5", "1", "2")}}, ("5", "1", "2")),
        ({"nominal": {"x": [7, 5, 2, 1]}}, (1, 2, 5, 7)),
        ({"ordinal": {"x": [10**400, 5, 2, 1]}}, (10**400, 5, 2, 1)),
    ],
)
def test_declared_levels_are_the_domain(declared, levels):
    """A level that no row has is still a place where a row could be."""
    column = only_column([2, 5, 1], **declared)
    assert column.kind == next(iter(declared))
    assert column.levels == levels


def test_continuous_columns_have_bins_of_equal_frequency():
    """Bins hold the same number of rows where ties allow, and cover the whole range."""
    table = Table.from_frame(pd.DataFrame({"x": np.arange(100.0) ** 2 / 4}), continuous={"x": 4})
    edges = table.schema.columns[0].edges
    inner = ((24**2 + 25**2) / 8, (49**2 + 50**2) / 8, (74**2 + 75**2) / 8)
    assert edges == (0, *inner, 99**2 / 4)
    assert table.weights.tolist() == [25] * 4


def test_tied_quantiles_are_merged():
    """Many zeros are one bin, not several empty ones."""
    column = only_column([0] * 90 + list(range(1, 11)), continuous={"x": 4})
    assert column.edges == (-0.5, 0.5, 10.5)
    assert only_column([1.5, 2], continuous={"x": 10}).edges == (1.5, 1.75, 2)
    assert only_column([1.5, 2], continuous={"x": 1}).edges == (1.5, 2)


def test_a_number_of_bins_leaves_whole_numbers_whole():
    """Who asks for other bins than those that the note offers must not read "[1, 3)" of counts."""
    column = only_column([0, 1, 1, 3, 4, 9], continuous={"x": 3})
    assert column.is_whole
    texts = [column.condition_words([k]) for k in range(3)]
    assert texts == ["x is 0", "x is 1 to 3", "x is 4 to 9"]
    assert column.condition_words([0, 1], is_open=True) == "x is at most 3"
    gaps = only_column([0, 1, 3, 4, None], continuous={"x": 2}, missing="level")
    assert [gaps.condition_words(one) for one in ([0, 1], [2])] == [
        "x is not missing",
        "x is missing",
    ]
    edges = only_column([0, 1, 1, 3, 4, 9], continuous={"x": [0, 2, 9]})
    assert edges.condition_words([0]) == "x is in [0, 2)"


def test_bins_between_neighboring_floats():
    """Where no number lies between two values, the upper one must start the next bin."""
    low, high = 1.0, float(np.nextafter(1, 2))
    column = only_column([low, high, 2.0], continuous={"x": 3})
    assert column.encode(pd.Series([low, high, 2.0])).tolist() == [0, 1, 2]


def test_bins_follow_the_weights():
    frame = pd.DataFrame({"x": [1.0, 2, 3, 4], "n": [9, 3, 3, 3]})
    table = Table.from_frame(frame, weights="n", continuous={"x": 2})
    assert table.schema.columns[0].edges == (0.5, 1.5, 4.5)


def test_sampled_quantiles_are_close(rng, monkeypatch):
    """A file too long for exact quantiles gets nearly equal bins, even if it is sorted."""
    monkeypatch.setattr(bins, "SAMPLE_SIZE", 10_000)
    values = np.sort(rng.normal(size=100_000))

    def largest_error(sample):
        edges = equal_frequency_edges(sample, np.ones(len(sample)), 10, -10, 10)
        return float(np.abs(np.histogram(values, edges)[0] / 100_000 - 0.1).max())

    sample = RowSample()
    for start in range(0, 100_000, 7_000):
        block = values[start : start + 7_000]
        sample.add(block, np.ones(len(block)), start + np.arange(len(block)))
    edges = sample.edges(10, -10, 10)
    shares = np.histogram(values, edges)[0] / 100_000
    # A share's standard error is at most 0.003 for a sample of 10,000.
    assert np.abs(shares - 0.1).max() < 0.015
    assert largest_error(values[:10_000]) > 0.015  # keeping the first rows instead


def test_missing_cells_can_be_a_level():
    frame = pd.DataFrame(
        {
            "sex": ["male", None, "female"],
            "n": [1, np.nan, 2],
            "x": [0.5, 1.5, np.nan],
            "full": ["a", "b", "a"],
        }
    )
    table = Table.from_frame(frame, missing="level", continuous={"x": 2})
    assert [column.has_missing_level for column in table.schema.columns] == [True] * 3 + [False]
    assert table.schema.columns[1].levels == (1, 2)
    assert table.schema.n_levels.tolist() == [3, 3, 3, 2]
    assert sorted(table.codes.T.tolist()) == [[0, 1, 2, 0], [1, 0, 0, 0], [2, 2, 1, 1]]


def test_a_schema_codes_held_out_rows():
    """The other half of the data gets the same codes, in any order of columns."""
    frame = pd.DataFrame({"a": ["x", "y", "z"], "b": [1, 2, 1]})
    schema = Table.from_frame(frame).schema
    half = Table.from_frame(frame.iloc[[2]][["b", "a"]], schema=schema)
    assert half.schema == schema
    assert half.codes.tolist() == [[2], [0]]
    weighted = Table.from_frame(frame.assign(n=[0, 1, 2]), schema=schema, weights="n")
    assert weighted.weights.tolist() == [1, 2]


def test_arrays_of_any_type():
    table = Table.from_arrays(np.array([[1, 5], [2, 5], [1, 6]]))
    assert table.schema.names == ("x0", "x1")
    assert table.schema.columns[1].levels == (5, 6)
    text = Table.from_arrays(np.array([["a", "b"], ["c", "b"]]), names=["p", "q"])
    assert text.schema.columns[0].levels == ("a", "c")
    mixed = Table.from_arrays([[1, "a"], [2, "b"]], ordinal={0: [2, 1]}, drop=[1])
    assert mixed.schema.columns == (Column("x0", "ordinal", (2, 1)),)
    again = Table.from_arrays([[1]], schema=mixed.schema)
    assert again.codes.tolist() == [[1]]


def test_declarations_by_column_number():
    """Arrays have no names: a column's number is enough, a wrong one is an error."""
    array = np.array([[1, 1.5, 3], [2, 2.5, 4]])
    table = Table.from_arrays(array, continuous={1: 2}, ordinal=[2], columns=[0, 1, 2])
    assert [column.kind for column in table.schema.columns] == ["nominal", "continuous", "ordinal"]
    with pytest.raises(
        ParameterError, match="a column number in drop must be an integer from 0 to 2"
    ):
        Table.from_arrays(array, drop=[3])
    with pytest.raises(
        ParameterError, match=r"ordinal must name each column once, got \[1, 'x1'\]"
    ):
        Table.from_arrays(array, ordinal=[1, "x1"])
    with pytest.raises(DataError, match="rows must have 2 columns, got 3"):
        Table.from_arrays(array, names=["a", "b"])
    with pytest.raises(ParameterError, match="drop must be a list of column names"):
        Table.from_arrays(array, drop="x1")


def test_fingerprints_tell_tables_apart():
    """A checkpoint must notice that it belongs to other data."""
    frame = pd.DataFrame({"a": [1, 2, 2], "b": [1, 1, 2]})
    prints = {
        Table.from_frame(frame).fingerprint(),
        Table.from_frame(frame.rename(columns={"a": "c"})).fingerprint(),
        Table.from_frame(frame, weights=[1, 1, 2]).fingerprint(),
        Table.from_frame(frame.replace({"b": {1: 2, 2: 1}})).fingerprint(),
    }
    assert len(prints) == 4
    assert Table.from_frame(frame[::-1], source="other").fingerprint() in prints


rows_of_codes = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from("abc"), st.booleans()), min_size=2, max_size=30
).filter(lambda rows: len(set(rows)) > 1)


@given(rows_of_codes, st.data())
def test_counts_are_those_of_the_rows(rows, data):
    """Each distinct row counts as often as it occurs, in whatever order rows come."""
    frame = pd.DataFrame(rows, columns=["i", "s", "b"])
    table = Table.from_frame(frame, nominal=["i"])
    decoded = table.schema.decode(table.codes, np.random.default_rng(0))
    distinct = list(decoded.itertuples(index=False, name=None))
    assert dict(zip(distinct, table.weights, strict=True)) == Counter(rows)
    assert distinct == sorted(distinct)
    shuffled = frame.iloc[data.draw(st.permutations(range(len(rows))))]
    assert Table.from_frame(shuffled, nominal=["i"]).fingerprint() == table.fingerprint()


@given(
    st.lists(
        st.tuples(
            st.integers(0, 1), st.floats(0, 1e9, allow_subnormal=False) | st.floats(1e-9, 1e-3)
        ),
        min_size=2,
        max_size=40,
    ).filter(lambda rows: any(weight > 0 for _, weight in rows)),
    st.randoms(use_true_random=False),
)
def test_weights_are_summed_in_any_order(rows, random):
    """0.1 + 0.2 + 0.3 depends on the order in floating point; a table must not."""
    frame = pd.DataFrame(rows, columns=["a", "n"])

    def read(frame):
        return Table.from_frame(frame, nominal={"a": [0, 1]}, weights="n")

    table = read(frame)
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert read(pd.DataFrame(shuffled, columns=["a", "n"])).fingerprint() == table.fingerprint()
    sums = {code: sum(w for level, w in rows if level == code) for code in (0, 1)}
    for code, weight in zip(table.codes[0].tolist(), table.weights, strict=True):
        assert weight == pytest.approx(sums[code], rel=1e-12, abs=1e-19)


def test_tiny_weights_count():
    """A positive weight beside a huge one must neither vanish nor be rounded to zero."""
    frame = pd.DataFrame({"a": ["x", "y", "z"]})
    assert Table.from_frame(frame, weights=[1e9, 0.1, 0.3]).weights.tolist() == [1e9, 0.1, 0.3]
    assert (Table.from_frame(frame, weights=[1e300, 1e-300, 1]).weights > 0).all()


def test_more_cells_than_a_word_can_number(rng):
    """Rows of many columns need several words, and must be told apart by each of them."""
    array = rng.integers(0, 2, (500, 150))
    array[250:] = array[:250]
    array[400:, 149] ^= 1
    table = Table.from_arrays(array)
    expected = Counter(map(tuple, array.tolist()))
    assert list(map(tuple, table.codes.T.tolist())) == sorted(expected)
    assert table.weights.tolist() == [expected[row] for row in sorted(expected)]


def test_words_hold_up_to_two_to_the_64_cells():
    """A product of exactly 2**64 still fits one word; the largest code must not overflow."""
    array = np.array([[0] * 8, [255] * 8, [255] * 7 + [254]])
    declared = {index: list(range(256)) for index in range(8)}
    table = Table.from_arrays(array, ordinal=declared)
    assert table.codes.T.tolist() == [[0] * 8, [255] * 7 + [254], [255] * 8]
