"""One model, fitted once on the command line, for all tests of the commands."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner, Result

from bayescascade.cli.application import application

DATA = Path(__file__).parents[2] / "data"
TITANIC = str(DATA / "titanic.csv")

Run = Callable[..., Result]


class Fitted(NamedTuple):
    """What ``fit`` wrote and printed."""

    model: str
    trace: str
    stdout: str
    stderr: str


def run(*arguments: object) -> Result:
    """Run a command in this process, as a user would see it when piped."""
    result = CliRunner().invoke(application, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture(scope="session")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Fitted:
    folder = tmp_path_factory.mktemp("fitted")
    model, trace = str(folder / "titanic.json"), str(folder / "titanic.nc")
    found = run(
        "fit", TITANIC, "--drop", "survived", "--ordinal", "age:child,adult", "--seed", 0,
        "--steps", 40_000, "--out", model, "--trace", trace,
    )  # fmt: skip
    assert found.exit_code == 0, found.stderr
    return Fitted(model, trace, found.stdout, found.stderr)


def assert_error(result: Result, message: str) -> None:
    """Assert that a command failed as documented: one line on stderr, exit code 2, no output."""
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert message in result.stderr
