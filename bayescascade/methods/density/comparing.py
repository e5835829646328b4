"""Comparison of densities, given by name, on held-out rows."""

import secrets
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Unpack

from numpy.typing import ArrayLike

from bayescascade.base.errors import ParameterError
from bayescascade.data.declarations import Declared
from bayescascade.data.schema import Rows
from bayescascade.data.table import Table, as_table
from bayescascade.methods.density.listed import DENSITIES
from bayescascade.model.comparison import Comparison
from bayescascade.model.halvings import Contender, Outcome, outcomes_of
from bayescascade.model.parameters import ComparisonParameters
from bayescascade.model.readable_density import ReadableDensity

Models = Iterable[str] | Mapping[str, str | ReadableDensity[Any]]


def compare(
    X: Rows | ArrayLike | Table,
    y: object = None,
    sample_weight: ArrayLike | str | None = None,
    *,
    models: Models | None = None,
    n_halvings: int = ComparisonParameters.n_halvings.default,
    n_jobs: int | None = ComparisonParameters.n_jobs.default,
    random_state: int | None = None,
    done: Callable[[Outcome], object] | None = None,
    **declared: Unpack[Declared],
) -> Comparison:
    """Learn densities from a random half of the rows, and score them on the other half.

    The halves are the same for all densities. A density with a higher score is better; one with
    fewer parts is easier to read.

    Parameters
    ----------
    X : DataFrame or other table, paths, mapping, array or Table
        The rows, as in `fit` of a density.
    y : ignored
        Not used; present by the convention of scikit-learn.
    sample_weight : (n_rows,) array of float >= 0, optional
        Number of rows that each row counts as. For tables and files it may be the name of a column.
    models : sequence of str, or mapping of str to str or density, optional
        Some of "auto", "leaf", "branch", "rules", "mixture", "hidden", "continuous", "histogram"
        and "det". The two after "mixture" are kinds of it. They have default parameters, or
        parameters that are chosen on the training half. "leaf", "branch" and
        "rules" take minutes. Or a mapping with your own densities by name, such as ``{"few leaves":
        LeafCascade(3)}``, which are not changed. By default, the models that take seconds.
    n_halvings : int >= 1
        Number of random splits into halves.
    n_jobs : int or None
        Densities learned at the same time; -1: one per core.
    random_state : int >= 0 or None
        Same seed, same result. The result of a model does not depend on the other models.
    done : function, optional
        Called with each `Outcome` as soon as it is computed.
    columns, drop, nominal, ordinal, continuous, missing
        Which columns to use and how to read them, unless X is a `Table`, which has its own.

    Returns
    -------
    Comparison
        The result, printed with a line for each density. `table` has the same as a DataFrame, and
        `best_` is the name of the best density. After Ctrl-C, it has the finished fits.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.
    DataError
        If the rows cannot be used, or there are fewer than two.
    """
    del y
    contenders = _contenders(models)
    ComparisonParameters.n_halvings.check(n_halvings)
    if random_state is not None:
        random_state = ComparisonParameters.random_state.check(random_state, "random_state")
    seed = secrets.randbits(64) if random_state is None else random_state
    table = as_table(X, sample_weight, **declared)
    outcomes: list[Outcome] = []
    interrupted = False
    try:
        for outcome in outcomes_of(table, contenders, repeats=n_halvings, seed=seed, n_jobs=n_jobs):
            outcomes.append(outcome)
            if done is not None:
                done(outcome)
    except KeyboardInterrupt:
        interrupted = True
    titles = {name: contender.title for name, contender in contenders.items()}
    return Comparison(table, tuple(contenders), tuple(outcomes), titles, seed, interrupted)


def _contenders(models: Models | None) -> Mapping[str, Contender]:
    """Return the densities to compare, by name."""
    if models is None:
        models = [name for name, listed in DENSITIES.items() if listed.is_quick]
    if not isinstance(models, Mapping):
        models = {name: name for name in models}
    if not models:
        raise ParameterError("models must name at least one density, got none")
    found = {}
    for name, model in models.items():
        if isinstance(model, ReadableDensity):
            found[name] = Contender.like(name, model)
        elif model in DENSITIES:
            found[name] = Contender.of(DENSITIES[model])
        else:
            raise ParameterError(f"models must be some of {', '.join(DENSITIES)}, got {model!r}")
    return found
