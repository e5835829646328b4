"""The quality of a family of unions on other rows, and a bound on the error of one on new rows.

`hull_area` is the area under the convex hull of the ROC curve (Goh 2018, section 2.4), with both
corners: the classifiers that predict all rows, or none, to be positive are always available.

`generalization_bound` is Proposition 3 with two corrections. (1) The risk is the share of weighted
errors. The thesis has the number of right answers, for which the inequality has the wrong
direction. (2) With N different boxes there are ``C(N + K - 1, K)`` multisets of K boxes, and the
empty union: the thesis divides N^K by K!, which is too small, because a union that repeats a box
has fewer than K! orders. Hoeffding's inequality for losses in [0, 1] and the union bound give, with
probability at least 1 - delta, simultaneously for all unions of at most K of the boxes::

    risk <= share of weighted errors + sqrt((log(C(N + K - 1, K) + 1) + log(1 / delta)) / (2 m))

The boxes must be fixed before the rows are seen, by anchors: M_j numbers of column j, two of which
are a box's sides, so N = prod_j M_j (M_j - 1) / 2. Weights of negatives are at most 1.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import DataError
from bayescascade.base.validation import check_integer, check_real
from bayescascade.data.given import GivenRows
from bayescascade.data.labels import check_labels, label_codes
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.methods.boxes.exact.search import CertifiedUnion
from bayescascade.methods.boxes.union import BoxUnion
from bayescascade.report.axes import axes_or_new
from bayescascade.report.page import BLANK, Heading, Numbers, Page, Pieces, PrintedTable, count_of
from bayescascade.report.printed import Readable

WEIGHTS: Floats = np.geomspace(0.01, 1.0, 10)
"""Weights of negatives by default; the paper's are 0.1, 0.2, ..., 1."""


def hull_area(false_rates: ArrayLike, true_rates: ArrayLike) -> float:
    """Return the area under the convex hull of ROC points and both corners.

    Parameters
    ----------
    false_rates, true_rates : (n_classifiers,) array of float in [0, 1]
        False positive rates and true positive rates of classifiers.

    Returns
    -------
    float
        Between 0.5 (no classifier is above the diagonal) and 1.

    Raises
    ------
    DataError
        If the lengths differ, or a rate is not between 0 and 1.

    Examples
    --------
    >>> from bayescascade import hull_area
    >>> round(hull_area([0.1, 0.4], [0.6, 0.9]), 3)
    0.825
    """
    false, true = (np.asarray(rates, np.float64) for rates in (false_rates, true_rates))
    if false.ndim != 1 or false.shape != true.shape:
        raise DataError(
            f"false_rates and true_rates must be of one length, got {false.shape} and {true.shape}"
        )
    both = np.concatenate([false, true])
    if not np.all((both >= 0.0) & (both <= 1.0)):
        raise DataError("false_rates and true_rates must be from 0 to 1")
    points = sorted({(0.0, 0.0), (1.0, 1.0), *zip(false.tolist(), true.tolist(), strict=True)})
    hull: list[tuple[float, float]] = []
    for x, y in points:
        while len(hull) > 1 and _turns_left(hull[-2], hull[-1], (x, y)):
            hull.pop()
        hull.append((x, y))
    xs, ys = np.array(hull).T
    return float(((xs[1:] - xs[:-1]) * (ys[1:] + ys[:-1]) / 2).sum())


def _turns_left(
    first: tuple[float, float], second: tuple[float, float], third: tuple[float, float]
) -> bool:
    """Whether the second point is on or below the line from the first to the third."""
    x, y = second[0] - first[0], second[1] - first[1]
    return x * (third[1] - first[1]) - y * (third[0] - first[0]) >= 0.0


