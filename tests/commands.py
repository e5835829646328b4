"""Commands run in this process, as a user would see them when piped."""

import inspect
import math
from pathlib import Path
from unittest import mock

import pandas as pd
from click.testing import CliRunner, Result

from bayescascade.cli import progress_lines
from bayescascade.cli.application import application

# click before 8.2 mixes both streams unless told not to, and later ones take no such parameter
_SEPARATE = {"mix_stderr": False} if "mix_stderr" in inspect.signature(CliRunner).parameters else {}


def invoke(*arguments: object, given: bytes | None = None) -> Result:
    """Run a command on standard input; an exception that it raises is in the result.

    No line says how far it is, which on a slow machine would stand between others.
    """
    never = dict.fromkeys(("_FIRST", "_SOON", "_EVERY"), math.inf)
    with mock.patch.multiple(progress_lines, **never):
        texts = [str(argument) for argument in arguments]
        return CliRunner(**_SEPARATE).invoke(application, texts, input=given)


def run(*arguments: object, given: bytes | None = None) -> Result:
    """Run a command, and raise whatever no command should raise."""
    result = invoke(*arguments, given=given)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def command(*arguments: object) -> str:
    """Run a command and return what it printed, one line of error included."""
    done = invoke(*arguments)
    assert done.exit_code == (2 if "error: " in done.stderr else 0), done.stderr
    return done.stdout + done.stderr


def read_written(path: Path) -> pd.DataFrame:
    """Read CSV that a command wrote, every digit of its numbers, which pandas 2 would round."""
    texts = pd.read_csv(path, dtype=str, keep_default_na=False)
    return texts.apply(lambda column: _numbers(column.tolist()))


def _numbers(texts: list[str]) -> pd.Series:
    try:
        return pd.Series([float(text) for text in texts])
    except ValueError:
        return pd.Series(texts)
