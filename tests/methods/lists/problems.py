"""Tiny problems whose rule lists can all be listed, in the words of the package and its twins."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np
import pytest
from hypothesis import strategies as st

from bayescascade.data.column import Column
from bayescascade.data.schema import Schema
from bayescascade.data.table import Table
from bayescascade.methods.lists.posterior import DensityListPosterior, LabelListPosterior
from bayescascade.methods.lists.rule_list import RuleList
from tests import rules_reference as reference
from tests.statistical.proposals import without_hastings as without_hastings

PARAMETERS = {"expected_rules": 1.7, "expected_size": 1.4, "concentration": 0.8}

TARGET = "label"

NOMINAL, ORDINAL, CONTINUOUS = KINDS = ("nominal", "ordinal", "continuous")


@dataclass(frozen=True, eq=False)
class Problem:
    """A small domain, some rows on it, and with `n_classes` their labels.

    Without classes it is a density list's problem. `faint` weights add up to so little that the
    posterior is the prior.
    """

    name: str
    kinds: tuple[str, ...]
    n_codes: tuple[int, ...]
    max_size: int
    with_missing: tuple[int, ...] = ()
    n_classes: int = 0
    min_support: float = 0.0
    n_rows: int = 14
    fractional: bool = False
    faint: bool = False

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The features' columns; widths of bins differ."""
        columns = []
        for j, (kind, n_codes) in enumerate(zip(self.kinds, self.n_codes, strict=True)):
            has_missing = j in self.with_missing
            size = n_codes - has_missing
            levels = () if kind == "continuous" else tuple(chr(97 + code) for code in range(size))
            edges = tuple(0.5 * k * k - 1.0 for k in range(size + 1)) if not levels else ()
            columns.append(Column(f"c{j}", kind, levels, edges, has_missing))
        return tuple(columns)

    @cached_property
    def described(self) -> list[tuple[str, int, bool]]:
        """The columns as `reference` takes them."""
        return [(c.kind, c.n_levels, c.has_missing_level) for c in self.columns]

    @cached_property
    def record(self) -> dict[str, object]:
        """The problem as `reference` takes it: distinct rows, their weights, candidates."""
        rng = np.random.default_rng([self.n_rows, *self.n_codes])
        shares = [np.sort(rng.dirichlet(np.full(size, 3.0))) for size in self.n_codes]
        drawn = []
        for _ in range(self.n_rows):
            row = tuple(int(rng.choice(len(p), p=p)) for p in shares)
            # labels follow the first column, with noise
            label = (row[0] + int(rng.random() < 0.3)) % self.n_classes if self.n_classes else 0
            drawn.append((row, label))
        distinct = sorted(set(drawn))
        weights = rng.integers(1, 6, len(distinct)).astype(float)
        if self.fractional:
            weights += rng.random(len(distinct))
        if self.faint:
            weights *= 1e-12
        rows = [row for row, _ in distinct]
        found = reference.candidates(self.described, self.max_size)
        if self.n_classes:
            found = reference.supported(found, rows, weights, self.min_support)
        return {
            "candidates": found,
            "widths": [column.widths.tolist() for column in self.columns],
            "rows": rows,
            "weights": weights.tolist(),
            "labels": [label for _, label in distinct],
            "n_classes": self.n_classes,
        }

    @cached_property
    def table(self) -> Table:
        """The rows as the posteriors take them; the label stands behind the first column."""
        columns, cells = list(self.columns), []
        if self.n_classes:
            classes = tuple(f"y{one}" for one in range(self.n_classes))
            columns.insert(1, Column(TARGET, "nominal", classes))
        for row, label in zip(self.record["rows"], self.record["labels"], strict=True):
            codes = [*row[:1], label, *row[1:]] if self.n_classes else row
            cells.append([cell_of(*pair) for pair in zip(columns, codes, strict=True)])
        return Table.from_arrays(
            cells, sample_weight=self.record["weights"], schema=Schema(tuple(columns))
        )

    def posterior(self, **settings: object) -> DensityListPosterior | LabelListPosterior:
        chosen = {**PARAMETERS, "max_size": self.max_size, **settings}
        if not self.n_classes:
            return DensityListPosterior(self.table, **chosen)
        return LabelListPosterior(self.table, TARGET, **{"min_support": self.min_support, **chosen})

    @cached_property
    def chosen(self) -> list[tuple[int, ...]]:
        """Every list of positive prior, as `reference` has them."""
        found = self.record["candidates"]
        if self.n_classes:
            return reference.all_lists(found, reference.MAX_RULES)
        return reference.splitting_lists(found, self.record["widths"])

    @cached_property
    def lists(self) -> list[RuleList]:
        return [RuleList(chosen) for chosen in self.chosen]

    def twin(self, chosen: Sequence[int], **changes: float) -> float:
        """Return the log density of a list by the twin."""
        formula = reference.label_log_density if self.n_classes else reference.density_log_density
        return formula(chosen, self.record, *{**PARAMETERS, **changes}.values())

    def log_densities(self, **changes: float) -> np.ndarray:
        """Return the log density of each list by the twin."""
        return np.array([self.twin(chosen, **changes) for chosen in self.chosen])

    def probabilities(self, **changes: float) -> np.ndarray:
        """Return the posterior probability of each list by the twin."""
        log_densities = self.log_densities(**changes)
        return np.exp(log_densities - np.logaddexp.reduce(log_densities))


