"""``bayescascade score`` of a classifier: how well it predicts the labels of a file.

Where finding out costs something, also what that is.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from bayescascade.cli.output import csv_text, echo_json, echo_page, write_texts
from bayescascade.cli.rows import open_rows, read_for

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from bayescascade.data.levels import Cells
    from bayescascade.data.sources import Source
    from bayescascade.model.roles import Classifier, Predicted, Predictor
    from bayescascade.model.scores import LabelScores, WeightedMean

__all__ = ["score_labels", "told_columns"]


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
    from bayescascade.model.scores import LabelScores, WeightedMean

    source = open_rows(data)
    target = getattr(model, "target_", None) if target is None else target
    if target is None:
        raise click.UsageError("--target must name the labels' column for a forest, got none")
    names = _class_texts(model)
    scores, cost = LabelScores(len(names)), WeightedMean()
    texts = _scored(model, source, target, weights, scores, cost, is_told=out is not None)
    write_texts(out, texts)
    if as_json:
        echo_json(_record(source.label, target, model, scores, cost))
    else:
        _print(source.label, target, names, scores, cost)


def told_columns(model: "Predictor", predicted: "Predicted") -> dict[str, Sequence[object]]:
    """Return what is predicted of rows as columns of a CSV file, by their headings."""
    columns: dict[str, Sequence[object]] = {}
    if predicted.probabilities is not None:
        names = _class_texts(model)
        columns["predicted"] = [names[c] for c in predicted.probabilities.argmax(axis=1).tolist()]
        probabilities = zip(names, predicted.probabilities.T.tolist(), strict=True)
        columns.update({f"P({name})": column for name, column in probabilities})
    elif predicted.values is not None:
        columns["predicted"] = predicted.values.tolist()
    if predicted.costs is not None:  # without the rounding of sums
        columns["cost"] = [f"{cost:.12g}" for cost in predicted.costs.tolist()]
    return columns


def _class_texts(model: Any) -> list[str]:
    from bayescascade.data.levels import level_text

    return [level_text(label) for label in model.classes_.tolist()]


def _scored(
    model: "Classifier",
    source: "Source",
    target: str,
    weights: str | None,
    scores: "LabelScores",
    cost: "WeightedMean",
    *,
    is_told: bool,
) -> Iterator[str]:
    """Add each block to `scores` and `cost`, and yield its lines of CSV if these are told."""
    names = _class_texts(model)
    for first_row, cells, row_weights in read_for(model, source, [target], weights):
        labels = _label_codes(model, target, cells[target], first_row)
        predicted = model.predict_block(cells, first_row)
        assert predicted.probabilities is not None
        scores.add(labels, predicted.probabilities, row_weights)
        if predicted.costs is not None:
            cost.add(predicted.costs, row_weights)
        if not is_told:
            continue
        columns = {
            "row": range(first_row, first_row + len(cells)),
            "label": [names[label] for label in labels.tolist()],
            **told_columns(model, predicted),
        }
        header = [list(columns)] if first_row == 1 else []
        yield csv_text([*header, *zip(*columns.values(), strict=True)])


def _label_codes(
    model: "Classifier", target: str, cells: "Cells", first_row: int
) -> "NDArray[np.int32]":
    """Return the positions of labels; raises DataError if one is missing or unknown."""
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


def _record(
    label: str, target: str, model: "Classifier", scores: "LabelScores", cost: "WeightedMean"
) -> object:
    costs = {"cost": cost.mean, "cost_error": cost.standard_error} if cost.weight else {}
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
    label: str, target: str, names: Sequence[str], scores: "LabelScores", cost: "WeightedMean"
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
    if cost.weight:
        (text,) = cost_texts([cost.mean])
        places = max(2, len(text.partition(".")[2]))
        pieces.append(f"{_with_error(f'cost {text}', cost.standard_error, places)} a row")
    echo_page((Pieces(pieces), BLANK, *scores.confusion_page(target, names)))


def _with_error(text: str, error: float, decimals: int) -> str:
    """Return a mean with its standard error, unless none is known: one row, or all alike."""
    return f"{text} ± {error:.{decimals}f}" if error > 0 else text
