"""The same rows give the same bytes of model, whatever dress they come in."""

import datetime
import functools
import pickle
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet
import pytest

from bayescascade.base.errors import DataError
from bayescascade.data.table import Table

N_ROWS = 400
PAIN = ["no", "some", "much"]  # in another order as text


def patients(rng: np.random.Generator) -> pd.DataFrame:
    """Return rows of every type that a dress may have to carry, some cells missing."""
    frame = pd.DataFrame(
        {
            "ward": rng.choice(["north", "south", "ä b", ""], N_ROWS),
            "visits": pd.array(rng.integers(0, 4, N_ROWS), "Int64"),
            "code": pd.array(2**60 + rng.integers(0, 3, N_ROWS), "Int64"),
            "smoker": pd.array(rng.random(N_ROWS) < 0.3, "boolean"),
            "dose": rng.choice([1.0, 2.0, 3.0], N_ROWS),
            "price": [Decimal(text) for text in rng.choice(["1.50", "2.00"], N_ROWS)],
            "income": rng.normal(size=N_ROWS),
            "pain": pd.Categorical(rng.choice(["no", "much"], N_ROWS), PAIN, ordered=True),
        }
    )
    for name in ("ward", "visits", "code", "smoker", "pain"):
        frame.loc[rng.random(N_ROWS) < 0.1, name] = None
    return frame


