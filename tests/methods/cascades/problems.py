"""Tiny problems whose trees can all be listed, in the words of both the package and its twins."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import pytest

from bayescascade.data.column import Column
from bayescascade.data.schema import Schema
from bayescascade.data.table import Table
from bayescascade.methods.cascades.posterior import BranchPosterior, CascadePosterior, LeafPosterior
from bayescascade.methods.cascades.tree import Tree
from tests import reference
from tests.methods.cascades.slow_moves import moves
from tests.methods.cascades.slow_splits import SplitProposals


@dataclass(frozen=True, eq=False)
class Problem:
    """A small domain and some rows on it.

    `edges` of a column make it continuous; `n_rows` 0 means no data at all; with `partitions`
    "levels" every split sends each level its own way, whatever `max_branches` says.
    """

    name: str
    n_levels: tuple[int, ...]
    nominal: tuple[bool, ...]
    max_branches: int
    edges: Mapping[int, tuple[float, ...]] | None = None
    n_rows: int = 14
    fractional: bool = False
    partitions: str = "subsets"

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
        return {
            "n_levels": self.n_levels,
            "nominal": self.nominal,
            "widths": [column.widths.tolist() for column in self.columns],
            "rows": rows,
            "weights": weights.tolist(),
            "max_branches": self.max_branches,
            "partitions": self.partitions,
        }

    @cached_property
    def table(self) -> Table:
        rows, weights = self.record["rows"], self.record["weights"]
        if not rows:
            return empty_table(Schema(self.columns))
        cells = [
            [self._cell(column, code) for column, code in zip(self.columns, row, strict=True)]
            for row in rows
        ]
        return Table.from_arrays(cells, sample_weight=weights, schema=Schema(self.columns))

    @staticmethod
    def _cell(column: Column, code: int) -> object:
        if column.kind == "continuous":
            return (column.edges[code] + column.edges[code + 1]) / 2
        return column.levels[code]

    @cached_property
    def nested(self) -> list[object]:
        """Every tree, as `reference` has them."""
        return reference.all_trees(self.n_levels, self.nominal, self.max_branches, self.partitions)

    @cached_property
    def trees(self) -> list[Tree]:
        return [Tree.from_nested(tree, self.nominal) for tree in self.nested]


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


LEAF = Model(
    "leaf",
    LeafPosterior,
    {"expected_leaves": 3.0, "concentration": 1.5},
    reference.leaf_log_density,
)
BRANCH = Model(
    "branch",
    BranchPosterior,
    {"expected_branches": 1.8, "concentration": 0.7},
    reference.branch_log_density,
)
INCLUSION = Model(
    "inclusion",
    BranchPosterior,
    {"expected_branches": 2.2, "concentration": 1.0, "feature_inclusion": 0.3},
    reference.branch_log_density,
)
MODELS = (LEAF, BRANCH, INCLUSION)

INDEPENDENT = Model(
    "independent",
    LeafPosterior,
    {**LEAF.parameters, "leaf": "independent", "leaf_concentration": 0.6},
    reference.leaf_log_density,
)
INDEPENDENT_BRANCH = Model(
    "independent-branch",
    BranchPosterior,
    {**BRANCH.parameters, "leaf": "independent", "leaf_concentration": 1.3},
    reference.branch_log_density,
)
DEPENDENT = Model(
    "dependent",
    LeafPosterior,
    {**LEAF.parameters, "leaf": "dependent", "leaf_concentration": 1.6},
    reference.leaf_log_density,
)
DEPENDENT_BRANCH = Model(
    "dependent-branch",
    BranchPosterior,
    {**BRANCH.parameters, "leaf": "dependent", "leaf_concentration": 0.8},
    reference.branch_log_density,
)
BOUNDED = Model(
    "bounded", LeafPosterior, {**LEAF.parameters, "max_leaves": 4}, reference.leaf_log_density
)
PROCESS = {"prior": "generative", "stop": 0.4}
GENERATIVE = Model(
    "generative", LeafPosterior, {**LEAF.parameters, **PROCESS}, reference.leaf_log_density
)
GENERATIVE_BRANCH = Model(
    "generative-branch",
    BranchPosterior,
    {**INDEPENDENT_BRANCH.parameters, "prior": "generative", "stop": 0.3},
    reference.branch_log_density,
)
GENERATIVE_UNIFORM = Model(
    "generative-uniform",
    BranchPosterior,
    {**BRANCH.parameters, **PROCESS},
    reference.branch_log_density,
)
GENERATIVE_DEPENDENT = Model(
    "generative-dependent",
    BranchPosterior,
    {**DEPENDENT_BRANCH.parameters, **PROCESS},
    reference.branch_log_density,
)
GENERATIVE_BOUNDED = Model(
    "generative-bounded",
    LeafPosterior,
    {**INDEPENDENT.parameters, **PROCESS, "max_leaves": 4},
    reference.leaf_log_density,
)
SIZE = Model(
    "size", LeafPosterior, {**LEAF.parameters, "prior": "size"}, reference.leaf_log_density
)
SIZE_INDEPENDENT = Model(
    "size-independent",
    LeafPosterior,
    {**INDEPENDENT.parameters, "prior": "size"},
    reference.leaf_log_density,
)
SIZE_BOUNDED = Model(
    "size-bounded", LeafPosterior, {**BOUNDED.parameters, "prior": "size"}, BOUNDED.twin
)
OPTIONS = (INDEPENDENT, INDEPENDENT_BRANCH, BOUNDED)
"""Models with options that are not the default."""

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
    (BINS, SIZE),
    (UNEVEN_LEVELS, SIZE_INDEPENDENT),
    (MULTIWAY, SIZE_BOUNDED),
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
