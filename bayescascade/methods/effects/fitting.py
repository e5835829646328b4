"""From labels and weights of rows to a function of a kernel, its scales given or chosen."""

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky
from scipy.spatial.distance import pdist
from sklearn.model_selection import StratifiedKFold

from bayescascade.methods.effects.hinge import MOST_EXACT, by_machines, solve_hinge
from bayescascade.methods.effects.kernels import (
    Basis,
    Kernel,
    choose_landmarks,
    named_kernel,
    scales_by_evidence,
)
from bayescascade.methods.effects.learned import KernelFunction
from bayescascade.methods.effects.parameters import AUTO
from bayescascade.methods.effects.posterior import EffectPosterior
from bayescascade.methods.effects.problem import Fitted, Problem

Floats = NDArray[np.float64]

MOST_CHOOSING = 1_000
"""Rows that length and penalty are chosen by."""

_PENALTIES = tuple(10.0 ** np.arange(-8.0, 0.0))
_LENGTHS = tuple(2.0 ** np.arange(-4.0, 2.0))  # of the median distance
_N_FOLDS = 3


class KernelFit:
    """Fits functions of kernels to a problem, its rows standardized once."""

    def __init__(self, problem: Problem, standardize: bool, rng: np.random.Generator) -> None:
        rows = problem.rows
        self.center = rows.mean(axis=0) if standardize else np.zeros(rows.shape[1])
        scale = rows.std(axis=0) if standardize else np.ones(rows.shape[1])
        self.scale = np.where(scale > 0.0, scale, 1.0)
        self.problem = problem._replace(rows=(rows - self.center) / self.scale)
        self._rng = rng

    def fit(self, name: str, length: Any, penalty: Any) -> Fitted:
        """Fit by a kernel; what is "auto" is chosen."""
        problem = self.problem
        if name == AUTO and problem.is_least_squares and (length, penalty) == (AUTO, AUTO):
            return self._fit_by_evidence()
        name = "rbf" if name == AUTO else name
        length, penalty = self._chosen(name, length, penalty)
        kernel = named_kernel(name, length, problem.rows.shape[1])
        found = self.fit_kernel(kernel, penalty)
        if found.posterior is None:
            features = Basis(kernel, choose_landmarks(problem.rows, self._rng)).features(
                problem.rows
            )
            found = found._replace(posterior=problem.posterior(features, penalty, None))
        return found._replace(length=length if name == "rbf" else None)

    def _fit_by_evidence(self) -> Fitted:
        """Fit by scales of greatest marginal likelihood: the geometric mean of those of two halves.

        What is said of a row that is left out is by the scales of the half that it is not in.
        """
        problem, n = self.problem, len(self.problem.labels)
        weights = problem.weights / problem.weights.mean()
        in_first = np.zeros(n, np.bool_)
        in_first[self._rng.permutation(n)[: n // 2]] = True
        halves = [
            scales_by_evidence(problem.rows[of], problem.labels[of], weights[of], self._rng)
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

    def fit_kernel(self, kernel: Kernel, penalty: float, strength: float | None = None) -> Fitted:
        """Fit by a kernel and a penalty."""
        problem = self.problem
        if problem.surrogate == "hinge":
            return self._fit_hinge(kernel, penalty)
        basis = Basis(kernel, choose_landmarks(problem.rows, self._rng))
        features = basis.features(problem.rows)
        posterior = problem.posterior(features, penalty, strength)
        mode = posterior.mode()
        projection, spread = np.zeros((len(basis.landmarks), 0)), np.zeros((1, 1))
        held_out = None
        if not posterior.is_gibbs:
            projection = basis.projection
            lower = cholesky(posterior.covariance(mode.state), lower=True)
            spread = np.vstack([lower[:1], projection @ lower[1:]])
            if problem.surrogate == "square":
                held_out = _left_out(posterior, mode.state, features, lower)
        function = self._function(
            kernel, basis.landmarks, basis.projection @ mode.state[1:], mode.state[0], projection,
            spread, 0.5 / (posterior.strength * penalty),
        )  # fmt: skip
        return Fitted(function, posterior, mode.objective, mode, penalty, None, held_out)

    def _fit_hinge(self, kernel: Kernel, penalty: float) -> Fitted:
        problem, rows = self.problem, self.problem.rows
        if len(rows) <= MOST_EXACT and problem.combine == "max":
            found = solve_hinge(kernel.gram(rows, rows), problem.arms, penalty)
            landmarks, coefficients = rows, found.coefficients
        else:
            basis = Basis(kernel, choose_landmarks(rows, self._rng))
            features = basis.features(rows)
            found = by_machines(features, problem.arms, penalty, problem.combine == "max")
            landmarks = basis.landmarks
            coefficients = basis.projection @ (features.T @ found.coefficients)
        kept = np.abs(coefficients) > 1e-12 * np.abs(coefficients).max(initial=0.0)
        kept[0] |= not kept.any()
        function = self._function(
            kernel, landmarks[kept], coefficients[kept], found.intercept,
            np.zeros((int(kept.sum()), 0)), np.zeros((1, 1)), 0.5 / (len(rows) * penalty),
        )  # fmt: skip
        return Fitted(function, None, found.objective, found, penalty, None)

    def _function(self, kernel: Kernel, *learned: Any) -> KernelFunction:
        landmarks, coefficients, intercept, projection, spread, height = learned
        if not projection.shape[1]:
            spread = np.zeros((len(landmarks) + 1, 1))
        return KernelFunction(
            kernel, self.center, self.scale, landmarks, coefficients, float(intercept), projection,
            spread, height,
        )  # fmt: skip

    def _chosen(self, name: str, length: Any, penalty: Any) -> tuple[float, float]:
        """Return length and penalty, what is "auto" by the cross-validated surrogate."""
        lengths: tuple[float, ...] = (1.0,)
        if name == "rbf":
            lengths = (length,)
            if length == AUTO:
                few = self.problem.rows[:MOST_CHOOSING]
                lengths = tuple(float(np.median(pdist(few)) or 1.0) * each for each in _LENGTHS)
        penalties = _PENALTIES if penalty == AUTO else (penalty,)
        choices = list(product(lengths, penalties))
        if len(choices) == 1:
            return choices[0]
        sums = np.zeros(len(choices))
        n = len(self.problem.labels)
        some = self.problem
        if n > MOST_CHOOSING:
            some = some.part(self._rng.choice(n, MOST_CHOOSING, replace=False))
        for others, held_out in _folds(some, int(self._rng.integers(2**31))):
            part, asked = some.part(others), some.part(held_out)
            fit = KernelFit(part, False, np.random.default_rng(0))
            for place, (one, how_much) in enumerate(choices):
                kernel = named_kernel(name, one, part.rows.shape[1])
                function = fit.fit_kernel(kernel, how_much).function
                sums[place] += asked.risk(function.values(asked.rows))
        return choices[int(sums.argmin())]


def _folds(problem: Problem, seed: int) -> Any:
    strata = 2 * problem.treatment + (problem.labels > 0)
    if np.unique(strata, return_counts=True)[1].min() < _N_FOLDS:
        strata = problem.treatment.astype(int)
    folds = StratifiedKFold(_N_FOLDS, shuffle=True, random_state=seed)
    return folds.split(problem.rows, strata)


def _left_out(posterior: EffectPosterior, state: Floats, features: Floats, lower: Floats) -> Floats:
    """Return h of each row without its label, exactly, of a weighted least square."""
    h, labels, weights = posterior.values(state), *posterior.squares
    inside = np.column_stack([np.ones(len(h)), features]) @ lower
    share = np.minimum(2.0 * posterior.strength * weights * (inside**2).sum(axis=1), 1.0 - 1e-9)
    return np.asarray((h - share * labels) / (1.0 - share))
