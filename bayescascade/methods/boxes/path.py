"""Best unions by the weight of negatives: a family of classifiers, and its ROC curve."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.errors import DataError
from bayescascade.data.given import GivenRows
from bayescascade.data.labels import check_labels, label_codes
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.methods.boxes.exact.search import CertifiedUnion
from bayescascade.methods.boxes.measures import hull_area
from bayescascade.methods.boxes.union import BoxUnion, Floats
from bayescascade.report.axes import axes_or_new
from bayescascade.report.page import BLANK, Heading, Numbers, Page, Pieces, PrintedTable, count_of
from bayescascade.report.printed import Readable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WEIGHTS: Floats = np.geomspace(0.01, 1.0, 10)
"""Weights of negatives by default; the paper's are 0.1, 0.2, ..., 1."""


@dataclass(frozen=True, eq=False, repr=False)
class BoxPath(Readable):
    """The best union for each weight of negatives."""

    weights: Floats  # (n_weights,) float64
    unions: tuple[BoxUnion, ...]  # sides halfway to the next row that would enter
    found: tuple[CertifiedUnion, ...]  # what was proved of each
    _place: int
    _classes: NDArray[Any]
    _reader: MatrixEncoder

    def page(self) -> Page:
        """Return a line for each weight: how large the union is, and what was proved of it."""
        found = self.found
        columns = [
            Numbers("boxes", [str(one.union.n_boxes) for one in found]),
            Numbers("sides", [str(union.n_sides) for union in self.unions]),
            Numbers("objective", [f"{one.objective:,.2f}" for one in found]),
            Numbers("at most", [f"{one.objective + one.gap:,.2f}" for one in found]),
        ]
        n_proved = sum(one.gap == 0.0 for one in found)
        heading = Heading(["path of boxes", f"{n_proved} of {count_of(len(found), 'union')} exact"])
        labels = [f"{weight:.3g}" for weight in self.weights]
        key = Pieces(["at most: proved bound on the objective of any union"], "dim")
        return (heading, PrintedTable(labels, columns, "negative weight"), BLANK, key)

    def to_dict(self) -> dict[str, Any]:
        """Return weights, unions and what was proved of them."""
        return {
            "path": [
                {
                    "negative_weight": weight,
                    "objective": one.objective,
                    "gap": one.gap,
                    "union": union.to_record(),
                }
                for weight, one, union in zip(
                    self.weights.tolist(), self.found, self.unions, strict=True
                )
            ]
        }

    def roc(self, X: Any, y: Any) -> tuple[Floats, Floats]:
        """Return the shares of negatives and of positives of rows that each union contains."""
        rows = self._reader.transform(GivenRows.of(X), "BoxPath")
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
