"""The `bayescascade` command: its subcommands, exit codes, and errors of one line."""

import gc
import io
import os
import re
import signal
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TextIO

import click

from bayescascade import __version__
from bayescascade.base.errors import UnknownLevelWarning
from bayescascade.base.files import named_errors
from bayescascade.base.typed_words import words_of_commands
from bayescascade.cli.budget import budget
from bayescascade.cli.causal import causal
from bayescascade.cli.classify import classify
from bayescascade.cli.compare import compare
from bayescascade.cli.completion import complete_files, completion
from bayescascade.cli.compress import compress
from bayescascade.cli.deferred import defer
from bayescascade.cli.doctor import doctor
from bayescascade.cli.effect import effect
from bayescascade.cli.evidence import evidence
from bayescascade.cli.explaining import explain
from bayescascade.cli.fit import fit
from bayescascade.cli.impute import impute
from bayescascade.cli.listed import command_of
from bayescascade.cli.online import online
from bayescascade.cli.output import INTERRUPTED, say
from bayescascade.cli.rados import rados
from bayescascade.cli.saved import diagnose, predict, sample, score, show
from bayescascade.cli.sensors import sensors
from bayescascade.methods.listed import COMMANDS

_SELDOM_USED = (
    "scipy.stats", "scipy.optimize", "numpy.f2py", "numpy.testing", "yaml", "asyncio",
    "sklearn.externals.array_api_extra", "scipy.signal", "scipy.signal.windows",
)  # fmt: skip
_SELDOM_CALLED = (
    "scipy.stats.circmean", "scipy.stats.gmean", "scipy.stats.rankdata",
    "scipy.optimize.brentq", "scipy.optimize.linear_sum_assignment", "scipy.signal.convolve",
    "scipy.signal.convolve2d", "scipy.signal.windows.gaussian",
)  # fmt: skip

USAGE_ERROR = 2
BROKEN_PIPE = 141  # the code that a shell reports for a program ended by SIGPIPE

_NEW_OBJECTS = 10_000
"""Number of new objects after which the interpreter collects garbage.

Imports create hundreds of thousands of objects that stay, and Python would scan them every 700.
"""


