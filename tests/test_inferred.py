"""Columns of which nothing is declared: real tables can be read as they are, and are told of."""

import math
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from bayescascade.base.errors import DataError
from bayescascade.base.store import restored, stored
from bayescascade.data.bins import SAMPLE_SIZE, default_bins
from bayescascade.data.column import Column
from bayescascade.data.table import Table


def survey(n: int = 300) -> pd.DataFrame:
    """Return real numbers, many and few whole ones, gaps, and text."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "fare": rng.exponential(10.0, n),
            "age": np.where(rng.random(n) < 0.2, np.nan, rng.integers(1, 90, n)),
            "rooms": rng.integers(1, 7, n),
            "number": np.arange(n),
            "sex": np.where(rng.random(n) < 0.1, None, rng.choice(["m", "f"], n)),
        }
    )


def test_numbers_are_cut_and_gaps_are_a_level():
    """All of it is in the notes, with how to say otherwise."""
    table = Table.from_frame(survey())
    fare, age, rooms, number, sex = table.schema.columns
    assert [c.kind for c in (fare, age, number)] == ["continuous"] * 3
    assert (rooms.kind, rooms.levels, sex.kind) == ("nominal", (1, 2, 3, 4, 5, 6), "nominal")
    n_aged = int(survey()["age"].notna().sum())
    assert [len(c.edges) - 1 for c in (fare, age, number)] == [7, round(n_aged ** (1 / 3)), 7]
    assert [c.has_missing_level for c in table.schema.columns] == [False, True, False, False, True]
    assert [c.is_whole for c in (fare, age, number)] == [False, True, True]
    assert fare.edges == pytest.approx(np.quantile(survey()["fare"], np.arange(8) / 7), rel=0.05)
    assert table.notes == (
        'column "fare" holds numbers, cut into 7 bins with about equal numbers of rows; '
        'continuous={"fare": BINS} changes the bins',
        'column "age" holds whole numbers, cut into 6 bins with about equal numbers of rows; '
        'continuous={"age": BINS} changes the bins',
        'column "number" holds whole numbers, cut into 7 bins with about equal numbers of rows; '
        'continuous={"number": BINS} changes the bins; all are different: if they only identify '
        "rows, drop it (drop=['number'])",
        f'column "age" has {300 - n_aged} missing cells: a separate level',
        f'column "sex" has {survey()["sex"].isna().sum()} missing cells: a separate level',
    )
    gaps = pd.DataFrame({name: [None, "a", "b"] * 9 for name in "vwxy"})
    text = 'columns "v", "w", "x", "y" have missing cells: a separate level in each column'
    assert Table.from_frame(gaps).notes == (text,)
    with pytest.raises(DataError, match=r'"age" has .* missing cells'):
        Table.from_frame(survey(), missing="error")


def test_more_than_twelve_whole_numbers_are_cut(tmp_path):
    """Ages would silently be names, of which none is near to another; few numbers may be names."""
    ages = np.random.default_rng(2).permutation(np.repeat(np.arange(19, 72), 3))
    frame = pd.DataFrame({"age": ages, "rooms": ages % 10, "sex": np.where(ages % 3, "f", "m")})
    frame["code"] = "c" + (frame["age"] % 12).astype(str)
    frame["month"] = 1 + ages % 12
    frame.to_csv(tmp_path / "x.csv", index=False)
    frame.astype({"age": "Int16"}).to_parquet(tmp_path / "x.parquet")
    text = (
        'column "age" holds whole numbers, cut into 5 bins with about equal numbers of rows; '
        'continuous={"age": BINS} changes the bins, '
        "nominal=['age'] keeps them as levels"
    )
    expected = Table.from_frame(frame)
    age = expected.schema.columns[0]
    assert (age.kind, age.widths.sum(), age.describe_codes([0])) == ("continuous", 53, "19 to 29")
    assert [c.kind for c in expected.schema.columns[1:]] == ["nominal"] * 4
    many = pd.concat([frame] * 70, ignore_index=True)  # which are counted first, then cut
    for table in (
        Table.from_frame(frame.astype({"age": float})),
        Table.from_csv(tmp_path / "x.csv", chunk_rows=20),
        Table.from_parquet(tmp_path / "x.parquet", chunk_rows=7),
    ):
        assert table.notes == (text,)
        assert table.fingerprint() == expected.fingerprint()
    assert Table.from_frame(many).schema.columns[0].edges[::10] == (18.5, 71.5)
    for kind in ("nominal", "ordinal"):
        declared = Table.from_frame(frame, **{kind: ["age"]})
        assert declared.notes == ()
        assert declared.schema.columns[0].levels == tuple(range(19, 72))
    assert Table.from_frame(frame, continuous={"age": 5}).notes == ()
    assert Table.from_frame(frame.astype({"age": "category"})).notes == ()


def test_one_note_is_of_many_columns_that_are_cut():
    """A table of 57 columns of numbers would print 57 lines that say the same."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({f"x{i}": rng.normal(size=90) for i in range(56)})
    frame["age"] = rng.integers(0, 30, 90)
    (texts,) = Table.from_frame(frame).notes
    assert texts == (
        'columns "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7" and 49 more hold numbers, cut '
        "into 4 bins with about equal numbers of rows; continuous={NAME: BINS} "
        "changes the bins, nominal=[NAME] keeps whole numbers as levels"
    )


