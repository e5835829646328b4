"""Scores and predictions for the rows of a file, and their totals."""

import math
from collections.abc import Generator, Sequence
from dataclasses import asdict
from typing import Any

import click
import numpy as np
import pandas as pd

from bayescascade.base.arrays import Codes
from bayescascade.base.errors import DataError
from bayescascade.cli.loading import open_for
from bayescascade.cli.rows import read_blocks, read_for
from bayescascade.cli.streaming import Columns
from bayescascade.data.cell_policy import UnknownCells
from bayescascade.data.column import MISSING, Column
from bayescascade.data.levels import level_text
from bayescascade.data.names import check_known
from bayescascade.data.sources import Source
from bayescascade.model.decisions import Decision
from bayescascade.model.label_details import GroupScores
from bayescascade.model.rarest import RarestRows, rare_row_page
from bayescascade.model.roles import Classifier, Density, Predicted, Predictor
from bayescascade.model.scores import LabelScores, confusion_page, positive_of
from bayescascade.model.standard_errors import WeightedMean
from bayescascade.report.numbers import (
    cost_texts,
    count_texts,
    diagnostic_text,
    nats_text,
    with_error,
)
from bayescascade.report.page import BLANK, Page, Pieces, count_of


class ScoredRows:
    """Log densities of the rows of a file, and the `top` rarest of them."""

    def __init__(self, model: Density, source: Source, top: int, weights: str | None) -> None:
        self._model, self._source, self._weights = model, source, weights
        self._rarest, self._unknown = RarestRows(model.learned_, top), UnknownCells()
        self._n_rows, self._weight, self._log_density = 0, 0.0, 0.0

    def blocks(self) -> Generator[Columns, None, None]:
        """Score the rows, block by block."""
        schema = self._model.schema_
        for first_row, cells, weights in read_blocks(self._source, schema.names, self._weights):
            codes = self._model.encode(cells, first_row=first_row, unknown=self._unknown)
            scores = self._model.score_codes(codes)
            self._rarest.add(cells, codes, scores, first_row, weights)
            self._n_rows += len(scores)
            if weights is None:
                self._weight += len(scores)
                self._log_density += float(scores.sum())
            else:  # a row of weight zero counts nothing, even if its density is 0
                counts = weights > 0
                self._weight += float(weights.sum())
                self._log_density += float((weights[counts] * scores[counts]).sum())
            numbers = range(first_row, first_row + len(cells))
            yield {"row": numbers, "log_density": scores}
        self._unknown.warn()

    @property
    def _mean(self) -> float:
        return self._log_density / self._weight if self._weight else math.nan

    def to_dict(self) -> dict[str, Any]:
        """Return sums and rarest rows as plain data."""
        explain = self._model.learned_.explain
        return {
            "source": self._source.label,
            "rows": self._n_rows,
            "weight": self._weight,
            "rows_with_unknown_levels": self._unknown.n_rows,
            "log_density": {"sum": self._log_density, "mean": self._mean},
            "rarest": [
                {**asdict(row), "explanation": explain(row.values).splitlines()}
                for row in self._rarest.rows
            ],
        }

    def page(self) -> Page:
        """Return sums and rarest rows."""
        sums = f"mean {nats_text(self._mean)}, sum {nats_text(self._log_density)} nats"
        pieces = _rows_pieces(self._source, self._n_rows, self._weight)
        page: Page = (Pieces([*pieces, *_unknown_pieces(self._unknown), f"log density: {sums}"]),)
        for row in self._rarest.rows:
            page += (BLANK, *rare_row_page(self._model.learned_, row))
        return page


