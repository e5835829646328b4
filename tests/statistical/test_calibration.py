"""Simulation-based calibration: truths rank among posterior draws as any other draw would."""

import numpy as np
import pytest

import samplers
from bayescascade.cascades.posterior import BranchPosterior, LeafPosterior
from bayescascade.schema import Schema
from bayescascade.table import Table
from tests import reference
from tests.cascades.problems import Problem
from tests.statistical.chi_square import fits

N_TRUTHS = 400
N_DRAWS = 19  # ranks 0 .. 19
N_ROWS = 40
SPACE = Problem("calibration", (3, 2, 2), (True, True, False), 2, n_rows=0)


class Leaf:
    """Model I with these parameters: its prior, leaf probabilities, and posterior."""

    rate, alpha = 3.0, 1.0

    def log_prior(self, tree):
        k = len(reference.leaves_of(tree, SPACE.n_levels))
        return k * np.log(self.rate) - sum(np.log(np.arange(1, k + 1)))

    def probabilities(self, tree, rng):
        return rng.dirichlet(np.full(len(reference.leaves_of(tree, SPACE.n_levels)), self.alpha))

    def posterior(self, table, factor=1.0):
        return LeafPosterior(table, self.rate * factor, self.alpha)


class Branch:
    """Model II, likewise."""

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


def simulated_table(model, tree, rng):
    """Draw rows from a tree with leaf probabilities from their prior."""
    boxes = reference.leaves_of(tree, SPACE.n_levels)
    chosen = rng.choice(len(boxes), size=N_ROWS, p=model.probabilities(tree, rng))
    rows = [
        [column.levels[rng.choice(codes)] for column, codes in zip(SPACE.columns, box, strict=True)]
        for box in (boxes[i] for i in chosen)
    ]
    return Table.from_arrays(rows, schema=Schema(SPACE.columns))


def rank(truth, draws, rng):
    """Return how many draws lie below the truth, ties broken at random."""
    keys = np.array([*draws, truth]) + 1e-6 * rng.random(len(draws) + 1)
    return int((keys[:-1] < keys[-1]).sum())


def ranks(model, rng, factor):
    """Return the ranks of the leaf count and of the log prior of each truth."""
    log_prior = np.array([model.log_prior(tree) for tree in SPACE.nested])
    prior = np.exp(log_prior - np.logaddexp.reduce(log_prior))
    found = []
    for index in rng.choice(len(prior), size=N_TRUTHS, p=prior / prior.sum()):
        truth = SPACE.trees[index]
        posterior = model.posterior(simulated_table(model, SPACE.nested[index], rng), factor)
        run = samplers.metropolis(
            posterior, n_steps=400 * (N_DRAWS + 5), warmup=5 / (N_DRAWS + 5), n_draws=N_DRAWS,
            n_chains=1, seed=rng,
        )  # fmt: skip
        draws = [tree.n_leaves for tree in run.draws[0]]
        found.append(rank(truth.n_leaves, draws, rng))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("model", [Leaf(), Branch()], ids=["leaf", "branch"])
def test_ranks_of_the_truth_are_uniform(model, rng):
    """Prior, likelihood and sampler together: if any of them is off, the ranks lean."""
    uniform = np.full(N_DRAWS + 1, 1 / (N_DRAWS + 1))
    assert fits(ranks(model, rng, 1.0), uniform)


@pytest.mark.slow
@pytest.mark.parametrize("model", [Leaf(), Branch()], ids=["leaf", "branch"])
def test_a_wrong_prior_is_noticed(model, rng):
    """The ranks must be able to lean."""
    uniform = np.full(N_DRAWS + 1, 1 / (N_DRAWS + 1))
    assert not fits(ranks(model, rng, 2.5), uniform)
