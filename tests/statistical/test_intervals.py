"""Every ± and every interval that is printed contains the truth as often as it says.

Each line of the table is simulated where it is hardest: few rows, rates near 0 and 1, weights. A ±
should hold in 95 % of tables with 1.96 errors on both sides; `LEAST` is what each must reach in its
worst world. The broken twin is the usual formula, or one that forgets something, and must fail
there. docs/trust.md shows the table. What is not printed (NaN, or 0 for equal values) is no claim.
Effects have their own worlds in `tests/methods/effects`.
"""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom, multinomial

import bayescascade
import samplers
from bayescascade.methods.density.trees import counted_tree
from bayescascade.methods.density.trees.counted_tree import density_intervals
from bayescascade.methods.density.trees.models import LeafModel
from bayescascade.methods.effects.adjustment import Nuisance
from bayescascade.methods.effects.measured import EffectSlope
from bayescascade.methods.effects.problem import TreatedRows, posed
from bayescascade.methods.lists.draws import average_intervals
from bayescascade.methods.lists.label_list import LabelList
from bayescascade.methods.lists.models import label_intervals
from bayescascade.methods.lists.posterior import LabelListPosterior
from bayescascade.model.scores import LabelScores
from bayescascade.model.standard_errors import (
    WeightedMean,
    best_error,
    folds_error,
    gain_error,
    left_out_slope,
    paired_error,
    share_error,
    splits_error,
)
from tests import rules_reference
from tests.methods.density.trees.test_intervals import BLUE, DRY, GREY, SCHEMA, TWO, counted
from tests.statistical.test_calibration import TARGET, Column, LabelLists, Schema, Table

LEAST = 0.93
RATES = (0.001, 0.01, 0.03, 0.1, 0.2, 0.24, 0.35, 0.4, 0.476, 0.49, 0.5, 0.8, 0.97, 0.999)


def holds(estimates, errors, truths):
    """Return the share of the printed intervals that contain the truth; 1 if none is printed."""
    estimates, errors = np.asarray(estimates), np.asarray(errors)
    is_printed = errors > 0
    inside = np.abs(estimates - truths) <= 1.96 * errors + 1e-12
    return float(inside[is_printed].mean()) if is_printed.any() else 1.0


# -- shares ----------------------------------------------------------------------------------------


def usual_error(share, n):
    return math.sqrt(share * (1 - share) / (n - 1)) if n > 1 else math.nan


def accuracies(error):
    """Return the worst exact coverage of an accuracy of n rows, over n and true accuracies."""
    worst = 1.0
    for n in (2, 3, 5, 8, 9, 12, 16, 20, 31, 50, 100, 400):
        shares = np.arange(n + 1) / n
        ends = 1.96 * np.array([error(share, n) for share in shares])
        for rate in RATES:
            inside = np.abs(shares - rate) <= ends + 1e-12
            worst = min(worst, float(binom.pmf(np.arange(n + 1), n, rate)[inside].sum()))
    return worst


def weighted_accuracies(error):
    """Return the same for 12 and 100 rows that are given as two rows with weights."""
    worst = 1.0
    for n in (12, 100):
        found = []
        for k in range(n + 1):
            scores = LabelScores(2)
            scores.add(np.array([0, 1]), np.array([[0.9, 0.1]] * 2), np.array([k, n - k], float))
            found.append((scores.accuracy, error(scores)))
        shares, errors = np.array(found).T
        for rate in RATES:
            inside = np.abs(shares - rate) <= 1.96 * errors + 1e-12
            worst = min(worst, float(binom.pmf(np.arange(n + 1), n, rate)[inside].sum()))
    return worst


