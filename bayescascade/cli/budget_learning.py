"""What ``bayescascade budget`` learns: rows dealt into parts, and a classifier for each budget."""

import secrets
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from bayescascade.cli.learning import listed
from bayescascade.cli.rows import open_rows, read_labeled

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from bayescascade.costs.items import FeatureCosts
    from bayescascade.costs.limits import BudgetError
    from bayescascade.methods.forests.base import BudgetedClassifier

__all__ = ["METHODS", "DealtRows", "read_dealt"]

_ALPHAS = (0.0, 4.0, 16.0, 64.0)  # of grown trees; the best on validation rows is taken
_COST_EXPONENTS = (0.0, 0.5, 1.0)  # likewise
_TREE_NATS = (1.0, 10.0, 30.0, 100.0, 300.0, 1000.0)  # of reading everything, for every row
_TREE_STEPS = 10_000
_SEED_BITS = 32  # as many as scikit-learn takes


class DealtRows(NamedTuple):
    """The rows of a file, dealt into three parts: to learn from, to measure costs, to test.

    Parameters
    ----------
    source : str
        What the file is called.
    X : tuple of DataFrame
        The features in each part.
    y : tuple of (n_rows,) array
        The labels.
    seed : int
        What they were dealt by.
    """

    source: str
    X: "tuple[pd.DataFrame, ...]"
    y: "tuple[NDArray[np.generic], ...]"
    seed: int

    @property
    def n_rows(self) -> list[int]:
        """Rows in each part."""
        return [len(labels) for labels in self.y]


def read_dealt(data: str, options: dict[str, Any]) -> "tuple[DealtRows, FeatureCosts]":
    """Read rows and costs, and deal the rows."""
    import numpy as np

    from bayescascade.data.dealing import deal_by_class
    from bayescascade.data.labels import check_labels, find_classes

    source = open_rows(data)
    target = options["target"]
    X, y, _ = read_labeled(
        source, target, columns=listed(options["columns"]), drop=listed(options["drop"])
    )
    costs = _read_costs(options["costs"], source.names, list(X.columns))
    labels = check_labels(y, f'column "{target}"', owner="budget")
    find_classes(labels, f'column "{target}"')  # refuses a single one
    seed = secrets.randbits(_SEED_BITS) if options["seed"] is None else options["seed"]
    share = options["test_share"]
    part_of = deal_by_class(labels, [1 - 2 * share, share, share], np.random.default_rng(seed))
    chosen = [part_of == part for part in range(3)]
    if not all(rows.any() for rows in chosen):
        raise click.UsageError(
            f"--test-share must leave rows for each part, got {share:g} of {len(X):,} rows"
        )
    return (
        DealtRows(
            source.label,
            tuple(X[rows].reset_index(drop=True) for rows in chosen),
            tuple(labels[rows] for rows in chosen),
            seed,
        ),
        costs,
    )


def _read_costs(
    path: str | None, columns: Sequence[str], features: Sequence[str]
) -> "FeatureCosts":
    """Return what features cost, by a file of costs for any columns of the data.

    Raises
    ------
    DataError
        If the file cannot be read, or is about other columns; names it.
    """
    from bayescascade.base.errors import DataError, ParameterError
    from bayescascade.costs.items import FeatureCosts

    if path is None:
        return FeatureCosts()
    costs = FeatureCosts.read_csv(path)
    try:
        costs.resolve(columns)
    except ParameterError as error:
        raise DataError(f"{path}: {error}") from None
    return costs.among(features)


def _grown(
    parts: DealtRows, costs: "FeatureCosts", budgets: Sequence[float], options: dict[str, Any]
) -> "Iterator[tuple[float, BudgetedClassifier | BudgetError]]":
    """Yield a forest grown for each budget, or why there is none.

    Raises
    ------
    KeyboardInterrupt
        Also where Ctrl-C ended a fit early: what it kept is not what was asked for.
    """
    from bayescascade.costs.limits import BudgetError
    from bayescascade.methods.forests.budgeted_forest import BudgetedForestClassifier

    for amount in budgets:
        model = BudgetedForestClassifier(
            costs=costs,
            budget=amount,
            alpha=_ALPHAS,
            cost_exponent=_COST_EXPONENTS,
            max_trees=options["n_trees"],
            n_jobs=options["n_jobs"],
            random_state=parts.seed,
        )
        try:
            model.fit(parts.X[0], parts.y[0], parts.X[1], parts.y[1])
        except BudgetError as error:
            yield amount, error
            continue
        if model.is_interrupted_:
            raise KeyboardInterrupt
        yield amount, model


def _pruned(
    parts: DealtRows, costs: "FeatureCosts", budgets: Sequence[float], options: dict[str, Any]
) -> "Iterator[tuple[float, BudgetedClassifier]]":
    """Yield one forest pruned for each budget; raises KeyboardInterrupt as `_grown`."""
    from sklearn.ensemble import RandomForestClassifier

    from bayescascade.methods.prunings.budget_prune import BudgetPrune

    first, *others = budgets
    forest = RandomForestClassifier(options["n_trees"], criterion="entropy", max_features=None)
    model = BudgetPrune(
        forest, costs=costs, budget=first, n_jobs=options["n_jobs"], random_state=parts.seed
    ).fit(parts.X[0], parts.y[0], parts.X[1], parts.y[1])
    if model.is_interrupted_:
        raise KeyboardInterrupt
    yield first, model
    if others:
        path = model.path(budgets=others)
        yield from zip(others, path, strict=False)
        if path.interrupted:
            raise KeyboardInterrupt


def _trees(
    parts: DealtRows, costs: "FeatureCosts", budgets: Sequence[float], options: dict[str, Any]
) -> "Iterator[tuple[float, BudgetedClassifier | BudgetError]]":
    """Yield for each budget the tree, of several tradeoffs, that errs least on validation rows.

    Raises
    ------
    KeyboardInterrupt
        As `_grown`.
    """
    import numpy as np

    from bayescascade.costs.limits import too_low
    from bayescascade.methods.cost_trees.estimators import BudgetTreeClassifier

    X, y = parts.X[1], parts.y[1]
    tried = []
    everything = max(float(costs.resolve(list(X.columns)).costs.sum()), 1e-9)
    for nats in _TREE_NATS:
        model = BudgetTreeClassifier(
            costs=costs,
            tradeoff=nats / everything,
            n_jobs=options["n_jobs"],
            random_state=parts.seed,
            n_steps=_TREE_STEPS,
        ).fit(parts.X[0], parts.y[0], X_val=X)
        if model.run_.interrupted:
            raise KeyboardInterrupt
        error = float(np.mean(model.predict(X) != y))
        tried.append((error, model.validation_cost_, model))
    for amount in budgets:
        within = [one for one in tried if one[1] <= amount]
        if within:
            yield amount, min(within, key=lambda one: one[:2])[2]
        else:
            least = min(one[1] for one in tried)
            yield amount, too_low(amount, least, "the mean cost of the cheapest tree")


METHODS = {"forest": _grown, "prune": _pruned, "tree": _trees}
"""How classifiers are learned, by the option ``--method``."""
