"""Folders, patterns, lists and URLs of files are one table; models take them as they are."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from pandas.testing import assert_frame_equal

import bayescascade
from bayescascade.base.errors import DataError, ParameterError
from bayescascade.cli.application import application
from bayescascade.data.given import TextTypes
from bayescascade.data.table import Table

TITANIC = Path(__file__).parents[1] / "data" / "titanic.csv"


@pytest.fixture
def parts(tmp_path: Path) -> Path:
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


def test_parts_are_the_whole(parts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that was cut into several, or written by a cluster, is one table."""
    whole = Table.from_csv(TITANIC).fingerprint()
    files = [parts / "b.csv", str(parts / "more/c.csv.gz"), parts / "a.csv"]
    for read in (Table.from_files, Table.from_csv, Table.from_arrays):
        table = read([parts])  # type: ignore[operator]
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
def test_errors_name_the_file_and_its_row(
    second: str, message: str, chunk_rows: int, tmp_path: Path
) -> None:
    """Row 7 of all files together would be hard to find."""
    (tmp_path / "one.csv").write_text("b,a\n1,2\n2,2\n3,2\n")
    (tmp_path / "two.csv").write_text(second)
    with pytest.raises(DataError) as caught:
        Table.from_files(tmp_path, chunk_rows=chunk_rows, missing="error")
    assert message in str(caught.value)


def test_unknown_levels_are_found_in_their_file(parts: Path) -> None:
    """A level may itself read like a row's number."""
    frame = pd.read_csv(parts / "b.csv")
    frame.loc[4, "age"] = "in row 1"
    frame.to_csv(parts / "b.csv", index=False)
    message = 'column "age" has the unknown level "in row 1" in row 5 of b.csv; known levels: '
    with pytest.raises(DataError, match=message):
        Table.from_files(parts, schema=Table.from_csv(TITANIC).schema)
    with pytest.raises(DataError, match=message):
        Table.from_files(parts, ordinal={"age": ["child", "adult"]})


def test_folders_that_are_no_table(parts: Path, tmp_path: Path) -> None:
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
def test_models_are_fitted_to_files(parts: Path) -> None:
    """What is in a file need not be read by hand, weights and labels included."""
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


def test_commands_take_folders_and_patterns(parts: Path) -> None:
    """What a cluster wrote is fitted and scored without joining it first."""
    printed = []
    for data in (str(parts), f"{parts}/**/[a-c].*"):
        out = str(parts.parent / "model.json")
        fitted = [
            "fit",
            data,
            "--drop",
            "survived",
            "--seed",
            "1",
            "--out",
            out,
            "--leaf",
            "uniform",
        ]
        for arguments in (fitted, ["score", out, data]):
            result = CliRunner().invoke(application, arguments)
            assert result.exit_code == 0, result.output
            printed.append(result.output.partition("\n")[2])
    assert printed[:2] == printed[2:]


CELLS = ([], ["1", "-2"], ["0.5"], ["True"], ["x", "1e3"], [f"{2**63}"], [None])


def typed(*blocks: pd.DataFrame) -> list[pd.DataFrame]:
    """Return what blocks of one file are taken for."""
    types = TextTypes()
    for block in blocks:
        types.see(block)
    return [types.typed(block) for block in blocks if len(block)]


def test_blocks_of_text_are_typed_as_the_whole_file() -> None:
    """A number must not be text in the block of a file in which it stands beside numbers alone."""
    for kinds in itertools.combinations(CELLS, 3):
        blocks = [pd.DataFrame({"x": pd.Series(cells, dtype=object)}) for cells in kinds]
        (whole,) = typed(pd.concat(blocks, ignore_index=True))
        parts = typed(*blocks)
        assert [part["x"].dtype for part in parts] == [whole["x"].dtype] * len(parts), kinds
        assert_frame_equal(pd.concat(parts, ignore_index=True), whole)
