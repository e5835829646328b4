"""The densities that commands offer by name; a new one must be listed here."""

from bayescascade.methods.density.cascade_mixtures.parameters import CONTINUOUS, HIDDEN, MIXTURE
from bayescascade.methods.density.histogram.parameters import HISTOGRAM
from bayescascade.methods.density.trees.parameters import AUTO, BRANCH, DET, LEAF
from bayescascade.methods.lists.parameters import RULES

_MIXTURES = (MIXTURE, HIDDEN, CONTINUOUS)
DENSITIES = {each.name: each for each in (AUTO, LEAF, BRANCH, RULES, *_MIXTURES, HISTOGRAM, DET)}
"""The densities of the commands `fit` and `compare`."""
