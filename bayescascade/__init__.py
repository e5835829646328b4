"""Probabilistic models that a person can read, with a Bayesian posterior.

`LeafCascade` and `BranchCascade` learn density trees, `DensityRuleList` lists of rules, and
`RuleListClassifier` lists with labels; `DensityEstimationTree` and `SmoothedHistogram` are there to
compare with. `BudgetPrune` and `BudgetedForestClassifier` classify where features cost something,
as `FeatureCosts` says; `bayescascade.budget` has the rest of that. `Table` reads data; `load` reads
saved models. Everything is imported when first used, so that ``import bayescascade`` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bayescascade.baselines.det import DensityEstimationTree
    from bayescascade.baselines.histogram import SmoothedHistogram
    from bayescascade.budget.budget_prune import BudgetPrune
    from bayescascade.budget.budgeted_forest import BudgetedForestClassifier
    from bayescascade.budget.costs import FeatureCosts
    from bayescascade.cascades.density import DensityTree
    from bayescascade.cascades.estimators import BranchCascade, LeafCascade
    from bayescascade.cascades.posterior import BranchPosterior, LeafPosterior
    from bayescascade.models import load
    from bayescascade.posterior import GibbsPosterior, Posterior
    from bayescascade.rules.classifier import RuleListClassifier
    from bayescascade.rules.density_list import DensityList
    from bayescascade.rules.estimators import DensityRuleList
    from bayescascade.rules.label_list import LabelList
    from bayescascade.rules.posterior import DensityListPosterior, LabelListPosterior
    from bayescascade.schema import Schema
    from bayescascade.table import Table

__version__ = "0.1.0"

__all__ = [
    "BranchCascade",
    "BranchPosterior",
    "BudgetPrune",
    "BudgetedForestClassifier",
    "DensityEstimationTree",
    "DensityList",
    "DensityListPosterior",
    "DensityRuleList",
    "DensityTree",
    "FeatureCosts",
    "GibbsPosterior",
    "LabelList",
    "LabelListPosterior",
    "LeafCascade",
    "LeafPosterior",
    "Posterior",
    "RuleListClassifier",
    "Schema",
    "SmoothedHistogram",
    "Table",
    "load",
]

_HOMES = {
    "BranchCascade": "bayescascade.cascades.estimators",
    "BranchPosterior": "bayescascade.cascades.posterior",
    "BudgetPrune": "bayescascade.budget.budget_prune",
    "BudgetedForestClassifier": "bayescascade.budget.budgeted_forest",
    "DensityEstimationTree": "bayescascade.baselines.det",
    "DensityList": "bayescascade.rules.density_list",
    "DensityListPosterior": "bayescascade.rules.posterior",
    "DensityRuleList": "bayescascade.rules.estimators",
    "DensityTree": "bayescascade.cascades.density",
    "FeatureCosts": "bayescascade.budget.costs",
    "GibbsPosterior": "bayescascade.posterior",
    "LabelList": "bayescascade.rules.label_list",
    "LabelListPosterior": "bayescascade.rules.posterior",
    "LeafCascade": "bayescascade.cascades.estimators",
    "LeafPosterior": "bayescascade.cascades.posterior",
    "Posterior": "bayescascade.posterior",
    "RuleListClassifier": "bayescascade.rules.classifier",
    "Schema": "bayescascade.schema",
    "SmoothedHistogram": "bayescascade.baselines.histogram",
    "Table": "bayescascade.table",
    "load": "bayescascade.models",
}


def __getattr__(name: str) -> Any:  # Any: it stands for every public object
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
