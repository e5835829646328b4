"""The sets of features that gate and local model share, and the search for them.

A set consists of items of `costs.items` (features and groups). A column may have coefficients if
all its items are in the set. From all items down to none, the item is dropped whose coefficients in
gate and local model have the least norm per cost, and both are refitted without it. If there are
few items, all sets are tried, too; otherwise all sets of one item. They have several starts,
because the alternation stays near its start. Alternatively the group norm selects, as printed.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from bayescascade.base.arrays import Flags, Floats
from bayescascade.costs.items import CostItems, CostNorms
from bayescascade.methods.budget.gated.alternating import (
    GroupNorm,
    alternated,
    fitted_gate,
    fitted_local,
)
from bayescascade.methods.budget.gated.objective import GateProblem, State

_SAME = 1e-4  # nats per row, between paths that are taken to be the same

FEW_ITEMS = 6
"""Up to this number of items, all sets are tried."""

SHARES = (0.1, 0.3, 0.5, 0.7)
"""Values of full_share to try if none is given."""


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """Gate and local model, the columns (p,) that may have coefficients, and J.

    tradeoff: gamma of the group norm, 0.0 if sets are searched; cost: cost of the set for a row.
    """

    state: State
    columns: Flags
    full_share: float
    tradeoff: float
    objective: float
    cost: float


@dataclass(frozen=True, slots=True, eq=False)
class Choosing:
    """The items of the columns to choose from, and how starts are made."""

    items: CostItems  # items of the matrix's columns
    start: str

    def of_items(self, kept: Flags) -> Flags:
        """Return the columns (p + 1,) whose items are all kept, and the intercept."""
        items = self.items
        free = [bool(kept[items.of_column(j)].all()) for j in range(items.n_columns)]
        return np.array([*free, True])

    def cost(self, columns: Flags) -> float:
        """Return the total cost of columns (p + 1,)."""
        return float(self.items.total(self.items.paid(columns[np.newaxis, :-1]))[0])

    def starts(self, problem: GateProblem, columns: Flags) -> list[State]:
        """Return the starts of the alternation."""
        n_columns = problem.rows.shape[1]
        zero = State(np.zeros(n_columns), np.zeros((n_columns, problem.n_outputs)))
        if self.start == "zero":
            return [zero]
        fitted = fitted_local(problem, zero, columns)
        return [fitted, fitted_gate(problem, fitted, columns)]

    def searched(self, problem: GateProblem, shares: Sequence[float]) -> Iterator[Fit]:
        """Yield fits with all sets searched, for each limit of the share of the full model."""
        yield from self.paths(problem, shares)
        for share in shares:
            yield from self._small(replace(problem, full_share=share))

    def paths(self, problem: GateProblem, shares: Sequence[float]) -> Iterator[Fit]:
        """Yield fits with sets from all items down to none, for each limit of the share."""
        everything = self.of_items(np.ones(self.items.n_items, np.bool_))
        starts = self.starts(problem, everything)
        for share in shares:
            limited, met = replace(problem, full_share=share), dict[bytes, float]()
            for start in starts:
                yield from self._dropping(limited, start, met)

    def grouped(
        self, problem: GateProblem, shares: Sequence[float], tradeoffs: Sequence[float]
    ) -> Iterator[Fit]:
        """Yield fits with the group norm, for each limit and each tradeoff, the largest first."""
        places = np.arange(self.items.n_columns)
        norms = CostNorms.of(self.items, places, n_free=1)
        everything = self.of_items(np.ones(self.items.n_items, np.bool_))
        starts = self.starts(problem, everything)
        for share in shares:
            limited = replace(problem, full_share=share)
            for tradeoff in tradeoffs:
                norm = GroupNorm(norms, tradeoff)
                ends = [alternated(limited, start, everything, norm) for start in starts]
                state, value = min(ends, key=lambda end: end[1])
                used = (state.gate != 0) | (state.local != 0).any(axis=1)
                used[-1] = True
                yield Fit(state, used, share, tradeoff, value, self.cost(used))

    def _fit(self, problem: GateProblem, start: State, columns: Flags) -> Fit:
        begun = State(
            np.where(columns, start.gate, 0.0), np.where(columns[:, np.newaxis], start.local, 0.0)
        )
        state, value = alternated(problem, begun, columns)
        return Fit(state, columns, problem.full_share, 0.0, value, self.cost(columns))

    def _dropping(
        self, problem: GateProblem, start: State, met: dict[bytes, float]
    ) -> Iterator[Fit]:
        """Yield fits, dropping items of least norm per cost until a known path is met."""
        kept = np.ones(self.items.n_items, np.bool_)
        fit = self._fit(problem, start, self.of_items(kept))
        yield fit
        while kept.any():
            norms = self._norms(fit.state) / self.items.costs
            kept[np.where(kept, norms, np.inf).argmin()] = False
            columns = self.of_items(kept)
            if (columns == fit.columns).all():
                continue
            fit = self._fit(problem, fit.state, columns)
            yield fit
            key = columns.tobytes()
            if abs(met.get(key, np.inf) - fit.objective) < _SAME:
                return
            met[key] = fit.objective

    def _small(self, problem: GateProblem) -> Iterator[Fit]:
        """Yield fits with all sets of few items, otherwise of one item, from several starts."""
        n_items, seen = self.items.n_items, set[bytes]()
        sets: Iterable[ArrayLike] = np.eye(n_items, dtype=np.bool_)
        if n_items <= FEW_ITEMS:
            sets = product((False, True), repeat=n_items)
        for kept in sets:
            columns = self.of_items(np.array(kept, np.bool_))
            if columns.tobytes() in seen:
                continue
            seen.add(columns.tobytes())
            for start in self.starts(problem, columns):
                yield self._fit(problem, start, columns)

    def _norms(self, state: State) -> Floats:
        """Return the norm of the coefficients of each item's columns, (n_items,)."""
        squares = state.gate[:-1] ** 2 + (state.local[:-1] ** 2).sum(axis=1)
        norms = np.zeros(self.items.n_items)
        for j, square in enumerate(squares.tolist()):
            norms[self.items.of_column(j)] += square
        return np.sqrt(norms)
