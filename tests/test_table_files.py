"""Tables from CSV and Parquet files, in chunks: the same table as from memory."""

import io
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from bayescascade.base.errors import DataError, ParameterError
from bayescascade.data import cell_texts, text_files
from bayescascade.data.table import Table

DATA = Path(__file__).parents[1] / "data"


def assert_same_table(actual: Table, expected: Table) -> None:
    assert actual.schema == expected.schema
    assert actual.fingerprint() == expected.fingerprint()
    assert (actual.n_rows, actual.total_weight) == (expected.n_rows, expected.total_weight)
    assert set(actual.notes) >= set(expected.notes)  # a file's cells have more to be said of


TYPED_CELLS = {  # without leading zeros, which pandas drops, and outer blanks, which it keeps
    "whole": st.sampled_from(["1", "2", "10"]),
    "spelled": st.sampled_from(["1", "1.0", "1e0", "-0", "2"]),
    "number": st.sampled_from(["0.1", "1", "1e-3", "-7.25", "3"]),
    "truth": st.sampled_from(["True", "false", "TRUE"]),
    "text": st.sampled_from(["a", "b c", 'say "x"', "two\nlines", "comma, here", "ä", "a a"]),
    "mixed": st.sampled_from(["1", "a", "True", "0.5"]),
    # Beyond 2**53 pandas rounds integers beside missing cells; text is read exactly.
    "wide": st.integers(-(2**53), 2**53).map(str),
}


@pytest.mark.slow
@given(data=st.data())
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25
)
def test_any_csv_is_read_as_pandas_reads_it(data, tmp_path_factory):
    """Types, quotes and missing cells mean the same, however the file is cut into chunks."""
    n_rows = data.draw(st.integers(2, 12))
    kinds = data.draw(st.lists(st.sampled_from(sorted(TYPED_CELLS)), min_size=1, max_size=4))
    missing = st.sampled_from(["", "NA", "nan", "None"])
    columns = {}
    for index, kind in enumerate(kinds):
        cells = TYPED_CELLS[kind] | missing if data.draw(st.booleans()) else TYPED_CELLS[kind]
        columns[f"{kind}{index}"] = data.draw(st.lists(cells, min_size=n_rows, max_size=n_rows))
    columns["count"] = data.draw(
        st.lists(st.sampled_from(["0.1", "0.7", "3"]), min_size=n_rows, max_size=n_rows)
    )
    path = tmp_path_factory.mktemp("csv") / "any.csv"
    pd.DataFrame(columns).to_csv(path, index=False, lineterminator="\n")
    numeric = [name for name in columns if name.startswith("number")]
    declared = {
        "missing": "level",
        "weights": "count",
        "nominal": [name for name in columns if name.startswith("wide")],
        data.draw(st.sampled_from(["nominal", "ordinal"])): numeric,
    }

    def read(make):
        try:
            return make()
        except DataError as error:
            return str(error)

    expected = read(lambda: Table.from_frame(pd.read_csv(path), **declared))
    for chunk_rows in (1, 5, 1000):
        actual = read(lambda size=chunk_rows: Table.from_csv(path, chunk_rows=size, **declared))
        if isinstance(expected, str) or isinstance(actual, str):
            assert actual == expected
        else:
            assert_same_table(actual, expected)


@pytest.mark.parametrize(
    ("text", "names", "n_rows"),
    [
        ("\ufeffa,b\r\n1,2\r\n2,2\r\n", ("a", "b"), 2),
        ("\na\n\n1\n\n2\n", ("a",), 2),
        (",a\n0,x\n1,y\n", ("Unnamed: 0", "a"), 2),
        ('"first\nname",b\n1,2\n2,2', ("first\nname", "b"), 2),
    ],
    ids=["windows", "blank lines", "stored index", "quoted header"],
)
def test_headers_and_line_ends(text, names, n_rows, tmp_path):
    """Files from spreadsheets and from pandas itself are read as pandas reads them."""
    path = tmp_path / "odd.csv"
    path.write_bytes(text.encode())
    table = Table.from_csv(path)
    assert table.schema.names == names
    assert table.n_rows == n_rows
    assert_same_table(table, Table.from_frame(pd.read_csv(io.BytesIO(text.encode()))))


def test_missing_texts_are_those_of_pandas():
    """Another version of pandas may have another list."""
    for text in (*cell_texts.MISSING_TEXTS, "missing", "-", "?", "nil", "NAN"):
        cell = pd.read_csv(io.StringIO(f"a,b\n{text},1\n"))["a"]
        assert cell.isna().all() == (text in cell_texts.MISSING_TEXTS)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "x.csv must have a header and rows, got an empty file"),
        (b"a,b\n", "x.csv must have at least one row, got none"),
        (b"a,b,a\n1,2,3\n", 'column names must be different, got "a" more than once'),
        (b"a,b\n1,2\n3\n", "x.csv: every row must have 2 cells, got 1 in row 2"),
        (b"a,b\n1,2\n3,4,5\n", "x.csv: every row must have 2 cells, got 3 in row 2"),
        (b"a,b\n" + b"1,2\n" * 70_000 + b"\xe4,4\n", "x.csv must be UTF-8 text: convert its"),
        (b"\x81,b\n1,2\n", "x.csv must be UTF-8 text: convert its encoding"),
        (b"a,b\n1,2\n2,inf\n", 'column "b" must hold finite numbers, got inf in row 2'),
        (b"a,b\n1,2\n", "at least one column must vary, got 1 row with the same values"),
    ],
)
def test_unusable_csv_files(content, message, tmp_path):
    (tmp_path / "x.csv").write_bytes(content)
    for chunk_rows in (1, 1000):
        with pytest.raises(DataError) as caught:
            Table.from_csv(tmp_path / "x.csv", chunk_rows=chunk_rows)
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["nominal", "ordinal"])
def test_infinities_in_text_are_no_levels(kind, tmp_path):
    """Else the model could be fitted, but not saved."""
    (tmp_path / "x.csv").write_text("a,b\n1,2\ninf,3\n-inf,4\n")
    with pytest.raises(DataError, match=r'column "a" must hold finite numbers, got -?inf'):
        Table.from_csv(tmp_path / "x.csv", **{kind: ["a"]})
    (tmp_path / "x.csv").write_text("a,b\none,2\ninf,3\n")
    assert Table.from_csv(tmp_path / "x.csv").schema.columns[0].levels == ("inf", "one")


