"""The Gibbs posterior over gates and local classifiers, given a full model."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import ParameterError
from bayescascade.base.validation import check_choice, check_real
from bayescascade.methods.budget.gated.objective import GateProblem, State
from bayescascade.model.continuous import ContinuousPosterior


class AdaptivePosterior(ContinuousPosterior):
    """The posterior of gates and local classifiers, given a full model.

    ``log density(state) = -n J(state) / temperature``, where n is the weight of the rows, and J the
    objective of the module `objective` beside this one: expected loss, plus distance of gate and
    shares, plus a ridge, minimized over the shares of the full model. With ``full_share=1`` and
    temperature 1, the likelihood is that of a mixture of two experts. Otherwise it is a Gibbs
    posterior, not a generative model. The ridge is the prior: coefficients are normal, and
    intercepts flat.

    Parameters
    ----------
    rows : (n, p) array of float
        Columns of gate and local model, with mean 0 and variance 1. An intercept is added.
    labels : (n,) array of int in [0, n_classes)
    full_losses : (n,) array of float >= 0
        Losses of the full model, nats. They are fair if it was not fitted to these rows.
    n_classes : int >= 2
    full_share : float in [0, 1]
        Maximum mean share of rows for the full model.
    weights : (n,) array of float > 0, optional
        1 each by default.
    ridge : float >= 0
        Weight of half the squares of the coefficients in n J. 0 is an improper prior.
    temperature : float > 0
        Divisor of n J.
    distance : {"kl", "log_odds"}
        Distance of gate and shares in J: Kullback-Leibler divergence, or squared difference of log
        odds.

    Attributes
    ----------
    problem : Problem

    Raises
    ------
    ParameterError
        If a parameter is out of its range, or shapes do not fit together.

    Examples
    --------
    >>> import numpy as np
    >>> rows, labels = np.array([[-1.0], [1.0]]), np.array([0, 1])
    >>> posterior = AdaptivePosterior(rows, labels, np.zeros(2), 2, full_share=0.5)
    >>> round(posterior.log_density(np.zeros(4)), 4)  # half of the rows go to a perfect model
    -0.6931
    """

    def __init__(
        self,
        rows: ArrayLike,
        labels: ArrayLike,
        full_losses: ArrayLike,
        n_classes: int,
        *,
        full_share: float = 0.5,
        weights: ArrayLike | None = None,
        ridge: float = 1.0,
        temperature: float = 1.0,
        distance: str = "kl",
    ) -> None:
        cells, places = np.asarray(rows, np.float64), np.asarray(labels, np.int64)
        n = len(places)
        losses = np.asarray(full_losses, np.float64)
        sizes = np.ones(n) if weights is None else np.asarray(weights, np.float64)
        if cells.ndim != 2 or not {(n,)} == {
            places.shape,
            losses.shape,
            sizes.shape,
            (len(cells),),
        }:
            raise ParameterError(
                "rows must be (n, p), and labels, full_losses and weights (n,), got shapes "
                f"{cells.shape}, {places.shape}, {losses.shape} and {sizes.shape}"
            )
        if n_classes < 2 or not ((places >= 0) & (places < n_classes)).all():
            raise ParameterError(f"labels must be in [0, {n_classes}), of at least two classes")
        if not np.isfinite(cells).all() or not (losses >= 0).all() or not (sizes > 0).all():
            raise ParameterError(
                "rows must be finite, full_losses >= 0 and weights > 0, got others"
            )
        self.temperature = check_real("temperature", temperature, above=0.0)
        if distance == "log_odds" and not full_share > 0:
            raise ParameterError(
                f'full_share must be > 0 with distance "log_odds", got {full_share}'
            )
        self.problem = GateProblem(
            np.column_stack([cells, np.ones(n)]), places, n_classes, sizes, losses,
            check_real("full_share", full_share, minimum=0.0, maximum=1.0),
            check_real("ridge", ridge, minimum=0.0),
            check_choice("distance", distance, ("kl", "log_odds")),
        )  # fmt: skip

    # -- states ------------------------------------------------------------------------------------

    def parts(self, state: Floats) -> State:
        """Return the coefficients of the gate (p + 1,) and of the local model (p + 1, c).

        The last coefficients are the intercepts. c is 1 for two classes, otherwise the number of
        classes. The score of the gate is the log odds of sending a row to the full model.
        """
        n_columns = self.problem.rows.shape[1]
        gate = np.asarray(state, np.float64)[:n_columns]
        return State(gate, state[n_columns:].reshape(n_columns, self.problem.n_outputs))

    def joined(self, gate: Floats, local: Floats) -> Floats:
        """Return the state (n_numbers,) with these coefficients."""
        return np.concatenate([gate, np.ravel(local)])

    def initial_state(self, rng: np.random.Generator) -> Floats:
        """Return random normal coefficients."""
        shape = self.problem.rows.shape[1] * (1 + self.problem.n_outputs)
        return np.asarray(rng.normal(size=shape))

    # -- formulas ----------------------------------------------------------------------------------

    def losses(self, state: Floats) -> tuple[Floats, Floats]:
        """Return A and B, (n,) each: losses of local and full model, nats; see `GateProblem`."""
        return self.problem.losses(self.parts(state))

    def shares(self, state: Floats) -> Floats:
        """Return q (n,): the best share of each row for the full model."""
        return self.problem.split(self.parts(state)).shares

    def log_prior(self, state: Floats) -> float:
        """Return the ridge part of the log density, nats."""
        penalty = self.problem.penalty(self.parts(state))
        return -self.problem.total * penalty / self.temperature

    def log_likelihood(self, state: Floats) -> float:
        """Return the rest of the log density, nats."""
        parts = self.parts(state)
        value = self.problem.value_and_split(parts)[0] - self.problem.penalty(parts)
        return -self.problem.total * value / self.temperature

    def log_density_and_gradient(self, state: Floats) -> tuple[float, Floats]:
        """Return the log density, nats, and its gradient, (n_numbers,) float64."""
        value, gradient = self.problem.value_and_gradient(self.parts(state))
        factor = -self.problem.total / self.temperature
        return factor * value, factor * self.joined(*gradient)

    def describe(self, state: Floats) -> Mapping[str, float]:
        """Return J (nats per row), the mean share of the full model, and its price beta."""
        parts = self.parts(state)
        value, (shares, beta, _) = self.problem.value_and_split(parts)
        sizes = self.problem.weights / self.problem.total
        return {
            "objective": value,
            "full_share": float(sizes @ shares),
            "beta": min(beta, float(np.finfo(np.float64).max)),
        }

    def _blocks(self) -> tuple[Floats, ArrayLike]:
        n_columns = self.problem.rows.shape[1]
        n = n_columns * (1 + self.problem.n_outputs)
        return np.ones(n), [0, n_columns, n]

    def _identity(self) -> tuple[Sequence[NDArray[Any]], object]:
        problem = self.problem
        settings = (
            problem.n_classes,
            problem.full_share,
            problem.ridge,
            self.temperature,
            problem.rows.shape,
            problem.distance,
        )
        return (problem.rows, problem.labels, problem.weights, problem.full_losses), settings
