"""Costs and error rates of classifiers on test rows, not used for learning or choices.

A model is a point; models of one family, such as a path of prunings, are a curve. For comparison,
there is the point that costs nothing: the most common class for every row. Test rows only measure:
after choosing a model by this curve, measure it again on other rows.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from bayescascade.base.arrays import Flags, Floats
from bayescascade.base.errors import DataError, ParameterError
from bayescascade.costs.classifier import BudgetedClassifier
from bayescascade.data.labels import check_labels
from bayescascade.data.levels import level_text
from bayescascade.model.standard_errors import WeightedMean, share_error
from bayescascade.report.axes import axes_or_new
from bayescascade.report.numbers import cost_texts, share_with_error, with_error
from bayescascade.report.page import BLANK, Heading, Numbers, Page, Pieces, PrintedTable
from bayescascade.report.printed import Printed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CURVE_SIZE = (6.4, 4.2)  # size of a picture, inches
NOTHING = "nothing"
"""The label of the point that buys nothing."""

_MARKERS = "o^sDvP*X"


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A classifier on test rows."""

    label: str  # its family; points of one label are drawn as one line
    # cost, cost_error: mean cost of a row and its standard error; this is NaN below 100 rows
    cost: float
    cost_error: float
    # error, error_error: share of wrongly classified rows, in [0, 1], and its standard error
    error: float
    error_error: float
    n_features: float  # mean number of features acquired per row; NaN if unknown
    # n_trees, n_splits: size of its forest; None if it has no forest
    n_trees: int | None
    n_splits: int | None


