"""The Gibbs posterior over gates and predictors: likelihood, ridge, and cost of sending.

    log density = log likelihood - ridge / 2 ``|theta|^2`` - gate_ridge / 2 ``|(w, b)|^2``
                  - tradeoff n (mean cost of a row)

for the sums s of `methods.sensors.models`: a softmax of classes, or numbers with normal noise.
Gates are smooth, sigmoid(sharpness z), for searches by gradient, or hard, the step, for annealing;
the cost uses the same gates. The last part makes it a Gibbs posterior: it depends on the rows, so
it is not the prior of a generative model.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import ParameterError
from bayescascade.base.validation import check_choice, check_real
from bayescascade.methods.sensors.models import SOFTMAX, SQUARE, Weights, fast_scores, fast_sends
from bayescascade.methods.sensors.signals import Signals
from bayescascade.methods.sensors.training import SensorProblem
from bayescascade.model.continuous import ContinuousPosterior


class GatePosterior(ContinuousPosterior):
    """Posterior over gates and predictors of sensors, by fit and by the cost of sending.

    Parameters
    ----------
    features : (n, p) array of float
        Features of the sensors, with mean 0 and variance 1.
    sensor_of : (p,) array of int
        The sensor of each feature, from 0 to n_sensors - 1, ascending.
    targets : (n,) array
        Labels from 0 to n_classes - 1, or numbers.
    n_classes : int or None
        Number of classes. None: targets are numbers.
    costs : (n_sensors,) array of float >= 0, optional
        1 each by default.
    tradeoff : float >= 0
        Nats per row that a unit of cost is worth.
    ridge, gate_ridge : float > 0
        Weights of half the squared coefficients of predictors and of gates.
    noise : float > 0
        Standard deviation of numbers around their predictions.
    sharpness : float > 0
        Slope of smooth gates.
    gates : {"smooth", "hard"}
        Kind of gates. Hard gates have no gradient.

    Raises
    ------
    ParameterError
        If a parameter is out of its range, or shapes do not fit together.

    Examples
    --------
    >>> import numpy as np
    >>> features = np.array([[-1.0, 0.5], [1.0, -0.5]])
    >>> posterior = GatePosterior(features, [0, 1], [0, 1], 2, tradeoff=0.1)
    >>> state = np.zeros(posterior.n_numbers)
    >>> round(posterior.log_density(state), 4)  # both send by half: 2 log 2 + 0.1 * 2
    -1.5863
    """

    def __init__(
        self,
        features: ArrayLike,
        sensor_of: ArrayLike,
        targets: ArrayLike,
        n_classes: int | None = None,
        *,
        costs: ArrayLike | None = None,
        tradeoff: float = 0.0,
        ridge: float = 1.0,
        gate_ridge: float = 0.1,
        noise: float = 1.0,
        sharpness: float = 1.0,
        gates: str = "smooth",
        alive: ArrayLike | None = None,
    ) -> None:
        cells, owners = np.asarray(features, np.float64), np.asarray(sensor_of, np.int64)
        given = np.asarray(targets)
        if cells.ndim != 2 or owners.shape != cells.shape[1:] or given.shape != cells.shape[:1]:
            raise ParameterError(
                "features must be (n, p), sensor_of (p,) and targets (n,), got shapes "
                f"{cells.shape}, {owners.shape} and {given.shape}"
            )
        n_sensors = int(owners.max(initial=-1)) + 1
        if (
            not np.array_equal(np.unique(owners), np.arange(n_sensors))
            or (np.diff(owners) < 0).any()
        ):
            raise ParameterError("sensor_of must ascend from 0 without gaps")
        prices = np.ones(n_sensors) if costs is None else np.asarray(costs, np.float64)
        if prices.shape != (n_sensors,) or not (prices >= 0).all():
            raise ParameterError(f"costs must be {n_sensors} numbers >= 0, got {costs!r}")
        if not np.isfinite(cells).all() or not np.isfinite(given.astype(np.float64)).all():
            raise ParameterError("features and targets must be finite, got others")
        if n_classes is not None and not np.isin(given, np.arange(n_classes)).all():
            raise ParameterError(f"targets must be in [0, {n_classes}), got others")
        lives = np.ones((len(cells), n_sensors), np.bool_) if alive is None else np.asarray(alive)
        self.signals = Signals(cells, lives.astype(np.bool_), owners)
        self.n_classes, self.costs = n_classes, prices
        self.targets = (
            given.astype(np.float64)[:, np.newaxis]
            if n_classes is None
            else np.eye(n_classes)[given.astype(np.int64)]
        )
        self.tradeoff = check_real("tradeoff", tradeoff, minimum=0.0)
        self.ridge = check_real("ridge", ridge, above=0.0)
        self.gate_ridge = check_real("gate_ridge", gate_ridge, above=0.0)
        self.noise = check_real("noise", noise, above=0.0)
        self.sharpness = check_real("sharpness", sharpness, above=0.0)
        self.kind = check_choice("gates", gates, ("smooth", "hard"))

    @classmethod
    def of(cls, problem: SensorProblem, tradeoff: float, **how: Any) -> Self:
        """Return the posterior for training data."""
        is_number = not problem.loss.is_of_classes
        targets = problem.targets[:, 0] if is_number else problem.targets.argmax(axis=1)
        return cls(
            problem.signals.features, problem.signals.sensor_of, targets,
            None if is_number else problem.targets.shape[1], costs=problem.costs, tradeoff=tradeoff,
            ridge=problem.ridge, alive=problem.signals.alive, **how,
        )  # fmt: skip

    # -- states ------------------------------------------------------------------------------------

    @property
    def n_numbers(self) -> int:
        """Length of a state."""
        p, n_sensors = self.signals.sensor_of.size, self.costs.size
        n_outputs = self.targets.shape[1]
        return int((p + n_sensors) * (1 + n_outputs) + n_outputs)

    def parts(self, state: Floats) -> Weights:
        """Return the gates and predictors of a state."""
        p, k, m = self.signals.sensor_of.size, self.costs.size, self.targets.shape[1]
        ends = np.cumsum([p, k, p * m, k * m])
        w, b, v, a, cloud = np.split(np.asarray(state, np.float64), ends)
        return Weights(w, b, v.reshape(p, m), a.reshape(k, m), cloud)

    def joined(self, weights: Weights) -> Floats:
        """Return the state of gates and predictors."""
        return np.concatenate([np.ravel(part) for part in weights])

    def initial_state(self, rng: np.random.Generator) -> Floats:
        """Return random normal coefficients with standard deviation 0.3."""
        return 0.3 * rng.normal(size=self.n_numbers)

    # -- formulas ----------------------------------------------------------------------------------

    def _open(self, weights: Weights) -> Floats:
        if self.kind == "hard":
            return fast_sends(weights, self.signals).astype(np.float64)
        soft: Floats = expit(self.sharpness * fast_scores(weights, self.signals))
        return soft * self.signals.alive

    def _outputs(self, weights: Weights, gates: Floats) -> Floats:
        sent = self.signals.features * gates[:, self.signals.sensor_of]
        return sent @ weights.predictors + gates @ weights.constants + weights.cloud

    def log_prior(self, state: Floats) -> float:
        """Return the part of the log density from ridges and cost, nats."""
        weights = self.parts(state)
        theta, gates = weights.theta, np.concatenate([weights.gates, weights.offsets])
        cost = float((self._open(weights) @ self.costs).sum())
        squares = self.ridge * float(np.sum(theta**2)) + self.gate_ridge * float(gates @ gates)
        return -0.5 * squares - self.tradeoff * cost

    def log_likelihood(self, state: Floats) -> float:
        """Return the log likelihood of the targets, nats; for numbers up to a constant."""
        weights = self.parts(state)
        outputs = self._outputs(weights, self._open(weights))
        if self.n_classes is None:
            return -float(SQUARE.rows(outputs, self.targets).sum()) / self.noise**2
        return -float(SOFTMAX.rows(outputs, self.targets).sum())

    def log_density_and_gradient(self, state: Floats) -> tuple[float, Floats]:
        """Return the log density, nats, and its gradient, (n_numbers,) float64.

        ParameterError if gates are hard.
        """
        if self.kind == "hard":
            raise ParameterError('gates must be "smooth" for a gradient, got "hard"')
        weights, x, of = self.parts(state), self.signals.features, self.signals.sensor_of
        open_ = self._open(weights)
        outputs = self._outputs(weights, open_)
        is_number = self.n_classes is None
        loss = SQUARE if is_number else SOFTMAX
        errors = loss.slope(outputs, self.targets) / (self.noise**2 if is_number else 1.0)
        by_gate = np.add.reduceat(x * (errors @ weights.predictors.T), self.signals.starts, axis=1)
        by_gate += errors @ weights.constants.T + self.tradeoff * self.costs
        by_score = by_gate * self.sharpness * open_ * (1 - open_)
        sent = x * open_[:, of]
        slopes = Weights(
            (x * by_score[:, of]).sum(axis=0) + self.gate_ridge * weights.gates,
            by_score.sum(axis=0) + self.gate_ridge * weights.offsets,
            sent.T @ errors + self.ridge * weights.predictors,
            open_.T @ errors + self.ridge * weights.constants,
            errors.sum(axis=0) + self.ridge * weights.cloud,
        )
        return self.log_density(state), -self.joined(slopes)

    def describe(self, state: Floats) -> Mapping[str, float]:
        """Return the mean loss (nats) and the mean cost of a row, with hard gates."""
        return {
            "loss": -self.log_likelihood(state) / len(self.targets),
            "cost": float((self.sending(state) * self.costs).sum()),
        }

    def sending(self, state: Floats) -> Floats:
        """Return the share of rows for which each sensor sends, with hard gates, (n_sensors,)."""
        return np.asarray(fast_sends(self.parts(state), self.signals).mean(axis=0))

    def needed(self, states: Iterable[Floats], least_share: float = 0.05) -> Floats:
        """Return the probability that each sensor is needed, (n_sensors,).

        Parameters
        ----------
        states : iterable of (n_numbers,) float64
            Draws, such as those of ``explore(posterior, "langevin").run_``.
        least_share : float in [0, 1]
            A sensor is needed in a draw if it sends for at least this share of the rows.
        """
        least = check_real("least_share", least_share, minimum=0.0, maximum=1.0)
        shares = np.array([self.sending(state) for state in states])
        if not len(shares):
            raise ParameterError("states must be at least one draw, got none")
        found: Floats = (shares >= least).mean(axis=0)
        return found

    def _blocks(self) -> tuple[Floats, ArrayLike]:
        p, k = self.signals.sensor_of.size, self.costs.size
        return np.ones(self.n_numbers), [0, p + k, self.n_numbers]

    def _identity(self) -> tuple[Sequence[NDArray[Any]], object]:
        settings = (
            self.n_classes, self.tradeoff, self.ridge, self.gate_ridge, self.noise, self.sharpness,
            self.kind, self.signals.features.shape,
        )  # fmt: skip
        signals = self.signals
        return (
            signals.features,
            signals.alive,
            signals.sensor_of,
            self.targets,
            self.costs,
        ), settings
