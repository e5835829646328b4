"""What traced quantities are called in text."""

__all__ = ["COLUMNS_USED", "FIRSTS", "SIZES", "TRACES", "trace_words"]

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


def trace_words(name: str) -> str:
    """Return what a traced quantity is called, such as "log posterior"."""
    return TRACES.get(name, name)
