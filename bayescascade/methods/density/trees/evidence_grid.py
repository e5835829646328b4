"""Log evidences of models and parameters, to choose between them without cross-validation.

The evidence of a model is the probability of the data under it, averaged over all trees by their
normalized prior. So more trees or parameters alone do not increase it. The difference of two log
evidences is a log Bayes factor.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any, Unpack

import pandas as pd
from numpy.typing import ArrayLike

from bayescascade.base.errors import DataError, ParameterError, TooLargeError
from bayescascade.base.validation import check_real
from bayescascade.data.declarations import Declared
from bayescascade.data.schema import Rows
from bayescascade.data.table import Table, as_table
from bayescascade.methods.density.trees.exact import certificate_of, solve_or_tilt
from bayescascade.methods.density.trees.parameters import EVIDENCE_MODELS, GRID_PARAMETERS
from bayescascade.methods.density.trees.posterior import BranchPosterior, LeafPosterior
from bayescascade.model.parameters import MemoryParameters
from bayescascade.report.numbers import nats_text
from bayescascade.report.page import BLANK, Heading, Numbers, Page, Pieces, PrintedTable, count_of
from bayescascade.report.printed import Printed
from samplers.cluster import shared_on_cluster

_POSTERIORS: dict[str, type[LeafPosterior | BranchPosterior]]
_POSTERIORS = {"leaf": LeafPosterior, "branch": BranchPosterior}


@dataclass(frozen=True, slots=True)
class EvidencePoint:
    """A model with its parameters, and its evidence."""

    model: str  # "leaf" or "branch"
    parameters: Mapping[str, Any]  # all parameters by name
    log_evidence: float | None  # nats; None if it takes too much work or does not exist
    log_posterior: float | None  # for the most probable tree, nats, unnormalized
    n_leaves: int | None  # in that tree
    needed: str = ""  # the necessary work, if it is too much; otherwise empty
    impossible: str = ""  # why the model is impossible or has no such sum; otherwise empty

    @property
    def worth(self) -> float:
        """The log evidence; -inf if there is none."""
        return -math.inf if self.log_evidence is None else self.log_evidence


class EvidenceGrid(Printed, list[EvidencePoint]):
    """The result of `evidence`: models by decreasing evidence, those without it last.

    It is a list of points. Each has its `model`, its `parameters` by name, its `log_evidence` (None
    if there is none), and the `log_posterior` and `n_leaves` of its most probable tree. If there is
    no evidence, `needed` or `impossible` has the reason.

    Attributes
    ----------
    data : PrintedTable
        The rows.
    varied : tuple of str
        The parameters of the grid.
    interrupted : bool
        Whether Ctrl-C ended the computation.
    """

    def __init__(
        self,
        points: Iterable[EvidencePoint],
        data: Table,
        varied: Iterable[str],
        interrupted: bool = False,
    ) -> None:
        super().__init__(sorted(points, key=lambda point: -point.worth))
        self.data, self.varied, self.interrupted = data, tuple(varied), interrupted

    @property
    def table(self) -> pd.DataFrame:
        """The printed table: each model, its parameters in the grid, and its results."""
        log_evidence = pd.Series([point.log_evidence for point in self], dtype="float64")
        return pd.DataFrame(
            {
                "model": [point.model for point in self],
                **{k: [point.parameters.get(k) for point in self] for k in self.varied},
                "log_evidence": log_evidence,
                "below_best": log_evidence.max() - log_evidence,
                "leaves": pd.array([point.n_leaves for point in self], dtype="Int64"),
            }
        )

    @property
    def best_(self) -> EvidencePoint:
        """The model with the largest evidence. Pass its `parameters` to its estimator.

        DataError if no evidence is known.
        """
        if not self or self[0].log_evidence is None:
            raise DataError("best_ needs a model with an evidence, got none")
        return self[0]

    def page(self) -> Page:
        """Return a table: log evidence, nats below the largest, and leaves of the best tree."""
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
        table = PrintedTable(
            list(map(self._words, self)), columns, below=below, least_label=0, gaps=(3, 3)
        )
        rows = [count_of(self.data.n_rows, "row"), f"{self.data.n_distinct:,} distinct"]
        return (Heading([*filter(None, [self.data.source]), *rows]), BLANK, table)

    def to_dict(self) -> dict[str, Any]:
        """Return each point as plain data."""
        return {"source": self.data.source, "points": [asdict(point) for point in self]}

    def _words(self, point: EvidencePoint) -> str:
        """Return model and parameters, such as "branch, expected_branches 2, leaf uniform"."""
        own = ((k, point.parameters[k]) for k in self.varied if k in point.parameters)
        texts = [f"{k} {v:g}" if isinstance(v, int | float) else f"{k} {v}".lower() for k, v in own]
        return ", ".join([point.model, *texts])


def evidence(
    X: Rows | ArrayLike | Table,
    y: object = None,
    sample_weight: ArrayLike | str | None = None,
    *,
    models: Sequence[str] = EVIDENCE_MODELS,
    grid: Mapping[str, Sequence[Any]] | None = None,
    memory_limit: float = MemoryParameters.memory_limit.default,
    done: Callable[[EvidencePoint], object] | None = None,
    **declared: Unpack[Declared],
) -> EvidenceGrid:
    """Return the log evidence of each model with each combination of parameters.

    The evidence (marginal likelihood) is the probability of the rows under a model, averaged over
    all trees by the prior. Higher is better. A difference of two log evidences is a log Bayes
    factor. If joblib runs on a Dask cluster, its workers compute several models at the same time.

    Parameters
    ----------
    X : DataFrame or other table, paths, mapping, array or Table
        The rows, as in `fit` of a density.
    y : ignored
        Not used; present by the convention of scikit-learn.
    sample_weight : (n_rows,) array of float >= 0, optional
        Number of rows that each row counts as. For tables and files it may be the name of a column.
    models : sequence of str
        "leaf" (`LeafCascade`), "branch" (`BranchCascade`), or both.
    grid : mapping of str to sequence, optional
        Values by parameter. Each model uses only its own parameters.
    memory_limit : float > 0
        Limit in gigabytes for one model. Models that need more are listed without evidence.
    done : function, optional
        Called with each point as soon as it is computed.
    columns, drop, nominal, ordinal, continuous, missing
        Which columns to use and how to read them, unless X is a `Table`, which has its own.

    Returns
    -------
    EvidenceGrid
        A list of points, the best first, printed with a line for each. `table` has the same as a
        DataFrame, and `best_` is the best point. After Ctrl-C, it has the finished points.

    Raises
    ------
    ParameterError
        If a model or parameter is unknown, a value is possible for no model, or no combination is
        possible.
    DataError
        If the rows cannot be used.
    """
    del y
    check_real("memory_limit", memory_limit, above=0.0)
    combinations = list(_combinations(models, grid or {}))
    table = as_table(X, sample_weight, **declared)
    _check_values(table, grid or {})
    shared = shared_on_cluster(table)
    found: Iterable[EvidencePoint]
    if shared is None:
        found = (_point(table, *combination, memory_limit) for combination in combinations)
    else:
        found = shared.map(_point, ((*combination, memory_limit) for combination in combinations))
    points: list[EvidencePoint] = []
    interrupted = False
    try:
        for point in found:
            points.append(point)
            if done is not None:
                done(point)
    except KeyboardInterrupt:
        interrupted = True
    if not interrupted and all(point.impossible for point in points):
        raise ParameterError(points[0].impossible)
    return EvidenceGrid(points, table, grid or (), interrupted)


def _check_values(table: Table, grid: Mapping[str, Sequence[Any]]) -> None:
    """Check that each single value gives a model."""
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
    table: Table, model: str, given: Mapping[str, Any], memory_limit: float
) -> EvidencePoint:
    parameters = given
    try:
        posterior = _POSTERIORS[model](table, **given)
        parameters = posterior.parameters()
        exact, _ = solve_or_tilt(posterior, memory_limit=memory_limit * 1e9, rng=0)
    except TooLargeError as error:
        return EvidencePoint(model, parameters, None, None, None, error.needed)
    except ParameterError as error:  # values that are possible by themselves, but not together
        return EvidencePoint(model, parameters, None, None, None, impossible=str(error))
    if exact.is_interrupted:
        raise KeyboardInterrupt
    log_evidence, needed = certificate_of(exact).log_evidence, ""
    if log_evidence is None:
        needed = f"the prior's sum, or an error of less than {exact.error:.3g} nats"
    best, n_leaves = exact.log_density, exact.tree.n_leaves
    return EvidencePoint(model, parameters, log_evidence, best, n_leaves, needed)


def _combinations(
    models: Sequence[str], grid: Mapping[str, Sequence[Any]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each model with each combination of its own parameters."""
    if not models or len(set(models)) < len(models):
        raise ParameterError(f"models must be named once each, got {', '.join(models) or 'none'}")
    for model in models:
        if model not in GRID_PARAMETERS:
            raise ParameterError(f"model must be one of {', '.join(GRID_PARAMETERS)}, got {model}")
    owned = {name for model in models for name in GRID_PARAMETERS[model]}
    for name, values in grid.items():
        if name not in owned:
            raise ParameterError(
                f"grid must name parameters out of {', '.join(sorted(owned))}, got {name}"
            )
        if len(values) == 0:
            raise ParameterError(f"a grid must have values, got none for {name}")
        if len(set(values)) < len(values):
            raise ParameterError(f"a grid must have each value once, got {values} for {name}")
    for model in models:
        names = [name for name in grid if name in GRID_PARAMETERS[model]]
        for values in product(*(grid[name] for name in names)):
            yield model, dict(zip(names, values, strict=True))
