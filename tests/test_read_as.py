"""How files are to be read, said once: later rows are read alike by what was learned."""

import sys
import warnings
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from bayescascade import (
    BudgetedForestClassifier,
    DataError,
    LeafCascade,
    ModelFileError,
    NeighborCompressionClassifier,
    ParameterError,
    Rados,
    ReadAs,
    RuleListClassifier,
    Table,
    load,
)
from bayescascade.base.store import restored, stored
from bayescascade.data.column import Column
from bayescascade.data.date_parts import dates_of, part_of, with_date_parts
from bayescascade.data.levels import without_codes
from bayescascade.data.matrix import MatrixEncoder
from tests.contracts.test_sql import asked

N = 600
WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]


def survey():
    """Return rows with codes for missing cells, rare towns, dates, and labels of which 12 miss."""
    rng = np.random.default_rng(0)
    income = rng.integers(10, 80, N)
    town = rng.choice(["Köln", "Bonn", "Mons"], N)
    label = np.where(income > 45, "rich", "poor").astype(object)
    income[:40], town[40:44], label[44:56] = -9, ["a", "b", "c", "c"], None
    start = pd.date_range("2021-01-03 05:00", periods=N, freq="31h")
    columns = {"income, yearly": income, "town": town, "start": start, "label": label}
    return pd.DataFrame(columns)


def written(tmp_path, rows=None, name="rows.csv", **how):
    rows = survey() if rows is None else rows
    rows.to_csv(tmp_path / name, index=False, date_format="%Y-%m-%d %H:%M", **how)
    return tmp_path / name


READ = {"na": {"income, yearly": [-9]}, "rare": 0.01, "dates": "parts", "missing_labels": "drop"}


def test_what_is_given_is_not_guessed(tmp_path):
    """A file of one column, or of text that another code page reads too, is guessed wrong."""
    (tmp_path / "one.csv").write_bytes("größe;n\n1,5;x\n2;y\n".encode("cp437"))
    given = ReadAs(tmp_path / "one.csv", sep=";", encoding="cp437", decimal=",")
    table = Table.from_files(given, nominal=["größe"])
    assert table.schema.names == ("größe", "n")
    assert table.schema.columns[0].levels == (1.5, 2.0)
    assert not [note for note in table.notes if "read as text" in note]
    (tmp_path / "list.csv").write_text("a;b\nx;y\nz;x\n")
    assert Table.from_files(ReadAs(tmp_path / "list.csv", sep=",")).schema.names == ("a;b",)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"sep": "::"}, "sep must be one ASCII character, got '::'"),
        ({"decimal": ";"}, 'decimal must be "." or ",", got \';\''),
        ({"encoding": "hex"}, "encoding must be one that Python knows"),
        ({"rare": 1.0}, "rare must be a finite number > 0 and < 1, got 1.0"),
        ({"na": -9}, "na must be a list of values, by column too, got -9"),
        ({"na": {"incme": [-9]}}, 'na names the unknown column "incme"'),
        ({"dates": "year"}, "dates must be one of 'error', 'parts'"),
        ({"missing_labels": "drop"}, "needs the name of a column of labels"),
    ],
)
def test_what_cannot_be_is_refused(how, message, tmp_path):
    path = written(tmp_path)
    with pytest.raises((ParameterError, DataError)) as caught:
        Table.from_files(ReadAs(path, **how))
    assert message in str(caught.value)


def test_files_of_a_list_are_read_alike(tmp_path):
    """What is said of one file of a list would be forgotten."""
    path = written(tmp_path)
    with pytest.raises(ParameterError, match="ReadAs must contain the whole list"):
        Table.from_files([ReadAs(path, na=[-9]), path])


