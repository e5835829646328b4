"""From rows, labels and weights to a function: kernels and forests, and which of them is better."""

from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky
from scipy.spatial.distance import pdist
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

from bayescascade.methods.effects.hinge import (
    MOST_EXACT,
    MinimaxFit,
    best_intercept,
    certified,
    solve_hinge,
)
from bayescascade.methods.effects.kernels import (
    Basis,
    Kernel,
    choose_landmarks,
    named_kernel,
    scales_by_evidence,
)
from bayescascade.methods.effects.learned import ForestFunction, KernelFunction, MixedFunction
from bayescascade.methods.effects.losses import SURROGATES, Arms
from bayescascade.methods.effects.parameters import AUTO
from bayescascade.methods.effects.posterior import EffectPosterior

Floats = NDArray[np.float64]

_PENALTIES = tuple(10.0 ** np.arange(-8.0, 0.0))
_LENGTHS = tuple(2.0 ** np.arange(-4.0, 2.0))  # of the median distance
_N_FOLDS = 3
_TREES = 200
_LEAVES = (80, 20)  # the least leaf is a part of the rows: one in so many
_MOST_ROWS = 20_000  # of a tree


class Problem(NamedTuple):
    """What to learn: labels and weights of rows, in arms or, of pseudo-outcomes, together."""

    rows: Floats  # (n, d)
    labels: Floats  # (n,)
    weights: Floats  # (n,) > 0
    treatment: NDArray[np.bool_]
    is_adjusted: bool
    surrogate: str
    combine: str

    @property
    def arms(self) -> Arms:
        """The rows by arms, where labels are signs."""
        return Arms.of((self.labels > 0) == self.treatment, self.treatment, self.weights)

    def part(self, chosen: NDArray[Any]) -> "Problem":
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


class Fitted(NamedTuple):
    """A function, and what is known of it."""

    function: Any  # KernelFunction, ForestFunction, or one of scikit-learn's
    posterior: EffectPosterior | None
    objective: float
    exact: Any  # with a gap; None where nothing is proved
    penalty: float | None
    length: float | None
    held_out: Floats | None = None  # h of rows left out


class FittedLearner(NamedTuple):
    """A fitted estimator of scikit-learn's as a function h."""

    learner: Any
    has_doubt: bool = False

    def values(self, rows: Floats) -> Floats:
        """Return the logarithm of odds, or what is predicted, (n,)."""
        if not hasattr(self.learner, "predict_proba"):
            return np.asarray(self.learner.predict(rows), np.float64)
        chances = np.clip(self.learner.predict_proba(rows)[:, 1], 1e-6, 1.0 - 1e-6)
        return np.asarray(np.log(chances / (1.0 - chances)))


class _Product(NamedTuple):
    """K of features, by products with vectors alone."""

    features: Floats

    def __matmul__(self, vector: Floats) -> Floats:
        return np.asarray(self.features @ (self.features.T @ vector))


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
        is_square = problem.surrogate == "square" and problem.combine == "mean"
        if name == AUTO and is_square and (length, penalty) == (AUTO, AUTO):
            return self._fit_by_evidence()
        name = "rbf" if name == AUTO else name
        length, penalty = self._chosen(name, length, penalty)
        kernel = named_kernel(name, length, problem.rows.shape[1])
        found = self.fit_kernel(kernel, penalty)
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
        posterior = None
        if len(rows) <= MOST_EXACT and problem.combine == "max":
            gram = kernel.gram(rows, rows)
            found = solve_hinge(gram, problem.arms, penalty)
            landmarks, coefficients = rows, found.coefficients
        else:
            basis = Basis(kernel, choose_landmarks(rows, self._rng))
            features = basis.features(rows)
            found = by_machines(features, problem.arms, penalty, problem.combine == "max")
            landmarks = basis.landmarks
            coefficients = basis.projection @ (features.T @ found.coefficients)
            posterior = problem.posterior(features, penalty, None)
        kept = np.abs(coefficients) > 1e-12 * np.abs(coefficients).max(initial=0.0)
        kept[0] |= not kept.any()
        if posterior is None and len(choose_landmarks(rows, self._rng)) < MOST_EXACT:
            basis = Basis(kernel, choose_landmarks(rows, self._rng))
            posterior = problem.posterior(basis.features(rows), penalty, None)
        none = np.zeros((int(kept.sum()), 0))
        function = self._function(
            kernel, landmarks[kept], coefficients[kept], found.intercept, none, np.zeros((1, 1)),
            0.5 / (len(rows) * penalty),
        )  # fmt: skip
        return Fitted(function, posterior, found.objective, found, penalty, None)

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
                some = self.problem.rows[: min(len(self.problem.rows), 1000)]
                lengths = tuple(float(np.median(pdist(some)) or 1.0) * each for each in _LENGTHS)
        penalties = _PENALTIES if penalty == AUTO else (penalty,)
        choices = list(product(lengths, penalties))
        if len(choices) == 1:
            return choices[0]
        sums = np.zeros(len(choices))
        for others, held_out in self._folds():
            part, asked = self.problem.part(others), self.problem.part(held_out)
            fit = KernelFit(part, False, np.random.default_rng(0))
            for place, (one, how_much) in enumerate(choices):
                kernel = named_kernel(name, one, part.rows.shape[1])
                function = fit.fit_kernel(kernel, how_much).function
                sums[place] += asked.risk(function.values(asked.rows))
        return choices[int(sums.argmin())]

    def _folds(self) -> Any:
        problem = self.problem
        strata = 2 * problem.treatment + (problem.labels > 0)
        rarest = np.unique(strata, return_counts=True)[1].min()
        if rarest < _N_FOLDS:
            strata = problem.treatment.astype(int)
        seed = int(self._rng.integers(2**31))
        folds = StratifiedKFold(_N_FOLDS, shuffle=True, random_state=seed)
        return folds.split(problem.rows, strata)


