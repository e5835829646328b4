"""Log evidences of models and parameters: choosing between them without cross-validation.

The evidence of a model is the probability of the data under it, averaged over all trees by their
normalized prior, so a model with more trees, or more parameters, earns no credit for that. The
difference of two log evidences is a log Bayes factor.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from bayescascade.base.errors import ParameterError, TooLargeError
from bayescascade.base.validation import check_real
from bayescascade.methods.cascades.exact import solve
from bayescascade.methods.cascades.posterior import BranchPosterior, CascadePosterior, LeafPosterior

if TYPE_CHECKING:
    from bayescascade.data.table import Table

__all__ = ["GRID_PARAMETERS", "EvidencePoint", "best_first", "evidence_grid"]

_COMMON = ("concentration", "max_branches", "partitions", "leaf", "leaf_concentration")

GRID_PARAMETERS = {
    "leaf": ("expected_leaves", *_COMMON, "max_leaves"),
    "branch": ("expected_branches", *_COMMON, "feature_inclusion"),
}
"""Which parameters each model has."""

_POSTERIORS: dict[str, Callable[..., CascadePosterior]] = {
    "leaf": LeafPosterior,
    "branch": BranchPosterior,
}


@dataclass(frozen=True, slots=True)
class EvidencePoint:
    """A model with its parameters, and its evidence.

    Parameters
    ----------
    model : {"leaf", "branch"}
    parameters : mapping of str to object
        All of them, by name.
    log_evidence : float or None
        Nats; None if it was too much work.
    log_posterior : float or None
        Log posterior density of the most probable tree, nats, unnormalized.
    n_leaves : int or None
        Leaves of that tree.
    needed : str
        What it would take where it was too much; else empty.
    """

    model: str
    parameters: Mapping[str, Any]
    log_evidence: float | None
    log_posterior: float | None
    n_leaves: int | None
    needed: str = ""


def evidence_grid(
    table: "Table",
    models: Sequence[str] = ("leaf", "branch"),
    grid: Mapping[str, Sequence[Any]] | None = None,
    *,
    memory_limit: float = 2.0,
    done: Callable[[EvidencePoint], object] | None = None,
) -> list[EvidencePoint]:
    """Return the log evidence of every model with every combination of parameters.

    Parameters
    ----------
    table : Table
    models : sequence of {"leaf", "branch"}
    grid : mapping of str to sequence, optional
        Values by parameter; each model takes those that it has.
    memory_limit : float > 0
        Gigabytes that one of them may take; those that would take more are told, not computed.
    done : callable, optional
        Called with each point as soon as it is there.

    Returns
    -------
    list of EvidencePoint
        Highest evidence first, those too large last.

    Raises
    ------
    ParameterError
        If a model or parameter is unknown, or a value is out of its range.
    """
    check_real("memory_limit", memory_limit, above=0.0)
    posteriors = [
        (model, _POSTERIORS[model](table, **parameters))
        for model, parameters in _combinations(models, grid or {})
    ]
    points = []
    for model, posterior in posteriors:
        points.append(_point(model, posterior, memory_limit * 1e9))
        if done is not None:
            done(points[-1])
    return best_first(points)


def best_first(points: Sequence[EvidencePoint]) -> list[EvidencePoint]:
    """Return points by falling evidence, those too large last."""
    return sorted(points, key=lambda p: float("inf") if p.log_evidence is None else -p.log_evidence)


def _combinations(
    models: Sequence[str], grid: Mapping[str, Sequence[Any]]
) -> list[tuple[str, dict[str, Any]]]:
    """Return every model with every combination of the parameters that it has."""
    if not models or len(set(models)) < len(models):
        raise ParameterError(f"models must be named once each, got {', '.join(models) or 'none'}")
    for model in models:
        if model not in GRID_PARAMETERS:
            raise ParameterError(f"model must be one of {', '.join(GRID_PARAMETERS)}, got {model}")
    owned = {name for model in models for name in GRID_PARAMETERS[model]}
    for name, values in grid.items():
        if name not in owned:
            raise ParameterError(
                f"a grid's parameter must be one of {', '.join(sorted(owned))}, got {name}"
            )
        if len(values) == 0:
            raise ParameterError(f"a grid must have values, got none for {name}")
        if len(set(values)) < len(values):
            raise ParameterError(f"a grid must have each value once, got {values} for {name}")
    found = []
    for model in models:
        names = [name for name in grid if name in GRID_PARAMETERS[model]]
        for values in product(*(grid[name] for name in names)):
            found.append((model, dict(zip(names, values, strict=True))))
    return found


def _point(model: str, posterior: CascadePosterior, memory_limit: float) -> EvidencePoint:
    parameters = posterior.parameters()
    try:
        exact = solve(posterior, memory_limit=memory_limit)
    except TooLargeError as error:
        return EvidencePoint(model, parameters, None, None, None, error.needed)
    return EvidencePoint(
        model, parameters, exact.log_evidence, exact.log_density, exact.tree.n_leaves
    )
