"""Parameters of rules that explain effects, declared once."""

from bayescascade.base.parameters import Choice, Integer, Real
from bayescascade.model.parameters import MemoryParameters, RunParameters


class EffectRulesParameters(MemoryParameters):
    """Of `EffectRules`."""

    kind = Choice("list", "A rule list, or a tree of depth 2", words=("list", "tree"))
    max_size = Integer(2, "Maximum number of conditions per rule", minimum=1)
    min_support = Real(0.1, "Minimum share of the rows that satisfy a rule", above=0.0, below=1.0)
    n_bins = Integer(4, "Number of quantile bins for numbers", minimum=2, maximum=65_535)
    n_associations = Integer(5, "Most associations shown of each side", minimum=0)
    random_state = RunParameters.random_state