def test_a_text_file_is_read_as_its_data_frame(tmp_path):
    """Text and types, files in one or in parts, differ in all cells; what is read must not."""
    rows = survey().dropna()
    how = {"na": [-9], "rare": 0.01, "dates": "parts"}
    halves = [
        written(tmp_path, part, f"{i}.csv") for i, part in enumerate((rows[:300], rows[300:]))
    ]
    typed = tmp_path / "rows.parquet"
    rows.to_parquet(typed)
    tables = [
        Table.from_files(ReadAs(one, **how)) for one in (rows, written(tmp_path, rows), typed)
    ]
    tables.append(Table.from_files(ReadAs(halves, **how)))
    assert len({table.fingerprint() for table in tables}) == 1
    columns = {column.name: column for column in tables[0].schema.columns}
    assert list(columns) == [
        "income, yearly", "town", "start.year", "start.month", "start.weekday", "start.hour",
        "label",
    ]  # fmt: skip
    assert columns["income, yearly"].has_missing_level
    assert columns["income, yearly"].edges[0] > 0
    assert columns["town"].levels == ("Bonn", "Köln", "Mons", "other levels")
    assert columns["start.weekday"].levels == tuple(WEEKDAYS)
    assert columns["start.month"].kind == "ordinal"


def test_rare_levels_are_counted_by_weight():
    """A table of counts has each level in a few rows, however many rows these stand for."""
    rows = pd.DataFrame({"town": ["a", "b", "c"], "n": [98, 1, 1], "zip": [1, 2, 3]})
    whole = ReadAs(rows, rare=0.02, weights="n")
    assert Table.from_files(whole, weights="n").schema.columns[0].levels == ("a", "other levels")
    table = Table.from_files(ReadAs(rows, rare={"zip": 0.02}, weights="n"), weights="n")
    assert table.schema.columns[1].levels == ("1", "other levels")
    names = pd.DataFrame({"name": [f"n{i}" for i in range(200)], "sex": ["f", "m"] * 100})
    with pytest.raises(DataError, match="different value in every row"):
        Table.from_files(ReadAs(names, rare=0.02))  # no level is frequent: nothing is grouped


def _with_parts(rows):
    dates = rows["start"].dt
    parts = {"year": dates.year, "month": dates.month, "weekday": dates.day_name()}
    parts["hour"] = dates.hour
    return rows.assign(**{f"start.{name}": cells for name, cells in parts.items()})


SHORT = {"search": "anneal", "n_steps": 200, "n_chains": 1, "random_state": 0}
MAKERS = {
    "density": lambda: LeafCascade(leaf="independent", **SHORT),
    "rules": lambda: RuleListClassifier(**SHORT),
    "forest": lambda: BudgetedForestClassifier(budget=3, random_state=0),
    "neighbors": lambda: NeighborCompressionClassifier(n_prototypes=8, random_state=0, max_iter=5),
}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n != "density")) for n in MAKERS]
)
def test_a_saved_model_reads_later_rows_alike(name, tmp_path):
    """An income of -9 must not count as a low one, and a new town not as an unknown level."""
    if name == "density":
        read = {**READ, "missing_labels": "error"}
        model = MAKERS[name]().fit(ReadAs(survey().dropna(), **read))
    else:
        model = MAKERS[name]().fit(ReadAs(written(tmp_path, sep=";"), **READ), "label")
        assert list(model.classes_) == ["poor", "rich"]
    model.save(tmp_path / "model.json")
    found = load(tmp_path / "model.json")
    answer = "score_samples" if name == "density" else "predict_proba"
    own, loaded = getattr(model, answer), getattr(found, answer)
    new = survey().dropna().tail(20).reset_index(drop=True)
    odd = new.assign(town="Ulm")
    odd["income, yearly"] = -9
    plain = odd.assign(town="a", **{"income, yearly": np.nan})
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no level is unknown
        said = loaded(odd)
    assert_allclose(said, own(plain), rtol=0)
    assert_allclose(said, loaded(written(tmp_path, odd)), rtol=0)
    assert not np.allclose(said, loaded(new))
    if hasattr(found, "to_sql"):
        sql, column = (
            (found.to_sql("rich"), said[:, 1]) if said.ndim > 1 else (found.to_sql(), said)
        )
        assert_allclose(asked(_with_parts(odd), sql)["answer_0"], column, atol=1e-12)
    if name != "density":
        return
    filled = found.impute(odd)
    assert (filled["income, yearly"] > 0).all()
    assert filled["start"].equals(odd["start"])
    assert found.tree_.explain(dict(odd.iloc[0])) == found.tree_.explain(dict(plain.iloc[0]))
    among = {"town": "Ulm"}, {"town": "other levels"}
    assert found.condition(among[0]).to_dict() == found.condition(among[1]).to_dict()
    with pytest.raises(DataError, match=r'column "start" must hold dates .* got \'soon\' in row 3'):
        found.score_samples(odd.assign(start=["2024-01-01", "2024-01-01", "soon"] + [None] * 17))


