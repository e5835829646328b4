"""Folders, patterns, lists and URLs of files are one table; models take them as they are."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import bayescascade
from bayescascade.base.errors import DataError, ParameterError
from bayescascade.data.given import TextTypes
from bayescascade.data.table import Table
from tests.commands import command

TITANIC = Path(__file__).parents[1] / "data" / "titanic.csv"


@pytest.fixture
def parts(tmp_path):
    """Return a folder of the Titanic's rows in three files, beside what are no data."""
    folder = tmp_path / "parts"
    (folder / "more").mkdir(parents=True)
    frame = pd.read_csv(TITANIC)
    for name, rows in (
        ("b.csv", frame[900:1500]),
        ("a.csv", frame[:900]),
        ("more/c.csv.gz", frame[1500:]),
    ):
        rows.to_csv(folder / name, index=False)
    (folder / "README.txt").write_text("no data")
    (folder / ".hidden.csv").write_text("x\n1\n")
    return folder


def survey(folder: Path) -> pd.DataFrame:
    """Return rows that text can hold, as pandas reads them: numbers to be cut, gaps, weights."""
    rng, n = np.random.default_rng(8), 120
    frame = pd.DataFrame(
        {
            "sex": rng.choice(["f", "m, or so", None], n),
            "age": np.where(rng.random(n) < 0.2, np.nan, rng.integers(1, 90, n)),
            "x": rng.integers(-(2**20), 2**20, n) / 8,  # which every parser reads back
            "truth": rng.random(n) < 0.4,
            "late": [1.0] * (n - 1) + [2.5],  # known to be real in the last row
            "n": rng.integers(1, 64, n) / 8,
        }
    )
    frame.to_csv(folder / "rows.csv", index=False)
    return pd.read_csv(folder / "rows.csv")


def written(frame: pd.DataFrame, folder: Path) -> dict[str, Any]:
    """Return the rows in files of all kinds, whole or in parts."""
    frame.to_csv(folder / "rows.csv.gz", index=False)
    odd = frame.set_index(pd.Index(range(5, 5 + len(frame)), name="id"))
    odd.to_parquet(folder / "rows.parquet", row_group_size=50)
    (folder / "cut" / "more").mkdir(parents=True)
    names = ("a.csv", "b.csv", "more/c.csv.gz")
    for name, (low, high) in zip(names, ((0, 50), (50, 51), (51, 120)), strict=True):
        frame[low:high].to_csv(folder / "cut" / name, index=False)
    memory = pytest.importorskip("fsspec").filesystem("memory")
    memory.pipe("/ship/rows.parquet", (folder / "rows.parquet").read_bytes())
    return {
        "csv": folder / "rows.csv",
        "gz": folder / "rows.csv.gz",
        "parquet": folder / "rows.parquet",
        "url": "memory://ship/*.parquet",
        "list": [folder / "cut" / name for name in names],
        "pattern": f"{folder}/cut/**/[a-c].*",
        "dask": pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=70),
    }


DECLARED = (
    {},
    {"weights": "n", "continuous": {"x": 25}, "columns": ["x", "truth", "sex"]},
    {"ordinal": {"sex": ["m, or so", "f"]}, "nominal": ["age"], "drop": ["n", "x"]},
)


@pytest.mark.slow
@pytest.mark.parametrize("declared", DECLARED)
def test_files_are_the_frame_that_was_written(declared, tmp_path):
    """Whatever is declared, weighed or cut into chunks, files, or partitions of Dask's."""
    frame = survey(tmp_path)
    expected = Table.from_frame(frame, **declared)
    for way, rows in written(frame, tmp_path).items():
        tables = [Table.from_frame(rows, **declared)] if way == "dask" else []
        tables += [Table.from_dask(rows, **declared)] if way in ("dask", "csv") else []
        sizes = () if way == "dask" else (1, 17, 1000) if not declared else (17,)
        tables += [Table.from_files(rows, chunk_rows=size, **declared) for size in sizes]
        for table in tables:
            assert table.schema == expected.schema, way
            assert table.fingerprint() == expected.fingerprint(), way
            assert (table.n_rows, table.total_weight) == (120, expected.total_weight)
            assert table.notes == expected.notes


def test_parts_are_the_whole(parts, monkeypatch):
    """A file that was cut into several, or written by a cluster, is one table."""
    whole = Table.from_csv(TITANIC).fingerprint()
    files = [parts / "b.csv", str(parts / "more/c.csv.gz"), parts / "a.csv"]
    for read in (Table.from_files, Table.from_csv, Table.from_arrays):
        table = read([parts])
        assert (table.fingerprint(), table.n_rows) == (whole, 2201)
    assert Table.from_files(parts).source == "parts"
    assert Table.from_files(files).source == "b.csv and 2 more"
    monkeypatch.chdir(parts)
    assert Table.from_files("[ab].csv", drop=["age"]).n_rows == 1500


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("a,b\n1,2\n3,\n", 'column "b" has 1 missing cell, the first in row 2 of two.csv:'),
        ("a,b\n1,2\n3\n", "two.csv: every row must have 2 cells, got 1 in row 2"),
        ("a,c\n1,2\n", 'column "b" is missing from two.csv, but one.csv has it'),
        ("a,b,c\n1,2,3\n", 'column "c" of two.csv is missing from one.csv: files that are read'),
    ],
)
@pytest.mark.parametrize("chunk_rows", [1, 100])
def test_errors_name_the_file_and_its_row(second, message, chunk_rows, tmp_path):
    """Row 7 of all files together would be hard to find."""
    (tmp_path / "one.csv").write_text("b,a\n1,2\n2,2\n3,2\n")
    (tmp_path / "two.csv").write_text(second)
    with pytest.raises(DataError) as caught:
        Table.from_files(tmp_path, chunk_rows=chunk_rows, missing="error")
    assert message in str(caught.value)


