"""The contract of all methods: a posterior is an unnormalized log density over states.

A state is readable: a tree, a list, a set of cuts. `samplers` explores any `Posterior` that adds
``moves()``, proposals by name, or a compiled block of steps, ``advance(rng, state, n_steps,
inverse_temperature)``; `explore` does both, and reports. ``legend()`` says what its traces mean,
see `model.draws`. A method that minimizes an objective enters by `GibbsPosterior`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np

from bayescascade.base.validation import check_real
from samplers.types import Move

if TYPE_CHECKING:
    from bayescascade.data.schema import Schema
    from bayescascade.data.table import Table
    from bayescascade.model.draws import TraceLegend

S = TypeVar("S")


class Posterior(Protocol[S]):
    """An unnormalized log posterior density over readable states, in nats."""

    def log_prior(self, state: S) -> float:
        """Return the log prior, nats, possibly unnormalized; -inf off the support, never NaN."""

    def log_likelihood(self, state: S) -> float:
        """Return the log likelihood, nats, after parameters are integrated out where possible."""

    def log_density(self, state: S) -> float:
        """Return the sum of log prior and log likelihood, nats."""

    def initial_state(self, rng: np.random.Generator) -> S:
        """Return a random state from which a chain can start."""

    def describe(self, state: S) -> Mapping[str, float]:
        """Return the scalars that are traced for each draw, with the same keys for all states."""


class TablePosterior(Posterior[S], Protocol[S]):
    """A posterior given a table, made by an estimator."""

    @property
    def table(self) -> "Table":
        """The rows."""

    @property
    def schema(self) -> "Schema":
        """The columns of the states."""

    def parameters(self) -> Mapping[str, Any]:
        """Return the model's parameters by name; plain data."""

    def legend(self) -> "TraceLegend":
        """Return the legend of the traces."""

    def canonical(self, state: S) -> S:
        """Return the state that represents all states equivalent to `state`."""


@dataclass(frozen=True)
class GibbsPosterior(Generic[S]):
    """The Gibbs posterior ``exp(-objective(state) / temperature)`` of a point objective.

    It is not the Bayesian posterior of a generative model. States with a smaller `objective` are
    more probable: if the objective is larger by `temperature`, a state is e times less probable.

    Parameters
    ----------
    objective : callable
        Function of a state that returns the float to minimize; infinite off the support.
    start : callable
        ``start(rng)`` returns a state from which a chain can start.
    proposals : mapping of str to Move
        The moves, by name.
    temperature : float > 0
        One nat of log density, in units of the objective.
    summary : callable, optional
        Function of a state that returns the scalars to trace.
    """

    objective: Callable[[S], float]
    start: Callable[[np.random.Generator], S]
    proposals: Mapping[str, Move[S]]
    temperature: float = 1.0
    summary: Callable[[S], Mapping[str, float]] = field(default=lambda _state: {})

    def __post_init__(self) -> None:
        check_real("temperature", self.temperature, above=0.0)

    def log_prior(self, state: S) -> float:  # noqa: ARG002 - the contract's signature
        """Return 0."""
        return 0.0

    def log_likelihood(self, state: S) -> float:
        """Return ``-objective(state) / temperature``."""
        return -float(self.objective(state)) / self.temperature

    def log_density(self, state: S) -> float:
        """Return ``-objective(state) / temperature``."""
        return self.log_likelihood(state)

    def initial_state(self, rng: np.random.Generator) -> S:
        """Return ``start(rng)``."""
        return self.start(rng)

    def moves(self) -> Mapping[str, Move[S]]:
        """Return the given moves."""
        return self.proposals

    def describe(self, state: S) -> Mapping[str, float]:
        """Return the objective, and the scalars of `summary`."""
        return {"objective": float(self.objective(state)), **self.summary(state)}
