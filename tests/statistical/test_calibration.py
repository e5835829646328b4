"""Simulation-based calibration: truths rank among posterior draws as any other draw would."""

from dataclasses import replace
from functools import cached_property

import numpy as np
import pytest

import samplers
from bayescascade.data.column import Column
from bayescascade.data.schema import Schema
from bayescascade.data.table import Table
from bayescascade.methods.density.trees.posterior import BranchPosterior, LeafPosterior
from bayescascade.methods.lists.posterior import DensityListPosterior, LabelListPosterior
from tests import reference, rules_reference
from tests.methods.density.trees.problems import Problem as TreeProblem
from tests.methods.lists.problems import CONTINUOUS, NOMINAL, TARGET, Problem, cell_of
from tests.statistical.chi_square import fits

N_TRUTHS, N_WRONG = 400, 200
N_DRAWS = 19  # ranks 0 .. 19
N_ROWS = 40
UNIFORM = np.full(N_DRAWS + 1, 1 / (N_DRAWS + 1))


class Leaf:
    """Model I with these parameters: truths, their data, and the posterior with a wrong rate."""

    space = TreeProblem("calibration", (3, 2, 2), (True, True, False), 2, n_rows=0)
    rate, alpha, wrong, n_steps = 3.0, 1.0, 2.5, 400

    def log_prior(self, tree):
        k = len(reference.leaves_of(tree, self.space.n_levels))
        return k * np.log(self.rate) - sum(np.log(np.arange(1, k + 1)))

    @cached_property
    def prior(self):
        log_prior = np.array([self.log_prior(tree) for tree in self.space.nested])
        return np.exp(log_prior - np.logaddexp.reduce(log_prior))

    def truth(self, rng):
        """Return the number of a tree."""
        return int(rng.choice(len(self.prior), p=self.prior / self.prior.sum()))

    def probabilities(self, tree, rng):
        leaves = reference.leaves_of(tree, self.space.n_levels)
        return rng.dirichlet(np.full(len(leaves), self.alpha))

    def inside(self, n_levels, rng):  # noqa: ARG002 - only drawn where leaves are independent
        """Return the probabilities of a column's levels inside a leaf."""
        return np.full(n_levels, 1 / n_levels)

    def posterior(self, number, rng, factor):
        """Draw rows with leaf probabilities from their prior."""
        tree, columns = self.space.nested[number], self.space.columns
        boxes = reference.leaves_of(tree, self.space.n_levels)
        chosen = rng.choice(len(boxes), size=N_ROWS, p=self.probabilities(tree, rng))
        inside = [[self.inside(len(codes), rng) for codes in box] for box in boxes]
        rows = [
            [
                column.levels[rng.choice(codes, p=chances)]
                for column, codes, chances in zip(columns, boxes[leaf], inside[leaf], strict=True)
            ]
            for leaf in chosen
        ]
        return self.given(Table.from_arrays(rows, schema=Schema(columns)), self.rate * factor)

    def given(self, table, rate):
        return LeafPosterior(table, rate, self.alpha)

    def quantities(self, tree):
        """Return what is ranked, of a draw or the number of a truth."""
        return [(self.space.trees[tree] if isinstance(tree, int) else tree).n_leaves]


class Independent(Leaf):
    """Model I with independent leaves, at most five, where every level goes its own way."""

    space = replace(Leaf.space, partitions="levels")
    most, inner_alpha, wrong = 5, 0.5, 4.0

    def log_prior(self, tree):
        many = len(reference.leaves_of(tree, self.space.n_levels)) > self.most
        return -np.inf if many else super().log_prior(tree)

    def inside(self, n_levels, rng):
        return rng.dirichlet(np.full(n_levels, self.inner_alpha))

    def given(self, table, rate):
        return LeafPosterior(
            table, rate, self.alpha, max_leaves=self.most, partitions="levels", leaf="independent",
            leaf_concentration=self.inner_alpha,
        )  # fmt: skip


class Branch(Leaf):
    """Model II, likewise; at a rate of 1 trees of several leaves are most frequent."""

    rate, wrong = 1.0, 5.0

    def log_prior(self, tree):
        if tree is None:
            return -self.rate
        value = -self.rate + 2 * np.log(self.rate) - np.log(2.0)
        return value + sum(self.log_prior(child) for _, child in tree[1])

    def probabilities(self, tree, rng):
        if tree is None:
            return np.ones(1)
        shares = rng.dirichlet(np.full(len(tree[1]), self.alpha))
        below = [self.probabilities(child, rng) for _, child in tree[1]]
        return np.concatenate([share * part for share, part in zip(shares, below, strict=True)])

    def given(self, table, rate):
        return BranchPosterior(table, rate, self.alpha, max_branches=2)


