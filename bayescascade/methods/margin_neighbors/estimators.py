"""Features asked for row by row, as the margins of its neighbors say; `rule` has the formulas."""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.errors import ModelFileError, ParameterError
from bayescascade.base.watch import Watch
from bayescascade.costs.acquisition import Walk
from bayescascade.costs.choice import Choice
from bayescascade.costs.classifier import BudgetedClassifier
from bayescascade.costs.items import Costs, FeatureCosts
from bayescascade.costs.tried import TriedWithinBudgets
from bayescascade.data.cell_policy import CellPolicy, Matrix
from bayescascade.data.given import GivenRows
from bayescascade.data.labels import TrainingRows
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.methods.forests.reports import path_words
from bayescascade.methods.forests.rows import CELLS
from bayescascade.methods.forests.walk import ForestWalk
from bayescascade.methods.margin_neighbors.box_fitting import BoxFit, ChosenBoxes, choose
from bayescascade.methods.margin_neighbors.box_policy import BoxPolicy
from bayescascade.methods.margin_neighbors.boxes import Policy
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
from bayescascade.methods.margin_neighbors.policy_posterior import PolicyPosterior
from bayescascade.methods.margin_neighbors.records import rows_from_record, rows_record
from bayescascade.methods.margin_neighbors.reports import HOW_TO_READ, step_table
from bayescascade.methods.margin_neighbors.rule import Ends, Neighborhoods, Rule
from bayescascade.methods.margin_neighbors.walk import NeighborWalk
from bayescascade.model.explore import explore_by
from bayescascade.model.search import Search
from bayescascade.model.solution import Certificate
from bayescascade.report.page import BLANK, Page, Pieces, count_of

_NEIGHBORS = (8, 25, 75)
_LEVELS = CellPolicy(missing="level")
_GAINS = (0.0, 0.01, 0.05)
"""Tradeoffs that are tried, by what a feature of mean cost must add to the accuracy."""


