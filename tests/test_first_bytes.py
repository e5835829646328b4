"""Files that are not what their names say: read as what they are, or refused in a line."""

import bz2
import gzip
import json
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest

from bayescascade import DataError, Table
from tests.cli.conftest import assert_error, run

N = 60
ROWS = pd.DataFrame(
    {
        "age": np.random.default_rng(0).integers(20, 80, N),
        "sex": np.random.default_rng(1).choice(["f", "m"], N),
        "y": ["ill", "well", "well"] * (N // 3),
    }
)
TEXT = ROWS.to_csv(index=False)


@pytest.fixture
def plain(tmp_path):
    (tmp_path / "plain.csv").write_text(TEXT)
    return Table.from_csv(tmp_path / "plain.csv")


def zipped(path, members):
    with ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize("name", ["rows.csv", "rows", "rows.csv.gz", "rows.txt.bz2"])
@pytest.mark.parametrize("packed", [gzip.compress, bz2.compress, lambda content: content])
def test_compressed_text_is_read_whatever_its_name_is(tmp_path, plain, name, packed):
    """Browsers decompress files, or keep the name; a pipe leaves no name."""
    (tmp_path / name).write_bytes(packed(TEXT.encode()))
    for read in Table.from_files, Table.from_csv:
        assert read(tmp_path / name).fingerprint() == plain.fingerprint()


def test_a_zip_archive_of_one_table_is_read(tmp_path, plain):
    more = {"__MACOSX/._a.csv": "x", "read me.md": "about", "data/": ""}
    for name, members in (("rows.csv", {"a.csv": TEXT}), ("z.zip", {"data/a.csv": TEXT, **more})):
        table = Table.from_files(zipped(tmp_path / name, members))
        assert table.fingerprint() == plain.fingerprint()
        assert f"{name} is a zip archive: {next(iter(members))} is read" in table.notes
    ROWS.to_parquet(tmp_path / "a.parquet")
    inner = {"a.parquet": (tmp_path / "a.parquet").read_bytes()}
    read = Table.from_files(zipped(tmp_path / "z.zip", inner))
    assert read.fingerprint() == plain.fingerprint()
    two = zipped(tmp_path / "z.zip", {"a.csv": TEXT, "b.csv": TEXT})
    with pytest.raises(DataError, match=r"one table, got 2 files \(a.csv, b.csv\): unpack it"):
        Table.from_files(two)


@pytest.mark.parametrize("name", ["rows.dta", "rows.csv"])
@pytest.mark.parametrize("version", [114, 118])
def test_stata_files_are_read(tmp_path, name, version):
    """Labels of values are levels, and have no order."""
    sex = ROWS["sex"].astype("category")
    ROWS.assign(sex=sex).to_stata(tmp_path / name, write_index=False, version=version)
    table = Table.from_files(tmp_path / name)
    assert [c.kind for c in table.schema.columns] == ["continuous", "nominal", "nominal"]
    assert table.schema.columns[1].levels == ("f", "m")
    assert any("read as Stata" in note for note in table.notes) == (name == "rows.csv")


def test_tables_of_columns_are_read_whatever_their_names_are(tmp_path, plain):
    ROWS.to_parquet(tmp_path / "p.csv")
    ROWS.to_feather(tmp_path / "f.csv", compression="uncompressed")
    for name in ("p.csv", "f.csv"):
        assert Table.from_files(tmp_path / name).fingerprint() == plain.fingerprint()
        with pytest.raises(DataError, match="must be a CSV file"):
            Table.from_csv(tmp_path / name)
    (tmp_path / "rows.xls").write_text(ROWS.to_csv(index=False, sep="\t"))
    assert Table.from_files(tmp_path / "rows.xls").fingerprint() == plain.fingerprint()


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (json.dumps(ROWS.to_dict("records")), "a JSON file"),
        (json.dumps(ROWS.to_dict("list"), indent=2), "a JSON file"),
        ("\ufeff\n<!DOCTYPE HTML>\n<p>Log in", "an HTML page"),
        ("<table><tr><td>1</td></tr></table>", "an HTML page"),
        ('<?xml version="1.0"?><rows/>', "an XML file"),
        (b"%PDF-1.7\n", "a PDF document"),
        (b"\x80\x04\x95", "a pickle"),
        (b"abc\0\0\0def", "a binary file"),
        (b"SQLite format 3\0", "an SQLite database"),
    ],
)
@pytest.mark.parametrize("name", ["rows.csv", "rows.xls", "rows.csv.gz", "rows.zip"])
def test_what_is_no_table_is_refused_in_a_line(tmp_path, content, what, name):
    """As text, each of these is a table of one column, or an error about widths."""
    content = content.encode() if isinstance(content, str) else content
    path = tmp_path / name
    if name.endswith(".zip"):
        zipped(path, {"a": content})
    else:
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    with pytest.raises(DataError, match=f"{name} must hold a table, got {what}: read it"):
        Table.from_files(path)


def test_commands_refuse_them_in_a_line(tmp_path):
    (tmp_path / "rows.csv").write_text("[\n" + json.dumps({"a": 1}))
    result = run("classify", tmp_path / "rows.csv", "--target", "a")
    assert_error(result, "rows.csv must hold a table, got a JSON file: save it as CSV or Parquet")


def test_damaged_archives_are_refused(tmp_path):
    path = zipped(tmp_path / "z.zip", {"a.csv": TEXT * 99})
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], whole.replace(b"a.csv", b"b.csv", 1)):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"cannot read z.zip"):
            Table.from_files(path)
    path.write_bytes(gzip.compress(TEXT.encode())[:-20])
    with pytest.raises(DataError, match=r"z.zip"):
        Table.from_files(path)


def test_the_separator_that_excel_writes_is_no_header(tmp_path, plain):
    """The header would be "sep=", and the header's line a row."""
    for sep in ";", ",", "\t":
        for end in "\n", "\r\n":
            text = f"sep={sep}{end}" + ROWS.to_csv(index=False, sep=sep, lineterminator=end)
            (tmp_path / "e.csv").write_bytes(text.encode())
            assert Table.from_csv(tmp_path / "e.csv").fingerprint() == plain.fingerprint()
