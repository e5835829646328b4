"""The estimators that commands choose among by name; a new one enters by being listed here."""

from bayescascade.methods.adaptive.parameters import ADAPT_GBRT, ADAPT_LIN, ADAPT_LSTSQ, MISER
from bayescascade.methods.boxes.parameters import BOXES
from bayescascade.methods.cascade_mixtures.parameters import MIXTURE
from bayescascade.methods.cascades.parameters import AUTO, BRANCH, DET, LEAF
from bayescascade.methods.classifier_trees.parameters import ASTC, CSTC, L1
from bayescascade.methods.cost_trees.parameters import SINGLE
from bayescascade.methods.forests.parameters import GROWN, SELECTED
from bayescascade.methods.histogram.parameters import HISTOGRAM
from bayescascade.methods.margin_neighbors.parameters import FMCC
from bayescascade.methods.prunings.parameters import PRUNED
from bayescascade.methods.rules.parameters import RULES

DENSITIES = {each.name: each for each in (AUTO, LEAF, BRANCH, RULES, MIXTURE, HISTOGRAM, DET)}
"""What `fit` and `compare` learn."""

_TREES = (GROWN, PRUNED, SELECTED, SINGLE, MISER)
_LEARNERS = (*_TREES, ASTC, CSTC, L1, FMCC, ADAPT_GBRT, ADAPT_LIN, ADAPT_LSTSQ)
BUDGET_LEARNERS = {each.name: each for each in _LEARNERS}
"""What `budget` learns."""

_QUICK = ("l1", "astc", "miser", "adapt-lin", "fmcc", "prune", "adapt-gbrt", "cstc")
IN_TURN = (*_QUICK, "forest", "adapt-lstsq", "select", "tree")
"""Those that are tried where nobody says which, the quick and strong ones first."""

COMMANDS = (BOXES,)
"""Commands of their own, made by what is declared of them."""
