"""Functions that learners find: kernels, forests, mixtures, and scikit-learn's."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from bayescascade.base.errors import ParameterError
from bayescascade.methods.effects.fitting import KernelFit
from bayescascade.methods.effects.forest import Growth, grow
from bayescascade.methods.effects.functions import ForestFunction, MixedFunction
from bayescascade.methods.effects.parameters import AUTO
from bayescascade.methods.effects.problem import Fitted, Problem

Floats = NDArray[np.float64]

_TREES = 200
_LEAVES = (80, 20)  # see `Growth`


def fit_function(problem: Problem, model: Any, seed: int) -> Fitted:
    """Fit what the parameters of a model ask for: a kernel, a forest, a mixture, or a learner."""
    if not isinstance(model.learner, str):
        return fit_learner(problem, model.learner)
    forest = None
    if model.learner == "forest" or (model.learner == AUTO and problem.is_least_squares):
        forest = fit_forest(problem, seed, model.n_jobs)
        if model.learner == "forest":
            return forest
    kernels = KernelFit(problem, model.standardize, np.random.default_rng(seed))
    kernel = kernels.fit(model.kernel, model.length_scale, model.penalty)
    return kernel if forest is None else mixed(problem, kernel, forest)


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


def fit_learner(problem: Problem, learner: Any) -> Fitted:
    """Fit any learner of scikit-learn's that takes weights; ParameterError if it is of no use."""
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
    return Fitted(function, None, problem.risk(function.values(problem.rows)), None, None, None)


def fit_forest(problem: Problem, seed: int, n_jobs: int | None) -> Fitted:
    """Fit a regression forest, its least leaf chosen by rows outside of trees' own."""
    how = Growth(_TREES, _LEAVES, 5, 1.0, seed, n_jobs)
    forest, held_out = grow(problem.rows, problem.labels, problem.even_weights, how)
    function = ForestFunction.of(forest)
    risk = problem.risk(function.values(problem.rows))
    return Fitted(function, None, risk, None, None, None, held_out)


def mixed(problem: Problem, kernel: Fitted, forest: Fitted) -> Fitted:
    """Return the mixture of least squares on rows left out; a kernel or a forest at its ends."""
    first, second = np.asarray(kernel.held_out), np.asarray(forest.held_out)
    weights = problem.weights * (second - first)
    norm = float(weights @ (second - first))
    share = float(weights @ (problem.labels - first)) / norm if norm > 0.0 else 0.0
    if share <= 0.0 or share >= 1.0:
        return kernel if share <= 0.0 else forest
    misfit = share**2 * norm / float(problem.weights.sum())  # more error than the mixture's
    function = MixedFunction(kernel.function, forest.function, share, misfit)
    risk = problem.risk(function.values(problem.rows))
    return Fitted(function, kernel.posterior, risk, None, kernel.penalty, None)
