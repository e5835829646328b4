"""The classifiers within a budget that commands offer by name; a new one must be listed here."""

from bayescascade.methods.budget.classifier_trees.parameters import ASTC, CSTC, L1
from bayescascade.methods.budget.forests.parameters import GROWN
from bayescascade.methods.budget.gated.parameters import ADAPT_GBRT, ADAPT_LIN, ADAPT_LSTSQ, MISER
from bayescascade.methods.budget.neighbors.parameters import FMCC
from bayescascade.methods.budget.pruning.parameters import PRUNED
from bayescascade.methods.budget.single_trees.parameters import SINGLE

_TREES = (GROWN, PRUNED, SINGLE, MISER)
_LEARNERS = (*_TREES, ASTC, CSTC, L1, FMCC, ADAPT_GBRT, ADAPT_LIN, ADAPT_LSTSQ)
BUDGET_LEARNERS = {each.name: each for each in _LEARNERS}
"""The classifiers of the command `budget`."""

IN_TURN = ("l1", "cstc", "miser", "prune", "fmcc")
"""The classifiers that are tried by default, the simple and quick ones first.

On six tables, with several costs and budgets, one of them is within a standard error of the best
(`docs/budget_curves.csv`).
"""