def cell_of(column: Column, code: int) -> object:
    """Return a cell that a column encodes as `code`."""
    if column.has_missing_level and code == column.n_levels - 1:
        return None
    if column.kind == "continuous":
        return (column.edges[code] + column.edges[code + 1]) / 2
    return column.levels[code]


PAIR = Problem("pair", (NOMINAL, NOMINAL), (2, 2), 2, n_rows=30)
LEVELS = Problem("levels", (NOMINAL, NOMINAL), (3, 2), 1)
ORDERED = Problem("ordered", (ORDINAL,), (4,), 1, with_missing=(0,))
MISSING = Problem("missing", (ORDINAL, NOMINAL), (3, 2), 1, with_missing=(0,))
BINS = Problem("bins", (CONTINUOUS, NOMINAL), (3, 2), 1)
FRACTIONAL = Problem("fractional", (NOMINAL, NOMINAL), (3, 2), 1, fractional=True)
DENSITIES = (PAIR, LEVELS, ORDERED, MISSING, BINS, FRACTIONAL)

LABELED = Problem("labeled", (NOMINAL, NOMINAL), (2, 2), 1, n_classes=2)
SUPPORTED = Problem("supported", (NOMINAL,) * 3, (2, 2, 2), 2, n_classes=2, min_support=0.5)
THREE = Problem("three-classes", (NOMINAL, NOMINAL), (3, 2), 1, n_classes=3, n_rows=20)
RUNS = Problem("runs", (ORDINAL,), (3,), 1, n_classes=2)
GAPS = Problem("gaps", (CONTINUOUS,), (4,), 1, with_missing=(0,), n_classes=2, min_support=0.25)
WEIGHED = Problem("weighed", (NOMINAL, NOMINAL), (3, 2), 1, n_classes=2, fractional=True, n_rows=20)
LABELS = (LABELED, SUPPORTED, THREE, RUNS, GAPS, WEIGHED)

PROBLEMS = DENSITIES + LABELS
"""All of them, of up to 326 lists each."""

FEW = (PAIR, BINS, FRACTIONAL, SUPPORTED, THREE)
"""One for each way in which they differ."""


def unseen(problem: Problem) -> Problem:
    """Return the problem as good as without its data."""
    return replace(problem, name=problem.name + "-unseen", faint=True)


@st.composite
def small_problems(draw, kind_of_list: str, **settings: object) -> Problem:
    """Draw problems of a few columns of any kind, for "density" or "labels"."""
    columns = draw(
        st.lists(
            st.tuples(st.sampled_from(KINDS), st.integers(1, 4), st.booleans()),
            min_size=1,
            max_size=4,
        ).filter(lambda columns: any(size + missing > 1 for _, size, missing in columns))
    )
    labels = {"n_classes": draw(st.integers(2, 3))} if kind_of_list == "labels" else {}
    return Problem(
        "drawn",
        tuple(kind for kind, _, _ in columns),
        tuple(size + missing for _, size, missing in columns),
        max_size=draw(st.integers(1, min(3, len(columns)))),
        with_missing=tuple(j for j, column in enumerate(columns) if column[2]),
        fractional=draw(st.booleans()),
        **{"n_rows": draw(st.integers(8, 150)), **labels, **settings},
    )


def each(*problems: object) -> pytest.MarkDecorator:
    """Parametrize a test over problems that have names."""
    return pytest.mark.parametrize("problem", problems, ids=lambda problem: problem.name)


class Remembered:
    """A posterior that computes the density of each list once."""

    def __init__(self, posterior) -> None:
        self.log_density = cache(posterior.log_density)
        self.antecedents = posterior.antecedents
        self.prior = posterior.prior
        self.log_size_proposal = posterior.log_size_proposal
        self.move_weights = posterior.move_weights
