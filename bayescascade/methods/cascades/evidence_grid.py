"""Log evidences of models and parameters: choosing between them without cross-validation.

The evidence of a model is the probability of the data under it, averaged over all trees by their
normalized prior, so a model with more trees, or more parameters, earns no credit for that. The
difference of two log evidences is a log Bayes factor.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from bayescascade.base.errors import ParameterError, TooLargeError
from bayescascade.base.validation import check_real
from bayescascade.methods.cascades.exact import certificate_of, solve_or_tilt
from bayescascade.methods.cascades.posterior import BranchPosterior, LeafPosterior
from bayescascade.report.numbers import nats_text
from bayescascade.report.page import BLANK, Heading, Numbers, Page, Pieces, Table, counted
from bayescascade.report.printed import Printed
from samplers.cluster import shared_on_cluster

if TYPE_CHECKING:
    from bayescascade.data.table import Table as DataTable

_INSIDE = ("leaf", "leaf_concentration", "prior", "stop")
_COMMON = ("concentration", "max_branches", "partitions", *_INSIDE)

GRID_PARAMETERS = {
    "leaf": ("expected_leaves", *_COMMON, "max_leaves"),
    "branch": ("expected_branches", *_COMMON, "feature_inclusion"),
}
"""Which parameters each model has."""

_POSTERIORS: dict[str, type[LeafPosterior | BranchPosterior]]
_POSTERIORS = {"leaf": LeafPosterior, "branch": BranchPosterior}


@dataclass(frozen=True, slots=True)
class EvidencePoint:
    """A model with its parameters, and its evidence."""

    model: str  # "leaf" or "branch"
    parameters: Mapping[str, Any]  # all of them, by name
    log_evidence: float | None  # nats; None if it was too much work, or there is none
    log_posterior: float | None  # of the most probable tree, nats, unnormalized
    n_leaves: int | None  # of that tree
    needed: str = ""  # what it would take if it was too much; else empty
    impossible: str = ""  # why the model cannot be, or has no such sum; else empty

    @property
    def worth(self) -> float:
        """The log evidence; -inf if there is none."""
        return -math.inf if self.log_evidence is None else self.log_evidence


class EvidenceGrid(Printed, list[EvidencePoint]):
    """Models by falling evidence, those without any last; prints the parameters in `varied`."""

    def __init__(
        self, points: Iterable[EvidencePoint], table: "DataTable", varied: Iterable[str]
    ) -> None:
        super().__init__(sorted(points, key=lambda point: -point.worth))
        rows = [counted(table.n_rows, "row"), f"{table.n_distinct:,} distinct"]
        self._heading = [table.source, *rows] if table.source else rows
        self._varied = tuple(varied)

    def page(self) -> Page:
        """Return of each its log evidence, nats below the highest, and leaves of its best tree."""
        best = max((point.worth for point in self), default=0.0)
        cells = [
            ("", "", "")
            if point.log_evidence is None
            else (nats_text(point.worth), nats_text(best - point.worth), str(point.n_leaves))
            for point in self
        ]
        headers = ("log evidence", "below best", "leaves")
        texts = zip(*cells, strict=True) if cells else ((),) * len(headers)
        below = [
            Pieces([words], "warning", first="  ")
            if (words := point.impossible or (point.needed and f"too large: {point.needed}"))
            else None
            for point in self
        ]
        columns = list(map(Numbers, headers, texts))
        table = Table(
            list(map(self._words, self)), columns, below=below, least_label=0, gaps=(3, 3)
        )
        return (Heading(self._heading), BLANK, table)

    def _words(self, point: EvidencePoint) -> str:
        """Return model and parameters, such as "branch, expected_branches 2, leaf uniform"."""
        own = ((k, point.parameters[k]) for k in self._varied if k in point.parameters)
        told = [f"{k} {v:g}" if isinstance(v, int | float) else f"{k} {v}".lower() for k, v in own]
        return ", ".join([point.model, *told])


def evidence_grid(
    table: "DataTable",
    models: Sequence[str] = ("leaf", "branch"),
    grid: Mapping[str, Sequence[Any]] | None = None,
    *,
    memory_limit: float = 2.0,
    done: Callable[[EvidencePoint], object] | None = None,
) -> EvidenceGrid:
    """Return the log evidence of every model with every combination of parameters.

    `grid` has values by parameter; each model takes those that it has. `memory_limit` > 0 is in
    gigabytes for one model; those that would take more are listed, not computed. `done` is called
    with each point as soon as it is there. Where joblib runs on a Dask cluster, its workers compute
    some at the same time. Raises ParameterError if a model or parameter is unknown, a value is one
    that no model can have, or no combination is possible.
    """
    check_real("memory_limit", memory_limit, above=0.0)
    combinations = list(_combinations(models, grid or {}))
    _check_values(table, grid or {})
    shared = shared_on_cluster(table)
    found: Iterable[EvidencePoint]
    if shared is None:
        found = (_point(table, *one, memory_limit) for one in combinations)
    else:
        found = shared.map(_point, ((*one, memory_limit) for one in combinations))
    points = []
    for point in found:
        points.append(point)
        if done is not None:
            done(point)
    if all(point.impossible for point in points):
        raise ParameterError(points[0].impossible)
    return EvidenceGrid(points, table, grid or ())


def _check_values(table: "DataTable", grid: Mapping[str, Sequence[Any]]) -> None:
    """Check that of each value alone there is a model."""
    for name, values in grid.items():
        owners = [_POSTERIORS[model] for model, names in GRID_PARAMETERS.items() if name in names]
        for value in values:
            refused: list[ParameterError] = []
            for owner in owners:
                try:
                    owner(table, **{name: value})
                except ParameterError as error:
                    refused.append(error)
            if len(refused) == len(owners):
                raise refused[0]


def _point(
    table: "DataTable", model: str, given: Mapping[str, Any], memory_limit: float
) -> EvidencePoint:
    parameters = given
    try:
        posterior = _POSTERIORS[model](table, **given)
        parameters = posterior.parameters()
        exact, _ = solve_or_tilt(posterior, memory_limit=memory_limit * 1e9, rng=0)
    except TooLargeError as error:
        return EvidencePoint(model, parameters, None, None, None, error.needed)
    except ParameterError as error:  # of values each of which can be, but not together
        return EvidencePoint(model, parameters, None, None, None, impossible=str(error))
    if exact.is_interrupted:
        raise KeyboardInterrupt
    evidence, needed = certificate_of(exact).log_evidence, ""
    if evidence is None:
        needed = f"the prior's sum, or an error of less than {exact.error:.3g} nats"
    best, n_leaves = exact.log_density, exact.tree.n_leaves
    return EvidencePoint(model, parameters, evidence, best, n_leaves, needed)


def _combinations(
    models: Sequence[str], grid: Mapping[str, Sequence[Any]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every model with every combination of the parameters that it has."""
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
    for model in models:
        names = [name for name in grid if name in GRID_PARAMETERS[model]]
        for values in product(*(grid[name] for name in names)):
            yield model, dict(zip(names, values, strict=True))
