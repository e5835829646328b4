"""Fitting a kernel function to labels and weights of rows, with given or chosen scales."""

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cholesky
from scipy.optimize import nnls
from scipy.spatial.distance import pdist
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import ParameterError
from bayescascade.methods.effects.adjustment import Growth, grow
from bayescascade.methods.effects.functions import (
    ForestFunction,
    Kernel,
    KernelBasis,
    KernelFunction,
    SumFunction,
    choose_landmarks,
    named_kernel,
    scales_by_evidence,
)
from bayescascade.methods.effects.hinge import MOST_EXACT, by_machines, solve_hinge
from bayescascade.methods.effects.measured import EffectSlope, MeasuredEffects
from bayescascade.methods.effects.parameters import AUTO, EXTENTS, Extent
from bayescascade.methods.effects.posterior import EffectPosterior
from bayescascade.methods.effects.problem import ArmsProblem, EffectProblem, FunctionFit
from bayescascade.model.standard_errors import left_out_slope

_PENALTIES = tuple(10.0 ** np.arange(-8.0, 0.0))
_LENGTHS = tuple(2.0 ** np.arange(-4.0, 2.0))  # multiples of the median distance
_N_FOLDS = 3, 5  # for all choices, and for those half a step around the best one
_HALF_STEPS = -0.5, 0.0, 0.5

_LEAVES = (80, 20)  # see `Growth`


