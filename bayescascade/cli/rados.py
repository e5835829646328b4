"""``bayescascade rados``: makes sums of rows at one place, and learns from them at another."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from bayescascade.cli.declared import Models, option_name, option_of, parameters_of
from bayescascade.cli.file_types import INPUT
from bayescascade.cli.learning import Task, TrainingData, learning, outputs_of, set_up
from bayescascade.cli.options import CHOICE_OPTIONS, SAVE_OPTION, Bounds, listed, with_options
from bayescascade.cli.reading import with_reading
from bayescascade.methods.rados.parameters import (
    FeatureParameters,
    GaussianParameters,
    LearnerParameters,
    SampleParameters,
)

if TYPE_CHECKING:
    from bayescascade.methods.rados.rados import Rados
    from bayescascade.report.page import Page

LEARNED: Models = {"": LearnerParameters}
MADE: Models = {
    "plain": SampleParameters,
    "--private-feature": FeatureParameters,
    "--bounds": GaussianParameters,
}


@click.group(short_help="Learn a classifier from aggregated sums of rows.")
def rados() -> None:
    """Learn a linear classifier of two classes from sums of rows (Rademacher observations).

    Run make where the rows are, and fit where the sums arrive; they may be on two machines. Other
    parties make their sums with --like and the file of the first party; fit adds them.
    """


@rados.command(short_help="Make sums of the rows of a file.")
@click.argument("data")
@click.option("--target", metavar="NAME", required=True, help="Column of the labels, two classes.")
@click.option("--out", metavar="FILE.npz", required=True, help="Write the rados here.")
@with_options(option_of("n_rados", MADE), option_of("support", MADE))
@click.option(
    "--like",
    type=INPUT,
    metavar="FILE.npz",
    help="Use the columns, classes and units of this file of rados.",
)
@click.option("--raw", is_flag=True, help="Do not center and scale columns.")
@click.option("--no-intercept", is_flag=True, help="Add no column of ones.")
@with_options(option_of("epsilon", MADE), option_of("delta", MADE))
@with_options(option_of("feature", {"": FeatureParameters}))
@with_options(option_of("values", MADE), option_of("truncation", MADE))
@click.option(
    "--bounds",
    type=Bounds(named=True),
    multiple=True,
    metavar="[NAME=]LOW,HIGH",
    help="Protect whole rows by Gaussian noise. Give the bounds of one column, or of all other "
    "columns; they must not come from the rows.",
)
@with_options(option_of("classes", MADE), option_of("noise_on", MADE))
@with_options(*CHOICE_OPTIONS, option_of("missing", MADE))
@with_reading(learns=True, labels=True)
@with_options(option_of("time_limit", MADE), option_of("random_state", MADE))
@learning
def make(data: str, **options: Any) -> tuple[Task, TrainingData]:
    """Make sums of labeled rows, and state how private they are.

    Plain sums are not private. With --private-feature and --epsilon, only the coordinate of this
    boolean feature is differentially private. With --bounds and --epsilon, whole rows are
    protected. Each release of the same rows spends more of their privacy, so run it once. Plain
    sums with --like are made block by block, from files of any size.
    """
    task = outputs_of(options, {"DATA": data, "--like": options["like"]})
    _check_private(options)
    if options["epsilon"] is not None and getattr(data, "depends_on_all_rows", False):
        raise click.UsageError(
            "--rare, --dates and --missing-labels must not come with --epsilon: they would "
            "reveal something about the rows"
        )
    return task, TrainingData(fit=lambda: _made(data, options), shown=_LabeledRados)


def _made(data: str, options: dict[str, Any]) -> "Rados":
    """Read rows, and return their sums with the privacy of the options."""
    from bayescascade.cli.rows import open_rows, read_labeled, read_typed
    from bayescascade.methods.rados.rados import Rados

    feature, epsilon = options["feature"], options["epsilon"]
    like = None if options["like"] is None else Rados.load(options["like"])
    source, target = open_rows(data), options["target"]
    columns, drop = listed(options["columns"]), listed(options["drop"])
    if like is not None and columns is None and drop is None:
        columns = like.reading.encoder.names
    plain = parameters_of(options, SampleParameters)
    if like is not None and epsilon is None and columns is not None and "support" not in plain:
        blocks = read_typed(source, [*columns, target], None)
        parts = ((frame, frame.pop(target)) for _, frame, _ in blocks)
        how = {name: plain[name] for name in ("n_rados", "random_state") if name in plain}
        return Rados.sample_parts(parts, like=like, **how)
    as_texts = () if epsilon is None else None if feature is None else [feature]
    X, y, _ = read_labeled(source, target, columns=columns, drop=drop, as_texts=as_texts)
    common: dict[str, Any] = {"like": like, "intercept": not options["no_intercept"]}
    if feature is not None:
        given = parameters_of(options, FeatureParameters)
        common["standardize"] = not options["raw"]
        return Rados.sample_feature_private(X, y, **given, **common)
    if epsilon is not None:
        given = {"delta": GaussianParameters.delta.default}
        given |= parameters_of(options, GaussianParameters)
        edge_bounds = _edge_bounds(options["bounds"], list(X.columns))
        return Rados.sample_gaussian(X, y, edge_bounds=edge_bounds, **given, **common)
    return Rados.sample(X, y, standardize=not options["raw"], **plain, **common)


class _LabeledRados(NamedTuple):
    """Rados, with the words that describe them."""

    made: "Rados"

    def page(self) -> "Page":
        return self.made.page()

    def to_dict(self) -> dict[str, Any]:
        from bayescascade.base.store import stored

        made = self.made
        return {
            "n_rados": len(made),
            "n_rows": made.n_rows,
            "support": made.support,
            "columns": made.reading.columns,
            "promise": stored(made.promise),
        }


@rados.command(short_help="Learn a classifier from files of sums.")
@click.argument("files", nargs=-1, required=True)
@SAVE_OPTION
@with_options(*(option_of(name, LEARNED) for name in LearnerParameters.declared()))
@learning
def fit(files: tuple[str, ...], **options: Any) -> tuple[Task, TrainingData]:
    """Learn a linear classifier from files that `make` wrote. Sums of several parties are added."""
    if options["learner"] is None and (options["n_rounds"] or options["weak_learner"]):
        options["learner"] = "boost"  # of which these come first
    inputs = {f"FILES {k + 1}": path for k, path in enumerate(files)}
    task = set_up("RadoBoostClassifier", inputs, options, LearnerParameters)
    from bayescascade.methods.rados.rados import Rados

    parts = [Rados.load(path) for path in files]
    return task, TrainingData(
        (parts[0] if len(parts) == 1 else Rados.merge(parts),), fit="fit_rados"
    )


def _check_private(options: dict[str, Any]) -> None:
    """Raise UsageError for options that do not go together."""
    feature, bounds, like = options["feature"], options["bounds"], options["like"]
    named = {"raw": "--raw", "no_intercept": "--no-intercept", "bounds": "--bounds"}

    def called(name: str) -> str:
        return named[name] if name in named else option_name(MADE, name)

    def must(is_so: bool, rule: str) -> None:
        if not is_so:
            raise click.UsageError(rule)

    is_private = options["epsilon"] is not None
    for name in ("feature", "bounds", "delta", "noise_on"):
        must(is_private or not options[name], f"{called(name)} must come with --epsilon, got none")
    must(
        not is_private or feature is not None or bool(bounds) or like is not None,
        "--epsilon must come with --private-feature or --bounds, got neither",
    )
    if feature is not None:
        for name in ("bounds", "classes", "noise_on", "support", "random_state"):
            is_given = options[name] not in (None, ())
            must(not is_given, f"{called(name)} must not come with --private-feature, got both")
    for name in ("raw", "no_intercept", "missing", "values", "classes"):
        must(not (options[name] and like), f"{called(name)} must not come with --like, got both")
    must(
        options["missing"] != "level" or not is_private,
        "--missing must be error with --epsilon, got level: imputed values would reveal "
        "something about the rows",
    )
    must(
        options["time_limit"] is None or not is_private,
        "--time-limit must not come with --epsilon: the number of sums would reveal something "
        "about the rows",
    )
    must(
        options["time_limit"] is None or not like,
        "--time-limit must not come with --like: sums of several parties are added one by one",
    )
    must(not (options["raw"] and bounds), "--raw must not come with --bounds, got both")
    for name in ("truncation", "values"):
        is_fine = options[name] is None or feature is not None
        must(is_fine, f"{called(name)} must come with --private-feature, got none")
    must(not options["classes"] or is_private, "--classes must come with --epsilon, got none")


def _edge_bounds(
    given: Sequence[tuple[str, tuple[float, float]]], columns: Sequence[str]
) -> dict[str, tuple[float, float]]:
    """Return the bounds of columns by name; bounds without a name are for all other columns."""
    from bayescascade.data.names import check_known

    names = [name for name, _ in given]
    for name in names:
        if names.count(name) > 1:
            whose = f'column "{name}"' if name else "all others"
            raise click.UsageError(f"--bounds must be given once for {whose}, got {names}")
    named = dict(given)
    rest = named.pop("", None)
    check_known("--bounds", named, columns)
    return named if rest is None else {**dict.fromkeys(columns, rest), **named}