class DensityLists:
    """Density lists with these parameters: truths, their data, and the posterior."""

    space = Problem("calibration", (NOMINAL, CONTINUOUS, NOMINAL), (3, 3, 2), 2, (2,))
    candidates = rules_reference.candidates(space.described, space.max_size)
    widths = tuple(column.widths.tolist() for column in space.columns)
    rate, size, alpha, wrong, n_steps = 1.5, 1.3, 1.0, 4.0, 1000

    def drawn(self, rng):
        sizes = [len(one) for one in self.candidates]
        return rules_reference.draw_list(rng, sizes, self.rate, self.size)

    def rules(self, chosen):
        return [self.candidates[number] for number in chosen]

    def truth(self, rng):
        """Return a list of which each part has a cell: others have no prior."""
        while True:
            chosen = self.drawn(rng)
            volumes = rules_reference.first_volumes(self.rules(chosen), self.widths)
            if len(chosen) <= 20 and min(volumes) > 0:
                return chosen

    def posterior(self, chosen, rng, factor):
        rules = self.rules(chosen)
        shares = rng.dirichlet(np.full(len(rules) + 1, self.alpha))
        cells = list(np.ndindex(3, 3, 2))
        volumes = np.array([
            np.prod([w[k] for w, k in zip(self.widths, cell, strict=True)]) for cell in cells
        ])  # fmt: skip
        part = np.array([rules_reference.part_of(cell, rules) for cell in cells])
        chances = shares[part] * volumes / np.bincount(part, volumes)[part]
        drawn = rng.choice(len(cells), size=N_ROWS, p=chances / chances.sum())
        table = Table.from_arrays(
            [self.row(cells[i]) for i in drawn], schema=Schema(self.space.columns)
        )
        return DensityListPosterior(table, self.rate * factor, self.size, self.alpha, 2)

    def row(self, codes):
        return [cell_of(*pair) for pair in zip(self.space.columns, codes, strict=True)]

    def quantities(self, chosen):
        """Return what is ranked: the number of rules, and the first rule."""
        rules = getattr(chosen, "rules", chosen)
        return len(rules), rules[0] if rules else -1


class LabelLists(DensityLists):
    """Lists of labels of three classes, likewise; the rows are given, and their labels drawn."""

    def truth(self, rng):
        return self.drawn(rng)

    def posterior(self, chosen, rng, factor):
        rules = self.rules(chosen)
        chances = rng.dirichlet(np.full(3, self.alpha), size=len(rules) + 1)
        labels = []
        while len(set(labels)) < 2:  # a table of one class, one in 300, is refused
            codes = [rng.integers(size, size=N_ROWS) for size in self.space.n_codes]
            rows = np.column_stack(codes).tolist()
            parts = [rules_reference.part_of(row, rules) for row in rows]
            labels = [int(rng.choice(3, p=chances[part])) for part in parts]
        cells = [[f"y{label}", *self.row(row)] for label, row in zip(labels, rows, strict=True)]
        target = Column(TARGET, "nominal", ("y0", "y1", "y2"))
        table = Table.from_arrays(cells, schema=Schema((target, *self.space.columns)))
        return LabelListPosterior(
            table, TARGET, self.rate * factor, self.size, self.alpha, 2, min_support=0.0
        )


def rank(truth, draws, rng):
    """Return how many draws lie below the truth, ties broken at random."""
    keys = np.array([*draws, truth]) + 1e-6 * rng.random(len(draws) + 1)
    return int((keys[:-1] < keys[-1]).sum())


def ranks(model, rng, factor, n_truths):
    """Return the ranks of each quantity of truths."""
    found = []
    for _ in range(n_truths):
        truth = model.truth(rng)
        run = samplers.metropolis(
            model.posterior(truth, rng, factor), n_steps=model.n_steps * (N_DRAWS + 5),
            warmup=5 / (N_DRAWS + 5), n_draws=N_DRAWS, n_chains=1, seed=rng,
        )  # fmt: skip
        drawn = np.array([model.quantities(state) for state in run.draws[0]]).T
        pairs = zip(model.quantities(truth), drawn, strict=True)
        found.append([rank(value, draws, rng) for value, draws in pairs])
    return np.array(found).T


each = pytest.mark.parametrize(
    "model", [Leaf(), Branch(), Independent(), DensityLists(), LabelLists()],
    ids=["leaf", "branch", "independent", "density", "labels"],
)  # fmt: skip


@pytest.mark.slow
@each
def test_ranks_of_the_truth_are_uniform(model, rng):
    """Prior, likelihood and sampler together: if any of them is off, the ranks lean."""
    assert all(fits(one, UNIFORM) for one in ranks(model, rng, 1.0, N_TRUTHS))


@pytest.mark.slow
@each
def test_a_wrong_prior_is_noticed(model, rng):
    """The ranks must be able to lean: of 200 truths, for all but one choice of seeds in 100,000."""
    assert not fits(ranks(model, rng, model.wrong, N_WRONG)[0], UNIFORM)
