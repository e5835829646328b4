"""Classifiers within budgets, as ``bayescascade budget`` learns them: a method, several budgets.

Validation rows, or cross-validation of few rows, choose what is not given: what a forest's growth
weighs costs by, how much error is worth a tree's cost, and whether anything is bought.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias, TypedDict, Unpack

from sklearn.ensemble import RandomForestClassifier

from bayescascade.costs.items import FeatureCosts
from bayescascade.costs.limits import BudgetError
from bayescascade.data.dealing import DealtRows
from bayescascade.methods.cost_trees.estimators import BudgetTreeClassifier
from bayescascade.methods.forests.base import BudgetedClassifier
from bayescascade.methods.forests.budgeted_forest import BudgetedForestClassifier
from bayescascade.methods.forests.selected_forest import SelectedForestClassifier
from bayescascade.methods.prunings.budget_prune import BudgetPrune

_ALPHAS = (0.0, 4.0, 16.0, 64.0)  # of grown trees; the best on validation rows is taken
_COST_EXPONENTS = (0.0, 0.5, 1.0)  # likewise


class _Common(TypedDict, total=False):
    """Parameters that all of these classifiers have; what is left out has its default."""

    costs: FeatureCosts
    n_jobs: int
    unknown: str
    time_limit: float | None


Learned: TypeAlias = Iterator[tuple[float, BudgetedClassifier | BudgetError]]
"""For each budget a classifier, or why there is none."""


def _one_each(
    make: Callable[[float], BudgetedClassifier], parts: DealtRows, budgets: Sequence[float]
) -> Learned:
    """Yield what is made and fitted for each budget, or why there is none."""
    for amount in budgets:
        model: Any = make(amount)
        try:
            model.fit(*parts.learning)
        except BudgetError as error:
            yield amount, error
            continue
        if getattr(model, "is_interrupted_", False):
            raise KeyboardInterrupt
        yield amount, model


def _grown(
    parts: DealtRows, budgets: Sequence[float], n_trees: int, **common: Unpack[_Common]
) -> Learned:
    """Yield a forest grown for each budget, or why there is none."""
    make = partial(
        BudgetedForestClassifier,
        alpha=_ALPHAS,
        cost_exponent=_COST_EXPONENTS,
        max_trees=n_trees,
        random_state=parts.seed,
        **common,
    )
    return _one_each(lambda amount: make(budget=amount), parts, budgets)


def _pruned(
    parts: DealtRows, budgets: Sequence[float], n_trees: int, **common: Unpack[_Common]
) -> Learned:
    """Yield one forest pruned for each budget."""
    first, *others = budgets
    forest = RandomForestClassifier(n_trees, criterion="entropy", max_features=None)
    model = BudgetPrune(forest, budget=first, random_state=parts.seed, **common)
    model.fit(*parts.learning)
    if model.is_interrupted_:
        raise KeyboardInterrupt
    yield first, model
    if others:
        path = model.path(budgets=others)
        yield from zip(others, path, strict=False)
        if path.interrupted:
            raise KeyboardInterrupt


def _selected(
    parts: DealtRows, budgets: Sequence[float], n_trees: int, **common: Unpack[_Common]
) -> Learned:
    """Yield for each budget a forest of the features bought for all rows, or why there is none."""
    make = partial(SelectedForestClassifier, n_trees=n_trees, random_state=parts.seed, **common)
    return _one_each(lambda amount: make(budget=amount), parts, budgets)


def _trees(
    parts: DealtRows, budgets: Sequence[float], n_trees: int, **common: Unpack[_Common]
) -> Learned:
    """Yield for each budget the tree, of those tried for all, that errs least on other rows."""
    del n_trees
    X, y, *others = parts.learning
    X_val, y_val = others or (None, None)
    model = BudgetTreeClassifier(budget=max(budgets), random_state=parts.seed, **common)
    with suppress(BudgetError):  # which each says of its own budget
        model.fit(X, y, X_val=X_val, y_val=y_val)
    for amount in budgets:
        try:
            found = model.within(amount)
        except BudgetError as error:
            yield amount, error
            continue
        if found.run_.interrupted:
            raise KeyboardInterrupt
        yield amount, found


Learner: TypeAlias = Callable[..., Learned]

METHODS: Mapping[str, Learner] = {
    "forest": _grown,
    "prune": _pruned,
    "select": _selected,
    "tree": _trees,
}
"""How classifiers are learned, by name: of rows, costs and budgets, with most trees, workers, what
an unknown level is, and the seconds for each fit.

They raise KeyboardInterrupt also where Ctrl-C ended a fit early: what it kept is not what was asked
for.
"""
