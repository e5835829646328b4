"""``bayescascade completion``: names of files, commands and options in shells."""

import click
from click.shell_completion import get_completion_class

from bayescascade.cli.file_types import INPUT, FileName

SHELLS = ("bash", "zsh", "fish")


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
