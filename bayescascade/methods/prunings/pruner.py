"""What all pruned forests share: the forest that is pruned, and what is left of it.

Errors may be measured on any rows: on a validation set or, tree by tree, on the rows that are not
in the tree's bag (`count_classes`, `bayescascade.methods.forests.bags`).
"""

import copy
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.errors import DataError, ParameterError
from bayescascade.base.watch import OutOfTime, Watch, check_time, watch_in_use
from bayescascade.costs.items import Costs
from bayescascade.costs.limits import BudgetError
from bayescascade.data.labels import TrainingRows
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.methods.forests.bags import has_bags, out_of_bag
from bayescascade.methods.forests.base import ForestClassifier
from bayescascade.methods.forests.forest import SKLEARN_FORESTS, Forest
from bayescascade.methods.prunings.parameters import PrunerParameters
from bayescascade.methods.prunings.path import PruningPath
from bayescascade.model.search import Seed, seed_sequence

P = TypeVar("P")

_Grown: TypeAlias = list[tuple[P, TrainingRows, NDArray[np.bool_]]]
"""Of each fold a pruner, the rows that its forest was grown on, and whether each row is another."""

_N_TREES = 40  # as in the thesis
_LEAST = 1.0  # seconds of pruning, whatever the time limit
_ENCODING = "_bayescascade_encoding"  # given to forests fitted here: what their columns are of


