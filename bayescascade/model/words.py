"""What models and their traces are called in text; a family of models adds its names here."""

from collections.abc import Mapping
from typing import Any

__all__ = [
    "COLUMNS_USED",
    "FIRSTS",
    "LEARNED",
    "MODELS",
    "PARAMETERS",
    "SIZES",
    "TRACES",
    "model_words",
    "parameter_words",
    "trace_words",
]

MODELS = {
    "leaf": "leaf cascade",
    "branch": "branch cascade",
    "rules": "density rule list",
    "rule_classifier": "rule list classifier",
    "histogram": "smoothed histogram",
    "det": "density estimation tree",
    "budgeted_forest": "budgeted forest",
    "BudgetTreeClassifier": "budgeted tree",
    "budget_prune": "budget-pruned forest",
    "greedy_prune": "greedily pruned forest",
    "cost_complexity_prune": "cost-complexity pruned forest",
    "truncated_forest": "truncated forest",
}
"""By the estimators' `model_name`; those without one are only compared with."""

LEARNED = {"tree": "tree", "rules": "list"}
"""What a state is called, by the estimators' `learned_name`."""

PARAMETERS = (
    "expected_leaves",
    "expected_branches",
    "expected_rules",
    "expected_size",
    "concentration",
    "feature_inclusion",
    "max_leaves",
    "max_branches",
    "partitions",
    "leaf",
    "leaf_concentration",
    "max_size",
    "min_support",
)
"""The parameters that are printed with a model, in this order."""

_UNSAID = {"partitions": "subsets", "leaf": "uniform"}  # values that go without saying
_MOOT = {"max_branches": ("partitions", "levels"), "leaf_concentration": ("leaf", "uniform")}

SIZES = {"n_leaves": ("leaf", "leaves"), "n_rules": ("rule", "rules")}
"""The trace that says how large a state is: one of what it counts, and several."""

FIRSTS = {"first_feature": "first split", "first_rule": "first rule"}
"""Traces of codes that stand for labels."""

COLUMNS_USED = "columns used"

TRACES = {
    "log_posterior": "log posterior",
    "log_likelihood": "log likelihood",
    "n_leaves": "leaves",
    "n_rules": "rules",
    "depth": "depth",
    "n_conditions": "conditions",
    "n_features": COLUMNS_USED,
}
"""Traced quantities, in the order of a table of them."""


def model_words(model_name: str) -> str:
    """Return what a model is called, such as "leaf cascade"; an unknown name is its own word."""
    return MODELS.get(model_name, model_name)


def parameter_words(parameters: Mapping[str, Any]) -> list[str]:
    """Return a model's parameters such as "expected_leaves 8"; not those without effect.

    Parameters
    ----------
    parameters : mapping of str to object
        By name; None and "none" stand for no value.
    """
    words = []
    for name in (name for name in PARAMETERS if name in parameters):
        value = parameters[name]
        is_moot = name in _MOOT and parameters.get(_MOOT[name][0]) == _MOOT[name][1]
        if is_moot or (name in _UNSAID and value == _UNSAID[name]):
            continue
        if value is None or value == "none":
            words += ["any number of branches"] if name == "max_branches" else []
        else:
            words.append(f"{name} {value}" if isinstance(value, str) else f"{name} {value:g}")
    return words


def trace_words(name: str) -> str:
    """Return what a traced quantity is called, such as "log posterior"."""
    return TRACES.get(name, name)
