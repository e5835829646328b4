"""What a search for the best list returns."""

from dataclasses import dataclass
from typing import NamedTuple

from bayescascade.methods.rules.rule_list import RuleList

__all__ = ["BoundPoint", "CertifiedList"]


class BoundPoint(NamedTuple):
    """Where a search stands.

    Attributes
    ----------
    seconds : float
        Since it began.
    n_visited : int
        Prefixes looked at.
    log_density : float, nats
        Of the best list so far.
    upper_bound : float, nats
        No list's log density is higher.
    """

    seconds: float
    n_visited: int
    log_density: float
    upper_bound: float


@dataclass(frozen=True, slots=True)
class CertifiedList:
    """The best list found, and how much better any list can be at most.

    Attributes
    ----------
    state : RuleList
    log_density : float, nats
        Of the list.
    upper_bound : float, nats
        No list's log density is higher, up to the rounding of both, which grows with the weights
        and the concentration as their log gamma does; equal to `log_density` if the search ended.
    is_optimal : bool
        Whether the search ended: no list is more probable.
    interrupted : bool
        Whether Ctrl-C ended it early.
    n_visited : int
        Prefixes looked at.
    seconds : float
    trace : tuple of BoundPoint
        Whenever a better list was found, and about twice a second.
    """

    state: RuleList
    log_density: float
    upper_bound: float
    is_optimal: bool
    interrupted: bool
    n_visited: int
    seconds: float
    trace: tuple[BoundPoint, ...]

    @property
    def gap(self) -> float:
        """How much higher the log density of any list can be, nats; 0.0 if this one is optimal."""
        return self.upper_bound - self.log_density