def generalization_bound(
    errors: float, n_rows: int, n_anchors: Sequence[int], n_boxes: int, delta: float = 0.05
) -> float:
    """Return a bound on the weighted error rate on new rows; the module has the formula.

    Parameters
    ----------
    errors : float from 0 to 1
        Weighted error rate on the training rows.
    n_rows : int >= 1
    n_anchors : sequence of int >= 2
        For each column, how many numbers may be sides, which must be chosen without the rows.
    n_boxes : int >= 1
        Maximum number of boxes.
    delta : float in (0, 1)
        Probability that the bound fails.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    Examples
    --------
    >>> from bayescascade import generalization_bound
    >>> round(generalization_bound(0.1, 10_000, [100, 100], 2), 3)
    0.143
    """
    check_real("errors", errors, minimum=0.0, maximum=1.0)
    check_integer("n_rows", n_rows, minimum=1)
    check_integer("n_boxes", n_boxes, minimum=1)
    check_real("delta", delta, above=0.0, below=1.0)
    n_single = 1
    for count in n_anchors:
        anchors = check_integer("n_anchors", count, minimum=2)
        n_single *= anchors * (anchors - 1) // 2
    # ln C(n_single + n_boxes - 1, n_boxes), without cancellation
    terms = [math.log(n_single + k) for k in range(n_boxes)]
    log_unions = math.fsum(terms) - float(gammaln(n_boxes + 1))
    return errors + math.sqrt((np.logaddexp(log_unions, 0.0) - math.log(delta)) / (2.0 * n_rows))


if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False, repr=False)
class BoxPath(Readable):
    """The best union for each weight of negatives."""

    weights: Floats  # (n_weights,) float64
    unions: tuple[BoxUnion, ...]  # sides halfway to the next row that would enter
    found: tuple[CertifiedUnion, ...]  # the results with their proofs
    _place: int
    _classes: NDArray[Any]
    _reader: MatrixEncoder

    def page(self) -> Page:
        """Return a line for each weight: the size of the union, and its proof or bound."""
        found = self.found
        columns = [
            Numbers("boxes", [str(union.union.n_boxes) for union in found]),
            Numbers("sides", [str(union.n_sides) for union in self.unions]),
            Numbers("objective", [f"{union.objective:,.2f}" for union in found]),
            Numbers("at most", [f"{union.objective + union.gap:,.2f}" for union in found]),
        ]
        n_proved = sum(union.gap == 0.0 for union in found)
        heading = Heading(["path of boxes", f"{n_proved} of {count_of(len(found), 'union')} exact"])
        labels = [f"{weight:.3g}" for weight in self.weights]
        key = Pieces(["at most: proved bound on the objective of any union"], "dim")
        return (heading, PrintedTable(labels, columns, "negative weight"), BLANK, key)

    def to_dict(self) -> dict[str, Any]:
        """Return weights, unions, objectives and gaps."""
        return {
            "path": [
                {
                    "negative_weight": weight,
                    "objective": certified.objective,
                    "gap": certified.gap,
                    "union": union.to_record(),
                }
                for weight, certified, union in zip(
                    self.weights.tolist(), self.found, self.unions, strict=True
                )
            ]
        }

    def roc(self, X: Any, y: Any) -> tuple[Floats, Floats]:
        """Return the shares of negatives and of positives that each union contains."""
        rows = self._reader.transform(GivenRows.of(X, self._reader.known), "BoxPath")
        codes = label_codes(check_labels(y, "y", "BoxPath"), self._classes, "y")
        if len(codes) != len(rows):
            raise DataError(f"y must have a label per row of X, {len(rows)}, got {len(codes)}")
        is_positive = codes == self._place
        if is_positive.all() or not is_positive.any():
            raise DataError("y must have labels of both classes for a ROC curve")
        inside = np.array([union.contains(rows) for union in self.unions])
        return inside[:, ~is_positive].mean(axis=1), inside[:, is_positive].mean(axis=1)

    def hull_area(self, X: Any, y: Any) -> float:
        """Return the area under the convex hull of the ROC curve on rows."""
        return hull_area(*self.roc(X, y))

    def plot(self, X: Any, y: Any, ax: "Axes | None" = None) -> "Axes":
        """Draw the ROC curve on rows, and return the axes; by default in a new figure."""
        false, true = self.roc(X, y)
        order = np.lexsort((true, false))
        ax = axes_or_new(ax, 4.5, 4.5)
        ax.plot([0.0, *false[order], 1.0], [0.0, *true[order], 1.0], marker=".")
        ax.set_xlabel("share of the others inside")
        ax.set_ylabel("share of the rare class inside")
        return ax
