"""All trees of tiny problems, each weighed by the slow twins: what exact solutions must say."""

from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np
import pytest
from scipy.special import logsumexp

from tests.methods.cascades.problems import (
    BINARY,
    BINS,
    BOUNDED,
    BRANCH,
    CONSTANT,
    FRACTIONAL,
    GENERATIVE,
    GENERATIVE_BOUNDED,
    GENERATIVE_BRANCH,
    GENERATIVE_UNIFORM,
    INCLUSION,
    INDEPENDENT,
    INDEPENDENT_BRANCH,
    LEAF,
    MULTIWAY,
    ORDINAL,
    SIZE,
    SIZE_BOUNDED,
    SIZE_INDEPENDENT,
    UNEVEN_LEVELS,
    Model,
    Problem,
)

LEVELS = Problem("all-levels", (3, 2, 2), (True, False, True), 2, partitions="levels")
WIDE_BINS = Problem(
    "wide-bins", (3, 2), (False, True), 3, edges={0: (0.0, 0.2, 5.0, 7.0)}, partitions="levels"
)
FRACTIONAL_BINS = Problem(
    "part-bins", (3, 2), (False, True), 2, edges={0: (0.0, 0.3, 4.0, 7.0)}, fractional=True
)
NO_DATA = replace(MULTIWAY, name="no-data", n_rows=0)
CASES = [
    (problem, model)
    for problem, models in {
        BINARY: (
            LEAF, BRANCH, INCLUSION, INDEPENDENT, INDEPENDENT_BRANCH, BOUNDED, GENERATIVE_BOUNDED,
            GENERATIVE_UNIFORM, SIZE_BOUNDED,
        ),
        MULTIWAY: (
            LEAF, BRANCH, INCLUSION, INDEPENDENT, BOUNDED, GENERATIVE, GENERATIVE_UNIFORM, SIZE,
        ),
        ORDINAL: (BRANCH, BOUNDED, GENERATIVE_UNIFORM),
        BINS: (LEAF, BRANCH, INDEPENDENT, GENERATIVE, GENERATIVE_BRANCH),
        FRACTIONAL: (LEAF, BRANCH, INDEPENDENT_BRANCH, GENERATIVE_UNIFORM),
        FRACTIONAL_BINS: (LEAF, INDEPENDENT, INDEPENDENT_BRANCH),
        CONSTANT: (LEAF, BRANCH, INCLUSION, INDEPENDENT),
        LEVELS: (
            LEAF, BRANCH, INCLUSION, INDEPENDENT, INDEPENDENT_BRANCH, BOUNDED, GENERATIVE,
            GENERATIVE_BRANCH, SIZE,
        ),
        UNEVEN_LEVELS: (SIZE_INDEPENDENT,),
        WIDE_BINS: (LEAF, INDEPENDENT_BRANCH, GENERATIVE_UNIFORM),
        NO_DATA: (LEAF, BRANCH, INCLUSION, INDEPENDENT, GENERATIVE, GENERATIVE_BRANCH, SIZE),
    }.items()
    for model in models
]  # fmt: skip


def cases(*chosen):
    """Parametrize a test over cases, by default all."""
    return pytest.mark.parametrize(
        ("problem", "model"),
        [pytest.param(p, m, id=f"{p.name}-{m.name}") for p, m in chosen or CASES],
    )


@cache
def brute_force(problem, model, max_leaves=np.inf):
    """Return every tree of a problem, listed once for all tests; treat it as read-only."""
    return BruteForce(problem, model, max_leaves)


@dataclass(frozen=True, eq=False)
class BruteForce:
    """Every tree of a problem with at most `max_leaves` leaves."""

    problem: Problem
    model: Model
    max_leaves: float = np.inf

    @cached_property
    def is_allowed(self):
        return np.array([tree.n_leaves <= self.max_leaves for tree in self.problem.trees])

    @cached_property
    def trees(self):
        return [t for t, kept in zip(self.problem.trees, self.is_allowed, strict=True) if kept]

    @cached_property
    def log_densities(self):
        return self.model.reference(self.problem)[self.is_allowed]

    @cached_property
    def log_normalizer(self):
        return logsumexp(self.log_densities)

    @cached_property
    def probabilities(self):
        return np.exp(self.log_densities - self.log_normalizer)

    @cache  # noqa: B019 - lives as long as the tests
    def log_normalizer_with(self, row):
        """Return the log of the sum over all trees with one row more."""
        record = self.problem.record
        more = {
            **record,
            "rows": [*record["rows"], row],
            "weights": [*record["weights"], 1.0],
        }
        parameters = self.model.parameters
        nested = self.problem.nested
        values = np.array([self.model.twin(tree, more, **parameters) for tree in nested])
        return logsumexp(values[self.is_allowed])

    @cached_property
    def log_prior_normalizer(self):
        empty = {**self.problem.record, "rows": [], "weights": []}
        nested = self.problem.nested
        values = [self.model.twin(tree, empty, **self.model.parameters) for tree in nested]
        return logsumexp(np.array(values)[self.is_allowed])
