"""``bayescascade classify``: from a data file with labels to a printed and saved classifier."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from bayescascade.cli.cluster import with_cluster
from bayescascade.cli.declared import Models, options_of
from bayescascade.cli.learning import FOLDS_OPTION, Task, TrainingData, learning, on_folds, set_up
from bayescascade.cli.listed import label_of
from bayescascade.cli.near_best import beside, check_top, with_near_best
from bayescascade.cli.options import COLUMN_OPTIONS, OUTPUT_OPTIONS, TARGET_OPTION, with_options
from bayescascade.cli.reading import with_reading
from bayescascade.methods.lists.parameters import LabelListParameters

if TYPE_CHECKING:
    from bayescascade.report.page import Page

MODELS: Models = {"": LabelListParameters}
_KINDS = ("nominal", "ordinal", "continuous", "missing")


@click.command(short_help="Learn a rule list that predicts a column.")
@click.argument("data")
@TARGET_OPTION
@FOLDS_OPTION
@click.option(
    "--details",
    is_flag=True,
    help="Also print calibration, AUC and the confusion matrix on held-out rows.",
)
@with_options(
    *options_of(MODELS, of_runs=False), *COLUMN_OPTIONS, *options_of(MODELS, of_runs=True),
    *OUTPUT_OPTIONS,
)  # fmt: skip
@with_near_best
@with_reading(learns=True, labels=True)
@with_cluster
@learning
def classify(data: str, **options: Any) -> tuple[Task, TrainingData]:
    """Find the most probable list of rules for the labels of the table DATA.

    DATA has the labels in the column --target; rules use all others. Ctrl-C or --time-limit ends
    the search early; the best list so far is printed and saved.
    """
    target, n_folds = options.pop("target"), options.pop("n_folds")
    has_details, near_best = options.pop("details"), options.pop("near_best")
    top = check_top(near_best, options.pop("top"))
    if has_details and n_folds == 0:
        raise click.UsageError("--details needs held-out rows: --cv must not be 0, got 0")
    is_unseen = options["quiet"] and not options["as_json"] and options["out"] is None
    task = set_up("RuleListClassifier", {"DATA": data}, options, LabelListParameters, taken=_KINDS)
    _check_target(target, task.declared)
    from bayescascade.cli.rows import open_rows, read_labeled
    from bayescascade.data.given import GivenRows
    from bayescascade.data.labels import LabeledRows

    source = open_rows(data)
    frame, labels, row_weights = read_labeled(source, target, **task.declared)
    if options["positive"] is not None:
        positive = label_of("--positive", options["positive"], labels)
        task.model.set_params(positive=positive)
    rows = LabeledRows.of(
        GivenRows(frame, labels, row_weights),
        n_bins=task.model.n_bins,
        kinds=task.model,
        owner="classify",
        labels_name=f'column "{target}"',
        source=source.label,
    )

    n_measured = 0 if is_unseen else n_folds

    def shown(learned: Any) -> Any:
        own = _WithDetails(learned) if has_details else learned
        return own if near_best is None else beside(own, learned, near_best, top)

    return task, TrainingData(
        (rows,), rows.table.notes,
        lambda: on_folds(task.model, frame, labels, row_weights, n_measured, "list"), shown,
    )  # fmt: skip


class _WithDetails:
    """A classifier whose page ends with details on its predictions for held-out rows."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self.to_dict = model.to_dict

    def page(self) -> "Page":
        """Return the model's page, and the details if they were measured."""
        model, held_out = self._model, self._model.summary_.held_out
        page: Page = model.page()
        if held_out is None or held_out.details is None:
            return page
        from bayescascade.data.levels import level_text
        from bayescascade.report.page import BLANK, Pieces, count_of

        names = list(map(level_text, model.classes_.tolist()))
        head = Pieces([f"on {count_of(held_out.n_rows, 'held-out row')}, {held_out.extent}"], "dim")
        return (*page, BLANK, head, *held_out.details.page(model.target_, names))


def _check_target(target: str, declared: Mapping[str, Any]) -> None:
    """Raise click.UsageError if the column of labels has another role too."""
    if target == declared.get("weights"):
        raise click.UsageError(f"--weights must be another column than --target, got {target}")
    for name in ("drop", "nominal", "ordinal", "continuous"):
        if target in declared.get(name, ()):
            raise click.UsageError(f"--{name} must not name the column of the labels, got {target}")
