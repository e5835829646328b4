"""What fit and classify have in common: options, the search, and where its result goes."""

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import click

from bayescascade.cli.options import (
    JOBS,
    Integer,
    Real,
    parse_continuous,
    parse_kinds,
    split_commas,
)
from bayescascade.cli.output import (
    INTERRUPTED,
    check_outputs,
    echo_json,
    echo_page,
    is_terminal,
    note,
    warn,
)

if TYPE_CHECKING:
    from bayescascade.model.estimator import AnyEstimator

__all__ = [
    "CHOICE_OPTIONS",
    "COLUMN_OPTIONS",
    "POSITIVE",
    "PREDICTIVES",
    "RUN_OPTIONS",
    "Outputs",
    "declarations",
    "given",
    "learn",
    "listed",
    "search_option",
    "take_outputs",
    "with_options",
]

SAMPLED = ("anneal+metropolis", "anneal", "metropolis", "tempering")
PREDICTIVES = ("map", "average")
POSITIVE = Real(above=0.0)

Command = TypeVar("Command", bound=Callable[..., Any])
Option: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]

CHOICE_OPTIONS: tuple[Option, ...] = (
    click.option(
        "--columns",
        multiple=True,
        metavar="NAME,...",
        help="Columns to use; all others are left out.",
    ),
    click.option("--drop", multiple=True, metavar="NAME,...", help="Columns to leave out."),
)
"""Which columns to use."""

COLUMN_OPTIONS: tuple[Option, ...] = (
    *CHOICE_OPTIONS,
    click.option(
        "--weights", metavar="NAME", help="Column of how many rows each row stands for."
    ),
    click.option(
        "--nominal",
        multiple=True,
        metavar="NAME[:LEVEL,...]",
        help="Column whose levels have no order.",
    ),
    click.option(
        "--ordinal",
        multiple=True,
        metavar="NAME[:LEVEL,...]",
        help="Column whose levels have one, given here unless they are numbers: age:child,adult.",
    ),
    click.option(
        "--continuous",
        multiple=True,
        metavar="NAME:BINS|EDGE,...",
        help="Column of real numbers: so many bins, or these edges: income:10, income:0,10,50.",
    ),
    click.option(
        "--missing",
        type=click.Choice(["error", "level"]),
        help="Empty cells are an error (the default), or a level of their own.",
    ),
)  # fmt: skip
"""Which columns to use, and how to read them."""

RUN_OPTIONS: tuple[Option, ...] = (
    click.option(
        "--steps",
        "n_steps",
        type=Integer(1),
        help="Proposals per chain and phase, of searches by chains.",
    ),
    click.option("--chains", "n_chains", type=Integer(1), help="Independent chains (4)."),
    click.option(
        "--jobs",
        "n_jobs",
        type=JOBS,
        help="Chains run at the same time; -1, the default: one per core.",
    ),
    click.option("--seed", "random_state", type=Integer(0), help="Same seed, same result."),
    click.option("--checkpoint", metavar="FILE", help="Save the chains here every few seconds."),
    click.option("--resume", is_flag=True, help="Go on with the chains in --checkpoint."),
    click.option("--trace", metavar="FILE.nc", help="Write the posterior's draws for ArviZ."),
    click.option("--out", metavar="FILE.json", help="Save the model."),
    click.option("--json", "as_json", is_flag=True, help="Print JSON at full precision."),
    click.option(
        "--quiet", is_flag=True, help="No progress bar, and nothing on stdout but --json."
    ),
)
"""How to search, and where the result goes."""


def search_option(*exact: str) -> Option:
    """Return the option ``--search`` of a model with these exact searches beside the sampled."""
    choices = click.Choice([*exact, *SAMPLED])
    proof = "exact proves that nothing is more probable, the others look for the best by chains"
    told = (
        f"{proof}; auto: exact where that is quick (trees; the default)."
        if "auto" in exact
        else f"{proof}."
    )
    return click.option("--search", type=choices, help=f"How to search: {told}")