def arrow(frame: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata()


def with_text(frame: pd.DataFrame, text: pa.DataType) -> pa.Table:
    table = arrow(frame)
    place = table.schema.get_field_index("ward")
    return table.set_column(place, "ward", pa.array(table["ward"].to_pylist(), text))


def polars_frame(frame: pd.DataFrame) -> Any:
    polars = pytest.importorskip("polars")
    table = polars.from_arrow(arrow(frame))
    return table.with_columns(polars.col("pain").cast(polars.Enum(PAIN)))


def duckdb_relation(frame: pd.DataFrame, connection: Any) -> Any:
    connection.register("arrow_rows", arrow(frame))
    connection.execute("create type pain as enum ('no', 'some', 'much')")
    connection.execute(
        "create table patients as select * replace (pain::pain as pain) from arrow_rows"
    )
    return connection.sql("select * from patients")


def narwhals_of(native: Any) -> Any:
    return pytest.importorskip("narwhals").from_native(native)


def dask_frame(frame: pd.DataFrame, n_parts: int = 3) -> Any:
    dask = pytest.importorskip("dask.dataframe")
    with pytest.importorskip("dask.config").set({"dataframe.convert-string": False}):
        return dask.from_pandas(frame, npartitions=n_parts)  # else decimals and dates become text


def written(write: Callable[[Any, Path], object], name: str) -> Callable[..., Path]:
    def make(frame: pd.DataFrame, folder: Path) -> Path:
        write(arrow(frame), folder / name)
        return folder / name

    return make


DRESSES: dict[str, Callable[..., Any]] = {
    "objects": lambda f: f.astype({name: object for name in f if name != "pain"}),
    "arrow types": lambda f: arrow(f).to_pandas(types_mapper=pd.ArrowDtype).assign(pain=f["pain"]),
    "pickled": lambda f: pickle.loads(pickle.dumps(f)),
    "index": lambda f: f.set_index(pd.Index(range(5, 5 + len(f)), name="id")),
    "arrow": arrow,
    "arrow with pandas' notes": pa.Table.from_pandas,
    "large strings": lambda f: with_text(f, pa.large_string()),
    "string views": lambda f: with_text(f, pa.string_view()),
    "record batch": lambda f: arrow(f).to_batches()[0],
    "many batches": lambda f: pa.Table.from_batches(arrow(f).to_batches(max_chunksize=7)),
    "reader": lambda f: arrow(f).to_reader(max_chunksize=50),
    "dataset": lambda f: pa.dataset.dataset(arrow(f)),
    "scanner": lambda f: pa.dataset.dataset(arrow(f)).scanner(),
    "polars": polars_frame,
    "polars, lazy": lambda f: polars_frame(f).lazy(),
    "narwhals of polars": lambda f: narwhals_of(polars_frame(f)),
    "narwhals of a plan": lambda f: narwhals_of(polars_frame(f).lazy()),
    "narwhals of pandas": narwhals_of,
    "dask": dask_frame,
    "parquet": written(pa.parquet.write_table, "rows.parquet"),
    "feather": written(pa.feather.write_feather, "rows.feather"),
}

FILES = {"parquet": "rows.parquet", "feather": "rows.feather"}

DECLARED: dict[str, Any] = {
    "missing": "level",
    "continuous": {"income": 4},
    "ordinal": ["price"],
    "nominal": ["code"],
}


@functools.cache
def undressed() -> tuple[pd.DataFrame, Table]:
    """Return rows as pandas has them, and their table, which is all that models see."""
    frame = patients(np.random.default_rng(7))
    return frame, Table.from_frame(frame, **DECLARED)


@pytest.mark.parametrize("dress", DRESSES)
def test_the_same_rows_give_the_same_bytes(dress, tmp_path):
    """Nobody should learn something else because of the library that the rows come in."""
    frame, expected = undressed()
    columns = {column.name: column for column in expected.schema.columns}
    assert columns["pain"].levels == tuple(PAIN)
    assert columns["code"].levels == (2**60, 2**60 + 1, 2**60 + 2)

    def dressed():
        make = DRESSES[dress]
        return make(frame, tmp_path) if dress in FILES else make(frame)

    table = Table.from_arrays(dressed(), **DECLARED)
    assert table.schema == expected.schema
    assert table.fingerprint() == expected.fingerprint()
    again = Table.from_arrays(dressed(), schema=expected.schema)
    assert again.fingerprint() == expected.fingerprint()
    if dress in FILES:
        chunks = Table.from_files(tmp_path / FILES[dress], chunk_rows=7, **DECLARED)
        assert chunks.fingerprint() == expected.fingerprint()


def test_urls_that_lead_nowhere():
    """A bucket's name is as soon mistyped as a folder's."""
    pytest.importorskip("fsspec")
    with pytest.raises(DataError, match=r"no such file: memory://ship/none.csv"):
        Table.from_files("memory://ship/none.csv")
    with pytest.raises(DataError, match=r"cannot read nosuch://x.csv: .*nosuch"):
        Table.from_files("nosuch://x.csv")


def test_relations_of_duckdb_keep_categories_without_their_order(rng):
    """DuckDB hands its enums over without their order: they are nominal, with all their levels."""
    frame = patients(rng)
    unordered = frame.assign(pain=frame["pain"].cat.as_unordered())
    expected = Table.from_frame(unordered, **DECLARED)
    connection = pytest.importorskip("duckdb").connect()
    relation = duckdb_relation(frame, connection)
    for _ in range(2):  # it can be read again
        assert Table.from_frame(relation, **DECLARED).fingerprint() == expected.fingerprint()
    assert expected.schema.columns[-1].levels == tuple(sorted(PAIN))


def test_unused_texts_of_an_encoding_are_no_levels():
    """A polars Categorical is a way to store text; an Enum is a domain."""
    polars = pytest.importorskip("polars")
    rows = polars.DataFrame({"a": ["x", "y", "z"], "b": [1, 2, 3]})
    stored = rows.with_columns(polars.col("a").cast(polars.Categorical)).head(2)
    assert Table.from_frame(stored).schema.columns[0].levels == ("x", "y")
    domain = rows.with_columns(polars.col("a").cast(polars.Enum(["z", "y", "x"]))).head(2)
    assert Table.from_frame(domain).schema.columns[0].levels == ("z", "y", "x")


@pytest.mark.parametrize("cut", [pd.cut, pd.qcut])
def test_intervals_are_ordinal_in_every_dress(cut, tmp_path):
    """What pandas cuts has an order, also when Parquet or a pickle has carried it."""
    frame = pd.DataFrame({"age": cut(pd.Series([1.0, 3.0, 30.0, 70.0] * 3), 3), "b": [1, 2] * 6})
    expected = Table.from_frame(frame)
    levels = tuple(map(str, frame["age"].cat.categories))
    assert (expected.schema.columns[0].kind, expected.schema.columns[0].levels) == (
        "ordinal",
        levels,
    )
    plain = frame.assign(age=pd.arrays.IntervalArray(list(frame["age"])))
    plain.to_parquet(tmp_path / "plain.parquet")  # of categories Arrow writes no intervals
    for rows in (
        pickle.loads(pickle.dumps(frame)),
        pa.Table.from_pandas(frame),
        pa.Table.from_pandas(frame).to_reader(),
        plain,
        tmp_path / "plain.parquet",
    ):
        assert Table.from_arrays(rows).fingerprint() == expected.fingerprint()


DATES = [datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)]


@pytest.mark.parametrize(
    "dress",
    [
        pd.DataFrame,
        pa.table,
        lambda columns: pa.table(columns).to_reader(),
        lambda columns: pa.table(columns).to_pandas(types_mapper=pd.ArrowDtype),
        lambda columns: pytest.importorskip("polars").DataFrame(columns),
        lambda columns: pytest.importorskip("polars").LazyFrame(columns),
        lambda columns: dask_frame(pd.DataFrame(columns)),
    ],
)
def test_dates_are_refused_alike_in_every_dress(dress):
    """What to do about a date does not depend on who holds it."""
    with pytest.raises(DataError) as caught:
        Table.from_arrays(dress({"day": DATES, "b": [1, 2]}))
    assert str(caught.value) == (
        'column "day" holds dates or times such as 2020-01-01: '
        'convert it to text or numbers, drop it, or read its parts (ReadAs(dates="parts"))'
    )


def test_errors_of_a_plan_are_told_when_it_is_computed():
    """A lazy table fails late; the user should see why, in one line."""
    polars = pytest.importorskip("polars")
    plan = polars.LazyFrame({"a": ["1", "x"]}).with_columns(polars.col("a").cast(polars.Int64))
    with pytest.raises(DataError, match=r"cannot read the .* as Arrow data: conversion"):
        Table.from_frame(plan)