def test_ragged_rows_are_numbered_far_into_a_file(tmp_path, monkeypatch):
    """The row's number counts from the start of the file, not of a block."""
    monkeypatch.setattr(text_files, "_CSV_BLOCK_BYTES", 256)
    (tmp_path / "x.csv").write_text("a,b\n" + "1,2\n" * 999 + "1\n")
    with pytest.raises(DataError, match="got 1 in row 1000"):
        Table.from_csv(tmp_path / "x.csv")


@pytest.mark.parametrize("read", [Table.from_csv, Table.from_parquet])
def test_unreadable_paths(read, tmp_path):
    (tmp_path / "x.gz").write_bytes(b"\x1f\x8b\x08 this is neither compressed nor a table")
    for path, message in (
        ("none.csv", "no such file"),
        ("", "is a directory without (CSV|Parquet) files"),
        ("x.gz/y", "no such file"),
        ("x.gz", "cannot read x.gz"),
    ):
        with pytest.raises(DataError, match=message) as caught:
            read(tmp_path / path)
        assert "\n" not in str(caught.value)
    with pytest.raises(ParameterError, match="chunk_rows must be an integer >= 1, got 0"):
        read(DATA / "titanic.csv", chunk_rows=0)


def test_an_identifier_is_found_before_the_end_of_the_file(tmp_path):
    """A column of a billion different values must not be collected until memory is full."""
    path = tmp_path / "x.csv"
    path.write_text("id,a\n" + "".join(f"u{i},{i % 2}\n" for i in range(70_000)))
    with pytest.raises(DataError, match='column "id" has a different value in every row'):
        Table.from_csv(path, chunk_rows=10_000)


# Linux counts the parent's memory into a child's ru_maxrss, but not into this.
PEAK_MEMORY = """
import pathlib, re, sys
from bayescascade.data.table import Table
table = Table.from_csv(sys.argv[1])
status = pathlib.Path("/proc/self/status").read_text()
print(table.n_rows, int(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1]) // 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_does_not_grow_with_the_file(tmp_path, rng):
    """A file of any size over a small domain is read in the memory of a chunk."""
    header = ",".join(f"c{i}" for i in range(20)) + "\n"
    codes = rng.integers(0, 4, (10_000, 20)).tolist()
    lines = "".join(",".join(f"level_{code}" for code in row) + "\n" for row in codes)
    path = tmp_path / "long.csv"
    peaks = []
    for n_repeats in (10, 100):
        path.write_text(header + lines * n_repeats)
        run = [sys.executable, "-c", PEAK_MEMORY, str(path)]
        result = subprocess.run(run, capture_output=True, text=True, check=True)
        n_rows, megabytes = map(int, result.stdout.split())
        assert n_rows == 10_000 * n_repeats
        peaks.append(megabytes)
    assert peaks[1] < 500
    assert peaks[1] - peaks[0] < 120  # of 100 MB more text, some blocks are read ahead


@pytest.mark.parametrize(
    ("found", "damaged"),
    [
        (b'"index_columns": [', b'"index_columns"; ['),
        (b'"kind": "range"', b'"kine": "range"'),
        (b'"kind": "range"', b'"kind": "rangf"'),
        (b'"kind": "range"', b'"kind": "r\xf8nge"'),
    ],
)
def test_what_pandas_noted_in_a_file_may_be_damaged(tmp_path, found, damaged):
    """Errors of json and of pandas came through as they were."""
    table = pyarrow.Table.from_pandas(pd.DataFrame({"a": ["x", "y"], "b": [1, 2]}))
    noted = table.schema.metadata[b"pandas"]
    assert found in noted
    table = table.replace_schema_metadata({b"pandas": noted.replace(found, damaged)})
    pyarrow.parquet.write_table(table, tmp_path / "rows.parquet")
    with pytest.raises(DataError, match=r"rows\.parquet is damaged: its pandas metadata") as caught:
        Table.from_parquet(tmp_path / "rows.parquet")
    assert "\n" not in str(caught.value)


def test_texts_of_columns_may_be_damaged(tmp_path):
    """Bytes that are no text came through as an error of Python's codecs."""
    frame = pd.DataFrame({"a": ["first", "second"]})
    frame.to_parquet(tmp_path / "rows.parquet", compression=None)
    content = (tmp_path / "rows.parquet").read_bytes()
    (tmp_path / "rows.parquet").write_bytes(content.replace(b"second", b"se\xffond"))
    with pytest.raises(DataError, match=r"rows\.parquet.*UTF8"):
        Table.from_parquet(tmp_path / "rows.parquet")
