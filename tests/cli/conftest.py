"""A model of each kind, fitted once on the command line, for all tests of the commands."""

from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import pytest
from click.testing import Result

from bayescascade.cli.learning import Task, TrainingData, learn
from tests.commands import run

DATA = Path(__file__).parents[2] / "data"
TITANIC = str(DATA / "titanic.csv")
TIC_TAC_TOE = str(DATA / "tic_tac_toe.csv")
CLINIC = str(DATA / "liver_clinic.csv")
COSTS = str(DATA / "liver_clinic_costs.csv")


class Fitted(NamedTuple):
    """What ``fit`` or ``classify`` wrote and printed."""

    model: str
    trace: str
    stdout: str
    stderr: str


@pytest.fixture(scope="session")
def fitted(tmp_path_factory):
    """Return a leaf cascade of the Titanic."""
    return _written(
        tmp_path_factory, "fit", TITANIC, "--drop", "survived", "--ordinal", "age:child,adult",
        "--seed", 0, "--search", "anneal+metropolis", "--steps", 500, "--chains", 2,
    )  # fmt: skip


@pytest.fixture(scope="session")
def listed(tmp_path_factory):
    """Return a density rule list of the Titanic."""
    return _written(
        tmp_path_factory, "fit", TITANIC, "--model", "rules", "--drop", "survived", "--ordinal",
        "age:child,adult", "--seed", 0, "--steps", 500, "--chains", 2,
    )  # fmt: skip


@pytest.fixture(scope="session")
def classified(tmp_path_factory):
    """Return a rule-list classifier of tic-tac-toe."""
    return _written(
        tmp_path_factory, "classify", TIC_TAC_TOE, "--target", "outcome", "--max-size", 3,
        "--chains", 2, "--seed", 0, "--steps", 1_000, "--cv", 2,
    )  # fmt: skip


@pytest.fixture(params=["fitted", "listed"])
def density(request):
    """Return each of the densities in turn: what works with trees works with lists."""
    found: Fitted = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="session")
def forest(tmp_path_factory):
    """Return the path of a budgeted forest of the clinic."""
    out = tmp_path_factory.mktemp("forest") / "forest.json"
    found = run(
        "budget", CLINIC, "--target", "outcome", "--costs", COSTS, "--method", "forest",
        "--seed", 0, "--trees", 2, "--budgets", 9, "--out", out,
    )  # fmt: skip
    assert found.exit_code == 0
    return str(out)


def _written(tmp_path_factory: pytest.TempPathFactory, *arguments: object) -> Fitted:
    folder = tmp_path_factory.mktemp("fitted")
    model, trace = str(folder / "model.json"), str(folder / "trace.nc")
    found = run(*arguments, "--out", model, "--trace", trace)
    assert found.exit_code == 0, found.stderr
    return Fitted(model, trace, found.stdout, found.stderr)


def interrupted(task: Task, training: TrainingData) -> None:
    """Do what `learn` does when Ctrl-C is pressed early in the search."""

    def stop(_: object) -> None:
        raise KeyboardInterrupt

    shown = "bayescascade.cli.learning.search_progress"
    with mock.patch(shown, return_value=nullcontext(stop)):
        learn(task, training)


def said(stderr: str) -> list[str]:
    """Return what is said, but for how far a search is that takes longer than others."""
    return [line for line in stderr.splitlines() if not line.startswith("after ")]


def assert_error(result: Result, message: str) -> None:
    """Assert that a command failed as documented: one line on stderr, exit code 2, no output."""
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert message in result.stderr