@dataclass(eq=False, repr=False)
class ForestPruner(ForestClassifier):
    """A budgeted classifier that is what is left of another forest.

    Parameters
    ----------
    forest : estimator or None
        Forest or tree of scikit-learn, or a budgeted classifier. One that is fitted is used as it
        is (in a `FrozenEstimator`, it stays so when cloned), others are cloned and fitted. None:
        `RandomForestClassifier(40, criterion="entropy", max_features=None)`, as in the thesis.
    costs : FeatureCosts, mapping, sequence of float or None
        What features cost; None: 1 each. See `FeatureCosts`.
    budget : float >= 0 or None
        The most that a row may cost, on average over the validation rows, instead of a value of the
        parameter named by `strength`.
    n_jobs : int or None
        Given to a forest to fit that has none itself.
    random_state : int, SeedSequence, Generator or None
        Likewise.
    time_limit : float > 0 or None
        Seconds after which `fit` stops, from its beginning, with the best pruning known by then,
        which then depends on the machine. A forest that is fitted first is finished, as is what
        is compiled, at the first fit; a second is left for pruning in any case.

    Attributes
    ----------
    strength : str
        Name of the parameter that says how much is left, if no `budget` does. Its fitted value has
        a trailing underscore.
    forest_ : Forest
        The trees that are left.
    estimator_ : estimator
        The forest that was pruned; not in saved models. It may be given as `forest` again, for the
        same columns, also where they hold text.
    program_ : PruningProgram
        What its splits gain and cost, and `whole_forest_`, its
        trees; not in saved models.
    classes_, costs_, items_, validation_cost_, feature_shares_, item_shares_, n_features_in_,
    feature_names_in_
        As of every `BudgetedClassifier`.
    """

    strength: ClassVar[str]

    declares: ClassVar[type[PrunerParameters]] = PrunerParameters

    forest: Any = PrunerParameters.forest.default  # several types of estimators
    _: KW_ONLY
    costs: Costs = PrunerParameters.costs.default
    budget: float | None = PrunerParameters.budget.default
    n_jobs: int | None = PrunerParameters.n_jobs.default
    random_state: Seed = PrunerParameters.random_state.default
    time_limit: float | None = PrunerParameters.time_limit.default
    unknown: str = PrunerParameters.unknown.default

    _first_read: NDArray[np.int64] | None = field(init=False, default=None)  # from a file

    @property
    def may_know_validation_labels(self) -> bool:
        """Whether `fit` may have chosen by the labels of validation rows what is left."""
        return True

    def fit(self, X: Any, y: Any, X_val: Any = None, y_val: Any = None) -> Self:
        """Fit the forest, if it is not fitted yet, and prune it.

        Parameters
        ----------
        X : DataFrame, (n_rows, n_features) array or list of rows
            Rows to fit the forest to: numbers, truth values, text and categories; NaN or None is
            missing. For a fitted forest they tell the columns, and out-of-bag errors are theirs:
            they must be the rows that it was fitted to, in their order.
        y : (n_rows,) array
            Labels, of at least two classes.
        X_val : as X, optional
            Rows that costs are measured on. Without them those of `X` are, on which the cost is a
            little smaller than on new rows.
        y_val : (n_validation_rows,) array, optional
            Their labels, of rows that a fitted forest has not seen. `errors="validation"`
            needs them. If they are given, it chooses the tradeoff by
            them where nothing says how much is left, unless they serve for something else already,
            and the ways to spend what a best pruning leaves of a budget are compared on them.

        Raises
        ------
        ParameterError
            If a parameter is out of its range, the forest is none that can be pruned or was fitted
            to other columns, or what `errors` needs is missing; of `BudgetPruneClassifier`
            where nothing says how much is left, also if there are no rows to choose the tradeoff
            by: neither `y_val` nor bags, as for a `DecisionTreeClassifier`, that no tree or pruning
            was fitted to.
        BudgetError
            If nothing that can be left of it is within the budget, which a
            `BudgetPruneClassifier` never says; names the least feasible one.
        DataError
            If the rows or labels cannot be used, or `y` has classes that a fitted forest has not.
        """
        watch = Watch(self.time_limit)
        self._check_parameters()
        training = self._read_forest(X, y, X_val, y_val)
        watch.grant(_LEAST)
        with watch.watching():
            self._prepare(training)
            found = self._tuned(training) if self.budget is None else self._within(self.budget)
            self._take(found)
            self._compare(found)
        return self

    @abstractmethod
    def _left(self, found: Any) -> Forest:
        """Return all trees as what was found leaves them, those without a split, too."""

    def _compare(self, found: Any) -> None:
        """Buy nothing if that is no worse than what was found for a budget."""
        budget = self.budget
        if budget is None or getattr(found, "interrupted", False) or not self.forest_.n_splits:
            return
        training, left, outside = self._training, self._left(found), None
        if training.validation_labels is not None:
            left = left.without_bare_roots()
        elif has_bags(self.estimator_) and self.estimator_._n_samples == len(training.rows):
            outside = out_of_bag(self.estimator_, len(training.rows), "budget")[:, : left.n_trees]

        def learn(other: Self, part: TrainingRows) -> Forest | None:  # noqa: ARG001
            try:
                found = other._within(budget)
            except BudgetError:
                return None
            if getattr(found, "interrupted", False):
                raise OutOfTime if watch_in_use().is_up else KeyboardInterrupt
            return other._left(found).without_bare_roots()

        try:
            self._settle(self._choice(training, left, learn if self._may_grow else None, outside))
        except OutOfTime:
            self.stopped_after_ = watch_in_use().seconds

    def _path(
        self, name: str, wanted: Sequence[Any], find: Callable[[Any], Any]
    ) -> PruningPath[Self]:
        """Return the forest pruned for values of a parameter, found in ascending order.

        What is found may say that it is `interrupted`, which ends the path before it.
        """
        found: dict[Any, Self] = {}
        for value in sorted(set(wanted)):
            what = find(value)
            if getattr(what, "interrupted", False):
                break
            found[value] = model = copy.copy(self)
            model.set_params(**{"budget": None, name: value})
            model._take(what)
            try:
                model._compare(what)
            except KeyboardInterrupt:
                del found[value]
                break
        if wanted and not found:
            raise KeyboardInterrupt
        models = tuple(found[value] for value in wanted if value in found)
        return PruningPath(models, len(found) < len(set(wanted)), self.strength)

    @abstractmethod
    def _prepare(self, training: TrainingRows) -> None:
        """Get to know the forest."""

    @abstractmethod
    def _tuned(self, training: TrainingRows) -> Any:
        """Return what `_take` takes where there is no budget."""

    @abstractmethod
    def _within(self, budget: float) -> Any:
        """Return what `_take` takes for a budget."""

    def _read_forest(self, X: Any, y: Any, X_val: Any, y_val: Any) -> TrainingRows:
        """Return the rows, with the classes of the forest, which is fitted if needed."""
        forest = self.forest
        forest = forest.estimator if isinstance(forest, FrozenEstimator) else forest
        if forest is not None and not isinstance(forest, (*SKLEARN_FORESTS, ForestClassifier)):
            raise ParameterError(
                "forest must be a RandomForestClassifier, an ExtraTreesClassifier, a "
                "DecisionTreeClassifier or a budgeted classifier, "
                f"got {type(forest).__name__}"
            )
        training = self._read_training(X, y, X_val=X_val, y_val=y_val)
        self._validation_rows = training.validation_rows
        self._may_grow = not isinstance(forest, ForestClassifier) and not hasattr(
            forest, "classes_"
        )
        self._template: Any = forest
        self._grown: _Grown[Self] = []  # shared by the copies of a path
        self.estimator_: Any  # of several types
        self.whole_forest_: Forest
        if forest is None or not hasattr(forest, "classes_"):
            self.estimator_ = self._fitted(forest, training, (X, y, X_val, y_val))
        else:
            self.estimator_ = forest
            self._check_columns(forest)
            training = self._with_classes(forest, training)
        if isinstance(self.estimator_, ForestClassifier):
            self.whole_forest_ = self.estimator_.forest_
        else:
            self.whole_forest_ = Forest.from_sklearn(self.estimator_)
        self._training = training
        return training

    def _folds(
        self, training: TrainingRows
    ) -> Iterable[tuple[Self, TrainingRows, NDArray[np.bool_]]]:
        """Yield the same, with forests that are grown once for all budgets."""
        if not self._grown:
            grown: _Grown[Self] = []
            for other, part, held in super()._folds(training):
                check_time()
                other.estimator_ = other._fitted(self._template, part, ())
                other.whole_forest_ = Forest.from_sklearn(other.estimator_)
                other._validation_rows = part.rows
                other._prepare(part)
                grown.append((other, part, held))
            self._grown.extend(grown)
        return self._grown

    def _first_features(self) -> tuple[str, NDArray[np.int64]]:
        """Return what the trees of the whole forest begin with; of older files, any."""
        if self._begun_with is None:
            return super()._first_features()
        return "cheapest feature that its trees begin with", self._begun_with

    @property
    def _begun_with(self) -> NDArray[np.int64] | None:
        """The features that the trees of the whole forest begin with; None of older files."""
        if not hasattr(self, "whole_forest_"):
            return self._first_read
        first = self.whole_forest_.feature[self.whole_forest_.roots]
        found: NDArray[np.int64] = np.unique(self._encoder.source[first[first >= 0]])
        return found

    def _pruned(self, kept: NDArray[np.bool_]) -> Forest:
        """Return the trees that are left if some splits are kept, (n_splits,) bool."""
        return self._cut(kept).without_bare_roots()

    def _cut(self, kept: NDArray[np.bool_]) -> Forest:
        """Return all trees as they are if some splits are kept, (n_splits,) bool."""
        is_split = np.isin(np.arange(self.whole_forest_.n_nodes), self.program_.node[kept])
        return self.whole_forest_.pruned(is_split)

    @abstractmethod
    def _take(self, found: Any) -> None:
        """Be fitted to a pruning that was found."""

    def _check_parameters(self) -> None:
        """Raise ParameterError if a parameter is out of its range."""
        self.declares.check(self)

    def _check_unpruned(self) -> None:
        """Raise if there is nothing to prune anew: before `fit`, or after a file was read."""
        message = (
            "%(name)s must be fitted, and not read from a file, which has only the pruned forest"
        )
        check_is_fitted(self, "whole_forest_", msg=message)

    def _fitted(self, forest: Any, training: TrainingRows, given: tuple[Any, ...]) -> Any:
        """Return a fitted clone of a forest, which has the costs, seed and jobs that it lacks."""
        if forest is None:
            forest = RandomForestClassifier(_N_TREES, criterion="entropy", max_features=None)
        forest = clone(forest)
        known = forest.get_params(deep=False)
        if self.random_state is not None and known["random_state"] is None:
            (seed,) = seed_sequence(self.random_state).generate_state(1)
            forest.set_params(random_state=int(seed))
        if self.n_jobs is not None and known.get("n_jobs", 1) is None:
            forest.set_params(n_jobs=self.n_jobs)
        if isinstance(forest, ForestClassifier):
            if forest.costs is None:
                forest.set_params(costs=self.costs)
            X, y, X_val, y_val = given
            return forest.fit(X, y, X_val=X_val, y_val=y_val)
        forest.fit(training.rows, self.classes_[training.labels])
        setattr(forest, _ENCODING, self._encoder)
        return forest

    def _check_columns(self, forest: Any) -> None:
        """Check that a fitted forest reads the matrix that the rows became."""
        columns = self._encoder.columns
        encoding = _encoding_of(forest)
        if encoding is not None:
            if encoding.to_dict() != self._encoder.to_dict():
                raise ParameterError(
                    "forest must be fitted to columns of the same names and levels, "
                    f"got one of {_listed(encoding.columns)} for {_listed(columns)}"
                )
            return
        if not self._encoder.is_numeric:
            names = zip(self._encoder.names, self._encoder.levels, strict=True)
            text = next(name for name, levels in names if levels is not None)
            raise ParameterError(
                "forest must not be fitted before where columns hold text or categories, which "
                f"are encoded here, got a fitted {type(forest).__name__} and column {text!r}"
            )
        known = tuple(getattr(forest, "feature_names_in_", columns))
        if forest.n_features_in_ != len(columns) or (self._encoder.is_named and known != columns):
            shown = known if len(known) == forest.n_features_in_ else range(forest.n_features_in_)
            raise ParameterError(
                "forest must be fitted to the columns of X in their order, "
                f"got one of {_listed(shown)} for {_listed(columns)}"
            )

    def _with_classes(self, forest: Any, training: TrainingRows) -> TrainingRows:
        """Take over the classes of a fitted forest, which may have more, and number labels so."""
        classes = np.asarray(forest.classes_)
        known = set(classes.tolist())
        for name in self.classes_.tolist():
            if name not in known:
                raise DataError(
                    f"y must have labels of the forest's classes {_listed(classes.tolist())}, "
                    f"got {name!r}"
                )
        place = np.searchsorted(classes, self.classes_)
        self.classes_ = classes
        validation = training.validation_labels
        return replace(
            training,
            labels=place[training.labels],
            classes=classes,
            validation_labels=None if validation is None else place[validation],
        )


