"""``bayescascade completion``: completion of commands, options and files in a shell."""

import click
from click.shell_completion import CompletionItem, get_completion_class

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


def complete_files(group: click.Group) -> None:
    """Complete files for all commands: in arguments, and in options whose help names a file."""
    for command in group.commands.values():
        if isinstance(command, click.Group):
            complete_files(command)
        for parameter in command.params:
            metavar = parameter.metavar or ""
            if parameter.type is not click.STRING:
                continue
            if isinstance(parameter, click.Argument) or metavar.startswith("FILE"):
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
