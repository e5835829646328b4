"""Base of classifiers with a gate: choice of a candidate, ways of rows, page and file.

Each subclass has a `_trial_of`; its `Learner` fits gates and local models.
"""

import copy
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import compress
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.arrays import Flags, Floats
from bayescascade.base.store import Saved, Within
from bayescascade.base.watch import Watch
from bayescascade.costs.acquisition import Walk
from bayescascade.costs.choice import PurchaseChoice, weighted_mean
from bayescascade.costs.classifier import BudgetedClassifier
from bayescascade.costs.limits import is_within
from bayescascade.costs.pages import CANNOT_TELL
from bayescascade.costs.within_budgets import WithinBudgets
from bayescascade.data.cell_policy import CellPolicy, Matrix
from bayescascade.data.given import GivenRows
from bayescascade.data.labels import TrainingRows
from bayescascade.data.levels import level_text
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.methods.budget.gated.boosted import LEAST, BoostedLearner, Boosting
from bayescascade.methods.budget.gated.choosing import GateCandidates, ScoredGate, best_within
from bayescascade.methods.budget.gated.gated import Gated, GatedWalk
from bayescascade.methods.budget.gated.growing import GateGrowth
from bayescascade.methods.budget.gated.linear import LinearScores
from bayescascade.methods.budget.gated.objective import GateProblem
from bayescascade.methods.budget.gated.parameters import BoostedParameters
from bayescascade.model.view import OF_ROWS, View
from bayescascade.report.page import Numbers, Page, PrintedTable

_LEVELS = CellPolicy(missing="level")

HOW_TO_READ = (
    (
        "",
        "The first table has a line for each column that every row reads. Rows with a gate score "
        "above the cut go to the full model, the others to the local model.",
    ),
    ("gate", "the change of the log odds that a row is hard if the column increases by one"),
    (
        "local",
        "the change of the log odds (or of the score) of the class if the column increases by one",
    ),
    ("rows", "the share of the rows that need a feature"),
    ("spent", "the mean cost per row"),
)
"""Terms of the page, or "", and their meanings."""

_OF_FULL = 0.4  # share of the time for the full model and its predictions
_MOST_OUTPUTS = 3  # classes with a column each


