"""``bayescascade score`` of a classifier: how well it predicts the labels of a file.

Of a budgeted forest, also what its features cost.
"""

import csv
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import click

from bayescascade.cli.output import echo_json, echo_page
from bayescascade.cli.rows import open_rows, read_blocks, read_frame

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from bayescascade.data.levels import Cells
    from bayescascade.data.sources import Source
    from bayescascade.methods.forests.base import BudgetedClassifier
    from bayescascade.methods.rules.classifier import RuleListClassifier
    from bayescascade.model.label_scores import LabelScores
    from bayescascade.model.weighted_mean import WeightedMean

    Floats: TypeAlias = NDArray[np.float64]
    Classifier: TypeAlias = RuleListClassifier | BudgetedClassifier

__all__ = ["cost_cells", "probability_headers", "score_labels"]


def score_labels(
    model: "Classifier",
    data: str,
    *,
    target: str | None,
    out: str | None,
    weights: str | None,
    as_json: bool,
) -> None:
    """Print how well a classifier predicts the labels of a data file; see `score`."""
    from bayescascade.base.files import replaced_file
    from bayescascade.data.levels import level_text
    from bayescascade.methods.forests.base import BudgetedClassifier
    from bayescascade.model.label_scores import LabelScores
    from bayescascade.model.weighted_mean import WeightedMean

    source = open_rows(data)
    cost = None
    if isinstance(model, BudgetedClassifier):
        if target is None:
            raise click.UsageError("--target must name the labels' column for a forest, got none")
        blocks, cost = _forest_blocks(model, source, target, weights), WeightedMean()
    else:
        target = model.target_ if target is None else target
        blocks = _rule_blocks(model, source, target, weights)
    names = [level_text(label) for label in model.classes_.tolist()]
    scores = LabelScores(len(names))
    with ExitStack() as stack:
        writer = None
        if out is not None:
            temporary = stack.enter_context(replaced_file(out))
            file = stack.enter_context(temporary.open("w", encoding="utf-8", newline=""))
            writer = csv.writer(file, lineterminator="\n")
            header = ["row", "label", "predicted", *probability_headers(names)]
            writer.writerow(header if cost is None else [*header, "cost"])
        for block in blocks:
            scores.add(block.labels, block.probabilities, block.weights)
            if cost is not None and block.costs is not None:
                cost.add(block.costs, block.weights)
            if writer is not None:
                writer.writerows(_lines(block, names))
    if as_json:
        echo_json(_record(source.label, target, model, scores, cost))
    else:
        _print(source.label, target, names, scores, cost)


def probability_headers(class_texts: Sequence[str]) -> list[str]:
    """Return the names of the columns of class probabilities in a CSV file."""
    return [f"P({text})" for text in class_texts]


def cost_cells(costs: "Floats") -> list[str]:
    """Return what rows cost as cells of a CSV file, without the rounding of sums."""
    return [f"{cost:.12g}" for cost in costs.tolist()]


class _Block(NamedTuple):
    """Rows, their labels' positions, what is predicted of them, and what that costs."""

    first_row: int
    labels: "NDArray[np.int32]"
    probabilities: "Floats"
    weights: "Floats | None"
    costs: "Floats | None" = None


def _rule_blocks(
    model: "RuleListClassifier", source: "Source", target: str, weights: str | None
) -> Iterator[_Block]:
    """Yield the rows in blocks; raises DataError if a label is missing or unknown."""
    needed = list(dict.fromkeys([*model.schema_.names, target]))
    for first_row, cells, row_weights in read_blocks(source, needed, weights):
        labels = _label_codes(model, target, cells[target], first_row)
        codes = model.encode(cells, first_row=first_row)
        yield _Block(first_row, labels, model.predict_proba_codes(codes), row_weights)


def _forest_blocks(
    model: "BudgetedClassifier", source: "Source", target: str, weights: str | None
) -> Iterator[_Block]:
    """Yield all rows as one block; raises DataError as `_rule_blocks`."""
    needed = list(dict.fromkeys([*model.feature_texts, target]))
    frame, row_weights = read_frame(source, needed, weights)
    labels = _label_codes(model, target, frame[target], 1)
    yield _Block(1, labels, model.predict_proba(frame), row_weights, model.acquisition_cost(frame))


def _label_codes(
    model: "Classifier", target: str, cells: "Cells", first_row: int
) -> "NDArray[np.int32]":
    from bayescascade.base.errors import DataError
    from bayescascade.data.column import MISSING, Column

    labels = Column(target, "ordinal", tuple(model.classes_.tolist())).encode(cells, first_row)
    if (labels == MISSING).any():
        row = first_row + int((labels == MISSING).argmax())
        raise DataError(
            f'column "{target}" must not have missing labels, got none in row {row}: '
            "predict needs no labels"
        )
    return labels


def _lines(block: _Block, names: Sequence[str]) -> Iterator[list[object]]:
    predicted = block.probabilities.argmax(axis=1).tolist()
    costs = [[]] * len(predicted) if block.costs is None else [[c] for c in cost_cells(block.costs)]
    numbered = enumerate(
        zip(block.labels.tolist(), predicted, block.probabilities.tolist(), costs, strict=True),
        block.first_row,
    )
    for row, (label, best, probabilities, cost) in numbered:
        yield [row, names[label], names[best], *probabilities, *cost]


def _record(
    label: str,
    target: str,
    model: "Classifier",
    scores: "LabelScores",
    cost: "WeightedMean | None",
) -> object:
    costs = {} if cost is None else {"cost": cost.mean, "cost_error": cost.standard_error}
    return {
        "source": label,
        "target": target,
        "rows": scores.n_rows,
        "weight": scores.weight,
        "accuracy": scores.accuracy,
        "accuracy_error": scores.accuracy_error,
        "log_loss": scores.log_loss,
        "auc": scores.auc,
        **costs,
        "classes": model.classes_.tolist(),
        "confusion": scores.confusion.tolist(),
    }


def _print(
    label: str,
    target: str,
    names: Sequence[str],
    scores: "LabelScores",
    cost: "WeightedMean | None",
) -> None:
    from bayescascade.report.numbers import cost_texts, count_texts, diagnostic_text
    from bayescascade.report.page import BLANK, Pieces, counted

    pieces = [label, counted(scores.n_rows, "row")]
    if scores.weight != scores.n_rows:
        pieces.append(f"weight {count_texts([scores.weight])[0]}")
    pieces += [
        _with_error(f"accuracy {diagnostic_text(scores.accuracy, 3)}", scores.accuracy_error, 3),
        f"log loss {diagnostic_text(scores.log_loss, 4)} nats",
        f"AUC {diagnostic_text(scores.auc, 3)}",
    ]
    if cost is not None:
        (text,) = cost_texts([cost.mean])
        places = max(2, len(text.partition(".")[2]))
        pieces.append(f"{_with_error(f'cost {text}', cost.standard_error, places)} a row")
    echo_page((Pieces(pieces), BLANK, *scores.confusion_page(target, names)))


def _with_error(text: str, error: float, decimals: int) -> str:
    """Return a mean with its standard error, unless none is known: one row, or all alike."""
    return f"{text} ± {error:.{decimals}f}" if error > 0 else text
