"""Models, densities and traces as plain data for JSON: everything, at full precision.

JSON has no infinities and no NaN; they become null.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bayescascade.model.record import NOT_SAVED

if TYPE_CHECKING:
    from bayescascade.methods.cascades.density import DensityTree
    from bayescascade.methods.rules.density_list import DensityList
    from bayescascade.methods.rules.label_list import LabelList
    from bayescascade.model.comparison import Comparison
    from bayescascade.model.draws import Trace
    from bayescascade.model.estimator import AnyEstimator

__all__ = ["comparison_record", "json_ready", "learned_record", "model_record", "trace_record"]


def model_record(model: "AnyEstimator") -> dict[str, Any]:
    """Return parameters, data, convergence, posterior and tree or list of a fitted model."""
    parameters = model.get_params()
    record = {
        "model": model.model_name,
        "parameters": {k: v for k, v in parameters.items() if k not in NOT_SAVED},
        "summary": {**model.summary_.to_dict(), "warnings": model.summary_.warnings},
        **model.schema_.to_dict(),
        "log_posterior": model.log_posterior_,
        **learned_record(model.learned_),
    }
    return {name: json_ready(value) for name, value in record.items()}


def learned_record(learned: "DensityTree | DensityList | LabelList") -> dict[str, Any]:
    """Return a tree or list, with the evidence that it is conditioned on, if any.

    A tree is ``{"n_leaves": n, "tree": {...}}``, a list ``{"n_rules": n, "rules": [...], "else":
    {...}}`` and, with labels, ``"classes"``; see their `to_dict`.
    """
    from bayescascade.methods.cascades.density import DensityTree
    from bayescascade.methods.rules.label_list import LabelList

    record: dict[str, Any]
    if isinstance(learned, DensityTree):
        record = {"n_leaves": learned.n_leaves, "tree": learned.to_dict()}
    else:
        record = {"n_rules": learned.n_rules, **learned.to_dict()}
    if isinstance(learned, LabelList):
        record = {"classes": learned.classes.tolist(), **record}
    elif learned.evidence:
        record["given"] = learned.evidence_words()
        record["probability_given"] = float(learned.evidence_probability)
    return {name: json_ready(value) for name, value in record.items()}


def trace_record(trace: "Trace") -> dict[str, Any]:
    """Return what a trace says of convergence, moves, sizes and columns."""
    record: dict[str, Any] = {
        "settings": dict(trace.settings),
        "n_chains": trace.n_chains,
        "n_draws": trace.n_draws,
        "acceptance": dict(trace.acceptance),
    }
    if trace.is_sample:
        record |= {
            "diagnostics": {name: asdict(d) for name, d in trace.diagnostics().items()},
            "shares": trace.shares(),
        }
    return {name: json_ready(value) for name, value in record.items()}


def comparison_record(comparison: "Comparison") -> dict[str, Any]:
    """Return what every density made of every halving that it finished."""
    table = comparison.table
    record = {
        "source": table.source,
        "n_rows": table.n_rows,
        "n_distinct": table.n_distinct,
        "total_weight": table.total_weight,
        **table.schema.to_dict(),
        "models": list(comparison.models),
        "outcomes": [asdict(outcome) for outcome in comparison.outcomes],
    }
    return {name: json_ready(value) for name, value in record.items()}


def json_ready(value: Any) -> Any:  # Any: nested plain data of any shape
    """Return nested plain data with null in place of infinities and NaN."""
    if isinstance(value, Mapping):
        return {key: json_ready(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_ready(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
