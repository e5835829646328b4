"""A gate that keeps easy rows for a cheap classifier, and sends hard ones to an expensive one."""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.errors import ParameterError
from bayescascade.base.threads import single_threaded
from bayescascade.base.validation import check_probability
from bayescascade.base.watch import OutOfTime, Watch
from bayescascade.costs.acquisition import Walk
from bayescascade.costs.choice import Choice
from bayescascade.costs.classifier import BudgetedClassifier
from bayescascade.costs.items import Costs, FeatureCosts
from bayescascade.costs.norms import CostNorms
from bayescascade.costs.pages import CANNOT_TELL
from bayescascade.costs.tried import TriedWithinBudgets
from bayescascade.data.cell_policy import CellPolicy, Matrix
from bayescascade.data.given import GivenRows
from bayescascade.data.labels import TrainingRows
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.data.splitting import split_by_class
from bayescascade.methods.adaptive.alternating import GroupNorm, alternated
from bayescascade.methods.adaptive.choosing import (
    AdaptiveFit,
    Judges,
    best_sets,
    best_within,
    judged,
)
from bayescascade.methods.adaptive.full import (
    FullModel,
    OfAny,
    OfBudgeted,
    OfForest,
    budgeted_from_record,
    fit_any,
    fit_budgeted,
    losses_of,
)
from bayescascade.methods.adaptive.gated import Gated, GatedWalk, LinearScores, Scaling
from bayescascade.methods.adaptive.objective import Numbers, Problem, State
from bayescascade.methods.adaptive.oracle import GateOracle, oracle_of
from bayescascade.methods.adaptive.parameters import AdaptiveParameters
from bayescascade.methods.adaptive.posterior import AdaptivePosterior
from bayescascade.methods.adaptive.reports import HOW_TO_READ, score_table, way_texts
from bayescascade.methods.adaptive.selecting import SHARES, Choosing, Fit
from bayescascade.model.reporting import OF_ROWS
from bayescascade.report.numbers import share_text
from bayescascade.report.page import BLANK, Page, Pieces, count_of

_HELD_OUT = 0.25  # of the rows, where none are given to choose by
_TRADEOFFS = tuple(np.geomspace(0.3, 1e-4, 10).tolist())  # of a feature of mean cost, nats a row
_LEVELS = CellPolicy(missing="level")


