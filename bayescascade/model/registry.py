"""Reading saved models back: which class a file is of."""

from importlib import import_module
from pathlib import Path
from typing import Any

from bayescascade.base.errors import ModelFileError
from bayescascade.base.files import read_json
from bayescascade.model.record import FORMAT, VERSION

__all__ = ["load"]

_HOMES = {
    "leaf": "bayescascade.methods.cascades.estimators:LeafCascade",
    "branch": "bayescascade.methods.cascades.estimators:BranchCascade",
    "rules": "bayescascade.methods.rules.estimators:DensityRuleList",
    "rule_classifier": "bayescascade.methods.rules.classifier:RuleListClassifier",
    "budget_prune": "bayescascade.methods.prunings.budget_prune:BudgetPrune",
    "budgeted_forest": "bayescascade.methods.forests.budgeted_forest:BudgetedForestClassifier",
    "cost_complexity_prune": "bayescascade.methods.prunings.cost_complexity:CostComplexityPrune",
    "greedy_prune": "bayescascade.methods.prunings.baselines:GreedyPrune",
    "truncated_forest": "bayescascade.methods.prunings.baselines:TruncatedForest",
}
"""Module and class by `model_name`; the class is imported when a file is of it."""


def load(path: str | Path) -> Any:  # Any: each family has its own estimators
    """Read a model that was saved with its `save`.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    estimator
        Fitted, of the class that was saved; it holds no data, so `posterior_` and `run_` are not
        there.

    Raises
    ------
    ModelFileError
        If the file cannot be read, is cut short, of another format, or contradicts itself. Nothing
        in the file is ever executed.
    """
    record = read_json(path, FORMAT, VERSION)
    name = record.get("model")
    if not isinstance(name, str) or name not in _HOMES:
        raise ModelFileError(f"{path}: model must be one of {', '.join(_HOMES)}, got {name!r}")
    module, _, estimator = _HOMES[name].partition(":")
    try:
        return getattr(import_module(module), estimator).from_record(record)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None
