"""Chains that run until they agree: in rounds, and with replicas at other temperatures.

Each round continues where the last one ended and takes as many steps as all earlier rounds, which
become its warm-up: only draws of the last round are kept. Its own R-hat and effective sample sizes
decide whether a round is the last. This favors rounds whose chains happen to look alike; a thousand
repetitions show no effect on means of draws (tests/samplers/test_rounds.py).

A posterior with ``operations(size)``, the operations of a step at a state of this size, can be
given limited work. Work is counted, so a result does not depend on the machine.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np

import samplers
from bayescascade.base.arrays import Floats
from bayescascade.model.diagnostics import ESS_FLOOR, Diagnostic, diagnose_array
from bayescascade.model.draws import TraceLegend
from samplers.tempering import STEPS_BETWEEN_SWAPS

Traces = Mapping[str, Floats]

_APART = 1.2  # R-hat of chains that are in different places, so replicas follow at once
_FAR = 3.0  # nats between mean log densities of chains that have not all found the best place


STEPS = {"quick": 0.25, "normal": 1.0, "thorough": 5.0}
"""Steps of each chain, by effort, relative to the default."""

WORK = {"quick": 0.2, "normal": 1.0, "thorough": 100.0}
"""Limits of the operations of a search, by effort, relative to the default."""


@dataclass(frozen=True, slots=True)
class Rounds:
    """Limits of rounds for chains that do not agree."""

    # >= 1, maximum rounds of plain chains. Without limited work, there is no further round if, at
    # the present rate of effective draws, even the last would not have enough.
    plain: int = 4
    # maximum rounds of replica exchange, if plain chains stay in different places; 0: none. There
    # is no further round if even the last would not have enough draws, unless chains still differ
    # in mean log density.
    exchange: int = 0
    share: float = 0.25  # > 0, of a plain chain's steps, for each replica's first round
    most: float = inf  # > 0, operations of all rounds
    hottest: float = 0.02  # smallest inverse temperature of a replica
    annealing: float = 1.0  # > 0, default steps of an annealing, of those of the first round

    def by(self, effort: str) -> "Rounds":
        """Return the limits for another effort; these are for normal effort."""
        if self.most == inf and effort == "quick":
            return replace(self, plain=1, exchange=0)
        return replace(self, most=WORK[effort] * self.most)

    def of_chains(
        self, posterior: Any, n_steps: int, n_replicas: int, n_draws: int
    ) -> dict[str, Any]:
        """Return the arguments of an engine of plain chains, with n_steps in their first round.

        They end early for `n_replicas` that follow, if the work left is enough for one round.
        """

        def is_enough(number: int, traces: Traces) -> bool:
            if not has_room(traces):
                return True
            found = _diagnose(posterior, traces)
            done = 2 ** (number - 1) * n_steps
            work = _operations(posterior, traces, done)
            longer = min(2.0 ** (self.plain - number), self.most / work)
            _, n_following = self._replicas(work, n_steps, n_replicas, n_draws)
            if longer < 2.0 or (n_following > 0 and _are_apart(found)):
                return True
            is_hopeless = self.most == inf and not _may_suffice(found, number, longer)
            return _is_fine(found) or is_hopeless

        return {"n_rounds": self.plain, "enough": is_enough}

    def of_replicas(self, posterior: Any) -> dict[str, Any]:
        """Return the arguments of `samplers.tempering`."""

        def is_enough(number: int, traces: Traces) -> bool:
            found = _diagnose(posterior, traces)
            longer = 2.0 ** (self.exchange - number)
            is_hopeless = not (_may_suffice(found, number, longer) or _is_climbing(traces))
            return _is_fine(found) or is_hopeless

        return {
            "min_inverse_temperature": self.hottest,
            "n_rounds": self.exchange,
            "enough": is_enough,
        }

    def steps_of_replicas(
        self, posterior: Any, run: samplers.Run[Any], n_steps: int, n_replicas: int, n_draws: int
    ) -> tuple[int, int]:
        """Return the steps of each replica in its first round, after chains, and most rounds.

        There are fewer rounds if the first would not swap between draws, and none if one would not.
        """
        n_before = run.extras.get("n_rounds", 1) - 1
        done = _operations(posterior, run.traces, 2**n_before * n_steps)
        return self._replicas(done, n_steps, n_replicas, n_draws)

    def _replicas(
        self, done: float, n_steps: int, n_replicas: int, n_draws: int
    ) -> tuple[int, int]:
        """Return the result of `steps_of_replicas` after this work."""
        fitting = (self.most - done) / (n_replicas * done / n_steps)  # in all rounds
        n_rounds, usual = self.exchange, self.share * n_steps
        least = min(usual, STEPS_BETWEEN_SWAPS * n_draws)
        while n_rounds > 0 and fitting / 2 ** (n_rounds - 1) < least:
            n_rounds -= 1
        return int(max(1, min(usual, fitting / 2 ** max(0, n_rounds - 1)))), n_rounds


def has_room(traces: Traces) -> bool:
    """Whether enough draws are kept for the required effective sample size of a longer run."""
    return traces["log_density"].size >= 2 * ESS_FLOOR


OF_CHAINS = Rounds()
"""For families whose replicas did not improve chains."""


def are_apart(posterior: Any, run: samplers.Run[Any]) -> bool:
    """Whether the chains of a run are in different places, so that replicas may help."""
    return _are_apart(_diagnose(posterior, run.traces))


def _are_apart(found: list[Diagnostic]) -> bool:
    return any(not diagnostic.r_hat <= _APART for diagnostic in found)


def _is_fine(found: list[Diagnostic]) -> bool:
    return all(diagnostic.is_fine for diagnostic in found)


def _may_suffice(found: list[Diagnostic], number: int, longer: float) -> bool:
    """Whether a round `longer` times as long as this one would have enough draws at its rate."""
    if number == 1:  # a quarter of it is warm-up without draws
        longer *= 2 / 3
    return min(diagnostic.ess for diagnostic in found) * longer >= ESS_FLOOR


def _is_climbing(traces: Traces) -> bool:
    """Whether a chain is far above where another one is, or where a chain was before."""
    halves = np.array_split(traces["log_density"], 2, axis=1)
    means = np.array([half.mean(axis=1) for half in halves])
    return bool(means[1].max() - means.min() > _FAR)


def _operations(posterior: Any, traces: Traces, n_steps: int) -> float:
    """Return the operations of some steps of all chains; a step is one if they are not known."""
    size, of_all = _legend(posterior).size, float(len(traces["log_density"]) * n_steps)
    if size is None or not hasattr(posterior, "operations"):
        return of_all
    return of_all * float(posterior.operations(float(traces[size].mean())))


def _diagnose(posterior: Any, traces: Traces) -> list[Diagnostic]:
    return [diagnose_array(traces[name]) for name in _legend(posterior).diagnosed_of(traces)]


def _legend(posterior: Any) -> TraceLegend:
    legend: TraceLegend = posterior.legend() if hasattr(posterior, "legend") else TraceLegend()
    return legend
