"""``bayescascade fit``: from a data file to a printed and saved density."""

from typing import Any

import click

from bayescascade.cli.cluster import with_cluster
from bayescascade.cli.declared import Models, check_chosen, options_of, words_of
from bayescascade.cli.learning import Task, TrainingData, learning, set_up
from bayescascade.cli.near_best import beside, check_top, with_near_best
from bayescascade.cli.options import COLUMN_OPTIONS, OUTPUT_OPTIONS, with_options
from bayescascade.cli.reading import with_reading
from bayescascade.methods.density.listed import DENSITIES

LISTED = {name: each for name, each in DENSITIES.items() if each.is_fitted}
MODELS: Models = {name: each.parameters for name, each in LISTED.items()}


@click.command(short_help="Learn the density of a table: a tree, rules or a mixture.")
@click.argument("data")
@click.option(
    "--model",
    type=click.Choice(list(MODELS)),
    help=f"{words_of(LISTED.values())}. Default: auto, or the first model "
    "that has all options given.",
)
@with_options(
    *options_of(MODELS, of_runs=False), *COLUMN_OPTIONS, *options_of(MODELS, of_runs=True),
    *OUTPUT_OPTIONS,
)  # fmt: skip
@with_near_best
@with_reading(learns=True)
@with_cluster
@learning
def fit(data: str, **options: Any) -> tuple[Task, TrainingData]:
    """Learn the density of the table DATA.

    By default, the command chooses the kind of tree that suits the table; scores and draws average
    it with mixtures of classes if held-out rows favor this. --model sets the kind. --model rules
    learns a list: if ..., else if ..., else. Ctrl-C or --time-limit ends the search early. Then the
    best result so far is printed and saved. Brackets after an option name the models that have it,
    and its default.
    """
    near_best, top = options.pop("near_best"), options.pop("top")
    n_shown = check_top(near_best, top)
    name = options.pop("model") or _model_of(options)
    _check_options(name, options)
    from bayescascade.cli.rows import read_table

    task = set_up(LISTED[name].estimator, {"DATA": data}, options, MODELS[name])
    table = read_table(data, **task.declared)
    training = TrainingData((table,), table.notes)
    if near_best is not None:
        _check_near_best(task.model, name)
        training = training._replace(shown=lambda found: beside(found, found, near_best, n_shown))
    return task, training


def _check_near_best(model: Any, name: str) -> None:
    """click.UsageError if a model cannot list others."""
    import bayescascade

    if not hasattr(model, "near_best"):
        estimators = {one: getattr(bayescascade, each.estimator) for one, each in LISTED.items()}
        having = [estimator for estimator, kind in estimators.items() if hasattr(kind, "near_best")]
        raise click.UsageError(f"--near-best needs --model {' or '.join(having)}, got {name}")


def _model_of(options: dict[str, Any]) -> str:
    """Return the first model that has all given options; otherwise the first model."""
    of_models = {name for model in MODELS.values() for name in model.declared()}
    given = {name for name in of_models if options.get(name) not in (None, False)}
    having = (model for model, has in MODELS.items() if given <= set(has.declared()))
    return next(having, next(iter(MODELS)))


def _check_options(model: str, options: dict[str, Any]) -> None:
    """Remove options that a model does not have; click.UsageError if one is given."""
    check_chosen(MODELS, model, options, "--model")
    if "n_chains" not in MODELS[model].declared() and options.pop("trace") is not None:
        having = [model for model, has in MODELS.items() if "n_chains" in has.declared()]
        raise click.UsageError(f"--trace needs --model {' or '.join(having)}, got {model}")