class ScoredLabels:
    """How well a classifier predicts the labels of a file, and the cost of its features."""

    def __init__(
        self,
        model: Classifier,
        source: Source,
        target: str | None,
        weights: str | None,
        decision: Decision,
        by: str | None = None,
    ) -> None:
        self._model, self._source, self._weights = model, source, weights
        self._target = _target_of(model, target)
        self._decision = decision
        self._names, positive = _class_texts(model), positive_of(model)
        self._scores, self._cost = LabelScores(len(self._names), positive), WeightedMean()
        columns = getattr(getattr(model, "schema_", None), "columns", ())
        bins = next(
            (column for column in columns if column.name == by and column.kind == "continuous"),
            None,
        )
        self._groups = None if by is None else GroupScores(by, bins, self._names, positive)
        self._unknown = UnknownCells()

    def blocks(self) -> Generator[Columns, None, None]:
        """Predict the rows, block by block; raises DataError if a label is missing or unknown."""
        model, target, groups = self._model, self._target, self._groups
        also = [target] if groups is None else [target, groups.by]
        for first_row, cells, weights in read_for(model, self._source, also, self._weights):
            labels = _labels_of(model, target, cells, first_row)
            predicted = model.predict_block(cells, first_row, unknown=self._unknown)
            assert predicted.probabilities is not None
            named = self._decision.choose(predicted.probabilities)
            self._scores.add(labels, predicted.probabilities, weights, named)
            if groups is not None:
                own = (labels, predicted.probabilities, weights, named)
                groups.add(cells[groups.by], *own)
            if predicted.costs is not None:
                self._cost.add(predicted.costs, weights)
            yield {
                "row": range(first_row, first_row + len(cells)),
                "label": [self._names[label] for label in labels.tolist()],
                **_predicted_columns(model, predicted, self._decision),
            }
        self._unknown.warn()

    def to_dict(self) -> dict[str, Any]:
        """Return the scores as plain data."""
        scores, cost = self._scores, self._cost
        costs = {"cost": cost.mean, "cost_error": cost.standard_error} if cost.weight else {}
        return {
            "source": self._source.label,
            "target": self._target,
            "rows": scores.n_rows,
            "weight": scores.weight,
            "rows_with_unknown_levels": self._unknown.n_rows,
            "accuracy": scores.accuracy,
            "accuracy_error": scores.accuracy_error,
            "log_loss": scores.log_loss,
            "auc": scores.auc,
            **costs,
            **({} if self._errors_cost is None else {"class_cost": self._errors_cost}),
            "classes": self._model.classes_.tolist(),
            "confusion": scores.confusion.tolist(),
            **({} if self._groups is None else {"groups": self._groups.to_dict()}),
        }

    @property
    def _errors_cost(self) -> float | None:
        """Mean cost of the predicted classes, if classes have costs."""
        costs, scores = self._decision.costs, self._scores
        return None if costs is None else float((scores.confusion * costs).sum() / scores.weight)

    def page(self) -> Page:
        """Return the scores and the confusion matrix."""
        scores, cost = self._scores, self._cost
        accuracy = f"accuracy {diagnostic_text(scores.accuracy, 3)}"
        pieces = [
            *_rows_pieces(self._source, scores.n_rows, scores.weight),
            *_unknown_pieces(self._unknown),
            with_error(accuracy, scores.accuracy_error, 3),
            f"log loss {diagnostic_text(scores.log_loss, 4)} nats"
            if math.isfinite(scores.log_loss)
            else "log loss infinite: a label had probability 0",
            f"AUC {diagnostic_text(scores.auc, 3)}",
        ]
        if self._errors_cost is not None:
            pieces.append(f"mean cost of errors {diagnostic_text(self._errors_cost, 4)}")
        if cost.weight:
            (text,) = cost_texts([cost.mean])
            places = max(2, len(text.partition(".")[2]))
            pieces.append(f"{with_error(f'cost {text}', cost.standard_error, places)} a row")
        page = (Pieces(pieces), BLANK, *confusion_page(scores.confusion, self._target, self._names))
        return page if self._groups is None else (*page, BLANK, *self._groups.page())


def read_held_out(model: Any, data: str, target: str | None) -> Any:
    """Return a file as the `held_out` of `report`: with labels for a classifier."""
    if not isinstance(model, Classifier):
        return data
    named = _target_of(model, target)
    blocks = list(read_for(model, open_for(model, data), [named], None))
    labels = [_labels_of(model, named, cells, first_row) for first_row, cells, _ in blocks]
    rows = pd.concat([cells for _, cells, _ in blocks], ignore_index=True)
    return rows, model.classes_[np.concatenate(labels)]