def test_unknown_levels_are_found_in_their_file(parts):
    """A level may itself read like a row's number."""
    frame = pd.read_csv(parts / "b.csv")
    frame.loc[4, "age"] = "in row 1"
    frame.to_csv(parts / "b.csv", index=False)
    message = 'column "age" has the unknown level "in row 1" in row 5 of b.csv; known levels: '
    with pytest.raises(DataError, match=message):
        Table.from_files(parts, schema=Table.from_csv(TITANIC).schema)
    with pytest.raises(DataError, match=message):
        Table.from_files(parts, ordinal={"age": ["child", "adult"]})


def test_folders_that_are_no_table(parts, tmp_path):
    """Mixed formats, and columns that only names of folders tell, are refused in words."""
    with pytest.raises(DataError, match=r"no such file: .*none\*"):
        Table.from_files(tmp_path / "none*")
    with pytest.raises(DataError, match="at least one file must be given, got none"):
        Table.from_files([])
    with pytest.raises(DataError, match="is a directory without Parquet files"):
        Table.from_parquet(parts)
    pd.read_csv(TITANIC).to_parquet(parts / "more" / "d.parquet")
    with pytest.raises(DataError, match=r"files of one format, got a.csv and d.parquet"):
        Table.from_files(parts)
    assert Table.from_parquet(parts).n_rows == 2201
    year = tmp_path / "years" / "year=1912"
    year.mkdir(parents=True)
    (year / "a.csv").write_text("a\n1\n2\n")
    with pytest.raises(DataError, match=r"years is partitioned by year, .*partitioning=\"hive\""):
        Table.from_files(tmp_path / "years")


@pytest.mark.slow
def test_models_are_fitted_to_files(parts):
    frame = pd.read_csv(TITANIC)
    settings: dict[str, Any] = {"n_steps": 100, "n_chains": 1, "random_state": 1}
    density = bayescascade.LeafCascade(search="anneal", **settings)
    expected = density.fit(frame).score_samples(frame)
    for paths in (TITANIC, str(TITANIC), parts):
        np.testing.assert_array_equal(density.fit(paths).score_samples(paths), expected)
    counted = frame.value_counts().reset_index(name="n")
    counted.to_csv(parts.parent / "counted.csv", index=False)
    density.fit(parts.parent / "counted.csv", sample_weight="n")
    np.testing.assert_array_equal(density.score_samples(frame), expected)
    X, y = frame.drop(columns="survived"), frame["survived"]
    for model in (
        bayescascade.RuleListClassifier(search="anneal", **settings),
        bayescascade.BudgetedForestClassifier(max_trees=2, random_state=1),
        bayescascade.NeighborCompressionClassifier(n_prototypes=4, random_state=1),
        bayescascade.RadoBoostClassifier(n_rados=20, random_state=1),
    ):
        probabilities = model.fit(X, y).predict_proba(X)
        np.testing.assert_array_equal(
            model.fit(TITANIC, "survived").predict_proba(X), probabilities
        )
        np.testing.assert_array_equal(model.predict_proba(TITANIC), probabilities)
        accuracy = model.score(X, y)
        assert model.score(TITANIC, "survived") == model.score([str(TITANIC)], y) == accuracy
        assert model.score(parts.parent / "counted.csv", "survived", "n") == pytest.approx(accuracy)
        with pytest.raises(
            ParameterError,
            match=r"y must be the labels, or the name of the label column in .*titanic",
        ):
            model.fit(TITANIC, None)
        with pytest.raises(ParameterError, match=r"y must name a column of .*, got 'lived': class"):
            model.fit(TITANIC, "lived")


def test_commands_take_folders_and_patterns(parts):
    printed = []
    for data in (parts, f"{parts}/**/[a-c].*"):
        out = parts.parent / "model.json"
        fit = ("fit", data, "--drop", "survived", "--seed", 1, "--leaf", "uniform", "--out", out)
        printed += [command(*words).partition("\n")[2] for words in (fit, ("score", out, data))]
    assert printed[:2] == printed[2:]


CELLS = ([], ["1", "-2"], ["0.5"], ["True"], ["x", "1e3"], [f"{2**63}"], [None])


def typed(*blocks: pd.DataFrame) -> list[pd.DataFrame]:
    """Return what blocks of one file are taken for."""
    types = TextTypes()
    for block in blocks:
        types.see(block)
    return [types.typed(block) for block in blocks if len(block)]


def test_blocks_of_text_are_typed_as_the_whole_file():
    """A number must not be text in the block of a file in which it stands beside numbers alone."""
    for kinds in itertools.combinations(CELLS, 3):
        blocks = [pd.DataFrame({"x": pd.Series(cells, dtype=object)}) for cells in kinds]
        (whole,) = typed(pd.concat(blocks, ignore_index=True))
        parts = typed(*blocks)
        assert [part["x"].dtype for part in parts] == [whole["x"].dtype] * len(parts), kinds
        assert_frame_equal(pd.concat(parts, ignore_index=True), whole)
