"""Whatever is wrong is said in one line with exit code 2, before anything is computed or lost."""

import os
import warnings
from pathlib import Path

import pytest

import bayescascade
from bayescascade.base.errors import InternalError
from bayescascade.cli import rows
from tests.cli.conftest import TITANIC, assert_error, run

FEW = ("--search", "anneal+metropolis", "--steps", 200, "--seed", 1)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\nx,1\n", "at least one column must vary, got 1 row"),
        ("id\na\nb\nc\nd\ne\n", "value in every row (5 read): drop it (--drop id)"),
        (
            "id,when\na,\nb,\nc,\nd,\ne,\n",
            '2 columns must be declared or dropped: "id" (different in every row), "when" (only',
        ),
        ("a\n" + "".join(f"s{i % 65}\n" for i in range(130)), "has 65 levels, more than 64: group"),
    ],
)  # fmt: skip
def test_data_that_cannot_be_used(tmp_path, content, message):
    path, out = tmp_path / "rows.csv", tmp_path / "m.json"
    path.write_text(content)
    assert_error(run("fit", path, "--out", out, *FEW), message)
    assert not out.exists()


def test_other_files(tmp_path):
    (tmp_path / "b.csv").write_bytes(b"a,b\n\x81,1\n")
    assert_error(run("fit", tmp_path / "b.csv"), "b.csv must be UTF-8 text: convert its encoding")
    (tmp_path / "empty").mkdir()
    assert_error(run("fit", tmp_path / "empty"), "is a directory without data files (.csv, .parq")
    (tmp_path / "p.parquet").write_text("a,b\n")
    assert_error(run("fit", tmp_path / "p.parquet"), "cannot read p.parquet")


LABELED = {
    "budget": ["--budgets", 1],
    "sensors": ["--budgets", 1],
    "rados make": ["--out", "rados.npz"],
    **{name: [] for name in ("classify", "boxes", "compress", "online", "compare")},
    "effect": ["--treatment", "arm"],
}
"""Commands that read rows with labels, and the options that they need."""


