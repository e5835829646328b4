"""Features asked for row by row, as the margins of its neighbors say; `rule` has the formulas."""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.errors import ModelFileError, ParameterError
from bayescascade.base.validation import check_real
from bayescascade.base.watch import Watch
from bayescascade.costs.acquisition import Walk
from bayescascade.costs.choice import Choice
from bayescascade.costs.classifier import BudgetedClassifier
from bayescascade.costs.items import Costs, FeatureCosts
from bayescascade.costs.limits import BudgetError, check_amounts
from bayescascade.data.cell_policy import CellPolicy, Matrix
from bayescascade.data.given import GivenRows
from bayescascade.data.labels import TrainingRows
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.methods.margin_neighbors.choosing import (
    MOST_JUDGES,
    Asked,
    Followed,
    Judged,
    Judges,
    best_within,
    follow_all,
    judge,
)
from bayescascade.methods.margin_neighbors.margins import (
    default_classifier,
    fit_additive,
    out_of_fold,
)
from bayescascade.methods.margin_neighbors.parameters import MarginNeighborsParameters
from bayescascade.methods.margin_neighbors.records import rows_from_record, rows_record
from bayescascade.methods.margin_neighbors.reports import HOW_TO_READ, step_table
from bayescascade.methods.margin_neighbors.rule import Neighborhoods, Rule
from bayescascade.methods.margin_neighbors.walk import NeighborWalk
from bayescascade.report.page import BLANK, Page, Pieces, count_of

_NEIGHBORS = (8, 25, 75)
_GAINS = (0.0, 0.01, 0.05)
"""Tradeoffs that are tried, by what a feature of mean cost must add to the accuracy."""


