"""The start of a climb: prototypes from the rows; metric and prior, chosen on held-out rows.

A metric that may grow while prototypes move becomes too large: then each training row is classified
correctly by some near prototype, and new rows by chance. A metric that is too small gives
prototypes that are right as a vote, but not alone. So the metric is chosen before, by the errors on
a held-out fifth of the rows, and then fixed (Kusner 2016, 3.1.3, has a cross-validated start).

The same rows choose the spread of the prior. Most rows are right after some steps, and have no more
effect; the prior affects every prototype, so its influence grows with their number. A narrow prior
then moves prototypes away from the boundaries between classes, which helps if classes overlap. A
narrow and a wide prior are compared, each with its own metric, because a narrow one leads to a
large metric. Held-out rows are few, so the wide prior must be better by more than a standard error,
or as good and with higher probabilities of their classes.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from math import inf, nan, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

import samplers
from bayescascade.base.arrays import Floats, Integers
from bayescascade.base.errors import DataError, ParameterError
from bayescascade.base.threads import single_threaded
from bayescascade.base.validation import check_integer
from bayescascade.base.watch import OutOfTime, check_time, watch_in_use
from bayescascade.data.levels import level_text
from bayescascade.data.units import Units
from bayescascade.methods.compress.learned import Compressed, State, StateLayout, VoteRule
from bayescascade.methods.compress.neighborhoods import ClassedRows
from bayescascade.methods.compress.posterior import PrototypePosterior, moments
from bayescascade.model.ascent import ascend

_NARROW, _WIDE = 2.0, 16.0  # prior scales to compare; the first also chooses the units

_MOST_SPREAD = 1e150  # because squares are summed
_HELD_OUT = 5  # every fifth row
_MOST_ROWS = 20_000  # for the choice of a metric
_MOST_PER_PROTOTYPE = 100  # rows for k-means
_ITERATIONS = 25  # iterations of climbs to compare
_FACTORS = 2.0 ** np.arange(-3, 7)  # first scales to compare, times the reference
_STEP = 2.0**0.5  # ratio of scales to compare
_PASSES, _PRODUCTS_A_SECOND = 50.0, 3e9  # of k-means over all rows and centers, with its start
_USUAL = 4  # usual number of scales, for the reported progress

Score = tuple[float, float]
"""Weight of the held-out rows that are right, and their log likelihood, nats: larger is better."""


def shares_of_classes(n_prototypes: int, sizes: Integers) -> Integers:
    """Return the number of prototypes of each class: its share of the rows, and at least one.

    sizes (n_classes,) int64 >= 1, the rows of each class; `n_prototypes` is from the number of
    classes to that of the rows.
    """
    wanted = n_prototypes * sizes / sizes.sum()
    counts: Integers = np.clip(np.floor(wanted).astype(np.int64), 1, sizes)
    while (missing := n_prototypes - int(counts.sum())) != 0:
        can = counts < sizes if missing > 0 else counts > 1
        lack = np.where(can, wanted - counts, -np.inf if missing > 0 else np.inf)
        chosen = np.argsort(-lack if missing > 0 else lack, kind="stable")[: abs(missing)]
        counts[chosen[can[chosen]]] += np.sign(missing)
    return counts


def counts_of_classes(
    given: int | Mapping[Any, int] | None, wanted: int | None, sizes: Integers, names: Sequence[Any]
) -> Integers:
    """Return the number of prototypes of each class, (n_classes,), after checks."""
    if isinstance(given, Mapping):
        if set(given) != set(names):
            raise ParameterError(f"n_prototypes must be of each class, {list(names)}, got {given}")
        return np.array(
            [
                check_integer(f"n_prototypes of class {level_text(name)}", given[name], 1, size)
                for name, size in zip(names, sizes.tolist(), strict=True)
            ]
        )
    if given is None:
        return shares_of_classes(max(len(sizes), wanted or 0), sizes)
    n_prototypes = check_integer("n_prototypes", given, len(sizes), int(sizes.sum()))
    return shares_of_classes(n_prototypes, sizes)


class TriedMetric(NamedTuple):
    """The result of short climbs in several metrics."""

    score: Score  # of the best metric
    step: int  # its place among those compared
    metric: Floats  # numbers of the best metric, (n_metric,)
    points: Floats  # (n_prototypes, n_columns), at the end of its climb
    prior_scale: float | None  # of the prior of all climbs
    right: Floats  # (n_held_out,): weights of held-out rows that are right, 0 of others

    def is_beaten_by(self, other: "TriedMetric") -> bool:
        """Return whether another has more rows right, by more than a standard error.

        It is also better if it has no fewer rows right, and higher probabilities of their classes.
        """
        gained = other.right - self.right
        if other.score[1] > self.score[1]:
            return float(gained.sum()) >= 0.0
        return float(gained.sum()) > sqrt(float((gained**2).sum()))


class Chosen(NamedTuple):
    """The choices for a climb."""

    units: Units  # units of the columns
    start: "Start"  # draws further starts in these units
    best: TriedMetric
    is_stopped: bool  # whether Ctrl-C ended the choice

    def posterior(self, labels: NDArray[Any], is_metric_fixed: bool) -> PrototypePosterior:
        """Return the posterior of all rows with `labels`, with the chosen prior."""
        metric = self.best.metric if is_metric_fixed else None
        return self.start.posterior(
            slice(None), labels, fixed_metric=metric, prior_scale=self.best.prior_scale
        )

    def states(self, layout: StateLayout, n_starts: int) -> list[State]:
        """Return states of the best prototypes found, and of new ones, all in the best metric."""
        drawn = [self.best.points, *(self.start.draw() for _ in range(n_starts - 1))]
        return [layout.state(points, self.best.metric) for points in drawn]


def choose_start(
    rows: Floats,
    standardize: str,
    names: Sequence[str],
    rng: np.random.Generator,
    weights: Floats | None,
    prior_scale: float | str | None,
    progress: Callable[[samplers.Progress], object] | None,
    **more: Any,
) -> Chosen:
    """Return the best units of the columns for prototypes, and the start.

    rows (n_rows, n_columns), which count as `weights` (n_rows,) rows each, or None: 1. Columns are
    divided by their own standard deviations (`standardize` "yes"), all by one number ("no"), or by
    the better one on held-out rows ("auto"). `prior_scale` is that of `PrototypePosterior`, or
    "auto". `progress` is called after every short climb; `more` goes to `Start`.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        center, spread = moments(rows, weights)
    if not (spread < _MOST_SPREAD).all():
        raise DataError(
            f'column "{names[int(np.argmin(spread < _MOST_SPREAD))]}" must have a standard '
            f"deviation below {_MOST_SPREAD:g}: choose a larger unit"
        )
    common = np.full_like(spread, np.sqrt(np.mean(spread**2)) or 1.0)
    own = np.where(spread > 0.0, spread, common)
    choices = {"auto": [common, own], "yes": [own], "no": [common]}[standardize]
    if np.allclose(own, common, rtol=0.01):
        choices = [common]
    is_open = isinstance(prior_scale, str)
    first = _NARROW if isinstance(prior_scale, str) else prior_scale
    total = _USUAL * (len(choices) + is_open)

    def report(before: int, n_tried: int) -> None:
        if progress is not None:
            done = _USUAL * before + min(n_tried, _USUAL)
            progress(samplers.Progress("choosing", done, total, nan, nan, nan, {}))

    tried = []
    for place, units in enumerate(choices):
        start = Start(
            Units(center, units).scaled(rows), rng=rng.spawn(1)[0], weights=weights,
            prior_scale=first, **more,
        )  # fmt: skip
        tried.append((start.tried(first, partial(report, place)), units, start))
        if start.is_stopped or watch_in_use().is_over():
            break
    best, units, chosen = max(tried, key=lambda metric: metric[0].score)
    is_open = is_open and not watch_in_use().is_over()
    if is_open and not start.is_stopped and chosen.n_held_out:
        wide = chosen.tried(_WIDE, partial(report, len(choices)))
        best = wide if best.is_beaten_by(wide) else best
    return Chosen(Units(center, units), chosen, best, start.is_stopped or chosen.is_stopped)


