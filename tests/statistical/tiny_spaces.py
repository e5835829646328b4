"""Spaces that the tests of chains share, small and large."""

import numpy as np

from bayescascade.methods.density.trees.tree import Tree
from bayescascade.methods.lists.rule_list import RuleList
from tests.methods.budget.classifier_trees import problems as classifiers
from tests.methods.budget.pruning import problems as prunings
from tests.methods.budget.single_trees import problems as budgeted
from tests.methods.density.trees import problems as cascades
from tests.methods.density.trees.problems import (
    BRANCH,
    GENERATIVE,
    INCLUSION,
    INDEPENDENT_BRANCH,
    LEAF,
)
from tests.methods.lists import problems as rules
from tests.statistical.spaces import Space, bought, budgets, cuts, lists, trees

TREES = [
    trees(cascades.BINARY, LEAF), trees(cascades.MULTIWAY, LEAF),
    trees(cascades.MULTIWAY, INCLUSION), trees(cascades.BINS, LEAF),
    trees(cascades.FRACTIONAL, INCLUSION), trees(cascades.CONSTANT, LEAF),
]  # fmt: skip
BINARY, MULTIWAY, MULTIWAY_INCLUSION, BINS, FRACTIONAL, CONSTANT = TREES
BY_BRANCHES = trees(cascades.MULTIWAY, BRANCH)
OPTIONS = [trees(*pair) for pair in cascades.WITH_OPTIONS]
LISTS = [lists(problem) for problem in (*rules.FEW, rules.MISSING, rules.GAPS)]
PAIR, LIST_BINS, LIST_FRACTIONS, SUPPORTED, THREE_CLASSES, MISSING, GAPS = LISTS
BUDGETS = [
    budgets(budgeted.TWO), budgets(budgeted.GROUPED, groups=()), budgets(budgeted.THREE_CLASSES),
    budgets(budgeted.WEIGHED), budgets(budgeted.CONSTANT),
]  # fmt: skip
TWO, GROUPED, THREE_BUDGETED, WEIGHED, CONSTANT_BUDGETED = BUDGETS
CUTS = [cuts(problem) for problem in prunings.PROBLEMS]
CUT_PAIR, DEEP, THREE_CUTS, FREE, STUMP = CUTS
BOUGHT = [bought(problem) for problem in (classifiers.ROOT, classifiers.TWO_LEAVES)]
HEATED = (MULTIWAY, MULTIWAY_INCLUSION, PAIR, SUPPORTED, *BUDGETS, *CUTS, *BOUGHT)
ALL = (*TREES, BY_BRANCHES, *OPTIONS, *LISTS, *BUDGETS, *CUTS, *BOUGHT)
CORE = (MULTIWAY, PAIR, WEIGHED, CUT_PAIR, BOUGHT[1])
"""One of every family; the others are for the slow tests."""

SYMMETRIC = {("swap",), ("relocate",)}  # of lists: as likely as their reverse

MIXED_WAYS = trees(cascades.MIXED_WAYS, BRANCH)
LEVELS = [
    trees(cascades.LEVELS, model) for model in (LEAF, INCLUSION, INDEPENDENT_BRANCH, GENERATIVE)
]
LARGE_LISTS = [
    lists(rules.Problem("large", rules.KINDS, (3, 2, 3), 3, n_rows=80)),
    lists(
        rules.Problem(
            "large-labels", ("nominal", "ordinal", "nominal"), (3, 3, 2), 3, (1,), n_classes=3,
            n_rows=80,
        )
    ),
]  # fmt: skip
LONG_LISTS = [
    lists(rules.Problem("longer", rules.KINDS, (3, 3, 2), 3, (1,), n_rows=60)),
    lists(
        rules.Problem(
            "longer-labels", ("continuous", "nominal", "ordinal"), (3, 2, 4), 2, (2,), n_classes=3,
            n_rows=90, min_support=0.05, fractional=True,
        )
    ),
]  # fmt: skip

# Trading three branches over two for two over three has a ratio only if there are more splits.
TRADABLE = Tree.from_nested(
    (0, [((k,), (1, [((0,), (2, [((0,), None), ((1,), None)]) if k else None), ((1,), None)]))
         for k in range(3)]),
    cascades.MIXED_WAYS.nominal,
)  # fmt: skip


def large_states(space: Space, rng, n):
    """Return trees of five and more leaves, lists of two to four rules."""
    if space not in (*LARGE_LISTS, *LONG_LISTS):
        large = [state for state in space.states if state.n_leaves > 4]
        chosen = [large[int(i)] for i in rng.choice(len(large), size=n, replace=False)]
        return [*chosen, TRADABLE] if space is MIXED_WAYS else chosen
    found, n_candidates = [], len(space.posterior().antecedents)
    while len(found) < n:
        drawn = rng.choice(n_candidates, size=int(rng.integers(2, 5)), replace=False)
        state = RuleList(tuple(drawn.tolist()))
        found += [state] * (space.log_density(state) > -np.inf)
    return found
