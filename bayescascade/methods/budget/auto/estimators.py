"""AutoBudgetClassifier: for a budget, the classifier of the best method for the rows."""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

import samplers
from bayescascade.base.errors import DataError, ModelFileError, ParameterError
from bayescascade.base.store import Saved, stored
from bayescascade.base.validation import check_real, check_weights
from bayescascade.base.watch import Watch
from bayescascade.costs.classifier import BudgetedClassifier, budgeted_from_record
from bayescascade.costs.feature_costs import Costs, FeatureCosts
from bayescascade.costs.within_budgets import WithinBudgets
from bayescascade.data.cell_policy import CellPolicy
from bayescascade.data.given import GivenRows
from bayescascade.data.labels import check_labels, find_classes, label_codes
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.methods.budget.auto.parameters import AutoBudgetParameters
from bayescascade.methods.budget.auto.splits import Sample, ValidationSplit
from bayescascade.methods.budget.auto.trying import (
    EFFORTS,
    BudgetErrors,
    MethodScore,
    MethodTrials,
    ScoredClassifier,
    best_within,
    scored,
    without_cost,
)
from bayescascade.methods.budget.listed import BUDGET_LEARNERS
from bayescascade.model.listed import ListedBudgetLearner
from bayescascade.model.view import View, joined
from bayescascade.report.numbers import cost_texts
from bayescascade.report.page import Numbers, Pieces, PrintedTable

_ANY = CellPolicy(missing="level")
_FEWEST_BUDGETS = 3
_OF_CHOSEN = (
    "_encoder", "n_features_in_", "feature_names_in_", "n_rows_", "classes_", "costs_", "items_",
    "validation_cost_", "feature_shares_", "item_shares_", "notes_",
)  # fmt: skip


def _of_chosen(name: str) -> Any:  # Any: as in `BudgetedClassifier`
    """Return an attribute or method that is that of the chosen classifier."""

    def of_chosen(self: "AutoBudgetClassifier") -> Any:
        check_is_fitted(self)
        return getattr(self.model_, name)

    return property(of_chosen)


class _MethodTrial(NamedTuple):
    """The fitted classifiers, and the rows that validated them."""

    tried: list[BudgetErrors]
    found: list[ScoredClassifier]
    split: ValidationSplit
    watch: Watch
    skipped: tuple[str, ...]
    behind: tuple[str, ...]