class Application(click.Group):
    """A group of commands whose errors are one line on stderr and exit code 2, no tracebacks.

    Ctrl-C exits with 130; a closed pipe (``| head``) exits with 141, without a message.
    """

    def main(  # type: ignore[override] # click's has overloads for a mode that is not offered
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> NoReturn:
        """Run a command and exit; `extra` goes to click."""
        args = sys.argv[1:] if args is None else args
        extra["standalone_mode"] = False
        sys.stdout, sys.stderr = _named(_usable(sys.stdout)), _usable(sys.stderr)
        with warnings.catch_warnings(), words_of_commands():
            warnings.showwarning = _shown_once()
            warnings.simplefilter("always", UnknownLevelWarning)
            try:
                code = super().main(args, prog_name or "bayescascade", **extra) or 0
            except click.ClickException as error:
                context = error.ctx if isinstance(error, click.UsageError) else None
                hint = f" (see {context.command_path} --help)" if context is not None else ""
                code = _fail(error.format_message().rstrip(".") + hint)
            except click.Abort:
                code = INTERRUPTED
            except MemoryError:
                code = _fail("out of memory: use fewer columns or coarser levels")
            except Exception as error:
                from bayescascade.base.errors import BayesCascadeError
                from samplers.parameters import SamplerError

                if isinstance(error, BayesCascadeError | SamplerError | OSError):
                    code = _fail(_of_option(_message(error), _command_of(self, args)))
                elif _is_of_interrupt(error):
                    say("interrupted")
                    code = INTERRUPTED
                else:
                    raise  # a bug of the program, not an error of the user
        _flush_or_discard(sys.stdout)
        sys.exit(code)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order in which they are used."""
        del ctx
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> None:
        """Run the requested command."""
        try:
            super().invoke(ctx)
            sys.stdout.flush()
        except KeyboardInterrupt:
            say("interrupted")
            ctx.exit(INTERRUPTED)
        except BrokenPipeError:
            ctx.exit(BROKEN_PIPE)


@click.group("bayescascade", cls=Application, invoke_without_command=True)
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.pass_context
def application(context: click.Context) -> None:
    """Density trees and rule lists that a person can read, with a Bayesian posterior.

    fit learns the density of a table. classify, budget, compress and boxes predict a column: by
    rules, within a budget for features, by prototypes, or by boxes around a rare class. causal,
    effect, online, sensors and rados have other purposes (see below). Most of these commands save a
    model.

    show, score, predict, explain, impute and sample use a saved model. diagnose checks the chains
    of a saved trace. compare and evidence compare densities; compare also compares classifiers.

    A table is a CSV, Parquet, Arrow or Excel file, a folder, a pattern ("parts/*.csv"), a URL, or
    standard input ("-").
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


for command in (
    fit,
    classify,
    budget,
    compress,
    *map(command_of, COMMANDS),
    causal,
    effect,
    online,
    sensors,
    rados,
    evidence,
    show,
    score,
    predict,
    explain,
    impute,
    sample,
    diagnose,
    compare,
    doctor,
    completion,
):
    application.add_command(command)
complete_files(application)


def main() -> NoReturn:
    """Run the command line with the arguments of this process, and exit."""
    gc.set_threshold(_NEW_OBJECTS)
    defer(*_SELDOM_USED, functions=_SELDOM_CALLED)
    try:
        application.main()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    finally:  # Ctrl-C while the program exits has no work left to stop
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        gc.freeze()  # the last garbage collection took a seventh of a short fit


def _shown_once() -> Callable[..., None]:
    """Return a function that prints each different warning once, as a line on stderr.

    The commands themselves report chains that do not agree. The class of that warning is compared
    by name, because importing scikit-learn takes long.
    """
    shown = set[str]()

    def show(text: Warning | str, category: type[Warning], *_: object) -> None:
        if category.__name__ != "ConvergenceWarning" and str(text) not in shown:
            shown.add(str(text))
            say(f"warning: {' '.join(str(text).split())}")

    return show


_COMPOUND = re.compile(r"(?<![\w\"'/\\.-])[a-z]+(?:_[a-z]+)+\b(?!\.\w|[/\\-])")
"""Names of parameters that are not words of a sentence; users' names are in quotes or paths."""

_OF_LABELS = {"y": "target"}
"""Names of the labels in commands."""


def _command_of(group: click.Group, args: Sequence[str]) -> click.Command:
    """Return the command that the arguments call, also within groups of commands."""
    command: click.Command = group
    for word in args:
        if isinstance(command, click.Group):
            command = command.commands.get(word, command)
    return command


def _of_option(message: str, command: click.Command) -> str:
    """Return a message that names a command's options instead of parameters.

    A name that may also be a word counts as a parameter only at the beginning.
    """
    options = {
        option.name: max(option.opts, key=len)
        for option in command.params
        if isinstance(option, click.Option)
    }
    message = _COMPOUND.sub(lambda found: options.get(found[0], found[0]), message)
    name, blank, rest = message.partition(" ")
    if rest.startswith(("must ", "names ")):
        return options.get(_OF_LABELS.get(name, name), name) + blank + rest
    return message


def _is_of_interrupt(error: BaseException) -> bool:
    """Return whether Ctrl-C led to this error, for example in a compiler's clean-up."""
    context = error.__context__
    return context is not None and (
        isinstance(context, KeyboardInterrupt) or _is_of_interrupt(context)
    )


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


def _fail(message: str) -> int:
    say(f"error: {' '.join(message.split())}")
    return USAGE_ERROR


def _usable(stream: TextIO | None) -> TextIO:
    """Return a stream that takes any text: "?" for characters that its encoding does not have."""
    if stream is None:  # as after >&-
        return open(os.devnull, "w", encoding="utf-8")
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="replace")
    return stream


def _named(stream: TextIO) -> TextIO:
    """Let errors of writing to stdout say so; libraries also write to it."""
    name: Any = "standard output"
    stream.write = named_errors(name)(stream.write)  # type: ignore[method-assign]
    stream.flush = named_errors(name)(stream.flush)  # type: ignore[method-assign]
    return stream


def _flush_or_discard(stream: TextIO) -> None:
    """Flush, or drop text that cannot be written; the interpreter would report it at exit."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
