"""``bayescascade fit``: from a data file to a printed and saved model."""

import sys
from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from bayescascade.cli.options import (
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
    is_terminal,
    layout_options,
    note,
    warn,
)
from bayescascade.cli.rows import read_table

if TYPE_CHECKING:
    from bayescascade.cascades.base import Cascade
    from bayescascade.table import Table

__all__ = ["fit"]

# Options that only one model has, by parameter.
MODEL_OPTIONS = {
    "expected_leaves": "leaf",
    "expected_branches": "branch",
    "feature_inclusion": "branch",
}
SEARCHES = ("anneal+metropolis", "anneal", "metropolis", "tempering")
DENSITIES = ("posterior_mean", "empirical")
PREDICTIVES = ("map", "average")
_TABLE_OPTIONS = ("columns", "drop", "weights", "nominal", "ordinal", "continuous", "missing")
_POSITIVE = Real(above=0.0)


@click.command(short_help="Find the most probable tree of a table.")
@click.argument("data")
@click.option(
    "--model",
    type=click.Choice(["leaf", "branch"]),
    default="leaf",
    show_default=True,
    help="Prior on the number of leaves, or on the branches of every node.",
)
@click.option("--expected-leaves", type=_POSITIVE, help="Leaves expected (leaf model; 8).")
@click.option(
    "--expected-branches", type=_POSITIVE, help="Branches expected of a node (branch model; 2)."
)
@click.option(
    "--concentration", type=_POSITIVE, help="Dirichlet parameter of a leaf or branch (2)."
)
@click.option(
    "--max-branches",
    type=Integer(2, other="all"),
    help="Most branches of a split, or all (leaf model 2, branch model all).",
)
@click.option(
    "--feature-inclusion",
    type=Real(above=0.0, below=1.0),
    help="Probability that a column is used at all (branch model; no such prior).",
)
@click.option(
    "--density",
    type=click.Choice(DENSITIES),
    help="Probability of a leaf: posterior mean, or its part of the rows.",
)
@click.option(
    "--predictive",
    type=click.Choice(PREDICTIVES),
    help="Score and draw from the best tree, or from the average over posterior draws.",
)
@click.option(
    "--columns", multiple=True, metavar="NAME,...", help="Columns to use; all others are left out."
)
@click.option("--drop", multiple=True, metavar="NAME,...", help="Columns to leave out.")
@click.option("--weights", metavar="NAME", help="Column of how many rows each row stands for.")
@click.option(
    "--nominal",
    multiple=True,
    metavar="NAME[:LEVEL,...]",
    help="Column whose levels have no order.",
)
@click.option(
    "--ordinal",
    multiple=True,
    metavar="NAME[:LEVEL,...]",
    help="Column whose levels have one, given here unless they are numbers: age:child,adult.",
)
@click.option(
    "--continuous",
    multiple=True,
    metavar="NAME:BINS|EDGE,...",
    help="Column of real numbers: so many bins, or these edges: income:10, income:0,10,50.",
)
@click.option(
    "--missing",
    type=click.Choice(["error", "level"]),
    help="Empty cells are an error (the default), or a level of their own.",
)
@click.option("--search", type=click.Choice(SEARCHES), help="How to look for trees.")
@click.option("--steps", "n_steps", type=Integer(1), help="Proposals per chain and phase.")
@click.option("--chains", "n_chains", type=Integer(1), help="Independent chains (4).")
@click.option(
    "--jobs",
    "n_jobs",
    type=Integer(),
    help="Chains run at the same time; -1, the default: one per core.",
)
@click.option("--seed", "random_state", type=Integer(0), help="Same seed, same result.")
@click.option("--checkpoint", metavar="FILE", help="Save the run here every few seconds.")
@click.option("--resume", is_flag=True, help="Go on with the run in --checkpoint.")
@click.option("--trace", metavar="FILE.nc", help="Write the posterior's draws for ArviZ.")
@click.option("--out", metavar="FILE.json", help="Save the model.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON at full precision.")
@click.option("--quiet", is_flag=True, help="No progress bar, and nothing on stdout but --json.")
@click.pass_context
def fit(context: click.Context, /, data: str, as_json: bool, quiet: bool, **options: Any) -> None:
    """Find the most probable density tree of the table DATA (.csv, .csv.gz, .parquet).

    Ctrl-C ends the search early: what was found is printed and saved.
    """
    out, trace = options.pop("out"), options.pop("trace")
    check_outputs(
        {"--out": out, "--trace": trace, "--checkpoint": options["checkpoint"]}, {"DATA": data}
    )
    if options["resume"] and options["checkpoint"] is None:
        raise click.UsageError("--resume needs --checkpoint FILE")
    declared = _declarations(options)
    model = _estimator(options["model"], _parameters(options))
    model.check_parameters()  # before any data are read
    table = read_table(data, **declared)
    for text in table.notes:
        note(text)
    _fit(model, table, has_bar=not quiet and sys.stderr.isatty())
    with ExitStack() as stack:  # from the last to the first, each whatever becomes of the others
        stack.callback(_print, model, as_json, quiet)
        if trace is not None:
            stack.callback(model.run_.save_trace, trace)
        if out is not None:
            stack.callback(model.save, out)
    if model.summary_.interrupted:
        goes_on = "" if options["checkpoint"] is None else "; --resume goes on from there"
        click.echo(f"interrupted: the tree is the best found so far{goes_on}", err=True)
        context.exit(INTERRUPTED)


def _declarations(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `Table.from_csv` takes, without what was not given."""
    declared = {
        "columns": [name for text in options["columns"] for name in split_commas(text)] or None,
        "drop": [name for text in options["drop"] for name in split_commas(text)] or None,
        "weights": options["weights"],
        "nominal": parse_kinds("--nominal", options["nominal"]),
        "ordinal": parse_kinds("--ordinal", options["ordinal"]),
        "continuous": parse_continuous(options["continuous"]),
        "missing": options["missing"],
    }
    return {name: value for name, value in declared.items() if value is not None}


def _parameters(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the estimator takes, without what was not given."""
    for name, model in MODEL_OPTIONS.items():
        if options[name] is not None and options["model"] != model:
            option = "--" + name.replace("_", "-")
            raise click.UsageError(f"{option} needs --model {model}, got {options['model']}")
    given = {name: value for name, value in options.items() if value is not None}
    parameters = {k: v for k, v in given.items() if k not in (*_TABLE_OPTIONS, "model")}
    if parameters.get("max_branches") == "all":
        parameters["max_branches"] = None
    return parameters


def _estimator(model: str, parameters: Mapping[str, Any]) -> "Cascade":
    from bayescascade.cascades.estimators import BranchCascade, LeafCascade

    make = LeafCascade if model == "leaf" else BranchCascade
    return make(**{"n_jobs": -1, **parameters})


def _fit(model: "Cascade", table: "Table", *, has_bar: bool) -> None:
    if not has_bar:
        model.fit(table)
        return
    from bayescascade.cli.progress import progress_bar

    with progress_bar() as show:
        model.set_params(progress=show).fit(table)


def _print(model: "Cascade", as_json: bool, quiet: bool) -> None:
    if as_json:
        from bayescascade.report.records import model_record

        echo_json(model_record(model))
    elif not quiet:
        from bayescascade.report.text import model_text

        click.echo(model_text(model, **layout_options()))
    if as_json or quiet or not is_terminal():  # on a terminal, the text has said it
        for text in model.summary_.warnings:
            warn(text)