@pytest.mark.parametrize("command", LABELED)
@pytest.mark.parametrize(
    ("line", "message"),
    [
        (",,{k},{h}", 'features must have cells that are not missing, got none in "a", "b"'),
        ("{h},{k},l{i},{k}", "labels must be classes of several rows to be predicted, got 40 cl"),
    ],
)
def test_rows_that_nothing_can_be_learned_from(command, line, message, tmp_path, monkeypatch):
    """A model of them would look learned, or fail with an error that names something else."""
    monkeypatch.chdir(tmp_path)
    rows = [line.format(i=i, k=i % 2, h=i % 3 % 2) for i in range(40)]
    Path("rows.csv").write_text("\n".join(["a,b,y,arm", *rows]))
    Path("costs.csv").write_text("name,cost,group\na,1,s\nb,1,s\n")
    file = {"budget": ["--costs", "costs.csv"], "sensors": ["--sensors", "costs.csv"]}
    target = ["--outcome", "y"] if command == "effect" else ["--target", "y", "--drop", "arm"]
    done = run(*command.split(), "rows.csv", *target, *LABELED[command], *file.get(command, []))
    assert_error(done, message)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--expected-leaves", "0"], "--expected-leaves must be a finite number > 0, got 0"),
        (["--expected-leaves", "x"], "--expected-leaves must be a finite number > 0, got 'x'"),
        (["--model", "leaf", "--expected-branches", "2"], "needs --model branch, got leaf"),
        (["--model", "leaf", "--expected-rules", "2"], "needs --model rules, got leaf"),
        (["--model", "rules", "--max-branches", "2"], "needs --model leaf or branch, got rules"),
        (["--model", "rules", "--memory-limit", "1e-9"], "increase --memory-limit"),
        (["--model", "bush"], "'bush' is not one of 'auto', 'leaf', 'branch'"),
        (["--predictive", "average", "--search", "anneal"], 'error: --predictive must be "map"'),
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
def test_wrong_options(options, message, monkeypatch):
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
        (
            ["classify", TITANIC, "--target", "survivd"],
            'error: --target names the unknown column "survivd" (did you mean "survived"?)',
        ),
        (
            ["classify", TITANIC, "--target", "survived", "--ordinal", "aeg"],
            'error: --ordinal names the unknown column "aeg"',
        ),
        (
            ["rados", "make", TITANIC, "--target", "survived", "--out", "r.npz", "--drop", "clas"],
            'error: --drop names the unknown column "clas" (did you mean "class"?)',
        ),
        (
            ["compare", TITANIC, "--nominal", "clas"],
            'error: --nominal names the unknown column "clas"',
        ),
        (["rados", "fit", "no/such.npz"], "error: no such file: no/such.npz"),
        (["show", "no/such.json"], "cannot read no/such.json: No such file or directory"),
        (["show", TITANIC], "titanic.csv is not a saved model, or is cut short: not JSON"),
    ],
)
def test_wrong_commands(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert_error(run(*arguments), message)


def test_numbers_as_labels(tmp_path):
    """That some are missing is not what is wrong with them."""
    path = tmp_path / "rows.csv"
    path.write_text("age,sex\n" + "".join(f"{i / 4},m\n,f\n" for i in range(200, 300)))
    found = run("classify", path, "--target", "age")
    assert_error(found, "100 different numbers such as 50.25; numbers must be cut into classes")
    assert "NaN" not in found.stderr


def test_without_a_command_help_is_printed():
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


def test_a_checkpoint_that_is_none(tmp_path):
    (tmp_path / "c").write_text("old")
    found = run("fit", TITANIC, *FEW, "--checkpoint", tmp_path / "c", "--resume")
    assert_error(found, "is not a checkpoint file")
    assert (tmp_path / "c").read_text() == "old"


def test_a_full_disk_leaves_the_old_files_and_prints_the_tree(tmp_path, monkeypatch):
    """Hours of search must not be lost because the result cannot be saved."""
    out, trace = tmp_path / "m.json", tmp_path / "t.nc"
    out.write_text("old model")
    trace.write_text("old trace")

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    found = run("fit", TITANIC, *FEW, "--out", out, "--trace", trace)
    assert found.exit_code == 2
    assert "\neveryone " in found.stdout
    assert found.stderr.splitlines()[-1].endswith(": No space left on device")
    assert (out.read_text(), trace.read_text()) == ("old model", "old trace")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.json", "t.nc"]


OF_CTRL_C = RuntimeError("no compiled object yet")  # of a compiler that cleans up
OF_CTRL_C.__context__ = KeyboardInterrupt()


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (OF_CTRL_C, 130, "interrupted\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (MemoryError(), 2, "error: out of memory: use fewer columns or coarser levels\n"),
        (OSError(5, "Input/output error", "rows.csv"), 2, "error: rows.csv: Input/output error\n"),
        (OSError("two\nlines"), 2, "error: two lines\n"),
        (InternalError("a proof that is none"), 2, "error: a proof that is none\n"),
    ],
)
def test_what_happens_while_reading(monkeypatch, error, code, message):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(rows, "read_table", fail)
    found = run("fit", TITANIC)
    assert (found.exit_code, found.stdout, found.stderr) == (code, "", message)


def test_warnings_are_one_line(monkeypatch):
    """Python's own form of a warning names a line of our source."""

    def warn(*_, **__):
        warnings.simplefilter("always")
        warnings.warn("the run is no longer saved", RuntimeWarning, stacklevel=1)
        raise OSError("stop")

    monkeypatch.setattr(rows, "read_table", warn)
    assert run("fit", TITANIC).stderr == "warning: the run is no longer saved\nerror: stop\n"


def test_a_defect_of_the_program_is_not_hidden(monkeypatch):
    """One line without a traceback would make a bug of ours impossible to report."""

    def fail(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr(rows, "read_table", fail)
    with pytest.raises(ZeroDivisionError):
        run("fit", TITANIC)


def test_files_named_like_parameters_keep_their_names(tmp_path):
    """An error that names another file than the user's sends them looking for it."""
    path = tmp_path / "memory_limit.csv"
    assert f"{path}" in run("fit", path).stderr
    assert "memory_limit.csv" in run("fit", "memory_limit.csv").stderr