@dataclass(eq=False, repr=False, kw_only=True)
class GatedClassifier(WithinBudgets, BudgetedClassifier):
    """A classifier with a gate, which may be constant."""

    few_rows_text: ClassVar[str] = "a quarter of the rows, held out"
    _not_saved: ClassVar[tuple[str, ...]] = (*BudgetedClassifier._not_saved, "estimator")

    penalty: str | None = BoostedParameters.penalty.default
    tradeoff: float | None = BoostedParameters.tradeoff.default
    n_boosted: int = BoostedParameters.n_boosted.default
    max_depth: int = BoostedParameters.max_depth.default
    learning_rate: float = BoostedParameters.learning_rate.default
    leaf: str = BoostedParameters.leaf.default
    ridge: float = BoostedParameters.ridge.default
    missing: str = BoostedParameters.missing.default

    sent_share_: Annotated[float, Within(0, 1), Saved("sent_share")] = field(init=False)
    is_interrupted_: bool = field(init=False)

    _cells: CellPolicy = field(init=False)
    _model: Gated = field(init=False)
    _fit: ScoredGate | None = field(init=False)
    _trial: GateCandidates = field(init=False)

    # -- fitting -----------------------------------------------------------------------------------

    @abstractmethod
    def _trial_of(
        self, given: GivenRows, validation: GivenRows | None, watch: Watch, generator: Any
    ) -> GateCandidates:
        """Return the trial, in which nothing is tried yet."""

    @property
    def _cut(self) -> float | None:
        """The gate's cut if it is given."""
        return None

    def _try(
        self, budgets: Sequence[float | None], X: Any, y: Any, sample_weight: Any = None,
        X_val: Any = None, y_val: Any = None,
    ) -> GateCandidates:  # fmt: skip
        del budgets
        self.declares.check(self)
        watch = Watch(self.time_limit)
        generator = np.random.default_rng(self.random_state)
        given = GivenRows.labeled(X, y, sample_weight)
        with watch.watching(), watch.part(_OF_FULL, is_final=True):
            trial = self._trial_of(given, GivenRows.validating(X_val, y_val), watch, generator)
        self.is_interrupted_ = trial.try_each(self.items_, self._cut)
        return trial

    def _read(
        self, given: GivenRows, validation: GivenRows | None, own: BudgetedClassifier | None = None
    ) -> TrainingRows:
        """Return rows of positive weight, with the columns of the full model if it is budgeted."""
        self._cells = _LEVELS if own is None else own.cells
        training = self._read_labeled(given, validation, None if own is None else own._encoder)
        self.n_rows_ = len(training.rows)
        return training

    def _chosen(self, budget: float | None) -> Self:
        trial = self._trial
        model = copy.copy(self)
        model.budget = budget
        price = 0.0 if self.tradeoff is None else self.tradeoff
        best = model._fit = best_within(trial.fits, budget, price)
        model._model = scored = trial.nothing.nothing()
        if best is not None:
            model._model = scored = replace(trial.gated(best.fit), cut=best.cut)
            if not trial.validation.learns.all():
                whole = replace(best, fit=trial.learner.refitted(best.fit))
                of_all = replace(trial.gated(whole.fit), cut=best.cut)
                paid = self.items_.paid(of_all.used(trial.validation.rows))
                if budget is None or is_within(float(self.items_.total(paid).mean()), budget):
                    model._fit, model._model = whole, of_all
        rows = trial.training.validation_rows
        model._measure(rows, trial.watch)
        model.sent_share_ = float(model._model.sent(rows).mean())
        if best is not None and budget is not None and not model._reads_nothing:
            validation, wrongs = trial.validation, []
            for at in (scored, model._model):  # both must be better than nothing
                said = at.local_chances(validation.rows).argmax(axis=1) != validation.labels
                wrongs.append(np.where(at.sent(validation.rows), validation.full_wrong, said))
            weights = validation.weights
            wrong = max(wrongs, key=lambda one: weighted_mean(one, weights))
            nothing = validation.labels != trial.training.commonest
            choice = PurchaseChoice.of(validation.words, wrong, nothing, trial.training, weights)
            model._settle(choice)
        return model

    def _boosted_learner(
        self, problem: GateProblem, n_rounds: int, n_greedy: int, full_share: float | None
    ) -> BoostedLearner:
        """Return the learner of boosted trees; n_greedy: number of trees without a gate."""
        growth = GateGrowth(
            int(self.max_depth), float(self.ridge), LEAST, float(self.learning_rate)
        )
        boosting = Boosting(int(self.n_boosted), n_greedy, n_rounds, self.leaf == "newton")
        items = self._matrix_items
        return BoostedLearner(
            problem, items, boosting, growth, self.penalty, self.tradeoff, full_share
        )

    # -- hooks of budgeted classifiers -------------------------------------------------------------

    @property
    def cells(self) -> CellPolicy:  # type: ignore[override] # those of a budgeted full model
        """Which cells are accepted; see `CellPolicy`."""
        cells: CellPolicy = self.__dict__.get("_cells", _LEVELS)
        return cells

    def _features_read(self, rows: Matrix) -> Flags:
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
    def local_(self) -> Any:  # scores
        """The local model: log odds of the second of two classes, or a score per class."""
        check_is_fitted(self)
        return self._model.local

    @property
    def commonest_class_(self) -> Any:  # a label
        """Most common class of the training rows."""
        check_is_fitted(self)
        return self.classes_.tolist()[int(self._model.shares.argmax())]

    @property
    def path_(self) -> tuple[ScoredGate, ...]:
        """All candidates, with their useful cuts; not in saved models."""
        check_is_fitted(self, "_trial", msg="%(name)s must be fitted, and not read from a file")
        return tuple(self._trial.fits)

    def _probabilities(self, rows: Matrix) -> Floats:
        return self._model.probabilities(rows)

    @property
    def _means(self) -> Floats | None:
        return self._model.means if "_model" in self.__dict__ else None

    def _reasons(self, X: Any) -> list[str]:
        return route_texts(self._model, self._matrix(X), self.feature_texts)

    def view(self) -> View:
        """Return what is shown; probabilities are not of leaves."""
        return super().view()._replace(limits=(CANNOT_TELL[0], *OF_ROWS))

    # -- files -------------------------------------------------------------------------------------

    def _fields(self) -> dict[str, Any]:
        return {**super()._fields(), "gated": self._model.to_record()}

    def _restore(self, record: Mapping[str, Any]) -> None:
        super()._restore(record)
        self.is_interrupted_, self._fit = False, None
        source = np.asarray(self._encoder.source, np.int64)
        self._model = Gated.from_record(record["gated"], source, len(self.classes_))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")


def score_table(model: Gated, columns: list[str], classes: list[Any]) -> Page:
    """Return a line for each column with a coefficient in gate or local model, per unit."""
    if not (isinstance(model.gate, LinearScores) and isinstance(model.local, LinearScores)):
        return ()
    gate, local = model.gate.coef_[0], model.local.coef_
    if np.isinf(model.cut):
        gate = np.zeros_like(gate)
    used = np.flatnonzero((gate != 0) | local.any(axis=0))
    if not used.size:
        return ()
    numbers = [Numbers("gate", _texts(gate[used]))] if gate.any() else []
    if len(local) == 1:
        numbers.append(Numbers(f"local: {level_text(classes[1])}", _texts(local[0, used])))
    elif len(local) <= _MOST_OUTPUTS:
        numbers += [
            Numbers(f"local: {level_text(label)}", _texts(row[used]))
            for label, row in zip(classes, local, strict=True)
        ]
    else:
        numbers.append(Numbers("local: largest", _texts(np.abs(local[:, used]).max(axis=0))))
    return (PrintedTable([columns[column] for column in used], numbers, "column"),)


def route_texts(model: Gated, rows: Matrix, names: list[str]) -> list[str]:
    """Return in words the model of each row, and the features it read."""
    sent, used = model.sent(rows).tolist(), model.used(rows).tolist()
    where = {True: f"sent to {model.full.text}", False: "kept"}
    if model.cut == -np.inf:
        where[True] = f"all rows go to {model.full.text}"
    return [
        f"{where[one]}: reads {', '.join(compress(names, row)) or 'nothing'}"
        for one, row in zip(sent, used, strict=True)
    ]


def _texts(numbers: Any) -> list[str]:
    return [f"{number:.4g}" for number in numbers]
