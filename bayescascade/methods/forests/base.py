"""What every budgeted classifier does once it has a forest: classify, count costs, acquire.

A subclass has a `fit` that begins with `_read_training`, grows or prunes a `Forest` over the matrix
that it gets, and ends with `_become`. What features cost is a parameter of every constructor:
clones, pipelines and grid searches take it along, and no metadata needs to be routed.
"""

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import compress
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.errors import ModelFileError
from bayescascade.base.validation import check_choice, check_real
from bayescascade.base.watch import Watch
from bayescascade.costs.acquisition import Acquisition, Fetch, Walkable, acquire
from bayescascade.costs.choice import CROSSED, Choice, fold_of_rows, is_few
from bayescascade.costs.items import CostItems, Costs, FeatureCosts
from bayescascade.data.cell_policy import CellPolicy
from bayescascade.data.file_frames import with_labels
from bayescascade.data.labels import TrainingRows
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.data.partitions import by_partitions
from bayescascade.data.sources import as_frame
from bayescascade.methods.forests.bags import votes_of, wrong_out_of_bag
from bayescascade.methods.forests.forest import Forest
from bayescascade.methods.forests.pictures import path_words
from bayescascade.methods.forests.reports import ShownForest
from bayescascade.methods.forests.walk import ForestWalk
from bayescascade.model.importances import importance_shares
from bayescascade.model.record import NOT_SAVED
from bayescascade.model.roles import Predicted

CELLS = CellPolicy(missing="nan", dtype=np.float32, keeps_ranges=True)
"""What forests take for a cell."""

_TOLERANCE = 1e-9  # between the stored cost and what the shares give


class ReadRows(NamedTuple):
    """How columns are encoded, what they cost, and the rows."""

    encoder: MatrixEncoder
    costs: FeatureCosts
    training: TrainingRows


def read_rows(
    X: Any, y: Any, costs: Costs, owner: str, unknown: str = "error", **more: Any
) -> ReadRows:
    """Learn columns and costs, and read rows; see `TrainingRows.read` for `more` and errors."""
    X, y, more["sample_weight"] = with_labels(X, y, more.get("sample_weight"))
    if more.get("X_val") is not None and isinstance(more.get("y_val"), str):
        more["X_val"], more["y_val"], _ = with_labels(more["X_val"], more["y_val"])
    X = as_frame(X)  # once: some tables can be read only once
    encoder = MatrixEncoder.learn(X, CELLS).treating(unknown)
    found = FeatureCosts.of(costs, encoder.columns)
    return ReadRows(encoder, found, TrainingRows.read(encoder, X, y, owner=owner, **more))


