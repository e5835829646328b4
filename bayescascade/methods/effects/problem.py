"""The problem of learning a function of effects from labels and weights of rows, and its result."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayescascade.base.arrays import Flags, Floats
from bayescascade.base.errors import DataError, ParameterError, warn_user
from bayescascade.data.given import GivenRows
from bayescascade.data.labels import check_labels, find_classes
from bayescascade.data.levels import level_text
from bayescascade.methods.effects.adjustment import Nuisance, doubly_robust, nuisance, propensities
from bayescascade.methods.effects.losses import Arms, effective_size, of_target, target_weights
from bayescascade.methods.effects.measured import EffectSlope, MeasuredEffects
from bayescascade.methods.effects.posterior import EffectPosterior
from bayescascade.report.numbers import share_text

_LEAST_ROWS = 10  # minimum for an arm
EXTREME = 0.05
"""An arm with a smaller probability has few rows like these."""
_MOST_EXTREME, _NO_OVERLAP = 0.1, 0.9  # shares of rows with such a probability


class TreatedRows(NamedTuple):
    """Rows of the matrix, whether their outcome is good, and whether they are treated."""

    rows: Floats  # (n, d)
    y: Flags  # (n,)
    treatment: Flags  # (n,)
    weights: Floats  # (n,) > 0, with mean one


def without_treatment(given: GivenRows, treatment: Any) -> tuple[GivenRows, Any]:
    """Return rows without the column of arms, and the arms; errors if X also contains them."""
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
    """Return whether labels are the second class, or the one given, (n_rows,), and both classes."""
    checked = _checked(labels, name, owner, n_rows)
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


def _checked(labels: Any, name: str, owner: str, n_rows: int) -> NDArray[Any]:
    checked = check_labels(labels, name, owner)
    if len(checked) != n_rows:
        raise DataError(f"{name} must have a label per row of X, {n_rows:,}, got {len(checked):,}")
    return checked


def second_of(labels: Any, known: NDArray[Any], name: str, owner: str, n_rows: int) -> Flags:
    """Return whether labels are the second of two known classes."""
    checked = _checked(labels, name, owner, n_rows)
    wrong = sorted(set(checked.tolist()) - set(known.tolist()), key=str)
    if wrong:
        raise DataError(f"{name} must be values of fit, {known.tolist()}, got {wrong[0]!r}")
    return np.asarray(checked == known[1], np.bool_)


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
    """Raise DataError if arms do not overlap, and warn if they hardly do."""
    other = np.where(treatment, 1.0 - propensity, propensity)
    if is_estimated and np.mean(other < EXTREME) > _NO_OVERLAP:
        raise DataError(
            "arms must overlap, got columns that determine the arm of nearly every row: rows of "
            "one arm cannot be compared with rows of the other"
        )
    extreme = overlap_of(propensity)[2]
    if extreme > _MOST_EXTREME:
        warn_user(UserWarning(
            f"arms overlap little: {share_text(extreme)} of rows have a probability under "
            f"{EXTREME:g} of one arm, so effects there rest on few rows; target \"overlap\" "
            "counts them least"
        ))  # fmt: skip


def overlap_of(propensity: Floats) -> tuple[float, float, float]:
    """Return the ends of 90 % of propensities, and the share that is extreme for one arm."""
    low, high = np.quantile(propensity, (0.05, 0.95)).tolist()
    return low, high, float(np.mean(np.minimum(propensity, 1.0 - propensity) < EXTREME))


class EffectProblem(NamedTuple):
    """Labels and weights of rows in arms, or pseudo-outcomes of all rows together."""

    rows: Floats  # (n, d)
    labels: Floats  # (n,)
    weights: Floats  # (n,) > 0
    treatment: Flags
    is_adjusted: bool
    surrogate: str
    combine: str

    @property
    def is_least_squares(self) -> bool:
        """Whether the risk is a mean of squares."""
        return self.surrogate == "square" and self.combine == "mean"

    @property
    def arms(self) -> Arms:
        """The rows by arms, if labels are signs."""
        return Arms.of((self.labels > 0) == self.treatment, self.treatment, self.weights)

    @property
    def even_weights(self) -> Floats:
        """Weights of mean one, with equal sums in both arms, (n,)."""
        weights = self.weights
        if not self.is_adjusted:
            sums = np.bincount(self.treatment, weights, 2)
            weights = weights / sums[self.treatment.astype(int)]
        return np.asarray(weights / weights.mean())

    def part(self, chosen: NDArray[Any]) -> "EffectProblem":
        """Return some of the rows."""
        names = ("rows", "labels", "weights", "treatment")
        return self._replace(**{name: getattr(self, name)[chosen] for name in names})

    def posterior(self, features: Floats, penalty: float, strength: float | None) -> Any:
        """Return the density over functions."""
        treatment = None if self.is_adjusted else self.treatment
        return EffectPosterior(
            features, self.labels, self.weights, treatment, surrogate=self.surrogate,
            combine=self.combine, penalty=penalty, strength=strength,
        )  # fmt: skip

    def risk(self, h: Floats) -> float:
        """Return the mean or maximum of risks."""
        risks = self.posterior(np.zeros((len(h), 0)), 1.0, 1.0).risks(h)
        return float(risks.max() if self.combine == "max" else risks.mean())


class FunctionFit(NamedTuple):
    """A fitted function, and its properties."""

    function: Any  # one of `functions`, or one of scikit-learn
    posterior: EffectPosterior | None
    objective: float
    exact: Any = None  # with a gap; None without a proof
    penalty: float | None = None
    length: float | None = None
    held_out: Floats | None = None  # held-out values of h
    slope: EffectSlope | None = None  # of labels on them; None if not tested


class ArmsProblem(NamedTuple):
    """A problem, effective sizes of the arms (not treated, treated), and effects by arms."""

    problem: EffectProblem
    sizes: Floats  # (2,)
    average: MeasuredEffects | None  # doubly robust; None without pseudo-outcomes
    by_arms: FunctionFit | None = None  # the T-learner


def compared(
    training: TreatedRows,
    known: Any,
    adjust: str,
    target: Any,
    seed: int,
    n_jobs: int | None,
    n_trees: int,
) -> Nuisance:
    """Return the estimates that an adjustment and a target need."""
    X, y, treatment, weights = training
    if adjust != "none":
        return nuisance(X, y, treatment, known, seed, n_jobs, weights, n_trees)
    e = np.full(len(y), 0.5)
    if isinstance(target, str):
        e = propensities(X, treatment, known, seed, n_jobs, weights, n_trees)
    return Nuisance(e, np.zeros(0), np.zeros(0))


def posed(
    training: TreatedRows, found: Nuisance, adjust: str, target: Any, surrogate: str, combine: str
) -> ArmsProblem:
    """Return labels and weights for an adjustment and a target (a name or weights (n,))."""
    y, treatment, e, own = training.y, training.treatment, found.propensity, training.weights
    is_named = isinstance(target, str)
    if is_named:
        weights = own * target_weights(target, e, treatment)
    else:
        weights = target
        if not (weights > 0.0).all():
            raise DataError("target must be > 0 in every row")
        weights = own * weights
    sizes = np.array([effective_size(weights[arm]) for arm in (~treatment, treatment)])
    labels, average, by_arms = np.where(y == treatment, 1.0, -1.0), None, None
    if adjust != "none":
        weights = own * of_target(target, e) if is_named else weights
        labels = doubly_robust(y, treatment, *found[:3])
        average = _average(y, treatment, found, weights)
        held_out = found.treated - found.untreated
        by_arms = FunctionFit(found.function, None, np.nan, held_out=held_out)
    if adjust == "residuals":
        mean = found.untreated + e * (found.treated - found.untreated)
        labels = (y - mean) / (treatment - e)
        weights = (treatment - e) ** 2 * (own if is_named else weights)
    given = training.rows, labels, weights, treatment
    return ArmsProblem(
        EffectProblem(*given, adjust != "none", surrogate, combine), sizes, average, by_arms
    )


def _average(y: Flags, treatment: Flags, found: Nuisance, weights: Floats) -> MeasuredEffects:
    """Return doubly robust means of both arms, as one group; its intervals are those of shares."""
    expected, means, sizes = (found.untreated, found.treated), np.empty((1, 2)), np.empty((1, 2))
    own = weights / np.where(treatment, found.propensity, 1.0 - found.propensity)
    for place, arm in enumerate((~treatment, treatment)):
        scores = weights * expected[place] + arm * own * (y - expected[place])
        means[0, place] = scores.sum() / weights.sum()
        sizes[0, place] = min(effective_size(own[arm]), arm.sum())
    n_rows = np.array([[np.sum(~treatment), np.sum(treatment)]])
    return MeasuredEffects(n_rows, sizes, np.clip(means, 0.0, 1.0))