@dataclass(frozen=True, slots=True)
class CostAccuracyCurve(Printed):
    """Costs and errors of classifiers; returned by `cost_accuracy_curve`.

    Parameters
    ----------
    points : tuple of CurvePoint
        The classifiers, family by family, in order of cost.
    n_rows : int
        Number of test rows.
    nothing : CurvePoint, optional
        The classifier that buys nothing, and predicts `commonest` for each row.
    commonest : object
        The most common class of the training rows of the first classifier or, if it is not known,
        of the test rows.
    """

    points: tuple[CurvePoint, ...]
    n_rows: int
    nothing: CurvePoint | None = None
    commonest: Any = None  # a label

    @property
    def labels(self) -> list[str]:
        """The families, in order."""
        return list(dict.fromkeys(point.label for point in self.points))

    def of(self, label: str) -> list[CurvePoint]:
        """Return the points of a family, in order of cost."""
        return [point for point in self.points if point.label == label]

    def to_frame(self) -> pd.DataFrame:
        """Return one row per classifier, `nothing` first, with the fields of `CurvePoint`."""
        names = CurvePoint.__slots__
        return pd.DataFrame(
            [[getattr(point, name) for name in names] for point in self._all], columns=names
        )

    @property
    def _all(self) -> tuple[CurvePoint, ...]:
        """The points, after the one that buys nothing."""
        return self.points if self.nothing is None else (self.nothing, *self.points)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw error by cost, a line for each family, with standard errors.

        The dashed line is the error of buying nothing, and the band its standard error.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw into; by default those of a new figure.

        Returns
        -------
        matplotlib Axes
        """
        ax = axes_or_new(ax, *CURVE_SIZE)
        if self.nothing is not None:
            level, half = 100 * self.nothing.error, 100 * np.nan_to_num(self.nothing.error_error)
            ax.axhspan(level - half, level + half, color="0.92", linewidth=0)
            ax.axhline(level, color="0.5", linewidth=1.0, linestyle="--", label=NOTHING)
        for number, label in enumerate(self.labels):
            points = self.of(label)
            ax.errorbar(
                [point.cost for point in points],
                [100 * point.error for point in points],
                xerr=[point.cost_error for point in points],
                yerr=[100 * point.error_error for point in points],
                marker=_MARKERS[number % len(_MARKERS)],
                markersize=5,
                linewidth=1.2,
                elinewidth=0.8,
                color=f"C{number % 10}",
                label=label,
            )
        ax.set_xlabel("mean cost of a row")
        ax.set_ylabel("error, % of the test rows")
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False, fontsize=9, ncols=2, loc="lower left", bbox_to_anchor=(0.0, 1.0))
        return ax

    def page(self) -> Page:
        """Return a table: a line for buying nothing, then a line for each classifier.

        Costs are means per row, and errors are shares of the rows, both with standard errors.
        Features are the mean number of features acquired per row.
        """
        firsts = {label: self.of(label)[0] for label in self.labels}
        labels = [point.label if point is firsts[point.label] else "" for point in self.points]
        note = Pieces(["±: standard error over the rows", *self.nothing_texts], "dim")
        heading = Heading([f"{self.n_rows:,} test rows"])
        return (heading, BLANK, self.table(labels, ""), BLANK, note)

    @property
    def nothing_texts(self) -> list[str]:
        """An explanation of the line for buying nothing, if there is one."""
        label = level_text(self.commonest)
        return [] if self.nothing is None else [f"{NOTHING}: every row is classified as {label}"]

    def table(
        self, labels: Sequence[str], header: str, more: Mapping[str, Sequence[str]] | None = None
    ) -> PrintedTable:
        """Return the table of the points, given a label for each and the heading of the labels.

        The line for buying nothing is the first. A column is left out if it is empty for all
        models. `more` has other columns, a text for each point, that replace those about the
        models.
        """
        points = self._all
        labels = [NOTHING] * (len(points) - len(self.points)) + list(labels)
        texts = cost_texts([p.cost for p in points])
        places = [max(2, len(text.partition(".")[2])) for text in texts]
        pairs = zip(texts, [p.cost_error for p in points], places, strict=True)
        costs = [with_error(*pair) for pair in pairs]
        errors = [share_with_error(p.error, p.error_error, 2) for p in points]
        columns = {"cost": costs, "error": errors}
        n_more = len(points) - len(self.points)
        if more is not None:
            columns |= {name: [""] * n_more + list(texts) for name, texts in more.items()}
        else:
            columns |= self._sizes(points)
        is_said = [any(texts[-len(self.points) :]) for texts in columns.values()]
        shown = compress(columns.items(), is_said)
        return PrintedTable(labels, [Numbers(*column) for column in shown], header)

    @staticmethod
    def _sizes(points: Sequence[CurvePoint]) -> dict[str, list[str]]:
        """Return the columns for the size of the models."""
        return {
            "features": [
                "" if math.isnan(p.n_features) else f"{p.n_features:,.1f}" for p in points
            ],
            "trees": ["" if p.n_trees is None else f"{p.n_trees:,}" for p in points],
            "splits": ["" if p.n_splits is None else f"{p.n_splits:,}" for p in points],
        }


def cost_accuracy_curve(
    models: Any,  # a classifier, an iterable of classifiers, or a sequence or mapping of both
    X_test: Any,
    y_test: ArrayLike,
    labels: Sequence[str] | None = None,
) -> CostAccuracyCurve:
    """Measure mean cost and error rate of fitted classifiers on test rows.

    For comparison, the most common class is predicted for each row, which costs nothing.

    Parameters
    ----------
    models : classifier, path, or a sequence or mapping of these
        Fitted classifiers. A classifier is anything with `predict` and `acquisition_cost`. A path,
        such as `PruningPath`, is a family of classifiers. The keys of a mapping are the names of
        families.
    X_test : DataFrame, array or list of rows
        Rows that were not used for learning or choosing.
    y_test : (n_rows,) array
        Their labels.
    labels : sequence of str, optional
        Names of the families, one for each element of a sequence. By default, the names of the
        classes.

    Returns
    -------
    CostAccuracyCurve

    Raises
    ------
    ParameterError
        If there is no classifier, if an entry is not a classifier, or if the number of labels
        differs.
    DataError
        If the rows or labels cannot be used, or if no label is a class of a classifier.
    """
    truth = check_labels(y_test, "y_test", "cost_accuracy_curve")
    points: dict[str, list[CurvePoint]] = {}
    commonest: Any = None
    for label, model in _labeled(models, labels):
        commonest = getattr(model, "commonest_class_", None) if commonest is None else commonest
        point = _measured(label, model, X_test, truth)
        points.setdefault(label, []).append(point)
    if not points:
        raise ParameterError("models must have at least one classifier, got none")
    ordered = [p for family in points.values() for p in sorted(family, key=lambda p: p.cost)]
    if commonest is None:
        found, counts = np.unique(truth, return_counts=True)
        commonest = found.tolist()[counts.argmax()]
    free = CurvePoint(NOTHING, 0.0, 0.0, *_share(truth != commonest), 0.0, None, None)
    return CostAccuracyCurve(tuple(ordered), len(truth), free, commonest)


def _labeled(models: Any, labels: Sequence[str] | None) -> Iterator[tuple[str, Any]]:
    """Yield every classifier with the name of its family."""
    if isinstance(models, Mapping):
        if labels is not None:
            raise ParameterError(f"labels must be None with a mapping, got {labels!r}")
        entries: list[Any] = list(models.values())
        names: Sequence[str | None] = [str(name) for name in models]
    else:
        is_many = isinstance(models, Sequence) and not hasattr(models, "predict")
        entries = list(models) if is_many else [models]
        names = [None] * len(entries) if labels is None else labels
        if isinstance(names, str) or len(names) != len(entries):
            raise ParameterError(f"labels must be {len(entries)} names, got {labels!r}")
    for name, entry in zip(names, entries, strict=True):
        for model in _classifiers(entry):
            family = getattr(model, "title", type(model).__name__) if name is None else name
            yield str(family), model


def _classifiers(entry: Any) -> Iterator[Any]:
    if hasattr(entry, "predict") and hasattr(entry, "acquisition_cost"):
        yield entry
    elif (
        isinstance(entry, Iterable)
        and not isinstance(entry, str | Mapping)
        and not hasattr(entry, "predict")  # a forest of scikit-learn iterates to its trees
    ):
        for classifier in entry:
            yield from _classifiers(classifier)
    else:
        raise ParameterError(
            "models must be fitted classifiers with predict and acquisition_cost, or paths of "
            f"these, got {entry!r}"
        )


def _measured(label: str, model: Any, X_test: Any, truth: NDArray[Any]) -> CurvePoint:
    predicted, costs, n_features = _answers(model, X_test)
    if len(predicted) != len(truth):
        raise DataError(f"y_test must have a label per row, {len(predicted)}, got {len(truth)}")
    if not np.isin(truth, model.classes_).any():  # such as text instead of numbers
        raise DataError(
            "y_test must have classes of the classifiers, got "
            f"{truth.tolist()[0]!r} in row 1, not one of "
            f"{', '.join(repr(label) for label in model.classes_.tolist())}"
        )
    forest = getattr(model, "forest_", None)
    sizes = (None, None) if forest is None else (forest.n_trees, forest.n_splits)
    cost = WeightedMean()
    cost.add(costs)
    wrong = _share(predicted != truth)
    return CurvePoint(label, cost.mean, cost.standard_error, *wrong, n_features, *sizes)


def _answers(model: Any, X: Any) -> tuple[NDArray[Any], Floats, float]:
    """Return predicted labels, costs of rows, and their mean number of features."""
    if isinstance(model, BudgetedClassifier):  # which follows rows once for all of these
        found = model.predict_block(X, 1)
        assert found.probabilities is not None
        assert found.costs is not None
        assert found.used is not None
        labels = model.classes_[model.decision().choose(found.probabilities)]
        return labels, found.costs, float(found.used.sum(axis=1).mean())
    n_features = math.nan
    labels, costs = np.asarray(model.predict(X)), np.asarray(model.acquisition_cost(X), np.float64)
    if hasattr(model, "features_used"):
        n_features = float(np.asarray(model.features_used(X)).sum(axis=1).mean())
    return labels, costs, n_features


def _share(wrong: Flags) -> tuple[float, float]:
    """Return a share and its standard error."""
    error = float(wrong.mean())
    return error, share_error(error, wrong.size)
