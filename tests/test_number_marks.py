"""Numbers as they are written for readers: "20%", "$18,000", "1.234,5" are numbers."""

import gzip

import numpy as np
import pandas as pd
import pytest

from bayescascade import (
    DataError,
    LeafCascade,
    ParameterError,
    RadoBoostClassifier,
    ReadAs,
    Table,
    load,
)
from bayescascade.data.given import GivenRows
from bayescascade.data.number_marks import found_marks
from tests.cli.conftest import run

N = 300
RNG = np.random.default_rng(0)
NUMBERS = np.concatenate([RNG.normal(0, 30_000, N - 3).round(1), [-1_234_567.5, 0.5, 999.0]])
CLASSES = ["a", "b", "b"] * (N // 3)


def written(tmp_path, texts, name="rows.csv", sep=",", **others):
    rows = pd.DataFrame({"x": texts, "y": CLASSES[: len(texts)], **others})
    (tmp_path / name).write_text(rows.to_csv(index=False, sep=sep), encoding="utf-8")
    return tmp_path / name


def swapped(text):
    return text.translate(str.maketrans(",.", ".,"))


FORMS = {
    "percent": (lambda x: f"{x}%", ",", 'numbers with percent signs: "'),
    "percent after a blank": (lambda x: f"{x} %", ",", "percent signs"),
    "thousands": (lambda x: f"{x:,}", ",", '"," between thousands'),
    "dollars": (lambda x: f"-${-x:,.1f}" if x < 0 else f"${x:,.1f}", ",", 'the currency "$"'),
    "euros": (lambda x: swapped(f"{x:,.1f} €"), ";", 'the currency "€" and "." between thousands'),
    "Swiss": (lambda x: f"{x:,}".replace(",", "'"), ",", "between thousands"),
    "French": (lambda x: swapped(f"{x:,}").replace(".", "\u202f"), ";", "between thousands"),
    "minus": (lambda x: f"{x}".replace("-", "\u2212"), ",", "real minus signs"),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("chunk_rows", [100_000, 70])
def test_numbers_are_read_without_their_marks(tmp_path, form, chunk_rows):
    """With them, they would be levels; a note says what was left out."""
    write, sep, words = FORMS[form]
    plain = Table.from_csv(written(tmp_path, NUMBERS, "plain.csv"))
    table = Table.from_csv(
        written(tmp_path, list(map(write, NUMBERS)), sep=sep), chunk_rows=chunk_rows
    )
    assert table.schema.columns[0].edges == plain.schema.columns[0].edges
    assert (table.codes == plain.codes).all()
    assert [note for note in table.notes if '"x"' in note and words in note]


@pytest.mark.parametrize("form", FORMS)
def test_columns_of_models_of_numbers_are_the_same(tmp_path, form):
    write, sep, _ = FORMS[form]
    path = written(tmp_path, list(map(write, NUMBERS)), sep=sep)
    assert GivenRows.of(path).cells["x"].tolist() == NUMBERS.tolist()
    later = written(tmp_path, [write(NUMBERS[0])], "later.csv", sep=sep)  # a file of one row
    assert GivenRows.of(later).cells["x"].tolist() == NUMBERS[:1].tolist()


@pytest.mark.parametrize(
    "cells",
    [
        ["20%", "30%", "0.2"],  # a fifth, or a five-hundredth?
        ["$20", "30 €", "$5"],
        ["1,234", "1,23", "5"],
        ["1,234", "1'234", "5"],
        ["01,234", "1,234"],
        ["20%", "$30"],
        ["18.500", "5"],
        ["20", "30"],
        ["O'Neil", "a, b"],
        [],
    ],
)
def test_cells_that_disagree_are_not_read_as_numbers(cells):
    assert found_marks(cells, ".", ()) is None


def test_a_late_cell_that_disagrees_counts(tmp_path):
    """The first rows are not all rows."""
    texts = [f"{i % 90}.{i % 10}%" for i in range(60_000)] + ["0.5"]
    path = tmp_path / "rows.csv.gz"
    rows = pd.DataFrame({"x": texts, "y": [*CLASSES, "a"] * 199 + ["a", "b"] * 51})
    path.write_bytes(gzip.compress(rows.to_csv(index=False).encode()))
    with pytest.raises(DataError, match=r'"x" holds numbers with marks, such as "0.0%" beside'):
        Table.from_csv(path)
    few = [*(f"{i}%" for i in range(40)), "0.5"] * 7
    notes = Table.from_csv(written(tmp_path, few)).notes
    assert any('marks, such as "0%" beside "0.5", so its cells are levels' in n for n in notes)


def test_odd_cells_among_marks_are_named_and_can_be_missing(tmp_path):
    texts = [*(f"{i % 40}%" for i in range(N - 1)), "about 5%"]
    path = written(tmp_path, texts)
    notes = Table.from_csv(path).notes
    assert any('numbers but for "about 5%" in row 300' in note for note in notes)
    table = Table.from_files(ReadAs(path, na={"x": ["about 5%"]}))
    x = table.schema.columns[0]
    assert (x.kind, x.is_whole, x.has_missing_level) == ("continuous", True, True)


def test_commas_between_thousands_are_no_decimals(tmp_path):
    """In files of Excel, both occur with semicolons; 18,000 would be 18."""
    thousands = [f"{i % 50 + 10},000" for i in range(N)]
    points = written(tmp_path, thousands, sep=";", z=[f"{i % 7}.5" for i in range(N)])
    assert GivenRows.of(points).cells["x"].max() == 59_000
    unclear = written(tmp_path, thousands, sep=";")
    assert any("decimal commas" in note for note in Table.from_csv(unclear).notes)
    assert GivenRows.of(unclear).cells["x"].max() == 59
    assert GivenRows.of(ReadAs(unclear, thousands=",")).cells["x"].max() == 59_000
    commas = written(tmp_path, [f"{i % 50 + 10}.000" for i in range(N)], sep=";",
                     z=[f"{i % 7},5" for i in range(N)])  # fmt: skip
    assert GivenRows.of(commas).cells["x"].max() == 59_000


def test_thousands_that_come_late_can_be_named(tmp_path):
    small = [str(i % 999) for i in range(3_000)]
    path = tmp_path / "rows.csv"
    late = pd.DataFrame({"x": [*small, "1,000", "2,000", "3,000", "4,000"]})
    late["y"] = ["a", "b"] * 1_502
    late.to_csv(path, index=False)
    result = run("fit", path)
    assert "--thousands , reads them as numbers" in " ".join(result.stderr.split())
    assert GivenRows.of(ReadAs(path, thousands=",")).cells["x"].max() == 4_000
    spaced = written(tmp_path, [f"{x:,.0f}".replace(",", " ") for x in NUMBERS])
    assert GivenRows.of(ReadAs(spaced, thousands=" ")).cells["x"].min() == -1_234_568
    for wrong in ("ab", "1", "-", ""):
        with pytest.raises(ParameterError, match="thousands must be one character"):
            ReadAs(path, thousands=wrong)


def test_many_columns_share_a_note(tmp_path):
    rows = pd.DataFrame({name: [f"{i % 40}%" for i in range(N)] for name in "vwxyz"})
    rows.to_csv(tmp_path / "rows.csv", index=False)
    notes = [note for note in Table.from_csv(tmp_path / "rows.csv").notes if "percent" in note]
    assert len(notes) == 1
    assert notes[0].startswith('columns "v", "w", "x", "y", "z" hold numbers with marks')


def test_files_of_one_table_have_the_same_units(tmp_path):
    """A fifth would be a five-hundredth in half of the rows."""
    percent = written(tmp_path, [f"{i % 40}%" for i in range(N)], "a.csv")
    for cells in ([i % 40 / 100 for i in range(N)], ["5%", "about 5%"] * (N // 2)):
        other = written(tmp_path, cells, "b.csv")
        for paths in ([percent, other], [other, percent]):
            with pytest.raises(DataError, match=r'has the cell ".*, but (no )?numbers with %'):
                Table.from_files(paths)
    empty = written(tmp_path, [None] * N, "b.csv")
    assert Table.from_files([percent, empty]).schema.columns[0].kind == "continuous"
    for first, second in ((1_500, 20), (20, 1_500)):
        some = [f"{i % 90 + n:,}" for n in (first, second) for i in range(N)]
        parts = [written(tmp_path, some[:N], "c.csv"), written(tmp_path, some[N:], "d.csv")]
        assert Table.from_files(parts).schema.columns[0].is_whole


def test_a_model_reads_numbers_in_the_unit_that_it_learned(tmp_path):
    """A fifth would be a five-hundredth in all predictions of a saved model."""
    percent = written(tmp_path, [f"{i % 40}%" for i in range(N)], "a.csv")
    plain = written(tmp_path, [i % 40 / 100 for i in range(N)], "b.csv")
    pd.DataFrame({"x": range(40), "y": "a"}).to_parquet(tmp_path / "c.parquet")
    reverse = (plain, percent, r'"\d+%" in a.csv, but no numbers with % when')
    wrong = (percent, plain, r'"0\.\d+" in b.csv, but numbers with % when')
    for model, y in ((RadoBoostClassifier(), "y"), (LeafCascade(n_steps=20, n_chains=1), None)):
        for first, second, text in (reverse, wrong):
            model.fit(first, y).save(tmp_path / "model.json")
            loaded = load(tmp_path / "model.json")
            answer = loaded.score_samples if y is None else loaded.predict
            assert len(answer(first)) == N
            with pytest.raises(DataError, match=text):
                answer(second)
        with pytest.warns(UserWarning, match="20 in c.parquet is read as 20 %"):
            answer(tmp_path / "c.parquet")
