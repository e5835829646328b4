"""The features that a node buys within its budget, and a bound on the distance to the best set.

Kusner and others (2014), equations (5)-(8), corrected as in the errata of the documentation. With
an intercept and weights p of the rows at the node, a set A of features explains the share

    z(A) = 1 - min_(b0, b) [sum_i p_i |y_i - b0 - b x_iA|^2 + ridge |b|^2] / V,

V = sum_i p_i |y_i - mean|^2, with columns of variance 1 at the node and weights of sum 1, summed
over the indicators of the classes. z grows with A. Features bought by the parents are free, and in
every set.

**The certificate.** Let G be the set bought, and gamma a number in (0, 1] such that for any set S
the sum over its features s of z(G + s) - z(G) is at least gamma (z(G + S) - z(G)). Because z grows
with the set, every S that costs at most the budget B has

    z(S) <= z(G + S) <= z(G) + (1 / gamma) sum_{s in S} [z(G + s) - z(G)],

and the sum is at most the best of a fractional knapsack of size B, in which a feature has its own
cost, without groups. Given the features of the parents, let C be the matrix of the sums of squares
(ridge included) of the other columns, with each feature's block whitened, so its diagonal blocks
are identity matrices. Eliminating G leaves a Schur complement, whose least eigenvalue is at least
that of C, and whose diagonal blocks are at most the identity. Let v be the coefficients that S adds
and g its correlations with the unexplained part, D the diagonal blocks. Then z(G + S) - z(G) = g'
C^-1 g, at most g' D^-1 g / lambda_min(D^-1/2 C D^-1/2), and the sum over s is g' D^-1 g; so gamma =
lambda_min(C) holds.
"""

from math import comb
from typing import NamedTuple

import numpy as np

from bayescascade.base.arrays import Flags, Floats, Integers
from bayescascade.base.errors import TooLargeError
from bayescascade.costs.items import CostItems
from bayescascade.costs.limits import is_within
from bayescascade.methods.budget.classifier_trees.kernels.choosing import (
    SINGULAR,
    ItemCosts,
    all_gains,
    buy,
    every_set,
    greedy,
)

MOST_WORK = 2e6
"""Maximum number of multiplications of "auto" for all sets of a node's features: a few ms."""

MOST_EXACT = 3e10
"""The same for "exact"."""

MOST_FEATURES = 20
"""Up to this number of features, all sets are listed."""

_MOST_BYTES = 1 << 30  # for a stack of squares
_SLACK = 1e-9  # tolerance of `is_within`
_EPSILON = float(np.finfo(np.float64).eps)


class Purchase(NamedTuple):
    """The purchase of a node."""

    features: Integers  # (k,), in the order of buying
    gains: Floats  # (k,), contribution of each to `explained`
    explained: float  # z of them and the features of the parents
    bound: float  # no set within the budget explains more
    is_exact: bool  # whether all affordable sets were compared


