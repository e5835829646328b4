"""Privacy costs of releases, their composition, and a budget that they may not exceed.

References
----------
Bun and Steinke (2016), Concentrated Differential Privacy.
Canonne, Kamath and Steinke (2020), The Discrete Gaussian for Differential Privacy.
Rogers, Roth, Ullman and Vadhan (2016), Privacy Odometers and Filters.
Whitehouse, Ramdas, Rogers and Wu (2023), Fully-Adaptive Composition in Differential Privacy.
"""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple, NoReturn

from scipy.optimize import minimize_scalar

from bayescascade.base.errors import ParameterError, PrivacyError
from bayescascade.base.validation import check_choice, check_real
from bayescascade.report.page import BLANK, Heading, Numbers, Page, Pieces, PrintedTable, count_of
from bayescascade.report.printed import Printed

_ROUNDING = 1e-12  # relative: ten times 0.1 is within 1
_ALMOST_ONE = 1.0 - 2.0**-53
_MOST_WRITTEN = 30.0  # epsilon


@dataclass(frozen=True, slots=True)
class Cost:
    """The privacy loss of a release, which is (epsilon, delta)-private and rho-concentrated.

    Rho-concentrated means that for every order a > 1 the Renyi divergence between its distributions
    on neighbors is at most rho a. If rho is None, it is epsilon**2 / 2 if delta is 0 (Bun and
    Steinke, Proposition 1.4), and unknown otherwise.
    """

    epsilon: float  # >= 0
    delta: float = 0.0  # in [0, 1)
    rho: float | None = None  # >= 0

    def __post_init__(self) -> None:
        check_real("epsilon", self.epsilon, minimum=0.0)
        check_real("delta", self.delta, minimum=0.0, below=1.0)
        if self.rho is not None:
            check_real("rho", self.rho, minimum=0.0)
        elif self.delta == 0.0:
            object.__setattr__(self, "rho", self.epsilon * self.epsilon / 2.0)

    @property
    def text(self) -> str:
        """Such as "epsilon 1, delta 1e-06"."""
        return f"epsilon {self.epsilon:.4g}" + (f", delta {self.delta:.3g}" if self.delta else "")


class Entry(NamedTuple):
    """A release in a ledger."""

    what: str
    cost: Cost


