"""Simulation-based calibration: true rule lists rank among posterior draws as any other would."""

import numpy as np
import pytest

import samplers
from bayescascade.data.column import Column
from bayescascade.data.schema import Schema
from bayescascade.data.table import Table
from bayescascade.methods.rules.posterior import DensityListPosterior, LabelListPosterior
from tests import rules_reference as reference
from tests.methods.rules.problems import CONTINUOUS, NOMINAL, TARGET, Problem, cell_of
from tests.statistical.chi_square import fits

N_TRUTHS = 400
N_DRAWS = 19  # ranks 0 .. 19
N_ROWS = 40
SPACE = Problem("calibration", (NOMINAL, CONTINUOUS, NOMINAL), (3, 3, 2), 2, (2,))
FOUND = reference.candidates(SPACE.described, SPACE.max_size)
WIDTHS = [column.widths.tolist() for column in SPACE.columns]
RATE, SIZE, ALPHA = 1.5, 1.3, 1.0


class DensityLists:
    """Density lists with these parameters: draws of truths, of data, and the posterior."""

    def truth(self, rng):
        """Return a list of which each part has a cell: others have no prior."""
        while True:
            chosen = reference.draw_list(rng, [len(one) for one in FOUND], RATE, SIZE)
            rules = [FOUND[number] for number in chosen]
            if len(chosen) <= 20 and min(reference.first_volumes(rules, WIDTHS)) > 0:
                return chosen

    def posterior(self, chosen, rng, factor):
        rules = [FOUND[number] for number in chosen]
        shares = rng.dirichlet(np.full(len(rules) + 1, ALPHA))
        cells = [(a, b, c) for a in range(3) for b in range(3) for c in range(2)]
        volumes = np.array([np.prod([w[k] for w, k in zip(WIDTHS, cell, strict=True)])
                            for cell in cells])  # fmt: skip
        part = np.array([reference.part_of(cell, rules) for cell in cells])
        within = np.bincount(part, volumes)
        chances = shares[part] * volumes / within[part]
        drawn = rng.choice(len(cells), size=N_ROWS, p=chances / chances.sum())
        rows = [
            [cell_of(column, code) for column, code in zip(SPACE.columns, cells[i], strict=True)]
            for i in drawn
        ]
        table = Table.from_arrays(rows, schema=Schema(SPACE.columns))
        return DensityListPosterior(table, RATE * factor, SIZE, ALPHA, SPACE.max_size)


class LabelLists:
    """Lists of labels of three classes, likewise; the rows are given, and their labels drawn."""

    def truth(self, rng):
        return reference.draw_list(rng, [len(one) for one in FOUND], RATE, SIZE)

    def posterior(self, chosen, rng, factor):
        rules = [FOUND[number] for number in chosen]
        probabilities = rng.dirichlet(np.full(3, ALPHA), size=len(rules) + 1)
        while True:
            codes = np.column_stack([rng.integers(size, size=N_ROWS) for size in SPACE.n_codes])
            labels = [
                int(rng.choice(3, p=probabilities[reference.part_of(row, rules)]))
                for row in codes.tolist()
            ]
            if len(set(labels)) > 1:  # a table of one class, one in 300, is refused
                break
        rows = [
            [f"y{label}", *(cell_of(*pair) for pair in zip(SPACE.columns, row, strict=True))]
            for label, row in zip(labels, codes.tolist(), strict=True)
        ]
        schema = Schema((Column(TARGET, "nominal", ("y0", "y1", "y2")), *SPACE.columns))
        table = Table.from_arrays(rows, schema=schema)
        return LabelListPosterior(
            table, TARGET, RATE * factor, SIZE, ALPHA, SPACE.max_size, min_support=0.0
        )


def quantities(chosen):
    """Return what is ranked: the number of rules, and the first rule."""
    return len(chosen), chosen[0] if chosen else -1


def rank(truth, draws, rng):
    """Return how many draws lie below the truth, ties broken at random."""
    keys = np.array([*draws, truth]) + 1e-6 * rng.random(len(draws) + 1)
    return int((keys[:-1] < keys[-1]).sum())


def ranks(model, rng, factor, n_truths=N_TRUTHS):
    """Return the ranks of the numbers of rules, and of the first rules, of true lists."""
    found = []
    for _ in range(n_truths):
        truth = model.truth(rng)
        posterior = model.posterior(truth, rng, factor)
        assert [tuple(map(tuple, one)) for one in posterior.antecedents] == FOUND
        run = samplers.metropolis(
            posterior, n_steps=1000 * (N_DRAWS + 5), warmup=5 / (N_DRAWS + 5), n_draws=N_DRAWS,
            n_chains=1, seed=rng,
        )  # fmt: skip
        drawn = [quantities(state.rules) for state in run.draws[0]]
        true = quantities(truth)
        found.append([rank(true[k], [one[k] for one in drawn], rng) for k in range(2)])
    return np.array(found).T


UNIFORM = np.full(N_DRAWS + 1, 1 / (N_DRAWS + 1))


@pytest.mark.slow
@pytest.mark.parametrize("model", [DensityLists(), LabelLists()], ids=["density", "labels"])
def test_ranks_of_the_truth_are_uniform(model, rng):
    """Prior, likelihood and sampler together: if any of them is off, the ranks lean."""
    lengths, firsts = ranks(model, rng, 1.0)
    assert fits(lengths, UNIFORM)
    assert fits(firsts, UNIFORM)


@pytest.mark.slow
@pytest.mark.parametrize("model", [DensityLists(), LabelLists()], ids=["density", "labels"])
def test_a_wrong_prior_is_noticed(model, rng):
    """The ranks must be able to lean: half of the truths tell."""
    lengths, _ = ranks(model, rng, 2.5, N_TRUTHS // 2)
    assert not fits(lengths, UNIFORM)