def accuracies_of_folds(error, rng, among="rows"):
    """Return the worst coverage of the accuracy of models that learn from four of five folds.

    A model assigns the nearer of two means of a normal column. The truth is the mean over all
    tables, so it does not depend on the rows that the models have in common. With `among` it is
    that of the rows that are "named" (precision) or "rare" (recall).
    """
    worst, n_tables, k = 1.0, 2000, 5
    for n, apart, share in ((20, 0, 0.5), (50, 0, 0.9), (50, 1, 0.9), (50, 3, 0.5), (200, 0, 0.5)):
        labels = rng.random((n_tables, n)) > share
        x = rng.normal(size=labels.shape) + apart * labels
        order = np.argsort(labels + rng.random(labels.shape) / 2, axis=1)
        fold = np.argsort(order, axis=1) % k
        named = np.zeros(labels.shape, bool)
        for f in range(k):
            held = fold == f
            ones, zeros = ~held & labels, ~held & ~labels
            n_ones, n_zeros = ones.sum(axis=1), zeros.sum(axis=1)
            of_ones, of_zeros = (
                (x * those).sum(axis=1) / np.maximum(many, 1)
                for those, many in ((ones, n_ones), (zeros, n_zeros))
            )
            both, is_up = (n_ones > 0) & (n_zeros > 0), of_ones >= of_zeros
            cut = (of_ones + of_zeros) / 2
            says = np.where(
                both[:, None],
                (x > cut[:, None]) == is_up[:, None],
                n_ones[:, None] > n_zeros[:, None],
            )
            named[held] = says[held]
        those = {"rows": labels | True, "named": named, "rare": labels}[among]
        hits, many = ((named == labels) & those).sum(axis=1), those.sum(axis=1)
        shares = hits / np.maximum(many, 1)
        errors = [error(one, of) for one, of in zip(shares.tolist(), many.tolist(), strict=True)]
        worst = min(worst, holds(shares, errors, hits.sum() / many.sum()))
    return worst


def test_accuracies_and_error_rates():
    """20 of 20 right is no proof: the usual error is 0 then."""
    assert accuracies(share_error) >= 0.94
    assert accuracies(usual_error) < 0.01


def test_accuracies_of_weighted_rows():
    """A weight is a number of equal rows; their number is not that of the lines."""
    assert weighted_accuracies(lambda scores: scores.accuracy_error) >= 0.94
    assert weighted_accuracies(lambda scores: share_error(scores.accuracy, scores.n_rows)) >= 0.94
    assert weighted_accuracies(lambda scores: usual_error(scores.accuracy, scores.weight)) < 0.5


def test_accuracies_over_folds(rng):
    """Fits that share rows err together."""
    assert accuracies_of_folds(lambda share, n: folds_error(share, n, 5), rng) >= LEAST
    assert accuracies_of_folds(share_error, rng) < LEAST
    assert accuracies_of_folds(usual_error, rng) < 0.9


@pytest.mark.parametrize("among", ["named", "rare"])
def test_precision_and_recall_over_folds(rng, among):
    """They are shares of few rows, and of rows that the fits chose."""
    assert accuracies_of_folds(lambda share, n: folds_error(share, n, 5), rng, among) >= LEAST
    assert accuracies_of_folds(usual_error, rng, among) < LEAST


# -- differences and means -------------------------------------------------------------------------


def gains_of(error):
    """Return the worst exact coverage of the difference from buying nothing, on n rows."""
    worst = 1.0
    for n in (8, 12, 20, 30, 60):
        counts = np.array([(a, b) for a in range(n + 1) for b in range(n + 1 - a)])
        better, worse = counts.T
        errors = np.array([
            error(np.repeat([1.0, -1.0, 0.0], [a, b, n - a - b])) for a, b in counts.tolist()
        ])  # fmt: skip
        for p in (0.001, 0.01, 0.05, 0.2, 0.5):
            for q in (0.001, 0.03, 0.1, 0.4):
                chances = multinomial.pmf(np.c_[counts, n - better - worse], n, [p, q, 1 - p - q])
                inside = np.abs((better - worse) / n - (p - q)) <= 1.96 * errors + 1e-12
                worst = min(worst, float(chances[inside].sum()))
    return worst


def usual_mean_error(values):
    return float(np.std(values, ddof=1)) / math.sqrt(values.size)


def mean_error(values):
    mean = WeightedMean()
    mean.add(values)
    return mean.standard_error


COSTS = {
    "one in 20": ([0.0, 1.0], [0.95, 0.05]),
    "one in 100": ([0.0, 1.0], [0.99, 0.01]),
    "half": ([0.0, 1.0], [0.5, 0.5]),
    "tree": ([1.0, 2.0, 5.0, 20.0, 60.0], [0.6, 0.2, 0.1, 0.07, 0.03]),
}


def costs_of(error, rng):
    """Return the worst coverage of the mean cost of 100 rows; some cost far more than most."""
    worst, n_tables = 1.0, 1500
    for values, chances in COSTS.values():
        tables = rng.choice(values, size=(n_tables, 100), p=chances)
        errors = [error(table) for table in tables]
        worst = min(worst, holds(tables.mean(axis=1), errors, np.dot(values, chances)))
    return worst


