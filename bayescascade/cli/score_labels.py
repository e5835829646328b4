"""``bayescascade score`` of a classifier: how well it predicts the labels of a file.

Of a budgeted forest, also what its features cost.
"""

import csv
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

import click

from bayescascade.cli.output import echo_json, layout_options
from bayescascade.cli.rows import open_rows, read_blocks, read_frame

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from bayescascade.budget.base import BudgetedClassifier
    from bayescascade.column import Column
    from bayescascade.levels import Cells
    from bayescascade.report.label_scores import LabelScores
    from bayescascade.rules.classifier import RuleListClassifier
    from bayescascade.sources import Source

__all__ = ["probability_headers", "score_labels"]


def score_labels(
    model: "RuleListClassifier | BudgetedClassifier",
    data: str,
    *,
    target: str | None,
    out: str | None,
    weights: str | None,
    as_json: bool,
) -> None:
    """Print how well a classifier predicts the labels of a data file; see `score`."""
    from bayescascade.budget.base import BudgetedClassifier
    from bayescascade.files import replaced_file
    from bayescascade.levels import level_text
    from bayescascade.report.label_scores import LabelScores

    is_forest = isinstance(model, BudgetedClassifier)
    if target is None:
        if is_forest:
            raise click.UsageError("--target must name the labels' column for a forest, got none")
        target = model.target_
    source = open_rows(data)
    blocks = (_forest_blocks if is_forest else _rule_blocks)(model, source, target, weights)
    names = [level_text(label) for label in model.classes_.tolist()]
    scores, spent = LabelScores(len(names)), 0.0
    with ExitStack() as stack:
        writer = None
        if out is not None:
            temporary = stack.enter_context(replaced_file(out))
            file = stack.enter_context(temporary.open("w", encoding="utf-8", newline=""))
            writer = csv.writer(file, lineterminator="\n")
            cost_header = ["cost"] if is_forest else []
            header = ["row", "label", "predicted", *probability_headers(names), *cost_header]
            writer.writerow(header)
        for block in blocks:
            scores.add(block.labels, block.probabilities, block.weights)
            spent += block.spent
            if writer is not None:
                writer.writerows(_lines(block, names))
    cost = spent / scores.weight if is_forest and scores.weight else None
    if as_json:
        echo_json(_record(source.label, target, model, scores, cost))
    else:
        _print(source.label, target, names, scores, cost)


def probability_headers(class_texts: Sequence[str]) -> list[str]:
    """Return the names of the columns of class probabilities in a CSV file."""
    return [f"P({text})" for text in class_texts]


class _Block(NamedTuple):
    """Rows, their labels' positions and what is predicted of them."""

    first_row: int
    labels: "NDArray[np.int32]"
    probabilities: "NDArray[np.float64]"
    weights: "NDArray[np.float64] | None"
    costs: "NDArray[np.float64] | None" = None

    @property
    def spent(self) -> float:
        """What the rows cost, each as often as its weight says."""
        if self.costs is None:
            return 0.0
        return float(self.costs.sum() if self.weights is None else self.costs @ self.weights)


def _rule_blocks(
    model: "RuleListClassifier", source: "Source", target: str, weights: str | None
) -> Iterator[_Block]:
    """Yield the rows in blocks; raises DataError if a label is missing or unknown."""
    classes = _classes(model, target)
    needed = list(dict.fromkeys([*model.schema_.names, target]))
    for first_row, cells, row_weights in read_blocks(source, needed, weights):
        labels = _labels(classes, cells[target], first_row)
        codes = model.encode(cells, first_row=first_row)
        yield _Block(first_row, labels, model.predict_proba_codes(codes), row_weights)


def _forest_blocks(
    model: "BudgetedClassifier", source: "Source", target: str, weights: str | None
) -> Iterator[_Block]:
    """Yield all rows at once; raises as `_rule_blocks`."""
    needed = list(dict.fromkeys([*model.feature_texts, target]))
    frame, row_weights = read_frame(source, needed, weights)
    labels = _labels(_classes(model, target), frame[target], 1)
    yield _Block(1, labels, model.predict_proba(frame), row_weights, model.acquisition_cost(frame))


def _classes(model: "RuleListClassifier | BudgetedClassifier", target: str) -> "Column":
    from bayescascade.column import Column

    return Column(target, "ordinal", tuple(model.classes_.tolist()))


def _labels(classes: "Column", cells: "Cells", first_row: int) -> "NDArray[np.int32]":
    """Return the positions of labels; raises DataError if one is missing or unknown."""
    from bayescascade.column import MISSING
    from bayescascade.errors import DataError

    labels = classes.encode(cells, first_row)
    if (labels == MISSING).any():
        row = first_row + int((labels == MISSING).argmax())
        raise DataError(
            f'column "{classes.name}" must not have missing labels, got none in row {row}: '
            "predict needs no labels"
        )
    return labels


def _lines(block: _Block, names: Sequence[str]) -> Iterator[list[object]]:
    predicted = block.probabilities.argmax(axis=1).tolist()
    numbered = enumerate(
        zip(block.labels.tolist(), predicted, block.probabilities.tolist(), strict=True),
        block.first_row,
    )
    for place, (row, (label, best, probabilities)) in enumerate(numbered):
        cost = [] if block.costs is None else [float(block.costs[place])]
        yield [row, names[label], names[best], *probabilities, *cost]


def _record(
    label: str,
    target: str,
    model: "RuleListClassifier | BudgetedClassifier",
    scores: "LabelScores",
    cost: float | None,
) -> object:
    from bayescascade.report.records import json_ready

    return json_ready(
        {
            "source": label,
            "target": target,
            "rows": scores.n_rows,
            "weight": scores.weight,
            "accuracy": scores.accuracy,
            "log_loss": scores.log_loss,
            "auc": scores.auc,
            **({} if cost is None else {"cost": cost}),
            "classes": model.classes_.tolist(),
            "confusion": scores.confusion.tolist(),
        }
    )


def _print(
    label: str, target: str, names: Sequence[str], scores: "LabelScores", cost: float | None
) -> None:
    from bayescascade.report.confusion_table import confusion_table
    from bayescascade.report.layout import Ink, flow
    from bayescascade.report.numbers import cost_texts, count_texts, diagnostic_text

    options = layout_options()
    pieces = [label, "1 row" if scores.n_rows == 1 else f"{scores.n_rows:,} rows"]
    if scores.weight != scores.n_rows:
        pieces.append(f"weight {count_texts([scores.weight])[0]}")
    pieces += [
        f"accuracy {diagnostic_text(scores.accuracy, 3)}",
        f"log loss {diagnostic_text(scores.log_loss, 4)} nats",
        f"AUC {diagnostic_text(scores.auc, 3)}",
    ]
    if cost is not None:
        pieces.append(f"cost {cost_texts([cost])[0]} a row")
    lines = flow(pieces, options["width"], 2)
    table = confusion_table(
        target, names, scores.confusion, options["width"], Ink(options["color"])
    )
    click.echo("\n".join([*lines, "", *table]))
