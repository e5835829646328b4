"""Random pruning problems of any size and price, and what is wrong with what is proved of them.

Trees hold up to a billion rows, items cost from 1e-9 to 1e9, features are copied, tradeoffs are
from 0 to 1e12. Objectives are added up as fractions.
"""

from fractions import Fraction

import numpy as np

from bayescascade.costs.limits import is_within
from bayescascade.methods.budget.pruning.program import PruningProgram
from bayescascade.methods.budget.pruning.solvers import FlowSolver, Frontier
from tests.methods.budget.pruning import reference
from tests.methods.budget.pruning.forests import Listed, forest_of, items_of


def draw_listed(rng):
    """Return a program with all its prunings, and words that describe it."""
    n_trees, depth = ((1, 3), (2, 3), (3, 2))[rng.integers(3)]
    trees = [reference.random_tree(rng, depth, 6, 3) for _ in range(n_trees)]
    forest = forest_of(trees)
    column_items = [(0,), (0,), (1, 3), (2, 3), (3,), ()]  # the first is copied
    spread = rng.choice([0.3, 3.0, 9.0])
    items = items_of(column_items, 10.0 ** rng.uniform(-spread, spread, 4))
    n_rows = int(rng.integers(1, 9))
    weights = 10.0 ** rng.uniform(-6.0, 9.0, n_rows) if rng.random() < 0.5 else np.ones(n_rows)
    counts = forest.counts * float(rng.choice([1.0, 1e-6, 123456789.0]))
    if rng.random() < 0.3:
        counts = 10.0 ** rng.uniform(-6.0, 9.0, counts.shape)
    split_cost = float(rng.choice([0.0, 0.1, 1e-9, 1e9]))
    rows = rng.random((n_rows, 6)).astype(np.float32)
    program = PruningProgram.of(forest, items, rows, weights, split_cost=split_cost, counts=counts)
    words = f"{program.n_splits} splits, costs {items.costs}, split_cost {split_cost:g}"
    return Listed.of(forest, [reference.Node(tree) for tree in trees], program), words


class Exactly:
    """Objectives of a program's prunings as fractions."""

    def __init__(self, listed):
        self.listed, self.program = listed, listed.program

    def error(self, kept):
        """Return what `PruningProgram.error` rounds."""
        program = self.program
        return Fraction(program.base_error) - _sum(program.error_gain[kept])

    def objective(self, kept, tradeoff):
        """Return what `PruningProgram.objective` rounds."""
        program = self.program
        cost = _sum(program.work[kept]) + _sum(program.use_cost[program.used(kept)])
        return self.error(kept) + Fraction(tradeoff) * cost

    def best(self, tradeoff):
        """Return the least objective; those are added up that floats take for nearly that."""
        objectives = self.listed.errors + tradeoff * self.listed.costs
        near = objectives <= objectives.min() + 1e-9 + 1e-9 * abs(objectives.min())
        return min(self.objective(kept, tradeoff) for kept in self.listed.prunings[near])


def draw_tradeoff(rng, listed):
    """Return a tradeoff: none, any, or one at which prunings tie but for rounding."""
    kind = rng.integers(4)
    if kind == 0:
        return float(rng.choice([0.0, 1e-300, 1e12]))
    if kind == 1:
        return float(10.0 ** rng.uniform(-12, 12))
    some = rng.integers(len(listed.prunings), size=2)
    cost, error = (float(np.diff(values[some])[0]) for values in (listed.costs, listed.errors))
    return abs(error / cost) if cost else 0.01


def flaws(listed, rng):
    """Yield words for each promise that a solver breaks."""
    exactly, program = Exactly(listed), listed.program
    flow = FlowSolver(program)
    for _ in range(3):
        tradeoff = draw_tradeoff(rng, listed)
        best = exactly.best(tradeoff)
        found = flow.solve(tradeoff)
        yield from _flaws_of(f"flow at {tradeoff!r}", found, exactly, best)
        short = exactly.objective(found.kept, tradeoff) - best
        if short > Fraction(found.rounding):
            yield f"flow at {tradeoff!r} is short of the best by {float(short):.3g}"
    budget = float(listed.costs.max() * rng.random())
    within = Frontier(program, listed.feature).within(budget)
    best = exactly.best(within.tradeoff)
    yield from _flaws_of(f"within {budget!r}, tradeoff {within.tradeoff!r}", within, exactly, best)
    cost = program.cost(within.kept)
    if not is_within(cost, budget):
        yield f"the cost {cost!r} is beyond the budget {budget!r}"
    allowed = listed.prunings[[is_within(one, budget) for one in listed.costs.tolist()]]
    least = min(exactly.error(kept) for kept in allowed)
    left = within.tradeoff * max(0.0, float(listed.costs[listed.costs <= budget].max()) - cost)
    gap = within.objective - within.lower_bound + left * (1 + 1e-9)
    if exactly.error(within.kept) - least > Fraction(gap) + Fraction(within.rounding):
        yield f"within {budget!r} an error is more than {gap:.3g} above the least"


def _flaws_of(name, found, exactly, best):
    program = exactly.program
    if not program.is_closed(found.kept):
        yield f"{name}: no pruning"
    truth = exactly.objective(found.kept, found.tradeoff)
    off, rounding = abs(_off(found.objective, truth)), program.rounding(found.kept, found.tradeoff)
    if off > rounding:
        yield f"{name}: the objective is off by {off:.3g}, rounding {rounding:.3g}"
    if Fraction(found.lower_bound) > best:
        above = _off(found.lower_bound, best)
        yield f"{name}: the bound {found.lower_bound!r} is above the best by {above:.3g}"
    if found.gap == 0.0 and truth - best > Fraction(found.rounding):
        yield f"{name}: called optimal, and worse than the best by {float(truth - best):.3g}"


def _sum(values):
    return sum(map(Fraction, values.tolist()), Fraction(0))


def _off(value, truth):
    return float(Fraction(value) - truth)
