"""The Gibbs posterior over policies, with exact sums and draws."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np

from bayescascade.base.arrays import Floats
from bayescascade.base.validation import check_real
from bayescascade.methods.margin_neighbors.boxes import LEAF, BoxTable, Policy, Solved
from bayescascade.model.draws import TraceLegend
from bayescascade.model.guard import UNIT, certified
from bayescascade.model.search import Search, seed_sequence
from bayescascade.model.solution import Certificate, Solution
from samplers.types import Proposal

_N_DRAWS = 250  # draws instead of each chain


@dataclass(frozen=True, eq=False)
class PolicyPosterior:
    """The density ``exp(-(errors + tradeoff * costs) / temperature)`` over policies of boxes.

    It is a Gibbs posterior: the objective is not the likelihood of a generative model. Errors and
    costs are sums over the training rows, and `temperature` is in rows.

    Parameters
    ----------
    boxes : BoxTable
        The rows, by box.
    tradeoff : float >= 0
        Errors per row that a unit of cost is worth.
    temperature : float > 0
        A policy with this number of additional errors is e times less probable.
    """

    boxes: BoxTable
    tradeoff: float
    temperature: float = 1.0

    def __post_init__(self) -> None:
        check_real("tradeoff", self.tradeoff, minimum=0.0)
        check_real("temperature", self.temperature, above=0.0)

    @cached_property
    def solved(self) -> Solved:
        """The solution of the recursion over all boxes."""
        return Solved(self.boxes, self.tradeoff, self.temperature)

    @property
    def weight(self) -> float:
        """Total weight of the rows."""
        return float(self.boxes.weights[0])

    @property
    def log_normalizer(self) -> float:
        """Log of the sum of the unnormalized density over all policies, nats."""
        return float(self.solved.log_sums[0])

    @property
    def first_questions(self) -> dict[int, float]:
        """Probability of each first feature; -1 means no feature."""
        features, weights = self._options(0)
        return dict(zip(features, np.exp(weights - self.log_normalizer).tolist(), strict=True))

    def objective(self, state: Policy) -> float:
        """Return the error rate plus tradeoff times the mean cost."""
        wrong, paid = self.boxes.errors_and_cost(state)
        return (wrong + self.tradeoff * paid) / self.weight

    def log_prior(self, state: Policy) -> float:
        """Return 0, or -inf if the state is not a policy."""
        try:
            self.boxes.errors_and_cost(state)
        except ValueError:
            return -math.inf
        return 0.0

    def log_likelihood(self, state: Policy) -> float:
        """Return minus the objective, in rows, divided by the temperature, nats."""
        try:
            return -self.objective(state) * self.weight / self.temperature
        except ValueError:
            return -math.inf

    def log_density(self, state: Policy) -> float:
        """Return log prior plus log likelihood, nats."""
        return self.log_likelihood(state)  # which is also -inf outside of the support

    def initial_state(self, rng: np.random.Generator) -> Policy:
        """Return a draw."""
        return self.draw(rng)

    def draw(self, rng: np.random.Generator) -> Policy:
        """Return an independent draw from the posterior."""
        nodes: list[int] = []
        pending = [0]
        while pending:
            box = pending.pop()
            if box not in self._known:
                features, weights = self._options(box)
                ends = np.exp(weights - weights.max()).cumsum()
                self._known[box] = features, ends / ends[-1]
            features, ends = self._known[box]
            feature = LEAF
            if len(features) > 1:
                feature = features[int(np.searchsorted(ends, rng.random(), "right"))]
            nodes.append(feature)
            if feature != LEAF:
                stride = int(self.boxes.strides[feature])
                digits = reversed(self.boxes.bins(feature))
                pending += [box + digit * stride for digit in digits]
        return Policy(tuple(nodes))

    @cached_property
    def _known(self) -> dict[int, tuple[list[int], Floats]]:
        """Options in the boxes that draws reached, with cumulative probabilities."""
        return {}

    def _options(self, box: int) -> tuple[list[int], Floats]:
        """Return the options in a box, and the log sum of the policies of each."""
        table, sums = self.boxes, self.solved.log_sums
        features, weights = [LEAF], [-float(table.errors[box]) / self.temperature]
        if table.weights[box] > 0:
            measured = table.measured(box)
            for feature in (j for j in range(table.sizes.size) if j not in measured):
                cost = self.tradeoff * table.price(box, feature) * float(table.weights[box])
                stride = int(table.strides[feature])
                inside = sum(float(sums[box + digit * stride]) for digit in table.bins(feature))
                features.append(feature)
                weights.append(inside - cost / self.temperature)
        return features, np.array(weights)

    def moves(self) -> Mapping[str, "Redraw"]:
        """Return the only move: a new draw."""
        return {"redraw": Redraw(self)}

    def describe(self, state: Policy) -> Mapping[str, float]:
        """Return the number of nodes that acquire a feature, the error rate and the mean cost."""
        wrong, paid = self.boxes.errors_and_cost(state)
        return {
            "n_questions": float(sum(node != LEAF for node in state.nodes)),
            "error": wrong / self.weight,
            "cost": paid / self.weight,
        }

    def encode_state(self, state: Policy) -> object:
        """Return a policy as a JSON-ready list."""
        return list(state.nodes)

    def decode_state(self, encoded: Any) -> Policy:
        """Return the policy of such a list; ValueError if it is malformed."""
        state = Policy(tuple(encoded))
        for _ in self.boxes.walk(state):
            pass
        return state

    def legend(self) -> TraceLegend:
        """Return the legend of the traces."""
        return TraceLegend(size="n_questions", diagnosed=("n_questions", "error", "cost"))

    def parameters(self) -> Mapping[str, Any]:
        """Return tradeoff and temperature."""
        return {"tradeoff": self.tradeoff, "temperature": self.temperature}

    # -- exact -------------------------------------------------------------------------------------

    @property
    def best(self) -> Policy:
        """The policy with the smallest objective; among equals, the one that stops first."""
        return self.boxes.policy_by(self.solved.choices)

    @property
    def greedy(self) -> Policy:
        """The policy by the greedy rule of the thesis."""
        return self.boxes.policy_by(self.solved.greedy)

    @property
    def certificate(self) -> Certificate:
        """The proof that no policy is better, up to rounding.

        `boxes` bounds the relative rounding error of the recursion. The second evaluation adds up
        the nodes of the best policy, and the items of each, all >= 0, and has fewer than 8 other
        operations. Twice these numbers include terms of higher order.
        """
        sizes, best = self.boxes.sizes, self.best
        n_items, least = self.boxes.items.n_items, float(self.solved.best[0])
        n_terms = sizes.size * (int(sizes.max()) + n_items + 2)
        unit = 2.0 * UNIT * least / self.temperature
        rounding = unit * (n_terms + len(best.nodes) + n_items + 8)
        certified(self.log_density, best, -least / self.temperature, rounding)
        extent = f"{self.solved.n_filled:,} boxes"
        return Certificate(2.0 * n_terms * unit, extent, None, "", True)

    def solve(self, search: Search) -> Solution[Policy]:
        """Return the best policy with its proof, and independent draws."""
        started = perf_counter()
        best = self.best
        draws: list[Sequence[Policy]] = []
        for seed in seed_sequence(search.random_state).spawn(search.n_chains):
            rng = np.random.default_rng(seed)
            draws.append([self.draw(rng) for _ in range(_N_DRAWS)])
        seconds = perf_counter() - started
        density = self.log_density(best)
        return Solution(None, best, density, self.certificate, seconds, draws)


class Redraw:
    """A move to an independent draw."""

    def __init__(self, posterior: PolicyPosterior) -> None:
        self._posterior = posterior

    def propose(self, rng: np.random.Generator, state: Policy) -> Proposal[Policy]:
        """Return a draw; its proposal is the posterior."""
        drawn, density = self._posterior.draw(rng), self._posterior.log_density
        return Proposal(drawn, density(state) - density(drawn))