class KernelFit:
    """Fits kernel functions to a problem, whose rows are standardized once."""

    def __init__(
        self,
        problem: EffectProblem,
        standardize: bool,
        rng: np.random.Generator,
        extent: Extent = EXTENTS["normal"],
    ) -> None:
        rows = problem.rows
        self.center = rows.mean(axis=0) if standardize else np.zeros(rows.shape[1])
        scale = rows.std(axis=0) if standardize else np.ones(rows.shape[1])
        self.scale = np.where(scale > 0.0, scale, 1.0)
        self.problem = problem._replace(rows=(rows - self.center) / self.scale)
        self._rng, self._extent = rng, extent

    def fit(self, name: str, length: Any, penalty: Any) -> FunctionFit:
        """Fit with a kernel; "auto" values are chosen."""
        problem = self.problem
        if name == AUTO and problem.is_least_squares and (length, penalty) == (AUTO, AUTO):
            return self._fit_by_evidence()
        name = "rbf" if name == AUTO else name
        length, penalty = self._chosen(name, length, penalty)
        kernel = named_kernel(name, length, problem.rows.shape[1])
        found = self.fit_kernel(kernel, penalty)
        if found.posterior is None:
            features = self._basis(kernel).features(problem.rows)
            found = found._replace(posterior=problem.posterior(features, penalty, None))
        return found._replace(length=length if name == "rbf" else None)

    def _fit_by_evidence(self) -> FunctionFit:
        """Fit with scales of maximum marginal likelihood: geometric means of those of two halves.

        The leave-one-out value of a row uses the scales of the other half.
        """
        problem, n = self.problem, len(self.problem.labels)
        weights = problem.weights / problem.weights.mean()
        in_first = np.zeros(n, np.bool_)
        in_first[self._rng.permutation(n)[: n // 2]] = True
        halves = [
            scales_by_evidence(
                problem.rows[of], problem.labels[of], weights[of], self._rng, self._extent.n_rows
            )
            for of in (~in_first, in_first)
        ]
        held_out = np.empty(n)
        for (kernel, noise), of in zip(halves, (in_first, ~in_first), strict=True):
            strength = n / (2.0 * noise)
            found = self.fit_kernel(kernel, 0.5 / strength, strength)
            held_out[of] = np.asarray(found.held_out)[of]
        (first, noise), (second, other) = halves
        strength = n / (2.0 * (noise * other) ** 0.5)
        found = self.fit_kernel(first.between(second), 0.5 / strength, strength)
        return found._replace(held_out=held_out)

    def fit_kernel(
        self, kernel: Kernel, penalty: float, strength: float | None = None
    ) -> FunctionFit:
        """Fit with a kernel and a penalty."""
        problem = self.problem
        if problem.surrogate == "hinge":
            return self._fit_hinge(kernel, penalty)
        basis = self._basis(kernel)
        features = basis.features(problem.rows)
        posterior = problem.posterior(features, penalty, strength)
        mode = posterior.mode()
        held_out = None
        if problem.is_least_squares and not posterior.is_gibbs:
            lower = cholesky(posterior.covariance(mode.state), lower=True)
            held_out = _left_out(posterior, mode.state, features, lower)
        function = KernelFunction(
            kernel, self.center, self.scale, basis.landmarks, basis.projection @ mode.state[1:],
            float(mode.state[0]),
        )  # fmt: skip
        return FunctionFit(function, posterior, mode.objective, mode, penalty, held_out=held_out)

    def _basis(self, kernel: Kernel) -> KernelBasis:
        rows, most = self.problem.rows, self._extent.n_landmarks
        return KernelBasis(kernel, choose_landmarks(rows, self._rng, most))

    def _fit_hinge(self, kernel: Kernel, penalty: float) -> FunctionFit:
        problem, rows = self.problem, self.problem.rows
        if len(rows) <= MOST_EXACT and problem.combine == "max":
            found = solve_hinge(kernel.gram(rows, rows), problem.arms, penalty)
            landmarks, coefficients = rows, found.coefficients
        else:
            basis = self._basis(kernel)
            features = basis.features(rows)
            found = by_machines(features, problem.arms, penalty, problem.combine == "max")
            landmarks = basis.landmarks
            coefficients = basis.projection @ (features.T @ found.coefficients)
        kept = np.abs(coefficients) > 1e-12 * np.abs(coefficients).max(initial=0.0)
        kept[0] |= not kept.any()
        function = KernelFunction(
            kernel, self.center, self.scale, landmarks[kept], coefficients[kept], found.intercept,
        )  # fmt: skip
        return FunctionFit(function, None, found.objective, found, penalty)

    def _chosen(self, name: str, length: Any, penalty: Any) -> tuple[float, float]:
        """Return length and penalty; "auto" values are chosen by the cross-validated surrogate."""
        lengths: tuple[float, ...] = (1.0,)
        if name == "rbf":
            lengths = (length,)
            if length == AUTO:
                few = self.problem.rows[: self._extent.n_rows]
                lengths = tuple(float(np.median(pdist(few)) or 1.0) * each for each in _LENGTHS)
        penalties = _PENALTIES if penalty == AUTO else (penalty,)
        if len(lengths) * len(penalties) == 1:
            return lengths[0], penalties[0]
        some, n = self.problem, len(self.problem.labels)
        if n > self._extent.n_rows:
            some = some.part(self._rng.choice(n, self._extent.n_rows, replace=False))
        first, second = self._rng.integers(2**31, size=2).tolist()
        best = self._best(some, name, list(product(lengths, penalties)), _N_FOLDS[0], first)
        beside = [
            [middle * step**each for each in (_HALF_STEPS if len(tried) > 1 else (0.0,))]
            for middle, step, tried in zip(best, (2.0, 10.0), (lengths, penalties), strict=True)
        ]
        return self._best(some, name, list(product(*beside)), _N_FOLDS[1], second)

    def _best(
        self, some: EffectProblem, name: str, choices: Any, n_folds: int, seed: int
    ) -> tuple[float, float]:
        """Return the choice of least mean risk on held-out rows, over all folds together.

        The maximum of risks also uses the mean, because it is the tighter bound, and varies less.
        """
        said = np.empty((len(choices), len(some.labels)))
        for others, held_out in _folds(some, n_folds, seed):
            part = some.part(others)
            fit = KernelFit(part, False, np.random.default_rng(0), self._extent)
            for place, (length, penalty) in enumerate(choices):
                kernel = named_kernel(name, length, part.rows.shape[1])
                function = fit.fit_kernel(kernel, penalty).function
                said[place, held_out] = function.values(some.rows[held_out])
        risks = [some._replace(combine="mean").risk(h) for h in said]
        best: tuple[float, float] = choices[int(np.argmin(risks))]
        return best


def _folds(problem: EffectProblem, n_folds: int, seed: int) -> Any:
    strata = 2 * problem.treatment + (problem.labels > 0)
    if np.unique(strata, return_counts=True)[1].min() < n_folds:
        strata = problem.treatment.astype(int)
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    return folds.split(problem.rows, strata)


def _left_out(posterior: EffectPosterior, state: Floats, features: Floats, lower: Floats) -> Floats:
    """Return exact leave-one-out values of h for weighted least squares."""
    h, labels, weights = posterior.values(state), *posterior.squares
    inside = np.column_stack([np.ones(len(h)), features]) @ lower
    share = np.minimum(2.0 * posterior.strength * weights * (inside**2).sum(axis=1), 1.0 - 1e-9)
    return np.asarray((h - share * labels) / (1.0 - share))


def fit_function(given: ArmsProblem, model: Any, seed: int) -> FunctionFit:
    """Fit by the parameters of a model: a kernel, a forest, a mixture, or a given learner.

    A mixture that was learned from pseudo-outcomes is shrunk.
    """
    problem = given.problem
    if not isinstance(model.learner, str):
        return fit_learner(problem, model.learner)
    extent, forest = EXTENTS[model.effort], None
    if model.learner == "forest" or (model.learner == AUTO and problem.is_least_squares):
        forest = fit_forest(problem, seed, model.n_jobs, 2 * extent.n_trees)
        if model.learner == "forest":
            return forest
    kernels = KernelFit(problem, model.standardize, np.random.default_rng(seed), extent)
    kernel = kernels.fit(model.kernel, model.length_scale, model.penalty)
    if forest is None:
        return kernel
    by_arms = [] if given.by_arms is None else [given.by_arms]
    found = mixed(problem, [kernel, forest, *by_arms])
    return found if given.average is None else shrunk(given, given.average, found)


class FittedLearner(NamedTuple):
    """A fitted scikit-learn estimator as a function h."""

    learner: Any

    @property
    def words(self) -> str:
        """Name of the learner's class."""
        return type(self.learner).__name__

    def values(self, rows: Floats) -> Floats:
        """Return log odds, or predictions, (n,)."""
        if not hasattr(self.learner, "predict_proba"):
            return np.asarray(self.learner.predict(rows), np.float64)
        chances = np.clip(self.learner.predict_proba(rows)[:, 1], 1e-6, 1.0 - 1e-6)
        return np.asarray(np.log(chances / (1.0 - chances)))


def fit_learner(problem: EffectProblem, learner: Any) -> FunctionFit:
    """Fit a scikit-learn learner that supports weights; ParameterError if it is not suitable."""
    learner = clone(learner)
    is_classifier = hasattr(learner, "predict_proba")
    if is_classifier and (problem.is_adjusted or problem.surrogate != "logistic"):
        raise ParameterError(
            'learner must be a regressor unless surrogate is "logistic" and adjust "none", '
            f"got {learner!r}"
        )
    if not is_classifier and problem.surrogate != "square":
        raise ParameterError(
            f'learner must be a classifier unless surrogate is "square", got {learner!r}'
        )
    labels = problem.labels > 0 if is_classifier else problem.labels
    learner.fit(problem.rows, labels, sample_weight=problem.even_weights)
    function = FittedLearner(learner)
    return FunctionFit(function, None, problem.risk(function.values(problem.rows)))


def fit_forest(
    problem: EffectProblem, seed: int, n_jobs: int | None, n_trees: int = 200
) -> FunctionFit:
    """Fit a regression forest, whose minimum leaf is chosen by out-of-bag errors."""
    how = Growth(n_trees, _LEAVES, 5, 1.0, seed, n_jobs)
    forest, held_out = grow(problem.rows, problem.labels, problem.even_weights, how)
    function = ForestFunction.of(forest)
    risk = problem.risk(function.values(problem.rows))
    return FunctionFit(function, None, risk, held_out=held_out)


def mixed(problem: EffectProblem, fits: Sequence[FunctionFit]) -> FunctionFit:
    """Return the mixture with the least squared error on held-out rows; the first is the kernel.

    Held-out values of the mixture have the weights of the other half of the rows: with those that
    fit the row itself, effects would too often seem to differ.
    """
    held_out = np.column_stack([np.asarray(each.held_out) for each in fits])
    errors = held_out - problem.labels[:, np.newaxis]
    errors *= np.sqrt(problem.weights / problem.weights.sum())[:, np.newaxis]
    values, in_half = np.empty(len(errors)), np.arange(len(errors)) % 2 > 0
    for half in (in_half, ~in_half):
        values[half] = held_out[half] @ _least_squares(errors[~half])
    weights = _least_squares(errors).tolist()
    function = SumFunction.of([each.function for each in fits], weights)
    kernel = fits[0] if weights[0] > 0.0 else FunctionFit(function, None, np.nan)
    risk = problem.risk(function.values(problem.rows))
    return FunctionFit(function, kernel.posterior, risk, penalty=kernel.penalty, held_out=values)


def _least_squares(errors: Floats) -> Floats:
    """Return weights >= 0 of sum 1 with the least square of a mean error, (m,), of errors (n, m).

    Minimizing ``|M v|^2 + (1 - sum v)^2`` by v >= 0 gives a multiple of the best weights w: for
    v = s w and the best s, it is ``|M w|^2 / (1 + |M w|^2)``.
    """
    rows = np.vstack([errors, np.ones(errors.shape[1])])
    found = nnls(rows, np.eye(1, len(rows), len(rows) - 1)[0])[0]
    return np.asarray(found / found.sum())


def shrunk(given: ArmsProblem, average: MeasuredEffects, found: FunctionFit) -> FunctionFit:
    """Return the function with the average effect as its mean, and smaller differences from it."""
    problem, n = given.problem, max(float(average.sizes.min()), 2.0)
    slope = EffectSlope(
        *left_out_slope(problem.labels, np.asarray(found.held_out), problem.weights, n).tolist()
    )
    values = found.function.values(problem.rows)
    mean = np.average(values, weights=problem.weights)
    shift = float(average.means[0, 1] - average.means[0, 0] - slope.factor * mean)
    function = found.function.scaled(slope.factor, shift)
    risk = problem.risk(slope.factor * values + shift)
    return found._replace(function=function, objective=risk, exact=None, slope=slope)
