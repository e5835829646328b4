"""The options of reading tables, of each command that reads one."""

import json

import pandas as pd
import pytest

from bayescascade.cli.application import application
from bayescascade.cli.options import name_and_rest, parse_continuous, parse_given, parse_kinds
from tests.cli.conftest import assert_error, run
from tests.test_read_as import survey, written

READING = ("fit", "classify", "evidence", "compare", "compress", "boxes", "budget", "causal",
           "effect", "online", "sensors", "score", "predict", "explain", "impute")  # fmt: skip
QUICK = ("--seed", 0, "--steps", 300, "--chains", 1, "--search", "anneal")


def test_each_command_on_a_table_has_the_options():
    """A command that has been forgotten cannot read what the others can."""
    commands = {name: application.commands[name] for name in READING}
    commands["rados make"] = application.commands["rados"].commands["make"]
    with_data = {name for name, command in application.commands.items() if _reads(command)}
    assert with_data == set(READING)
    for name, command in commands.items():
        read = {"sep", "encoding", "decimal", "na", "skip", "comment", "no_strip", "keep_na"}
        assert read | {"thousands"} <= {p.name for p in command.params}, name


def _reads(command):
    return any(parameter.name == "data" for parameter in command.params)


@pytest.mark.slow
def test_rows_without_a_label_are_left_out_if_asked_for(tmp_path):
    path, model = written(tmp_path), tmp_path / "model.json"
    refused = run("classify", path, "--target", "label", "--drop", "start")
    assert_error(
        refused, 'column "label" must not have missing labels, got a missing cell (NaN) in row 45'
    )
    assert "--missing-labels drop" in refused.stderr
    record = run(
        "classify", path, "--target", "label", "--missing-labels", "drop", "--dates", "parts",
        "--na", '"income, yearly":-9', "--rare", 0.01, "--out", model, *QUICK,
    )  # fmt: skip
    assert 'note: 12 rows without a label in column "label" are left out' in record.stderr
    assert record.stdout.startswith("rows.csv   588 rows")
    assert_error(run("score", model, path), "--missing-labels drop leaves such rows out")
    scored = run("score", model, path, "--missing-labels", "drop", "--json")
    assert json.loads(scored.stdout)["rows"] == 588
    assert json.loads(scored.stdout)["rows_with_unknown_levels"] == 0
    for learn in (("budget", "--budgets", 3, "--method", "prune"), ("compress",)):
        parts = run(*learn, path, "--target", "label", "--missing-labels", "drop", "--dates",
                    "parts", "--na", -9, "--seed", 0, "--json")  # fmt: skip
        assert parts.exit_code == 0, parts.stderr
        record = json.loads(parts.stdout)
        assert sum(n for name, n in record.items() if name.endswith("_rows")) == 588


def test_rows_are_filled_as_they_are_written(tmp_path):
    """A date stays a date, and a code for a missing cell is filled."""
    rows = survey().dropna()
    path, model = written(tmp_path, rows), tmp_path / "model.json"
    read = ("--na", -9, "--rare", 0.01, "--dates", "parts")
    run("fit", path, "--model", "leaf", "--leaf", "independent", "--out", model, *read, *QUICK)
    filled = run("impute", model, path)
    assert filled.exit_code == 0, filled.stderr
    lines, before = filled.stdout.splitlines(), path.read_text().splitlines()
    assert lines[0] == before[0]
    assert lines[1] == before[1].replace("-9,", f"{lines[1].split(',')[0]},")
    assert lines[45:] == before[45:]
    assert not [line for line in lines if line.startswith("-9,")]
    typed = tmp_path / "rows.parquet"
    rows.to_parquet(typed)
    for options in ((), ("--na", -9)):
        again = run("impute", model, typed, "--out", tmp_path / "filled.parquet", *options)
        assert again.exit_code == 0, again.stderr
        filled = pd.read_parquet(tmp_path / "filled.parquet")
        assert (
            filled.dtypes.astype(str).to_dict()
            == pd.read_parquet(typed).dtypes.astype(str).to_dict()
        )
        assert (filled["income, yearly"] > 0).all()


def test_private_sums_do_not_tell_how_others_are_read(tmp_path):
    make = ("rados", "make", written(tmp_path), "--target", "label", "--out", tmp_path / "sums")
    private = ("--epsilon", 1, "--bounds", "0,1")
    for option in (("--rare", 0.1), ("--dates", "parts"), ("--missing-labels", "drop")):
        assert_error(run(*make, *private, *option), "--missing-labels must not come with --epsilon")


@pytest.mark.parametrize("name", ["income, yearly", "a:b", "a=b", 'a"b', "plain"])
def test_columns_of_any_name_can_be_named(name):
    doubled = '"' + name.replace('"', '""') + '"'
    assert parse_kinds("--nominal", [doubled]) == {name: None}
    assert parse_kinds("--ordinal", [f"{doubled}:x,y"]) == {name: ["x", "y"]}
    assert parse_kinds("--nominal", [f"{doubled},other"]) == {name: None, "other": None}
    assert parse_continuous([f"{doubled}:5"]) == {name: 5}
    assert parse_given([f"{doubled}=x"], []) == {name: "x"}
    assert name_and_rest(f"{doubled}=1,2", "=") == (name, "=", "1,2")


@pytest.mark.slow
def test_messages_name_columns_as_they_are_typed(tmp_path):
    result = run("fit", written(tmp_path), "--na", -9, *QUICK)
    assert "--continuous '\"income, yearly\"':BINS" in result.stderr
    wrong = run("fit", written(tmp_path), "--drop", "income, yearly")
    assert_error(wrong, '--drop names the unknown column "income"')
    assert 'did you mean "income, yearly", in options \'"income, yearly"\'?' in wrong.stderr
    again = run("fit", written(tmp_path), "--continuous", '"income, yearly":3', *QUICK)
    assert "income, yearly: 3 bins" in again.stdout


@pytest.mark.slow
def test_dates_may_be_dropped_as_they_are_called(tmp_path):
    read = ("--na", -9, "--dates", "parts", "--nominal", "start.year")
    result = run("fit", written(tmp_path), "--drop", "start", *read[:4], *QUICK)
    assert result.exit_code == 0, result.stderr
    assert "start" not in result.stdout + result.stderr
    kept = run("fit", written(tmp_path), "--drop", "start.hour", *read, *QUICK)
    assert "start.weekday: Monday < Tuesday" in kept.stdout
    assert "start.hour:" not in kept.stdout
    assert "10 to 79 or missing (-9)" in kept.stdout


def test_tables_that_are_compared_need_not_have_the_same_columns(tmp_path):
    rows = survey().dropna()
    both = written(tmp_path, rows), written(tmp_path, rows[["town", "label"]], "less.csv")
    options = ("--na", '"income, yearly":-9', "--rare", "town:0.01", "--dates", "parts", "--drop",
               "start.hour", "--models", "det", "--repeats", 1, "--seed", 0)  # fmt: skip
    result = run("compare", *both, *options)
    assert result.exit_code == 0, result.stderr
    assert result.stderr.count('column "town" has 3 levels in under 0.01') == 2
