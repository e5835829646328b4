"""Chains that run until they agree: in rounds, and with replicas at other temperatures.

Each round continues where the last one ended and takes as many steps as all earlier rounds, which
become its warm-up: only draws of the last round are kept. Its own R-hat and effective sample sizes
decide whether a round is the last. This favors rounds whose chains happen to look alike; a thousand
repetitions show no effect on means of draws (tests/samplers/test_rounds.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

import samplers
from bayescascade.base.arrays import Floats
from bayescascade.model.diagnostics import ESS_FLOOR, Diagnostic, diagnose_array
from bayescascade.model.draws import TraceLegend

Traces = Mapping[str, Floats]


@dataclass(frozen=True, slots=True)
class Rounds:
    """Limits of rounds for chains that do not agree."""

    # >= 1, maximum rounds of plain chains. There is no further round if, at the present rate of
    # effective draws, even the last would not have enough.
    plain: int = 4
    # rounds of replica exchange, if plain chains did not agree; 0: none
    exchange: int = 0
    share: float = 0.25  # > 0, of a plain chain's steps, for each replica's first round
    # > 0, mean size of states up to which `share` holds; larger states, whose steps take longer,
    # get fewer steps
    usual: float = inf
    hottest: float = 0.02  # smallest inverse temperature of a replica

    def of_chains(self, posterior: Any) -> dict[str, Any]:
        """Return the arguments of an engine of plain chains."""

        def is_enough(number: int, traces: Traces) -> bool:
            if not has_room(traces):
                return True
            found = _diagnose(posterior, traces)
            to_come = 2.0 ** (self.plain - number)
            if number == 1:  # a quarter of it is warm-up without draws
                to_come *= 2 / 3
            return _is_fine(found) or not min(one.ess for one in found) * to_come >= ESS_FLOOR

        return {"n_rounds": self.plain, "enough": is_enough}

    def of_replicas(self, posterior: Any) -> dict[str, Any]:
        """Return the arguments of `samplers.tempering`."""
        return {
            "min_inverse_temperature": self.hottest,
            "n_rounds": self.exchange,
            "enough": lambda _, traces: _is_fine(_diagnose(posterior, traces)),
        }

    def steps_of_replicas(self, posterior: Any, run: samplers.Run[Any], n_steps: int) -> int:
        """Return the steps of each replica in its first round, after a run of plain chains."""
        size = _legend(posterior).size
        mean = 0.0 if size is None else float(run.traces[size].mean())
        return max(1, int(self.share * n_steps * min(1.0, self.usual / max(mean, 1.0))))


def has_room(traces: Traces) -> bool:
    """Whether enough draws are kept for the required effective sample size of a longer run."""
    return traces["log_density"].size >= 2 * ESS_FLOOR


OF_CHAINS = Rounds()
"""For families whose replicas did not improve chains."""


def has_agreed(posterior: Any, run: samplers.Run[Any]) -> bool:
    """Whether the chains of a run agree, with enough effective draws."""
    return _is_fine(_diagnose(posterior, run.traces))


def _is_fine(found: list[Diagnostic]) -> bool:
    return all(one.is_fine for one in found)


def _diagnose(posterior: Any, traces: Traces) -> list[Diagnostic]:
    return [diagnose_array(traces[name]) for name in _legend(posterior).diagnosed_of(traces)]


def _legend(posterior: Any) -> TraceLegend:
    legend: TraceLegend = posterior.legend() if hasattr(posterior, "legend") else TraceLegend()
    return legend
