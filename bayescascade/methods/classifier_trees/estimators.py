"""A tree of linear classifiers that buy features: ASTC, pruned by what is worth its cost."""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.errors import ModelFileError, ParameterError
from bayescascade.base.validation import check_flag, check_real
from bayescascade.base.watch import Watch
from bayescascade.costs.acquisition import Walk
from bayescascade.costs.choice import Choice
from bayescascade.costs.classifier import BudgetedClassifier
from bayescascade.costs.items import Costs, FeatureCosts
from bayescascade.costs.limits import BudgetError, check_amounts, is_within
from bayescascade.data.cell_policy import CellPolicy, Matrix
from bayescascade.data.given import GivenRows
from bayescascade.data.labels import TrainingRows
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.data.splitting import split_by_class
from bayescascade.methods.classifier_trees.basis import Basis
from bayescascade.methods.classifier_trees.growing import GrowingRows, Growth, grow, refitted
from bayescascade.methods.classifier_trees.leaves import constant_leaf
from bayescascade.methods.classifier_trees.parameters import SubmodularTreeParameters
from bayescascade.methods.classifier_trees.pruning import Pruning, prunings
from bayescascade.methods.classifier_trees.reports import HOW_TO_READ, node_table, path_words
from bayescascade.methods.classifier_trees.tree import ClassifierNode, ClassifierTree
from bayescascade.methods.classifier_trees.walk import ClassifierWalk
from bayescascade.model.importances import importance_shares
from bayescascade.report.page import BLANK, Page, count_of

_SHARES = (0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 1.0)
"""Of what a row may cost: what a node may spend in the trees that are tried."""

_HELD_OUT = 0.25  # of the rows, where none are given to choose by


class NodeCertificate(NamedTuple):
    """What a node's features explain, and what no set within its budget exceeds."""

    explained: float
    bound: float
    is_exact: bool


