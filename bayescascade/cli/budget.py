"""``bayescascade budget``: classifiers within budgets, measured on rows that they have not seen."""

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from bayescascade.cli.declared import Models, option_of, parameters_of, words_of
from bayescascade.cli.learning import CHOICE_OPTIONS, with_options
from bayescascade.cli.options import Integer, split_commas
from bayescascade.cli.output import (
    INTERRUPTED,
    check_outputs,
    check_picture,
    echo_json,
    echo_page,
    note,
    save_figure,
    shown_count,
)
from bayescascade.cli.reading import with_reading
from bayescascade.cli.splitting import SPLIT_SEED, test_share_option
from bayescascade.methods.forests.parameters import ForestParameters
from bayescascade.methods.listed import BUDGET_LEARNERS

if TYPE_CHECKING:
    from bayescascade.costs.curve import CostAccuracyCurve
    from bayescascade.costs.items import FeatureCosts
    from bayescascade.data.splitting import SplitRows
    from bayescascade.methods.forests.base import BudgetedClassifier
    from bayescascade.report.page import Page

MODELS: Models = {"": ForestParameters}
_TREES = 40


@click.command(short_help="Classify within budgets for what features cost.")
@click.argument("data")
@click.option("--target", metavar="NAME", required=True, help="Column of the labels.")
@click.option(
    "--budgets",
    metavar="COST,...",
    required=True,
    help="The most that a row may cost on average; a classifier is learned for each.",
)
@click.option(
    "--costs",
    metavar="FILE.csv",
    help="What columns cost, name,cost,group; those not in it cost 1, those not used are ignored.",
)
@click.option(
    "--method",
    type=click.Choice(list(BUDGET_LEARNERS)),
    default="prune",
    show_default=True,
    help=f"{words_of(BUDGET_LEARNERS.values(), named=False)}.",
)
@click.option(
    "--trees",
    "n_trees",
    type=Integer(1),
    default=_TREES,
    show_default=True,
    help="Most trees to grow, or trees of the forest that is pruned.",
)
@test_share_option(
    "Part of the rows that test; as many measure costs and choose, the rest is learned from. If "
    "less than 1,000 rows do not test, all of them are learned from, and cross-validation chooses."
)
@with_options(option_of("unknown", MODELS), *CHOICE_OPTIONS)
@with_reading(learns=True, labels=True)
@with_options(option_of("n_jobs", MODELS), SPLIT_SEED, option_of("time_limit", MODELS))
@click.option("--out", metavar="FILE.json", help="Save the classifier, of a single budget.")
@click.option("--plot", metavar="FILE", help="Draw error by cost: .png, .svg or .pdf.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON at full precision.")
@click.pass_context
def budget(context: click.Context, /, data: str, **options: Any) -> None:
    """Learn to classify the rows of DATA when looking at a feature costs something.

    The file (.csv, .csv.gz, .parquet) holds the labels in the column --target. Its rows are split
    at random into those that are learned from, those that costs are measured on, and those that
    test: printed is what each classifier costs and how often it errs on the last. Ctrl-C ends it
    early: what was finished is printed.
    """
    budgets = _budgets(options["budgets"])
    plot, out = options["plot"], options["out"]
    check_picture("--plot", plot)
    if out is not None and len(budgets) > 1:
        raise click.UsageError(f"--out needs a single budget, got {options['budgets']}")
    check_outputs({"--out": out, "--plot": plot}, {"DATA": data, "--costs": options["costs"]})
    parts, costs = _read(data, options)
    from bayescascade.costs.limits import BudgetError

    learner = BUDGET_LEARNERS[options["method"]]
    common = {name: options[name] for name in ("n_jobs", "time_limit", "unknown")}
    given = {**learner.given, **learner.of_trees(options["n_trees"])}
    given |= parameters_of(common, ForestParameters)
    model = learner.made(costs=costs, random_state=parts.seed, **given)
    finished: list[tuple[float, BudgetedClassifier]] = []
    too_low: list[BudgetError] = []
    interrupted = False
    try:
        with shown_count("budgets", len(budgets)) as done:
            for amount, found in model.fit_budgets(budgets, *parts.learning):
                if isinstance(found, BudgetError):
                    too_low.append(found)
                else:
                    finished.append((amount, found))
                done()
    except KeyboardInterrupt:
        interrupted = True
    told = [str(error).replace("budget", "--budgets", 1) for error in too_low]
    if told and not finished:
        raise click.ClickException(told[-1])
    for _, model in finished:
        if model.nothing_read_text:
            told.append(model.nothing_read_text)
    for line in told:
        note(line)
    if finished:
        _tell(finished, parts, options)
    if interrupted:
        n_done = len(finished) + len(too_low)
        click.echo(f"interrupted: {n_done} of {len(budgets)} fits were finished", err=True)
        context.exit(INTERRUPTED)


