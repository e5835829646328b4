"""The density over functions given by a regularized risk, and its mode.

    log density(w_0, c) = -strength (risk + penalty |c|^2),  h = w_0 + phi(x) . c,

in whitened coefficients c of a kernel. The risk is the mean or the maximum of R_T and R_C, or for
pseudo-outcomes g the weighted mean of (h - g)^2. The square and the logistic loss are, up to a
constant, minus log likelihoods, so it is a posterior if the mean is taken. With the hinge, the
exponential or the 0-1 loss, or with the maximum, it is a Gibbs posterior. Except for 0-1, the log
density is 2 strength penalty strongly concave in c.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize, minimize_scalar

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import DataError, ParameterError
from bayescascade.base.validation import check_choice, check_real, check_weights
from bayescascade.base.watch import check_time
from bayescascade.methods.effects.losses import SURROGATES
from bayescascade.model.continuous import ContinuousPosterior

_MOST_ITERATIONS = 1_000
_MOST_DOUBLINGS = 60  # for an interval for the intercept
_STEP = 1e-4  # for curvatures from differences of slopes


class Mode(NamedTuple):
    """The function found, its objective, and a bound on how much lower any other may be."""

    state: Floats
    objective: float
    gap: float
    alpha: float  # weight of R_T


class EffectPosterior(ContinuousPosterior):
    """A density over functions h; the module has the formulas.

    Parameters
    ----------
    features : (n_rows, n_features) array
        Features phi of the rows, without a column for the intercept.
    labels : (n_rows,) array
        Labels u: the outcome (+1 or -1) of treated rows, and minus the outcome of the others. With
        the square loss and without `treatment`, pseudo-outcomes.
    weights : (n_rows,) array of float >= 0
        Weights of the rows, which are normalized to sum 1 in each arm.
    treatment : (n_rows,) array of bool, optional
        Which rows are treated. Without it, there is one risk for all rows together.
    surrogate : {"square", "logistic", "exponential", "hinge", "zero_one"}
        Surrogate loss. "zero_one" is the smallest bound on wrong signs. It has no slope, so only
        annealing and Metropolis chains can explore it.
    combine : {"mean", "max"}
        Combination of the risks of both arms.
    penalty : float > 0
        Weight of the squared norm.
    strength : float > 0, optional
        Nats that a risk of 1 is worth. By default the number of rows.
    """

    def __init__(
        self,
        features: ArrayLike,
        labels: ArrayLike,
        weights: ArrayLike,
        treatment: ArrayLike | None = None,
        *,
        surrogate: str = "logistic",
        combine: str = "mean",
        penalty: float = 1e-3,
        strength: float | None = None,
    ) -> None:
        self._features = np.asarray(features, np.float64)
        self._labels = np.asarray(labels, np.float64)
        n_rows = len(self._features)
        weighed = check_weights("weights", weights, n_rows)
        self.surrogate = check_choice("surrogate", surrogate, SURROGATES)
        self.combine = check_choice("combine", combine, ("mean", "max"))
        self.penalty = check_real("penalty", penalty, above=0.0)
        self.strength = float(n_rows) if strength is None else check_real(
            "strength", strength, above=0.0)  # fmt: skip
        if self._features.ndim != 2 or self._labels.shape != (n_rows,):
            raise DataError(f"features and labels must be of {n_rows} rows each")
        if treatment is None:
            self._arms = weighed[None] / weighed.sum()
        else:
            arms = np.array([treatment, ~np.asarray(treatment, np.bool_)], np.bool_) * weighed
            self._arms = arms / arms.sum(axis=1, keepdims=True)

    @property
    def is_gibbs(self) -> bool:
        """Whether it is a Gibbs posterior, not the posterior of a likelihood."""
        return self.combine == "max" or self.surrogate not in ("square", "logistic")

    @property
    def squares(self) -> tuple[Floats, Floats]:
        """Labels and normalized weights for a mean of squares, (n_rows,) each."""
        return self._labels, np.asarray(self._arms.mean(axis=0))

    def values(self, state: Floats) -> Floats:
        """Return h of the rows, (n_rows,)."""
        return np.asarray(state[0] + self._features @ state[1:])

    def risks(self, h: Floats) -> Floats:
        """Return the risks of both arms, (2,), or the risk of all rows, (1,)."""
        if self.surrogate == "square":
            return np.asarray(self._arms @ (h - self._labels) ** 2)
        return np.asarray(self._arms @ SURROGATES[self.surrogate].value(-h * self._labels))

    def objective(self, state: Floats) -> float:
        """Return ``risk + penalty |c|^2``."""
        return -self.log_density(state) / self.strength

    def log_prior(self, state: Floats) -> float:
        """Return the log prior, from the squared norm, nats."""
        return -self.strength * self.penalty * float(state[1:] @ state[1:])

    def log_likelihood(self, state: Floats) -> float:
        """Return minus the risk, in nats."""
        risks = self.risks(self.values(state))
        return -self.strength * float(risks.max() if self.combine == "max" else risks.mean())

    def log_density_and_gradient(self, state: Floats) -> tuple[float, Floats]:
        """Return the log density and its gradient, (n,); for the maximum, a subgradient."""
        alphas = np.full(len(self._arms), 1.0 / len(self._arms))
        if self.combine == "max":
            alphas = np.eye(len(self._arms))[int(self.risks(self.values(state)).argmax())]
        value, gradient = self._loss(state, alphas)
        return -self.strength * value, -self.strength * gradient

    def _loss(self, state: Floats, alphas: Floats) -> tuple[float, Floats]:
        """Return sum alpha_arm R_arm + penalty |c|^2, and its gradient."""
        h = self.values(state)
        slopes = (alphas @ self._arms) * self._slopes(h)
        gradient = np.concatenate([[slopes.sum()], slopes @ self._features])
        gradient[1:] += 2.0 * self.penalty * state[1:]
        norm = self.penalty * float(state[1:] @ state[1:])
        return float(alphas @ self.risks(h)) + norm, gradient

    def _slopes(self, h: Floats) -> Floats:
        if self.surrogate == "square":
            return np.asarray(2.0 * (h - self._labels))
        slope = SURROGATES[self.surrogate].slope
        if slope is None:
            raise ParameterError(
                'surrogate must have a slope for modes and searches by gradient, got "zero_one": '
                "anneal it, or draw by Metropolis chains"
            )
        return np.asarray(-self._labels * slope(-h * self._labels))

    def initial_state(self, rng: np.random.Generator) -> Floats:
        """Return a random function near zero."""
        return np.asarray(0.1 * rng.normal(size=self._features.shape[1] + 1))

    def describe(self, state: Floats) -> Mapping[str, float]:
        """Return the intercept and the squared norm."""
        return {"intercept": float(state[0]), "norm": float(state[1:] @ state[1:])}

    def _blocks(self) -> tuple[Floats, ArrayLike]:
        size = self._features.shape[1] + 1
        return np.ones(size), [0, 1, size] if size > 1 else [0, 1]

    def _identity(self) -> tuple[Sequence[NDArray[Any]], object]:
        settings = self.surrogate, self.combine, self.penalty, self.strength
        return (self._features, self._labels, self._arms), settings

    # -- the best function -------------------------------------------------------------------------

    def mode(self) -> Mode:
        """Return the function with the highest density, for a differentiable loss.

        For given weights of the arms, `_gap` gives the gap. For the maximum, each alpha gives a
        lower bound on the optimum: the minimum of ``alpha R_T + (1 - alpha) R_C + penalty |c|^2``.
        This bound is concave in alpha, with slope R_T - R_C, so alpha is found by bisection. The
        gap is relative to the best bound.
        """
        if self.combine == "mean" or len(self._arms) == 1:
            return self._mode_at(np.full(len(self._arms), 1.0 / len(self._arms)), None)
        low, high, start, bound = 0.0, 1.0, None, -np.inf
        best: Mode | None = None
        for _ in range(40):
            alpha = 0.5 * (low + high)
            found = self._mode_at(np.array([alpha, 1.0 - alpha]), start)
            start, bound = found.state, max(bound, found.objective - found.gap)
            treated, others = self.risks(self.values(start))
            low, high = (alpha, high) if treated > others else (low, alpha)
            objective = self.objective(start)
            if best is None or objective < best.objective:
                best = found._replace(objective=objective)
            if best.objective - bound < 1e-8:
                break
        assert best is not None
        return best._replace(gap=max(best.objective - bound, 0.0))

    def _mode_at(self, alphas: Floats, start: Floats | None) -> Mode:
        if self.surrogate == "square":
            state = self._solved(alphas)
        else:
            begun = np.zeros(self._features.shape[1] + 1) if start is None else start

            def loss(state: Floats) -> tuple[float, Floats]:
                check_time()
                return self._loss(state, alphas)

            options = {"maxiter": _MOST_ITERATIONS, "gtol": 1e-9, "ftol": 1e-15}
            state = minimize(loss, begun, jac=True, method="L-BFGS-B", options=options).x
            rest = self._features @ state[1:]
            state[0] = minimize_scalar(
                lambda w: float(alphas @ self.risks(w + rest)), (state[0] - 0.1, state[0] + 0.1)
            ).x
        value, gap = self._gap(state, alphas)
        return Mode(state, value, gap, float(alphas[0]))

    def _gap(self, state: Floats, alphas: Floats) -> tuple[float, float]:
        """Return a function's loss f, and a bound on how much lower another may be, with rounding.

        Let phi(c) be the least f over w_0, at w_0 + t. Because f is convex in w_0, ``f - phi <= |t|
        g``, g the larger slope in w_0 at both ends of an interval that contains t. phi is 2 penalty
        strongly convex, so ``phi(c) - min phi <= |grad phi|^2 / (4 penalty)``, and its gradient is
        that of f in c at w_0 + t: a row's slope grows with h, and changes by at most the change to
        one of the ends. Ends are moved apart until slopes there differ in sign by more than their
        rounding. Losses are >= 0: no gap is above f.
        """
        weights, unit = alphas @ self._arms, float(np.finfo(np.float64).eps)
        n_rows, n_features = self._features.shape
        lengths, norm = np.linalg.norm(self._features, axis=1), float(np.linalg.norm(state[1:]))
        h, (value, gradient) = self.values(state), self._loss(state, alphas)
        slopes = self._slopes(h)
        # rounding of h, by Cauchy and Schwarz, and of sums over rows, relative to sums of moduli
        of_h = (n_features + 4) * unit * (abs(state[0]) + float(lengths.max(initial=0.0)) * norm)
        of_sums = (n_rows + n_features + 8) * unit
        of_value = of_sums * (value + norm * norm * self.penalty)
        of_value += of_h * float(weights @ np.abs(slopes))
        reach = max(of_h, 1e-12)
        with np.errstate(over="ignore", invalid="ignore"):
            for _ in range(_MOST_DOUBLINGS):
                ends = [self._slopes(h + sign * (reach + of_h)) for sign in (-1.0, 1.0)]
                low, high = (self._slopes(h + sign * (reach - of_h)) for sign in (-1.0, 1.0))
                room = of_sums * max(float(weights @ np.abs(end)) for end in (*ends, low, high))
                if weights @ low < -room and weights @ high > room:
                    break
                reach *= 2.0
            else:
                return value, value
            moved = np.maximum(*(np.abs(end - slopes) for end in ends))
            steepest = max(abs(float(weights @ end)) for end in ends) + room
            least = float(np.linalg.norm(gradient[1:])) + float((weights * moved) @ lengths)
            least += of_sums * (
                float((weights * (np.abs(slopes) + moved)) @ lengths) + 2.0 * self.penalty * norm
            )
            gap = reach * steepest + least * least / (4.0 * self.penalty) + 2.0 * of_value
        return value, min(gap, value) if np.isfinite(gap) else value

    def _solved(self, alphas: Floats) -> Floats:
        factor = self._factor(alphas @ self._arms)
        columns = np.column_stack([np.ones(len(self._labels)), self._features])
        right = columns.T @ ((alphas @ self._arms) * self._labels)
        return np.asarray(cho_solve(factor, right))

    def _factor(self, weights: Floats) -> Any:
        columns = np.column_stack([np.ones(len(self._labels)), self._features])
        precision = columns.T @ (columns * weights[:, None])
        precision[np.diag_indices_from(precision)] += self.penalty
        precision[0, 0] += 1e-12 - self.penalty
        return cho_factor(precision, lower=True)

    def covariance(self, state: Floats) -> Floats:
        """Return the covariance of the Gaussian at a mode, (n, n), Laplace's for other losses."""
        h = self.values(state)
        bends = (self._slopes(h + _STEP) - self._slopes(h - _STEP)) / (4.0 * _STEP)
        factor = self._factor(self._arms.mean(axis=0) * bends)
        return np.asarray(cho_solve(factor, np.eye(len(state)))) / (2.0 * self.strength)
