"""BudgetPruneClassifier: the best pruning of a forest by its errors and its costs of features.

Nan, Wang and Saligrama (2016); Nan (2018), chapter 4. `program` has the objective, `solvers`
minimize it, also within a budget.

*Departures.* The thesis prunes in-bag errors only; errors may also be measured out of bag or on
validation rows. On the forests tried here (covertype, 40 trees), in-bag errors gave the better
curves of cost and test error, because with out-of-bag errors the deep splits, which only a whole
forest needs, appear useless for each single tree. A budget may be given instead of a tradeoff.
Trees that are cut at the root do not take part in predictions: see `Forest.without_bare_roots`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

import samplers
from bayescascade.base.arrays import Flags, Integers
from bayescascade.base.errors import ParameterError
from bayescascade.base.store import Saved, Within
from bayescascade.base.validation import check_real
from bayescascade.base.watch import OutOfTime, Watch, watch_in_use
from bayescascade.costs.limits import check_amounts
from bayescascade.data.labels import TrainingRows
from bayescascade.methods.budget.forests.bags import Fold
from bayescascade.methods.budget.forests.base import ForestClassifier
from bayescascade.methods.budget.forests.forest import Forest
from bayescascade.methods.budget.pruning.given_forest import (
    GivenForest,
    counts_by,
    features_begun_with,
    plain_forest,
    read_features_begun_with,
)
from bayescascade.methods.budget.pruning.near_optimal import NearOptimalPrunings, near_optimal
from bayescascade.methods.budget.pruning.parameters import BudgetPruneParameters
from bayescascade.methods.budget.pruning.path import (
    PruningPath,
    choose_pruning,
    gap_text,
    pruned_along,
    wrong_elsewhere,
)
from bayescascade.methods.budget.pruning.program import (
    Pruning,
    PruningProgram,
    is_proved,
    relative_gap,
)
from bayescascade.methods.budget.pruning.solvers import FlowSolver, Frontier
from bayescascade.model.search import Search, Seed

_OF_FOREST = 0.4  # share of the time for a forest that is fitted here
_LEAST = 1.0  # minimum seconds of pruning, for any time limit


@dataclass(eq=False, repr=False)
class BudgetPruneClassifier(ForestClassifier):
    """Forest whose trees are pruned together, by errors and by costs of features.

    The best pruning minimizes ``error + tradeoff x cost``. The error is the mean error rate of the
    single trees, and the cost is the mean cost of a validation row. A row pays once for a feature,
    even if several trees read it, so forests gain most if their trees share features. If each split
    was chosen among a few random columns, a row reads nearly all features in some tree. Then the
    best pruning is nearly the whole forest or nothing: grow such forests with more columns per
    split (`max_features`) or fewer trees.

    Parameters
    ----------
    forest : estimator or None
        Forest or tree of scikit-learn, or a budgeted forest. A fitted forest is used as it is (put
        it in a `FrozenEstimator` if the classifier is cloned). Otherwise a clone is fitted. None:
        `RandomForestClassifier(40, criterion="entropy", max_features=None)`, as in the thesis.
    tradeoff : float >= 0 or None
        Error rate that a unit of cost is worth. At 0, a split is removed only if that reduces the
        error. None: the tradeoff is picked on held-out rows: the validation rows if there is
        `y_val`, otherwise the out-of-bag rows. We try 1x, 2x, 4x ... and take the cheapest pruning
        within one standard error of the best. The rows that pick the tradeoff must be neither the
        rows of `errors` nor rows by which the forest was chosen (as a `BudgetedForestClassifier`
        with several `alpha` is by `y_val`).
    budget : float >= 0 or None
        Limit on the mean cost of a validation row, instead of a tradeoff. Then the tradeoff is the
        smallest one whose best pruning is within the budget. The rest of the budget is spent on
        further splits of the forest; see `bayescascade.methods.budget.pruning.solvers`.
    errors : {"in_bag", "out_of_bag", "validation"}
        Rows on which errors are measured: those on which each tree was grown ("in_bag"), the other
        training rows ("out_of_bag", for a forest with bootstrap), or the validation rows.
    split_cost : float >= 0
        Cost of the computation when a row passes a split. The `budget` is for features and
        computation together.
    n_jobs : int or None
        Number of jobs for fitting the forest, unless the forest sets its own.
    random_state : int, SeedSequence, Generator or None
        Seed for fitting the forest, unless the forest sets its own.
    time_limit : float > 0 or None
        Seconds, from its beginning, after which `fit` stops with the best pruning so far. The
        result may then depend on the machine. The forest then has fewer trees, or less deep ones.
        Compiling at the first fit is not interrupted, and pruning gets at least one second.

    Attributes
    ----------
    tradeoff_ : float
        `tradeoff`, or the tradeoff that was chosen on held-out rows or by the budget.
    objective_ : float
        ``error + tradeoff_ x cost`` of the pruning.
    lower_bound_ : float
        No pruning has a lower objective.
    duality_gap_ : float >= 0
        Difference between objective and lower bound, divided by the objective. 0 proves that the
        pruning is optimal at this tradeoff, up to a proved bound on rounding that is too small to
        be seen in prints.
    error_gap_ : float >= 0
        Proved bound on how much lower the mean error rate of the trees of another pruning may be
        that is within the budget or, without a budget, that costs no more. 0 means exact, as above.
    tree_error_ : float
        Mean error rate of the single trees on the rows of `errors`, which is minimized. Not in
        loaded models.
    is_interrupted_ : bool
        Whether Ctrl-C ended the search. Then the pruning is the best so far.
    kept_ : (n_splits,) bool
        The splits of `program_` that are kept. Not in loaded models.

    forest_ : Forest
        The pruned forest.
    estimator_ : estimator
        The forest before pruning; not in saved models. For the same columns, even of text, it can
        be used as `forest` again.
    program_ : PruningProgram
        Gain and cost of each split; not in saved models. `whole_forest_` has the trees before
        pruning.

    All other attributes are those of `BudgetedClassifier`.

    References
    ----------
    Nan, F., Wang, J. and Saligrama, V. (2016). Pruning random forests for prediction on a budget.
    NeurIPS.

    Nan, F. (2018). Learning to predict under a budget. PhD thesis, Boston University. Chapter 4.

    Examples
    --------
    >>> import numpy as np
    >>> from bayescascade import BudgetPruneClassifier
    >>> X = np.random.default_rng(0).normal(size=(500, 20))
    >>> y = X[:, 3] + X[:, 7] > 0
    >>> model = BudgetPruneClassifier(tradeoff=0.05, random_state=0).fit(X[:300], y[:300], X[300:])
    >>> np.flatnonzero(model.feature_shares_).tolist()
    [3, 7]
    >>> model.duality_gap_ < 1e-9
    True
    """

    model_name: ClassVar[str] = "BudgetPruneClassifier"
    title: ClassVar[str] = "budget-pruned forest"

    declares = BudgetPruneParameters

    forest: Any = BudgetPruneParameters.forest.default  # several types of estimators
    _: KW_ONLY
    n_jobs: int | None = BudgetPruneParameters.n_jobs.default
    tradeoff: float | None = BudgetPruneParameters.tradeoff.default
    errors: str = BudgetPruneParameters.errors.default
    split_cost: float = BudgetPruneParameters.split_cost.default

    tradeoff_: Annotated[float, Within(0), Saved("tradeoff")] = field(init=False)
    objective_: Annotated[float, Saved("objective")] = field(init=False)
    is_interrupted_: Annotated[bool, Saved("is_interrupted")] = field(init=False, default=False)
    _first_read: Integers = field(init=False)  # if read from a file

    # -- fitting -----------------------------------------------------------------------------------

    @property
    def may_know_validation_labels(self) -> bool:
        """Whether `fit` may have used the labels of validation rows to choose the pruning."""
        return True

    def fit(self, X: Any, y: Any, X_val: Any = None, y_val: Any = None) -> Self:
        """Fit the forest, if it is not fitted yet, and prune it.

        Parameters
        ----------
        X : DataFrame, (n_rows, n_features) array or list of rows
            Rows to which the forest is fitted. Cells are numbers, truth values, text or categories;
            NaN or None is missing. A fitted forest needs the rows to which it was fitted, in the
            same order, because they give the columns and the out-of-bag errors.
        y : (n_rows,) array
            Labels, of at least two classes.
        X_val : as X, optional
            Rows on which costs are measured. Without them, costs are measured on `X`, where they
            are a little smaller than on new rows.
        y_val : (n_validation_rows,) array, optional
            Labels of the validation rows, which a fitted forest must not have seen.
            `errors="validation"` needs them. They choose the tradeoff if neither `tradeoff` nor
            `budget` is given, unless they are already used otherwise. With a `budget`, they choose
            how to spend the rest of it.

        Raises
        ------
        ParameterError
            If a parameter is out of its range, if the forest cannot be pruned or was fitted to
            other columns, or if the rows for `errors` are missing. Also, if neither `tradeoff` nor
            `budget` is given and there are no held-out rows to choose the tradeoff: no `y_val`, and
            no out-of-bag rows (as for a `DecisionTreeClassifier`).
        DataError
            If the rows or labels cannot be used, or `y` has a class that a fitted forest does not
            know.
        """
        with self._begun(X, y, X_val, y_val) as training:
            found = self._tuned(training) if self.budget is None else self._within(self.budget)
            self._take(found)
            self._compare(found)
        return self

    @contextmanager
    def _begun(self, X: Any, y: Any, X_val: Any, y_val: Any) -> Iterator[TrainingRows]:
        """Read the forest, and let the block prune it within the rest of the time."""
        watch = Watch(self.time_limit)
        self.declares.check(self)
        with watch.watching():
            with watch.part(_OF_FOREST, is_final=True):
                training = self._read_forest(X, y, X_val, y_val)
            watch.grant(_LEAST)
            self._prepare(training)
            yield training

    def _compare(self, found: Any) -> None:
        """Buy nothing if the result for a budget is not better."""
        budget = self.budget
        is_whole = not getattr(found, "interrupted", False)
        if budget is None or not (is_whole and self._is_compared and self.forest_.n_splits):
            return
        training, left = self._given.training, self._left(found)
        outside = self._given.outside()
        if outside is not None:
            outside = outside[:, : left.n_trees]
        elif training.validation_labels is not None:
            left = left.without_bare_roots()

        def learn(other: Self, part: TrainingRows) -> Forest | None:  # noqa: ARG001
            found = other._within(budget)
            if getattr(found, "interrupted", False):
                raise OutOfTime if watch_in_use().is_up else KeyboardInterrupt
            return other._left(found).without_bare_roots()

        try:
            self._settle(
                self._choice(training, left, learn if self._given.may_grow else None, outside)
            )
        except OutOfTime:
            self.stopped_after_ = watch_in_use().seconds

    def _read_forest(self, X: Any, y: Any, X_val: Any, y_val: Any) -> TrainingRows:
        """Return the rows, with the classes of the forest; fit the forest if needed."""
        forest = plain_forest(self.forest)
        training = self._read_training(X, y, X_val=X_val, y_val=y_val)
        self._validation_rows = training.validation_rows
        self._given = GivenForest.of(self, forest, training, (X, y, X_val, y_val))
        self.estimator_, self.whole_forest_ = self._given.estimator, self._given.trees
        self.classes_ = self._given.training.classes
        return self._given.training

    def _folds(self, training: TrainingRows) -> Iterable[Fold[Self]]:
        """Return the folds, with forests that are grown once for all budgets."""
        return self._given.folds(super()._folds(training))

    def _first_features(self) -> tuple[str, Integers]:
        """Return the first features of the trees."""
        return "cheapest first feature of its trees", self._begun_with

    @property
    def _begun_with(self) -> Integers:
        """The first features of the trees of the whole forest."""
        if not hasattr(self, "whole_forest_"):
            return self._first_read
        return features_begun_with(self.whole_forest_, self._encoder)

    def _pruned(self, kept: Flags) -> Forest:
        """Return the remaining trees if some splits are kept, (n_splits,) bool."""
        return self._cut(kept).without_bare_roots()

    def _cut(self, kept: Flags) -> Forest:
        """Return all trees, with and without splits, if some splits are kept, (n_splits,) bool."""
        is_split = np.isin(np.arange(self.whole_forest_.n_nodes), self.program_.node[kept])
        return self.whole_forest_.pruned(is_split)

    def _check_unpruned(self) -> None:
        """Raise NotFittedError without a forest to prune: before `fit`, or from a file."""
        message = (
            "%(name)s must be fitted, and not read from a file, which has only the pruned forest"
        )
        check_is_fitted(self, "whole_forest_", msg=message)

    def _prepare(self, training: TrainingRows) -> None:
        self.program_ = PruningProgram.of(
            self.whole_forest_,
            self._matrix_items,
            training.validation_rows,
            split_cost=self.split_cost,
            counts=counts_by(self.errors, self.estimator_, self.whole_forest_, training),
        )
        self._validation_labels = training.validation_labels

    def _tuned(self, training: TrainingRows) -> Pruning:
        if self.tradeoff is not None:
            return FlowSolver(self.program_).solve(self.tradeoff)
        wrong = wrong_elsewhere(self, training, self.errors)
        return choose_pruning(self.program_, FlowSolver(self.program_), wrong)

    def _within(self, budget: float) -> Pruning:
        return self._frontier().within(budget)

    @property
    def duality_gap_(self) -> float:
        """Proved bound on how much lower the objective could be, relative to it."""
        return relative_gap(self.objective_, self.lower_bound_, self._rounding)

    @property
    def error_gap_(self) -> float:
        """Proved bound on how much lower the error could be at this cost."""
        left = 0.0 if self.budget is None else max(0.0, self.budget - self.validation_cost_)
        gap = max(0.0, self.objective_ - self.lower_bound_) + self.tradeoff_ * left
        return 0.0 if is_proved(gap, self._rounding) else gap

    @property
    def tree_error_(self) -> float:
        """Mean error rate of the single trees, which is minimized together with the cost."""
        return self.program_.error(self.kept_)

    @property
    def certificate_texts(self) -> list[str]:
        """The tradeoff, the objective, and bounds on how much lower it and the error could be."""
        if self.budget is not None:
            words = "tree error at most {:.2g} points above the best within the budget"
            texts = [f"budget {self.budget:.12g}", gap_text(self.error_gap_, words)]
            return [*super().certificate_texts, *texts]
        how = "" if self.tradeoff is not None else ", chosen on held-out rows"
        return [
            *super().certificate_texts,
            f"tradeoff {self.tradeoff_:.3g}{how}",
            f"objective {self.objective_:.3g}",
            gap_text(self.duality_gap_, "gap {:.2g} %"),
        ]

    def path(
        self, tradeoffs: Sequence[float] | None = None, *, budgets: Sequence[float] | None = None
    ) -> PruningPath[Self]:
        """Return the prunings for several tradeoffs or budgets; each search starts from the last.

        Parameters
        ----------
        tradeoffs : sequence, array or Series of float >= 0, optional
        budgets : the same, optional
            Instead of tradeoffs.

        Returns
        -------
        PruningPath
            A fitted classifier for each, in the given order. After Ctrl-C, only the finished ones.

        Raises
        ------
        ParameterError
            If not exactly one of the two is given, or if it is empty or out of its range.
        NotFittedError
            Before `fit`, and if the model was read from a file.
        KeyboardInterrupt
            If Ctrl-C comes before the first is finished.
        """
        self._check_unpruned()
        if (tradeoffs is None) == (budgets is None):
            raise ParameterError(
                "either tradeoffs or budgets must be given, got "
                + ("neither" if budgets is None else "both")
            )
        if budgets is not None:
            wanted = check_amounts("budgets", budgets)
            return pruned_along(self, "budget", wanted, self._frontier().within)
        wanted = check_amounts("tradeoffs", tradeoffs)
        return pruned_along(self, "tradeoff", wanted, FlowSolver(self.program_).solve)

    def fit_budgets(
        self, budgets: Sequence[float], X: Any, y: Any, X_val: Any = None, y_val: Any = None
    ) -> Iterator[tuple[float, Self]]:
        """Yield, for each budget, a pruning of one forest; see `BudgetedClassifier.fit_budgets`."""
        wanted = check_amounts("budgets", budgets)
        model: Any = clone(self).set_params(budget=wanted[0])
        with model._begun(X, y, X_val, y_val):  # the time limit is for all budgets
            path = model.path(budgets=wanted)
        yield from zip(budgets, path, strict=False)
        if path.interrupted:
            raise KeyboardInterrupt

    def near_optimal(
        self,
        tolerance: float = 0.01,
        *,
        n_steps: int | None = None,
        n_draws: int = 500,
        n_chains: int = 4,
        n_jobs: int | None = -1,
        random_state: Seed = None,
        checkpoint: str | Path | None = None,
        resume: bool = False,
        progress: Callable[[samplers.Progress], object] | None = None,
        time_limit: float | None = None,
        until: str = "agreed",
    ) -> NearOptimalPrunings:
        """Sample prunings that are nearly as good as the best, and return which features they need.

        Parameters
        ----------
        tolerance : float > 0
            Relative: a pruning is nearly as good if its objective is at most ``1 + tolerance``
            times the best.
        n_steps : int >= 1, optional
            Steps per chain. By default 300,000 plus 200 for each split, up to 2,000,000. This takes
            seconds, but may be too few for many thousand splits; then the print warns. The cost
            mixes slowest, because a feature is saved only if all its splits are removed.
        n_draws, n_chains : int >= 1
            Number of draws that are kept per chain, and number of chains.
        n_jobs, random_state, checkpoint, resume, progress, time_limit, until
            As in `explore`. The time limit is for the chains.

        Raises
        ------
        ParameterError
            If a parameter is out of its range, or the best objective is 0, so that a relative
            tolerance allows nothing.
        NotFittedError
            Before `fit`, and if the model was read from a file.
        KeyboardInterrupt
            If Ctrl-C comes before there are draws. Later, it only ends the chains.
        """
        self._check_unpruned()
        search = Search(
            "metropolis", n_steps, n_chains, n_jobs, random_state, checkpoint, resume, progress,
            time_limit, until,
        )  # fmt: skip
        best = self.program_, self.items_, self.kept_, self.tradeoff_
        return near_optimal(*best, search, tolerance=tolerance, n_draws=n_draws)

    def _frontier(self) -> Frontier:
        """Return the search for prunings within budgets."""
        rows, labels = self._validation_rows, self._validation_labels

        def error_of(kept: Flags) -> float:
            said = self._pruned(kept).predict_proba(rows).argmax(axis=1)
            return float(np.mean(said != labels))

        feature = self._encoder.source[self.whole_forest_.feature[self.program_.node]]
        return Frontier(self.program_, feature, None if labels is None else error_of)

    def _take(self, pruning: Pruning) -> None:
        """Set the fitted state to a pruning."""
        self.tradeoff_ = pruning.tradeoff
        self.objective_, self.lower_bound_ = pruning.objective, pruning.lower_bound
        self._rounding = pruning.rounding
        watch = watch_in_use()
        self.kept_ = pruning.kept
        self.is_interrupted_ = pruning.interrupted and not watch.is_up
        self._become(self._pruned(pruning.kept), self._validation_rows, watch)

    def _left(self, found: Pruning) -> Forest:
        return self._cut(found.kept)

    def _buy_nothing(self) -> None:
        super()._buy_nothing()
        self.kept_ = np.zeros_like(self.kept_)
        self.objective_ = self.program_.objective(self.kept_, self.tradeoff_)

    def _fields(self) -> dict[str, Any]:
        return {
            **super()._fields(),
            "lower_bound": [self.lower_bound_, self._rounding],
            "first_features": self._begun_with.tolist(),
        }

    def _restore(self, record: Mapping[str, Any]) -> None:
        super()._restore(record)
        lower_bound, rounding = record["lower_bound"]
        self.lower_bound_ = check_real("lower_bound", lower_bound, maximum=self.objective_)
        self._rounding = check_real("rounding", rounding, minimum=0.0)
        n_features = len(self.feature_texts)
        self._first_read = read_features_begun_with(record["first_features"], n_features)
