"""``bayescascade budget``: classifiers within budgets, measured on held-out rows."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from bayescascade.cli.declared import Models, check_chosen, option_of, parameters_of, words_of
from bayescascade.cli.file_types import INPUT
from bayescascade.cli.learning import Task, TrainingData, learning, outputs_of
from bayescascade.cli.options import (
    BUDGETS_OPTION,
    CHOICE_OPTIONS,
    TARGET_OPTION,
    IntegerType,
    split_commas,
    with_options,
)
from bayescascade.cli.output import interrupted, note
from bayescascade.cli.progress_lines import count_progress
from bayescascade.cli.reading import with_reading
from bayescascade.cli.splitting import SPLIT_SEED, test_share_option
from bayescascade.methods.budget.auto.parameters import AUTO, AutoBudgetParameters
from bayescascade.methods.budget.forests.parameters import ForestParameters
from bayescascade.methods.budget.listed import BUDGET_LEARNERS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bayescascade.base.watch import Watch
    from bayescascade.costs.classifier import BudgetedClassifier
    from bayescascade.costs.curve import CostAccuracyCurve
    from bayescascade.costs.feature_costs import FeatureCosts
    from bayescascade.data.splitting import SplitRows
    from bayescascade.report.page import Page

LEARNERS = {each.name: each for each in (AUTO, *BUDGET_LEARNERS.values())}
MODELS: Models = {AUTO.name: AutoBudgetParameters, "others": ForestParameters}
_TREES = 40
_TO_TEST = 0.2
"""Share of a time limit to test classifiers in, if learning has taken the limit."""

_FIRST_ROWS = 500  # of the test, which tell how many there is time for


@click.command(short_help="Learn classifiers within a budget for features.")
@click.argument("data")
@TARGET_OPTION
@BUDGETS_OPTION
@click.option(
    "--costs",
    type=INPUT,
    metavar="FILE.csv",
    help="Costs of columns: a file with name,cost,group. Columns not listed cost 1.",
)
@click.option(
    "--method",
    type=click.Choice(list(LEARNERS)),
    default=AUTO.name,
    show_default=True,
    help=f"What to learn. {words_of([*BUDGET_LEARNERS.values(), AUTO])}.",
)
@click.option(
    "--trees",
    "n_trees",
    type=IntegerType(1),
    default=_TREES,
    show_default=True,
    help="Number of trees to prune, or maximum number to grow.",
)
@test_share_option(
    "Share of the rows for the test. An equal share is used to measure costs and choose "
    "settings, and the classifier learns from the rest. If fewer than 1,000 rows are not "
    "in the test, it learns from all of these, and settings are chosen by cross-validation."
)
@with_options(option_of("unknown", MODELS), *CHOICE_OPTIONS)
@with_reading(learns=True, labels=True)
@with_options(
    option_of("n_jobs", MODELS),
    SPLIT_SEED,
    option_of("effort", MODELS),
    option_of("time_limit", MODELS),
)
@click.option("--out", metavar="FILE.json", help="Save the classifiers of all budgets.")
@click.option("--plot", metavar="FILE", help="Draw error against cost: .png, .svg or .pdf.")
@learning
def budget(data: str, **options: Any) -> tuple[Task, TrainingData]:
    """Learn to classify the rows of DATA when each feature has a cost.

    DATA has the labels in the column --target. Its rows are split at random into parts: for
    learning, for measuring costs and choosing settings (see --test-share), and for the test. The
    cost and error of each classifier on the test rows are printed. Ctrl-C ends it early; finished
    classifiers are printed.
    """
    budgets = budgets_of(options["budgets"])
    chosen = {name: options[name] for name in ("target", "method")}
    task = outputs_of(options, {"DATA": data, "--costs": options["costs"]})
    parts, costs = _read(data, options)
    learner = LEARNERS[chosen["method"]]
    declared = MODELS.get(learner.name, ForestParameters)
    common = {name: options[name] for name in ("n_jobs", "effort", "time_limit", "unknown")}
    check_chosen({**MODELS, learner.name: declared}, learner.name, common, "--method")
    given = {**learner.given, **learner.of_trees(options["n_trees"])}
    given |= parameters_of(common, declared)
    model = learner.made(costs=costs, random_state=parts.seed, **given)
    task, learn = task._replace(model=model), FoundWithin(parts, chosen).learn
    return task, TrainingData(
        (model, budgets),
        [_how_many(model)] if learner is AUTO else [],
        fit=learn,
        figure=FoundWithin.figure,
        ended=lambda found: found.ended,
    )


def _how_many(model: Any) -> str:
    """Return the note on the number of methods and their time."""
    limit = "" if model.time_limit is None else f" within {model.time_limit:g} s"
    tried = f"up to {len(model.tried_methods)} methods are tried{limit}"
    return f"{tried} (--effort, --time-limit, --method); Ctrl-C ends this earlier"


def budgets_of(text: str) -> list[float]:
    """Return the budgets in a text, ascending; click.UsageError if it has none."""
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
    """Read rows and costs, and split the rows."""
    from bayescascade.base.errors import DataError, ParameterError
    from bayescascade.cli.rows import open_rows
    from bayescascade.cli.splitting import read_split
    from bayescascade.costs.choice import FEW_ROWS
    from bayescascade.costs.feature_costs import FeatureCosts

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


@dataclass
class FoundWithin:
    """The classifiers of the budgets, with their costs and errors on the test rows."""

    parts: "SplitRows"
    chosen: dict[str, Any]  # the options that say how it was learned
    fitted: "list[tuple[float, BudgetedClassifier]]" = field(default_factory=list)
    ended: str = ""
    is_path: bool = False  # whether there were several budgets
    watch: "Watch" = field(init=False)

    def learn(self, model: Any, budgets: Sequence[float]) -> "FoundWithin":
        """Learn until Ctrl-C ends it; print notes on budgets that buy nothing."""
        from bayescascade.base.watch import Watch

        self.is_path, self.watch = len(budgets) > 1, Watch(model.time_limit)
        try:
            with self._count(model, len(budgets)) as done:
                for amount, found in model.fit_budgets(budgets, *self.parts.learning):
                    self.fitted.append((amount, found))
                    done()
        except KeyboardInterrupt:
            self.ended = f"{len(self.fitted)} of {len(budgets)} fits were finished"
            if self._is_auto:
                self.ended = "these are the best of the methods that were tried"
        if not self.fitted:
            interrupted(self.ended)
        for line in (model.nothing_read_text for _, model in self.fitted):
            if line:
                note(line)
        return self

    @staticmethod
    def _count(model: Any, n_budgets: int) -> AbstractContextManager[Callable[..., object]]:
        """Show the number of finished budgets, unless the model reports its own progress."""
        if hasattr(model, "progress"):
            return nullcontext(lambda *_: None)
        return count_progress("budgets", n_budgets)

    @cached_property
    def _curve(self) -> "CostAccuracyCurve":
        """The curve on the test rows, or on as many of them as there is time for."""
        n_rows = self.parts.n_rows[-1]
        if self.watch.seconds is None or n_rows <= _FIRST_ROWS:
            return self._tested(n_rows)
        self.watch.grant(_TO_TEST * self.watch.seconds)
        began = perf_counter()
        first = self._tested(_FIRST_ROWS)
        n_in_time = int(_FIRST_ROWS * self.watch.left / (perf_counter() - began))
        return first if n_in_time <= _FIRST_ROWS else self._tested(min(n_in_time, n_rows))

    def _tested(self, n_rows: int) -> "CostAccuracyCurve":
        """Return the curve on some test rows, spread over all."""
        import numpy as np

        from bayescascade.costs.curve import cost_accuracy_curve

        labels = [f"{amount:.12g}" for amount, _ in self.fitted]
        models = [model for _, model in self.fitted]
        places = np.arange(n_rows) * self.parts.n_rows[-1] // n_rows
        X, y = self.parts.X[-1].iloc[places], self.parts.y[-1][places]
        return cost_accuracy_curve(models, X, y, labels)

    def save(self, path: str) -> None:
        """Write the classifier, or those of all budgets in one file."""
        from bayescascade.costs.budget_path import BudgetPath

        models = [model for _, model in self.fitted]
        (BudgetPath(models) if self.is_path else models[0]).save(path)

    def figure(self) -> "Figure":
        """Return a picture of error by cost."""
        from bayescascade.costs.curve import CURVE_SIZE
        from bayescascade.report.axes import blank_figure

        title = self.fitted[0][1].title
        points = tuple(replace(point, label=title) for point in self._curve.points)
        figure = blank_figure(*CURVE_SIZE, layout="constrained")
        replace(self._curve, points=points).plot(figure.subplots())
        return figure

    def page(self) -> "Page":
        """Return the curve as a table, with the number of test rows."""
        from bayescascade.report.page import BLANK, Heading, Pieces

        curve, parts, model = self._curve, self.parts, self.fitted[0][1]
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
        few = () if measured else (Pieces([self._chooses_text]),)
        some = "the test rows"
        if curve.n_rows < parts.n_rows[-1]:
            some = f"{curve.n_rows:,} of the test rows, as many as the time limit allows"
        legend = Pieces([f"measured on {some}; ±: standard error", *curve.nothing_texts], "dim")
        table = curve.table(curve.labels, "budget", self._choices() if self._is_auto else None)
        notes = (Pieces([text]) for text in model.notes_)
        page = (Heading(heading), Pieces([split]), *few, *notes, BLANK, table, BLANK, legend)
        if not self._is_auto:
            return page
        settings = [
            f"budget {amount:.12g}: {classifier.settings_text}"
            for amount, classifier in self.fitted
        ]
        skipped = [model.skipped_text] if model.skipped_text else []
        return (*page, BLANK, *(Pieces([text], "dim") for text in (*settings, *skipped)))

    @property
    def _is_auto(self) -> bool:
        """Whether each budget has its own method."""
        return self.chosen.get("method") == AUTO.name and bool(self.fitted)

    def _choices(self) -> dict[str, list[str]]:
        """Return the method of each budget that buys, and its error on the rows that chose."""
        models = [model for _, model in self.fitted]
        errors = [f"{100 * model.validation_error_:.2f} %" for model in models]
        chosen = ["none" if model.nothing_read_text else model.method_ for model in models]
        return {"validation error": errors, "method": chosen}

    @property
    def _chooses_text(self) -> str:
        """Words for the rows that chose, if there are no validation rows."""
        few = self.fitted[0][1].few_rows_text
        return f"few rows, no validation rows: settings chosen by {few}"

    def to_dict(self) -> dict[str, Any]:
        """Return the curve as plain data."""
        from bayescascade.base.store import stored

        curve, parts = self._curve, self.parts
        assert curve.nothing is not None, "measured with the points"
        points = [
            {
                "budget": amount,
                "validation_cost": model.validation_cost_,
                "choice": stored(model.choice_),
                **({"chosen": model.to_dict()["candidates"]} if self._is_auto else {}),
                **_measured(point),
            }
            for (amount, model), point in zip(self.fitted, curve.points, strict=True)
        ]
        n_learned, *n_measured, _ = parts.n_rows
        return {
            "source": parts.source,
            **self.chosen,
            "seed": parts.seed,
            "n_training_rows": n_learned,
            "n_validation_rows": sum(n_measured),
            "n_test_rows": curve.n_rows,
            **({"notes": list(notes)} if (notes := self.fitted[0][1].notes_) else {}),
            "nothing": {"predicted": curve.commonest, **_measured(curve.nothing)},
            "points": points,
        }


def _measured(point: Any) -> dict[str, Any]:
    return {name: value for name, value in asdict(point).items() if name != "label"}
