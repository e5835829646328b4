"""Whatever is wrong is said in one line with exit code 2, before anything is computed or lost."""

import json
import os
import warnings
from pathlib import Path
from typing import Any

import pytest

import bayescascade
from bayescascade.base.errors import InternalError
from bayescascade.cli import rows
from tests.cli.conftest import TITANIC, Fitted, assert_error, run

FEW = ("--search", "anneal+metropolis", "--steps", 200, "--seed", 1)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no such file: "),
        ("", "must have a header and rows, got an empty file"),
        ("a,b\nx,1\n", "at least one column must vary, got 1 row"),
        ("id\na\nb\nc\nd\ne\n", "value in every row (5 read): drop it (--drop id)"),
        (
            "id,when\na,\nb,\nc,\nd,\ne,\n",
            '2 columns must be declared or dropped: "id" (different in every row), "when" (only',
        ),
        ("a\n" + "".join(f"s{i % 65}\n" for i in range(130)), "has 65 levels, more than 64: group"),
    ],
)  # fmt: skip
def test_data_that_cannot_be_used(tmp_path: Path, content: str | None, message: str) -> None:
    path = tmp_path / "rows.csv"
    if content is not None:
        path.write_text(content)
    out = tmp_path / "m.json"
    assert_error(run("fit", path, "--out", out, *FEW), message)
    assert not out.exists()


def test_other_files(tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_bytes(b"a,b\n\x81,1\n")
    assert_error(run("fit", tmp_path / "b.csv"), "b.csv must be UTF-8 text: convert its encoding")
    (tmp_path / "empty").mkdir()
    assert_error(run("fit", tmp_path / "empty"), "is a directory without data files (.csv, .parq")
    (tmp_path / "p.parquet").write_text("a,b\n")
    assert_error(run("fit", tmp_path / "p.parquet"), "cannot read p.parquet")


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ("-2", 'weights column "w" must be finite and >= 0, got -2 in row 2'),
        ("many", "weights column \"w\" must hold numbers, got 'many' in row 2"),
    ],
)
def test_weights_that_are_none(tmp_path: Path, weights: str, message: str) -> None:
    (tmp_path / "w.csv").write_text(f"a,w\nx,1\ny,{weights}\n")
    assert_error(run("fit", tmp_path / "w.csv", "--weights", "w", *FEW), message)


