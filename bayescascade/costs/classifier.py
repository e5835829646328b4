"""The base of classifiers within a budget: costs, shares, acquisition, page and file.

The `fit` of a subclass sets the columns by `_set_columns` and ends with `_measure`. The costs are a
parameter of every constructor: clones, pipelines and grid searches then keep them without metadata
routing.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.arrays import Flags, Floats, Integers
from bayescascade.base.errors import ModelFileError
from bayescascade.base.store import Of, Saved
from bayescascade.base.watch import Watch
from bayescascade.costs.acquisition import Acquisition, Fetch, Walk, Walkable, acquire
from bayescascade.costs.choice import N_FOLDS, PurchaseChoice
from bayescascade.costs.feature_costs import Costs, FeatureCosts
from bayescascade.costs.items import CostItems
from bayescascade.costs.pages import (
    CANNOT_TELL,
    HOW_TO_READ,
    acquired_page,
    cost_facts,
    cost_page,
    nothing_text,
    plot_costs,
)
from bayescascade.costs.parameters import BudgetedParameters
from bayescascade.data.cell_policy import Matrix
from bayescascade.data.given import GivenRows
from bayescascade.data.labels import TrainingRows
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.model.matrix_classifier import MatrixClassifier
from bayescascade.model.record import NOT_SAVED, model_class
from bayescascade.model.roles import Predicted
from bayescascade.model.search import Seed
from bayescascade.model.view import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEAST_TIME = 1e-3  # seconds
_TOLERANCE = 1e-9  # between the stored cost and that by the shares


@dataclass(eq=False, repr=False, kw_only=True)
class BudgetedClassifier(MatrixClassifier):
    """A classifier that pays for the features that it reads.

    A subclass has `_features_read`, `_walk`, `_reads_nothing`, `_cut_down` and the methods of a
    `MatrixClassifier`.

    Attributes
    ----------
    model_name : str
        Name of the class in files.
    costs_ : FeatureCosts
    items_ : CostItems
        Cost of each feature.
    validation_cost_ : float
        Mean cost of the validation rows.
    feature_shares_ : (n_features_in_,) float64
        Share of the validation rows that acquire each feature.
    item_shares_ : (n_items,) float64
        Share of the validation rows that pay for each item of `items_`, a feature or a group.
    stopped_after_ : float or None
        The `time_limit` if it ended `fit`, which then kept its best result. Otherwise None.
    choice_ : Choice or None
        With a `budget`: the error rates, on held-out rows, of the classifier and of the most common
        class. If the classifier is not better by more than a standard error of the difference,
        nothing is bought. The held-out rows are the validation rows, if they have labels.
        Otherwise, they are the folds of a 5-fold cross-validation if there are fewer than 1,000
        rows or if trees have no bags, and the out-of-bag rows in other cases. Some families hold
        out a quarter of the rows instead. None if there are no such rows, if nothing was bought
        anyway, or if the time limit came first.

    All other attributes are those of `MatrixClassifier`.
    """

    few_rows_text: ClassVar[str] = f"{N_FOLDS}-fold cross-validation"
    """How settings are chosen if there are few rows and no validation rows."""

    _not_saved: ClassVar[tuple[str, ...]] = (*NOT_SAVED, "costs")  # in a separate field

    costs: Costs = BudgetedParameters.costs.default
    budget: float | None = BudgetedParameters.budget.default
    unknown: str = BudgetedParameters.unknown.default
    time_limit: float | None = BudgetedParameters.time_limit.default
    random_state: Seed = BudgetedParameters.random_state.default

    items_: CostItems = field(init=False)
    validation_cost_: Annotated[float, Saved("validation_cost")] = field(init=False)
    feature_shares_: Annotated[Floats, Of("features", least=0, most=1), Saved("feature_shares")] = (
        field(init=False)
    )
    item_shares_: Annotated[Floats, Of("n_items", least=0, most=1), Saved("item_shares")] = field(
        init=False
    )
    stopped_after_: Annotated[float | None, Saved("stopped_after", True)] = field(
        init=False, default=None
    )
    choice_: Annotated[PurchaseChoice | None, Saved("choice", True)] = field(
        init=False, default=None
    )

    _is_compared: bool = field(init=False, default=True)  # see `uncompared`
    # the largest budget, and results of fits for other budgets that do not depend on the budget
    _shared: tuple[float, dict[Any, Any]] | None = field(init=False, default=None)

    # -- hooks -------------------------------------------------------------------------------------

    @abstractmethod
    def _features_read(self, rows: Matrix) -> Flags:
        """Return which features are acquired for each row of the matrix, (n_rows, n_features)."""

    def _answers(self, rows: Matrix) -> tuple[Floats, Flags]:
        """Return probabilities and acquired features of rows, perhaps in one pass over them."""
        return self._probabilities(rows), self._features_read(rows)

    @abstractmethod
    def _walk(self, encoder: MatrixEncoder) -> Callable[[], Walk]:
        """Return a function that starts the walk of a row, whose cells `encoder` reads."""

    @property
    @abstractmethod
    def _reads_nothing(self) -> bool:
        """Whether no features are read, so that all rows get the same answer."""

    @abstractmethod
    def _cut_down(self) -> None:
        """Change the model to one that reads nothing."""

    # -- for the `fit` of subclasses ---------------------------------------------------------------

    @property
    def _matrix_items(self) -> CostItems:
        """Costs of the columns of the matrix."""
        return self.items_.of_features(self._encoder.source)

    def _measure(self, validation_rows: Matrix, watch: Watch | None = None) -> None:
        """Measure the cost on rows of a matrix; `watch` says whether its limit ended the fit."""
        self._measure_used(self._features_read(validation_rows), watch)

    def _measure_used(self, used: Flags, watch: Watch | None = None) -> None:
        """Measure the cost by the features that rows acquire, (n_rows, n_features)."""
        self.stopped_after_ = watch.seconds if watch is not None and watch.is_up else None
        self.choice_ = None
        paid = self.items_.paid(used)
        self.validation_cost_ = float(self.items_.total(paid).mean())
        self.feature_shares_, self.item_shares_ = used.mean(axis=0), paid.mean(axis=0)

    def _settle(self, choice: PurchaseChoice | None) -> None:
        """Keep the fitted model, or buy nothing if the model is not better by the choice."""
        self.choice_ = choice
        if choice is not None and self._is_compared and not choice.is_better:
            self._buy_nothing()

    def uncompared(self) -> Self:
        """Let fits buy in any case: the caller compares their result with buying nothing."""
        self._is_compared = False
        return self

    def _buy_nothing(self) -> None:
        """Change the model to one that reads nothing and costs nothing."""
        self._cut_down()
        self.validation_cost_ = 0.0
        self.feature_shares_ = np.zeros_like(self.feature_shares_)
        self.item_shares_ = np.zeros_like(self.item_shares_)

    def _set_columns(self, encoder: MatrixEncoder, costs: FeatureCosts) -> None:
        self._set_encoder(encoder)
        self.costs_, self.items_ = costs, costs.resolve(encoder.columns)

    def _read_labeled(
        self, given: GivenRows, validation: GivenRows | None, encoder: MatrixEncoder | None = None
    ) -> TrainingRows:
        """Set the columns, by an encoder if given, costs and classes; return the rows."""
        encoder = encoder or MatrixEncoder.learn(given, self._policy())
        self._set_columns(encoder, FeatureCosts.of(self.costs, encoder.columns))
        training = TrainingRows.read(self._reader, given, validation, owner=type(self).__name__)
        self.classes_, self.notes_ = training.classes, training.notes
        return training

    def fit_budgets(
        self, budgets: Sequence[float], X: Any, y: Any, X_val: Any = None, y_val: Any = None
    ) -> Iterator[tuple[float, Self]]:
        """Yield, for each budget, a fitted classifier with the same parameters.

        Parameters
        ----------
        budgets : sequence of float >= 0
        X, y, X_val, y_val
            As in `fit`.

        Raises
        ------
        KeyboardInterrupt
            If Ctrl-C ends a fit early. Its unfinished result is not returned.
        """
        shared: dict[Any, Any] = {}
        watch = Watch(self.time_limit)
        for place, amount in enumerate(budgets):
            model: Any = clone(self).set_params(budget=amount)
            model._shared, model._is_compared = (max(budgets), shared), self._is_compared
            if watch.seconds is not None:  # it is for all budgets
                model.time_limit = max(watch.left / (len(budgets) - place), _LEAST_TIME)
            model.fit(X, y, X_val=X_val, y_val=y_val)
            model.time_limit, model._shared = self.time_limit, None
            if model.stopped_after_ is not None:
                model.stopped_after_ = self.time_limit
            if getattr(model, "is_interrupted_", False):
                raise KeyboardInterrupt
            yield amount, model

    # -- classifying -------------------------------------------------------------------------------

    def _predicted(self, rows: Matrix, intervals: bool, explain: bool) -> Predicted:
        del intervals
        probabilities, used = self._answers(rows)
        texts = {"acquired": self._used_words(used)} if explain else {}
        costs = self.items_.total(self.items_.paid(used))
        return Predicted(texts, probabilities, costs=costs, used=used)

    def _row_costs(self, rows: Matrix) -> Floats:
        return self.items_.total(self.items_.paid(self._features_read(rows)))

    def _acquired_words(self, rows: Matrix) -> list[str]:
        """Return in words the features that each row of the matrix acquires."""
        return self._used_words(self._features_read(rows))

    def _used_words(self, used: Flags) -> list[str]:
        return [", ".join(compress(self.feature_texts, row)) for row in used.tolist()]

    def acquisition_cost(self, X: Any) -> Floats:
        """Return the cost of classifying each row, (n_rows,) float64.

        A row pays once for each feature that is read to classify it, and once for each group.
        Parameters and errors: see `predict`.
        """
        return self._row_costs(self._matrix(X))

    def features_used(self, X: Any) -> pd.DataFrame | Flags:
        """Return which features are acquired for each row, (n_rows, n_features) bool.

        The result is a DataFrame if the features have names. Parameters and errors: see `predict`.
        """
        rows = GivenRows.of(X, self.learned_columns)
        used = self._features_read(self._matrix(rows))
        if not self._encoder.is_named:
            return used
        return pd.DataFrame(used, index=rows.index, columns=list(self._encoder.columns))

    def acquire(self, fetch: Fetch, max_cost: float | None = None) -> Acquisition:
        """Acquire the features of one row step by step, and only those that are needed.

        Parameters
        ----------
        fetch : function
            Takes the name of a feature (its index if columns have no names) and returns its value,
            or None or NaN if it is missing; a missing value costs the same. The function is called
            at most once per feature, and only for features that are needed, so it may buy the value
            or ask a person. A level that fit has not seen is an error here, even if `unknown` is
            "ignore", because it may be a typing error.
        max_cost : float >= 0, optional
            Features that would raise the total cost above this are not acquired.

        Returns
        -------
        Acquisition
            The steps, printed as a table. When complete, its probabilities and its total cost are
            exactly those of `predict_proba` and `acquisition_cost`. Ctrl-C ends it early;
            `Acquisition.resume` continues.

        Raises
        ------
        ParameterError
            If `fetch` is not a function or `max_cost` is out of its range.
        AcquisitionError
            If `fetch` raises an exception (the cause of this error), or returns a value that cannot
            be read. The error holds the steps so far, from which one can resume.
        """
        check_is_fitted(self)
        strict = self._encoder.treating("error")  # typing errors can be corrected
        model = Walkable(self._encoder.columns, self.items_, self.classes_, self._walk(strict))
        return acquire(model, fetch, max_cost)

    # -- what a user sees --------------------------------------------------------------------------

    @property
    def certificate_texts(self) -> list[str]:
        """Lines of the print about the proved quality of the result."""
        if self.stopped_after_ is None:
            return []
        return [f"stopped at the time limit of {self.stopped_after_:g} s"]

    @property
    def nothing_read_text(self) -> str:
        """The line of the print if no feature is read; otherwise empty."""
        return nothing_text(self)

    def _first_features(self) -> tuple[str, Integers]:
        """Return the name for the cheapest first feature, and the features that may be first."""
        return "cheapest feature", np.arange(self.items_.n_columns)

    def view(self) -> View:
        """Return what is shown: costs, and the features by the mean cost per row.

        ``rows`` is the share of the validation rows that acquire a feature or pay for a group,
        ``spent`` the mean cost of this per row.
        """
        view = super().view()
        text = ", ".join(self.certificate_texts)
        facts = [*view.facts, *self._size_facts(), *cost_facts(self)]
        return view._replace(
            heading=[self.title, *facts],
            made=cost_page(self, self._row_facts()),
            shown=acquired_page(self),
            facts=facts,
            terms=HOW_TO_READ,
            doubts=[f"What is known of how good it is: {text}."] if text else [],
            limits=CANNOT_TELL,
        )

    def _size_facts(self) -> list[str]:
        """Return the size of the model in words."""
        return []

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw a bar for the mean cost of each feature and group, and return the axes.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw into; by default those of a new figure.
        """
        check_is_fitted(self)
        return plot_costs(self, ax)

    # -- files -------------------------------------------------------------------------------------

    @classmethod
    def _read_parameters(cls, record: Mapping[str, Any]) -> dict[str, Any]:
        costs = FeatureCosts.from_dict(record["costs"])
        return {**super()._read_parameters(record), "costs": costs}

    def _fields(self) -> dict[str, Any]:
        return {**super()._fields(), "costs": self.costs_.to_dict()}

    def _read_columns(self, record: Mapping[str, Any]) -> None:
        super()._read_columns(record)
        self._set_columns(self._encoder, FeatureCosts.from_dict(record["costs"]))

    def _restore(self, record: Mapping[str, Any]) -> None:
        super()._restore(record)
        cost, expected = self.validation_cost_, float(self.item_shares_ @ self.items_.costs)
        if not abs(cost - expected) <= _TOLERANCE * (1 + expected):
            raise ValueError(
                f"validation cost must follow from its shares, {expected!r}, got {cost!r}"
            )

    def _sizes(self) -> dict[str, Any]:
        return {**super()._sizes(), "n_items": self.items_.n_items}

    @property
    def may_know_validation_labels(self) -> bool:
        """Whether `fit` may have used the labels of validation rows for a choice."""
        return False


def budgeted_from_record(record: Mapping[str, Any]) -> BudgetedClassifier:
    """Return the classifier in the record of another one; ModelFileError if there is none."""
    found = model_class(record.get("model"))
    if found is None or not issubclass(found, BudgetedClassifier):
        raise ModelFileError("a saved model must have a classifier that pays for features")
    model: BudgetedClassifier = found.from_record(record)
    return model
