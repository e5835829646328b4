"""Audits: lower bounds on a mechanism's epsilon from its outputs on two neighbors.

An (epsilon, delta)-private mechanism has P(M(x) in E) <= exp(epsilon) P(M(x') in E) + delta for all
events E. So an event that is much more frequent on one of two neighbors refutes small epsilons
(Jagielski, Ullman and Oprea, 2020, Auditing Differentially Private Machine Learning).
"""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from numbers import Real
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
from scipy.stats import beta

from bayescascade.base.arrays import Floats, Integers
from bayescascade.base.errors import ParameterError
from bayescascade.base.validation import check_integer, check_probability, check_real
from bayescascade.report.page import Heading, Page, Pieces
from bayescascade.report.printed import Printed


@dataclass(frozen=True, slots=True)
class Audit(Printed):
    """The result of an audit: with `confidence`, no epsilon below `epsilon_lower` >= 0 is true."""

    epsilon_lower: float
    confidence: float
    delta: float
    event: str  # the event that was more frequent on one neighbor
    frequencies: tuple[float, float]  # of the event, the higher one first
    n_samples: int  # runs on each neighbor, half of them to choose the event

    def page(self) -> Page:
        """Return the bound and the event that proves it."""
        delta = f" at delta {self.delta:.3g}" if self.delta else ""
        more, less = self.frequencies
        return (
            Heading([f"epsilon >= {self.epsilon_lower:.3g}{delta}"]),
            Pieces([f"confidence {self.confidence:.6g}", f"{self.n_samples:,} runs a neighbor"]),
            Pieces([f"event: {self.event}", f"frequencies {more:.4g} and {less:.4g}"]),
        )


def audit_privacy(
    mechanism: Callable[[Any], Any],
    neighbors: tuple[Any, Any],
    *,
    n_samples: int = 10_000,
    confidence: float = 0.999,
    delta: float = 0.0,
    statistic: Callable[[Any], float] | None = None,
) -> Audit:
    """Return a lower bound on the epsilon of a mechanism, from outputs on two neighbors.

    The first half of the outputs chooses an event E: that a number is at least or at most a
    threshold, or that the output has a certain value. The other half is independent of this choice.
    So P(M(x) in E) >= p and P(M(x') in E) <= q hold with probability (1 + confidence) / 2 each
    (Clopper and Pearson), and both with probability `confidence`. Then epsilon >= log((p - delta) /
    q). A mechanism that passes the audit may still not be private.

    Parameters
    ----------
    mechanism : callable
        Function of the data that returns an output with new noise each time: a number, a tuple, an
        array, a string or None.
    neighbors : (data, data)
        Two data sets that differ in one row.
    n_samples : int >= 20
        Number of runs on each data set.
    confidence : float in (0, 1)
    delta : float in [0, 1)
        Delta that the mechanism promises.
    statistic : callable, optional
        Function of an output that returns the number to use in its place.

    Raises
    ------
    ParameterError
        If a parameter is out of its range, or there are not two data sets.
    """
    n_samples = check_integer("n_samples", n_samples, 20)
    confidence = check_probability("confidence", confidence, strict=True)
    delta = check_real("delta", delta, minimum=0.0, below=1.0)
    if len(neighbors) != 2:
        raise ParameterError(f"neighbors must be two data sets, got {len(neighbors)}")

    def output(data: Any) -> Hashable:
        value = mechanism(data)
        value = value if statistic is None else statistic(value)
        value = tuple(value.tolist()) if isinstance(value, np.ndarray) and value.ndim else value
        value = value.item() if isinstance(value, np.generic | np.ndarray) else value
        return cast(Hashable, value)

    half, level = n_samples // 2, (1.0 - confidence) / 2.0
    drawn = [[output(data) for _ in range(n_samples)] for data in neighbors]
    best, event, order = -math.inf, _Event("=", 0, None), 1
    for kind, place, values, counts in _families(*(outputs[:half] for outputs in drawn)):
        for turn in (1, -1):
            bounds = _bounds(counts[::turn], half, level, delta)
            at = int(np.argmax(bounds))
            if bounds[at] > best:
                best, event, order = bounds[at], _Event(kind, place, values[at]), turn
    n = n_samples - half
    hits = np.array([[sum(map(event.has, outputs[half:]))] for outputs in drawn[::order]])
    bound = float(_bounds(hits, n, level, delta)[0])
    more, less = (hits[:, 0] / n).tolist()
    return Audit(max(0.0, bound), confidence, delta, event.text, (more, less), n_samples)


class _Event(NamedTuple):
    """An event: a number of an output is at least or at most a value, or an output is a value."""

    kind: str  # ">=" or "<=", or "="
    place: int  # index of the number
    value: Any

    def has(self, output: Hashable) -> bool:
        if self.kind == "=":
            return bool(output == self.value)
        numbers = _numbers(output)
        if self.place >= len(numbers):
            return False
        number = numbers[self.place]
        return bool(number >= self.value if self.kind == ">=" else number <= self.value)

    @property
    def text(self) -> str:
        if self.kind == "=":
            return f"output is {self.value!r}"
        return f"number {self.place + 1} {self.kind} {self.value:.6g}"


_Family: TypeAlias = tuple[str, int, Sequence[Any], Integers]


def _families(*samples: Sequence[Hashable]) -> Iterator[_Family]:
    """Yield kind, place, values, and the count of each event in each sample, (2, n_values)."""
    counted = [Counter(outputs) for outputs in samples]
    values: list[Any] = list(counted[0] | counted[1])
    yield "=", 0, values, np.array([[counts[value] for value in values] for counts in counted])
    numbers = [[_numbers(output) for output in outputs] for outputs in samples]
    for place in range(max(map(len, chain(*numbers)))):
        columns = [np.array([row[place] for row in rows if len(row) > place]) for rows in numbers]
        columns = [np.sort(column[~np.isnan(column)]) for column in columns]
        levels = np.unique(np.concatenate(columns))
        if levels.size:
            above = [c.size - np.searchsorted(c, levels) for c in columns]
            yield ">=", place, levels.tolist(), np.array(above)
            below = [np.searchsorted(c, levels, "right") for c in columns]
            yield "<=", place, levels.tolist(), np.array(below)


def _numbers(output: Hashable) -> list[float]:
    """Return the numbers of an output; any other part counts as NaN."""
    parts = output if isinstance(output, tuple) else (output,)
    return [float(part) if isinstance(part, Real) else math.nan for part in parts]


def _bounds(counts: Integers, n: int, level: float, delta: float) -> Floats:
    """Return log((p - delta) / q) for each event, by (2, n_events) counts in n draws each.

    p is a Clopper-Pearson lower bound and q an upper bound, each wrong with probability at most
    `level`; -inf where p is not above delta.
    """
    more, less = counts
    low = np.where(more == 0, 0.0, beta.ppf(level, np.maximum(more, 1), n - more + 1))
    high = np.where(less == n, 1.0, beta.ppf(1.0 - level, less + 1, np.maximum(n - less, 1)))
    bounds: Floats = np.full(low.shape, -math.inf)
    np.log(low - delta, out=bounds, where=low > delta)
    return bounds - np.log(high)