@dataclass(frozen=True)
class Outputs:
    """Where what was learned goes.

    Parameters
    ----------
    model, trace : str or None
        Files to write; None for none.
    as_json, quiet : bool
        Whether to print JSON; whether to print nothing else.
    """

    model: str | None
    trace: str | None
    as_json: bool
    quiet: bool


def with_options(*options: Option) -> Callable[[Command], Command]:
    """Return a decorator that gives a command these options, in this order."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            option(command)
        return command

    return decorate


def take_outputs(options: dict[str, Any], data: str) -> Outputs:
    """Take the options of where to write out of `options`; check them before anything is computed.

    Raises
    ------
    click.UsageError
        If a file cannot be written or is the data's, or there is nothing to resume.
    """
    outputs = Outputs(
        options.pop("out"), options.pop("trace"), options.pop("as_json"), options.pop("quiet")
    )
    check_outputs(
        {"--out": outputs.model, "--trace": outputs.trace, "--checkpoint": options["checkpoint"]},
        {"DATA": data},
    )
    if options["resume"] and options["checkpoint"] is None:
        raise click.UsageError("--resume needs --checkpoint FILE")
    return outputs


def declarations(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `Table.from_csv` takes of the `COLUMN_OPTIONS`, without what was not given."""
    return given(
        {
            "columns": listed(options["columns"]),
            "drop": listed(options["drop"]),
            "weights": options["weights"],
            "nominal": parse_kinds("--nominal", options["nominal"]),
            "ordinal": parse_kinds("--ordinal", options["ordinal"]),
            "continuous": parse_continuous(options["continuous"]),
            "missing": options["missing"],
        }
    )


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options without what was not given."""
    return {name: value for name, value in options.items() if value is not None}


def learn(
    context: click.Context,
    model: "AnyEstimator",
    fit: Callable[[], object],
    notes: Sequence[str],
    outputs: Outputs,
) -> None:
    """Fit a model, save it and print it; exit with 130 if Ctrl-C ended the search early.

    Parameters
    ----------
    context : click.Context
    model : estimator
        Its parameters are checked.
    fit : callable
        Fits the model.
    notes : sequence of str
        What a user should know of the rows.
    outputs : Outputs
    """
    if outputs.trace is not None and (model.learned_name, model.search) == ("rules", "exact"):
        raise click.UsageError("--trace needs a --search that draws lists, got exact")
    for text in notes:
        note(text)
    if outputs.quiet or not sys.stderr.isatty():
        fit()
    else:
        from bayescascade.cli.progress import progress_bar

        with progress_bar(model.size_name, model.size_words[1]) as show:
            model.set_params(progress=show)
            fit()
    with ExitStack() as stack:  # from the last to the first, each whatever becomes of the others
        stack.callback(_print, model, outputs)
        if outputs.trace is not None:
            stack.callback(model.run_.save_trace, outputs.trace)
        if outputs.model is not None:
            stack.callback(model.save, outputs.model)
    if model.summary_.interrupted:
        is_kept = model.checkpoint is not None and model.search != "exact"
        goes_on = "; --resume goes on from there" if is_kept else ""
        click.echo(
            f"interrupted: the {model.learned_word} is the best found so far{goes_on}", err=True
        )
        context.exit(INTERRUPTED)


def listed(texts: Sequence[str]) -> list[str] | None:
    """Return the names in texts such as "age,sex", None if there are none."""
    return [name for text in texts for name in split_commas(text)] or None


def _print(model: "AnyEstimator", outputs: Outputs) -> None:
    if outputs.as_json:
        echo_json(model.record())
    elif not outputs.quiet:
        echo_page(model.page())
    if outputs.as_json or outputs.quiet or not is_terminal():  # on a terminal, the text has said it
        for text in model.summary_.warnings:
            warn(text)
