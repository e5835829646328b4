"""The estimators that commands offer by name; a new one must be listed here."""

from bayescascade.methods.adaptive.parameters import ADAPT_GBRT, ADAPT_LIN, ADAPT_LSTSQ, MISER
from bayescascade.methods.boxes.parameters import BOXES
from bayescascade.methods.cascade_mixtures.parameters import CONTINUOUS, HIDDEN, MIXTURE
from bayescascade.methods.cascades.parameters import AUTO, BRANCH, DET, LEAF
from bayescascade.methods.classifier_trees.parameters import ASTC, CSTC, L1
from bayescascade.methods.cost_trees.parameters import SINGLE
from bayescascade.methods.forests.parameters import GROWN
from bayescascade.methods.histogram.parameters import HISTOGRAM
from bayescascade.methods.margin_neighbors.parameters import FMCC
from bayescascade.methods.prunings.parameters import PRUNED
from bayescascade.methods.rules.parameters import RULES

_MIXTURES = (MIXTURE, HIDDEN, CONTINUOUS)
DENSITIES = {each.name: each for each in (AUTO, LEAF, BRANCH, RULES, *_MIXTURES, HISTOGRAM, DET)}
"""The densities of the commands `fit` and `compare`."""

_TREES = (GROWN, PRUNED, SINGLE, MISER)
_LEARNERS = (*_TREES, ASTC, CSTC, L1, FMCC, ADAPT_GBRT, ADAPT_LIN, ADAPT_LSTSQ)
BUDGET_LEARNERS = {each.name: each for each in _LEARNERS}
"""The classifiers of the command `budget`."""

IN_TURN = ("l1", "cstc", "miser", "prune", "fmcc")
"""The classifiers that are tried by default, the simple and quick ones first.

On six tables, with several costs and budgets, one of them is within a standard error of the best
(`docs/budget_curves.csv`).
"""

COMMANDS = (BOXES,)
"""Other commands, made from their declarations."""