@dataclass(eq=False, repr=False)
class AutoBudgetClassifier(WithinBudgets, BudgetedClassifier):
    """Tries classifiers for budgets, and keeps the best for these rows.

    Methods are compared with each other, and with buying nothing, on validation rows. Without
    labels of these, whole methods are cross-validated in 5 folds if there are fewer than 1,000
    rows; otherwise a quarter of the rows is held out. Of four or more methods, those that are
    behind at all budgets are given up after one, two or three of the folds, or after all have
    learned from a quarter of the rows. A method is chosen for a budget by its error there and
    by its mean error over all budgets.

    Parameters
    ----------
    methods : sequence of str or None
        Names as in `bayescascade budget --method`, such as ``("prune", "miser")``. With
        `sample_weight`, methods that do not support weights are left out. None: l1, cstc, miser,
        prune and fmcc, but not those that would take too long.
    effort : {"normal", "quick", "thorough"}
        "quick" tries l1 and prune in one round, with two folds or a quarter of the rows.
        "thorough" also tries astc and
        adapt-gbrt, gives no method up, and lets methods take ten times as long. The work is
        counted, so the result does not depend on the machine.
    time_limit : float > 0 or None
        Seconds, from its beginning, after which `fit` stops with the best result so far. Then there
        is one round, in which each method has up to half of the time that is left, and the choice
        may depend on the machine. None: no limit; the choice depends on rows and seed only.
    progress : function or None
        Called with a `samplers.Progress` when a method starts. Its phase is the name of the method.

    Attributes
    ----------
    model_ : BudgetedClassifier
        The chosen classifier.
    method_ : str
        Name of the chosen method.
    validation_error_, validation_error_error_ : float
        Error rate on the validation rows, and its standard error. The rate is biased downward,
        because the same rows chose the method.
    candidates_ : DataFrame
        All candidates within the budget, the best first: method, budget for which it was fitted,
        error rate, its standard error, mean cost of a row, and by how much the error rate is above
        that of the chosen one, with the standard error of this difference.
    skipped_ : tuple of str
        Methods that were not tried for lack of time, or because of the size of the table.
    behind_ : tuple of str
        Methods that were given up before the last round.
    is_interrupted_ : bool
        Whether Ctrl-C ended fit.

    All other attributes are those of `BudgetedClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from bayescascade import AutoBudgetClassifier
    >>> X = np.random.default_rng(0).normal(size=(300, 4))
    >>> model = AutoBudgetClassifier(budget=1.0, methods=("l1", "astc"), random_state=0)
    >>> model = model.fit(X, X[:, 2] > 0.5)
    >>> np.flatnonzero(model.feature_shares_).tolist()
    [2]
    """

    model_name: ClassVar[str] = "AutoBudgetClassifier"
    title: ClassVar[str] = "auto classifier"
    purpose: ClassVar[str] = (
        "Which class a row is of, by the method that suits the rows best within the budget."
    )
    missing: ClassVar[str] = "level"  # type: ignore[misc] # not a parameter here
    declares = AutoBudgetParameters

    _not_saved: ClassVar[tuple[str, ...]] = (*BudgetedClassifier._not_saved, "methods")

    costs: Costs = AutoBudgetParameters.costs.default
    _: KW_ONLY
    methods: Sequence[str] | None = AutoBudgetParameters.methods.default
    effort: str = AutoBudgetParameters.effort.default
    n_trees: int = AutoBudgetParameters.n_trees.default
    n_jobs: int | None = AutoBudgetParameters.n_jobs.default
    progress: Callable[[samplers.Progress], object] | None = None

    model_: BudgetedClassifier = field(init=False)
    method_: Annotated[str, Saved("method")] = field(init=False)
    validation_error_: float = field(init=False)
    validation_error_error_: float = field(init=False)
    skipped_: Annotated[tuple[str, ...], Saved("skipped")] = field(init=False)
    behind_: Annotated[tuple[str, ...], Saved("behind")] = field(init=False)
    _candidates: Annotated[tuple[MethodScore, ...], Saved("candidates")] = field(init=False)

    # -- fitting -----------------------------------------------------------------------------------

    @property
    def tried_methods(self) -> list[ListedBudgetLearner]:
        """The methods to try; ParameterError if one is unknown."""
        names = EFFORTS[self.effort][0] if self.methods is None else self.methods
        if isinstance(names, str) or not names or not set(names) <= set(BUDGET_LEARNERS):
            raise ParameterError(
                f"methods must be some of {', '.join(BUDGET_LEARNERS)}, got {names!r}"
            )
        return [BUDGET_LEARNERS[name] for name in names]

    def _try(
        self, budgets: Sequence[float | None], X: Any, y: Any, sample_weight: Any = None,
        X_val: Any = None, y_val: Any = None,
    ) -> _MethodTrial:  # fmt: skip
        """Return the trial of all methods for some budgets; None is the cost of all features."""
        self.declares.check(self)
        methods = self.tried_methods
        rows, validation, total = self._rows(X, y, sample_weight, X_val, y_val)
        amounts = {total if one is None else one for one in budgets}
        if len(amounts) < _FEWEST_BUDGETS:  # several budgets are better evidence about a method
            amounts |= {max(amounts) / 2, max(amounts) / 4}
        limits = sorted(amounts)
        if rows.weights is not None:
            methods = [each for each in methods if has_fit_parameter(each.made(), "sample_weight")]
            if not methods:
                raise ParameterError("sample_weight must be None for these methods, got weights")
        n_features = GivenRows.of(rows.X).frame().shape[1]
        split = ValidationSplit.of(rows, validation, np.random.default_rng(self.random_state))
        watch, requested = Watch(self.time_limit), methods
        if watch.seconds is None and self.methods is None:
            n_cells = split.n_fits * len(split.learning.y) * n_features
            work = [each.work(n_cells, np.unique(rows.y).size) for each in methods]
            most = max(EFFORTS[self.effort][1], min(work))
            methods = [each for each, of_it in zip(methods, work, strict=True) if of_it <= most]
        given = {k: getattr(self, k) for k in ("costs", "unknown", "n_jobs", "random_state")}
        trying = MethodTrials(split, limits, given, self.n_trees, self.progress, self.effort)
        tried: dict[str, BudgetErrors] = {}
        self.is_interrupted_ = False
        try:
            for one in trying.each(methods, watch):
                tried[one.method] = one
        except KeyboardInterrupt:
            if not tried:
                raise
            self.is_interrupted_ = True
        if not tried:
            raise ParameterError(
                f"time_limit must be enough for one of the methods, got {watch.seconds:g}"
            )
        kept = [one for one in tried.values() if one.found]
        kept = [one for one in kept if one.is_whole] or kept
        found, split = self._scored(trying, kept, watch)
        behind = tuple(name for name, one in tried.items() if not one.found)
        done = {*behind, *(one.method for one in kept)}
        skipped = tuple(each.name for each in requested if each.name not in done)
        if watch.seconds is not None and skipped and not self.is_interrupted_:
            watch.is_up = True
        return _MethodTrial(kept, found, split, watch, skipped, behind)

    def _scored(
        self, trying: MethodTrials, tried: list[BudgetErrors], watch: Watch
    ) -> tuple[list[ScoredClassifier], ValidationSplit]:
        """Return the candidates; the methods chosen for some budget learn from all rows."""
        split, seen = trying.split, np.ones_like(trying.split.plain)
        if not tried[0].is_whole:
            n_folds = trying.ends[0]
            split, seen = split.of_folds(n_folds), split.is_judged(n_folds)
        while True:
            shown = [one._replace(wrong=one.wrong[:, seen]) for one in tried]
            found = scored(shown, trying.budgets, split)
            best = {best_within(found, budget, split) for budget in trying.budgets}
            chosen = {one.candidate.method for one in best if one is not None}
            left = [k for k, one in enumerate(tried) if one.method in chosen and not one.is_final]
            try:
                for place in left:
                    tried[place] = trying.final(tried[place], watch)
            except KeyboardInterrupt:  # those that learned from fewer rows are kept
                self.is_interrupted_, left = True, []
            if not left:
                return found, split

    def _rows(
        self, X: Any, y: Any, sample_weight: Any, X_val: Any, y_val: Any
    ) -> tuple[Sample, Sample | None, float]:
        """Return training rows, validation rows, and the cost of all features."""
        owner = type(self).__name__
        given = GivenRows.labeled(X, y, sample_weight)
        if X_val is not None and y_val is None:
            raise ParameterError("y_val must have the labels of X_val, got None")
        validation = GivenRows.validating(X_val, y_val)
        encoder = MatrixEncoder.learn(given, _ANY)
        total = float(
            FeatureCosts.of(self.costs, encoder.columns).resolve(encoder.columns).costs.sum()
        )
        labels = check_labels(given.labels, "y", owner)
        weights = given.weights
        if weights is not None:
            weights = check_weights("sample_weight", weights, len(labels))
        rows = Sample(given.plain(), labels, weights)
        if len(rows.X) != len(labels):
            raise DataError(f"y must have a label per row, {len(rows.X)}, got {len(labels)}")
        if weights is not None:  # what has no weight is in no fold
            rows = rows.part(weights > 0)
        classes, _ = find_classes(rows.y, "y")
        if validation is None:
            return rows, None, total
        validation_labels = check_labels(validation.labels, "y_val", owner)
        label_codes(validation_labels, classes, "y_val")
        return rows, Sample(validation.plain(), validation_labels), total

    def _chosen(self, budget: float | None) -> Self:
        trial = self._trial
        most = float("inf") if budget is None else budget
        best = best_within(trial.found, most, trial.split)
        if best is None:
            cheapest = min(trial.found, key=lambda one: (not one.is_final, one.candidate.cost))
            best = without_cost(cheapest, most, trial.split)
        model = copy.copy(self)
        model.budget = budget
        model._become(best.candidate.method, best.model)
        model.validation_error_ = best.candidate.error
        model.validation_error_error_ = best.candidate.standard_error
        model.stopped_after_ = trial.watch.seconds if trial.watch.is_up else None
        model.skipped_, model.behind_ = trial.skipped, trial.behind
        possible = [one for one in trial.found if one.candidate.budget <= most] or [best]
        model._candidates = tuple(
            sorted(
                (one.beside(best, len(possible), trial.split) for one in possible),
                key=lambda one: (one.error, one.cost),
            )
        )
        return model

    def _become(self, method: str, model: BudgetedClassifier) -> None:
        """Take the attributes of the chosen classifier."""
        self.method_, self.model_ = method, model
        for name in _OF_CHOSEN:
            self.__dict__.pop(name, None)
            if name in vars(model):
                setattr(self, name, vars(model)[name])
        self.choice_ = model.choice_

    def fit_budgets(
        self, budgets: Sequence[float], X: Any, y: Any, X_val: Any = None, y_val: Any = None
    ) -> Iterator[tuple[float, Self]]:
        """Yield, for each budget, the best candidate; all budgets share candidates.

        After Ctrl-C, yields the best candidates so far, and then raises KeyboardInterrupt.
        """
        model: Any = clone(self)
        model.progress = self.progress
        model._trial = model._try(budgets, X, y, None, X_val, y_val)
        for budget in budgets:
            yield budget, model._chosen(budget)
        if model.is_interrupted_:
            raise KeyboardInterrupt

    # -- hooks of budgeted classifiers: those of the chosen one -----------------------------------

    @property
    def cells(self) -> CellPolicy:  # type: ignore[override] # those of the chosen one
        """Which cells are accepted; see `CellPolicy`."""
        return self.model_.cells if "model_" in vars(self) else _ANY

    ignored = _of_chosen("ignored")
    _means = _of_chosen("_means")
    _features_read = _of_chosen("_features_read")
    _answers = _of_chosen("_answers")
    _walk = _of_chosen("_walk")
    _reads_nothing = _of_chosen("_reads_nothing")
    _cut_down = _of_chosen("_cut_down")
    _probabilities = _of_chosen("_probabilities")
    _reasons = _of_chosen("_reasons")
    _first_features = _of_chosen("_first_features")
    _size_facts = _of_chosen("_size_facts")

    @property
    def may_know_validation_labels(self) -> bool:
        """Whether `fit` may have chosen something by the labels of validation rows."""
        return True

    @property
    def commonest_class_(self) -> Any:  # a label
        """Most common class of the training rows."""
        check_is_fitted(self)
        return self.model_.commonest_class_

    # -- what a user sees --------------------------------------------------------------------------

    @property
    def candidates_(self) -> pd.DataFrame:
        """All candidates within the budget, the best first."""
        check_is_fitted(self)
        return pd.DataFrame([stored(one) for one in self._candidates])

    @property
    def _firsts(self) -> dict[str, MethodScore]:
        """The best candidate of each method, the best first."""
        firsts: dict[str, MethodScore] = {}
        for one in self._candidates:
            firsts.setdefault(one.method, one)
        return firsts

    @property
    def skipped_text(self) -> str:
        """Which methods were not tried or given up; empty if all were tried to the end."""
        why = "of the size of the table" if self.stopped_after_ is None else "the time was up"
        why = "it was interrupted" if self.is_interrupted_ else why
        reasons = {"given up early": self.behind_, f"not tried because {why}": self.skipped_}
        return "; ".join(
            f"{words}: {', '.join(names)}" for words, names in reasons.items() if names
        )

    @property
    def settings_text(self) -> str:
        """The chosen method, its size and settings in words."""
        if self.model_._reads_nothing:
            return "nothing is bought"
        facts = [*self.model_._size_facts(), *self.model_.certificate_texts]
        settings = ", ".join([self.model_.title, *facts])
        settings = settings.replace("at the time limit of", "after its share of the time,")
        near = [
            f"{name} {one.above_text}"
            for name, one in self._firsts.items()
            if name != self.method_ and one.above <= one.above_error
        ]
        return "; within a standard error: ".join([settings, *([", ".join(near)] if near else [])])

    @property
    def certificate_texts(self) -> list[str]:
        """The chosen method, and the lines of its print about proofs."""
        if self.model_._reads_nothing:
            return ["chosen: to buy nothing", *super().certificate_texts]
        return [
            f"chosen: {self.model_.title} ({self.method_})",
            *self.model_.certificate_texts,
            *super().certificate_texts,
        ]

    # -- files -------------------------------------------------------------------------------------

    def _fields(self) -> dict[str, Any]:
        return {
            **super()._fields(),
            "validation": [self.validation_error_, self.validation_error_error_],
            "chosen": self.model_.to_record(),
        }

    def _restore(self, record: Mapping[str, Any]) -> None:
        self.model_ = model = budgeted_from_record(record["chosen"])
        super()._restore(record)
        own = self._encoder.columns
        if model._encoder.columns != own or not np.array_equal(model.classes_, self.classes_):
            raise ModelFileError("a saved chosen model must be of the columns and classes of all")
        self.is_interrupted_ = False
        error, deviation = record["validation"]
        self.validation_error_ = check_real("validation_error", error, minimum=0.0, maximum=1.0)
        self.validation_error_error_ = check_real("validation_error", deviation, minimum=0.0)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def view(self) -> View:
        """Return what is shown: the features by money spent, and the best of each method."""
        view, chosen, firsts = super().view(), self.model_.view(), self._firsts
        columns = [
            Numbers("error", [f"{100 * one.error:.1f} %" for one in firsts.values()]),
            Numbers("above the chosen", [one.above_text for one in firsts.values()]),
            Numbers("cost", cost_texts([one.cost for one in firsts.values()])),
        ]
        table = PrintedTable(list(firsts), columns, "method")
        words = "errors on the rows that chose; ±: standard error of the difference"
        notes = [Pieces([text], "dim") for text in (words, self.skipped_text) if text]
        return view._replace(
            shown=joined(view.shown, (table, *notes)), terms=chosen.terms, limits=chosen.limits
        )
