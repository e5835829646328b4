"""Worlds in which the effect in a group is known, and how often intervals contain it."""

from typing import NamedTuple

import numpy as np
from scipy.stats import binom, t as student

from bayescascade.methods.effects.measured import MeasuredEffects


class World(NamedTuple):
    """A group of rows of a table: who is treated, and how often the outcome is good."""

    share: float  # treated
    rate: float  # of the good outcome without treatment
    n_rows: int
    effect: float = 0.0
    is_confounded: bool = False  # half of the rows is treated more often, and has the outcome more

    def draw(self, rng):
        """Return outcomes, arms and inverse propensities, (n_rows,) each."""
        times = np.ones(self.n_rows)
        if self.is_confounded:
            times = np.where(rng.random(self.n_rows) < 0.5, 0.5, 1.5)
        treated = rng.random(self.n_rows) < self.share * times
        good = rng.random(self.n_rows) < self.rate * times + self.effect * treated
        own = np.where(treated, self.share * times, 1.0 - self.share * times)
        return good.astype(float), treated, 1.0 / own


def by_arms(outcomes, treated, weights):
    """Return the interval that is printed; NaN if none is."""
    whole = np.ones((1, len(treated)), bool)
    return MeasuredEffects.of(outcomes, treated, weights, whole).intervals()[0]


def pooled_student(outcomes, treated, _):
    """Return mean +- q s / sqrt(m) of both arms' rows together; it ignores arms without events."""
    share, rate = treated.mean(), outcomes.mean()
    of_arms = np.where(treated, 1.0 / max(share, 1e-9), -1.0 / max(1.0 - share, 1e-9))
    shifted = of_arms * (outcomes - rate)
    reach = student.ppf(0.975, len(outcomes) - 1) * shifted.std(ddof=1) / np.sqrt(len(outcomes))
    return shifted.mean() - reach, shifted.mean() + reach


def coverage(world, n_tables, rng, interval=by_arms):
    """Return the share of printed intervals that contain the effect, and how many are printed."""
    ends = np.array([interval(*world.draw(rng)) for _ in range(n_tables)])
    low, high = ends[np.isfinite(ends).all(axis=1)].T
    return float(np.mean((low <= world.effect) & (world.effect <= high))), len(low)


def exact_coverage(n_treated, n_others, rate, effect):
    """Return the probability that the interval contains the effect, over all outcomes of arms."""
    events = np.arange(n_others + 1), np.arange(n_treated + 1)
    chances = np.outer(
        binom.pmf(events[0], n_others, rate), binom.pmf(events[1], n_treated, rate + effect)
    )
    others, treated = np.nonzero(chances > 1e-8)
    sizes = np.tile([n_others, n_treated], (len(others), 1))
    means = np.column_stack([others / n_others, treated / n_treated])
    low, high = MeasuredEffects(sizes, sizes.astype(float), means).intervals().T
    return float(chances[others, treated] @ ((low <= effect) & (effect <= high)))
