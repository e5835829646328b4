"""Who is treated and how they fared: two arms and two outcomes, and whether the arms overlap."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayescascade.base.errors import DataError, ParameterError, warn_user
from bayescascade.data.given import GivenRows
from bayescascade.data.labels import check_labels, find_classes
from bayescascade.data.levels import level_text
from bayescascade.report.numbers import share_text

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_LEAST_ROWS = 10  # of an arm
_EXTREME, _MOST_EXTREME, _NO_OVERLAP = 0.05, 0.1, 0.9  # propensity; shares of rows beyond it


class TreatedRows(NamedTuple):
    """Rows of the matrix, whether their outcome is good, and whether they are treated."""

    rows: Floats  # (n, d)
    y: Flags  # (n,)
    treatment: Flags  # (n,)


def without_treatment(given: GivenRows, treatment: Any) -> tuple[GivenRows, Any]:
    """Return rows without the column that holds arms, and the arms; errors if X holds them, too."""
    name = treatment if isinstance(treatment, str) else getattr(treatment, "name", None)
    is_column = given.is_named and name is not None and name in given.cells.columns
    if not isinstance(treatment, str):
        if is_column:
            raise _held(str(name))
        return given, treatment
    if not is_column:
        raise ParameterError(f"treatment must name a column of X, got {treatment!r}")
    cells = given.cells.drop(columns=treatment)
    return GivenRows(cells, given.labels, given.weights), given.cells[treatment]


def _held(name: str) -> DataError:
    return DataError(f'X must not hold the treatment, got it as column "{name}"')


def check_arms(training: TreatedRows, arms: NDArray[Any], columns: Sequence[str]) -> None:
    """Raise DataError unless each arm has ten rows and both outcomes, and no column is the arms."""
    for name, values in zip(columns, training.rows.T, strict=True):
        if np.array_equal(values, training.treatment) or np.array_equal(
            values, ~training.treatment
        ):
            raise _held(name)
    for place, arm in enumerate(arms.tolist()):
        of = training.y[training.treatment == bool(place)]
        words = f'arm "{level_text(arm)}"'
        if len(of) < _LEAST_ROWS:
            raise DataError(f"{words} must have at least {_LEAST_ROWS} rows, got {len(of)}")
        if of.all() or not of.any():
            raise DataError(f"{words} must have rows of both outcomes, got one")


def two_classes(
    labels: Any, name: str, owner: str, n_rows: int, second: Any = None, parameter: str = ""
) -> tuple[Flags, NDArray[Any]]:
    """Return whether labels are the second of two, or the one given, (n_rows,), and both."""
    checked = check_labels(labels, name, owner)
    if len(checked) != n_rows:
        raise DataError(f"{name} must have a label per row of X, {n_rows:,}, got {len(checked):,}")
    classes, codes = find_classes(checked, name)
    if len(classes) != 2:
        raise DataError(f"{name} must have two values, got {len(classes)}")
    if second is None:
        return codes == 1, classes
    if second not in classes.tolist():
        choices = " or ".join(map(repr, classes.tolist()))
        raise ParameterError(f"{parameter} must be {choices}, got {second!r}")
    place = classes.tolist().index(second)
    return codes == place, classes if place else classes[::-1]


def second_of(labels: Any, known: NDArray[Any], name: str, owner: str, n_rows: int) -> Flags:
    """Return whether labels are the second of two that are known, both of which there must be."""
    found, classes = two_classes(labels, name, owner, n_rows)
    if set(classes.tolist()) != set(known.tolist()):
        raise DataError(f"{name} must be values of fit, {known.tolist()}, got {classes.tolist()}")
    return found if classes.tolist() == known.tolist() else ~found


def check_propensity(propensity: ArrayLike | None, n_rows: int) -> Any:
    """Return a known propensity as a number or (n_rows,) array; ParameterError unless in (0, 1)."""
    if propensity is None:
        return None
    given = np.asarray(propensity, np.float64)
    if given.shape not in ((), (n_rows,)):
        raise ParameterError(f"propensity must be a number or {n_rows} of them, got {given.shape}")
    wrong = np.atleast_1d(~((given > 0.0) & (given < 1.0)))
    if wrong.any():
        value = np.atleast_1d(given)[wrong][0]
        raise ParameterError(f"propensity must be > 0 and < 1, got {value:g}")
    return given


def check_overlap(propensity: Floats, treatment: Flags, is_estimated: bool) -> None:
    """Raise DataError if arms do not overlap, and warn where they hardly do."""
    edge = np.minimum(propensity, 1.0 - propensity)
    other = np.where(treatment, 1.0 - propensity, propensity)
    if is_estimated and np.mean(other < _EXTREME) > _NO_OVERLAP:
        raise DataError(
            "arms must overlap, got columns that determine the arm of nearly every row: rows of "
            "one arm cannot be compared with rows of the other"
        )
    extreme = float(np.mean(edge < _EXTREME))
    if extreme > _MOST_EXTREME:
        warn_user(UserWarning(
            f"arms overlap little: {share_text(extreme)} of rows have a probability under "
            f"{_EXTREME:g} of one arm, so effects there rest on few rows; target \"overlap\" "
            "counts them least"
        ))  # fmt: skip
