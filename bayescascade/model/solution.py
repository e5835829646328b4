"""Exact searches: certificates, and independent draws as a run.

A family's solver finds the most probable state with a proof, or with a bound on better states. If
it can also draw states independently, these replace chains: averages, traces and saved models use
them as a run.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Annotated, Generic, TypeVar

import numpy as np

import samplers
from bayescascade.base.store import Saved, Within
from bayescascade.model.posterior import Posterior

S = TypeVar("S")

TEMPERED = "tempered at"
"""Words before a number of rows, in the scope of a proof about a tempered distribution."""

NO_POSTERIOR = "which is no posterior"
"""What every print says about a tempered distribution."""

_EVERY = 0.5  # seconds between reports


@dataclass(frozen=True, slots=True)
class Certificate:
    """The proof of an exact search.

    Parameters
    ----------
    gap : float >= 0
        Bound on how much more probable another state may be, in nats. 0 means that none is.
    extent : str
        Size of the search, such as "405 boxes".
    log_evidence : float or None
        Log probability of the data under the normalized prior, nats; None if not computed.
    scope : str
        Restriction on the states, such as "of up to 24 leaves"; empty if the proof is for all.
    is_rounding : bool
        Whether the search was complete, so that the gap is only a bound on rounding.
    """

    gap: Annotated[float, Within(0)]
    extent: str
    log_evidence: float | None
    scope: str = ""
    is_rounding: Annotated[bool, Saved("is_rounding", is_optional=True)] = False

    @property
    def is_tempered(self) -> bool:
        """Whether the states are those of a tempered distribution, by the scope."""
        return TEMPERED in self.scope


@dataclass(frozen=True, eq=False)
class Solution(Generic[S]):
    """The result of an exact search."""

    result: object  # the solver's own result, the public ``exact_``
    state: S  # the best state
    log_density: float  # log posterior of the state, nats, unnormalized
    certificate: Certificate | None  # None if nothing was proved
    seconds: float
    # independent, from the posterior, (n_chains, n_draws); empty if there are none
    draws: Sequence[Sequence[S]] = ()
    # exact posterior shares by title and label, instead of those of the draws
    shares: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    interrupted: bool = False  # whether Ctrl-C ended the search
    timed_out: bool = False  # whether its time limit did
    # chains from the best state, instead of independent draws
    chains: samplers.Run[S] | None = None
    # the posterior's log density of a state, up to rounding, where the solver knows its terms
    log_density_of: Callable[[S], float] | None = None

    def as_run(
        self, posterior: Posterior[S], report: Callable[[str, float], object] | None = None
    ) -> samplers.Run[S]:
        """Return the draws as a run that accepts every proposal, or the chains."""
        if self.chains is not None:
            return replace(
                self.chains,
                timed_out=self.timed_out or self.chains.timed_out,
                best_state=self.state,
                best_log_density=self.log_density,
                seconds={"exact": self.seconds, **self.chains.seconds},
            )
        log_density_of = self.log_density_of or posterior.log_density
        states = {self.state: None} | dict.fromkeys(s for c in self.draws for s in c)
        known, reported = dict[S, dict[str, float]](), perf_counter()
        for place, state in enumerate(states):
            if report is not None and perf_counter() > reported + _EVERY:
                report("scoring draws", place / len(states))
                reported = perf_counter()
            log_density = log_density_of(state)
            known[state] = {"log_density": log_density, **posterior.describe(state)}
        chains = self.draws or [[]]
        traces = {
            name: np.array([[known[s][name] for s in chain] for chain in chains], np.float64)
            for name in known[self.state]
        }
        traces["acceptance_rate"] = np.ones_like(traces["log_density"])
        return samplers.Run(
            method="exact",
            best_state=self.state,
            best_log_density=self.log_density,
            traces=traces,
            draws=tuple(map(tuple, self.draws)),
            final_states=tuple(chain[-1] for chain in self.draws) or (self.state,),
            proposed={},
            accepted={},
            seconds={"exact": self.seconds},
            interrupted=self.interrupted,
            extras={},
            timed_out=self.timed_out,
        )


def state_run(posterior: Posterior[S], state: S) -> samplers.Run[S]:
    """Return a run with one state and without draws, as ended by Ctrl-C."""
    none = np.empty((1, 0))
    return samplers.Run(
        method="greedy",
        best_state=state,
        best_log_density=float(posterior.log_density(state)),
        traces=dict.fromkeys(("log_density", "acceptance_rate", *posterior.describe(state)), none),
        draws=((),),
        final_states=(state,),
        proposed={},
        accepted={},
        seconds={},
        interrupted=True,
        extras={},
    )