class PrivacyLedger(Printed):
    """A privacy budget for releases of the same data; it refuses releases that exceed it.

    All releases together are (epsilon, delta)-differentially private, even if later releases and
    their costs depend on earlier ones. The rule must be chosen in advance.

    * "basic": the sum of epsilons and the sum of deltas are within the budget (Rogers and others).
      Best for a few releases.
    * "concentrated": the sum of the rhos, turned into an epsilon at half the budget's delta, is
      within the budget. A release without a rho counts as delta_i-approximately epsilon_i**2 / 2
      -concentrated (Bun and Steinke, Section 8), and the sum of these deltas is within the other
      half (Whitehouse and others, Theorem 1). While all deltas are 0, a sum of epsilons within the
      budget is also accepted: such outcomes have a privacy loss within epsilon and add nothing to
      delta, and all other outcomes satisfy the concentrated rule. Best for many releases; its
      epsilon is smaller than that of advanced composition (Dwork and Roth, Theorem 3.20) at the
      same delta.

    Parameters
    ----------
    epsilon : float > 0
    delta : float in [0, 1)
    rule : {"basic", "concentrated"}
        The latter needs a delta > 0.

    Notes
    -----
    Threads may share a ledger. A copy, such as that of a parameter by scikit-learn, is the ledger
    itself. A ledger cannot be pickled, and a forked process cannot spend, because each copy would
    spend the budget again.

    Examples
    --------
    >>> ledger = PrivacyLedger(1.0)
    >>> ledger.spend(Cost(0.75), "a mean")
    >>> ledger.spend(Cost(0.5), "a median")
    Traceback (most recent call last):
    bayescascade.base.errors.PrivacyError: cost must be within what remains, epsilon 0.25, got ...
    """

    def __init__(self, epsilon: float, delta: float = 0.0, rule: str = "basic") -> None:
        self._budget = Cost(
            check_real("epsilon", epsilon, above=0.0),
            check_real("delta", delta, minimum=0.0, below=1.0),
        )
        self._rule = check_choice("rule", rule, ("basic", "concentrated"))
        if rule == "concentrated" and delta == 0.0:
            raise ParameterError(f"delta must be > 0 with rule='concentrated', got {delta!r}")
        self._entries: tuple[Entry, ...] = ()
        self._lock = Lock()
        self._process = os.getpid()

    @property
    def budget(self) -> Cost:
        """The budget."""
        return self._budget

    @property
    def rule(self) -> str:
        """The rule by which costs are added."""
        return self._rule

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The releases, in order."""
        return self._entries

    @property
    def spent(self) -> Cost:
        """The total cost of all releases."""
        return self._total(self._entries)

    @property
    def remaining(self) -> Cost:
        """The largest possible cost of a further release that states only epsilon and delta."""
        costs = [entry.cost for entry in self._entries]
        left = math.fsum([self._budget.epsilon, *(-cost.epsilon for cost in costs)])
        delta = math.fsum([self._delta, *(-cost.delta for cost in costs if self._counts(cost))])
        if self._rule == "concentrated":
            most = _rho_within(self._budget.epsilon, self._delta)
            rho = math.fsum([most, *(-_rho(cost) for cost in costs)])
            together = math.sqrt(max(0.0, 2.0 * rho))
            if left > together and not any(cost.delta for cost in costs):
                return Cost(left)
            left = together
        return Cost(max(0.0, left), max(0.0, delta))

    def spend(self, cost: Cost, what: str) -> None:
        """Enter a release before it is made.

        Parameters
        ----------
        cost : Cost
        what : str
            A name for the release, which is printed. It must not contain anything private.

        Raises
        ------
        PrivacyError
            If the release would exceed the budget, or if this process is a fork of the one that
            made the ledger. Nothing is spent then.
        ParameterError
            If `cost` is not a `Cost`.
        """
        if not isinstance(cost, Cost):
            raise ParameterError(f"cost must be a Cost, got {type(cost).__name__}")
        if os.getpid() != self._process:
            raise PrivacyError(
                "a ledger must be used in the process that made it, because a copy in a fork would "
                f"spend the budget again, got process {os.getpid()} of {self._process}"
            )
        with self._lock:
            entries = (*self._entries, Entry(str(what), cost))
            total, most = self._total(entries), 1.0 + _ROUNDING
            is_within = total.epsilon <= self._budget.epsilon * most
            if not (is_within and total.delta <= self._budget.delta * most):
                raise PrivacyError(
                    f"cost must be within what remains, {self.remaining.text}, got {cost.text}"
                )
            self._entries = entries

    def page(self) -> Page:
        """Return the releases, their costs, and the remaining budget."""
        rule = "epsilons and deltas added" if self._rule == "basic" else "concentrated composition"
        heading = Heading([f"privacy budget: {self._budget.text}", rule])
        if not self._entries:
            return (heading, Pieces(["nothing was released"]))
        costs = [entry.cost for entry in self._entries]
        columns = [Numbers("epsilon", [f"{cost.epsilon:.4g}" for cost in costs])]
        if any(cost.delta for cost in costs):
            columns.append(Numbers("delta", [f"{cost.delta:.3g}" for cost in costs]))
        if self._rule == "concentrated":
            columns.append(Numbers("rho", [f"{_rho(cost):.3g}" for cost in costs]))
        table = PrintedTable([entry.what for entry in self._entries], columns, "release")
        together = f"{count_of(len(costs), 'release')} together: {self.spent.text}"
        left = f"one more release may cost {self.remaining.text}"
        return (heading, BLANK, table, BLANK, Pieces([together]), Pieces([left]))

    def __repr__(self) -> str:
        return f"<PrivacyLedger: {self.spent.text} of {self._budget.text} spent>"

    def __copy__(self) -> "PrivacyLedger":
        return self

    def __deepcopy__(self, memo: object) -> "PrivacyLedger":
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a PrivacyLedger cannot be pickled: a copy would spend the budget again")

    @property
    def _delta(self) -> float:
        return self._budget.delta / (1.0 if self._rule == "basic" else 2.0)

    def _counts(self, cost: Cost) -> bool:
        """Return whether the delta of a release adds to the sum of deltas."""
        return self._rule == "basic" or cost.rho is None

    def _total(self, entries: Sequence[Entry]) -> Cost:
        costs = [entry.cost for entry in entries]
        rho = None if any(cost.rho is None for cost in costs) else math.fsum(map(_rho, costs))
        epsilon = math.fsum(cost.epsilon for cost in costs)
        delta = min(math.fsum(cost.delta for cost in costs), _ALMOST_ONE)
        added = Cost(epsilon, delta, rho)
        if self._rule == "basic":
            return added
        together = concentrated_epsilon(math.fsum(map(_rho, costs)), self._delta)
        if delta == 0.0 and epsilon <= together:
            return added
        deltas = math.fsum(cost.delta for cost in costs if self._counts(cost))
        return Cost(together, min(self._delta + deltas, _ALMOST_ONE), rho)


class LostLedger:
    """The ledger of a model after pickling, so that it and its clones cannot spend anything."""

    def spend(self, cost: Cost, what: str) -> NoReturn:
        """Raise PrivacyError."""
        del what
        raise PrivacyError(
            "ledger must be given again to a model that was pickled, because its own ledger stays "
            f"in the process that made it, got none to pay {cost.text}"
        )

    def __repr__(self) -> str:
        return "<LostLedger>"


def concentrated_epsilon(rho: float, delta: float) -> float:
    """Return an epsilon such that every rho-concentrated mechanism is (epsilon, delta)-private.

    It is the minimum over orders a > 1 of rho a + (log(1 / delta) + (a - 1) log(1 - 1 / a) -
    log(a)) / (a - 1), each of which is such an epsilon (Canonne, Kamath and Steinke, Section 2.3).
    rho >= 0; delta in (0, 1).
    """
    if rho == 0.0:
        return 0.0

    def epsilon_of(log_excess: float) -> float:
        order = 1.0 + math.exp(log_excess)
        surplus = -math.log(delta) + (order - 1.0) * math.log1p(-1.0 / order) - math.log(order)
        return rho * order + surplus / (order - 1.0)

    middle = 0.5 * math.log(max(-math.log(delta), 1e-3) / rho)
    found = minimize_scalar(
        epsilon_of, bounds=(middle - 9.0, middle + 3.0), method="bounded", options={"xatol": 1e-9}
    )
    return max(0.0, float(found.fun))


def _rho_within(epsilon: float, delta: float) -> float:
    """Return the greatest rho that a budget allows, rounded down."""
    low, high = -80.0, 80.0  # natural logarithms
    for _ in range(60):
        middle = 0.5 * (low + high)
        if concentrated_epsilon(math.exp(middle), delta) <= epsilon:
            low = middle
        else:
            high = middle
    return math.exp(low)


def _rho(cost: Cost) -> float:
    """Return the rho of a release; without one, that of its epsilon, apart from its delta."""
    return cost.epsilon * cost.epsilon / 2.0 if cost.rho is None else cost.rho


def times_text(epsilon: float) -> str:
    """Return e**epsilon, for epsilon >= 1e-9, as text, rounded up.

    It has three digits, of the excess over 1 if epsilon < 1; for epsilon > 30 it is like "e^31".
    """
    if epsilon > _MOST_WRITTEN:
        return f"e^{epsilon:g}"
    least = 1.0 if epsilon < 1.0 else 0.0  # not counted as a digit
    factor = math.expm1(epsilon) + (1.0 - least)
    decimals = 2 - math.floor(math.log10(factor))
    rounded = least + math.ceil(factor * 10.0**decimals) / 10.0**decimals
    return f"{rounded:,.{max(decimals, 0)}f}"
