"""Tiny problems whose trees can all be listed, in the words of both the package and its twins."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import pytest

from bayescascade.data.column import Column
from bayescascade.data.schema import Schema
from bayescascade.data.table import Table
from bayescascade.methods.density.trees.posterior import BranchPosterior, LeafPosterior
from bayescascade.methods.density.trees.tree import Tree
from bayescascade.methods.density.trees.tree_posterior import CascadePosterior
from tests import reference
from tests.methods.density.trees.slow_moves import moves
from tests.methods.density.trees.slow_splits import SplitProposals


@dataclass(frozen=True, eq=False)
class Problem:
    """A small domain and some rows on it.

    `edges` of a column make it continuous; `n_rows` 0 means no data at all; with `partitions`
    "levels" every split sends each level its own way, whatever `max_branches` says; `given` has
    the weights of rows that are not drawn.
    """

    name: str
    n_levels: tuple[int, ...]
    nominal: tuple[bool, ...]
    max_branches: int
    edges: Mapping[int, tuple[float, ...]] | None = None
    n_rows: int = 14
    fractional: bool = False
    partitions: str = "subsets"
    given: Mapping[tuple[int, ...], float] | None = None

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        columns = []
        for j, (size, nominal) in enumerate(zip(self.n_levels, self.nominal, strict=True)):
            if self.edges and j in self.edges:
                columns.append(Column(f"c{j}", "continuous", (), self.edges[j]))
            else:
                levels = tuple(chr(97 + code) for code in range(size))
                columns.append(Column(f"c{j}", "nominal" if nominal else "ordinal", levels))
        return tuple(columns)

    @cached_property
    def record(self) -> dict[str, object]:
        """The problem as `reference` takes it: distinct rows and their weights."""
        rng = np.random.default_rng(len(self.name) + 7 * self.n_rows)
        skewed = [np.sort(rng.dirichlet(np.ones(size))) for size in self.n_levels]
        drawn = [tuple(int(rng.choice(len(p), p=p)) for p in skewed) for _ in range(self.n_rows)]
        rows = sorted(set(drawn))
        weights = rng.integers(1, 6, len(rows)).astype(float)
        if self.fractional:
            weights += rng.random(len(rows))
        given = dict(zip(rows, weights.tolist(), strict=True)) if self.given is None else self.given
        return {
            "n_levels": self.n_levels,
            "nominal": self.nominal,
            "widths": [column.widths.tolist() for column in self.columns],
            "rows": list(given),
            "weights": list(given.values()),
            "max_branches": self.max_branches,
            "partitions": self.partitions,
        }

    @cached_property
    def table(self) -> Table:
        rows, weights = self.record["rows"], self.record["weights"]
        if not rows:
            return empty_table(Schema(self.columns))
        cells = [
            [cell_of(column, code) for column, code in zip(self.columns, row, strict=True)]
            for row in rows
        ]
        return Table.from_arrays(cells, sample_weight=weights, schema=Schema(self.columns))

    @cached_property
    def nested(self) -> list[object]:
        """Every tree, as `reference` has them."""
        return reference.all_trees(self.n_levels, self.nominal, self.max_branches, self.partitions)

    @cached_property
    def trees(self) -> list[Tree]:
        return [Tree.from_nested(tree, self.nominal) for tree in self.nested]


def record_of(table: Table) -> dict[str, object]:
    """Return a table as `reference` takes it."""
    columns = table.schema.columns
    return {
        "n_levels": tuple(column.n_levels for column in columns),
        "nominal": tuple(column.kind == "nominal" for column in columns),
        "widths": [column.widths.tolist() for column in columns],
        "rows": [tuple(row) for row in table.codes.T.tolist()],
        "weights": table.weights.tolist(),
    }


def column_of(name: str, kind: str, n_levels: int, rng: np.random.Generator) -> Column:
    """Return a column of numbered levels, or bins of random widths."""
    if kind == "continuous":
        edges = tuple(np.cumsum([-3.0, *(rng.random(n_levels) + 0.01)]).tolist())
        return Column(name, "continuous", (), edges)
    return Column(name, kind, tuple(range(n_levels)))


def cell_of(column: Column, code: int) -> object:
    """Return a cell that a column encodes as `code`."""
    if column.kind == "continuous":
        return (column.edges[code] + column.edges[code + 1]) / 2
    return column.levels[code]


def random_table(columns, n_rows, fractional, seed):
    """Return rows that cluster, on columns given as (kind, number of levels)."""
    rng = np.random.default_rng(seed)
    schema = Schema(tuple(column_of(f"c{j}", *one, rng) for j, one in enumerate(columns)))
    drawn = [np.minimum(rng.geometric(2 / (1 + q), n_rows), q) - 1 for _, q in columns]
    cells = [
        [cell_of(column, code) for column, code in zip(schema.columns, row, strict=True)]
        for row in np.array(drawn).T.tolist()
    ]
    weights = rng.integers(1, 20, n_rows) + (rng.random(n_rows) if fractional else 0.0)
    return Table.from_arrays(cells, sample_weight=weights, schema=schema)


def empty_table(schema: Schema) -> Table:
    """Return a table without rows: the posterior is then the prior."""
    codes = np.empty((schema.n_columns, 0), np.uint8)
    weights = np.empty(0)
    codes.flags.writeable = weights.flags.writeable = False
    return Table(schema=schema, codes=codes, weights=weights, n_rows=0, total_weight=0.0)


@dataclass(frozen=True, eq=False)
class Model:
    """A posterior with chosen parameters, and its twin in `reference`."""

    name: str
    posterior: Callable[..., CascadePosterior]
    parameters: Mapping[str, object]
    twin: Callable[..., float]

    def on(self, problem: Problem, **settings: object) -> CascadePosterior:
        return self.posterior(
            problem.table,
            max_branches=problem.max_branches,
            partitions=problem.partitions,
            **self.parameters,
            **settings,
        )

    @cache  # noqa: B019 - problems and models live as long as the tests
    def reference(self, problem: Problem, **changed: object) -> np.ndarray:
        """Return the log density of every tree of the problem, by the twin, to be read only.

        Parameters given here take the place of the model's own.
        """
        parameters = {**self.parameters, **changed}
        found = [self.twin(tree, problem.record, **parameters) for tree in problem.nested]
        return np.array(found)


def _leaf(name: str, **own: object) -> Model:
    shared = {"expected_leaves": 3.0, "concentration": 1.5}
    return Model(name, LeafPosterior, {**shared, **own}, reference.leaf_log_density)


def _branch(name: str, **own: object) -> Model:
    shared = {"expected_branches": 1.8, "concentration": 0.7}
    return Model(name, BranchPosterior, {**shared, **own}, reference.branch_log_density)


def _inside(leaf: str, worth: float) -> dict[str, object]:
    return {"leaf": leaf, "leaf_concentration": worth}


PROCESS = {"prior": "generative", "stop": 0.4}

LEAF, BRANCH = _leaf("leaf"), _branch("branch")
INCLUSION = _branch("inclusion", expected_branches=2.2, concentration=1.0, feature_inclusion=0.3)
MODELS = (LEAF, BRANCH, INCLUSION)

INDEPENDENT = _leaf("independent", **_inside("independent", 0.6))
INDEPENDENT_BRANCH = _branch("independent-branch", **_inside("independent", 1.3))
DEPENDENT = _leaf("dependent", **_inside("dependent", 1.6))
DEPENDENT_BRANCH = _branch("dependent-branch", **_inside("dependent", 0.8))
BOUNDED = _leaf("bounded", max_leaves=4)
GENERATIVE = _leaf("generative", **PROCESS)
GENERATIVE_BRANCH = _branch(
    "generative-branch", **_inside("independent", 1.3), prior="generative", stop=0.3
)
GENERATIVE_UNIFORM = _branch("generative-uniform", **PROCESS)
GENERATIVE_DEPENDENT = _branch("generative-dependent", **_inside("dependent", 0.8), **PROCESS)
GENERATIVE_BOUNDED = _leaf(
    "generative-bounded", **_inside("independent", 0.6), **PROCESS, max_leaves=4
)
BY_NAME = {model.name: model for model in list(vars().values()) if isinstance(model, Model)}

TERNARY = Problem("ternary", (3, 3), (True, True), 2)
TERNARY_THREE_WAY = Problem("ternary-3-way", (3, 3), (True, True), 3)
BINARY = Problem("binary", (2, 2, 2), (True, True, True), 2)
MULTIWAY = Problem("multiway", (3, 2), (True, True), 3)
ORDINAL = Problem("ordinal", (4, 2), (False, True), 4)
BINS = Problem("bins", (3, 2), (False, True), 3, edges={0: (-1.0, -0.5, 1.5, 2.0)})
MIXED_WAYS = Problem("mixed-ways", (3, 2, 2), (True, True, True), 3)
FRACTIONAL = Problem("fractional", (3, 2), (True, True), 3, fractional=True)
CONSTANT = Problem("constant", (3, 2, 1), (False, True, True), 2)
LEVELS = Problem("levels", (3, 2, 2), (True, True, True), 2, partitions="levels")
UNEVEN_LEVELS = Problem(
    "uneven-levels", (3, 3, 1), (False, True, False), 2, edges={0: (-1.0, -0.5, 1.5, 2.0)},
    fractional=True, partitions="levels",
)  # fmt: skip
PROBLEMS = (
    TERNARY, TERNARY_THREE_WAY, BINARY, MULTIWAY, ORDINAL, BINS, FRACTIONAL, CONSTANT,
)  # fmt: skip


WITH_OPTIONS = (
    (MULTIWAY, INDEPENDENT),
    (BINS, INDEPENDENT),
    (FRACTIONAL, INDEPENDENT_BRANCH),
    (MULTIWAY, BOUNDED),
    (UNEVEN_LEVELS, LEAF),
    (UNEVEN_LEVELS, BRANCH),
    (UNEVEN_LEVELS, INDEPENDENT),
    (BINS, DEPENDENT),
    (FRACTIONAL, DEPENDENT_BRANCH),
    (BINARY, DEPENDENT),
    (MULTIWAY, GENERATIVE),
    (ORDINAL, GENERATIVE_UNIFORM),
    (UNEVEN_LEVELS, GENERATIVE_BRANCH),
    (BINARY, GENERATIVE_DEPENDENT),
)
"""Each option with what it could fail at: few problems, as every exact test runs over them."""


def pairs(*chosen: tuple[Problem, Model]) -> pytest.MarkDecorator:
    """Parametrize a test over pairs of a problem and a model."""
    return pytest.mark.parametrize(
        ("problem", "model"), [pytest.param(p, m, id=f"{p.name}-{m.name}") for p, m in chosen]
    )


def each(*problems: Problem, models: Sequence[Model] = MODELS) -> pytest.MarkDecorator:
    """Parametrize a test over problems and models."""
    return pytest.mark.parametrize(
        ("problem", "model"),
        [pytest.param(p, m, id=f"{p.name}-{m.name}") for p in problems for m in models],
    )


class _Remembered:
    """Split proposals at a node that compute each probability once."""

    def __init__(self, splits) -> None:
        self._splits = splits
        self.probability = cache(splits.probability)
        self.probability_with_branches = cache(splits.probability_with_branches)

    def __getattr__(self, name):
        return getattr(self._splits, name)


def listed_moves(posterior: CascadePosterior):
    """Return the posterior's moves, made quick enough to list all proposals of all trees."""
    remembered = {}

    def splits_at(box):
        key = tuple(map(tuple, box))
        if key not in remembered:
            remembered[key] = _Remembered(SplitProposals.at(posterior, box))
        return remembered[key]

    found = moves(posterior)
    for move in found.values():
        move.splits_at = splits_at
    return found