class Start:
    """The start of a climb, for rows of one scaling.

    rows (n_rows, n_columns); labels (n_rows,) int64; weights (n_rows,) > 0 or None; counts
    (n_classes,) int64, numbers of prototypes of each class. They are cluster centers of each class
    (`how` "kmeans") or rows drawn from it ("sample"). Options are those of `PrototypePosterior`.
    `n_held_out` rows choose; `is_stopped` says whether Ctrl-C ended the search for a metric.
    """

    def __init__(
        self,
        rows: Floats,
        labels: Integers,
        weights: Floats | None,
        counts: Integers,
        how: str,
        rng: np.random.Generator,
        rule: VoteRule,
        **options: Any,
    ) -> None:
        self._rule = rule
        self.is_stopped = False
        self._rows, self._labels, self._counts, self._options = rows, labels, counts, options
        self._how, self._rng, self._weights = how, rng, weights
        self._seen, self._unseen = self._dealt()
        self.n_held_out = self._unseen.size
        self._points = self.draw(self._seen)

    def draw(self, among: Integers | None = None) -> Floats:
        """Return prototypes of each class, (n_prototypes, n_columns), from some of the rows."""
        found = []
        chosen = np.arange(len(self._rows)) if among is None else among
        for c, count in enumerate(self._counts.tolist()):
            own = chosen[self._labels[chosen] == c]
            if own.size > _MOST_PER_PROTOTYPE * count:
                own = self._rng.choice(own, _MOST_PER_PROTOTYPE * count, replace=False)
            products = _PASSES * own.size * count * self._rows.shape[1]  # of k-means, about
            is_short = watch_in_use().left < products / _PRODUCTS_A_SECOND
            is_sampled = self._how == "sample" or is_short
            if is_sampled or len(np.unique(self._rows[own], axis=0)) <= count:
                shares = self._weights_of(own)
                shares = None if shares is None else shares / shares.sum()
                found.append(self._rows[self._rng.choice(own, count, replace=False, p=shares)])
                continue
            seed = int(self._rng.integers(2**31))
            with single_threaded():
                clusters = KMeans(count, n_init=1, random_state=seed)
                clusters.fit(self._rows[own], sample_weight=self._weights_of(own))
            found.append(np.asarray(clusters.cluster_centers_, np.float64))
        return np.concatenate(found)

    def tried(self, prior_scale: float | None, report: Callable[[int], None]) -> TriedMetric:
        """Return the best result on held-out rows, with a prior."""
        none = np.zeros(self.n_held_out)
        if not self.n_held_out:
            return TriedMetric((0, -inf), 0, self._numbers, self._points, prior_scale, none)
        tried: dict[int, TriedMetric] = {}

        def score(step: int) -> Score:
            if step not in tried:
                check_time()
                tried[step] = self._climbed_in(step, prior_scale)
                report(len(tried))
            return tried[step].score

        best = -1  # moved prototypes are best in a wider neighborhood
        try:
            for direction in (1, -1):
                while score(best + direction) > score(best):
                    best += direction
        except KeyboardInterrupt as stopped:
            self.is_stopped = not isinstance(stopped, OutOfTime)
            if not tried:
                return TriedMetric((0, -inf), 0, self._numbers, self._points, prior_scale, none)
            best = max(tried, key=lambda step: tried[step].score)
        return tried[best]

    @cached_property
    def _numbers(self) -> Floats:
        """The best numbers of the metric for prototypes that are not moved."""
        posterior = self.posterior(self._seen, self._labels[self._seen])
        layout = posterior.layout
        unit = layout.metric_like(posterior.reference)
        watch, values = watch_in_use(), np.full(_FACTORS.size, -inf)
        for place in np.argsort(np.abs(np.log(_FACTORS)), kind="stable"):
            metric = self._scaled(unit, _FACTORS[place])
            values[place] = posterior.log_likelihood(layout.state(self._points, metric))
            if watch.is_over():
                break
        numbers = self._scaled(unit, _FACTORS[int(values.argmax())])
        if layout.n_metric > 1:
            numbers = _climbed(_Shape(posterior, self._points), numbers)
        return numbers

    def _scaled(self, numbers: Floats, factor: float) -> Floats:
        is_linear = self._options["metric"] == "linear"
        return numbers * factor if is_linear else numbers + np.log(factor)

    def _climbed_in(self, step: int, prior_scale: float | None) -> TriedMetric:
        metric = self._scaled(self._numbers, _STEP**step)
        posterior = self.posterior(
            self._seen, self._labels[self._seen], fixed_metric=metric, prior_scale=prior_scale
        )
        layout = posterior.layout
        state = _climbed(posterior, layout.state(self._points, metric))
        found = Compressed(layout.points(state), layout.labels, layout.factor(metric))
        labeled = self._rule.labeled(
            found, self._rows[self._seen], self._labels[self._seen], self._weights_of(self._seen)
        )
        rows, labels = self._rows[self._unseen], self._labels[self._unseen]
        is_right = self._rule.classified(labeled, rows) == labels
        weights = self._weights_of(self._unseen)
        unseen = ClassedRows.of(rows, labels, len(self._counts), weights=weights)
        pulls = unseen.pulls(posterior.weights(state), posterior.starts)
        right = is_right.astype(np.float64) if weights is None else is_right * weights
        score = (float(right.sum()), pulls.log_likelihood)
        return TriedMetric(score, step, metric, found.points, prior_scale, right)

    def _weights_of(self, chosen: slice | Integers) -> Floats | None:
        return None if self._weights is None else self._weights[chosen]

    def posterior(
        self, chosen: slice | Integers, labels: NDArray[Any], **more: Any
    ) -> PrototypePosterior:
        """Return the posterior of some rows and their labels, with some other options."""
        weights = self._weights_of(chosen)
        options = self._options | more
        return PrototypePosterior(
            self._rows[chosen], labels, self._counts, sample_weight=weights, **options
        )

    def _dealt(self) -> tuple[Integers, Integers]:
        """Return training and held-out rows, with enough training rows of each class."""
        order = self._rng.permutation(len(self._rows))
        seen, unseen = [], []
        by_class = order[np.argsort(self._labels[order], kind="stable")]
        for own in np.split(by_class, np.cumsum(np.bincount(self._labels))[:-1]):
            count = int(self._counts[self._labels[own[0]]])
            most = max(count + 1, _MOST_ROWS * own.size // len(self._rows))
            n_unseen = min(own[:most].size // _HELD_OUT, own[:most].size - count)
            unseen.append(own[:n_unseen])
            seen.append(own[n_unseen:most])
        return np.sort(np.concatenate(seen)), np.sort(np.concatenate(unseen))


class _Shape:
    """The posterior of a metric with fixed prototypes."""

    def __init__(self, posterior: PrototypePosterior, points: Floats) -> None:
        self._posterior, self._points = posterior, points

    def log_density_and_gradient(self, metric: Floats) -> tuple[float, Floats]:
        layout = self._posterior.layout
        state = layout.state(self._points, metric)
        log_density, gradient = self._posterior.log_density_and_gradient(state)
        return log_density, layout.metric_of(gradient)

    def describe(self, metric: Floats) -> dict[str, float]:
        del metric
        return {}


def _climbed(posterior: PrototypePosterior | _Shape, start: Floats) -> Floats:
    run = ascend(posterior, [start], max_iter=_ITERATIONS)
    if run.interrupted:  # there is no result to return
        raise KeyboardInterrupt
    return run.best_state
