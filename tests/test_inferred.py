"""Columns of which nothing is declared: real tables can be read as they are, and are told of."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayescascade.base.errors import DataError
from bayescascade.data.bins import SAMPLE_SIZE, default_bins
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


def test_numbers_are_cut_and_gaps_are_a_level() -> None:
    """All of it is in the notes, with how to say otherwise."""
    table = Table.from_frame(survey())
    fare, age, rooms, number, sex = table.schema.columns
    assert [c.kind for c in (fare, age, number)] == ["continuous"] * 3
    assert (rooms.kind, rooms.levels, sex.kind) == ("nominal", (1, 2, 3, 4, 5, 6), "nominal")
    n_aged = int(survey()["age"].notna().sum())
    assert [len(c.edges) - 1 for c in (fare, age, number)] == [7, round(n_aged ** (1 / 3)), 7]
    assert [c.has_missing_level for c in table.schema.columns] == [False, True, False, False, True]
    assert fare.edges == pytest.approx(np.quantile(survey()["fare"], np.arange(8) / 7), rel=0.05)
    assert table.notes == (
        'column "fare" holds numbers, cut into 7 bins of about equally many rows: '
        "continuous= (--continuous fare:BINS) chooses others",
        'column "age" holds numbers, cut into 6 bins of about equally many rows: '
        "continuous= (--continuous age:BINS) chooses others",
        'column "number" holds numbers, cut into 7 bins of about equally many rows: '
        "continuous= (--continuous number:BINS) chooses others",
        f'column "age" has {300 - n_aged} missing cells: a level of its own',
        f'column "sex" has {survey()["sex"].isna().sum()} missing cells: a level of its own',
    )
    gaps = pd.DataFrame({name: [None, "a", "b"] * 9 for name in "vwxy"})
    told = 'columns "v", "w", "x", "y" have missing cells: a level of each column\'s own'
    assert Table.from_frame(gaps).notes == (told,)
    with pytest.raises(DataError, match=r'"age" has .* missing cells'):
        Table.from_frame(survey(), missing="error")


def test_whole_numbers_without_order_are_told_of(tmp_path: Path) -> None:
    """Ages of 53 people would silently be names, of which none is near to another."""
    ages = np.random.default_rng(2).permutation(np.repeat(np.arange(19, 72), 3))
    frame = pd.DataFrame({"age": ages, "rooms": ages % 10, "sex": np.where(ages % 3, "f", "m")})
    frame["code"] = "c" + (frame["age"] % 12).astype(str)
    frame.to_csv(tmp_path / "x.csv", index=False)
    told = (
        'column "age" has 53 whole numbers as levels without order: '
        "declare it ordinal or continuous if their order matters"
    )
    for table in (Table.from_frame(frame), Table.from_csv(tmp_path / "x.csv", chunk_rows=20)):
        assert table.notes == (told,)
    for kind in ("nominal", "ordinal"):
        assert Table.from_frame(frame, **{kind: ["age"]}).notes == ()
    assert Table.from_frame(frame, continuous={"age": 5}).notes == ()
    assert Table.from_frame(frame.astype({"age": "category"})).notes == ()


def test_the_number_of_bins_is_the_cube_root_of_the_weight() -> None:
    """Weighted rows are worth what repeated ones are."""
    assert [default_bins(n) for n in (0.5, 1, 8, 27, 125, 1000, 1e9)] == [2, 2, 2, 3, 5, 10, 10]
    frame = survey(50)[["fare", "sex"]]
    weights = 1 + np.arange(50) % 4
    weighted = Table.from_frame(frame, weights=weights)
    repeated = Table.from_frame(frame.loc[np.repeat(frame.index, weights)])
    assert weighted.schema == repeated.schema
    gaps = f'column "sex" has {frame["sex"].isna().sum()} missing cells: a level of its own'
    assert weighted.notes == (*repeated.notes[:-1], gaps)  # which are counted in rows


@pytest.mark.parametrize("chunk_rows", [1, 7, 100_000])
def test_bins_do_not_depend_on_chunks(chunk_rows: int, tmp_path: Path) -> None:
    """A file is read in parts, and text is parsed; the table is that of the DataFrame."""
    frame = survey()
    late = frame.assign(half=[1.0] * 299 + [2.5])  # known to be real in the last row
    late.to_csv(tmp_path / "x.csv", index=False)
    late = pd.read_csv(tmp_path / "x.csv")  # as pandas rounds it
    late.to_parquet(tmp_path / "x.parquet")
    expected = Table.from_frame(late)
    assert expected.schema.columns[-1].kind == "continuous"
    for read in (Table.from_csv, Table.from_parquet):
        path = tmp_path / f"x.{read.__name__[5:]}"
        table: Any = read(path, chunk_rows=chunk_rows)
        assert table.fingerprint() == expected.fingerprint()
        assert table.notes == expected.notes


def test_long_columns_of_numbers_are_read_in_bounded_memory(tmp_path: Path) -> None:
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
    with pytest.raises(DataError, match=r'column "x" has over 65,536 levels, .* \(--drop x\)'):
        Table.from_csv(tmp_path / "x.csv", chunk_rows=9_999)


def test_few_or_equal_numbers() -> None:
    """A constant is a level; whole numbers that all differ are cut, counted ones stay levels."""
    frame = pd.DataFrame({"a": [0.5] * 6, "b": [1, 2, 3, 4, 5, 6], "c": [0.5, 1, 1, 1, 1, 1]})
    a, b, c = Table.from_frame(frame).schema.columns
    assert (a.kind, a.levels) == ("nominal", (0.5,))
    assert (b.kind, len(b.edges)) == ("continuous", 3)
    assert (c.kind, all(low < high for low, high in pairwise(c.edges))) == ("continuous", True)
    counted = Table.from_frame(frame, weights=[1, 2, 1, 2, 1, 2])
    assert counted.schema.columns[1].levels == (1, 2, 3, 4, 5, 6)