@dataclass(eq=False, repr=False)
class MarginNeighborsClassifier(TriedWithinBudgets):
    """Asks, row by row, for the feature that would settle it, as rows alike in the others say.

    Parameters
    ----------
    estimator : classifier or None
        A linear classifier of scikit-learn, or a `GradientBoostingClassifier` of stumps; it is
        fitted to standardized columns. None: 300 boosted stumps, of k > 2 classes max(60, 600 / k)
        rounds of k.
    costs : FeatureCosts, mapping, sequence of float or None
        What features cost; None: 1 each. See `FeatureCosts`.

    Attributes
    ----------
    rule_ : Rule or None
        How rows are led, and when they stop; `n_neighbors_`, `tradeoff_`, `stop_` and
        `predict_by_` are parts of it. None with boxes.
    steps_ : (3, d + 1) float64
        By the number of features measured: the share of the rows that judge that go so far, the
        accuracy that neighbors estimate for all of them, and the actual one, of margins.
    policy_ : BoxPolicy or None
        The best policy over boxes: of least error rate plus tradeoff times mean cost. None of
        nearest neighbors, whose rule is a heuristic that minimizes nothing over ways to ask.
    certificate_ : Certificate or None
        The proof that none is better.
    posterior_ : PolicyPosterior or None
        The Gibbs posterior over policies, whose `draw` gives independent ones; not in saved models.

    The others are those of every `BudgetedClassifier`.

    Notes
    -----
    Nan (2018), chapter 2, with the errata of the documentation. A saved file holds the rows,
    as predicting needs them. Costs, shares and choices are measured on at most 2,000 validation
    rows; without labels of such, training rows choose, each left out of its own neighborhoods.

    With ``neighborhood="boxes"``, numbers are cut into `n_bins` bins and neighbors agree on those
    that are measured. The policy is then exact, of the tradeoff that is given or that other rows
    choose within a budget; its leaves name the commonest class, or with ``predict_by="margin"``
    what the classifier's mean in their bins says. `n_neighbors`, `stop` and what goes with them,
    `margins`, `rest` and `ties` are of no effect.

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
    neighborhood: str = MarginNeighborsParameters.neighborhood.default
    n_bins: int = MarginNeighborsParameters.n_bins.default
    temperature: float = MarginNeighborsParameters.temperature.default
    unknown: str = MarginNeighborsParameters.unknown.default
    time_limit: float | None = MarginNeighborsParameters.time_limit.default
    random_state: Any = MarginNeighborsParameters.random_state.default

    rule_: Rule | None = field(init=False)
    steps_: NDArray[np.float64] = field(init=False)
    policy_: BoxPolicy | None = field(init=False)
    certificate_: Certificate | None = field(init=False)
    posterior_: PolicyPosterior | None = field(init=False)

    _around: Neighborhoods = field(init=False)
    _trial: "_Tried | _TriedBoxes" = field(init=False)

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
        TooLargeError
            If there are more than 4,000,000 boxes.
        DataError
            If rows, labels or weights cannot be used.
        """
        self._trial = self._try([self.budget], X, y, sample_weight, X_val, y_val)
        self.__dict__.update(self._chosen(self.budget).__dict__)
        return self

    # -- fitting -----------------------------------------------------------------------------------

    def _try(
        self, budgets: Sequence[float | None], X: Any, y: Any, sample_weight: Any = None,
        X_val: Any = None, y_val: Any = None,
    ) -> "_Tried | _TriedBoxes":  # fmt: skip
        """Return the rules or policies that are tried, which are the same for all budgets."""
        del budgets
        self._check_parameters()
        training = self._read_rows(X, y, sample_weight, X_val, y_val)
        return self._try_boxes(training) if self._has_boxes else self._try_each(training)

    def _check_parameters(self) -> None:
        """Raise ParameterError if a parameter is out of its range, or of no effect."""
        self.declares.check(self)
        for name, stop in (("threshold", "threshold"), ("max_features", "number")):
            if getattr(self, name) is not None and self.stop != stop:
                raise ParameterError(
                    f'{name} must be None unless stop is "{stop}", got {getattr(self, name)!r}'
                )

        if self._has_boxes:
            no_effect = ("n_neighbors", "threshold", "max_features")
            given = [name for name in no_effect if getattr(self, name) is not None]
            if given:
                raise ParameterError(f'{given[0]} must be None with neighborhood "boxes", '
                                     f"got {getattr(self, given[0])!r}")  # fmt: skip

    @property
    def _has_boxes(self) -> bool:
        return self.neighborhood == "boxes"

    @property
    def cells(self) -> CellPolicy:  # type: ignore[override] # of boxes, those of forests
        """What it takes for a cell."""
        return CELLS if self._has_boxes else _LEVELS

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
            estimator = default_classifier(int(generator.integers(2**31)), training.n_classes)
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

    def _try_boxes(self, training: TrainingRows) -> "_TriedBoxes":
        """Return the policies of boxes that are asked for, as the rows that judge found them."""
        self.n_rows_ = int((training.weights > 0).sum())
        estimator = None
        if self.predict_by == "margin":
            stumps = default_classifier(0, training.n_classes)
            estimator = stumps if self.estimator is None else self.estimator
        fit = BoxFit(
            self._encoder, self.items_, training.classes, self.n_bins, self.temperature, estimator
        )
        tradeoff = 0.0 if self.tradeoff is None and not self.items_.n_items else self.tradeoff
        return _TriedBoxes(choose(fit, training, tradeoff, self.random_state), training)

    def _chosen(self, budget: float | None) -> Self:
        """Return the classifier of the best rule or policy within a budget, or of nothing."""
        model = copy.copy(self)
        model.budget = budget
        if isinstance(self._trial, _TriedBoxes):
            model._become_policy(self._trial, budget)
            return model
        tried = self._trial
        model.policy_ = model.certificate_ = model.posterior_ = None
        best = best_within(tried.judged, budget)
        rule = _nothing(tried.judged[0].rule) if best is None else best.rule
        ways = tried.ways[rule.n_neighbors, rule.tradeoff]
        model.rule_, model.steps_ = rule, ways.by_step(rule)
        if tried.seen is None:
            model._measure_used(ways.used(rule), tried.watch)
        else:
            model._measure(tried.seen, tried.watch)
        if model._reads_nothing:  # where a sum of nothing need not name the commonest class
            model._cut_down()
        elif best is not None and budget is not None:
            nothing = tried.judges.labels != tried.training.commonest
            model._settle(Choice.of(tried.judges.words, best.wrong, nothing, tried.training))
        return model

    def _become_policy(self, tried: "_TriedBoxes", budget: float | None) -> None:
        """Become the exact policy of the tradeoff that is best within a budget, or of nothing."""
        boxes, training = tried.boxes, tried.training
        self.rule_, self.steps_ = None, np.zeros((3, 0))
        found = boxes.within(budget)
        posterior = boxes.rows.posterior(tried.boxes.tried[-1][0] if found is None else found[0])
        how = Search("exact", None, 4, 1, self._seed, None, False, None)
        explored = explore_by(how, posterior, solve=PolicyPosterior.solve, title=self.title)
        self.posterior_ = posterior
        self.certificate_ = explored.certificate
        self.policy_ = boxes.rows.policy(posterior, Policy() if found is None else None)
        self._measure(training.validation_rows)
        if found is not None and budget is not None and not self._reads_nothing:
            self._settle(boxes.choice(found[1], training))

    @property
    def _seed(self) -> Any:
        return None if isinstance(self.random_state, np.random.Generator) else self.random_state

    # -- hooks of budgeted classifiers -------------------------------------------------------------

    @property
    def _way(self) -> tuple[Neighborhoods, Rule]:
        if self.rule_ is None:
            raise AttributeError("a policy of boxes has no rule of nearest neighbors")
        return self._around, self.rule_

    def _ends(self, rows: Matrix) -> Ends:
        around, rule = self._way
        return around.ends(rows, rule)

    def _features_read(self, rows: Matrix) -> NDArray[np.bool_]:
        return self._ends(rows).used if self.policy_ is None else self.policy_.used(rows)

    def _walk(self, encoder: MatrixEncoder) -> Callable[[], Walk]:
        if self.policy_ is not None:
            return partial(ForestWalk, self.policy_.forest, encoder)
        return partial(NeighborWalk, *self._way, encoder)

    @property
    def _reads_nothing(self) -> bool:
        return not self._walk(self._encoder)().waiting

    def _cut_down(self) -> None:
        if isinstance(self._trial, _TriedBoxes):
            assert self.posterior_ is not None, "it was fitted"
            self.policy_ = self._trial.boxes.rows.policy(self.posterior_, Policy())
            self.certificate_ = None
            return
        self.rule_ = _nothing(self._way[1])
        self.steps_ = self.steps_.copy()
        self.steps_[0, 1:] = 0.0

    # -- classifying -------------------------------------------------------------------------------

    @property
    def n_neighbors_(self) -> int:
        """Neighbors, by weight."""
        check_is_fitted(self)
        return self._way[1].n_neighbors

    @property
    def tradeoff_(self) -> float:
        """Share of neighbors that must be right beside for a unit of cost."""
        check_is_fitted(self)
        return self._way[1].tradeoff

    @property
    def stop_(self) -> tuple[str, float]:
        """The kind of stop rule, and its number."""
        check_is_fitted(self)
        rule = self._way[1]
        return rule.stop, rule.value

    @property
    def predict_by_(self) -> str:
        """What predicts, "margin" or "vote"."""
        check_is_fitted(self)
        return self._way[1].predict_by

    @property
    def commonest_class_(self) -> Any:  # a label
        """The commonest class of the training rows."""
        check_is_fitted(self)
        shares = self._shares
        return self.classes_.tolist()[int(shares.argmax())]

    @property
    def _shares(self) -> NDArray[np.float64]:
        """Shares of the classes, (n_classes,)."""
        if self.policy_ is not None:
            counts: NDArray[np.float64] = self.policy_.forest.counts[0]
            return counts
        votes: NDArray[np.float64] = self._around.start.votes
        return votes

    def _probabilities(self, rows: Matrix) -> NDArray[np.float64]:
        if self.policy_ is not None:
            return self.policy_.forest.predict_proba(rows)
        return self._ends(rows).probabilities

    def _reasons(self, X: Any) -> list[str]:
        matrix = self._matrix(X)
        if self.policy_ is not None:
            forest = self.policy_.forest
            leaves = forest.apply(matrix)[:, 0].tolist()
            words = {leaf: path_words(forest, leaf, self._encoder) for leaf in {*leaves}}
            return [words[leaf] for leaf in leaves]
        ends = self._ends(matrix)
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
        return [f"{self.n_neighbors_} neighbors" if self.policy_ is None else "boxes"]

    def _how_made(self) -> Page:
        if self.policy_ is not None:
            told = [f"tradeoff {self.policy_.tradeoff:.3g}", f"temperature {self.temperature:.3g}"]
            proof = self.certificate_
            if proof is not None:
                told.insert(0, f"exact: no policy of {proof.extent} has a lower objective")
            return (*super()._how_made(), Pieces(told))
        rule = self._way[1]
        by = "the neighbors' labels" if rule.predict_by == "vote" else "the sum of what is known"
        told = [f"{rule.n_neighbors} neighbors", f"stops at {rule.stop_text}", f"predicts by {by}"]
        if rule.tradeoff > 0:
            told.insert(1, f"tradeoff {rule.tradeoff:.3g}")
        held = "a heuristic: nothing is proved", f"a saved file holds {self.n_rows_:,} rows"
        return (*super()._how_made(), Pieces(told), Pieces(held))

    def _page(self) -> Page:
        if self.policy_ is not None:
            return (*self.policy_.page(), BLANK, *super()._page())
        return (step_table(self.steps_), BLANK, *super()._page())

    def _how_to_read(self) -> Sequence[tuple[str, str]]:
        if self.policy_ is not None:
            return super()._how_to_read()
        return (*HOW_TO_READ, *super()._how_to_read())

    # -- files -------------------------------------------------------------------------------------

    def _fields(self) -> dict[str, Any]:
        if self.policy_ is not None:
            proof = None if self.certificate_ is None else asdict(self.certificate_)
            told = self.policy_.to_record()
            return {**super()._fields(), "policy": told, "certificate": proof}
        assert self.rule_ is not None, "of nearest neighbors"
        return {
            **super()._fields(),
            "rule": self.rule_._asdict(),
            "steps": self.steps_.tolist(),
            "neighborhoods": rows_record(self._around),
        }

    def _restore(self, record: Mapping[str, Any]) -> None:
        super()._restore(record)
        self.policy_ = self.certificate_ = self.posterior_ = None
        if self._has_boxes:
            self.rule_, self.steps_ = None, np.zeros((3, 0))
            self.policy_ = BoxPolicy.from_record(
                record["policy"], self._encoder, self.items_, self.classes_
            )
            proof = record["certificate"]
            self.certificate_ = None if proof is None else Certificate.from_dict(proof)
            return
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
        return hasattr(self, "policy_")


class _Tried(NamedTuple):
    """What `fit` tried, and the rows that judge."""

    judged: tuple[Judged, ...]
    ways: Mapping[tuple[int, float], Followed]
    judges: Judges
    training: TrainingRows
    seen: Matrix | None  # validation rows without labels, which costs are measured on
    watch: Watch


class _TriedBoxes(NamedTuple):
    """The policies that `fit` tried, and the rows."""

    boxes: ChosenBoxes
    training: TrainingRows


def _nothing(rule: Rule) -> Rule:
    """Return the rule that reads nothing."""
    return rule._replace(stop="number", value=0.0, predict_by="vote")


def _some(n_rows: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Return which rows judge, ascending."""
    if n_rows <= MOST_JUDGES:
        return np.arange(n_rows)
    return np.sort(generator.choice(n_rows, MOST_JUDGES, replace=False))
