"""``bayescascade fit``: from a data file to a printed and saved density."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from bayescascade.cli.learning import (
    COLUMN_OPTIONS,
    POSITIVE,
    PREDICTIVES,
    RUN_OPTIONS,
    declarations,
    given,
    learn,
    search_option,
    take_outputs,
    with_options,
)
from bayescascade.cli.options import Integer, Real
from bayescascade.cli.rows import read_table

if TYPE_CHECKING:
    from bayescascade.model.estimator import DensityEstimator

__all__ = ["fit"]

MODELS = ("leaf", "branch", "rules")
# Options that not every model has, by parameter.
MODEL_OPTIONS = {
    "expected_leaves": ("leaf",),
    "expected_branches": ("branch",),
    "max_branches": ("leaf", "branch"),
    "max_leaves": ("leaf",),
    "partitions": ("leaf", "branch"),
    "leaf": ("leaf", "branch"),
    "leaf_concentration": ("leaf", "branch"),
    "feature_inclusion": ("branch",),
    "expected_rules": ("rules",),
    "expected_size": ("rules",),
    "max_size": ("rules",),
    "start": ("leaf", "branch"),
    "time_limit": ("rules",),
}
PARTITIONS = ("subsets", "levels")
STARTS = ("random", "greedy")
LEAVES = ("uniform", "independent")
DENSITIES = ("posterior_mean", "empirical")
_NOT_PARAMETERS = (
    "model", "columns", "drop", "weights", "nominal", "ordinal", "continuous", "missing",
)  # fmt: skip


@click.command(short_help="Find the most probable tree, or rule list, of a table.")
@click.argument("data")
@click.option(
    "--model",
    type=click.Choice(MODELS),
    default="leaf",
    show_default=True,
    help="A tree, with a prior on the number of leaves or on the branches of every node; or rules.",
)
@click.option("--expected-leaves", type=POSITIVE, help="Leaves expected (leaf model; 8).")
@click.option(
    "--expected-branches", type=POSITIVE, help="Branches expected of a node (branch model; 2)."
)
@click.option("--expected-rules", type=POSITIVE, help="Rules expected (rules model; 3).")
@click.option(
    "--expected-size", type=POSITIVE, help="Conditions expected of a rule (rules model; 1)."
)
@click.option(
    "--concentration",
    type=POSITIVE,
    help="Dirichlet parameter of a leaf or branch (2), or rule (1).",
)
@click.option(
    "--max-branches",
    type=Integer(2, other="all"),
    help="Most branches of a split, or all (leaf model 2, branch model all).",
)
@click.option(
    "--max-leaves",
    type=Integer(1, other="all"),
    help="Most leaves of a tree, or all (leaf model; all).",
)
@click.option(
    "--partitions",
    type=click.Choice(PARTITIONS),
    help="A split groups levels in any way, or sends each its own way (trees; subsets).",
)
@click.option(
    "--leaf",
    type=click.Choice(LEAVES),
    help="Rows inside a leaf: all alike, or each column by itself (trees; uniform).",
)
@click.option(
    "--leaf-concentration",
    type=POSITIVE,
    help="Dirichlet parameter of a level inside an independent leaf (trees; 1).",
)
@click.option("--max-size", type=Integer(1), help="Most conditions of a rule (rules model; 2).")
@click.option(
    "--feature-inclusion",
    type=Real(above=0.0, below=1.0),
    help="Probability that a column is used at all (branch model; no such prior).",
)
@click.option(
    "--memory-limit",
    type=POSITIVE,
    help="Gigabytes that an exact search, or all possible rules, may take (2).",
)
@click.option(
    "--start",
    type=click.Choice(STARTS),
    help="Chains start from random trees, or from a greedy one (trees; random).",
)
@click.option(
    "--time-limit",
    type=POSITIVE,
    help="Seconds after which an exact search stops (rules model; no limit).",
)
@click.option(
    "--density",
    type=click.Choice(DENSITIES),
    help="Probability of a leaf or rule: posterior mean, or its part of the rows.",
)
@click.option(
    "--predictive",
    type=click.Choice(PREDICTIVES),
    help="Score and draw from the best found, or from the average over posterior draws.",
)
@with_options(*COLUMN_OPTIONS, search_option("auto", "exact"), *RUN_OPTIONS)
@click.pass_context
def fit(context: click.Context, /, data: str, **options: Any) -> None:
    """Find the most probable density of the table DATA (.csv, .csv.gz, .parquet).

    It is a tree, or with --model rules a list: if ..., else if ..., else. Ctrl-C ends the search
    early: what was found is printed and saved. Only an exact search of trees has nothing to show
    before it ends.
    """
    outputs = take_outputs(options, data)
    declared = declarations(options)
    model = _estimator(options["model"], _parameters(options))
    model.check_parameters()  # before any data are read
    table = read_table(data, **declared)
    learn(context, model, lambda: model.fit(table), table.notes, outputs)


def _parameters(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the estimator takes, without what was not given."""
    for name, models in MODEL_OPTIONS.items():
        if options[name] is not None and options["model"] not in models:
            option = "--" + name.replace("_", "-")
            raise click.UsageError(
                f"{option} needs --model {' or '.join(models)}, got {options['model']}"
            )
    if (options["model"], options["search"]) == ("rules", "auto"):
        raise click.UsageError("--search auto needs --model leaf or branch, got rules")
    parameters = {k: v for k, v in given(options).items() if k not in _NOT_PARAMETERS}
    for name in ("max_branches", "max_leaves"):
        if parameters.get(name) == "all":
            parameters[name] = None
    return parameters


def _estimator(model: str, parameters: Mapping[str, Any]) -> "DensityEstimator[Any, Any, Any]":
    parameters = {"n_jobs": -1, **parameters}
    if model == "rules":
        from bayescascade.methods.rules.estimators import DensityRuleList

        return DensityRuleList(**parameters)
    from bayescascade.methods.cascades.estimators import BranchCascade, LeafCascade

    return (LeafCascade if model == "leaf" else BranchCascade)(**parameters)
