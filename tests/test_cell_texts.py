"""Blanks, "NA", titles and comments in files: not levels, unless they are meant."""

import numpy as np
import pandas as pd
import pytest

from bayescascade import (
    BudgetedForestClassifier,
    DataError,
    LeafCascade,
    ParameterError,
    ReadAs,
    Table,
    load,
)
from bayescascade.data.cell_texts import CellTexts
from bayescascade.data.dialects import GivenDialect
from tests.cli.conftest import assert_error, run

N = 300
RNG = np.random.default_rng(0)
ROWS = pd.DataFrame(
    {
        "country": RNG.choice(["NA", "BE", "CL"], N),
        "age": RNG.integers(20, 80, N).astype(str).astype(object),
        "sex": RNG.choice(["f", "m"], N),
    }
).assign(y=lambda rows: np.where(rows["country"] == "NA", "ill", "well"))
ROWS.loc[::10, "age"] = "NA"


def written(tmp_path, rows=ROWS, name="rows.csv", before="", **how):
    (tmp_path / name).write_text(before + rows.to_csv(index=False, **how), encoding="utf-8")
    return tmp_path / name


def levels(table):
    return {c.name: c.levels for c in table.schema.columns}


@pytest.mark.parametrize("blank", [" ", "\t", "\u00a0", "\u3000", "\u202f", "\ufeff", " \u00a0"])
def test_blanks_at_the_ends_make_no_levels(tmp_path, blank):
    """They cannot be seen, in a spreadsheet or in a print; a cell of blanks is empty."""
    sex = ROWS["sex"].copy()
    sex[3], sex[5], sex[7] = f"f{blank}", f"{blank}m", blank
    path = written(tmp_path, ROWS.assign(sex=sex).rename(columns={"sex": f"sex{blank}"}))
    plain = Table.from_csv(written(tmp_path, ROWS.assign(sex=sex.replace(
        {f"f{blank}": "f", f"{blank}m": "m", blank: ""})), "plain.csv"))  # fmt: skip
    for chunk_rows in (100_000, 50):
        table = Table.from_csv(path, chunk_rows=chunk_rows)
        assert table.fingerprint() == plain.fingerprint()
    assert any(
        f'"sex" has cells with blanks at the ends, such as "f{blank}"' in n for n in table.notes
    )
    kept = Table.from_files(ReadAs(path, strip=False))
    assert f"f{blank}" in levels(kept)[f"sex{blank}"]


def test_blanks_around_numbers_need_no_note(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a, b\n" + "".join(f"{i}, {i % 3}\n" for i in range(99)))
    table = Table.from_csv(path)
    assert levels(table)["b"] == (0, 1, 2)
    assert not [note for note in table.notes if "blanks" in note]


def test_spreadsheets_are_read_as_text_files_are():
    frame = pd.DataFrame({"a": ["f ", "f", " ", "NA", None], "n": [1, 2, 3, 4, 5]})
    for dialect, expected in (
        (GivenDialect(), ["f", "f", None, None, None]),
        (GivenDialect(keep_na=("a",)), ["f", "f", None, "NA", None]),
        (GivenDialect(strip=False), ["f ", "f", " ", None, None]),
    ):
        read = CellTexts(dialect).of_frame(frame, ("", "NA"))
        assert read["a"].tolist() == expected
        assert read["n"].tolist() == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("chunk_rows", [100_000, 7])
def test_na_is_a_level_where_it_is_meant(tmp_path, chunk_rows):
    """NA is the code of Namibia."""
    path = written(tmp_path)
    assert levels(Table.from_csv(path, chunk_rows=chunk_rows))["country"] == ("BE", "CL")
    table = Table.from_files(ReadAs(path, keep_na=["country"]), chunk_rows=chunk_rows)
    assert levels(table)["country"] == ("BE", "CL", "NA")
    age = table.schema.columns[1]
    assert (age.kind, age.has_missing_level) == ("continuous", True)
    with pytest.raises(DataError, match='keep_na names the unknown column "cuntry"'):
        Table.from_files(ReadAs(path, keep_na=["cuntry"]))
    with pytest.raises(ParameterError, match="keep_na must be a list"):
        ReadAs(path, keep_na="country")


@pytest.mark.parametrize("kind", ["density", "forest"])
def test_a_model_reads_later_files_as_it_learned(tmp_path, kind):
    """Otherwise Namibia is missing in each file to be scored, without a word."""
    rows = ROWS.assign(sex=ROWS["sex"] + " ")
    read = ReadAs(written(tmp_path, rows), keep_na=["country"], strip=False)
    if kind == "density":
        model = LeafCascade(leaf="independent", search="anneal", n_steps=200, random_state=0)
        model, rate = model.fit(read), "score_samples"
    else:
        model = BudgetedForestClassifier(max_depth=3, random_state=0).fit(read, "y")
        rate = "predict"
    path = tmp_path / "model.json"
    model.save(path)
    for one in (model, load(path)):
        result = getattr(one, rate)(tmp_path / "rows.csv")
        assert result.tolist() == getattr(one, rate)(read).tolist()
    if kind == "forest":
        assert (result == ROWS["y"]).all()
    with_command = run("predict" if kind == "forest" else "score", path, tmp_path / "rows.csv")
    assert with_command.exit_code == 0, with_command.stderr
    assert "unknown" not in with_command.stderr


TITLES = 'Report of March\nby "A, B"\n\n'


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("sep", [",", ";"])
def test_titles_and_comments_are_left_out(tmp_path, encoding, sep):
    plain = Table.from_csv(written(tmp_path, name="plain.csv"))
    text = "# made by hand\n" + TITLES + ROWS.to_csv(index=False, sep=sep)
    lines = text.splitlines(keepends=True)
    text = "".join([*lines[:20], "# later\n", *lines[20:]])
    (tmp_path / "rows.csv").write_text(text, encoding=encoding)
    read = ReadAs(tmp_path / "rows.csv", skip=4, comment="#")
    assert Table.from_files(read).fingerprint() == plain.fingerprint()
    assert Table.from_files(read, chunk_rows=3).fingerprint() == plain.fingerprint()


@pytest.mark.parametrize("sep", [",", ";", "\t"])
def test_messages_propose_to_leave_lines_out(tmp_path, sep):
    """A newcomer's error is "every row must have 1 cells"."""
    path = written(tmp_path, before=TITLES, sep=sep)
    result = run("fit", path)
    words = " ".join(result.stderr.split())
    assert "if the first 2 lines are no header, --skip 2 leaves them out" in words
    path = written(tmp_path, before="# a comment\n", sep=sep)
    assert "--comment '#' leaves them out" in " ".join(run("fit", path).stderr.split())
    path.write_text("Report,,,\n" + ROWS.to_csv(index=False))
    notes = Table.from_csv(path, drop=["Report"]).notes
    assert [n for n in notes if "if its first line is a title, ReadAs(skip=1) leaves it out" in n]


def test_options_of_lines_are_checked(tmp_path):
    path = written(tmp_path)
    assert_error(run("fit", path, "--skip", -1), "--skip must be an integer >= 0, got -1")
    with pytest.raises(ParameterError, match="comment must be the beginning of lines"):
        ReadAs(path, comment="")
    ROWS.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(ParameterError, match="skip and comment must be of a text file"):
        Table.from_files(ReadAs(tmp_path / "rows.parquet", skip=2))
    assert_error(run("fit", path, "--skip", 999), "must have a header and rows, got an empty file")