def _left_out(posterior: EffectPosterior, state: Floats, features: Floats, lower: Floats) -> Floats:
    """Return h of each row without its label, exactly, of a weighted least square."""
    h, labels, weights = posterior.values(state), *posterior.squares
    inside = np.column_stack([np.ones(len(h)), features]) @ lower
    share = np.minimum(2.0 * posterior.strength * weights * (inside**2).sum(axis=1), 1.0 - 1e-9)
    return np.asarray((h - share * labels) / (1.0 - share))


def by_machines(features: Floats, arms: Arms, penalty: float, is_maximum: bool) -> MinimaxFit:
    """Return the least maximum (or mean) of hinge risks by scikit-learn's weighted machines.

    At a given alpha it is one machine, whose risks say on which side alpha must be; see
    `EffectPosterior.mode`. The gap counts from the best bound of any alpha.
    """
    low, high, bound = (0.0, 1.0, -np.inf) if is_maximum else (0.5, 0.5, -np.inf)
    best: MinimaxFit | None = None
    for step in range(1, 21):
        alpha = 0.5 * (low + high)
        machine = SVC(C=1.0, kernel="linear", tol=1e-5, cache_size=500)
        machine.fit(features, arms.signs, arms.mixed(alpha) / (2.0 * penalty))
        dual = np.zeros(len(features))
        dual[machine.support_] = 2.0 * penalty * np.abs(machine.dual_coef_[0])
        found = certified(_Product(features), arms, penalty, dual, step, is_maximum)
        bound = max(bound, found.objective - found.gap)
        if best is None or found.objective < best.objective:
            best = found
        if not is_maximum or best.objective - bound < 1e-4 * best.objective:
            break
        scores = features @ (features.T @ found.coefficients)
        own = scores + best_intercept(scores, arms, False)
        treated, others = arms.risks(own, SURROGATES["hinge"])
        low, high = (alpha, high) if treated > others else (low, alpha)
    assert best is not None
    gap = max(best.objective - bound, 0.0)
    return MinimaxFit(best.coefficients, best.intercept, best.objective, gap, best.alpha, step)


def mixed(problem: Problem, kernel: Fitted, forest: Fitted) -> Fitted:
    """Return the mixture of least squares on rows left out; a kernel or a forest at its ends."""
    first, second = np.asarray(kernel.held_out), np.asarray(forest.held_out)
    weights = problem.weights * (second - first)
    norm = float(weights @ (second - first))
    share = float(weights @ (problem.labels - first)) / norm if norm > 0.0 else 0.0
    if share <= 0.0 or share >= 1.0:
        return kernel if share <= 0.0 else forest
    function = MixedFunction(kernel.function, forest.function, share)
    risk = problem.risk(function.values(problem.rows))
    return Fitted(function, kernel.posterior, risk, None, kernel.penalty, None)


def fit_forest(problem: Problem, seed: int, n_jobs: int | None) -> Fitted:
    """Fit a regression forest, its least leaf chosen by rows outside of trees' own."""
    found: list[tuple[float, Any, Floats]] = []
    n = len(problem.rows)
    weights = problem.weights
    if not problem.is_adjusted:  # each arm counts a half
        sums = np.bincount(problem.treatment, weights, 2)
        weights = weights / sums[problem.treatment.astype(int)]
    weights = weights / weights.mean()
    for part in _LEAVES:
        forest = RandomForestRegressor(
            _TREES, min_samples_leaf=max(5, n // part), max_features=1.0, oob_score=True,
            max_samples=min(n, _MOST_ROWS) / n, random_state=seed, n_jobs=n_jobs,
        )  # fmt: skip
        forest.fit(problem.rows, problem.labels, weights)
        held_out = np.asarray(forest.oob_prediction_)
        found.append((float(weights @ (problem.labels - held_out) ** 2), forest, held_out))
    _, forest, held_out = min(found, key=lambda each: each[0])
    function = ForestFunction.of(forest)
    risk = problem.risk(function.values(problem.rows))
    return Fitted(function, None, risk, None, None, None, held_out)