def test_weights_that_are_all_zero(tmp_path: Path) -> None:
    (tmp_path / "w.csv").write_text("a,w\nx,0\ny,0\n")
    found = run("fit", tmp_path / "w.csv", "--weights", "w", *FEW)
    assert_error(found, "weights must not be all zero")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--expected-leaves", "0"], "--expected-leaves must be a finite number > 0, got 0"),
        (["--expected-leaves", "x"], "--expected-leaves must be a finite number > 0, got 'x'"),
        (["--model", "leaf", "--expected-branches", "2"], "needs --model branch, got leaf"),
        (["--model", "leaf", "--expected-rules", "2"], "needs --model rules, got leaf"),
        (["--model", "rules", "--max-branches", "2"], "needs --model leaf or branch, got rules"),
        (["--model", "rules", "--max-size", "0"], "--max-size must be an integer >= 1, got 0"),
        (["--model", "rules", "--memory-limit", "-1"], "--memory-limit must be a finite number"),
        (["--model", "rules", "--memory-limit", "1e-9"], "increase --memory-limit"),
        (["--model", "branch", "--feature-inclusion", "1"], "> 0 and < 1, got 1"),
        (["--model", "bush"], "'bush' is not one of 'auto', 'leaf', 'branch'"),
        (["--max-branches", "1"], "--max-branches must be an integer >= 2, got 1"),
        (["--predictive", "average", "--search", "anneal"], 'error: --predictive must be "map"'),
        (["--chains", "0"], "--chains must be an integer >= 1, got 0"),
        (["--jobs", "0"], "--jobs must be an integer other than 0, got 0"),
        (["--seed", "-1"], "--seed must be an integer >= 0, got -1"),
        (["--columns", "a"], 'error: --columns names the unknown column "a"; columns: class, sex'),
        (["--drop", "SEXX"], '--drop names the unknown column "SEXX" (did you mean "sex"?); col'),
        (
            ["--ordinal", "aeg:child,adult"],
            'error: --ordinal names the unknown column "aeg" (did you mean "age"?); columns: cl',
        ),
        (["--nominal", "clas"], 'error: --nominal names the unknown column "clas" (did you mean'),
        (["--continuous", "age_:3"], 'error: --continuous names the unknown column "age_" (did'),
        (["--weights", "n"], 'error: --weights names the unknown column "n"; columns: class, sex'),
        (["--drop", "class,sex,age,survived"], "at least one column must be used, got none"),
        (["--ordinal", "age"], "as in --ordinal age:adult,child"),
        (["--ordinal", "age:child"], 'the unknown level "adult" in row 1'),
        (["--ordinal", "age:a", "--ordinal", "age:b"], '--ordinal must name column "age" once'),
        (["--continuous", "age"], "--continuous must be NAME:BINS or NAME:EDGE,EDGE,..."),
        (["--continuous", "age:3"], 'continuous column "age" must hold numbers'),
        (["--continuous", "age:2,1"], "strictly increasing"),
        (["--resume"], "--resume needs --checkpoint FILE"),
        (["--bogus"], "--bogus"),
        (["--out", "/no/such/folder/m.json"], "the folder /no/such/folder does not exist"),
        (["--out", "/"], "--out must be a file, got the directory /"),
        (["--out", TITANIC], "--out must be another file than DATA, got "),
    ],
)  # fmt: skip
def test_wrong_options(options: list[str], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An option is never ignored, and never only noticed when the search is over."""
    before = Path(TITANIC).read_bytes()
    monkeypatch.setattr("samplers.chains.run_chains", None)
    assert_error(run("fit", TITANIC, *options), message)
    assert Path(TITANIC).read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit"], "Missing argument 'DATA' (see bayescascade fit --help)"),
        (["grow"], "No such command 'grow' (see bayescascade --help)"),
        (["--bogus"], "--bogus"),
        (["show"], "Missing argument 'MODEL.json'"),
        (
            ["boxes", TITANIC, "--target", "class"],
            "error: --target must have two classes. Only binary classification is supported, "
            'got 4 classes: "1st", "2nd", "3rd", "crew"',
        ),
        (["rados", "fit", "no/such.npz"], "error: no such file: no/such.npz"),
        (["show", "no/such.json"], "cannot read no/such.json: No such file or directory"),
        (["show", TITANIC], "titanic.csv is not a saved model, or is cut short: not JSON"),
    ],
)
def test_wrong_commands(arguments: list[str], message: str) -> None:
    assert_error(run(*arguments), message)


def test_numbers_as_labels(tmp_path: Path) -> None:
    """That some are missing is not what is wrong with them."""
    path = tmp_path / "rows.csv"
    path.write_text("age,sex\n" + "".join(f"{i / 4},m\n,f\n" for i in range(200, 300)))
    found = run("classify", path, "--target", "age")
    assert_error(found, "100 different numbers such as 50.25; numbers must be cut into classes")
    assert "NaN" not in found.stderr


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            ["classify", "--target", "survivd"],
            '--target names the unknown column "survivd" (did you',
        ),
        (
            ["classify", "--target", "survived", "--ordinal", "aeg"],
            "--ordinal names the unknown co",
        ),
        (
            ["rados", "make", "--target", "survived", "--out", "r.npz", "--drop", "clas"],
            '--drop names the unknown column "clas" (did you mean "class"?)',
        ),
        (
            ["compare", "--nominal", "clas"],
            '--nominal names the unknown column "clas" (did you mean',
        ),
    ],
)
def test_columns_misspelled_in_any_command(
    command: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Among eighty columns a typo is found by what was meant, and by the option that it is in."""
    monkeypatch.chdir(tmp_path)
    assert_error(run(*command, TITANIC), f"error: {message}")


def test_without_a_command_help_is_printed() -> None:
    found = run()
    assert found.exit_code == 0
    names = [line.split()[0] for line in found.stdout.split("Commands:\n")[1].splitlines()]
    assert names == [
        "fit", "classify", "budget", "compress", "boxes", "causal", "effect", "online", "sensors",
        "rados", "evidence",
        "show", "score", "predict", "explain", "impute", "sample", "diagnose", "compare", "doctor",
        "completion",
    ]  # fmt: skip
    assert run("--version").stdout == f"bayescascade {bayescascade.__version__}\n"


def test_forged_and_truncated_models(fitted: Fitted, tmp_path: Path) -> None:
    """A model file is not trusted."""
    text, path = Path(fitted.model).read_text(), tmp_path / "m.json"
    record = json.loads(text)
    record["tree"]["leaf_counts"][0] += 1
    for content, message in (
        (text[: len(text) // 2], "m.json is not a saved model, or is cut short"),
        (json.dumps(record), "m.json: "),
        (json.dumps(json.loads(text) | {"version": 99}), "format version 99, this program reads 1"),
    ):
        path.write_text(content)
        assert_error(run("show", path), message)


def test_a_checkpoint_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "c").write_text("old")
    found = run("fit", TITANIC, *FEW, "--checkpoint", tmp_path / "c", "--resume")
    assert_error(found, "is not a checkpoint file")
    assert (tmp_path / "c").read_text() == "old"


def test_a_full_disk_leaves_the_old_files_and_prints_the_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hours of search must not be lost because the result cannot be saved."""
    out, trace = tmp_path / "m.json", tmp_path / "t.nc"
    out.write_text("old model")
    trace.write_text("old trace")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    found = run("fit", TITANIC, *FEW, "--out", out, "--trace", trace)
    assert found.exit_code == 2
    assert "\neveryone " in found.stdout
    assert found.stderr.splitlines()[-1].endswith(": No space left on device")
    assert (out.read_text(), trace.read_text()) == ("old model", "old trace")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.json", "t.nc"]


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (MemoryError(), 2, "error: out of memory: use fewer columns or coarser levels\n"),
        (OSError(5, "Input/output error", "rows.csv"), 2, "error: rows.csv: Input/output error\n"),
        (OSError("two\nlines"), 2, "error: two lines\n"),
        (InternalError("a proof that is none"), 2, "error: a proof that is none\n"),
    ],
)
def test_what_happens_while_reading(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, message: str
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(rows, "read_table", fail)
    found = run("fit", TITANIC)
    assert (found.exit_code, found.stdout, found.stderr) == (code, "", message)


def test_ctrl_c_that_a_compiler_takes_for_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """It raises an error of its own while it cleans up; nobody wants its traceback."""

    def fail(*_: Any, **__: Any) -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise RuntimeError("no compiled object yet")

    monkeypatch.setattr(rows, "read_table", fail)
    found = run("fit", TITANIC)
    assert (found.exit_code, found.stderr) == (130, "interrupted\n")


def test_warnings_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's own form of a warning names a line of our source."""

    def warn(*_: Any, **__: Any) -> None:
        warnings.simplefilter("always")
        warnings.warn("the run is no longer saved", RuntimeWarning, stacklevel=1)
        raise OSError("stop")

    monkeypatch.setattr(rows, "read_table", warn)
    assert run("fit", TITANIC).stderr == "warning: the run is no longer saved\nerror: stop\n"


def test_a_defect_of_the_program_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line without a traceback would make a bug of ours impossible to report."""

    def fail(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(rows, "read_table", fail)
    with pytest.raises(ZeroDivisionError):
        run("fit", TITANIC)


def test_files_named_like_parameters_keep_their_names(tmp_path) -> None:
    """An error that names another file than the user's sends them looking for it."""
    path = tmp_path / "memory_limit.csv"
    assert f"{path}" in run("fit", path).stderr
    assert "memory_limit.csv" in run("fit", "memory_limit.csv").stderr
