"""What models and their traces are called in text; a family of models adds its names here."""

__all__ = [
    "COLUMNS_USED",
    "FIRSTS",
    "MODELS",
    "PARAMETERS",
    "SIZES",
    "TRACES",
    "model_words",
    "trace_words",
]

MODELS = {
    "leaf": "leaf cascade",
    "branch": "branch cascade",
    "rules": "density rule list",
    "rule_classifier": "rule list classifier",
}
"""By the estimators' `model_name`."""

PARAMETERS = (
    "expected_leaves",
    "expected_branches",
    "expected_rules",
    "expected_size",
    "concentration",
    "feature_inclusion",
    "max_branches",
    "max_size",
    "min_support",
)
"""The parameters that are printed with a model, in this order."""

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


def trace_words(name: str) -> str:
    """Return what a traced quantity is called, such as "log posterior"."""
    return TRACES.get(name, name)
