"""``compare`` prints a table for each data set, and loses nothing that was finished."""

import json

import pytest

from bayescascade import DensityEstimationTree
from bayescascade.model import halvings
from tests.cli.conftest import DATA, TIC_TAC_TOE, TITANIC, assert_error, run

QUICK = ("--models", "histogram,det", "--seed", 0)
SPARSE = str(DATA / "sparse_tree.csv")


def test_json_has_every_halving():
    found = run("compare", TITANIC, SPARSE, "--repeats", 2, *QUICK, "--json")
    record = json.loads(found.stdout)
    assert record["seed"] == 0
    assert [table["source"] for table in record["tables"]] == ["titanic.csv", "sparse_tree.csv"]
    for table in record["tables"]:
        assert [(o["halving"], o["model"]) for o in table["outcomes"]] == [
            (0, "histogram"), (0, "det"), (1, "histogram"), (1, "det"),
        ]  # fmt: skip


def test_without_a_seed_the_json_says_which_was_used():
    options = ("--models", "det", "--repeats", 1, "--json")
    first = json.loads(run("compare", SPARSE, *options).stdout)
    again = json.loads(run("compare", SPARSE, *options, "--seed", first["seed"]).stdout)
    scores = [t["tables"][0]["outcomes"][0]["log_likelihood"] for t in (first, again)]
    assert scores[0] == scores[1]
    assert json.loads(run("compare", SPARSE, *options).stdout)["seed"] != first["seed"]


def test_tables_take_the_declarations_that_concern_them():
    """Two tables have different columns; naming those of one must not be an error."""
    found = run(
        "compare", TITANIC, TIC_TAC_TOE, "--drop", "survived,outcome", "--ordinal",
        "age:child,adult", "--repeats", 1, *QUICK,
    )  # fmt: skip
    assert (found.exit_code, found.stderr) == (0, "")
    assert "titanic.csv   2,201 rows   14 distinct   3 columns" in found.stdout
    assert "\n\ntic_tac_toe.csv   958 rows   958 distinct   9 columns" in found.stdout


def test_notes_say_which_table_they_are_about(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,b\nx,1\nx,2\nx,1\n")
    found = run("compare", path, SPARSE, "--repeats", 1, *QUICK)
    assert found.stderr.startswith('note: a.csv: column "a" is constant')
    assert run("compare", path, "--repeats", 1, *QUICK).stderr.startswith('note: column "a" is')


@pytest.fixture
def interrupted_fit(monkeypatch):
    """Press Ctrl-C in the fourth fit of a density estimation tree."""
    learn = DensityEstimationTree.fit
    calls = []

    def stop(*arguments):
        calls.append(arguments)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return learn(*arguments)

    monkeypatch.setattr(DensityEstimationTree, "fit", stop)


@pytest.mark.usefixtures("interrupted_fit")
def test_ctrl_c_prints_what_was_finished(tmp_path):
    plot = tmp_path / "p.png"
    found = run("compare", TITANIC, SPARSE, "--repeats", 2, *QUICK, "--plot", plot)
    assert found.exit_code == 130
    assert "titanic.csv   2,201 rows   24 distinct" in found.stdout
    assert "sparse_tree.csv" in found.stdout
    assert "2 random splits into halves" in found.stdout
    assert "1 random split into halves:" in found.stdout  # of the second table
    assert found.stderr == "interrupted: 7 of 8 fits were finished\n"
    assert plot.exists()


@pytest.mark.usefixtures("interrupted_fit")
def test_ctrl_c_prints_json_of_what_was_finished():
    found = run("compare", TITANIC, SPARSE, SPARSE, "--repeats", 2, *QUICK, "--json")
    assert found.exit_code == 130
    assert [len(t["outcomes"]) for t in json.loads(found.stdout)["tables"]] == [4, 3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing argument 'DATA...' (see bayescascade compare --help)"),
        ([TITANIC, "no/such.csv"], "no such file: no/such.csv"),
        ([TITANIC, "--models", "leaf,bush"], "--models must be some of auto, leaf, branch, "),
        ([TITANIC, "--repeats", "0"], "--repeats must be an integer >= 1, got 0"),
        ([TITANIC, "--plot", "p.txt"], "--plot must end in .png, .svg, .pdf, got p.txt"),
        ([TITANIC, SPARSE, "--drop", "y"], 'drop names the unknown column "y"; columns: class'),
        ([TITANIC, SPARSE, "--columns", "x1"], "--columns must name a column of every table, got "),
        ([TITANIC, "--ordinal", "age"], "as in --ordinal age:adult,child"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_before_anything_is_learned(arguments, message, monkeypatch):
    monkeypatch.setattr(halvings, "fit_whole", None)
    assert_error(run("compare", *arguments), message)


def test_a_table_of_one_row(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,w\nx,0.5\ny,1\n")
    found = run("compare", path, "--weights", "w", *QUICK)
    assert_error(found, "a.csv must have at least two rows to be halved, got 1.5")
