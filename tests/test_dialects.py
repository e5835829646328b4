"""Text files of other programs and countries: the same table, and a note on how it is read."""

import gzip

import numpy as np
import pandas as pd
import pytest

from bayescascade import Table
from tests.cli.conftest import run
from tests.documents import ROOT

N = 400
FRAME = pd.DataFrame(
    {
        "größe": np.random.default_rng(0).normal(170, 9, N).round(2),
        "ort": np.random.default_rng(1).choice(["Köln", "Saint-Étienne", "a, b", "x; y"], N),
        "kinder": np.random.default_rng(2).integers(0, 4, N),
    }
)
PLAIN = FRAME.to_csv(index=False)


def decimal_commas(frame):
    return frame.to_csv(index=False, sep=";", decimal=",")


@pytest.mark.parametrize(
    ("text", "encoding", "words"),
    [
        (PLAIN, "utf-8", None),
        (PLAIN, "utf-8-sig", None),
        (FRAME.to_csv(index=False, sep=";"), "utf-8", '";" between cells'),
        (FRAME.to_csv(index=False, sep="\t"), "utf-16", "tabs between cells, encoding utf-16"),
        (FRAME.to_csv(index=False, sep="|"), "utf-8", '"|" between cells'),
        (decimal_commas(FRAME), "utf-8", '";" between cells, decimal commas'),
        (decimal_commas(FRAME), "cp1252", '";" between cells, decimal commas, encoding cp1252'),
        (PLAIN, "cp1252", "encoding cp1252"),
    ],
)
def test_a_file_is_the_same_table_however_it_is_written(tmp_path, text, encoding, words):
    plain, path = tmp_path / "plain.csv", tmp_path / "rows.csv.gz"
    plain.write_text(PLAIN, encoding="utf-8")
    path.write_bytes(gzip.compress(text.encode(encoding)))
    whole, read = Table.from_csv(plain), Table.from_csv(path)
    assert read.fingerprint() == whole.fingerprint()
    texts = [f"rows.csv.gz is read as text with {words}"] * (words is not None)
    assert list(read.notes) == [*texts, *whole.notes]


def test_files_of_one_table_may_differ(tmp_path):
    (tmp_path / "parts").mkdir()
    for i, text in enumerate((PLAIN, decimal_commas(FRAME))):
        (tmp_path / "parts" / f"{i}.csv").write_text(text, encoding="utf-8")
    twice = pd.concat([FRAME, FRAME]).to_csv(index=False)
    (tmp_path / "plain.csv").write_text(twice, encoding="utf-8")
    both, plain = Table.from_csv(tmp_path / "parts"), Table.from_csv(tmp_path / "plain.csv")
    assert both.fingerprint() == plain.fingerprint()
    assert len([note for note in both.notes if "1.csv is read as text" in note]) == 1


@pytest.mark.parametrize(
    ("text", "n_columns"),
    [
        ("a\nx;y\nz\n", 1),  # one column, whose cells may hold anything
        ("a,b\n1;2,3\n4;5,6\n", 2),
        ('a,b\n"x;y",1\nz,2\n', 2),
        ("a|b\n1|2\n3|4\n", 2),
        ("a;b\n1,5;x\n2,5;y\n", 2),
        ("a;b\n1,5;x\n1,5;y", 2),  # no end of the last line
        ("a, b;c;d\n1,5;x;y\n2,5;y;z\n", 3),  # a comma in each row, and in a name
    ],
)
def test_what_is_in_cells_is_no_delimiter(tmp_path, text, n_columns):
    (tmp_path / "t.csv").write_text(text)
    assert Table.from_csv(tmp_path / "t.csv").schema.n_columns == n_columns


def test_codes_with_commas_stay_as_they_are(tmp_path):
    """A column of sets of codes is no column of numbers; nor is there another that has decimals."""
    (tmp_path / "t.csv").write_text("codes;n\n1,2;3\nnone;4\n")
    assert Table.from_csv(tmp_path / "t.csv").schema.columns[0].levels == ("1,2", "none")


def test_a_character_cut_at_the_end_of_what_is_looked_at_is_no_other_encoding(tmp_path):
    (tmp_path / "t.csv").write_text("ab\na\n" + "ö\n" * 200_000, encoding="utf-8")
    table = Table.from_csv(tmp_path / "t.csv")
    assert table.schema.columns[0].levels == ("a", "ö")
    assert table.total_weight == 200_001


@pytest.mark.slow
def test_commands_say_how_a_file_is_read(tmp_path):
    titanic = pd.read_csv(ROOT / "data" / "titanic.csv")
    path = tmp_path / "titanic.csv"
    titanic.to_csv(path, index=False, sep=";")
    options = ("--target", "survived", "--seed", 0, "--steps", 500)
    found, plain = (
        run("classify", data, *options) for data in (path, ROOT / "data" / "titanic.csv")
    )
    assert found.stdout == plain.stdout
    assert found.stderr.count('note: titanic.csv is read as text with ";" between cells\n') == 1
