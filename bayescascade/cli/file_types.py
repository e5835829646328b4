"""Types of arguments and options that name files: for shells, and for files that are read."""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import click
from click.shell_completion import CompletionItem

from bayescascade.base.files import named_errors


class FileName(click.ParamType):  # type: ignore[type-arg] # before click 8.4
    """A text that a shell completes as a file or a directory."""

    name = "file"

    def __init__(self, kind: str = "file") -> None:
        self.kind = kind

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """Let the shell complete it."""
        return [CompletionItem(incomplete, type=self.kind)]


class InputFile(FileName):
    """A file that is read; "-" is standard input, stored because files are read twice."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return its path; click.UsageError if standard input is given twice."""
        if value != "-" or param is None or ctx is None or ctx.resilient_parsing:
            return value
        is_option, names = isinstance(param, click.Option), ctx.meta.setdefault(__name__, [])
        names.append(param.opts[0] if is_option else param.human_readable_name)
        if len(names) > 1:
            both = " and ".join(names)
            raise click.UsageError(f"standard input (-) must be given once, got {both}", ctx)
        stored = Path(ctx.with_resource(_folder()), "stdin")
        with named_errors(str(stored)), stored.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        return str(stored)


@contextmanager
def _folder() -> Iterator[str]:
    """Make a folder; it also goes, without a warning, if a later option is wrong."""
    folder = mkdtemp()
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


INPUT = InputFile()
"""The type of all options that name a file to read."""
