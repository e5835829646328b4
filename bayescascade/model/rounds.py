"""Chains that go on until they agree: in rounds, and with replicas at other temperatures.

Each round goes on where the one before ended, and takes as many steps as all before, which become
its warm-up: the draws are the last round's alone. Whether a round is the last is decided by its own
R-hat and effective sample sizes, so that what is kept was looked at once. That selects, of rounds
as long, those whose chains happen to look alike; what this does to means of draws is less than a
thousand repetitions can see (tests/samplers/test_rounds.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

import samplers
from bayescascade.model.diagnostics import ESS_FLOOR, Diagnostic, diagnose_array
from bayescascade.model.draws import TraceLegend

Traces = Mapping[str, NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class Rounds:
    """How long chains go on if they do not agree."""

    # >= 1, rounds of plain chains at most. There is no further one where, at the rate at which they
    # draw, the last would not have drawn enough.
    plain: int = 4
    # rounds of replica exchange, where plain chains did not come to agree; 0: none
    exchange: int = 0
    share: float = 0.25  # > 0, of a plain chain's steps: those of each replica in its first round
    # > 0, mean size of states up to which `share` holds; of larger ones, whose steps take longer,
    # steps are fewer
    usual: float = inf
    hottest: float = 0.02  # least inverse temperature of a replica

    def of_chains(self, posterior: Any) -> dict[str, Any]:
        """Return what an engine of plain chains is called with."""

        def is_enough(number: int, traces: Traces) -> bool:
            if not has_room(traces):
                return True
            found = _diagnose(posterior, traces)
            to_come = 2.0 ** (self.plain - number)
            if number == 1:  # whose warm-up is a quarter of it, and drew nothing
                to_come *= 2 / 3
            return _is_fine(found) or not min(one.ess for one in found) * to_come >= ESS_FLOOR

        return {"n_rounds": self.plain, "enough": is_enough}

    def of_replicas(self, posterior: Any) -> dict[str, Any]:
        """Return what `samplers.tempering` is called with."""
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
    """Whether enough is kept that draws of a longer run could have the effective sample size."""
    return traces["log_density"].size >= 2 * ESS_FLOOR


OF_CHAINS = Rounds()
"""Of families whose replicas were not seen to be worth their steps."""


def has_agreed(posterior: Any, run: samplers.Run[Any]) -> bool:
    """Whether the draws of a run are enough, and of chains that agree."""
    return _is_fine(_diagnose(posterior, run.traces))


def _is_fine(found: list[Diagnostic]) -> bool:
    return all(one.is_fine for one in found)


def _diagnose(posterior: Any, traces: Traces) -> list[Diagnostic]:
    return [diagnose_array(traces[name]) for name in _legend(posterior).diagnosed_of(traces)]


def _legend(posterior: Any) -> TraceLegend:
    legend: TraceLegend = posterior.legend() if hasattr(posterior, "legend") else TraceLegend()
    return legend
