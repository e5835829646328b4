"""Reading saved models back: which class a file is of."""

from importlib import import_module
from pathlib import Path
from typing import Any

from bayescascade.base.errors import ModelFileError
from bayescascade.base.files import read_json
from bayescascade.model.record import FORMAT, VERSION, Saved

__all__ = ["load", "model_class"]

_NAMES_OF_0_1 = {
    "leaf": "LeafCascade",
    "branch": "BranchCascade",
    "rules": "DensityRuleList",
    "rule_classifier": "RuleListClassifier",
    "budget_prune": "BudgetPrune",
    "budgeted_forest": "BudgetedForestClassifier",
    "cost_complexity_prune": "CostComplexityPrune",
    "greedy_prune": "GreedyPrune",
    "truncated_forest": "TruncatedForest",
}
"""Public names by the `model_name` that version 0.1 gave; what came later is saved by its own."""


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
    found = model_class(record.get("model"))
    if found is None:
        raise ModelFileError(
            f"{path}: model must be a kind that can be saved, got {record.get('model')!r}"
        )
    try:
        return found.from_record(record)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None


def model_class(name: object) -> Any:  # Any: a subclass of Saved, or None
    """Return the estimator that files call by a name, None if there is none."""
    package = import_module("bayescascade")  # its table of names is the registry
    public = _NAMES_OF_0_1.get(name, name) if isinstance(name, str) else ""
    found = getattr(package, public) if public in package.__all__ else None
    is_saved = isinstance(found, type) and issubclass(found, Saved) and found.model_name == name
    return found if is_saved else None
