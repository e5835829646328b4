"""Rows counted before they are coded are those that are coded one by one."""

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from bayescascade.base.errors import DataError
from bayescascade.data import counting, distinct_rows, sources
from bayescascade.data.arrow_frames import frame_of_arrow
from bayescascade.data.declarations import Declarations
from bayescascade.data.reading import CountedRows, RowReader
from bayescascade.data.schema import Schema
from bayescascade.data.sources import source_of

CELLS: dict[str, st.SearchStrategy[Any]] = {
    "mixed": st.sampled_from([1, True, 1.0, "1", "True", "a", None, 0.5, np.int64(7)]),
    "numbers": st.sampled_from([1, 2.0, 0.5, None, -0.0, 0]),
    "decimal": st.sampled_from([Decimal("0.50"), Decimal("2.0"), Decimal("0.5"), None]),
    "whole": st.sampled_from([2**60, 2**60 + 1, None]),
    "text": st.sampled_from(["b", "a", "ä", "", None]),
    "interval": st.sampled_from([pd.Interval(0, 5), pd.Interval(5, 10), pd.Interval(10, 99), None]),
}


def outcome(read: Any) -> CountedRows | str:
    try:
        return read()
    except (DataError, pa.ArrowException) as error:
        return str(error)


def assert_same(reader: RowReader) -> None:
    """Whatever is counted at once must be what is counted by blocks; errors may differ."""
    expected, actual = outcome(reader.read_by_blocks), outcome(reader.read_at_once)
    if isinstance(expected, str):
        assert isinstance(actual, str)
        assert outcome(reader.read) == expected
        return
    assert not isinstance(actual, str)
    assert actual.schema == expected.schema
    assert (actual.n_rows, actual.notes) == (expected.n_rows, expected.notes)
    np.testing.assert_array_equal(actual.codes, expected.codes)
    assert actual.weights.tobytes() == expected.weights.tobytes()


