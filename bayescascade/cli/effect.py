"""``bayescascade effect``: for whom a treatment works, in rules."""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import click

from bayescascade.cli.declared import Models, option_of
from bayescascade.cli.learning import Task, TrainingData, learning, set_up
from bayescascade.cli.listed import label_of
from bayescascade.cli.options import CHOICE_OPTIONS, SAVE_OPTION, with_options
from bayescascade.cli.output import note
from bayescascade.cli.reading import with_reading
from bayescascade.methods.effects.parameters import EffectParameters

MODELS: Models = {"": EffectParameters}
_METHODS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "auto": ("EffectModel", {}),
    "kernel": ("EffectModel", {"learner": "kernel"}),
    "forest": ("EffectModel", {"learner": "forest"}),
    "svm": ("CausalSVM", {}),
}
_GIVEN = ("good", "treated", "missing", "unknown", "effort", "random_state", "n_jobs")
_HELD_OUT = 3  # one row in three measures the rules
_LEAST = 5  # rows of each arm and outcome to learn from


@click.command(short_help="Learn for whom a treatment works.")
@click.argument("data")
@click.option(
    "--outcome", metavar="NAME", required=True, help="Column of outcomes, with two values."
)
@click.option(
    "--treatment",
    metavar="NAME",
    required=True,
    help="Column of arms (treated or not), with two values.",
)
@click.option(
    "--known-propensity",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="P",
    help="Share of treated rows, if known by design, as in a randomized trial.",
)
@click.option(
    "--method",
    type=click.Choice(list(_METHODS)),
    default="auto",
    show_default=True,
    help="Learn by a kernel, by a forest, by a mixture (auto), or by the minimax "
    "support vector machine of Goh's thesis (svm).",
)
@click.option(
    "--weights", metavar="NAME", help="Column of weights of rows, of which only the ratios matter."
)
@click.option(
    "--explain/--no-explain",
    "explain",
    default=True,
    help="Print rules that say for which rows the treatment works (the default). A third of the "
    "rows is held out to measure the effect in each rule.",
)
@click.option("--rules-out", metavar="FILE.json", help="Save the rules, for show and predict.")
@with_options(*(option_of(name, MODELS) for name in _GIVEN))
@with_options(*CHOICE_OPTIONS)
@with_reading(learns=True, labels=True)
@SAVE_OPTION
@learning
def effect(data: str, **options: Any) -> tuple[Task, TrainingData]:
    """Learn what a treatment does to each row of the table DATA.

    DATA has the outcome and the arm of each row in the columns --outcome and --treatment, with two
    values each. By default the larger value, or the later one in the alphabet, is the good outcome,
    or the treated arm; --good and --treated change that. All other columns must be known before the
    treatment, and must include everything that influenced who was treated.
    """
    outcome, treatment = options.pop("outcome"), options.pop("treatment")
    known, explains = options.pop("known_propensity"), options.pop("explain")
    rules_out = options["rules_out"]
    _check_columns(outcome, treatment, options["weights"])
    if rules_out is not None and not explains:
        raise click.UsageError("--rules-out must come without --no-explain, got both")
    name, given = _METHODS[options.pop("method")]
    files = {"--out": "out", "--rules-out": "rules_out"}
    task = set_up(name, {"DATA": data}, {**options, **given}, EffectParameters, files=files)
    from bayescascade.cli.rows import check_some_known, open_rows, read_labeled
    from bayescascade.data.names import check_known

    source = open_rows(data)
    check_known("--outcome", [outcome], source.names)
    check_known("--treatment", [treatment], source.names)
    chosen = {k: v for k, v in task.declared.items() if k in ("columns", "drop", "weights")}
    if treatment in chosen.get("drop", ()):
        raise click.UsageError(f"--drop must not name the column of --treatment, got {treatment}")
    if "columns" in chosen:
        chosen["columns"] = [*chosen["columns"], treatment]
    X, y, weights = read_labeled(source, outcome, **chosen)
    arms = X.pop(treatment)
    check_some_known(X)
    for option, name, column in (("--outcome", "good", y), ("--treatment", "treated", arms)):
        _check_two(option, column)
        if options[name] is not None:
            task.model.set_params(**{name: label_of(f"--{name}", options[name], column)})
    rows = EffectArguments(X, y, arms, known, weights)
    if not explains:
        return task, TrainingData(rows)

    def write(model: Any) -> None:
        if model.effect_rules_ is not None:
            model.effect_rules_.save(rules_out)

    fit = partial(_explained, task.model)
    return task, TrainingData(rows, fit=fit, write=None if rules_out is None else write)


class EffectArguments(NamedTuple):
    """The arguments of a model's `fit`."""

    X: Any
    y: Any
    arms: Any
    known: Any  # propensity
    weights: Any  # (n,), or None

    def part(self, chosen: Any) -> "EffectArguments":
        """Return some of the rows."""
        weights = None if self.weights is None else self.weights[chosen]
        return EffectArguments(
            self.X[chosen], self.y[chosen], self.arms[chosen], self.known, weights
        )


def _check_columns(outcome: str, treatment: str, weights: str | None) -> None:
    """Raise click.UsageError if a column has two roles."""
    if outcome == treatment:
        raise click.UsageError(f"--treatment must be another column than --outcome, got {outcome}")
    for option, name in (("--outcome", outcome), ("--treatment", treatment)):
        if name == weights:
            raise click.UsageError(f"--weights must be another column than {option}, got {name}")


def _check_two(option: str, cells: Any) -> None:
    """Raise DataError unless a column has two values, and no missing cell."""
    from bayescascade.base.errors import DataError
    from bayescascade.data.levels import level_text

    missing = cells.isna().to_numpy()
    if missing.any():
        raise DataError(
            f"{option} must have a value in every row, got none in row "
            f"{int(missing.argmax()) + 1}: fill it, or leave such rows out"
        )
    texts = sorted(map(level_text, cells.unique().tolist()))
    if len(texts) != 2:
        shown = ", ".join([*texts[:4], *["..."] * (len(texts) > 4)])
        raise DataError(f"{option} must have two values, got {len(texts)}: {shown}")


def _explained(model: Any, *rows: Any) -> Any:
    """Fit to two thirds of the rows, and measure rules on the others; without rules if too few."""
    import numpy as np

    from bayescascade.base.errors import DataError, ParameterError
    from bayescascade.model.search import seed_sequence

    given = EffectArguments(*rows)
    rng = np.random.default_rng(seed_sequence(model.random_state).spawn(1)[0])
    is_held_out = rng.permutation(len(given.y)) % _HELD_OUT == 0
    learned, others = given.part(~is_held_out), given.part(is_held_out)
    if not _is_enough(learned):
        note(
            "no rows were held out to measure effects, because an arm would have too few rows to "
            f"learn from; at least {_LEAST} per arm and outcome are needed"
        )
        return model.fit(*given)
    model.fit(*learned)
    try:
        model.explain(learned.X, held_out=tuple(others), random_state=model.random_state)
    except (DataError, ParameterError) as error:
        note(f"effects in groups were not measured: {error}")
    return model


def _is_enough(rows: EffectArguments) -> bool:
    """Whether each arm has enough rows of both outcomes."""
    import pandas as pd

    used = slice(None) if rows.weights is None else rows.weights > 0.0
    counts = pd.crosstab(rows.arms[used], rows.y[used])
    return counts.shape == (2, 2) and int(counts.to_numpy().min()) >= _LEAST