@dataclass(eq=False, repr=False)
class AdaptiveClassifier(TriedWithinBudgets):
    """Keeps easy rows for a linear classifier of few features, and sends others to a full model.

    Parameters
    ----------
    estimator : classifier or None
        The full model: a classifier of scikit-learn, fitted or not, or a budgeted classifier of
        this package, such as another one of this class. It sees the columns as they are: put a
        scaler before an SVM in a pipeline. None: a forest of `n_trees` trees.
    costs : FeatureCosts, mapping, sequence of float or None
        What features cost; None: 1 each. See `FeatureCosts`.

    Attributes
    ----------
    gate_, local_ : LinearScores
        `coef_` and `intercept_` in the columns' units; the gate's score is the log odds that a row
        should be sent.
    cut_ : float
        Rows are sent whose gate's score is above it; infinite where it is not asked.
    full_ : estimator or Forest
        What rows are sent to. A forest is read by its paths, as is a budgeted classifier; any other
        reads every feature.
    sent_share_ : float
        Share of the validation rows that are sent.
    is_interrupted_ : bool
        Whether Ctrl-C ended the fit, which then kept what had been tried.

    The others are those of every `BudgetedClassifier`.

    Notes
    -----
    Nan (2018), chapter 5, Adapt-Lin, corrected as in the errata of the documentation;
    `methods.adaptive.objective` has the formulas. All rows read the gate's features, rows that are
    kept those of the local model, rows that are sent those of the full model. Losses of the full
    model in training are of trees out of their bags, or of folds that it was not fitted on.

    Rows of `y_val`, else a held-out quarter, choose the set of features, `full_share` and the cut
    together: the least error within the budget. That is a heuristic; how far from the best gate it
    is, `oracle` says. As printed are ``selection="group_lasso"``, ``cut=0.0``, ``start="zero"`` and
    ``ridge=0.0``. ``distance="log_odds"`` is Adapt-LstSq (A.1), whose shares are
    found by nested searches for roots.

    References
    ----------
    Nan, F. and Saligrama, V. (2017). Adaptive classification for prediction under a budget. NIPS.

    Examples
    --------
    >>> import numpy as np
    >>> from bayescascade import AdaptiveClassifier
    >>> X = np.random.default_rng(0).normal(size=(600, 4))
    >>> y = np.where(np.abs(X[:, 0]) > 0.5, X[:, 0] > 0, X[:, 1] * X[:, 2] > 0)
    >>> model = AdaptiveClassifier(budget=2.5, random_state=0).fit(X, y)
    >>> bool(model.validation_cost_ < 2.6), model.feature_shares_[0]
    (True, np.float64(1.0))
    """

    model_name: ClassVar[str] = "AdaptiveClassifier"
    title: ClassVar[str] = "gate and full model"
    purpose: ClassVar[str] = (
        "Which class a row is of: a gate keeps it for a cheap classifier, or sends it to an "
        "expensive one."
    )
    declares = AdaptiveParameters

    _not_saved: ClassVar[tuple[str, ...]] = (*BudgetedClassifier._not_saved, "estimator")

    estimator: Any = AdaptiveParameters.estimator.default
    _: KW_ONLY
    costs: Costs = AdaptiveParameters.costs.default
    budget: float | None = AdaptiveParameters.budget.default
    learner: str = AdaptiveParameters.learner.default
    distance: str = AdaptiveParameters.distance.default
    selection: str = AdaptiveParameters.selection.default
    tradeoff: float | None = AdaptiveParameters.tradeoff.default
    full_share: float | None = AdaptiveParameters.full_share.default
    cut: float | None = AdaptiveParameters.cut.default
    ridge: float = AdaptiveParameters.ridge.default
    start: str = AdaptiveParameters.start.default
    losses: str = AdaptiveParameters.losses.default
    n_trees: int = AdaptiveParameters.n_trees.default
    temperature: float = AdaptiveParameters.temperature.default
    missing: str = AdaptiveParameters.missing.default
    unknown: str = AdaptiveParameters.unknown.default
    time_limit: float | None = AdaptiveParameters.time_limit.default
    random_state: Any = AdaptiveParameters.random_state.default

    sent_share_: float = field(init=False)
    is_interrupted_: bool = field(init=False)

    _cells: CellPolicy = field(init=False)
    _model: Gated = field(init=False)
    _fit: AdaptiveFit | None = field(init=False)
    _trial: "_Trial" = field(init=False)

    # -- fitting -----------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any,
        X_val: Any = None,
        y_val: Any = None,
        *,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit the full model, and gates and local models beside it; keep the best in the budget.

        Parameters
        ----------
        X : DataFrame or other table, paths, mapping of columns, array or list of rows
            Tables of polars, Arrow, DuckDB, Dask or narwhals, too; paths or URLs of CSV, Parquet or
            Arrow files, whose column `y` names.
            Numbers, truth values, text and categories; NaN or None is missing.
        y : (n_rows,) array, or str of files
            Labels, of at least two classes.
        X_val : as X, optional
            Rows that `validation_cost_` and the shares are measured on; by default those of `X`.
        y_val : (n_validation_rows,) array, optional
            Their labels, which choose; without them, a quarter of the rows does, by
            `random_state`, and what is chosen is fitted to all rows.
        sample_weight : (n_rows,) array of float >= 0, optional
            Weights of the rows, 1 each by default.

        Raises
        ------
        ParameterError
            If a parameter is out of its range, or `estimator` is no classifier with probabilities
            or decision values, or was fitted on other columns or classes.
        DataError
            If rows, labels or weights cannot be used.
        KeyboardInterrupt
            If Ctrl-C comes before one has been tried; later, it leaves those that have.
        """
        self._trial = self._try([self.budget], X, y, sample_weight, X_val, y_val)
        self.__dict__.update(self._chosen(self.budget).__dict__)
        return self

    def _try(
        self, budgets: Sequence[float | None], X: Any, y: Any, sample_weight: Any = None,
        X_val: Any = None, y_val: Any = None,
    ) -> "_Trial":  # fmt: skip
        """Return what is tried, the same for all budgets, as the rows that judge found it."""
        del budgets
        self.declares.check(self)
        if self.distance == "log_odds":
            for name, refused in (("selection", "group_lasso"), ("full_share", 0.0)):
                if getattr(self, name) == refused:
                    raise ParameterError(
                        f'{name} must not be {refused!r} with distance "log_odds", got {refused!r}'
                    )
        watch = Watch(self.time_limit)
        generator = np.random.default_rng(self.random_state)
        given = GivenRows.labeled(X, y, sample_weight)
        training, own = self._read(given, GivenRows.validating(X_val, y_val))
        in_sample = self.losses == "in_sample"
        counted = _counted(training)
        if own is None:
            estimator = self.estimator
            if estimator is None:
                estimator = RandomForestClassifier(
                    self.n_trees, random_state=int(generator.integers(2**31))
                )
            full = fit_any(estimator, counted, self._encoder.source, in_sample)
        else:
            places = np.flatnonzero(training.weights > 0)
            rows, labels = _plain(given), training.classes[counted.labels]
            full = fit_budgeted(own, counted, _safe_indexing(rows, places), labels, in_sample)
        scaling = Scaling.of(counted.rows, counted.weights)
        problem = Problem(
            scaling.scaled(counted.rows), counted.labels, counted.n_classes, counted.weights,
            losses_of(full.chances, counted.labels), 1.0, self.ridge, self.distance,
        )  # fmt: skip
        judges = self._judges(counted, full.model, full.chances, generator)
        trial = _Trial([], counted, problem, scaling, full.model, judges, watch)
        self._try_each(trial)
        return trial

    def _read(
        self, given: GivenRows, validation: GivenRows | None
    ) -> tuple[TrainingRows, BudgetedClassifier | None]:
        """Return the rows, and the full model if it is a budgeted one, whose columns these are."""
        own: BudgetedClassifier | None = None
        if isinstance(self.estimator, BudgetedClassifier):
            own = self.estimator
            if not own.__sklearn_is_fitted__():
                own = clone(own).fit(_plain(given), given.labels)
            self._cells, encoder = own.cells, own._encoder
            known, columns = (
                list(encoder.columns),
                MatrixEncoder.learn(given, encoder.policy).columns,
            )
            if known != list(columns):
                raise ParameterError(
                    f"estimator must be fitted on the columns {list(columns)}, got {known}"
                )
        else:
            self._cells = _LEVELS
            encoder = MatrixEncoder.learn(given, self._policy())
        self._set_columns(encoder, FeatureCosts.of(self.costs, encoder.columns))
        training = TrainingRows.read(self._reader, given, validation, owner=type(self).__name__)
        self.classes_, self.n_rows_ = training.classes, len(training.rows)
        return training, own

    def _judges(
        self, training: TrainingRows, full: FullModel, fair: Numbers, generator: Any
    ) -> Judges:
        """Return the rows that choose."""
        learns = np.ones(len(training.rows), np.bool_)
        if training.validation_labels is not None:
            rows, labels = training.validation_rows, training.validation_labels
            words, chances = "validation rows", full.probabilities(training.validation_rows)
        elif self.budget is None and None not in (self.tradeoff, self.full_share, self.cut):
            rows, labels, words, chances = training.rows, training.labels, "rows", fair
        else:
            parts = split_by_class(training.labels, [1 - _HELD_OUT, _HELD_OUT], generator)
            learns = parts == 0
            if np.unique(training.labels[learns]).size < training.n_classes or learns.all():
                learns = np.ones(len(training.rows), np.bool_)
            chosen = ~learns if not learns.all() else learns
            rows, labels, chances = training.rows[chosen], training.labels[chosen], fair[chosen]
            words = "held-out rows"
        wrong = chances.argmax(axis=1) != labels
        return Judges(rows, labels, words, learns, wrong, full.used(rows))

    def _try_each(self, trial: "_Trial") -> None:
        """Try what is asked for, until time is up."""
        self.is_interrupted_ = False
        learns, whole = trial.judges.learns, trial.problem
        problem = replace(
            whole, rows=whole.rows[learns], labels=whole.labels[learns],
            weights=whole.weights[learns], full_losses=whole.full_losses[learns],
        )  # fmt: skip
        shares = SHARES if self.full_share is None else (float(self.full_share),)
        choosing = Choosing(self._matrix_items, self.start)
        is_searched = self.selection == "search"
        if is_searched:
            found = choosing.searched(problem, shares)
        else:
            mean = float(self.items_.costs.mean()) if self.items_.n_items else 1.0
            tradeoffs: Sequence[float] = [one / mean for one in _TRADEOFFS]
            if self.tradeoff is not None:
                tradeoffs = [float(self.tradeoff)]
            found = choosing.grouped(problem, shares, tradeoffs)
        fits: list[Fit] = []
        try:
            with trial.watch.watching(), single_threaded():  # products of few columns
                for fit in found:
                    fits.append(fit)
                    if trial.watch.is_over():
                        break
        except OutOfTime:
            pass  # what has been tried is kept, or nothing is bought
        except KeyboardInterrupt:
            if not fits:
                raise
            self.is_interrupted_ = True
        for fit in best_sets(fits, self.tradeoff if is_searched else None):
            model = self._gated(trial, fit.state)
            trial.fits.extend(judged(fit, model, trial.judges, self.items_, self.cut))

    def _gated(self, trial: "_Trial", state: State) -> Gated:
        counts = np.bincount(
            trial.training.labels, trial.training.weights, trial.training.n_classes
        )
        source = np.asarray(self._encoder.source, np.int64)
        return Gated.of(state, trial.scaling, trial.full, source, counts / counts.sum())

    def _chosen(self, budget: float | None) -> Self:
        """Return the classifier of the best fit within a budget, or of what reads nothing."""
        trial = self._trial
        model = copy.copy(self)
        model.budget = budget
        price = 0.0 if self.tradeoff is None else self.tradeoff
        best = model._fit = best_within(trial.fits, budget, price)
        if best is None:
            nobody = np.zeros((trial.problem.rows.shape[1], 1 + trial.problem.n_outputs))
            model._model = self._gated(trial, State(nobody[:, 0], nobody[:, 1:])).nothing()
        else:
            if not trial.judges.learns.all():
                best = model._fit = replace(best, fit=self._refitted(best.fit))
            model._model = self._gated(trial, best.fit.state).cut_at(best.cut)
        rows = trial.training.validation_rows
        model._measure(rows, trial.watch)
        model.sent_share_ = float(model._model.sent(rows).mean())
        if best is not None and budget is not None and not model._reads_nothing:
            judges = trial.judges
            at = self._gated(trial, best.fit.state).cut_at(best.cut)
            said = at.local_chances(judges.rows).argmax(axis=1) != judges.labels
            wrong = np.where(at.sent(judges.rows), judges.full_wrong, said)
            nothing = judges.labels != trial.training.commonest
            model._settle(Choice.of(judges.words, wrong, nothing, trial.training))
        return model

    def _refitted(self, fit: Fit) -> Fit:
        """Return a fit of all rows, from where it was."""
        trial, penalty = self._trial, None
        if self.selection == "group_lasso":
            places = np.arange(self._matrix_items.n_columns)
            norms = CostNorms.of(self._matrix_items, places, n_free=1)
            penalty = GroupNorm(norms, fit.tradeoff)
        limited = replace(trial.problem, full_share=fit.full_share)
        state, value = alternated(limited, fit.state, fit.columns, penalty)
        return replace(fit, state=state, objective=value)

    # -- hooks of budgeted classifiers -------------------------------------------------------------

    @property
    def cells(self) -> CellPolicy:  # type: ignore[override] # of the full model, if it has its own
        """What it takes for a cell."""
        cells: CellPolicy = self.__dict__.get("_cells", _LEVELS)
        return cells

    def _features_read(self, rows: Matrix) -> NDArray[np.bool_]:
        return self._model.used(rows)

    def _walk(self, encoder: MatrixEncoder) -> Callable[[], Walk]:
        return partial(GatedWalk, self._model, encoder)

    @property
    def _reads_nothing(self) -> bool:
        return self._model.reads_nothing

    def _cut_down(self) -> None:
        self._model = self._model.nothing()
        self.sent_share_, self._fit = 0.0, None

    # -- what was learned --------------------------------------------------------------------------

    @property
    def gate_(self) -> LinearScores:
        """The gate, in the columns' units."""
        check_is_fitted(self)
        return self._model.gate

    @property
    def local_(self) -> LinearScores:
        """The local model: of two classes the log odds of the second, else a score for each."""
        check_is_fitted(self)
        return self._model.local

    @property
    def cut_(self) -> float:
        """Rows are sent whose gate's score is above it."""
        check_is_fitted(self)
        return self._model.cut

    @property
    def full_(self) -> Any:  # an estimator, or a forest
        """What rows are sent to."""
        check_is_fitted(self)
        full = self._model.full
        if isinstance(full, OfBudgeted):
            return full.model
        assert isinstance(full, OfForest | OfAny), "there are no others"
        return full.forest if isinstance(full, OfForest) else full.estimator

    @property
    def commonest_class_(self) -> Any:  # a label
        """The commonest class of the rows that it was learned from."""
        check_is_fitted(self)
        return self.classes_.tolist()[int(self._model.shares.argmax())]

    @property
    def path_(self) -> tuple[AdaptiveFit, ...]:
        """What was tried, with the cuts that are worth a look; not in saved models."""
        check_is_fitted(self, "_trial", msg="%(name)s must be fitted, and not read from a file")
        return tuple(self._trial.fits)

    @property
    def posterior_(self) -> AdaptivePosterior:
        """The Gibbs posterior over gates and local models of the set that was chosen.

        Its columns are the set's, of variance 1. Not in saved models.
        """
        check_is_fitted(self)
        if "_trial" not in self.__dict__:
            raise AttributeError("posterior_ is not in a model read from a file: no data is")
        problem, columns = self._trial.problem, self._set_columns_
        share = 1.0 if self._fit is None else self._fit.fit.full_share
        return AdaptivePosterior(
            problem.rows[:, :-1][:, columns], problem.labels, problem.full_losses,
            problem.n_classes, full_share=share, weights=problem.weights, ridge=self.ridge,
            temperature=self.temperature, distance=self.distance,
        )  # fmt: skip

    def state(self) -> Numbers:
        """Return what was learned, as a state of `posterior_`."""
        posterior = self.posterior_
        columns = np.append(self._set_columns_, True)
        if self._fit is None:
            return np.zeros(int(columns.sum()) * (1 + posterior.problem.n_outputs))
        state = self._fit.fit.state
        return posterior.joined(state.gate[columns], state.local[columns])

    @property
    def _set_columns_(self) -> NDArray[np.bool_]:
        """The columns of the set that was chosen, (p,)."""
        if self._fit is None:
            return np.zeros(self._encoder.source.size, np.bool_)
        return self._fit.fit.columns[:-1]

    def oracle(self, X: Any, y: Any) -> GateOracle:
        """Return what the best gate could do between the local and the full model, at each cost.

        It would have to know which of them errs. What the gate errs more at its cost is lost to the
        gate; what both models err together, to them.

        Parameters
        ----------
        X : as `predict` takes it
        y : (n_rows,) array
            Labels.

        Raises
        ------
        ParameterError, DataError
            As `predict`.
        """
        rows, model = self._matrix(X), self._model
        labels = np.asarray(y)
        if labels.shape != (len(rows),):
            raise ParameterError(
                f"y must have a label per row of X, {len(rows)}, got shape {labels.shape}"
            )
        items = self.items_
        kept = np.repeat(model.kept_features[np.newaxis], len(rows), axis=0)
        sent = model.full.used(rows) | model.gate_features
        return oracle_of(
            self.classes_[model.local_chances(rows).argmax(axis=1)] != labels,
            self.classes_[model.full.probabilities(rows).argmax(axis=1)] != labels,
            items.total(items.paid(kept)), items.total(items.paid(sent)), model.sent(rows),
        )  # fmt: skip

    def _probabilities(self, rows: Matrix) -> NDArray[np.float64]:
        return self._model.probabilities(rows)

    @property
    def _means(self) -> NDArray[np.float64] | None:
        return self._model.means if "_model" in self.__dict__ else None

    def _reasons(self, X: Any) -> list[str]:
        return way_texts(self._model, self._matrix(X), self.feature_texts)

    # -- what a user sees --------------------------------------------------------------------------

    def _heading(self) -> list[str]:
        return [self._model.full.text, count_of(len(self.classes_), "class", "classes")]

    def _size_facts(self) -> list[str]:
        return [f"{share_text(self.sent_share_)} of the rows sent"]

    def _how_made(self) -> Page:
        told = [f"sends {share_text(self.sent_share_)} of the rows to {self._model.full.text}"]
        if np.isfinite(self.cut_):
            told.append(f"cut {self.cut_:.3g}")
        held = "a heuristic: `oracle` has what a better gate could do"
        return (*super()._how_made(), Pieces(told), Pieces([held]))

    def _page(self) -> Page:
        table = score_table(self._model, self.column_texts_, self.classes_.tolist())
        return (*table, BLANK, *super()._page()) if table else super()._page()

    def _how_to_read(self) -> Sequence[tuple[str, str]]:
        return HOW_TO_READ

    def _cannot_tell(self) -> Sequence[str]:
        return (CANNOT_TELL[0], *OF_ROWS)

    @property
    def few_rows_text(self) -> str:
        """What chooses where there are few rows, and none are given for that."""
        return "a quarter of the rows, held out, chooses"

    # -- files -------------------------------------------------------------------------------------

    def _own_record(self) -> dict[str, Any]:
        return {"sent_share": self.sent_share_, "gated": self._model.to_record()}

    def _restore(self, record: Mapping[str, Any]) -> None:
        full = record["gated"]["full"]
        self._cells = budgeted_from_record(full).cells if "model" in full else _LEVELS
        super()._restore(record)

    def _read_own(self, record: Mapping[str, Any]) -> None:
        self.sent_share_ = check_probability("sent_share", record["sent_share"])
        self.is_interrupted_, self._fit = False, None
        source = np.asarray(self._encoder.source, np.int64)
        self._model = Gated.from_record(record["gated"], source, len(self.classes_))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")


class _Trial(NamedTuple):
    """What `fit` tried, and on what."""

    fits: list[AdaptiveFit]
    training: TrainingRows  # those that weigh some
    problem: Problem
    scaling: Scaling
    full: FullModel
    judges: Judges
    watch: Watch


def _plain(given: GivenRows) -> Any:
    """Return rows as a table, or as an array if their columns have no names."""
    frame = given.frame()
    return frame if given.is_named else frame.to_numpy()


def _counted(training: TrainingRows) -> TrainingRows:
    """Return the rows that weigh some."""
    kept = training.weights > 0
    if kept.all():
        return training
    validation = training.validation_rows
    if validation is training.rows:
        validation = training.rows[kept]
    return TrainingRows(
        training.rows[kept], training.classes, training.labels[kept], training.weights[kept],
        validation, training.validation_labels,
    )  # fmt: skip