def halvings(chances, n, m, n_tables, rng):
    """Return held-out scores (2, n_tables, m) of two densities: shares smoothed by .1 and by 1."""
    whole = rng.multinomial(n, chances, size=n_tables)
    scores = np.empty((2, n_tables, m))
    for split in range(m):
        learned, rest, left = np.zeros_like(whole), np.full(n_tables, n), np.full(n_tables, n // 2)
        for cell in range(len(chances)):
            rest = rest - whole[:, cell]
            learned[:, cell] = rng.hypergeometric(whole[:, cell], rest, left)
            left = left - learned[:, cell]
        held = whole - learned
        for place, alpha in enumerate((0.1, 1.0)):
            shares = (learned + alpha) / (n // 2 + len(chances) * alpha)
            scores[place, :, split] = (held * np.log(shares)).sum(axis=1) / held.sum(axis=1)
    return scores


def splits_of(error, rng):
    """Return the worst coverage of held-out scores, and of differences, of 1,000 rows."""
    worst, n = 1.0, 1000
    for chances in ([0.25] * 4, [0.97, 0.01, 0.01, 0.01], [0.9] + [0.1 / 15] * 15):
        truth = halvings(chances, n, 1, 20_000, rng).mean(axis=(1, 2))
        for m in (2, 5):
            first, second = halvings(chances, n, m, 1200, rng)
            for values, expected in ((first, truth[0]), (second - first, truth[1] - truth[0])):
                errors = [error(one, n) for one in values]
                worst = min(worst, holds(values.mean(axis=1), errors, expected))
    return worst


def test_differences_of_models_over_folds(rng):
    """Both models learn from the same rows of four folds, by one of two columns."""
    labels, fold = rng.random((2000, 60)) < 0.5, np.arange(60) % 5
    rights, losses = np.zeros((2, 2, 2000, 60))
    for apart, right, loss in zip((1.0, 1.5), rights, losses, strict=True):
        x = rng.normal(size=labels.shape) + apart * labels
        for f in range(5):
            held = fold == f
            one, zero = (
                np.average(x, axis=1, weights=those & ~held)[:, None] for those in (labels, ~labels)
            )
            logits = (one - zero) * (x - (one + zero) / 2) * (2 * labels - 1)
            right[:, held], loss[:, held] = logits[:, held] > 0, np.log1p(np.exp(-logits[:, held]))
    for less in (rights[1] - rights[0], losses[0] - losses[1]):
        errors = [paired_error(row, 5) for row in less]
        assert holds(less.mean(axis=1), errors, less.mean()) >= LEAST


def differences_from_best(error, rng, n_models=6, n_rows=200):
    """Return the coverage of differences from the best of models that are equally accurate."""
    right = (rng.random((600, n_models, n_rows)) < 0.8).astype(float)
    best = right.mean(axis=2).argmax(axis=1)
    behind = np.take_along_axis(right, best[:, None, None], axis=1) - right
    behind = behind[np.arange(n_models) != best[:, None]]
    return holds(behind.mean(axis=1), [error(row) for row in behind], 0.0)


def test_differences_from_the_best_of_several_models(rng):
    """The best by chance looks better than the others, as in `compare` and `budget`."""
    assert differences_from_best(lambda row: best_error(gain_error(row), 6), rng) >= LEAST
    assert differences_from_best(gain_error, rng) < LEAST


def test_differences_from_buying_nothing():
    """Two rows that are right by chance must not have a small error."""
    assert gains_of(gain_error) >= 0.94
    assert gains_of(usual_mean_error) < 0.5


def test_mean_costs(rng):
    """Few rows cost most of the money."""
    assert costs_of(mean_error, rng) >= 0.93
    assert costs_of(usual_mean_error, rng) < 0.92
    assert math.isnan(mean_error(np.arange(99.0)))


def test_compared_densities(rng):
    """Halves of the same rows differ less than tables do."""
    assert splits_of(splits_error, rng) >= LEAST
    assert splits_of(lambda values, n: usual_mean_error(values), rng) < 0.6  # noqa: ARG005
    assert math.isnan(splits_error(np.array([0.1, 0.2]), 999))


# -- intervals of the posterior --------------------------------------------------------------------


def usual_intervals(counts, concentration):
    del concentration
    n_rows = np.maximum(counts.sum(axis=1, keepdims=True), 1)
    shares = counts / n_rows
    errors = np.sqrt(shares * (1 - shares) / n_rows)
    return np.stack([shares - 1.96 * errors, shares + 1.96 * errors], axis=-1)


def rules_of(intervals, rng, times=1.0):
    """Return the worst coverage of rules that were known before, of 0 to 100 rows each."""
    worst, n_parts = 1.0, 5000
    for a, n_classes in ((1.0, 2), (0.2, 2), (0.5, 4)):
        for n in (0, 1, 5, 100):
            chances = rng.dirichlet(np.full(n_classes, a), n_parts)
            counts = rng.multinomial(n, chances)
            ends = intervals(times * counts, a)
            inside = (ends[..., 0] <= chances) & (chances <= ends[..., 1])
            worst = min(worst, float(inside.mean()))
    return worst


class FoundLists(LabelLists):
    """Lists drawn from the prior, with rows; lists that are found for them."""

    cells = tuple(np.ndindex(3, 3, 2))

    def found(self, n_rows, rng):
        """Return the true class probabilities of all cells, draws of lists, and the best one."""
        rules = self.rules(self.truth(rng))
        chances, labels = rng.dirichlet(np.full(3, self.alpha), len(rules) + 1), []
        while len(set(labels)) < 3:
            codes = [rng.integers(size, size=n_rows) for size in self.space.n_codes]
            rows = np.column_stack(codes).tolist()
            parts = [rules_reference.part_of(row, rules) for row in rows]
            labels = [int(rng.choice(3, p=chances[part])) for part in parts]
        texts = [[f"y{label}", *self.row(row)] for label, row in zip(labels, rows, strict=True)]
        target = Column(TARGET, "nominal", ("y0", "y1", "y2"))
        table = Table.from_arrays(texts, schema=Schema((target, *self.space.columns)))
        posterior = LabelListPosterior(
            table, TARGET, self.rate, self.size, self.alpha, 2, min_support=0.0
        )
        run = samplers.metropolis(
            posterior, n_steps=6000, warmup=0.25, n_draws=60, n_chains=1, seed=rng
        )
        draws = [self.learned(posterior, state) for state in run.draws[0]]
        truth = [chances[rules_reference.part_of(cell, rules)] for cell in self.cells]
        return np.array(truth), draws, self.learned(posterior, run.best_state)

    def learned(self, posterior, state):
        rules = tuple(posterior.antecedents[rule] for rule in state.rules)
        classes, counts = np.array(["y0", "y1", "y2"]), posterior.counts(state)
        return LabelList(posterior.schema, classes, rules, counts, self.alpha)


def lists_of(n_rows, rng, n_tables=150):
    """Return coverages: of averages over lists and of the best list for rows, and for its parts."""
    world, found = FoundLists(), []
    codes = np.array(world.cells, np.int32).T
    for _ in range(n_tables):
        truth, draws, best = world.found(n_rows, rng)
        part = best.part_of_codes(codes)
        of_parts = np.array([truth[part == one].mean(axis=0) for one in np.unique(part)])
        ends = (
            average_intervals(draws, np.ones(len(draws)), codes, 0.95),
            best.intervals()[part],
            best.intervals()[np.unique(part)],
        )
        pairs = zip(ends, (truth, truth, of_parts), strict=True)
        found.append([((e[..., 0] <= t) & (t <= e[..., 1])).mean() for e, t in pairs])
    return np.mean(found, axis=0)


def densities_of(n_rows, rng, times=1.0, n_tables=400):
    """Return the coverage of densities for a tree of three leaves that was known before."""
    model, codes, found = LeafModel(concentration=0.5), np.array([BLUE, GREY, DRY], np.int32).T, []
    for _ in range(n_tables):
        blue, grey, rainy = rng.dirichlet(np.full(3, 0.5))
        counts = times * rng.multinomial(n_rows, [blue, grey, rainy])
        tree = [counted(TWO, counts)]
        ends = density_intervals(SCHEMA, model, tree, np.ones(1), codes, 0.95)
        truth = np.array([blue / 20, grey / 5, blue / 20 + grey / 5])
        found.append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
    return float(np.mean(found))


def test_rules_that_were_known_before(rng):
    """Given the rules, 95 % of what the prior makes is inside, also for rules without rows."""
    assert rules_of(label_intervals, rng) >= 0.94
    assert rules_of(label_intervals, rng, times=3.0) < LEAST  # rows that are counted three times
    assert rules_of(usual_intervals, rng) < 0.8


@pytest.mark.slow
def test_rules_that_were_found_in_the_same_rows(rng):
    """The print says "given the rules": a row may be in the wrong part."""
    average, of_rows, of_parts = lists_of(40, rng)
    assert average >= LEAST
    assert of_rows < 0.9  # of the best list: the broken twin of an average
    assert of_parts >= 0.87


@pytest.mark.slow
def test_densities_of_a_tree(rng, monkeypatch):
    """Of leaves with few rows or none; `tests/methods/density/trees/test_intervals.py` is exact."""
    monkeypatch.setattr(counted_tree, "N_DRAWS", 400)
    assert densities_of(2, rng) >= 0.91  # a standard error is 0.01, and draws are few
    assert densities_of(30, rng, times=4.0) < 0.85


# -- effects ---------------------------------------------------------------------------------------


def compared(n, e, rate, rng, gain=0.0, n_columns=1):
    """Return rows with doubly robust outcomes, and their effects; `gain` is how much these differ.

    Expected outcomes are means of the other rows of an arm.
    """
    X, t = rng.uniform(-1, 1, (n, n_columns)), rng.permutation(n) < e * n
    effects = 0.1 + gain * X[:, 0]
    y = rng.random(n) < rate + effects * t
    means = [(y[arm].sum() - y * arm + 0.5) / (arm.sum() - arm + 1.0) for arm in (~t, t)]
    rows, found = TreatedRows(X, y, t, np.ones(n)), Nuisance(np.full(n, e), *means)
    return posed(rows, found, "doubly_robust", "overlap", "square", "mean"), effects


def averages_of(ends, rng, n_tables=400):
    """Return the worst coverage of the average effect on training rows."""
    worst = 1.0
    for n, e, rate in ((200, 0.05, 0.02), (100, 0.1, 0.3), (400, 0.05, 0.85), (60, 0.5, 0.5)):
        tables = [compared(n, e, rate, rng)[0] for _ in range(n_tables)]
        low, high = np.array([ends(one) for one in tables if not one.average.reasons[0]]).T
        worst = min(worst, float(np.mean((low <= 0.1) & (high >= 0.1))))
    return worst


def usual_ends(given):
    mean, error = given.problem.labels.mean(), usual_mean_error(given.problem.labels)
    return mean - 1.96 * error, mean + 1.96 * error


def least_squares(problem):
    """Return values of a linear function for rows that it learns from, and for rows left out."""
    columns = np.column_stack([np.ones(len(problem.rows)), problem.rows])
    weighted = (columns * problem.weights[:, None] / problem.weights.mean()).T
    hat = columns @ np.linalg.solve(weighted @ columns + np.eye(len(weighted)), weighted)
    own = np.diag(hat)
    return hat @ problem.labels, (hat @ problem.labels - own * problem.labels) / (1.0 - own)


def slopes_of(rng, n_tables=400):
    """Return the worst coverage of lower ends: ours, without pairs, and of rows learned from."""
    worst = np.ones(3)
    for n, e, n_columns, gain in (
        (60, 0.5, 1, 0), (120, 0.5, 60, 0), (300, 0.06, 4, 0), (200, 0.3, 20, 0.3),
    ):  # fmt: skip
        inside = np.empty((n_tables, 3))
        for place in range(n_tables):
            given, effects = compared(n, e, 0.4, rng, gain, n_columns)
            seen, h = least_squares(given.problem)
            for k, (values, times) in enumerate([(h, 1.0), (h, 0.5**0.5), (seen, 1.0)]):
                how = values, given.problem.weights, given.average.sizes.min()
                slope, error = left_out_slope(given.problem.labels, *how)
                truth = left_out_slope(effects, *how)[0] + 1e-9
                inside[place, k] = EffectSlope(slope, error * times).least <= truth
        worst = np.minimum(worst, inside.mean(axis=0))
    return worst


def test_average_effects_on_training_rows(rng):
    """Few rows are treated, or few have the outcome: then the usual error is too small."""
    assert averages_of(lambda given: given.average.intervals()[0], rng) >= LEAST
    assert averages_of(usual_ends, rng) < 0.9


def test_whether_effects_differ(rng):
    """If they do not, "differs" is printed for at most one table in 20; pairs of rows matter."""
    of_pairs, without_pairs, learned_from = slopes_of(rng)
    assert of_pairs >= LEAST
    assert without_pairs < LEAST
    assert learned_from < 0.5


# -- the table is complete -------------------------------------------------------------------------


def test_nothing_else_prints_an_error():
    """Whoever prints a ± uses `with_error`, with an error of `standard_errors`."""
    folder = Path(bayescascade.__file__).parent
    found = {
        str(path.relative_to(folder))
        for path in folder.rglob("*.py")
        if re.search(r"(±|\+-) ?\{", path.read_text(encoding="utf-8"))
    }
    assert {name for name in found if not name.startswith("methods/effects")} == {
        "report/numbers.py"
    }
