"""Models, densities and traces as plain data for JSON: everything, at full precision.

JSON has no infinities and no NaN; they become null.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bayescascade.model_record import NOT_SAVED

if TYPE_CHECKING:
    from bayescascade.cascades.density import DensityTree
    from bayescascade.estimator import PosteriorEstimator
    from bayescascade.report.trace import Trace

__all__ = ["density_record", "json_ready", "model_record", "trace_record"]


def model_record(model: "PosteriorEstimator[Any, Any, Any]") -> dict[str, Any]:
    """Return parameters, data, convergence, posterior and tree of a fitted model."""
    parameters = model.get_params()
    record = {
        "model": model.model_name,
        "parameters": {k: v for k, v in parameters.items() if k not in NOT_SAVED},
        "summary": {**model.summary_.to_dict(), "warnings": model.summary_.warnings},
        **model.schema_.to_dict(),
        "log_posterior": model.log_posterior_,
        **density_record(model.learned_),
    }
    return {name: json_ready(value) for name, value in record.items()}


def density_record(density: "DensityTree") -> dict[str, Any]:
    """Return a density tree, with the evidence that it is conditioned on, if any."""
    record: dict[str, Any] = {"n_leaves": density.n_leaves, "tree": density.to_dict()}
    if density.evidence:
        record["given"] = density.evidence_words()
        record["probability_given"] = float(density.evidence_probability)
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


def json_ready(value: Any) -> Any:  # Any: nested plain data of any shape
    """Return nested plain data with null in place of infinities and NaN."""
    if isinstance(value, Mapping):
        return {key: json_ready(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_ready(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
