r"""The Gibbs posterior over the two directions between two variables.

``log density(direction) = log prior(direction) - score(direction) / temperature``, where the score
measures the dependence between the cause and the residuals. This is not the posterior of a
generative model: it compares two scores on the scale of meaningful differences. The default
temperature is the score of the same number of independent rows.

The same posterior, at the temperature ``2 sensitivity / epsilon``, is the exponential mechanism:
one draw from it is an epsilon-private direction (McSherry & Talwar 2007), because neither its
weights nor its normalizer change by a factor above e^(epsilon / 2).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from bayescascade.base.validation import check_probability, check_real
from bayescascade.model.draws import TraceLegend
from samplers.types import Proposal

DIRECTIONS = ("x->y", "y->x")


@dataclass(frozen=True)
class DirectionPosterior:
    """The posterior over "x->y" and "y->x".

    Parameters
    ----------
    scores : mapping of str to float
        Score of each direction. Lower is better. Log spreads may be -inf.
    temperature : float > 0
        In units of the scores.
    prior : float in (0, 1)
        Prior probability of "x->y".

    Examples
    --------
    >>> posterior = DirectionPosterior({"x->y": 0.02, "y->x": 0.06}, temperature=0.02)
    >>> round(posterior.probabilities["x->y"], 4)
    0.8808
    """

    scores: Mapping[str, float]
    temperature: float
    prior: float = 0.5

    def __post_init__(self) -> None:
        check_real("temperature", self.temperature, above=0.0)
        check_probability("prior", self.prior, strict=True)

    @property
    def direction(self) -> str:
        """The more probable direction; the first one if both are equal."""
        return max(DIRECTIONS, key=self.log_density)

    @property
    def probabilities(self) -> dict[str, float]:
        """The probability of each direction."""
        first, second = (self.log_density(direction) for direction in DIRECTIONS)
        margin = 0.0 if first == second else first - second  # also if both are infinite
        return dict(zip(DIRECTIONS, (float(expit(margin)), float(expit(-margin))), strict=True))

    def log_prior(self, state: str) -> float:
        """Return the log prior, nats."""
        return math.log(self.prior if state == DIRECTIONS[0] else 1 - self.prior)

    def log_likelihood(self, state: str) -> float:
        """Return minus the score divided by the temperature, nats."""
        return -self.scores[state] / self.temperature

    def log_density(self, state: str) -> float:
        """Return log prior plus log likelihood, nats."""
        return self.log_prior(state) + self.log_likelihood(state)

    def initial_state(self, rng: np.random.Generator) -> str:
        """Return a random direction."""
        return DIRECTIONS[int(rng.integers(2))]

    def moves(self) -> Mapping[str, "Reverse"]:
        """Return the only move."""
        return {"reverse": Reverse()}

    def describe(self, state: str) -> Mapping[str, float]:
        """Return the score, and 1 for "x->y", 0 for "y->x"."""
        return {"score": float(self.scores[state]), "x_to_y": float(state == DIRECTIONS[0])}

    def legend(self) -> TraceLegend:
        """Return the legend of the traces."""
        return TraceLegend(diagnosed=("score",), words={"x_to_y": "x->y"})


class Reverse:
    """The other direction."""

    def propose(self, rng: np.random.Generator, state: str) -> Proposal[str]:
        """Return it; symmetric."""
        del rng
        return Proposal(DIRECTIONS[1 - DIRECTIONS.index(state)], 0.0)

    def proposals(self, state: str) -> list[tuple[Proposal[str], float]]:
        """Return it with probability 1."""
        return [(Proposal(DIRECTIONS[1 - DIRECTIONS.index(state)], 0.0), 1.0)]