def _target_of(model: Classifier, target: str | None) -> str:
    found: str | None = getattr(model, "target_", None) if target is None else target
    if found is None:
        raise click.UsageError(
            "--target must name the column of the labels, got none: MODEL.json has no such name"
        )
    return found


def _labels_of(model: Classifier, target: str, cells: pd.DataFrame, first_row: int) -> Codes:
    """Return the position of each row's class; raises DataError if one is missing or unknown."""
    classes = Column(target, "ordinal", tuple(model.classes_.tolist()))
    labels = classes.encode(cells[target], first_row)
    if (labels == MISSING).any():
        row = first_row + int((labels == MISSING).argmax())
        raise DataError(
            f'column "{target}" must not have missing labels, got none in row {row}: '
            "predict needs no labels, --missing-labels drop leaves such rows out"
        )
    return labels


def predicted_blocks(
    model: Predictor, source: Source, decision: Decision, *, explain: bool
) -> Generator[Columns, None, None]:
    """Yield a model's predictions for the rows of a file, with reasons if requested."""
    unknown = UnknownCells()
    for first_row, cells, _ in read_for(model, source, [], None):
        predicted = model.predict_block(
            cells, first_row, intervals=True, explain=explain, unknown=unknown
        )
        columns = {**_predicted_columns(model, predicted, decision), **predicted.columns}
        yield {"row": range(first_row, first_row + len(cells)), **columns}
    unknown.warn()


def predicted_column_blocks(
    model: Density, source: Source, target: str, how: str
) -> Generator[Columns, None, None]:
    """Yield a density's predictions for one column of a file, given the others."""
    check_known("target", [target], model.schema_.names)
    unknown = UnknownCells()
    others = [name for name in model.schema_.names if name != target]
    for first_row, cells, _ in read_blocks(source, others, None):
        found = model.predict_column(cells, target, how, first_row=first_row, unknown=unknown)
        values = found.values.tolist()
        has_numbers = isinstance(values[0], int | float) and not isinstance(values[0], bool)
        shares = found.probabilities
        texts = ["missing" if level is None else level_text(level) for level in shares.columns]
        if texts.count("missing") == 2:  # a level has this name, too
            texts[-1] = "missing cell"
        yield {
            "row": range(first_row, first_row + len(cells)),
            "predicted": values if has_numbers else [level_text(value) for value in values],
            **{f"P({text})": shares.iloc[:, j].to_numpy() for j, text in enumerate(texts)},
        }
    unknown.warn()


def _predicted_columns(model: Predictor, predicted: Predicted, decision: Decision) -> Columns:
    columns: dict[str, Sequence[object]] = {}
    if predicted.probabilities is not None:
        names = _class_texts(model)
        chosen = decision.choose(predicted.probabilities)
        columns["predicted"] = [names[c] for c in chosen.tolist()]
        probabilities = zip(names, predicted.probabilities.T.tolist(), strict=True)
        columns.update({f"P({name})": column for name, column in probabilities})
        if predicted.intervals is not None:
            ends = predicted.intervals[range(len(chosen)), chosen]
            columns["low_95"], columns["high_95"] = ends.T.tolist()
    elif predicted.values is not None:
        columns["predicted"] = predicted.values.tolist()
    if predicted.costs is not None:  # without the rounding of sums
        columns["cost"] = [_tidy(cost) for cost in predicted.costs.tolist()]
    return columns


def _tidy(cost: float) -> float:
    """Return a cost without rounding errors of sums, as an int if it is whole."""
    if cost.is_integer():  # also if it has more digits than are kept below
        return int(cost)
    rounded = float(f"{cost:.12g}") if abs(cost) < 1e10 else round(cost, 2)
    return int(rounded) if rounded.is_integer() else rounded


def _class_texts(model: Any) -> list[str]:
    return [level_text(label) for label in model.classes_.tolist()]


def _rows_pieces(source: Source, n_rows: int, weight: float) -> list[str]:
    pieces = [source.label, count_of(n_rows, "row")]
    return pieces if weight == n_rows else [*pieces, f"weight {count_texts([weight])[0]}"]


def _unknown_pieces(unknown: UnknownCells) -> list[str]:
    n_rows = unknown.n_rows
    return [f"{count_of(n_rows, 'row')} with unknown levels"] if n_rows else []
