"""``bayescascade completion``, and the types of files: those of shells, and those that are read."""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import click
from click.shell_completion import CompletionItem, get_completion_class

from bayescascade.base.files import named_errors

SHELLS = ("bash", "zsh", "fish")


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


def complete_files(group: click.Group) -> None:
    """Give all commands types of files: arguments are read, and help may name other files."""
    for command in group.commands.values():
        if isinstance(command, click.Group):
            complete_files(command)
        for parameter in command.params:
            metavar = parameter.metavar or ""
            if parameter.type is not click.STRING:
                continue
            if isinstance(parameter, click.Argument):
                parameter.type = INPUT
            elif metavar.startswith("FILE"):
                parameter.type = FileName()
            elif metavar == "DIR":
                parameter.type = FileName("dir")


@click.command(short_help="Print a script that lets a shell complete commands.")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that lets SHELL complete commands, options and files.

    bash: put eval "$(bayescascade completion bash)" into ~/.bashrc; zsh the same into ~/.zshrc;
    fish: bayescascade completion fish > ~/.config/fish/completions/bayescascade.fish.
    """
    shell_class = get_completion_class(shell)
    root = context.find_root()
    assert shell_class is not None, "click has all of them"
    script = shell_class(root.command, {}, "bayescascade", "_BAYESCASCADE_COMPLETE")
    click.echo(script.source_template % script.source_vars())
