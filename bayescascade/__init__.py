"""Probabilistic models that a person can read, with a Bayesian posterior.

`LeafCascade` and `BranchCascade` learn density trees, `DensityRuleList` lists of rules, and
`RuleListClassifier` lists with labels; `DensityEstimationTree` and `SmoothedHistogram` are there to
compare with, and `CascadeMixture` finds classes of rows. `BudgetPruneClassifier` and
`BudgetedForestClassifier` classify where features cost something, as `FeatureCosts` says;
`NeighborCompressionClassifier` does by the nearest of a few prototypes,
`RadoBoostClassifier` by sums of rows, `Rados`, that others may hold.
`GibbsPosterior` takes an objective of your own. `Table` reads data, as `ReadAs` says; `load` reads
saved models. Everything is imported when first used, so that ``import bayescascade`` is quick.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