class BudgetedClassifier(ShownForest):
    """A classifier that pays for the features that its trees read.

    Attributes
    ----------
    model_name : str
        Name of the class in files.
    forest_ : Forest
        The trees, over the columns of a matrix.
    costs_ : FeatureCosts
    items_ : CostItems
        What each feature costs.
    validation_cost_ : float
        Mean cost of the validation rows.
    feature_shares_ : (n_features_in_,) float64
        Share of the validation rows that acquire each feature.
    item_shares_ : (n_items,) float64
        Share of them that pay for each item of `items_`, a feature or a group.
    stopped_after_ : float or None
        `time_limit`, if that ended `fit`, which then kept what was found.
    choice_ : Choice or None
        Where a `budget` is given: the rows that decided between what it buys and buying nothing,
        and how often both err on them. These are validation rows with labels; of less than 1,000
        rows without such, or where trees have no bags, 5-fold cross-validation of them; else the
        rows out of the trees' bags.
        What does not err less than the commonest class, by more than a standard error of the
        difference, is not bought. None if there are no such rows, no split was left anyway, or
        time was up before they decided.

    feature_importances_ : (n_features_in_,) float64
        Share of each feature in the Gini impurity that splits lessen: as scikit-learn has it of
        forests with that criterion, whatever these trees were grown by, so that entropy forests
        have other shares there.

    The others are those of every `MatrixClassifier`.
    """

    _unlisted: ClassVar[tuple[str, ...]] = ("may_know_validation_labels",)

    cells: ClassVar[CellPolicy] = CELLS
    unknowns: ClassVar[tuple[str, ...]] = ("missing", "error")
    _not_saved = (*NOT_SAVED, "costs", "forest")  # costs are a field of their own

    costs: Costs

    forest_: Forest

    # -- for the `fit` of subclasses ---------------------------------------------------------------

    def _read_training(self, X: Any, y: Any, **more: Any) -> TrainingRows:
        """Learn the columns, classes and costs, and return the rows as a matrix; see `read_rows`.

        Raises ParameterError also if a cost is about no column.
        """
        unknown = check_choice("unknown", self.unknown, self.unknowns)
        owner = type(self).__name__
        encoder, costs, training = read_rows(X, y, self.costs, owner, unknown, **more)
        self._set_columns(encoder, costs)
        self.classes_ = training.classes
        return training

    @property
    def _matrix_items(self) -> CostItems:
        """What the columns of the matrix cost."""
        return self.items_.of_features(self._encoder.source)

    def _become(
        self,
        forest: Forest,
        validation_rows: NDArray[np.float32],
        watch: Watch | None = None,
    ) -> None:
        """Be fitted to a forest, and measure what it costs on rows of a matrix.

        `watch` is that of the fit, and says whether its time limit ended it.
        """
        self.stopped_after_ = watch.seconds if watch is not None and watch.is_up else None
        self.choice_ = None
        used = self._used(forest.features_used(validation_rows))
        paid = self.items_.paid(used)
        self.forest_ = forest
        self.validation_cost_ = float(self.items_.total(paid).mean())
        self.feature_shares_, self.item_shares_ = used.mean(axis=0), paid.mean(axis=0)

    def _settle(self, choice: Choice | None) -> None:
        """Stay what was fitted, or buy nothing if that is no worse on the rows that choose."""
        self.choice_ = choice
        if choice is not None and not choice.is_better:
            self._buy_nothing()

    def _buy_nothing(self) -> None:
        """Be cut down to the roots of the trees."""
        self.forest_ = self.forest_.pruned(np.zeros(self.forest_.n_nodes, np.bool_))
        self.validation_cost_ = 0.0
        self.feature_shares_ = np.zeros_like(self.feature_shares_)
        self.item_shares_ = np.zeros_like(self.item_shares_)

    def _choice(
        self,
        training: TrainingRows,
        forest: Forest,
        learn: Callable[[Self, TrainingRows], Forest | None] | None,
        outside: NDArray[np.bool_] | None,
    ) -> Choice | None:
        """Return how rows that a forest was not learned from compare it with buying nothing.

        These are the validation rows, if they have labels; else, of few rows or where there are
        none `outside` the bags of the trees, (n_rows, n_trees) bool, those of each fold, which
        `learn` judges by a forest learned from the others; else those outside. None if there are
        no such rows.
        """
        labels = training.labels
        nothing = labels != training.commonest
        if training.validation_labels is not None:
            labels = training.validation_labels
            wrong = forest.predict_proba(training.validation_rows).argmax(axis=1) != labels
            return Choice.of("validation rows", wrong, labels != training.commonest, training)
        if learn is not None and (outside is None or is_few(training)):
            return Choice.of(CROSSED, self._wrong_crossed(training, learn), nothing, training)
        if outside is None:
            return None
        is_judged = votes_of(forest, outside).any(axis=1)
        if not is_judged.any():
            return None
        wrong = wrong_out_of_bag(forest, training.rows, labels, outside)
        return Choice.of("out-of-bag rows", wrong, nothing[is_judged], training)

    def _folds(
        self, training: TrainingRows
    ) -> Iterable[tuple[Self, TrainingRows, NDArray[np.bool_]]]:
        """Yield a copy for each fold, the rows that it may learn from, and whether others are not.

        Folds without which there would be one class are left out.
        """
        fold_of = fold_of_rows(training.labels)
        for fold in np.unique(fold_of):
            part, held = training.part(fold_of != fold), fold_of == fold
            if part.n_classes > 1:
                other = copy.copy(self)
                other.classes_ = part.classes
                yield other, part, held

    def _wrong_crossed(
        self, training: TrainingRows, learn: Callable[[Self, TrainingRows], Forest | None]
    ) -> NDArray[np.bool_]:
        """Return whether each row is classified wrongly by what is learned without its fold.

        That is the commonest class where `learn` finds no forest.
        """
        wrong: NDArray[np.bool_] = training.labels != training.commonest
        for other, part, held in self._folds(training):
            forest = learn(other, part)
            if forest is not None:
                places = np.searchsorted(training.classes, part.classes)
                said = places[forest.predict_proba(training.rows[held]).argmax(axis=1)]
                wrong[held] = said != training.labels[held]
        return wrong

    def _set_columns(self, encoder: MatrixEncoder, costs: FeatureCosts) -> None:
        self._set_encoder(encoder)
        self.costs_, self.items_ = costs, costs.resolve(encoder.columns)

    def _used(self, of_matrix: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return the features that rows use, given which columns of the matrix they do."""
        starts = np.flatnonzero(np.diff(self._encoder.source, prepend=-1))
        used: NDArray[np.bool_] = np.logical_or.reduceat(of_matrix, starts, axis=1)
        return used

    def _costs(self, forest: Forest, rows: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return what each row of a matrix pays for what the trees of a forest read, (n_rows,)."""
        return self.items_.total(self.items_.paid(self._used(forest.features_used(rows))))

    # -- classifying -------------------------------------------------------------------------------

    @property
    def commonest_class_(self) -> Any:  # a label
        """The commonest class of the rows that the trees were grown on."""
        check_is_fitted(self, "forest_")
        counts = self.forest_.counts[self.forest_.roots].sum(axis=0)
        return self.classes_.tolist()[counts.argmax()]

    @by_partitions
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class for each row, (n_rows, n_classes) float64.

        It is the mean over the trees of the shares of the classes at the leaves. Parameters and
        errors: see `predict`.
        """
        matrix = self._matrix(X)  # which says if nothing is fitted
        return self.forest_.predict_proba(matrix)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Share of each feature in what splits do, (n_features_in_,) float64.

        A split lessens the Gini impurity of the training rows that come to it. Weighted by these
        rows, that is a share of what all splits of its tree do; shares are averaged over the trees,
        as scikit-learn does of forests that are grown by Gini impurity. They sum up to 1, or are
        all 0 of a forest without splits. What features cost is of no effect.
        """
        check_is_fitted(self, "forest_")
        forest = self.forest_
        splits = np.flatnonzero(forest.is_split)
        features = self._encoder.source[forest.feature[splits]]
        gains = forest.impurity_decreases()[splits]
        return importance_shares(self.n_features_in_, features, gains)

    def predict_block(
        self, cells: pd.DataFrame, first_row: int, *, intervals: bool = False, explain: bool = False
    ) -> Predicted:
        """Return what rows of a file are and cost; see `bayescascade.model.roles.Predictor`.

        Told are the features that are acquired.
        """
        del first_row, intervals  # files are one block; forests do not say how sure they are
        matrix = self._matrix(cells)
        used = self._used(self.forest_.features_used(matrix))
        told: dict[str, Sequence[object]] = {}
        if explain:
            told["acquired"] = [
                ", ".join(compress(self.feature_texts, row)) for row in used.tolist()
            ]
        costs = self.items_.total(self.items_.paid(used))
        return Predicted(told, self.forest_.predict_proba(matrix), costs=costs)

    def _reasons(self, X: Any) -> list[str]:
        """Return the path through a tree; of several, what is acquired for them."""
        matrix = self._matrix(X)
        if self.forest_.n_trees == 1:
            leaves = self.forest_.apply(matrix)[:, 0].tolist()
            words = {leaf: path_words(self.forest_, leaf, self._encoder) for leaf in {*leaves}}
            return [words[leaf] for leaf in leaves]
        used = self._used(self.forest_.features_used(matrix)).tolist()
        acquired = [", ".join(compress(self.feature_texts, row)) for row in used]
        return [f"what {self.forest_.n_trees} trees read: {each or 'nothing'}" for each in acquired]

    def acquisition_cost(self, X: Any) -> NDArray[np.float64]:
        """Return what classifying each row costs, (n_rows,) float64.

        A row pays for the features that any tree reads on its way, each once, and for their groups.
        Parameters and errors: see `predict`.
        """
        matrix = self._matrix(X)
        return self._costs(self.forest_, matrix)

    def features_used(self, X: Any) -> pd.DataFrame | NDArray[np.bool_]:
        """Return which features are acquired for each row, (n_rows, n_features) bool.

        It is a DataFrame if the features have names. Parameters and errors: see `predict`.
        """
        matrix = self._matrix(X)
        used = self._used(self.forest_.features_used(matrix))
        if not self._encoder.is_named:
            return used
        index = X.index if isinstance(X, pd.DataFrame) else None
        return pd.DataFrame(used, index=index, columns=list(self._encoder.columns))

    def acquire(self, fetch: Fetch, max_cost: float | None = None) -> Acquisition:
        """Acquire the features of one row step by step, only those that its paths need.

        Parameters
        ----------
        fetch : function
            Takes the name of a feature (its index if columns have none) and returns its value, None
            or NaN if it is missing, which costs the same. It is called once for a feature, and
            never for one that no tree asks for, so that it may buy the value, or ask a person. A
            level that fit has not seen cannot be read, whatever `unknown` says: it may be a slip.
        max_cost : float >= 0, optional
            Features that would bring the total above it are not acquired.

        Returns
        -------
        Acquisition
            The steps; printed, a table. When complete, its probabilities are those of
            `predict_proba` and its total is that of `acquisition_cost`, to the last digit. Ctrl-C
            ends it early; `Acquisition.resume` goes on.

        Raises
        ------
        ParameterError
            If `fetch` is no function or `max_cost` is out of its range.
        AcquisitionError
            If `fetch` raises an exception, which is its cause, or what it returns cannot be read.
            It has the steps so far, which may be resumed.
        """
        check_is_fitted(self, "forest_")
        strict = self._encoder.treating("error")  # what is typed wrong can be typed again
        walk = partial(ForestWalk, self.forest_, strict)
        model = Walkable(self._encoder.columns, self.items_, self.classes_, walk)
        return acquire(model, fetch, max_cost)

    # -- files and text ----------------------------------------------------------------------------

    def _own_record(self) -> dict[str, Any]:
        """Return fields of a saved file that only this class has, as plain JSON types."""
        return {}

    def _read_own(self, record: Mapping[str, Any]) -> None:
        """Become what `_own_record` told; checks as `_restore`."""

    @classmethod
    def _read_parameters(cls, record: Mapping[str, Any]) -> dict[str, Any]:
        costs = FeatureCosts.from_dict(record["costs"])
        return {**super()._read_parameters(record), "costs": costs}

    def _fields(self) -> dict[str, Any]:
        return {
            **self._encoding_fields(),
            "costs": self.costs_.to_dict(),
            "validation_cost": self.validation_cost_,
            "feature_shares": self.feature_shares_.tolist(),
            "item_shares": self.item_shares_.tolist(),
            **({} if self.stopped_after_ is None else {"stopped_after": self.stopped_after_}),
            **({} if self.choice_ is None else {"choice": self.choice_.to_dict()}),
            **self._own_record(),
            "forest": self.forest_.to_dict(),
        }

    def _restore(self, record: Mapping[str, Any]) -> None:
        self._read_encoding(record)
        self._set_columns(self._encoder, FeatureCosts.from_dict(record["costs"]))
        encoder = self._encoder
        self.feature_shares_ = _shares(record, "feature_shares", len(encoder.columns))
        self.item_shares_ = _shares(record, "item_shares", self.items_.n_items)
        cost, expected = record["validation_cost"], float(self.item_shares_ @ self.items_.costs)
        allowed = _TOLERANCE * (1 + expected)
        if type(cost) not in (int, float) or not abs(cost - expected) <= allowed:
            raise ModelFileError(
                f"a saved model's validation cost must follow from its shares, {expected!r}, "
                f"got {cost!r}"
            )
        self.validation_cost_ = float(cost)
        after = record.get("stopped_after")
        self.stopped_after_ = None if after is None else check_real("stopped_after", after)
        choice = record.get("choice")
        self.choice_ = None if choice is None else Choice.from_dict(choice)
        self._read_own(record)
        self.forest_ = Forest.from_dict(record["forest"], len(encoder.source), len(self.classes_))

    @property
    def may_know_validation_labels(self) -> bool:
        """Whether `fit` may have chosen something by the labels of validation rows."""
        return False

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "forest_")


def _shares(record: Mapping[str, Any], name: str, count: int) -> NDArray[np.float64]:
    shares = record[name]
    if (
        not isinstance(shares, list)
        or len(shares) != count
        or not all(type(share) in (int, float) and 0 <= share <= 1 for share in shares)
    ):
        raise ModelFileError(f"a saved model's {name} must be {count} numbers from 0 to 1")
    return np.array(shares, np.float64)