@pytest.fixture(autouse=True, params=[3, 100])
def short_blocks(request, monkeypatch):
    """Cut rows into blocks, and let Arrow group even few of them."""
    monkeypatch.setattr(sources, "BLOCK_ROWS", request.param)
    monkeypatch.setattr(distinct_rows, "_FEW", request.param // 2)


@pytest.mark.slow
@given(st.data())
@settings(deadline=None, max_examples=60)
def test_any_cells_are_counted_at_once(data):
    """Types that are mixed, or differ between blocks, must mean the same in both ways."""
    n_rows = data.draw(st.integers(2, 14))
    columns: dict[str, Any] = {}
    for kind, cells in CELLS.items():
        if data.draw(st.booleans()):
            listed = data.draw(st.lists(cells, min_size=n_rows, max_size=n_rows))
            columns[kind] = pd.Series(listed, dtype=object)
    sizes = pd.Series(data.draw(st.lists(st.sampled_from("SML"), min_size=n_rows, max_size=n_rows)))
    order = data.draw(st.permutations("SMLX"))
    columns["size"] = sizes.astype(pd.CategoricalDtype(order, data.draw(st.booleans())))
    if data.draw(st.booleans()):  # to be cut into bins, though nothing is declared of it
        columns["y"] = [*range(n_rows - 1), data.draw(st.sampled_from([0.5, 3, None]))]
    columns["x"] = data.draw(st.lists(st.floats(-1, 1), min_size=n_rows, max_size=n_rows))
    weights = np.array(data.draw(st.lists(st.floats(0, 9), min_size=n_rows, max_size=n_rows)))
    declarations = Declarations(
        missing=data.draw(st.sampled_from(["level"] * 3 + ["error"])),
        continuous={"x": data.draw(st.sampled_from([3, [-1.0, 0.0, 1.0], [-1, 0.9]]))},
        ordinal=[name for name in ("numbers", "decimal") if name in columns],
    )
    frame = pd.DataFrame(columns)
    source = source_of(frame)
    assert source is not None
    assert_same(RowReader.of(source, declarations, None, None))
    assert_same(RowReader.of(source, declarations, weights, None))
    found = outcome(RowReader.of(source, declarations, None, None).read_by_blocks)
    if not isinstance(found, str):
        some = Schema(found.schema.columns[1:]) if len(frame.columns) > 2 else found.schema
        assert_same(RowReader.of(source, Declarations(), None, some))
        assert_same(RowReader.of(source_of(frame[::-1]), Declarations(), None, some))


def test_dictionaries_of_batches_may_differ():
    """Each batch has its own; a category that no cell has is a level, a text of a store is none."""
    table = pa.concat_tables(
        pa.table({"a": pa.array(values).dictionary_encode(), "b": [1, 2, 3]})
        for values in (["x", "y", None], ["y", "z", "x"], [None, "x", "x"])
    )
    for weights in (None, np.arange(1.0, 10.0)):  # of the rows of all batches
        declarations = Declarations(missing="level")
        assert_same(RowReader.of(source_of(table), declarations, weights, None))
    reader = RowReader.of(source_of(table), declarations, None, None)
    assert reader.read_at_once().schema.columns[0].levels == ("x", "y", "z")


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("index", [pa.int8(), pa.uint16()])
def test_dictionaries_may_say_a_value_twice_or_none(ordered, index):
    """Arrow allows it, pandas does not; order and unused categories stay."""
    places = pa.array([0, 1, 2, 3, None, 5, 0], index)
    entries = pa.array(["z", None, "a", "z", "m", "a"])
    odd = pa.DictionaryArray.from_arrays(places, entries, ordered=ordered)
    texts = ["z", None, "a", "z", None, "a", "z"]
    expected = pd.Categorical(texts, ["z", "a", "m"], ordered=ordered)
    number = pa.DictionaryArray.from_arrays(
        pa.array([0, 1] * 3 + [2]), pa.array([1.5, 1.5, np.nan])
    )
    table = pa.table({"a": odd, "b": range(7), "x": number})
    frame = frame_of_arrow(table)
    pd.testing.assert_series_equal(frame["a"], pd.Series(expected, name="a"))
    assert frame["x"].tolist()[:6] == [1.5] * 6
    assert frame["x"].isna().tolist() == [False] * 6 + [True]
    declared = Declarations(ordinal=["b"])
    for rows in (table, pa.concat_tables([table, table])):
        reader = RowReader.of(source_of(rows), declared, None, None)
        assert_same(reader)
        (a, _, x) = reader.read_at_once().schema.columns
        assert a.levels == (("z", "a", "m") if ordered else ("a", "m", "z"))
        assert x.levels == (1.5,)


@pytest.mark.slow
def test_numbers_of_which_nothing_is_declared(rng, monkeypatch):
    """Many are noticed early, and cut into bins without keeping each; few are cut at the end."""
    monkeypatch.setattr(counting, "_MOST_UNDECLARED", 100)
    frame = pd.DataFrame(
        {
            "many": rng.normal(size=300),
            "few": rng.integers(0, 90, 300),
            "late": np.r_[np.zeros(150), rng.normal(size=150)],
            "text": rng.choice(["a", "b"], 300),
        }
    )
    for rows in (frame, pa.Table.from_pandas(frame)):
        for weights in (None, "few"):
            assert_same(RowReader.of(source_of(rows), Declarations(), weights, None))
    kinds = [
        column.kind
        for column in RowReader.of(
            source_of(frame),
            Declarations(),
            None,
            None,
        )
        .read_at_once()
        .schema.columns
    ]
    assert kinds == ["continuous", "continuous", "continuous", "nominal"]


@pytest.mark.slow
def passes(n_columns: int, monkeypatch: pytest.MonkeyPatch, rng: Any) -> int:
    """Return how often the rows of this number of undeclared columns are read."""
    monkeypatch.setattr(counting, "_MOST_UNDECLARED", 20)
    frame = pd.DataFrame(rng.normal(size=(300, n_columns))).set_axis(range(n_columns), axis=1)
    source, n_passes = source_of(frame.add_prefix("c")), 0
    batches, blocks = type(source).batches, type(source).blocks

    def counted(read: Any) -> Any:
        def call(*given: Any, **named: Any) -> Any:
            nonlocal n_passes
            n_passes += 1
            return read(*given, **named)

        return call

    with monkeypatch.context() as patch:
        patch.setattr(type(source), "batches", counted(batches))
        patch.setattr(type(source), "blocks", counted(blocks))
        RowReader.of(source, Declarations(), None, None).read_at_once()
    return n_passes


def test_a_table_of_numbers_is_not_read_once_for_each_column(monkeypatch, rng):
    """60,000 rows of 40 numbers took 12 s, because each column of numbers began all anew."""
    assert passes(12, monkeypatch, rng) == passes(2, monkeypatch, rng)


def test_many_distinct_rows_outgrow_no_number(rng):
    """Values that come late make numbers longer, of the rows before them, too."""
    frame = pd.DataFrame(
        {name: np.sort(rng.integers(0, 60, 900)).astype(str) for name in "abcdefghijkl"}
    )
    frame["late"] = np.repeat(np.arange(300), 3)
    reader = RowReader.of(
        source_of(frame),
        Declarations(ordinal=["late"]),
        None,
        None,
    )
    assert_same(reader)
    assert reader.read_at_once().codes.shape[1] >= 300
