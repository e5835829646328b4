"""Adapt-GBRT: gate and local model are sums of trees (algorithm 5; GreedyMiser without a gate).

Nan ("Learning to predict under a budget", 2018), (5.1) and (5.2), with sums over rows, as in the
errata of the documentation. At given shares q of the full model, trees are fitted in turn to the
downward slopes of the loss of all rows,

    of local outputs  (1 - q_i)(y_i - p_1i),    of the gate  q_i - sigma(g_i),

and to its curvatures by Newton's method; or by least squares to the slopes alone, as printed. Both
share what is paid for. GreedyMiser's trees, of all rows and without a gate, give the first shares;
then rounds follow of new shares and as many new trees, from the start. Of several classes there is
a tree for each, and curvatures are doubled, which bounds those of softmax.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from bayescascade.base.watch import check_time
from bayescascade.methods.adaptive.growing import Grower, Prices, Tree
from bayescascade.methods.adaptive.objective import Numbers, Problem, class_chances


class Sums(NamedTuple):
    """Trees so far, and what they come to for the rows: gates (n,) and outputs (c, n)."""

    gate: list[Tree]
    local: list[Tree]
    gates: Numbers
    outputs: Numbers


@dataclass(frozen=True, slots=True, eq=False)
class Boosting:
    """How gate and local model are boosted: trees of each, without a gate n_greedy, and rounds."""

    n_trees: int
    n_greedy: int
    n_rounds: int
    is_newton: bool

    def start(self, problem: Problem) -> Numbers:
        """Return what the outputs begin with, (c,): the classes' log odds, or logs of shares."""
        shares = np.bincount(problem.labels, problem.weights, problem.n_classes)
        logs = np.log(np.maximum(shares / shares.sum(), np.finfo(np.float64).tiny))
        return np.array([logs[1] - logs[0]]) if problem.n_outputs == 1 else logs

    def empty(self, problem: Problem) -> Sums:
        """Return no trees."""
        n = len(problem.labels)
        outputs = np.repeat(self.start(problem)[:, np.newaxis], n, axis=1)
        return Sums([], [], np.zeros(n), outputs)

    def greedy(self, problem: Problem, grower: Grower, price: float) -> Sums:
        """Return the local model of all rows, without a gate: GreedyMiser."""
        sums, kept = self.empty(problem), problem.weights
        prices = grower.buying(price, kept)
        for _ in range(self.n_greedy):
            check_time()
            self._local(problem, grower, prices, kept, sums)
        return sums

    def adapted(self, problem: Problem, grower: Grower, price: float, sums: Sums) -> Sums:
        """Return gate and local model, whose first shares are those that trees so far lead to."""
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
        self, problem: Problem, grower: Grower, prices: Prices, kept: Numbers, sums: Sums
    ) -> None:
        """Add a tree of each output, by rows that count `kept` (n,)."""
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
        self, problem: Problem, grower: Grower, prices: Prices, shares: Numbers, sums: Sums
    ) -> None:
        """Add a tree of the gate."""
        weights, chances = problem.weights, expit(sums.gates)
        curvatures = weights * chances * (1 - chances) if self.is_newton else weights
        sums.gate.append(grower.grow(prices, weights * (shares - chances), curvatures, sums.gates))