class NodeChoices:
    """The choices of a node: squares given its parents' features, and costs not yet paid.

    starts (d + 1,) int64: the columns of each feature; inherited (d,) bool: bought by parents;
    purchases change copies only.
    """

    def __init__(
        self, squares: Floats, starts: Integers, costs: CostItems, inherited: Flags
    ) -> None:
        self._starts, self._n_columns = starts, int(starts[-1])
        self._costs = costs
        self._unexplained = float(np.trace(squares[self._n_columns :, self._n_columns :]))
        bought = np.flatnonzero(inherited)
        self._squares = self._after(squares, bought)
        self._paid = np.zeros(costs.n_items, np.int64)
        for feature in bought.tolist():
            self._paid[costs.of_column(feature)] += 1
        self._is_open = ~inherited
        self._has = self._explained(self._squares)

    def choose(self, budget: float, how: str) -> Purchase:
        """Return the purchase by "paper", "greedy", "auto" or "exact" (may be TooLargeError)."""
        if how == "paper":
            return self._certified(self.greedy(budget, by_price=True, skips=False), budget)
        if how in ("exact", "auto"):
            best = self._best_set(budget, MOST_EXACT if how == "exact" else MOST_WORK)
            if best is not None:
                bought = self.greedy(np.inf, by_price=True, skips=True, among=best)
                return self._purchase(*bought, bound=None)
            if how == "exact":
                n_open = int(self._is_open.sum())
                raise TooLargeError(
                    'selection must be "auto" where a node can afford too many sets, '
                    f'got "exact" with {n_open} features',
                    f"the sets of {n_open} features",
                )
        both = [self.greedy(budget, by_price=by_price, skips=True) for by_price in (True, False)]
        return self._certified(max(both, key=lambda purchase: purchase[1].sum()), budget)

    def greedy(
        self, budget: float, *, by_price: bool, skips: bool, among: Flags | None = None
    ) -> tuple[Integers, Floats]:
        """Return features in order of buying and their gains, from open ones or `among` some.

        by_price: order by gain per price; skips: pass over features that do not fit.
        """
        d = self._is_open.size
        is_open = self._is_open.copy() if among is None else among.copy()
        order, gains = np.zeros(d, np.int64), np.zeros(d)
        n = greedy(
            self._squares.copy(),
            self._starts,
            is_open,
            self._prices(),
            budget,
            by_price,
            skips,
            self._block(),
            order,
            gains,
        )
        return order[:n], gains[:n]

    def _best_set(self, budget: float, most_work: float) -> Flags | None:
        """Return the best affordable set, (d,); None if there are too many sets."""
        alone = self._alone(self._costs.n_items)
        is_free: Flags = self._is_open & (alone == 0)
        is_candidate = self._is_open & (alone > 0) & [is_within(each, budget) for each in alone]
        candidates = np.flatnonzero(is_candidate)
        squares = self._after(self._squares, np.flatnonzero(is_free))
        best = self._every_set(squares, candidates, budget, most_work, np.zeros(0))
        if best is None:
            return None
        has = is_free
        has[candidates[best]] = True
        return has

    def explained_by_sets(self, most_work: float) -> tuple[Integers, Floats] | None:
        """Return open features, (k,), and z of all their sets, (2^k,); None for too many sets.

        The bits of the number s are the features of set s.
        """
        candidates = np.flatnonzero(self._is_open)
        if candidates.size > MOST_FEATURES:
            return None
        values = np.zeros(1 << candidates.size)
        if self._every_set(self._squares, candidates, np.inf, most_work, values) is None:
            return None
        return candidates, self._has + values

    def _every_set(
        self, squares: Floats, candidates: Integers, budget: float, most_work: float, values: Floats
    ) -> Flags | None:
        """Return which candidates are in the best set, (k,), and fill in `values`."""
        n = candidates.size
        prices = self._alone(self._costs.n_items)[candidates]
        if (n + 1) * squares.nbytes > _MOST_BYTES or _fewest_sets(prices, budget) > most_work:
            return None
        stack = np.empty((n + 1, *squares.shape))
        stack[0] = squares
        best = np.zeros(n, np.int64)
        value = every_set(
            stack,
            self._starts,
            candidates,
            self._prices(),
            budget,
            most_work,
            self._block(),
            np.zeros((4, n + 1)),
            best,
            values,
        )
        return None if value < 0 else best == 1

    def _certified(self, bought: tuple[Integers, Floats], budget: float) -> Purchase:
        """Return a purchase with the bound of the module."""
        features, gains = bought
        squares = self._after(self._squares, features)
        alone = self._alone(self._costs.n_items)
        own = self._alone(self._costs.n_items - self._costs.n_groups)
        gamma = self._ratio()
        more = np.zeros(self._is_open.size)
        all_gains(squares, self._starts, self._n_columns, self._block(), more)
        more[~self._is_open] = 0.0
        more[features] = 0.0
        more[[not is_within(each, budget) for each in alone]] = 0.0
        bound = self._explained(self._after(self._squares, np.flatnonzero(self._is_open)))
        if gamma > 0:
            explained = self._explained(squares)
            bound = min(bound, explained + _knapsack(more, own, budget) / gamma)
        return self._purchase(features, gains, bound)

    def _after(self, squares: Floats, features: Integers) -> Floats:
        """Return the squares after features are bought."""
        left = squares.copy()
        for feature in features.tolist():
            buy(left, self._starts, feature)
        return left

    def _ratio(self) -> float:
        """Return the gamma of the module, minus an allowance for rounding."""
        starts, n_columns = self._starts, self._n_columns
        matrix = self._squares[:n_columns, :n_columns].copy()
        kept = np.ones(n_columns, np.bool_)
        for feature in range(self._is_open.size):
            block = slice(starts[feature], starts[feature + 1])
            values, vectors = np.linalg.eigh(matrix[block, block])
            is_some = values > SINGULAR
            root = vectors * np.where(is_some, 1 / np.sqrt(np.where(is_some, values, 1.0)), 0.0)
            matrix[block] = root.T @ matrix[block]
            matrix[:, block] = matrix[:, block] @ root
            kept[block] = is_some
        matrix = matrix[np.ix_(kept, kept)]
        if not matrix.size:
            return 1.0
        least = float(np.linalg.eigvalsh(matrix)[0])
        return min(1.0, least - 1e3 * _EPSILON * n_columns)

    def _purchase(self, features: Integers, gains: Floats, bound: float | None) -> Purchase:
        explained = self._has + float(gains.sum())
        limit = explained if bound is None else max(bound, explained)
        return Purchase(features, gains, explained, min(limit, 1.0), bound is None)

    def _explained(self, squares: Floats) -> float:
        """Return the share of the targets that is eliminated."""
        n = self._n_columns
        return self._unexplained - float(np.trace(squares[n:, n:]))

    def _alone(self, n_items: int) -> Floats:
        """Return the current cost of each feature alone, (d,), for the first `n_items` items."""
        costs = np.where(self._paid == 0, self._costs.costs, 0.0)
        costs[n_items:] = 0.0
        incurred = [self._costs.of_column(feature) for feature in range(self._is_open.size)]
        return np.array([costs[items].sum() for items in incurred])

    def _prices(self) -> ItemCosts:
        costs = self._costs
        return ItemCosts(costs.starts, costs.items, costs.costs, self._paid.copy())

    def _block(self) -> Floats:
        widest = int(np.diff(self._starts).max())
        return np.empty((widest, widest + self._squares.shape[0] - self._n_columns))


def _fewest_sets(prices: Floats, budget: float) -> int:
    """Return a lower bound on the number of affordable sets, from the most expensive prices."""
    n = prices.size
    n_fit = sum(is_within(spent, budget) for spent in np.cumsum(np.sort(prices)[::-1]).tolist())
    return sum(comb(n, k) for k in range(1, n_fit + 1))


def _knapsack(values: Floats, prices: Floats, budget: float) -> float:
    """Return the maximum of the fractional knapsack with `values` >= 0 and a budget."""
    total = float(values[prices == 0].sum())
    left = budget * (1 + _SLACK)
    rates = np.where(prices > 0, values / np.where(prices > 0, prices, 1.0), 0.0)
    for place in np.argsort(-rates):
        if prices[place] == 0 or left <= 0:
            continue
        share = min(1.0, left / prices[place])
        total += share * float(values[place])
        left -= share * float(prices[place])
    return total
