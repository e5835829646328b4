"""ROC curves and calibration of any classifier."""

import math
from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np

from bayescascade.base.arrays import Floats
from bayescascade.base.store import Of
from bayescascade.model.scores import LabelScores
from bayescascade.report.chart import Series, UnitChart
from bayescascade.report.numbers import count_texts, diagnostic_text, share_text
from bayescascade.report.page import Numbers, PrintedTable

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
