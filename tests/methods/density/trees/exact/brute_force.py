"""All trees of tiny problems, each weighed by the slow twins: what exact solutions must say."""

from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp

from tests.methods.density.trees import problems as tiny
from tests.methods.density.trees.problems import Model, Problem

LEVELS = Problem("all-levels", (3, 2, 2), (True, False, True), 2, partitions="levels")
WIDE_BINS = Problem(
    "wide-bins", (3, 2), (False, True), 3, edges={0: (0.0, 0.2, 5.0, 7.0)}, partitions="levels"
)
FRACTIONAL_BINS = Problem(
    "part-bins", (3, 2), (False, True), 2, edges={0: (0.0, 0.3, 4.0, 7.0)}, fractional=True
)
NO_DATA = replace(tiny.MULTIWAY, name="no-data", n_rows=0)


def cases_of(models):
    """Return pairs of problems and models, whose names stand by each problem."""
    return [(one, tiny.BY_NAME[name]) for one, names in models.items() for name in names.split()]


CASES = cases_of({
    tiny.BINARY: "leaf branch inclusion independent bounded generative-bounded generative-uniform",
    tiny.MULTIWAY: "leaf branch inclusion independent bounded generative",
    tiny.ORDINAL: "branch bounded generative-uniform",
    tiny.BINS: "leaf branch independent generative generative-branch",
    tiny.FRACTIONAL: "leaf branch independent-branch generative-uniform",
    FRACTIONAL_BINS: "leaf independent independent-branch",
    tiny.CONSTANT: "leaf inclusion independent",
    LEVELS: "leaf branch inclusion independent independent-branch bounded generative"
    " generative-branch",
    WIDE_BINS: "leaf independent-branch generative-uniform",
    NO_DATA: "leaf branch inclusion generative-branch",
})  # fmt: skip


def cases(*chosen, slow=()):
    """Parametrize a test over cases, by default all."""
    pairs = [(pair, ()) for pair in chosen or CASES] + [(pair, pytest.mark.slow) for pair in slow]
    return pytest.mark.parametrize(
        ("problem", "model"),
        [pytest.param(p, m, id=f"{p.name}-{m.name}", marks=marks) for (p, m), marks in pairs],
    )


def assert_splits_are_those_of_all_trees(exact, everything, atol=1e-9):
    """Hold probabilities of first and used columns against a list of all trees."""
    found, shares = exact.split_probabilities, everything.probabilities
    for j, name in enumerate(exact.posterior.schema.names):
        first = np.array([tree.feature[0] == j for tree in everything.trees])
        used = np.array([j in tree.features_used for tree in everything.trees])
        assert_allclose(found.first[name], shares[first].sum(), rtol=0, atol=atol)
        assert_allclose(found.used[name], shares[used].sum(), rtol=0, atol=atol)
    leaf = np.array([tree.n_leaves == 1 for tree in everything.trees])
    assert_allclose(found.none, shares[leaf].sum(), rtol=0, atol=atol)


def assert_bounds_hold(tilted, everything):
    """Hold what is said, bounds and log densities, against a list of all trees."""
    largest = everything.log_densities.max()
    rounding = 1e-9 + 1e-12 * abs(everything.log_normalizer)
    assert tilted.log_density <= largest + rounding
    assert tilted.log_density + tilted.gap >= largest - rounding
    assert abs(tilted.log_normalizer - everything.log_normalizer) <= tilted.error + rounding
    evidence = everything.log_normalizer - everything.log_prior_normalizer
    assert abs(tilted.log_evidence - evidence) <= tilted.error + rounding


def drawn_indices(exact, everything, rng, n_draws=4_000):
    """Return where draws stand in the list of all trees."""
    index = {tree: i for i, tree in enumerate(everything.trees)}
    return [index[tree] for tree in exact.sample(n_draws, rng)]


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
        more = {**record, "rows": [*record["rows"], row], "weights": [*record["weights"], 1.0]}
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