def _budgets(text: str) -> list[float]:
    from bayescascade.base.errors import ParameterError
    from bayescascade.base.validation import check_real

    try:
        amounts = [check_real("--budgets", float(part), minimum=0.0) for part in split_commas(text)]
    except ParameterError as error:
        raise click.UsageError(str(error)) from None
    except ValueError:
        raise click.UsageError(f"--budgets must be costs, as in 5,10,20, got {text!r}") from None
    return sorted(set(amounts))


def _read(data: str, options: dict[str, Any]) -> "tuple[SplitRows, FeatureCosts]":
    """Read rows and costs, which may be of any columns of the data, and split the rows."""
    from bayescascade.base.errors import DataError, ParameterError
    from bayescascade.cli.rows import open_rows
    from bayescascade.cli.splitting import read_split
    from bayescascade.costs.choice import FEW_ROWS
    from bayescascade.costs.items import FeatureCosts

    source, share = open_rows(data), options["test_share"]
    parts = read_split(source, options, (1 - 2 * share, share, share), "budget")
    if sum(parts.n_rows[:2]) < FEW_ROWS:
        parts = parts.undivided()
    if options["costs"] is None:
        return parts, FeatureCosts()
    costs = FeatureCosts.read_csv(options["costs"])
    try:
        costs.resolve(source.names)
    except ParameterError as error:
        raise DataError(f"{options['costs']}: {error}") from None
    return parts, costs.among(list(parts.X[0].columns))


def _tell(
    finished: "list[tuple[float, BudgetedClassifier]]", parts: "SplitRows", options: dict[str, Any]
) -> None:
    """Print a line or a record for each budget; draw and save."""
    from bayescascade.costs.curve import CURVE_SIZE, cost_accuracy_curve
    from bayescascade.report.axes import blank_figure

    labels = [f"{amount:.12g}" for amount, _ in finished]
    models = [model for _, model in finished]
    curve = cost_accuracy_curve(models, parts.X[-1], parts.y[-1], labels)
    if options["out"] is not None:
        models[0].save(options["out"])
    if options["as_json"]:
        echo_json(_record(curve, finished, parts, options))
    else:
        echo_page(_page(curve, models[0], parts))
    if options["plot"] is not None:
        points = tuple(replace(point, label=models[0].title) for point in curve.points)
        figure = blank_figure(*CURVE_SIZE, layout="constrained")
        replace(curve, points=points).plot(figure.subplots())
        save_figure(figure, options["plot"])


def _page(curve: "CostAccuracyCurve", model: "BudgetedClassifier", parts: "SplitRows") -> "Page":
    from bayescascade.costs.choice import N_FOLDS
    from bayescascade.report.page import BLANK, Heading, Pieces

    learned, *measured, tested = (f"{n:,}" for n in parts.n_rows)
    heading = [
        parts.source,
        f"{sum(parts.n_rows):,} rows",
        f"{model.n_features_in_} features",
        f"{len(model.classes_)} classes",
        model.title,
    ]
    split = (
        f"rows split by seed {parts.seed}: {learned} to learn from, "
        + "".join(f"{n} to measure costs, " for n in measured)
        + f"{tested} to test"
    )
    chosen = f"few rows: {N_FOLDS}-fold cross-validation chooses, no validation rows"
    few = () if measured else (Pieces([chosen]),)
    measured_on = "cost, error and features of the test rows; ±: standard error"
    told = Pieces([measured_on, *curve.nothing_texts], "dim")
    table = curve.table(curve.labels, "budget")
    return (Heading(heading), Pieces([split]), *few, BLANK, table, BLANK, told)


def _record(
    curve: "CostAccuracyCurve",
    finished: "list[tuple[float, BudgetedClassifier]]",
    parts: "SplitRows",
    options: dict[str, Any],
) -> dict[str, Any]:
    assert curve.nothing is not None, "measured with the points"
    nothing = {name: value for name, value in asdict(curve.nothing).items() if name != "label"}
    points = [
        {
            "budget": amount,
            "validation_cost": model.validation_cost_,
            "choice": None if model.choice_ is None else model.choice_.to_dict(),
            **{name: value for name, value in asdict(point).items() if name != "label"},
        }
        for (amount, model), point in zip(finished, curve.points, strict=True)
    ]
    n_learned, *n_measured, n_tested = parts.n_rows
    return {
        "source": parts.source,
        "target": options["target"],
        "method": options["method"],
        "seed": parts.seed,
        "n_training_rows": n_learned,
        "n_validation_rows": sum(n_measured),
        "n_test_rows": n_tested,
        "nothing": {"predicted": curve.commonest, **nothing},
        "points": points,
    }
