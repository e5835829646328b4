"""Cells that look like something else: they are not changed without a word."""

import numpy as np
import pandas as pd
import pytest

from bayescascade import DataError, ReadAs, Table
from bayescascade.data.given import GivenRows
from bayescascade.data.levels import parse_texts, without_codes
from tests.cli.conftest import run

N = 300
RNG = np.random.default_rng(0)
ZIPS = ["00501", "01201", "90210"]


def written(tmp_path, name="rows.csv", **columns):
    rows = {"y": ["a", "b", "b"] * (N // 3), **columns}
    pd.DataFrame(rows).to_csv(tmp_path / name, index=False)
    return tmp_path / name


def levels_of(table, name):
    return next(c.levels for c in table.schema.columns if c.name == name)


@pytest.mark.parametrize("how", [{}, {"nominal": ["zip"]}, {"ordinal": ["zip"]}])
def test_codes_keep_their_zeros(tmp_path, how):
    """As a number, 00501 would be printed, scored and written as 501."""
    path = written(tmp_path, zip=ZIPS * (N // 3))
    table = Table.from_csv(path, **how)
    assert levels_of(table, "zip") == tuple(ZIPS)
    assert any("leading zeros, as in 00501" in note for note in table.notes) == (not how)
    assert GivenRows.of(path).cells["zip"].tolist() == ZIPS * (N // 3)
    assert table.schema.encode({"zip": "00501", "y": "a"}).tolist() == [[0], [0]]
    later = written(tmp_path, "later.csv", zip=["90210"] * N)  # none of these looks like a code
    assert set(table.schema.encode(later)[1]) == {2}
    with pytest.raises(DataError, match='unknown level "501"'):
        table.schema.encode({"zip": 501, "y": "a"})


@pytest.mark.parametrize("codes", [["0", "10", "7"], ["0.5", "00.25", "7"], ["-1", "0", "3"]])
def test_numbers_stay_numbers(codes):
    assert not any(isinstance(number, str) for number in parse_texts(codes))


def test_many_codes_are_no_numbers(tmp_path):
    """Columns of over a thousand values are read in another way."""
    codes = [f"{i:05d}" for i in range(1_500)] * 2
    pd.DataFrame({"zip": codes, "y": ["a", "b", "b"] * 1_000}).to_csv(tmp_path / "r.csv")
    with pytest.raises(DataError, match='"zip" has 1,500 levels'):
        Table.from_csv(tmp_path / "r.csv")
    assert Table.from_csv(tmp_path / "r.csv", continuous={"zip": 4}).schema.columns[1].is_whole


def test_a_code_for_missing_cells_is_no_number_if_it_has_zeros():
    cells = pd.Series(["0", "00", "-9", "-9.0"])
    assert without_codes(cells, ["00", -9]).isna().tolist() == [False, True, True, True]


def test_digits_that_bins_lose_are_told_of(tmp_path):
    """Floats have 16 digits; identifiers often have more."""
    path = written(tmp_path, id=[10**18 + 1_000 * i for i in range(N)])
    assert any("bins ignore their digits after the 16th" in n for n in Table.from_csv(path).notes)
    path = written(tmp_path, id=[10**20 + i % 50 for i in range(N)])
    try:  # pandas before 3 reads them as text, with all digits
        columns = Table.from_csv(path).schema.columns
        found = str([column.n_levels for column in columns if column.name == "id"])
    except DataError as error:
        found = str(error)
    assert found == "[50]" or "differ only beyond the 16 digits" in found


MARKED = RNG.normal(5, 1, N).round(1).astype(str).astype(object)
MARKED[3], MARKED[77] = "<0.5", ">10"


def test_numbers_with_odd_cells_name_cell_row_and_option(tmp_path):
    """Otherwise a column of numbers is 60 levels, or advice on rare levels."""
    path = written(tmp_path, lab=MARKED)
    texts = [note for note in Table.from_csv(path).notes if '"lab"' in note]
    assert texts[0].startswith(
        'column "lab" holds numbers but for "<0.5" in row 4, ">10" in row 78 '
        "(ReadAs(na={'lab': ['<0.5', '>10']}) reads missing cells there)"
    )
    read = Table.from_files(ReadAs(path, na={"lab": ["<0.5", ">10"]}))
    assert read.schema.columns[1].kind == "continuous"
    many = [f"{i / 7:.3f}" for i in range(N - 1)] + ["about 3"]
    with pytest.raises(DataError, match=r'numbers but for "about 3" in row 300'):
        Table.from_csv(written(tmp_path, lab=many))
    few = ["1", "2", "3+"] * (N // 3)  # categories
    assert not [note for note in Table.from_csv(written(tmp_path, lab=few)).notes if "lab" in note]


def test_commands_tell_of_odd_cells_once(tmp_path):
    path = written(tmp_path, lab=MARKED, zip=ZIPS * (N // 3))
    quick = ("--cv", 0, "--search", "anneal", "--steps", 50, "--chains", 1, "--seed", 0)
    result = run("classify", path, "--target", "y", *quick)
    assert result.exit_code == 0, result.stderr
    words = " ".join(result.stderr.split())
    assert words.count('"<0.5" in row 4') == words.count("as in 00501") == 1
    assert "--na lab:'<0.5,>10'" in words


@pytest.mark.parametrize(
    "pair", [("No", "no"), ("a b", "a  b"), ("Köln", "Ko\u0308ln"), ("a", "a ")]
)
def test_levels_that_look_alike_are_named(pair):
    """They are often one level, typed twice."""
    cells = [*pair, "other"] * (N // 3)
    notes = Table.from_frame(pd.DataFrame({"x": cells})).notes
    assert [note for note in notes if "differ only in case" in note and pair[0] in note]


def test_many_columns_share_a_note():
    rows = pd.DataFrame({name: ["No", "no", "yes"] * 9 for name in "vwxy"})
    texts = [note for note in Table.from_frame(rows).notes if "differ only" in note]
    assert len(texts) == 1
    assert texts[0].startswith('columns "v", "w", "x", "y" have levels')


def test_a_second_header_is_named(tmp_path):
    """It would turn all numbers into levels."""
    numbers = ["years", *(str(i % 60) for i in range(N - 1))]
    path = written(tmp_path, age=numbers, months=["months", *numbers[1:]])
    text = " ".join(Table.from_csv(path).notes)
    assert text.count('" in row 1 (ReadAs(na={') == 2
    assert "if row 1 is a second header, ReadAs(skip=1) reads it as the header" in text
