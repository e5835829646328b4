"""Simulation-based calibration: truths rank among posterior draws as any other draw would."""

from dataclasses import replace

import numpy as np
import pytest

import samplers
from bayescascade.data.schema import Schema
from bayescascade.data.table import Table
from bayescascade.methods.cascades.posterior import BranchPosterior, LeafPosterior
from tests import reference
from tests.methods.cascades.problems import Problem
from tests.statistical.chi_square import fits

N_TRUTHS = 400
N_DRAWS = 19  # ranks 0 .. 19
N_ROWS = 40
SPACE = Problem("calibration", (3, 2, 2), (True, True, False), 2, n_rows=0)
BY_LEVELS = replace(SPACE, partitions="levels")


class Leaf:
    """Model I with these parameters: its prior, leaf probabilities, and posterior."""

    space = SPACE
    rate, alpha = 3.0, 1.0

    def log_prior(self, tree):
        k = len(reference.leaves_of(tree, SPACE.n_levels))
        return k * np.log(self.rate) - sum(np.log(np.arange(1, k + 1)))

    def probabilities(self, tree, rng):
        return rng.dirichlet(np.full(len(reference.leaves_of(tree, SPACE.n_levels)), self.alpha))

    def inside(self, n_levels, rng):  # noqa: ARG002 - only drawn where leaves are independent
        """Return the probabilities of a column's levels inside a leaf."""
        return np.full(n_levels, 1 / n_levels)

    def posterior(self, table, factor=1.0):
        return LeafPosterior(table, self.rate * factor, self.alpha)


class Independent(Leaf):
    """Model I with independent leaves, at most five, where every level goes its own way."""

    space = BY_LEVELS
    inner_alpha, most = 0.5, 5

    def log_prior(self, tree):
        many = len(reference.leaves_of(tree, SPACE.n_levels)) > self.most
        return -np.inf if many else super().log_prior(tree)

    def inside(self, n_levels, rng):
        return rng.dirichlet(np.full(n_levels, self.inner_alpha))

    def posterior(self, table, factor=1.0):
        return LeafPosterior(
            table,
            self.rate * factor,
            self.alpha,
            max_leaves=self.most,
            partitions="levels",
            leaf="independent",
            leaf_concentration=self.inner_alpha,
        )


class Branch:
    """Model II, likewise."""

    space = SPACE
    inside = Leaf.inside
    rate, alpha = 2.0, 1.0

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

    def posterior(self, table, factor=1.0):
        return BranchPosterior(table, self.rate * factor, self.alpha, max_branches=2)


MODELS = [Leaf(), Branch(), Independent()]


def simulated_table(model, tree, rng):
    """Draw rows from a tree with leaf probabilities from their prior."""
    boxes = reference.leaves_of(tree, SPACE.n_levels)
    chosen = rng.choice(len(boxes), size=N_ROWS, p=model.probabilities(tree, rng))
    inside = [[model.inside(len(codes), rng) for codes in box] for box in boxes]
    rows = [
        [
            column.levels[rng.choice(codes, p=probabilities)]
            for column, codes, probabilities in zip(
                SPACE.columns, boxes[leaf], inside[leaf], strict=True
            )
        ]
        for leaf in chosen
    ]
    return Table.from_arrays(rows, schema=Schema(SPACE.columns))


def rank(truth, draws, rng):
    """Return how many draws lie below the truth, ties broken at random."""
    keys = np.array([*draws, truth]) + 1e-6 * rng.random(len(draws) + 1)
    return int((keys[:-1] < keys[-1]).sum())


def ranks(model, rng, factor, n_truths=N_TRUTHS):
    """Return the rank of the leaf count of each truth."""
    log_prior = np.array([model.log_prior(tree) for tree in model.space.nested])
    prior = np.exp(log_prior - np.logaddexp.reduce(log_prior))
    found = []
    for index in rng.choice(len(prior), size=n_truths, p=prior / prior.sum()):
        truth = model.space.trees[index]
        posterior = model.posterior(simulated_table(model, model.space.nested[index], rng), factor)
        run = samplers.metropolis(
            posterior, n_steps=400 * (N_DRAWS + 5), warmup=5 / (N_DRAWS + 5), n_draws=N_DRAWS,
            n_chains=1, seed=rng,
        )  # fmt: skip
        draws = [tree.n_leaves for tree in run.draws[0]]
        found.append(rank(truth.n_leaves, draws, rng))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS, ids=["leaf", "branch", "independent"])
def test_ranks_of_the_truth_are_uniform(model, rng):
    """Prior, likelihood and sampler together: if any of them is off, the ranks lean."""
    uniform = np.full(N_DRAWS + 1, 1 / (N_DRAWS + 1))
    assert fits(ranks(model, rng, 1.0), uniform)


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS, ids=["leaf", "branch", "independent"])
def test_a_wrong_prior_is_noticed(model, rng):
    """The ranks must be able to lean: half of the truths tell."""
    uniform = np.full(N_DRAWS + 1, 1 / (N_DRAWS + 1))
    assert not fits(ranks(model, rng, 2.5, N_TRUTHS // 2), uniform)
