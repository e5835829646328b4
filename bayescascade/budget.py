"""The public names of budgeted classification together; `bayescascade` itself has each of them."""

from typing import Any

import bayescascade

__all__ = [  # noqa: F822 - imported when first used
    "BudgetPrune",
    "BudgetTree",
    "BudgetTreeClassifier",
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
    "SelectedForestClassifier",
    "TruncatedForest",
    "cost_accuracy_curve",
]


def __getattr__(name: str) -> Any:  # Any: it stands for every public object
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(bayescascade, name)