@dataclass(eq=False, repr=False)
class MarginNeighborsClassifier(BudgetedClassifier):
    """Asks, row by row, for the feature that would settle it, as rows alike in the others say.

    Parameters
    ----------
    estimator : classifier or None
        A linear classifier of scikit-learn, or a `GradientBoostingClassifier` of stumps; it is
        fitted to standardized columns. None: 300 boosted stumps.
    costs : FeatureCosts, mapping, sequence of float or None
        What features cost; None: 1 each. See `FeatureCosts`.

    Attributes
    ----------
    rule_ : Rule
        How rows are led, and when they stop; `n_neighbors_`, `tradeoff_`, `stop_` and
        `predict_by_` are parts of it.
    steps_ : (3, n_features_in_ + 1) float64
        By the number of features measured: the share of the rows that judge that go so far, the
        accuracy that neighbors estimate for all of them, and the actual one, of margins.
    certificate_, posterior_
        There are none: the rule is a heuristic that minimizes nothing over ways to ask.

    The others are those of every `BudgetedClassifier`.

    Notes
    -----
    Nan (2018), chapter 2, with errata 17 to 19 of the documentation. A saved file holds the rows,
    as predicting needs them. Costs, shares and choices are measured on at most 2,000 validation
    rows; without labels of such, training rows choose, each left out of its own neighborhoods.

    Features that cost the same are asked for as printed with ``margins="in_sample"``,
    ``ties="first"``, ``stop="threshold"`` and ``predict_by="margin"``.

    References
    ----------
    Nan, F., Wang, J., Trapeznikov, K. and Saligrama, V. (2014). Fast margin-based cost-sensitive
    classification. ICASSP.

    Examples
    --------
    >>> import numpy as np
    >>> from bayescascade import MarginNeighborsClassifier
    >>> X = np.random.default_rng(0).normal(size=(400, 4))
    >>> model = MarginNeighborsClassifier(budget=1.0, random_state=0).fit(X, X[:, 2] > 0.5)
    >>> np.flatnonzero(model.feature_shares_).tolist()
    [2]
    """

    model_name: ClassVar[str] = "MarginNeighborsClassifier"
    title: ClassVar[str] = "margins of neighbors"
    purpose: ClassVar[str] = (
        "Which class a row is of, by asking for one feature after the other: that which would "
        "settle most of the training rows that are like it so far."
    )
    cells: ClassVar[CellPolicy] = CellPolicy(missing="level")
    ignored: ClassVar[str] = "missing"
    missing: ClassVar[str] = "level"  # type: ignore[misc] # not a parameter here
    declares = MarginNeighborsParameters

    _not_saved: ClassVar[tuple[str, ...]] = (*BudgetedClassifier._not_saved, "estimator")

    estimator: Any = MarginNeighborsParameters.estimator.default
    _: KW_ONLY
    costs: Costs = MarginNeighborsParameters.costs.default
    budget: float | None = MarginNeighborsParameters.budget.default
    n_neighbors: int | None = MarginNeighborsParameters.n_neighbors.default
    tradeoff: float | None = MarginNeighborsParameters.tradeoff.default
    stop: str = MarginNeighborsParameters.stop.default
    threshold: float | None = MarginNeighborsParameters.threshold.default
    max_features: int | None = MarginNeighborsParameters.max_features.default
    predict_by: str = MarginNeighborsParameters.predict_by.default
    margins: str = MarginNeighborsParameters.margins.default
    rest: str = MarginNeighborsParameters.rest.default
    ties: str = MarginNeighborsParameters.ties.default
    unknown: str = MarginNeighborsParameters.unknown.default
    time_limit: float | None = MarginNeighborsParameters.time_limit.default
    random_state: Any = MarginNeighborsParameters.random_state.default

    rule_: Rule = field(init=False)
    steps_: NDArray[np.float64] = field(init=False)

    _around: Neighborhoods = field(init=False)
    _tried: "_Tried" = field(init=False)

    def fit(
        self,
        X: Any,
        y: Any,
        X_val: Any = None,
        y_val: Any = None,
        *,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit the classifier that adds up, and choose the rule by rows that judge.

        Parameters
        ----------
        X : DataFrame or other table, paths, mapping of columns, array or list of rows
            Tables of polars, Arrow, DuckDB, Dask or narwhals, too; paths or URLs of CSV, Parquet or
            Arrow files, whose column `y` names.
            Numbers, truth values, text and categories; NaN or None is missing.
        y : (n_rows,) array, or str of files
            Labels, of at least two classes.
        X_val : as X, optional
            Rows that `validation_cost_` and the shares are measured on; by default those that
            judge.
        y_val : (n_validation_rows,) array, optional
            Their labels, which choose the rule; without them, training rows do, each left out of
            its own neighborhoods.
        sample_weight : (n_rows,) array of float >= 0, optional
            Weights of the rows, 1 each by default.

        Raises
        ------
        ParameterError
            If a parameter is out of its range, `estimator` does not add up over columns, or
            `n_neighbors` is more than the rows weigh.
        DataError
            If rows, labels or weights cannot be used.
        """
        self._check_parameters()
        training = self._read_rows(X, y, sample_weight, X_val, y_val)
        self._tried = self._try_each(training)
        self.__dict__.update(self._chosen(self.budget).__dict__)
        return self

    def within(self, budget: float) -> Self:
        """Return the classifier of another budget, chosen among the rules that `fit` tried.

        Raises ParameterError if the budget is out of its range, NotFittedError if the model was
        read from a file.
        """
        check_is_fitted(self, "_tried", msg="%(name)s must be fitted, and not read from a file")
        return self._chosen(check_real("budget", budget, minimum=0.0))

    def path(self, budgets: Sequence[float]) -> list[Self]:
        """Return a classifier for each budget, chosen among the rules that `fit` tried."""
        return [self.within(budget) for budget in check_amounts("budgets", budgets)]

    def fit_budgets(
        self, budgets: Sequence[float], X: Any, y: Any, X_val: Any = None, y_val: Any = None
    ) -> Iterator[tuple[float, Self | BudgetError]]:
        """Yield for each budget the best rule, of those that one fit tries for all of them."""
        model: Any = clone(self).set_params(budget=max(budgets))
        model.fit(X, y, X_val=X_val, y_val=y_val)
        for budget in budgets:
            yield budget, model.within(budget)

    # -- fitting -----------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        """Raise ParameterError if a parameter is out of its range, or of no effect."""
        self.declares.check(self)
        for name, stop in (("threshold", "threshold"), ("max_features", "number")):
            if getattr(self, name) is not None and self.stop != stop:
                raise ParameterError(
                    f'{name} must be None unless stop is "{stop}", got {getattr(self, name)!r}'
                )

    def _policy(self) -> CellPolicy:
        return self.cells

    def _read_rows(
        self, X: Any, y: Any, sample_weight: Any = None, X_val: Any = None, y_val: Any = None
    ) -> TrainingRows:
        given = GivenRows.labeled(X, y, sample_weight)
        validation = GivenRows.validating(X_val, y_val)
        encoder = MatrixEncoder.learn(given, self._policy())
        self._set_columns(encoder, FeatureCosts.of(self.costs, encoder.columns))
        training = TrainingRows.read(encoder, given, validation, owner=type(self).__name__)
        self.classes_ = training.classes
        return training

    def _try_each(self, training: TrainingRows) -> "_Tried":
        """Return the rules that are asked for, as the rows that judge found them."""
        watch, generator = Watch(self.time_limit), np.random.default_rng(self.random_state)
        kept = training.weights > 0
        rows, labels, sizes = training.rows[kept], training.labels[kept], training.weights[kept]
        self.n_rows_ = len(rows)
        asked = self._asked(float(sizes.sum()))
        center = np.average(rows, axis=0, weights=sizes)
        scale = np.sqrt(np.average((rows - center) ** 2, axis=0, weights=sizes))
        scale[scale <= 1e-12 * np.abs(center)] = 1.0
        estimator = self.estimator
        if estimator is None:
            estimator = default_classifier(int(generator.integers(2**31)))
        cells = (rows - center) / scale
        source = np.asarray(self._encoder.source, np.int64)
        starts = np.searchsorted(source, np.arange(source[-1] + 2)).astype(np.int64)
        full = fit_additive(estimator, cells, labels, sizes)
        needs_folds = self.margins == "out_of_fold" or training.validation_labels is None
        parts = full.of_features(cells, starts)
        fair = parts
        if needs_folds:
            fair = out_of_fold(estimator, full, cells, labels, sizes, starts)
        self._around = Neighborhoods(
            rows, labels, sizes, center, scale, source,
            fair if self.margins == "out_of_fold" else parts, full, training.n_classes,
            self.items_, self.rest == "neighbors", self.ties == "all",
        )  # fmt: skip
        if training.validation_labels is None:
            own = _some(len(rows), generator)
            judges = Judges(rows[own], labels[own], "rows left out one by one", own, fair[own])
        else:
            chosen = _some(len(training.validation_rows), generator)
            judges = Judges(
                training.validation_rows[chosen],
                training.validation_labels[chosen],
                "validation rows",
            )
        followed = []
        for ways in follow_all(self._around, asked, judges):
            followed.append(ways)
            if watch.is_over():
                break
        seen = None
        if training.validation_labels is None and training.validation_rows is not training.rows:
            others = training.validation_rows
            seen = others[_some(len(others), generator)]
        judged = tuple(judge(followed, asked))
        return _Tried(judged, {(f.n_neighbors, f.tradeoff): f for f in followed}, judges, training,
                      seen, watch)  # fmt: skip

    def _asked(self, weight: float) -> Asked:
        """Return what is chosen among."""
        if self.n_neighbors is not None and self.n_neighbors > weight:
            raise ParameterError(
                f"n_neighbors must be at most {weight:,.12g}, what the rows weigh, "
                f"got {self.n_neighbors}"
            )
        most = max(1, int(weight // 2))
        several = sorted({min(number, most) for number in _NEIGHBORS})
        costs, items = self.items_.costs, self.items_
        alone = [costs[items.of_column(j)].sum() for j in range(items.n_columns)]
        mean = float(np.mean(alone))
        has_prices = items.n_groups > 0 or not np.allclose(alone, mean)
        tradeoffs = [gain / mean for gain in _GAINS] if has_prices else [0.0]
        values: Sequence[float] | None = None
        if self.stop == "gain":
            values = [0.0]
        elif self.stop == "threshold" and self.threshold is not None:
            values = [self.threshold]
        elif self.stop == "number" and self.max_features is not None:
            values = [float(self.max_features)]
        return Asked(
            several if self.n_neighbors is None else [self.n_neighbors],
            tradeoffs if self.tradeoff is None else [self.tradeoff],
            ["threshold", "gain", "number"] if self.stop == "auto" else [self.stop],
            values,
            ["margin", "vote"] if self.predict_by == "auto" else [self.predict_by],
        )

    def _chosen(self, budget: float | None) -> Self:
        """Return the classifier of the best rule within a budget, or of what reads nothing."""
        tried = self._tried
        model = copy.copy(self)
        model.budget = budget
        best = best_within(tried.judged, budget)
        rule = _nothing(tried.judged[0].rule) if best is None else best.rule
        ways = tried.ways[rule.n_neighbors, rule.tradeoff]
        model.rule_, model.steps_ = rule, ways.by_step(rule)
        if tried.seen is None:
            model._measure_used(ways.used(rule), tried.watch)
        else:
            model._measure(tried.seen, tried.watch)
        if best is not None and budget is not None and not model._reads_nothing:
            nothing = tried.judges.labels != tried.training.commonest
            model._settle(Choice.of(tried.judges.words, best.wrong, nothing, tried.training))
        return model

    # -- hooks of budgeted classifiers -------------------------------------------------------------

    def _features_read(self, rows: Matrix) -> NDArray[np.bool_]:
        return self._around.ends(rows, self.rule_).used

    def _walk(self, encoder: MatrixEncoder) -> Callable[[], Walk]:
        return partial(NeighborWalk, self._around, self.rule_, encoder)

    @property
    def _reads_nothing(self) -> bool:
        return not NeighborWalk(self._around, self.rule_, self._encoder).waiting

    def _cut_down(self) -> None:
        self.rule_ = _nothing(self.rule_)
        self.steps_ = self.steps_.copy()
        self.steps_[0, 1:] = 0.0

    # -- classifying -------------------------------------------------------------------------------

    @property
    def n_neighbors_(self) -> int:
        """Neighbors, by weight."""
        check_is_fitted(self)
        return self.rule_.n_neighbors

    @property
    def tradeoff_(self) -> float:
        """Share of neighbors that must be right beside for a unit of cost."""
        check_is_fitted(self)
        return self.rule_.tradeoff

    @property
    def stop_(self) -> tuple[str, float]:
        """The kind of stop rule, and its number."""
        check_is_fitted(self)
        return self.rule_.stop, self.rule_.value

    @property
    def predict_by_(self) -> str:
        """What predicts, "margin" or "vote"."""
        check_is_fitted(self)
        return self.rule_.predict_by

    @property
    def commonest_class_(self) -> Any:  # a label
        """The commonest class of the training rows."""
        check_is_fitted(self)
        return self.classes_.tolist()[int(self._around.start.votes.argmax())]

    def _probabilities(self, rows: Matrix) -> NDArray[np.float64]:
        return self._around.ends(rows, self.rule_).probabilities

    def _reasons(self, X: Any) -> list[str]:
        matrix = self._matrix(X)
        ends = self._around.ends(matrix, self.rule_)
        names = np.array(self.feature_texts, object)
        return [
            f"asks for {', '.join(names[used]) or 'nothing'}; {100 * right:.0f} % of its neighbors "
            "are right by that"
            for used, right in zip(ends.used, ends.accuracy.tolist(), strict=True)
        ]

    # -- what a user sees --------------------------------------------------------------------------

    def _heading(self) -> list[str]:
        return [count_of(len(self.classes_), "class", "classes")]

    def _size_facts(self) -> list[str]:
        return [f"{self.rule_.n_neighbors} neighbors"]

    def _how_made(self) -> Page:
        rule = self.rule_
        by = "the neighbors' labels" if rule.predict_by == "vote" else "the sum of what is known"
        told = [f"{rule.n_neighbors} neighbors", f"stops at {rule.stop_text}", f"predicts by {by}"]
        if rule.tradeoff > 0:
            told.insert(1, f"tradeoff {rule.tradeoff:.3g}")
        held = "a heuristic: nothing is proved", f"a saved file holds {self.n_rows_:,} rows"
        return (*super()._how_made(), Pieces(told), Pieces(held))

    def _page(self) -> Page:
        return (step_table(self.steps_), BLANK, *super()._page())

    def _how_to_read(self) -> Sequence[tuple[str, str]]:
        return (*HOW_TO_READ, *super()._how_to_read())

    # -- files -------------------------------------------------------------------------------------

    def _fields(self) -> dict[str, Any]:
        return {
            **super()._fields(),
            "rule": self.rule_._asdict(),
            "steps": self.steps_.tolist(),
            "neighborhoods": rows_record(self._around),
        }

    def _restore(self, record: Mapping[str, Any]) -> None:
        super()._restore(record)
        self.rule_ = Rule.from_record(record["rule"])
        self.steps_ = np.array(record["steps"], np.float64)
        is_share = ((self.steps_ >= 0) & (self.steps_ <= 1)).all()
        if self.steps_.shape != (3, self.n_features_in_ + 1) or not is_share:
            raise ModelFileError("a saved model's steps must be three rows of shares")
        self._around = rows_from_record(
            record["neighborhoods"], np.asarray(self._encoder.source, np.int64),
            len(self.classes_), self.items_, self.rest == "neighbors", self.ties == "all",
        )  # fmt: skip
        if self._around.weights.sum() < self.rule_.n_neighbors:
            raise ModelFileError("a saved model must have as many rows as neighbors")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "rule_")


class _Tried(NamedTuple):
    """What `fit` tried, and the rows that judge."""

    judged: tuple[Judged, ...]
    ways: Mapping[tuple[int, float], Followed]
    judges: Judges
    training: TrainingRows
    seen: Matrix | None  # validation rows without labels, which costs are measured on
    watch: Watch


def _nothing(rule: Rule) -> Rule:
    """Return the rule that reads nothing."""
    return rule._replace(stop="number", value=0.0, predict_by="vote")


def _some(n_rows: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Return which rows judge, ascending."""
    if n_rows <= MOST_JUDGES:
        return np.arange(n_rows)
    return np.sort(generator.choice(n_rows, MOST_JUDGES, replace=False))
