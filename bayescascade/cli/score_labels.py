"""``bayescascade score`` of a classifier: how well it predicts the labels of a file."""

import csv
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

import click

from bayescascade.cli.output import echo_json, layout_options
from bayescascade.cli.rows import open_rows, read_blocks

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from bayescascade.report.label_scores import LabelScores
    from bayescascade.rules.classifier import RuleListClassifier
    from bayescascade.sources import Source

__all__ = ["probability_headers", "score_labels"]


def score_labels(
    model: "RuleListClassifier",
    data: str,
    *,
    target: str | None,
    out: str | None,
    weights: str | None,
    as_json: bool,
) -> None:
    """Print how well a classifier predicts the labels of a data file; see `score`."""
    from bayescascade.files import replaced_file
    from bayescascade.report.label_scores import LabelScores

    target = model.target_ if target is None else target
    source = open_rows(data)
    names = [str(name) for name in model.rules_.class_texts]
    scores = LabelScores(len(names))
    with ExitStack() as stack:
        writer = None
        if out is not None:
            temporary = stack.enter_context(replaced_file(out))
            file = stack.enter_context(temporary.open("w", encoding="utf-8", newline=""))
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["row", "label", "predicted", *probability_headers(names)])
        for block in _blocks(model, source, target, weights):
            scores.add(block.labels, block.probabilities, block.weights)
            if writer is not None:
                writer.writerows(_lines(block, names))
    if as_json:
        echo_json(_record(source.label, target, model, scores))
    else:
        _print(source.label, target, names, scores)


def probability_headers(class_texts: Sequence[str]) -> list[str]:
    """Return the names of the columns of class probabilities in a CSV file."""
    return [f"P({text})" for text in class_texts]


class _Block(NamedTuple):
    """Rows, their labels' positions and what is predicted of them."""

    first_row: int
    labels: "NDArray[np.int32]"
    probabilities: "NDArray[np.float64]"
    weights: "NDArray[np.float64] | None"


def _blocks(
    model: "RuleListClassifier", source: "Source", target: str, weights: str | None
) -> Iterator[_Block]:
    """Yield the rows in blocks; raises DataError if a label is missing or unknown."""
    from bayescascade.column import MISSING, Column
    from bayescascade.errors import DataError

    classes = Column(target, "ordinal", tuple(model.classes_.tolist()))
    needed = list(dict.fromkeys([*model.schema_.names, target]))
    for first_row, cells, row_weights in read_blocks(source, needed, weights):
        labels = classes.encode(cells[target], first_row)
        if (labels == MISSING).any():
            row = first_row + int((labels == MISSING).argmax())
            raise DataError(
                f'column "{target}" must not have missing labels, got none in row {row}: '
                "predict needs no labels"
            )
        codes = model.encode(cells, first_row=first_row)
        yield _Block(first_row, labels, model.predict_proba_codes(codes), row_weights)


def _lines(block: _Block, names: Sequence[str]) -> Iterator[list[object]]:
    predicted = block.probabilities.argmax(axis=1).tolist()
    numbered = enumerate(
        zip(block.labels.tolist(), predicted, block.probabilities.tolist(), strict=True),
        block.first_row,
    )
    for row, (label, best, probabilities) in numbered:
        yield [row, names[label], names[best], *probabilities]


def _record(label: str, target: str, model: "RuleListClassifier", scores: "LabelScores") -> object:
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
            "classes": model.classes_.tolist(),
            "confusion": scores.confusion.tolist(),
        }
    )


def _print(label: str, target: str, names: Sequence[str], scores: "LabelScores") -> None:
    from bayescascade.report.confusion_table import confusion_table
    from bayescascade.report.layout import Ink, flow
    from bayescascade.report.numbers import count_texts, diagnostic_text

    options = layout_options()
    pieces = [label, "1 row" if scores.n_rows == 1 else f"{scores.n_rows:,} rows"]
    if scores.weight != scores.n_rows:
        pieces.append(f"weight {count_texts([scores.weight])[0]}")
    pieces += [
        f"accuracy {diagnostic_text(scores.accuracy, 3)}",
        f"log loss {diagnostic_text(scores.log_loss, 4)} nats",
        f"AUC {diagnostic_text(scores.auc, 3)}",
    ]
    lines = flow(pieces, options["width"], 2)
    table = confusion_table(
        target, names, scores.confusion, options["width"], Ink(options["color"])
    )
    click.echo("\n".join([*lines, "", *table]))
