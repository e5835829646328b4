"""Classifiers whose features cost something when a row is classified.

`costs` says what features cost, `forest` is the state of all budgeted forests, and `base` what all
of them do. They are grown for a budget (`budgeted_forest`), or pruned to one (`budget_prune`, and
baselines to compare with). `pruning_posterior` and `tree_posterior` are sampled, `curve` measures
what a budget buys. Everything is imported when first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bayescascade.budget.budget_prune import BudgetPrune
    from bayescascade.budget.budget_tree import BudgetTree
    from bayescascade.budget.budgeted_forest import BudgetedForestClassifier
    from bayescascade.budget.cost_complexity import CostComplexityPrune
    from bayescascade.budget.costs import FeatureCosts
    from bayescascade.budget.curve import CostAccuracyCurve, CurvePoint, cost_accuracy_curve
    from bayescascade.budget.forest import Forest
    from bayescascade.budget.greedy_prune import GreedyPrune
    from bayescascade.budget.impurities import PolynomialImpurity
    from bayescascade.budget.kept_splits import KeptSplits
    from bayescascade.budget.near_optimal import NearOptimalPrunings
    from bayescascade.budget.path import PruningPath
    from bayescascade.budget.program import PruningProgram
    from bayescascade.budget.pruning_posterior import PruningPosterior
    from bayescascade.budget.tree_posterior import BudgetTreePosterior
    from bayescascade.budget.truncated import TruncatedForest

__all__ = [
    "BudgetPrune",
    "BudgetTree",
    "BudgetTreePosterior",
    "BudgetedForestClassifier",
    "CostAccuracyCurve",
    "CostComplexityPrune",
    "CurvePoint",
    "FeatureCosts",
    "Forest",
    "GreedyPrune",
    "KeptSplits",
    "NearOptimalPrunings",
    "PolynomialImpurity",
    "PruningPath",
    "PruningPosterior",
    "PruningProgram",
    "TruncatedForest",
    "cost_accuracy_curve",
]

_HOMES = {
    "BudgetPrune": "bayescascade.budget.budget_prune",
    "BudgetTree": "bayescascade.budget.budget_tree",
    "BudgetTreePosterior": "bayescascade.budget.tree_posterior",
    "BudgetedForestClassifier": "bayescascade.budget.budgeted_forest",
    "CostAccuracyCurve": "bayescascade.budget.curve",
    "CostComplexityPrune": "bayescascade.budget.cost_complexity",
    "CurvePoint": "bayescascade.budget.curve",
    "FeatureCosts": "bayescascade.budget.costs",
    "Forest": "bayescascade.budget.forest",
    "GreedyPrune": "bayescascade.budget.greedy_prune",
    "KeptSplits": "bayescascade.budget.kept_splits",
    "NearOptimalPrunings": "bayescascade.budget.near_optimal",
    "PolynomialImpurity": "bayescascade.budget.impurities",
    "PruningPath": "bayescascade.budget.path",
    "PruningPosterior": "bayescascade.budget.pruning_posterior",
    "PruningProgram": "bayescascade.budget.program",
    "TruncatedForest": "bayescascade.budget.truncated",
    "cost_accuracy_curve": "bayescascade.budget.curve",
}


def __getattr__(name: str) -> Any:  # Any: it stands for every public object
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