def test_whole_numbers_stay_whole():
    """Nobody is 29.37 years old, and no bin holds a half of a number."""
    ages = pd.Series([*range(17, 58), 90, None] * 5, dtype="Int64")
    table = Table.from_frame(pd.DataFrame({"age": ages, "sex": ["f", "m", "f", "m", "m"] * 43}))
    age = table.schema.columns[0]
    rng = np.random.default_rng(0)
    assert restored(Column, stored(age), {}) == age
    codes = rng.integers(0, age.n_levels, 2000).astype(np.int32)
    drawn = age.decode(codes, rng)
    assert drawn.dtype == pd.Int64Dtype()
    assert set(drawn.dropna()) == set(range(17, 91))
    assert (age.encode(drawn) == codes).all()
    counts = np.diff([math.floor(edge) for edge in age.edges])
    assert age.widths.tolist() == [*counts, 1.0]
    last = age.n_levels - 2
    low, high = age.whole_ends(0, last - 1)
    assert age.describe_codes(range(last)) == f"{low} to {high}"
    assert age.codes_for((low, high)) == tuple(range(last))
    assert age.codes_for((low - 0.5, high + 0.5)) == tuple(range(last))
    with pytest.raises(DataError, match='"age" has 91 in row 1, outside 17 to 90'):
        age.codes_for(91)
    with pytest.raises(DataError, match="must be halfway between two of them"):
        Column("x", "continuous", (), (0.5, 2.0), is_whole=True)


def test_the_number_of_bins_is_the_cube_root_of_the_weight():
    """Weighted rows are worth what repeated ones are."""
    assert [default_bins(n) for n in (0.5, 1, 8, 27, 125, 1000, 1e9)] == [2, 2, 2, 3, 5, 10, 10]
    frame = survey(50)[["fare", "sex"]]
    weights = 1 + np.arange(50) % 4
    weighted = Table.from_frame(frame, weights=weights)
    repeated = Table.from_frame(frame.loc[np.repeat(frame.index, weights)])
    assert weighted.schema == repeated.schema
    gaps = f'column "sex" has {frame["sex"].isna().sum()} missing cells: a separate level'
    assert weighted.notes == (*repeated.notes[:-1], gaps)  # which are counted in rows


@pytest.mark.slow
def test_long_columns_of_numbers_are_read_in_bounded_memory(tmp_path):
    """More different numbers than are kept; a word after them makes a column of words."""
    numbers = np.random.default_rng(1).normal(size=SAMPLE_SIZE // 3)
    frame = pd.DataFrame({"x": numbers, "s": np.arange(len(numbers)) % 2})
    table = Table.from_frame(frame)
    assert table.schema.n_levels.tolist() == [10, 2]
    shares = np.bincount(table.codes[0], table.weights) / len(numbers)
    assert shares == pytest.approx(0.1, abs=0.001)
    frame.loc[75_000:, "x"] = np.nan  # in the last chunk there is no number
    frame.to_csv(tmp_path / "x.csv", index=False)
    frame = pd.read_csv(tmp_path / "x.csv")  # as pandas rounds it
    table = Table.from_frame(frame)
    assert Table.from_csv(tmp_path / "x.csv", chunk_rows=5_000).fingerprint() == table.fingerprint()
    words = frame.astype({"x": object})
    words.loc[len(words) - 1, "x"] = "much"
    words.to_csv(tmp_path / "x.csv", index=False)
    with pytest.raises(DataError, match=r'column "x" has over 65,536 levels, .* \(drop='):
        Table.from_csv(tmp_path / "x.csv", chunk_rows=9_999)


def test_few_or_equal_numbers():
    """A constant is a level; whole numbers that all differ are cut, counted ones stay levels."""
    frame = pd.DataFrame({"a": [0.5] * 6, "b": [1, 2, 3, 4, 5, 6], "c": [0.5, 1, 1, 1, 1, 1]})
    a, b, c = Table.from_frame(frame).schema.columns
    assert (a.kind, a.levels) == ("nominal", (0.5,))
    assert (b.kind, len(b.edges)) == ("continuous", 3)
    assert (c.kind, all(low < high for low, high in pairwise(c.edges))) == ("continuous", True)
    counted = Table.from_frame(frame, weights=[1, 2, 1, 2, 1, 2])
    assert counted.schema.columns[1].levels == (1, 2, 3, 4, 5, 6)


def test_text_in_a_column_of_numbers_is_named():
    """A typing error in one of many numbers would be hidden by "different in every row"."""
    values = [str(i + 0.5) for i in range(39)]
    for cells in ([*values, "abc"], [*(f"p{i}" for i in range(40))]):
        frame = pd.DataFrame({"v": cells, "a": ["x", "y"] * 20})
        with pytest.raises(DataError, match="different value in every row") as refused:
            Table.from_frame(frame)
        assert ('numbers but for "abc"' in str(refused.value)) == ("abc" in cells)