def count_classes(
    forest: Forest,
    rows: NDArray[np.float32],
    labels: NDArray[np.int64],
    is_counted: NDArray[np.bool_] | None = None,
) -> NDArray[np.float64]:
    """Return how many rows of each class come to each node, (n_nodes, n_classes) float64.

    labels (n_rows,), places of classes; is_counted (n_rows, n_trees): which trees count each row,
    by default all of them.
    """
    leaves = forest.apply(rows)
    cell = leaves * np.int64(forest.n_classes) + labels[:, np.newaxis]
    if is_counted is not None:
        cell = cell[is_counted]
    at_leaves = np.bincount(cell.ravel(), minlength=forest.counts.size)
    # A subtree is a range of nodes: what comes to its root is the sum over its leaves.
    below = np.zeros((forest.n_nodes + 1, forest.n_classes))
    np.cumsum(at_leaves.reshape(forest.counts.shape), axis=0, out=below[1:])
    counts: NDArray[np.float64] = below[forest.ends] - below[:-1]
    return counts


def _encoding_of(forest: Any) -> MatrixEncoder | None:
    """Return what the columns of a forest that was fitted here are of; None of other forests."""
    if isinstance(forest, ForestClassifier):
        return forest._encoder
    encoding: MatrixEncoder | None = getattr(forest, _ENCODING, None)
    if encoding is None or hasattr(forest, "feature_names_in_"):  # fitted again, elsewhere
        return None
    return encoding if forest.n_features_in_ == len(encoding.source) else None


def _listed(values: Any) -> str:
    shown = [repr(value) for value in values]
    return ", ".join(shown[:6]) + (f" and {len(shown) - 6} more" if len(shown) > 6 else "")
