"""The boosted gates and local models to try: by penalty, tradeoff, share and number of trees.

The first trees of each fit are also candidates, because few trees read little.

**Adapt-GBRT**: gate and local model are sums of trees (algorithm 5; GreedyMiser without a gate).
Nan ("Learning to predict under a budget", 2018), (5.1) and (5.2), with sums over rows, as in the
errata of the documentation. At given shares q of the full model, trees are fitted in turn to the
negative gradients of the loss of all rows,

    of local outputs  (1 - q_i)(y_i - p_1i),    of the gate  q_i - sigma(g_i),

and to its curvatures by Newton's method; or by least squares to the gradients alone, as printed.
Gate and local model share the features that are paid for. The first shares are those of
GreedyMiser's trees, fitted to all rows without a gate. Each round then finds new shares, and grows
all trees anew. With several classes there is a tree for each, and curvatures are doubled, which
bounds those of softmax.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from bayescascade.base.arrays import Flags, Floats, Integers
from bayescascade.base.watch import check_time
from bayescascade.costs.items import CostItems
from bayescascade.costs.within_budgets import coarse_first
from bayescascade.methods.budget.gated.growing import (
    LEAF,
    BoostedScores,
    BoostedTree,
    CostPenalty,
    GateGrowth,
    Grower,
)
from bayescascade.methods.budget.gated.objective import GateProblem, class_chances


class BoostSums(NamedTuple):
    """Trees so far, and their sums for the rows: gates (n,) and outputs (c, n)."""

    gate: list[BoostedTree]
    local: list[BoostedTree]
    gates: Floats
    outputs: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Boosting:
    """How gate and local model are boosted; n_greedy: number of trees without a gate."""

    n_trees: int
    n_greedy: int
    n_rounds: int
    is_newton: bool

    def start(self, problem: GateProblem) -> Floats:
        """Return the initial outputs (c,): log odds of the classes, or logs of their shares."""
        shares = np.bincount(problem.labels, problem.weights, problem.n_classes)
        logs = np.log(np.maximum(shares / shares.sum(), np.finfo(np.float64).tiny))
        return np.array([logs[1] - logs[0]]) if problem.n_outputs == 1 else logs

    def empty(self, problem: GateProblem) -> BoostSums:
        """Return sums without trees."""
        n = len(problem.labels)
        outputs = np.repeat(self.start(problem)[:, np.newaxis], n, axis=1)
        return BoostSums([], [], np.zeros(n), outputs)

    def greedy(self, problem: GateProblem, grower: Grower, price: float) -> BoostSums:
        """Return the local model of all rows, without a gate: GreedyMiser."""
        sums, kept = self.empty(problem), problem.weights
        prices = grower.buying(price, kept)
        for _ in range(self.n_greedy):
            check_time()
            self._local(problem, grower, prices, kept, sums)
        return sums

    def adapted(
        self, problem: GateProblem, grower: Grower, price: float, sums: BoostSums
    ) -> BoostSums:
        """Return gate and local model; the first shares are the best ones for the given sums."""
        for _ in range(self.n_rounds):
            shares = problem.split_at(sums.gates, sums.outputs.T).shares
            kept = problem.weights * (1 - shares)
            sums, prices = self.empty(problem), grower.buying(price, kept)
            for _ in range(self.n_trees):
                check_time()
                self._local(problem, grower, prices, kept, sums)
                self._gate(problem, grower, prices, shares, sums)
        return sums

    def _local(
        self,
        problem: GateProblem,
        grower: Grower,
        prices: CostPenalty,
        kept: Floats,
        sums: BoostSums,
    ) -> None:
        """Add a tree for each output; rows have weights `kept` (n,)."""
        slopes = -problem.pulls(sums.outputs.T)
        if problem.n_outputs == 1:
            chances = expit(sums.outputs)
            bends = chances * (1 - chances)
        else:
            chances = class_chances(sums.outputs.T).T
            bends = 2.0 * chances * (1 - chances)
        for k, output in enumerate(sums.outputs):
            curvatures = kept * bends[k] if self.is_newton else kept
            sums.local.append(grower.grow(prices, kept * slopes[:, k], curvatures, output))

    def _gate(
        self,
        problem: GateProblem,
        grower: Grower,
        prices: CostPenalty,
        shares: Floats,
        sums: BoostSums,
    ) -> None:
        """Add a tree to the gate."""
        weights, chances = problem.weights, expit(sums.gates)
        curvatures = weights * chances * (1 - chances) if self.is_newton else weights
        sums.gate.append(grower.grow(prices, weights * (shares - chances), curvatures, sums.gates))


SHARES = (0.1, 0.3, 0.6)
"""Values of full_share to try if none is given."""

_LEAST_TRADEOFFS = {"once": 1e-4, "per_row": 1e-3}  # at costs of 1
_N_TRADEOFFS = 12
_N_HALVED = 6  # halvings of the step to the largest, to 1 %
_SET_RATE, _KEPT = 0.1, 0.8  # largest learning rate, and share of columns kept, for sets
_N_RANKING, _LEAST_COST = 30, 1e-6  # trees whose gains count; least cost, relative to the dearest
_PARTS = (1 / 30, 1 / 15, 0.15, 0.3, 0.6, 1.0)  # shares of the trees
LEAST = 1.0  # minimum curvature of a side of a cut


@dataclass(frozen=True, slots=True, eq=False)
class BoostedFit:
    """Gate and local model as sums of boosted trees."""

    gate: BoostedScores
    local: BoostedScores
    penalty: str  # "once", "per_row" or "set": who pays for a feature
    tradeoff: float  # nats per row that a unit of cost is worth
    full_share: float  # maximum mean share of rows for the full model; 0 without a gate
    n_trees: int  # number for the gate, and for each output of the local model
    objective: float  # J without costs, nats per row, of the whole fit with all of its trees


@dataclass(frozen=True, slots=True, eq=False)
class BoostedLearner:
    """Fits boosted gates and local models.

    problem: with all rows of the matrix; items: costs of its columns; `penalty`, `tradeoff` and
    full_share: None to try several values.
    """

    problem: GateProblem
    items: CostItems
    boosting: Boosting
    growth: GateGrowth
    penalty: str | None
    tradeoff: float | None
    full_share: float | None

    def tried(self, learns: Flags) -> Iterator[BoostedFit]:
        """Yield fits to some of the rows, (n,) bool."""
        problem = self.problem.part(learns)
        is_free = self.full_share == 0.0 and self.penalty is None and self.tradeoff is None
        if is_free or self.penalty == "set":
            yield from self._of_sets(problem)
        if self.penalty == "set":
            return
        penalties = ("once", "per_row") if self.penalty is None else (self.penalty,)
        growers = {
            each: Grower.of(problem.rows, problem.weights, self.items, self.growth, each)
            for each in penalties
        }
        found = {each: self._tradeoffs(problem, growers[each], each) for each in penalties}
        settings = [
            (penalty, found[penalty][place])
            for place in coarse_first(len(found[penalties[0]]))
            for penalty in penalties
        ]
        for penalty, tradeoff in settings:
            grower, price = growers[penalty], self._price(problem, penalty, tradeoff)
            greedy = self.boosting.greedy(problem, grower, price)
            if self.full_share in (None, 0.0):
                yield from self._first(problem, grower, greedy, penalty, tradeoff, 0.0)
            for share in SHARES if self.full_share is None else (self.full_share,):
                if share > 0.0:
                    limited = replace(problem, full_share=share)
                    sums = self.boosting.adapted(limited, grower, price, greedy)
                    yield from self._first(limited, grower, sums, penalty, tradeoff, share)

    def candidates(self, fits: Sequence[BoostedFit]) -> list[BoostedFit]:
        """Return the fits to be judged on other rows, in an order that is always the same."""
        return sorted(fits, key=lambda fit: (fit.penalty, -fit.tradeoff))

    def refitted(self, fit: BoostedFit) -> BoostedFit:
        """Return trees of all rows on the columns of a set; other fits as they are.

        At prices, new trees for all rows would read other columns at other costs. Their gate would
        have other scores, and no validation row would be left to choose its cut.
        """
        if fit.penalty != "set" or fit.local.is_constant:
            return fit
        grown = self._on(self.problem, fit.local.columns, fit.n_trees)
        *_, whole = self._first(self.problem, *grown, "set", 0.0, 0.0)
        return whole

    def scores(self, fit: BoostedFit) -> tuple[BoostedScores, BoostedScores]:
        """Return gate and local model of a fit."""
        return fit.gate, fit.local

    def _of_sets(self, problem: GateProblem) -> Iterator[BoostedFit]:
        """Yield fits to ever fewer columns: those of the largest gain, and of gain per cost."""
        items = self.items
        costs = np.array([items.costs[items.of_column(j)].sum() for j in range(items.n_columns)])
        costs = np.maximum(costs, _LEAST_COST * costs.max())
        found: dict[bytes, tuple[Grower, BoostSums]] = {}
        for exponent in (0.0, 1.0) if costs.min() < costs.max() else (0.0,):
            columns = np.arange(len(costs))
            while columns.size:
                key = columns.tobytes()
                if key not in found:
                    found[key] = self._on(problem, columns, self.boosting.n_greedy // 2)
                    yield from self._first(problem, *found[key], "set", 0.0, 0.0)
                gains = np.zeros(len(costs))
                for tree in found[key][1].local[: _N_RANKING * problem.n_outputs]:
                    splits = tree.column != LEAF
                    np.add.at(gains, columns[tree.column[splits]], tree.gain[splits])
                order = np.argsort(-(gains / costs**exponent)[columns], kind="stable")
                n_kept = min(columns.size - 1, int(_KEPT * columns.size))
                columns = np.sort(columns[order[:n_kept]])

    def _on(
        self, problem: GateProblem, columns: Integers, n_trees: int
    ) -> tuple[Grower, BoostSums]:
        """Return trees on some columns, all of which are free."""
        growth = self.growth._replace(rate=min(self.growth.rate, _SET_RATE))
        grower = Grower.of(problem.rows, problem.weights, self.items, growth, "none", columns)
        return grower, replace(self.boosting, n_greedy=n_trees).greedy(problem, grower, 0.0)

    def _tradeoffs(self, problem: GateProblem, grower: Grower, penalty: str) -> list[float]:
        """Return the tradeoffs to try; with the largest, the first trees buy the least."""
        if self.tradeoff is not None:
            return [float(self.tradeoff)]
        mean = float(self.items.costs.mean()) if self.items.n_items else 1.0
        least, step = _LEAST_TRADEOFFS[penalty] / mean, 2.0
        first, costs = replace(self.boosting, n_greedy=1), np.diff(self.items.starts) > 0

        def buys(tradeoff: float) -> bool:
            sums = first.greedy(problem, grower, self._price(problem, penalty, tradeoff))
            read = np.concatenate([tree.column for tree in sums.local])
            return bool(costs[read[read != LEAF]].any())

        largest = least
        while buys(largest * step):
            largest *= step
        for _ in range(_N_HALVED):
            step **= 0.5
            largest *= step if buys(largest * step) else 1.0
        found: list[float] = np.geomspace(largest, least, _N_TRADEOFFS).tolist()
        return found

    @staticmethod
    def _price(problem: GateProblem, penalty: str, tradeoff: float) -> float:
        return tradeoff * (problem.total if penalty == "once" else 1.0)

    def _first(
        self, problem: GateProblem, grower: Grower, sums: BoostSums, penalty: str, tradeoff: float,
        share: float,
    ) -> Iterator[BoostedFit]:  # fmt: skip
        """Yield some of the first trees of a fit, and finally all of them."""
        value = problem.value_at(sums.gates, sums.outputs.T)
        c, start = problem.n_outputs, self.boosting.start(problem)
        n_trees = len(sums.local) // c
        for n in sorted({max(1, round(part * n_trees)) for part in _PARTS}):
            gate = grower.scores(sums.gate[:n], np.zeros(1))
            local = grower.scores(sums.local[: n * c], start)
            yield BoostedFit(gate, local, penalty, tradeoff, share, n, value)
