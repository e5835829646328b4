"""Base of classifiers by boxes: the rare class, predictions, page and file."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.arrays import Flags, Floats
from bayescascade.base.errors import DataError, ParameterError, warn_user
from bayescascade.base.store import Of, Saved, Within
from bayescascade.data.labels import check_two_classes, class_number
from bayescascade.data.levels import level_text, plain_level
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.data.matrix_sides import readable_sql, side_words
from bayescascade.data.sql import sql_case, sql_literal
from bayescascade.methods.boxes.union import DRAWN, KEPT_OUT, BoxUnion, LearnedBoxes
from bayescascade.model.decisions import Decision
from bayescascade.model.held_out import HeldOut
from bayescascade.model.importances import importance_shares
from bayescascade.model.matrix_classifier import MatrixClassifier
from bayescascade.model.record import NOT_SAVED
from bayescascade.model.sentences import doubt_sentences
from bayescascade.model.view import OF_ROWS, View
from bayescascade.report.axes import Bar, class_color, plot_bars
from bayescascade.report.numbers import probability_text
from bayescascade.report.page import Pieces, warning

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROUNDING = 1e-9  # relative, of a mean of equal rates
_NEVER = "is never predicted: no box is worth its cost, so give boxes, sides or negatives less"


class RareRows(NamedTuple):
    """Rows of the matrix, which of them are of the rare class, and their weights, all > 0."""

    rows: Floats
    is_positive: Flags
    weights: Floats


class BoxesClassifier(MatrixClassifier):
    """A classifier of two classes that describes the rare class by a union of boxes.

    Attributes
    ----------
    boxes_ : BoxUnion
        The union that is printed. Each side is halfway to the next row outside.
    positive_ : label
        The rare class.
    threshold_ : float
        Probability of the rare class from which `predict` names it.
    held_out_ : HeldOut or None
        Measures on held-out rows, if a command made them.
    """

    purpose: ClassVar[str] = (
        "Which rows belong to a rare class, by a few boxes that contain most of its rows."
    )
    learned_word: ClassVar[str] = "union"
    _not_saved: ClassVar[tuple[str, ...]] = (*NOT_SAVED, "positive")  # its index is

    positive: Any
    negative_weight: float | str
    held_out_: Annotated[HeldOut | None, Saved("held_out", is_optional=True)] = None
    _best: LearnedBoxes
    # index of the rare class in `classes_`
    _place: Annotated[int, Within(0, 1), Saved("positive")]
    # mean, minimum and maximum of each column of the matrix
    _span: Annotated[Floats, Of(3, "columns"), Saved("span")]

    def _read_rows(  # type: ignore[override]
        self, X: Any, y: Any, sample_weight: Any = None
    ) -> RareRows:
        """Read training rows, and find the rare class."""
        training = super()._read_rows(X, y, sample_weight)
        check_two_classes(training.classes)
        self.held_out_ = None
        sums = np.bincount(training.labels, training.weights, 2)
        if not (sums > 0.0).all():
            raise DataError("sample_weight must be > 0 for a row of each class")
        labels = training.classes.tolist()
        if self.positive is None:
            self._place = 0 if sums[0] < sums[1] else 1
        elif self.positive in labels:
            self._place = labels.index(self.positive)
        else:
            text = " or ".join(repr(label) for label in labels)
            raise ParameterError(f"positive must be {text}, got {self.positive!r}")
        rows = np.asarray(training.rows, np.float64)
        center = np.average(rows, axis=0, weights=training.weights)
        self._span = np.array([center, rows.min(axis=0), rows.max(axis=0)])
        kept = training.weights > 0.0
        return RareRows(rows[kept], (training.labels == self._place)[kept], training.weights[kept])

    # -- classifying -------------------------------------------------------------------------------

    @property
    def threshold_(self) -> float:
        """Probability of the rare class from which `predict` names it.

        With p above ``w / (1 + w)``, a row is worth more inside than outside: a positive outside
        costs 1, a negative inside the `negative_weight` w. For "balanced" this is the share of the
        rare class. A rate that equals it says nothing, and names the other class. A single union
        names exactly the rows inside, so its threshold is between its two rates.
        """
        check_is_fitted(self)
        cost, gain = self.negative_weight, 1.0
        if isinstance(cost, str):  # with the prior rows of the rates
            gain, cost = (self._best.counts.sum(axis=0) + self._best.prior_weight).tolist()
        fair: float = cost / (cost + gain) * (1.0 + _ROUNDING)
        if len(self._averaged_unions()) > 1:
            return fair
        outside, inside = map(float, self._averaged_unions()[0].rates)
        return max(min(fair, inside * (1.0 - _ROUNDING)), outside * (1.0 + _ROUNDING))

    def decision(self, threshold: Any = None, class_costs: Any = None) -> Decision:
        """Return the rule by which `predict` chooses a class; by default with `threshold_`."""
        if threshold is not None or class_costs is not None:
            return super().decision(threshold, class_costs)
        return Decision(self.threshold_ if self._place == 1 else 1.0 - self.threshold_)

    @property
    def _is_named(self) -> bool:
        """Whether `predict` names the rare class for a row that is in all unions."""
        unions = self._averaged_unions()
        best = [union.rates[1] if union.union.n_boxes else union.rates[0] for union in unions]
        return bool(np.mean(best) >= self.threshold_)

    def _check_named(self) -> None:
        if not self._is_named:
            warn_user(UserWarning(f'"{level_text(self.positive_)}" {_NEVER}'))

    def fold_model(self) -> tuple[Self, str]:
        """Return an unfitted copy for cross-validation, and what it does differently."""
        ends = {"progress", "time_limit"} & self.get_params().keys()
        return clone(self).set_params(positive=self.positive_, **dict.fromkeys(ends)), ""

    def _averaged_unions(self) -> Sequence[LearnedBoxes]:
        """Return the unions whose mean rate is predicted."""
        return [self._best]

    def _probabilities(self, rows: NDArray[Any]) -> Floats:
        given = np.asarray(rows, np.float64)
        rate = np.mean(
            [averaged_union.probabilities(given) for averaged_union in self._averaged_unions()],
            axis=0,
        )
        both = np.stack([1.0 - rate, rate], axis=1)
        return both if self._place == 1 else both[:, ::-1]

    def _reasons(self, X: Any) -> list[str]:
        return self._best.reasons(np.asarray(self._matrix(X), np.float64), self._encoder)

    def _block_words(self, rows: NDArray[Any]) -> Mapping[str, Sequence[object]]:
        return {"box": self._best.reasons(np.asarray(rows, np.float64), self._encoder)}

    @property
    def _means(self) -> Floats:
        means: Floats = self._span[0]
        return means

    def to_sql(self, label: object = None) -> str:
        """Return the class of a row, or the probability of a class, as a standard SQL expression.

        Use it as in ``f"SELECT *, {model.to_sql('rare')} AS rare FROM wines"``. It reads columns by
        their names, or as "x0", "x1" if they have no names. NULL is a missing cell. If missing
        cells or unknown levels are errors, the result is NULL for them. The expression of an
        average over draws is long.

        Parameters
        ----------
        label : object, optional
            The class whose probability is returned; by default it is the most probable class.

        Raises
        ------
        ParameterError
            If the label is not one of the classes.
        DataError
            If a name, level or class contains a NUL character.
        """
        check_is_fitted(self)
        unions, means = self._averaged_unions(), None if self.unknown == "error" else self._means
        both = self.classes_.tolist()
        others, rare = (
            sql_literal(plain_level("label", both[place]))
            for place in (1 - self._place, self._place)
        )
        is_rare = label is None or class_number(self.classes_, label) == self._place

        def sql_of(union: LearnedBoxes) -> str:
            rates = union.rates if is_rare else 1.0 - union.rates
            values = [sql_literal(float(rate)) for rate in rates]
            if label is None and len(unions) == 1:
                is_named = union.rates >= self.threshold_
                values = [rare if is_rare else others for is_rare in is_named.tolist()]
            return "\n".join(union.to_sql(self._encoder, means, *values))

        counts = Counter(map(sql_of, unions))  # chains stay at their states
        terms = [f"{n} * {text}" if n > 1 else text for text, n in counts.items()]
        lines = terms
        if len(unions) > 1:
            lines = ["({}) / {:.1f}e0".format("\n+ ".join(terms), len(unions))]
            if label is None:
                threshold = sql_literal(self.threshold_)
                lines = sql_case([(f"{lines[0]} >= {threshold}", [rare])], [others])
        readable = readable_sql(self._reader)
        return "\n".join(sql_case([(readable, lines)]) if readable else lines)

    # -- what was learned --------------------------------------------------------------------------

    @property
    def boxes_(self) -> BoxUnion:
        """The union that is printed."""
        check_is_fitted(self)
        return self._best.union

    @property
    def positive_(self) -> Any:
        """The label of the rare class."""
        check_is_fitted(self)
        return self.classes_.tolist()[self._place]

    @property
    def feature_importances_(self) -> Floats:
        """Shares of the features in the negatives that are outside a box by one side only."""
        check_is_fitted(self)
        features = self._encoder.source[[side.column for side in self._best.sides]]
        kept_out = [side.kept_out for side in self._best.sides]
        return importance_shares(self.n_features_in_, features, kept_out)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the range of each column that is inside the boxes, and return the axes.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw into; by default those of a new figure.
        """
        check_is_fitted(self)
        return plot_union(self._best, self._encoder, self._span[1:], ax)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_best")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    # -- files -------------------------------------------------------------------------------------

    def _sizes(self) -> dict[str, Any]:
        return {**super()._sizes(), "prior_weight": getattr(self, "prior_weight", 1.0)}

    def _restore(self, record: Mapping[str, Any]) -> None:
        super()._restore(record)
        if len(self.classes_) != 2:
            raise ValueError("a saved union must be of two classes")

    def view(self) -> View:
        """Return what is shown: a table for each box, and when the rare class is predicted."""
        view, best = super().view(), self._best
        summary = getattr(self, "summary_", None)
        rare, least = level_text(self.positive_), probability_text(self.threshold_)
        where = "inside the boxes, " if len(self._averaged_unions()) == 1 else ""
        named = Pieces([f'"{rare}" is predicted {where}from a probability of {least}'])
        held_out = () if self.held_out_ is None else (self.held_out_.of_class(self._place),)
        headings = [f"{heading}: {words}" for heading, words in best.headings]
        facts = [*view.facts, f'"{rare}" in boxes']
        size, boxes = best.union.n_boxes, ("box", "boxes")
        return view._replace(
            heading=[self.title, *facts],
            shown=best.page(self._encoder, rare),
            key=(
                named if self._is_named else warning(f'warning: "{rare}" {_NEVER}'),
                *map(Pieces, held_out),
                *((Pieces(headings, "dim"),) if headings else ()),
            ),
            facts=facts,
            terms=[
                ("", "A row is in a box if it is within all of its sides, and in the union if it "
                     "is in any box. There is a table for each box, with a line for each side."),
                *KEPT_OUT,
                *DRAWN,
                ("rate", "the share of the rare class among rows inside, or outside"),
            ],
            doubts=doubt_sentences(summary, self.learned_word, boxes, size) if summary else [],
            limits=[
                "Rates, and rows that sides keep out, are counted on the training rows.",
                *OF_ROWS,
            ],
        )  # fmt: skip


