"""Details of predicted labels: calibration and errors, for all rows and for groups of rows."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import DataError
from bayescascade.base.store import MaybeNaN, Of
from bayescascade.data.column import Column
from bayescascade.data.levels import factorize, level_text, to_numbers
from bayescascade.model.scores import LabelScores, confusion_page
from bayescascade.report.chart import Series, UnitChart
from bayescascade.report.numbers import count_texts, diagnostic_text, share_text
from bayescascade.report.page import BLANK, Numbers, Page, Pieces, PrintedTable

_MOST_CURVES = 5  # number of classes, each against the rest
_MOST_BINS, _ROWS_OF_BIN = 10, 20
_LONGEST = 30  # name of an axis


Bins = Annotated[Floats, Of("bins")]


class Calibration(NamedTuple):
    """Bins of rows by the probability that they got, each (n_bins,) float64, ascending."""

    said: Bins  # mean probability
    happened: Bins  # share of the weight with a hit
    weights: Bins  # of the rows

    @property
    def difference(self) -> float:
        """Mean difference between predicted probability and observed share."""
        return float(np.average(np.abs(self.said - self.happened), weights=self.weights))

    def table(self, of_what: str) -> PrintedTable:
        """Return a line for each bin; `of_what` is what the probabilities are of."""
        texts = count_texts(self.weights.tolist())
        shares = [
            Numbers(head, [share_text(share) for share in of.tolist()])
            for head, of in (("predicted", self.said), ("observed", self.happened))
        ]
        labels = [f"bin {number}" for number in range(1, 1 + len(texts))]
        return PrintedTable(labels, [*shares, Numbers("rows", texts)], of_what)


def calibration_of(
    probabilities: Floats, hits: Floats, weights: Floats, n_bins: int
) -> Calibration:
    """Return bins by quantiles, as `calibration_curve` of scikit-learn; ties stay in one bin.

    There are n_bins >= 1, or fewer for few distinct probabilities. probabilities, hits, weights
    (n,): predicted probability, weight of hits, and weight of all.
    """
    said, place = np.unique(probabilities[weights > 0], return_inverse=True)
    of_said, hit = (np.bincount(place, each[weights > 0], said.size) for each in (weights, hits))
    middles = (np.cumsum(of_said) - of_said / 2) / of_said.sum()
    _, bins = np.unique((n_bins * middles).astype(np.int64), return_inverse=True)
    totals: Floats = np.bincount(bins, of_said)  # type: ignore[assignment] # of weights: floats
    means, shares = (np.bincount(bins, each) / totals for each in (said * of_said, hit))
    return Calibration(means, shares, totals)


def calibration_by_bins(scores: LabelScores, names: Sequence[str]) -> tuple[str, Calibration]:
    """Return what the judged probabilities are of, in words, and bins of at least 20 rows."""
    of_what, said, hits, weights = scores.confidences(names)
    n_bins = max(1, min(_MOST_BINS, int(scores.weight) // _ROWS_OF_BIN))
    return of_what, calibration_of(said, hits, weights, n_bins)


def curves_of(
    scores: LabelScores, names: Sequence[str]
) -> tuple[list[str], PrintedTable, tuple[UnitChart, ...]]:
    """Return a sentence, a table and charts on the probabilities, for a report.

    If no class is judged, ROC curves are of the most common ones, and calibration is of the
    predicted class.
    """
    from sklearn.metrics import roc_curve  # slow to import, and no fit needs it

    counts = scores.confusion.sum(axis=1)
    both = np.flatnonzero((counts > 0) & (counts < scores.weight))
    commonest = both[np.argsort(-counts[both], kind="stable")][:_MOST_CURVES]
    is_one = scores.positive is not None
    shown: list[int] = sorted(commonest.tolist())
    if scores.positive is not None:
        shown = [scores.positive] if math.isfinite(scores.auc) else []
    lines = []
    for c in shown:
        is_class, said, weights = scores.against_rest(c)
        false, true, _ = roc_curve(is_class, said, sample_weight=weights)
        name = f"{names[c]}: area {diagnostic_text(scores.area(c), 3)}"
        lines.append(Series(name, false.tolist(), true.tolist()))
    of_what, found = calibration_by_bins(scores, names)
    texts = [
        f"This shows whether {of_what} is calibrated. Rows are sorted by it and split into bins "
        "with about equal numbers of rows. Predicted probabilities and observed shares differ "
        f"by {share_text(found.difference)} on average. Dots on the diagonal are right, and larger "
        "dots have more rows."
    ]
    dots = Series("a bin of rows", *(each.tolist() for each in found))
    across = f"said: {of_what if len(of_what) <= _LONGEST else 'probability'}"
    charts = [UnitChart("Calibration", across, "observed, share of the rows", [dots])]
    if lines:
        some = f" of {len(lines)} of {len(names)} classes" if len(lines) < len(names) else ""
        title = "ROC curve" if is_one else f"ROC curves{some}, each against the rest"
        axes = ("false positives, share of the others", "true positives, share of the class")
        charts.insert(0, UnitChart(title, *axes, lines))
    return texts, found.table(of_what), tuple(charts)


_MOST_GROUPS = 64
_NONE = "-"  # a share of no rows


@dataclass(frozen=True, slots=True, eq=False)
class LabelDetails:
    """AUC, calibration and confusion matrix of the predictions for some rows.

    Parameters
    ----------
    auc : float
        NaN if it is not defined.
    of_what : str
        What the calibrated probabilities are of, such as "P(yes)".
    calibration : Calibration
    confusion : (n_classes, n_classes) float64
        Weights by true (rows) and predicted class.
    """

    auc: MaybeNaN
    of_what: str
    calibration: Calibration
    confusion: Annotated[Floats, Of("classes", "classes", least=0)]

    @classmethod
    def of(cls, scores: LabelScores, names: Sequence[str]) -> "LabelDetails":
        """Return the details of some scores; `names` are those of the classes."""
        return cls(scores.auc, *calibration_by_bins(scores, names), scores.confusion)

    def page(self, target: str, names: Sequence[str]) -> Page:
        """Return calibration and confusion matrix; `target` is the name of the labels."""
        differ = share_text(self.calibration.difference)
        texts = [
            f"AUC {diagnostic_text(self.auc, 3)}",
            f"predicted {self.of_what} and observed shares differ by {differ} on average",
        ]
        return (
            Pieces(texts),
            BLANK,
            self.calibration.table(self.of_what),
            BLANK,
            *confusion_page(self.confusion, target, names),
        )


class GroupScores:
    """Scores of the rows of each group.

    Parameters
    ----------
    by : str
        Name of the column whose values are the groups.
    bins : Column or None
        The same column if its bins are the groups, not its values.
    names : sequence of str
        Names of the classes.
    positive : int or None
        The judged class; see `LabelScores`.
    """

    def __init__(
        self, by: str, bins: Column | None, names: Sequence[str], positive: int | None
    ) -> None:
        self.by, self.names = by, names
        self._bins, self._positive = bins, positive
        self._scores: dict[str, LabelScores] = {}
        if bins is not None:
            for group in self._bin_texts:
                self._scores[group] = LabelScores(len(names), positive)

    def add(
        self,
        cells: pd.Series,
        labels: NDArray[np.integer],
        probabilities: Floats,
        weights: Floats | None,
        predicted: NDArray[np.integer],
    ) -> None:
        """Add a block of rows, whose column `by` has the cells (n,); see `LabelScores.add`.

        DataError if there are more than 64 groups, or a cell cannot be read.
        """
        groups = self._groups_of(cells)
        for group in dict.fromkeys(groups.tolist()):
            if group not in self._scores:
                self._scores[group] = LabelScores(len(self.names), self._positive)
            if len(self._scores) > _MOST_GROUPS:
                raise DataError(
                    f'column "{self.by}" must have at most {_MOST_GROUPS} different values for '
                    "groups, got more: cut it into ranges first"
                )
            own = groups == group
            own_weights = None if weights is None else weights[own]
            self._scores[group].add(labels[own], probabilities[own], own_weights, predicted[own])

    def page(self) -> Page:
        """Return a line for each group: rows, accuracy, error rates and calibration."""
        measured = self.to_dict()
        groups, found = list(measured), list(measured.values())
        heads = {"accuracy": "accuracy"}
        texts = [f"accuracy: share of correct predictions, by {self.by}"]
        if self._judged is None:
            of_what = "the predicted class"
        else:
            name = of_what = self.names[self._judged]
            heads |= {"false_positive_rate": "false pos.", "false_negative_rate": "false neg."}
            texts += [
                f"false pos.: share of the other rows that are predicted to be {name}",
                f"false neg.: share of the rows of {name} that are predicted to be another class",
            ]
        heads |= {"predicted": "predicted", "observed": "observed"}
        texts.append(f"predicted, observed: mean probability of {of_what}, and its share")
        counts = count_texts([scores["weight"] for scores in found])
        columns = [
            Numbers(
                head,
                [_NONE if scores[key] is None else share_text(scores[key]) for scores in found],
            )
            for key, head in heads.items()
        ]
        table = PrintedTable(groups, [Numbers("rows", counts), *columns], self.by)
        return (table, *(Pieces([text], "dim") for text in texts))

    def to_dict(self) -> dict[str, Any]:
        """Return the scores of each group as plain data: bins in order, or the largest first."""
        found = [(group, scores) for group, scores in self._scores.items() if scores.weight > 0.0]
        if self._bins is None:
            found.sort(key=lambda scores: -scores[1].weight)
        return {group: self._measures(scores) for group, scores in found}

    @property
    def _bin_texts(self) -> list[str]:
        assert self._bins is not None
        n_bins = len(self._bins.edges) - 1
        return [self._bins.describe_codes((b,), is_open=True) for b in range(n_bins)]

    def _groups_of(self, cells: pd.Series) -> NDArray[np.object_]:
        """Return the text of each row's group, (n,)."""
        if self._bins is None:
            values, codes, *_ = factorize(self.by, cells)
            texts = list(map(level_text, values))
        else:
            numbers = to_numbers(f'column "{self.by}"', cells)
            codes = np.searchsorted(self._bins.edges[1:-1], numbers, side="right")
            codes[np.isnan(numbers)] = -1
            texts = self._bin_texts
        return np.array([*texts, "missing"], dtype=object)[codes]  # code -1 is the last

    @property
    def _judged(self) -> int | None:
        return LabelScores(len(self.names), self._positive).positive

    def _measures(self, scores: LabelScores) -> dict[str, Any]:
        _, said, hits, weights = scores.confidences(self.names)
        measures = {
            "accuracy": scores.accuracy,
            "accuracy_error": scores.accuracy_error,
            "log_loss": scores.log_loss,
            "auc": scores.auc,
            "predicted": _share(float(said @ weights), scores.weight),
            "observed": _share(float(hits.sum()), scores.weight),
        }
        if scores.positive is not None:
            c, n = scores.positive, scores.confusion
            others = n.sum() - n[c].sum()
            measures["false_positive_rate"] = _share(n[:, c].sum() - n[c, c], others)
            measures["false_negative_rate"] = _share(n[c].sum() - n[c, c], n[c].sum())
        plain = {k: None if np.isnan(v) else float(v) for k, v in measures.items()}
        own = {"rows": scores.n_rows, "weight": scores.weight}
        return {**own, **plain, "confusion": scores.confusion.tolist()}


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0.0 else np.nan