@pytest.mark.parametrize("how", [{"rare": 0.1}, {"dates": "parts"}, {"missing_labels": "drop"}])
def test_what_is_private_is_read_row_by_row(how, tmp_path):
    """A level that is rare says how many others have it."""
    private = ReadAs(written(tmp_path), **how)
    with pytest.raises(ParameterError, match="rare, dates and missing_labels must not be given"):
        Rados.sample_gaussian(private, "label", epsilon=1.0, delta=1e-6, edge_bounds=(0, 1))
    with pytest.raises(ParameterError, match="rare, dates and missing_labels must not be given"):
        Rados.sample_feature_private(private, "label", feature="town", epsilon=1.0, delta=1e-6)


@pytest.mark.parametrize("codes", [[], "-9", [None], [[-9]], [float("nan")]])
def test_codes_of_a_damaged_file_are_refused(codes):
    column = Column("a", "nominal", ("x", "y"), missing_codes=(-9,))
    assert restored(Column, stored(column), {}) == column
    with pytest.raises((ModelFileError, DataError)):
        restored(Column, {**stored(column), "missing_codes": codes}, {})
    encoder = {"columns": ["a"], "levels": [None], "missing_codes": [codes]}
    if codes != []:
        with pytest.raises((ModelFileError, DataError)):
            MatrixEncoder.from_dict(encoder)


def test_codes_are_numbers_or_texts_but_no_truth_values():
    cells = pd.Series(["-9", "-9.0", "9", "k.A.", None], dtype=object)
    assert without_codes(cells, [-9, "k.A."]).isna().tolist() == [True, True, False, True, True]
    assert without_codes(pd.Series([True, False]), [1]).notna().all()
    assert without_codes(pd.Series([-9.0, 1.0]), ["-9"]).isna().tolist() == [True, False]
    categories = without_codes(pd.Series([-9, 1], dtype="category"), [-9])
    assert list(categories.cat.categories) == [1]


def test_dates_are_those_of_the_calendar():
    texts = ["2024-02-29T23:10:05.5+01:00", "29.02.2024", "2024-02-29 23:10", "29.02.2024 23:10"]
    dates = dates_of("d", pd.Series([*texts, None], dtype=object))
    assert part_of(dates, "weekday").tolist()[:4] == ["Thursday"] * 4
    assert part_of(dates, "hour").tolist()[:4] == [23, 0, 23, 23]
    assert part_of(dates, "year").isna().tolist() == [False] * 4 + [True]
    for text in ("2023-02-29", "01/02/2024", "20240229", "25:30"):
        with pytest.raises(DataError, match="must hold dates"):
            dates_of("d", pd.Series([text]))


def test_a_column_with_the_name_of_a_part_is_itself():
    """What a table has is not made of something else."""
    rows = pd.DataFrame({"a": ["2024-01-01", "2024-05-01"] * 10, "a.year": ["x", "y"] * 10})
    schema = Table.from_frame(rows, columns=["a.year"]).schema
    assert schema.encode(rows).tolist() == [[0, 1] * 10]
    with pytest.raises(DataError, match=r'got "a\.year" more than once'):
        Table.from_files(ReadAs(rows, dates="parts"))


