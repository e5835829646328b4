"""``bayescascade fit``: from a data file to a printed and saved density."""

from typing import Any

import click

from bayescascade.cli.cluster import with_cluster
from bayescascade.cli.learning import (
    COLUMN_OPTIONS,
    POSITIVE,
    RULE_OPTIONS,
    RUN_OPTIONS,
    learn,
    search_option,
    set_up,
    unknown_option,
    with_options,
)
from bayescascade.cli.options import Integer, Real
from bayescascade.cli.reading import with_reading

__all__ = ["fit"]

MODELS = ("auto", "leaf", "branch", "rules", "mixture")
NAMES = {"auto": "AutoCascade", "mixture": "CascadeMixture"}
"""What saved files call a model, if otherwise."""
OF_MODELS = (
    "effort", "concentration", "density", "search", "expected_leaves", "expected_branches",
    "max_branches", "max_leaves", "partitions", "leaf", "leaf_concentration", "feature_inclusion",
    "expected_rules", "expected_size", "max_size", "scratch", "start", "max_depth", "temper",
    "prior", "stop",
    "n_components", "kind", "smoothing", "n_starts", "max_iter", "tol", "n_steps", "n_chains",
    "until", "memory_limit", "predictive", "tree", "checkpoint", "resume",
)  # fmt: skip
"""Options that not every model has."""


@click.command(short_help="Find the most probable tree, or rule list, of a table.")
@click.argument("data")
@click.option(
    "--model",
    type=click.Choice(MODELS),
    help="What suits the table (auto), a tree with a prior on the number of leaves or on the "
    "branches of every node, rules, or a mixture of classes of rows (the first that has the other "
    "options: auto).",
)
@click.option(
    "--effort",
    type=click.Choice(["normal", "quick", "thorough"]),
    help="How much is tried to find what suits: a minute, seconds, or half an hour (auto; normal).",
)
@click.option("--expected-leaves", type=POSITIVE, help="Leaves expected (leaf model; 8).")
@click.option(
    "--expected-branches", type=POSITIVE, help="Branches expected of a node (branch model; 2)."
)
@click.option(
    "--prior",
    type=click.Choice(["poisson", "generative", "size"]),
    help="What weighs trees: a Poisson of leaves or branches, a process that stops at each node "
    "with probability --stop, or a Poisson of leaves that all trees with as many share (trees, "
    "size of the leaf model alone; poisson).",
)
@click.option(
    "--stop",
    type=Real(above=0.0, below=1.0),
    help="Probability of a leaf under the generative prior (trees; 0.5).",
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
    type=click.Choice(["subsets", "levels"]),
    help="A split groups levels in any way, or sends each its own way (trees; subsets).",
)
@click.option(
    "--leaf",
    type=click.Choice(["uniform", "independent", "dependent", "auto"]),
    help="Rows inside a leaf: all alike, each column by itself, any two together, or what has the "
    "largest evidence (trees; auto).",
)
@click.option(
    "--leaf-concentration",
    type=POSITIVE,
    help="Dirichlet parameter of a level inside an independent leaf (trees; 1).",
)
@click.option(
    "--feature-inclusion",
    type=Real(above=0.0, below=1.0),
    help="Probability that a column is used at all (branch model; no such prior).",
)
@click.option(
    "--max-depth",
    type=Integer(0),
    help="Most columns that lead to a dependent leaf, of an exact search (branch model; as many as "
    "take seconds).",
)
@click.option(
    "--temper",
    type=Real(above=0.0, other="auto"),
    help="Decide on splits above dependent leaves as if by at most so many rows, or auto, as rows "
    "held out score best (branch model; all).",
)
@click.option(
    "--scratch",
    metavar="DIR",
    help="Directory for what an exact search cannot keep in memory (trees; none).",
)
@click.option(
    "--start",
    type=click.Choice(["random", "greedy"]),
    help="Chains start from random trees, or from a greedy one (trees; random).",
)
@click.option(
    "--tree",
    type=click.Choice(["best", "typical"]),
    help="Show the most probable tree, or that of the drawn ones which is nearest to all others "
    "(auto, trees; best).",
)
@click.option(
    "--density",
    type=click.Choice(["posterior_mean", "empirical"]),
    help="Probability of a leaf or rule: posterior mean, or its part of the rows.",
)
@click.option(
    "--components",
    "n_components",
    type=Integer(1, other="auto"),
    help="Number of classes, or as many as rows held out prefer (mixture; auto).",
)
@click.option(
    "--kind",
    type=click.Choice(["auto", "independent", "dependent", "cascade"]),
    help="Inside a class, columns are independent or joined by a tree; or one cascade is the only "
    "class (mixture; auto).",
)
@click.option(
    "--smoothing",
    type=Real(above=0.0, other="auto"),
    help="Rows imagined in each class (mixture; auto).",
)
@click.option(
    "--starts", "n_starts", type=Integer(1), help="Starts of EM, the best is kept (mixture; 6)."
)
@click.option("--max-iter", type=Integer(1), help="Most steps of EM from a start (mixture; 100).")
@click.option(
    "--tol", type=POSITIVE, help="Nats a row below which a step of EM is the last (mixture; 1e-4)."
)
@unknown_option(
    other="makes its row as rare as that none such was seen",
    missing="counts as missing",
    error="is an error",
)
@with_options(*RULE_OPTIONS, *COLUMN_OPTIONS, search_option("auto", "exact"), *RUN_OPTIONS)
@with_reading(learns=True)
@with_cluster
@click.pass_context
def fit(context: click.Context, /, data: str, **options: Any) -> None:
    """Find the most probable density of the table DATA (.csv, .csv.gz, .parquet).

    It is a tree of the kind that suits the table; --model, or an option of one, says which.
    With --model rules it is a list: if ..., else if ..., else. Ctrl-C ends the search early, and
    --time-limit ends it then: what was found is printed and saved.
    """
    name = options.pop("model") or _model_of(options)
    _check_options(name, options)
    from bayescascade.cli.rows import read_table

    if name in ("leaf", "branch") and options["leaf"] is None:
        options["leaf"] = "auto"
    task = set_up(NAMES.get(name, name), data, options)
    table = read_table(data, **task.declared)
    learn(context, task, table, table.notes)


def _model_of(options: dict[str, Any]) -> str:
    """Return the first of the models that has all options that are given; else the first."""
    given = {name for name in OF_MODELS if options[name] not in (None, False)}
    return next((model for model in MODELS if given <= _parameters(model)), MODELS[0])


def _parameters(model: str) -> set[str]:
    from bayescascade.model.record import model_class

    return set(model_class(NAMES.get(model, model))._get_param_names())


def _check_options(model: str, options: dict[str, Any]) -> None:
    """Take out the options that a model does not have; raises click.UsageError if one is given."""
    needed = {name: name for name in OF_MODELS} | {"trace": "n_chains"}
    for name, parameter in needed.items():
        if parameter in _parameters(model):
            continue
        if options.pop(name) not in (None, False):
            having = [one for one in MODELS if parameter in _parameters(one)]
            option = "--" + name.removeprefix("n_").replace("_", "-")
            raise click.UsageError(f"{option} needs --model {' or '.join(having)}, got {model}")
    if (model, options.get("search")) == ("rules", "auto"):
        raise click.UsageError("--search auto needs --model leaf or branch, got rules")
