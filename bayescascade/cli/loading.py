"""Loading of saved models: checks of their roles, and the option on unknown levels."""

from typing import TYPE_CHECKING, Any

import click

from bayescascade.base.texts import with_article
from bayescascade.cli.options import RealType

if TYPE_CHECKING:
    from bayescascade.data.read_as import ReadAs
    from bayescascade.data.sources import Source

_SLOW_ROWS = 10_000

UNKNOWN_OPTION = click.option(
    "--unknown",
    type=click.Choice(["ignore", "rare", "error"]),
    help="A level that the model does not know counts as missing (ignore); gives its row a very "
    "low density, if the model is a density (rare); or is an error (error). Default: the setting "
    "of the fit.",
)
"""How unknown levels are treated, if not as in the fit."""


def without_dash(_context: click.Context, _option: click.Parameter, path: str | None) -> str | None:
    """Return the path of a file for rows; None, for standard output, if it is "-"."""
    return None if path == "-" else path


ROWS_OPTION = click.option(
    "--out",
    metavar="FILE",
    callback=without_dash,
    help="Write the rows to this file: Parquet if the name ends in .parquet or .pq, otherwise CSV.",
)
"""The output file of rows, for `streaming.write_rows`."""


BUDGET_OPTION = click.option(
    "--budget",
    type=RealType(minimum=0.0),
    metavar="COST",
    help="For the classifiers of several budgets in one file: use that of the largest budget up to "
    "COST.",
)
"""The classifier to use in a file of several, for `load_model`."""


def load_model(
    path: str, unknown: str | None = None, budget: float | None = None
) -> Any:  # Any: each family has its own
    """Return a saved model that treats unknown levels as the option says.

    Of classifiers for several budgets, it is that for `budget`. Raises click.UsageError if there is
    no such classifier, or if the model cannot treat levels so; ModelFileError if the file cannot be
    read.
    """
    from bayescascade.model.record import load

    model = load(path)  # first, as other modules take long to import
    from bayescascade.base.errors import ParameterError
    from bayescascade.model.roles import ManyBudgets

    if budget is not None:
        several: ManyBudgets = in_role(ManyBudgets, model, "--budget", path)
        try:
            model = several.within(budget)
        except ParameterError as error:
            raise click.UsageError(f"--{error}") from None
    elif isinstance(model, ManyBudgets):
        amounts = ", ".join(f"{budget:.12g}" for budget in model.budgets)
        raise click.UsageError(
            f"{path} has classifiers for the budgets {amounts}: show, score, predict and explain "
            "choose one with --budget"
        )
    if unknown is not None:
        declared = model.declares.declared().get("unknown")
        choices = () if declared is None else declared.words
        if unknown not in choices:
            must = f"must be one of {', '.join(choices)}" if choices else "must not be given"
            kind = with_article(model.title)
            raise click.UsageError(f"--unknown {must} for {kind}, got {unknown}")
        model.set_params(unknown=unknown)
    return model


def open_for(model: Any, data: "str | ReadAs") -> "Source":
    """Open a file in blocks that take a model seconds at most, so that Ctrl-C works."""
    from bayescascade.cli.rows import open_rows
    from bayescascade.data.read_as import ReadAs

    if isinstance(data, ReadAs) and data.labels is None:
        data = data.with_names(labels=getattr(model, "target_", None), weights=None)
    schema = getattr(model, "schema_", None)
    columns = getattr(model, "learned_columns", ()) if schema is None else schema.columns
    is_slow = getattr(model, "predictive", "map") != "map"  # hundreds of states for each row
    return open_rows(data, _SLOW_ROWS if is_slow else None, columns)


def in_role(role: Any, thing: Any, what: str, path: str) -> Any:
    """Return a model, or its learned value, if it has a role: a protocol of `model.roles`.

    Otherwise raises click.ClickException, whose message begins with `what`, a command or an option.
    """
    if isinstance(thing, role):
        return thing
    from bayescascade.model.record import load
    from bayescascade.model.roles import ROLE_WORDS

    words = f"{ROLE_WORDS[role]}, got {path}, {with_article(load(path).title)}"
    raise click.ClickException(f"{what} needs {words}")