def test_excel_is_the_table_that_pandas_reads(tmp_path, monkeypatch):
    rows = survey().dropna()
    with ZipFile(tmp_path / "rows.xlsx", "w") as empty:
        empty.writestr("xl/workbook.xml", "")
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "openpyxl", None)
        with pytest.raises(
            DataError, match=r"^rows\.xlsx is an Excel file.*: pip install 'bayescascade\[excel\]'$"
        ):
            Table.from_files(tmp_path / "rows.xlsx")
    (tmp_path / "text.xlsx").write_bytes(b"a\0b")
    with pytest.raises(DataError, match=r"^text\.xlsx must hold a table, got a binary file: "):
        Table.from_files(tmp_path / "text.xlsx")
    pytest.importorskip("openpyxl")
    with pd.ExcelWriter(tmp_path / "rows.xlsx") as book:
        rows.to_excel(book, index=False)
        rows.to_excel(book, sheet_name="more")
    how = {"na": [-9], "dates": "parts"}
    table = Table.from_files(ReadAs(tmp_path / "rows.xlsx", **how))
    assert table.fingerprint() == Table.from_files(ReadAs(rows, **how)).fingerprint()
    assert "rows.xlsx has 2 sheets: the first one is read" in table.notes


@pytest.mark.parametrize(
    ("texts", "parts"),
    [
        (["1-Mar-2023", "01-MAR-23", "March 1, 2023", "1 March 2023", "2023/3/1", "1.3.2023"],
         {"year": 2023, "month": 3, "weekday": "Wednesday"}),
        (["2023-03-01T23:30:00+02:00", "2023-03-01 23:59:59.5Z", "1 Mar 2023 23:10"],
         {"year": 2023, "month": 3, "weekday": "Wednesday", "hour": 23}),
        (["13:45", "13:45:10", "1:45 pm"], {"hour": 13}),
        (["1900-01-01", "1900-01-01"], {"year": 1900, "month": 1, "weekday": "Monday"}),
    ],
)  # fmt: skip
def test_dates_of_other_forms_have_the_same_parts(texts, parts):
    rows = pd.DataFrame({"x": texts, "y": ["a", "b", "b", "a", "a", "b"][: len(texts)]})
    found = Table.from_files(ReadAs(rows, dates="parts"))
    assert list(found.schema.names) == [f"x.{part}" for part in parts] + ["y"]
    cells = with_date_parts(rows, [f"x.{part}" for part in parts])
    for part, value in parts.items():
        assert set(cells[f"x.{part}"]) == {value}


def test_a_column_of_dates_and_times_is_text():
    """A time would have no day."""
    mixed = pd.Series(["13:45", "2023-03-01", "1 Mar 2023"])
    with pytest.raises(DataError, match=r"must hold dates .* got '13:45' in row 1"):
        dates_of("x", mixed)
    rows = pd.DataFrame({"x": ["13:45", "2023-03-01"] * 9, "y": ["a", "b"] * 9})
    table = Table.from_files(ReadAs(rows, dates="parts"))
    assert table.schema.columns[0].levels == ("13:45", "2023-03-01")


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["1-Mar-2023", "2-Mar-2023"], "holds dates or times such as 1-Mar-2023, each of them"),
        (["13:45", "9:05"], "holds dates or times such as 13:45, each of them a level"),
        (["01/02/2023", "02/01/2023"], "01/02/2023, whose days and months cannot be distinguished"),
    ],
)
def test_dates_that_are_levels_are_told_of(texts, words):
    """In another year, each date is an unknown level."""
    notes = Table.from_frame(pd.DataFrame({"x": texts * 9, "y": ["a", "b", "b"] * 6})).notes
    assert [note for note in notes if words in note]
    many = [f"{day}/{month}/2023" for day in range(1, 29) for month in range(1, 13)]
    with pytest.raises(DataError, match="cannot be distinguished: write them as 2024-01-31"):
        Table.from_frame(pd.DataFrame({"x": many, "y": ["a", "b", "b"] * 112}))