@dataclass(eq=False, repr=False, kw_only=True)
class SubmodularTreeClassifier(BudgetedClassifier):
    """A tree of linear classifiers, each of which buys the features that explain most.

    Parameters
    ----------
    costs : FeatureCosts, mapping, sequence of float or None
        What features cost; None: 1 each. See `FeatureCosts`.
    node_budget : float, sequence of float or None
        None: several are tried, and the tree that errs least on other rows is taken.
    weights : {"hard", "soft"}
        "soft": a row counts at both children, by a sigmoid of its score minus the threshold; in
        training only.

    Attributes
    ----------
    tree_ : ClassifierTree
        `tree_.nodes[0]` is the root.
    certificate_ : tuple of NodeCertificate
    is_interrupted_ : bool
        Whether Ctrl-C ended the fit, which then kept the trees that had grown.

    The others are those of every `BudgetedClassifier`.

    Notes
    -----
    Kusner and others (2014), with errata 12 to 15 of the documentation; `selection` has the
    formulas. Pruning, steps as columns and logistic leaves are not in the paper; `basis="linear"`,
    `selection="paper"`, `leaf="least_squares"` and `prune=False` are as printed.

    Examples
    --------
    >>> import numpy as np
    >>> from bayescascade import SubmodularTreeClassifier
    >>> X = np.random.default_rng(0).normal(size=(400, 4))
    >>> model = SubmodularTreeClassifier(budget=1.0, random_state=0).fit(X, X[:, 2] > 0.5)
    >>> np.flatnonzero(model.feature_shares_).tolist()
    [2]
    """

    model_name: ClassVar[str] = "SubmodularTreeClassifier"
    title: ClassVar[str] = "tree of classifiers"
    purpose: ClassVar[str] = (
        "Which class a row is of, by a tree of linear classifiers that buys more features only "
        "where they are worth their cost."
    )
    cells: ClassVar[CellPolicy] = CellPolicy(missing="level")
    declares = SubmodularTreeParameters

    costs: Costs = SubmodularTreeParameters.costs.default
    budget: float | None = SubmodularTreeParameters.budget.default
    tradeoff: float = SubmodularTreeParameters.tradeoff.default
    node_budget: float | Sequence[float] | None = SubmodularTreeParameters.node_budget.default
    max_depth: int = SubmodularTreeParameters.max_depth.default
    basis: str = SubmodularTreeParameters.basis.default
    selection: str = SubmodularTreeParameters.selection.default
    leaf: str = SubmodularTreeParameters.leaf.default
    weights: str = SubmodularTreeParameters.weights.default
    prune: bool = SubmodularTreeParameters.prune.default
    missing: str = SubmodularTreeParameters.missing.default
    unknown: str = SubmodularTreeParameters.unknown.default
    time_limit: float | None = SubmodularTreeParameters.time_limit.default
    random_state: Any = SubmodularTreeParameters.random_state.default

    tree_: ClassifierTree = field(init=False)

    _tried: "_Tried" = field(init=False)
    _center: NDArray[np.float64] = field(init=False)  # (n_matrix_columns,)
    _class_shares: NDArray[np.float64] = field(init=False)  # (n_classes,)

    def fit(
        self,
        X: Any,
        y: Any,
        X_val: Any = None,
        y_val: Any = None,
        *,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Grow trees for several node budgets, prune them, and keep the best.

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
            Their labels, which choose the tree; without them, a quarter of the rows does, by
            `random_state`, and the leaves of the tree chosen are fitted to all rows.
        sample_weight : (n_rows,) array of float >= 0, optional
            Weights of the rows, 1 each by default.

        Raises
        ------
        ParameterError
            If a parameter is out of its range, or `node_budget` buys no feature.
        TooLargeError
            If `selection` is "exact" and a node can afford too many sets.
        DataError
            If rows, labels or weights cannot be used.
        KeyboardInterrupt
            If Ctrl-C comes before one tree has grown; later, it leaves those that have.
        """
        self.declares.check(self)
        training = self._read_rows(X, y, sample_weight, X_val, y_val)
        self._tried = self._try_each(training, [self.budget])
        self.__dict__.update(self._chosen(self.budget).__dict__)
        return self

    def within(self, budget: float) -> Self:
        """Return the classifier of another budget, chosen among the trees that `fit` grew.

        Raises ParameterError if the budget is out of its range, NotFittedError if the model was
        read from a file.
        """
        check_is_fitted(self, "_tried", msg="%(name)s must be fitted, and not read from a file")
        return self._chosen(check_real("budget", budget, minimum=0.0))

    def path(self, budgets: Sequence[float]) -> list[Self]:
        """Return a classifier for each budget, chosen among the trees that `fit` grew."""
        return [self.within(budget) for budget in check_amounts("budgets", budgets)]

    def fit_budgets(
        self, budgets: Sequence[float], X: Any, y: Any, X_val: Any = None, y_val: Any = None
    ) -> Iterator[tuple[float, Self | BudgetError]]:
        """Yield for each budget the best of trees that are grown once for all of them."""
        model: Any = clone(self).set_params(budget=max(budgets))
        model.declares.check(model)
        training = model._read_rows(X, y, None, X_val, y_val)
        model._tried = model._try_each(training, budgets)
        if model.is_interrupted_:
            raise KeyboardInterrupt
        for budget in budgets:
            yield budget, model._chosen(budget)

    # -- fitting -----------------------------------------------------------------------------------

    def _read_rows(
        self, X: Any, y: Any, sample_weight: Any = None, X_val: Any = None, y_val: Any = None
    ) -> TrainingRows:
        given = GivenRows.labeled(X, y, sample_weight)
        validation = GivenRows.validating(X_val, y_val)
        encoder = MatrixEncoder.learn(given, self._policy())
        self._set_columns(encoder, FeatureCosts.of(self.costs, encoder.columns))
        training = TrainingRows.read(encoder, given, validation, owner=type(self).__name__)
        self.classes_ = training.classes
        total = training.weights.sum()
        self._center = training.weights @ training.rows / total
        counts = np.bincount(training.labels, training.weights, training.n_classes)
        self._class_shares = counts / total
        return training

    def _try_each(self, training: TrainingRows, budgets: Sequence[float | None]) -> "_Tried":
        """Return the prunings of trees of several node budgets, by the rows that choose."""
        rows, labels, weights = training.rows, training.labels, training.weights
        chooses = np.zeros(len(rows), np.bool_)
        judges, judged, words = (
            training.validation_rows,
            training.validation_labels,
            "validation rows",
        )
        if judged is None:
            generator = np.random.default_rng(self.random_state)
            chooses = split_by_class(labels, [1 - _HELD_OUT, _HELD_OUT], generator) == 1
            judges, judged, words = rows[chooses], labels[chooses], "held-out rows"
        grows = ~chooses & (weights > 0)
        basis = Basis.of(self.basis, rows[grows], self._encoder.source)
        learned = GrowingRows.of(
            basis, rows[grows], labels[grows], weights[grows], training.n_classes
        )
        watch = Watch(self.time_limit)
        tried: list[Pruning] = []
        self.is_interrupted_ = False
        for node_budgets in self._node_budgets(budgets):
            if tried and watch.is_over():
                break
            how = Growth(node_budgets, self.selection, self.max_depth, self.weights, self.leaf)
            try:
                tree = grow(learned, self.items_, how)
            except KeyboardInterrupt:
                if not tried:
                    raise
                self.is_interrupted_ = True
                break
            found = prunings(tree, self.items_, judges, judged)
            tried += found if self.prune else found[:1]
        everything = learned
        if chooses.any():
            everything = GrowingRows.of(basis, rows, labels, weights, training.n_classes)
        return _Tried(tuple(tried), training, everything, judges, judged, words, watch)

    def _node_budgets(self, budgets: Sequence[float | None]) -> list[tuple[float, ...]]:
        """Return what nodes may spend in each of the trees to grow."""
        items = self.items_
        prices = [float(items.costs[items.of_column(f)].sum()) for f in range(items.n_columns)]
        least = min(prices)
        if self.node_budget is not None:
            one = isinstance(self.node_budget, int | float | np.number)
            given = check_amounts("node_budget", [self.node_budget] if one else self.node_budget)
            if len(given) not in (1, 2**self.max_depth - 1):
                raise ParameterError(
                    f"node_budget must have one number or {2**self.max_depth - 1}, one for each "
                    f"node of depth {self.max_depth}, got {len(given)}"
                )
            if not is_within(least, max(given)):
                raise ParameterError(
                    f"node_budget must be at least {least:.12g}, what the cheapest feature costs, "
                    f"got {max(given):.12g}"
                )
            return [tuple(given)]
        total = float(items.costs.sum())
        limits = {total if each is None else min(each, total) for each in budgets}
        amounts = {max(share * limit, least) for limit in limits for share in _SHARES}
        steps = items.costs / least if least > 0 else np.array([0.5])
        if (steps == np.round(steps)).all():  # more than a multiple buys no more
            amounts = {np.floor(amount / least + 1e-9) * least for amount in amounts}
        return [(amount,) for amount in sorted(amounts)]

    def _chosen(self, budget: float | None) -> Self:
        """Return the classifier of the best tree within a budget, or of what reads nothing."""
        tried = self._tried
        model = copy.copy(self)
        model.budget = budget
        possible = [p for p in tried.prunings if budget is None or is_within(p.cost, budget)]
        if possible:
            best = min(possible, key=lambda p: (p.error + self.tradeoff * p.cost, p.cost))
            model.tree_ = refitted(best.tree, tried.everything, self.leaf)
            if tried.training.validation_labels is not None:
                model.tree_ = best.tree
            model._measure(tried.training.validation_rows, tried.watch)
            if budget is not None and not model._reads_nothing:
                said = best.tree.predict_proba(tried.judges).argmax(axis=1)
                nothing = tried.judged != tried.training.commonest
                model._settle(Choice.of(tried.words, said != tried.judged, nothing, tried.training))
            return model
        model.tree_ = _nothing(tried.everything, self.items_.n_columns)
        model._measure(tried.training.validation_rows, tried.watch)
        return model

    # -- hooks of budgeted classifiers -------------------------------------------------------------

    def _features_read(self, rows: Matrix) -> NDArray[np.bool_]:
        return self.tree_.has[self.tree_.apply(rows)]

    def _walk(self, encoder: MatrixEncoder) -> Callable[[], Walk]:
        return partial(ClassifierWalk, self.tree_, self._class_shares, encoder)

    @property
    def _reads_nothing(self) -> bool:
        return not self.tree_.has.any()

    def _cut_down(self) -> None:
        self.tree_ = _nothing(self._tried.everything, self.n_features_in_)

    # -- classifying -------------------------------------------------------------------------------

    @property
    def certificate_(self) -> tuple[NodeCertificate, ...]:
        """For each node what its features explain, and what no set within its budget exceeds."""
        check_is_fitted(self)
        return tuple(NodeCertificate(n.explained, n.bound, n.is_exact) for n in self.tree_.nodes)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Share of each feature in what nodes explain, (n_features_in_,) float64.

        Gains of nodes count by the rows that come to them; shares sum up to 1, or are all 0 if
        nothing is bought.
        """
        check_is_fitted(self)
        nodes = self.tree_.nodes
        bought = np.concatenate([node.bought for node in nodes])
        gains = np.concatenate([node.gains * node.weight for node in nodes])
        return importance_shares(self.n_features_in_, bought, gains)

    @property
    def commonest_class_(self) -> Any:
        """The commonest class of the rows that the tree was grown on."""
        check_is_fitted(self)
        return self.classes_.tolist()[int(self._class_shares.argmax())]

    def _probabilities(self, rows: Matrix) -> NDArray[np.float64]:
        return self.tree_.predict_proba(rows)

    @property
    def _means(self) -> NDArray[np.float64]:
        return self._center

    def _reasons(self, X: Any) -> list[str]:
        words = path_words(self.tree_, self.feature_texts)
        return [words[leaf] for leaf in self.tree_.apply(self._matrix(X)).tolist()]

    # -- what a user sees --------------------------------------------------------------------------

    def _heading(self) -> list[str]:
        n_leaves = sum(node.is_leaf for node in self.tree_.nodes)
        return [
            count_of(n_leaves, "leaf", "leaves"),
            count_of(len(self.classes_), "class", "classes"),
        ]

    def _size_facts(self) -> list[str]:
        return [count_of(len(self.tree_.nodes), "node")]

    def _page(self) -> Page:
        return (node_table(self.tree_, self.feature_texts, self.items_), BLANK, *super()._page())

    def _how_to_read(self) -> Sequence[tuple[str, str]]:
        return (*HOW_TO_READ, *super()._how_to_read())

    # -- files -------------------------------------------------------------------------------------

    def _fields(self) -> dict[str, Any]:
        return {
            **super()._fields(),
            "is_interrupted": self.is_interrupted_,
            "center": self._center.tolist(),
            "class_shares": self._class_shares.tolist(),
            "tree": self.tree_.to_record(),
        }

    def _restore(self, record: Mapping[str, Any]) -> None:
        super()._restore(record)
        source, n_classes = self._encoder.source, len(self.classes_)
        self.is_interrupted_ = check_flag("is_interrupted", record["is_interrupted"])
        self._center = _numbers(record, "center", len(source))
        self._class_shares = _numbers(record, "class_shares", n_classes)
        self.tree_ = ClassifierTree.from_record(record["tree"], source, n_classes)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "tree_")


class _Tried(NamedTuple):
    """What `fit` grew, and the rows that choose."""

    prunings: tuple[Pruning, ...]
    training: TrainingRows
    everything: GrowingRows
    judges: Matrix
    judged: NDArray[np.int64]
    words: str
    watch: Watch


def _nothing(rows: GrowingRows, n_features: int) -> ClassifierTree:
    """Return the tree that reads nothing."""
    none = np.zeros(0, np.int64)
    leaf = constant_leaf(rows.labels, rows.weights, rows.n_classes)
    node = ClassifierNode(
        none, np.zeros(0), 0.0, 1.0, False, float(rows.weights.sum()), leaf, 0.0, (-1, -1), leaf
    )
    return ClassifierTree((node,), rows.basis, n_features, rows.n_classes)


def _numbers(record: Mapping[str, Any], name: str, count: int) -> NDArray[np.float64]:
    numbers = np.array(record[name], np.float64)
    if numbers.shape != (count,) or not np.isfinite(numbers).all():
        raise ModelFileError(f"a saved tree's {name} must be {count} finite numbers")
    return numbers