_OUTSIDE = "0.92"  # gray


def plot_union(
    learned: LearnedBoxes, encoder: MatrixEncoder, ends: Floats, ax: "Axes | None"
) -> "Axes":
    """Draw a bar for each column with a closed side; ends (2, n_columns): minima and maxima."""
    union, bars, (least, greatest) = learned.union, [], ends
    width = np.where(greatest > least, greatest - least, 1.0)
    for box in range(union.n_boxes):
        bars.append(Bar(f"box {box + 1}"))
        is_closed = np.isfinite(union.lower[box]) | np.isfinite(union.upper[box])
        for column in np.flatnonzero(is_closed).tolist():
            low, high = float(union.lower[box, column]), float(union.upper[box, column])
            inside = (np.array([low, high]) - least[column]) / width[column]
            start, end = np.clip(inside, 0.0, 1.0).tolist()
            words = side_words(encoder, column, low, high)
            note = " ".join(
                f"{word} {text}"
                for word, text in (("at least", words.at_least), ("at most", words.at_most))
                if text
            )
            colors = (_OUTSIDE, class_color(box, 0.6), _OUTSIDE)
            bars.append(Bar(words.label, (start, end - start, 1.0 - end), note, colors))
    ax = plot_bars(bars or [Bar("no box")], ax, x_label="of the rows   in color: inside", most=1.0)
    ax.set_xticks([0.0, 1.0], ["least", "greatest"])
    return ax
