"""The posterior over unions of a few boxes.

A state is a set of at most `n_boxes` different boxes, written as a sorted tuple. A column has cuts,
halfway between neighboring values of rows, and cells between the cuts. In each column, a box
contains a range of cells, and a side at the first or last cell is open. Let n_+ and n_- be the
weights of positives and negatives inside or outside of the union. Up to a constant, its log density
is minus ``C_S (closed sides)`` minus ``C_E (boxes)`` plus

* "beta": ``log B(a + n_+ inside, a + n_- inside) + log B(a + n_+ outside, a + n_- outside)
  - 2 log B(a, a)``. A row is positive with one probability inside and another outside, which are
  drawn from Beta(a, a), a = `prior_weight`, and integrated out; C_S and C_E are nats of a prior. A
  union around the other class has density zero: the share of positives inside must not be below
  that of all rows, but for rounding.
* "gibbs": ``n_+ inside + C_I n_- outside``, and the whole is divided by `temperature`. It is the
  objective of Goh (2018), see `exact.levels`, and not the likelihood of a generative model: unions
  have larger weights if they are nearer to its maximum.

Nothing else is in the prior, so it is otherwise uniform over unions. In both cases, a draw predicts
the posterior mean given the union, `rates`, for rows inside and outside.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaln, gammaln

from bayescascade.base.arrays import Floats, Integers
from bayescascade.base.errors import TooLargeError
from bayescascade.base.validation import check_choice
from bayescascade.data.distinct_rows import distinct_places
from bayescascade.methods.boxes.exact.levels import Costs, balanced, checked_rows
from bayescascade.methods.boxes.kernels import sweep as kernels
from bayescascade.methods.boxes.kernels.layout import N_BOXES, ROUNDING, BoxModel, BoxWorkspace
from bayescascade.methods.boxes.parameters import BALANCED, LIKELIHOODS, PosteriorParameters
from bayescascade.methods.boxes.union import BoxUnion
from bayescascade.model.compiled import CompiledPosterior, whole_weights
from bayescascade.model.draws import TraceLegend
from samplers.types import StepCounts

BoxState: TypeAlias = tuple[tuple[int, ...], ...]
"""Boxes in ascending order, each with the first and last cell of every column."""

MOVE_WEIGHTS = {
    "slide": 0.25, "toggle": 0.50, "shift": 0.10, "add": 0.05, "drop": 0.05, "split": 0.025,
    "join": 0.025,
}  # fmt: skip
"""Probabilities of the moves of `kernels.sweep`; a move and its reverse have the same.

Few sides are closed and can slide, but a side to close is one of all (german_credit: 732).
"""

_CLOSED_AT_FIRST = 3.0  # approximate number for a proposed box
_MOST_KNOWN = 64  # unions whose weights are remembered
_MOST_BYTES = 4e9  # for the words of all cuts
_MANY_CUTS = 1_000  # with more, words take too much memory: weights are summed over rows


class BoxPosterior(CompiledPosterior[BoxState]):
    """Posterior over unions of boxes around a rare class; the module has the formulas.

    Parameters
    ----------
    X : (n_rows, n_columns) array of float
        Finite numbers.
    is_positive : (n_rows,) array of bool
        Which rows are of the rare class. There must be rows of both classes.
    sample_weight : (n_rows,) array of float >= 0, optional
        Weights of the rows, 1 each by default.
    likelihood : {"beta", "gibbs"}
    n_boxes : int from 1 to 64
        Maximum number of boxes.
    negative_weight : float >= 0 or "balanced"
        C_I of "gibbs". "balanced": total weight of the positives divided by that of the negatives.
    box_cost, side_cost : float >= 0
        C_E and C_S.
    temperature : float > 0
        Number of positives that one nat is worth, for "gibbs".
    max_cuts : int from 1 to 32,767
        Maximum number of cuts of a column, evenly among its rows.
    prior_weight : float > 0
        Parameter a of the prior on rates.

    Attributes
    ----------
    cuts : list of float64 arrays
        Cuts of each column, ascending.
    totals : (2,) float64
        Total weights of positives and of negatives.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.
    DataError
        If rows, flags or weights cannot be used, or if there are rows of one class only.

    Examples
    --------
    >>> import numpy as np
    >>> import samplers
    >>> from bayescascade import BoxPosterior
    >>> X = np.random.default_rng(0).normal(size=(400, 3))
    >>> posterior = BoxPosterior(X, (X[:, 0] > 0.5) & (X[:, 1] < 0), n_boxes=2)
    >>> run = samplers.metropolis(posterior, n_steps=20_000, n_draws=50, n_chains=2, seed=0)
    >>> union = posterior.union(run.best_state)
    >>> union.n_boxes, union.n_sides
    (1, 2)
    """

    moves_compiled: ClassVar[tuple[str, ...]] = kernels.MOVES
    tries: ClassVar[Mapping[str, float]] = MOVE_WEIGHTS
    _parameter_names: ClassVar[tuple[str, ...]] = (
        "likelihood",
        "negative_weight",
        "box_cost",
        "side_cost",
        "n_boxes",
        "temperature",
        "max_cuts",
        "prior_weight",
    )
    state_name: ClassVar[str] = "union"
    n_temperatures: ClassVar[int] = 60  # of an annealing; each takes as long as some hundred steps

    def __init__(
        self,
        X: ArrayLike,
        is_positive: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        likelihood: str = "beta",
        n_boxes: int = PosteriorParameters.n_boxes.default,
        negative_weight: float | str = PosteriorParameters.negative_weight.default,
        box_cost: float = PosteriorParameters.box_cost.default,
        side_cost: float = PosteriorParameters.side_cost.default,
        temperature: float = PosteriorParameters.temperature.default,
        max_cuts: int = PosteriorParameters.max_cuts.default,
        prior_weight: float = PosteriorParameters.prior_weight.default,
    ) -> None:
        self.likelihood = check_choice("likelihood", likelihood, LIKELIHOODS)
        self.n_boxes = PosteriorParameters.n_boxes.check(n_boxes)
        self.temperature = PosteriorParameters.temperature.check(temperature)
        self.max_cuts = PosteriorParameters.max_cuts.check(max_cuts)
        self.prior_weight = PosteriorParameters.prior_weight.check(prior_weight)
        PosteriorParameters.negative_weight.check(negative_weight)
        rows, flags, weights = checked_rows(X, is_positive, sample_weight)
        if negative_weight == BALANCED:
            negative_weight = balanced(flags, weights)
        self.costs = Costs(float(negative_weight), box_cost, side_cost)
        self.negative_weight, self.box_cost = self.costs.negative_weight, self.costs.box_cost
        self.side_cost = self.costs.side_cost
        self.cuts = [_cuts(column, self.max_cuts) for column in rows.T]
        self._n_cuts = np.array([len(cuts) for cuts in self.cuts], np.int64)
        codes = np.empty((1 + rows.shape[1], len(rows)), np.uint16)
        codes[0] = ~flags  # positives first
        for column, cuts in enumerate(self.cuts):
            codes[column + 1] = np.searchsorted(cuts, rows[:, column])
        first, places = distinct_places(codes, [2, *(self._n_cuts + 1).tolist()])
        self._weights = np.bincount(places, weights, len(first)).astype(np.float64)
        self._codes = np.ascontiguousarray(codes[1:, first])
        self._n_positives = int((codes[0, first] == 0).sum())
        self.totals = self._of_kinds(self._weights)
        self._known: dict[BoxState, Floats] = {}

    # -- the contract ------------------------------------------------------------------------------

    def log_prior(self, state: BoxState) -> float:
        """Return minus the costs of boxes and sides, nats; -inf if there are too many boxes."""
        if len(state) > self.n_boxes or len(set(state)) < len(state):
            return -math.inf
        cost = self.box_cost * len(state) + self.side_cost * self._n_sides(state)
        return -cost / (1.0 if self.likelihood == "beta" else self.temperature)

    def log_likelihood(self, state: BoxState) -> float:
        """Return the log marginal likelihood, or the objective divided by its temperature."""
        inside, (positives, negatives) = self.weights_inside(state), self.totals
        if self.likelihood == "gibbs":
            worth = inside[0] + self.negative_weight * (negatives - inside[1])
            return float(worth / self.temperature)
        if inside[0] * negatives < inside[1] * positives * (1.0 - ROUNDING):
            return -math.inf
        a = self.prior_weight
        rates = betaln(a + inside[0], a + inside[1])
        rates += betaln(a + positives - inside[0], a + negatives - inside[1])
        return float(rates - 2.0 * betaln(a, a))

    def initial_state(self, rng: np.random.Generator) -> BoxState:
        """Return one or two boxes around positives; no box if they have density zero."""
        chosen = self._codes[:, rng.integers(self._n_positives, size=2)].astype(np.int64)
        box = np.stack([chosen.min(axis=1), chosen.max(axis=1)], axis=1)
        state = (tuple(box.ravel().tolist()),)
        return state if self.log_density(state) > -math.inf else ()

    def describe(self, state: BoxState) -> Mapping[str, float]:
        """Return numbers of boxes and closed sides, and weights of both classes inside."""
        inside = self.weights_inside(state)
        return {
            "n_boxes": float(len(state)),
            "n_sides": float(self._n_sides(state)),
            "positives_inside": float(inside[0]),
            "negatives_inside": float(inside[1]),
        }

    def advance(
        self, rng: np.random.Generator, state: BoxState, n_steps: int, inverse_temperature: float
    ) -> tuple[BoxState, StepCounts[BoxState]]:
        """Run compiled steps on ``exp(inverse_temperature * log_density)``; see `kernels.sweep`."""
        work, counts = self._new_workspace(state), self.new_counts()
        kernels.load(self._model, work)
        best = np.empty_like(work.boxes[: self.n_boxes])
        n_best = kernels.sweep(
            rng, self._model, work, n_steps, float(inverse_temperature), self.move_cdf, counts[0],
            counts[1], best,
        )  # fmt: skip
        state = _sorted(work.boxes[: work.numbers[N_BOXES]])
        found = _sorted(best[:n_best])
        return state, self.step_counts(
            counts, self.log_density(state), found, self.log_density(found)
        )

    def encode_state(self, state: BoxState) -> object:
        """Return a union as JSON-ready lists."""
        return [list(box) for box in state]

    def _read_state(self, encoded: Any) -> BoxState:
        if any(type(cell) is not int for box in encoded for cell in box):
            raise ValueError("cells must be whole numbers")
        return tuple(tuple(box) for box in encoded)

    def _problem(self, state: BoxState) -> str | None:
        last = np.repeat(self._n_cuts, 2)
        for box in state:
            cells = np.array(box)
            if len(box) != len(last) or (cells[::2] > cells[1::2]).any():
                return "a box must have a first and a last cell of every column"
            if (cells < 0).any() or (cells > last).any():
                return "a cell is none of its column"
        if len(state) > self.n_boxes or list(state) != sorted(set(state)):
            return f"it must be of at most {self.n_boxes} different boxes, in ascending order"
        if self.log_density(state) == -math.inf:
            return "its density is zero"
        return None

    def legend(self) -> TraceLegend:
        """Return the legend of the traces."""
        return TraceLegend(size="n_boxes", diagnosed=("n_sides", "positives_inside"))

    def _identity(self) -> tuple[list[Any], Iterable[ArrayLike]]:
        settings = [self.likelihood, self._n_positives, *map(repr, self.parameters().values())]
        return settings, [self._codes, self._weights, *self.cuts]

    # -- predictions of unions ---------------------------------------------------------------------

    def weights_inside(self, state: BoxState) -> Floats:
        """Return the weights of positives and of negatives inside, (2,)."""
        known = self._known.get(state)
        if known is not None:
            return known
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        if self.max_cuts <= _MANY_CUTS:
            work = self._new_workspace(state)
            kernels.load(self._model, work)
            self._known[state] = work.sums[:2].copy()
            return self._known[state]
        inside = np.zeros(len(self._weights), np.bool_)
        for box in state:
            within = np.ones(len(inside), np.bool_)
            for column, codes in enumerate(self._codes):
                first, last = box[2 * column : 2 * column + 2]
                if first > 0:
                    within &= codes >= first
                if last < self._n_cuts[column]:
                    within &= codes <= last
            inside |= within
        self._known[state] = found = self._of_kinds(np.where(inside, self._weights, 0.0))
        return found

    def _of_kinds(self, weights: Floats) -> Floats:
        return np.array([weights[: self._n_positives].sum(), weights[self._n_positives :].sum()])

    def rates(self, state: BoxState) -> Floats:
        """Return posterior means of the rates of positives outside and inside, (2,)."""
        inside, a = self.weights_inside(state), self.prior_weight
        outside = self.totals - inside
        return np.array([(a + part[0]) / (2.0 * a + part.sum()) for part in (outside, inside)])

    def union(self, state: BoxState) -> BoxUnion:
        """Return the union of a state, with sides at cuts."""
        lower = np.full((len(state), len(self.cuts)), -np.inf)
        upper = -lower
        for place, box in enumerate(state):
            for column, cuts in enumerate(self.cuts):
                first, last = box[2 * column : 2 * column + 2]
                if first > 0:
                    lower[place, column] = np.nextafter(cuts[first - 1], np.inf)
                if last < len(cuts):
                    upper[place, column] = cuts[last]
        return BoxUnion(lower, upper)

    def state(self, union: BoxUnion) -> BoxState:
        """Return the state for a union, with each side moved outward to the next cut."""
        boxes = set()
        for lower, upper in list(zip(union.lower, union.upper, strict=True))[: self.n_boxes]:
            cells = []
            for column, cuts in enumerate(self.cuts):
                first = int(np.searchsorted(cuts, lower[column]))
                cells += [first, max(first, int(np.searchsorted(cuts, upper[column])))]
            boxes.add(tuple(cells))
        return tuple(sorted(boxes))

    def _n_sides(self, state: Sequence[tuple[int, ...]]) -> int:
        cells = np.array(state, np.int64).reshape(len(state), len(self._n_cuts), 2)
        return int((cells[:, :, 0] > 0).sum() + (cells[:, :, 1] < self._n_cuts).sum())

    # -- arrays for kernels ------------------------------------------------------------------------

    def _new_workspace(self, state: BoxState) -> BoxWorkspace:
        n_words = self._model.above.shape[2]
        boxes = np.zeros((self.n_boxes + 2, 2 * len(self._n_cuts)), np.int64)
        boxes[: len(state)] = np.array(state, np.int64).reshape(len(state), boxes.shape[1])
        inside, covered = (np.zeros((n, n_words), np.uint64) for n in (self.n_boxes + 2, 2))
        return BoxWorkspace(boxes, inside, covered, np.array([len(state), 0, -1, -1]), np.zeros(4))

    @cached_property
    def _model(self) -> BoxModel:
        n_positives, n_rows = self._n_positives, len(self._weights)
        n_first = -(-n_positives // 64)
        n_words = n_first - (n_positives - n_rows) // 64
        n_cells = int(self._n_cuts.max()) + 2
        n_bytes = 8.0 * len(self._codes) * n_cells * n_words
        if n_bytes > _MOST_BYTES:
            needed = f"{n_bytes / 1e9:.1f} GB"
            raise TooLargeError(
                f"{n_rows:,} rows by {n_cells - 2:,} cuts take {needed}, of at most "
                f"{_MOST_BYTES / 1e9:g} GB: set max_cuts lower",
                needed,
            )
        places = np.arange(n_rows)
        places[n_positives:] += 64 * n_first - n_positives
        above = np.empty((len(self._codes), n_cells, n_words), np.uint64)
        for table, codes in zip(above, self._codes, strict=True):
            padded = np.full(64 * n_words, -1, np.int32)
            padded[places] = codes
            for cell in range(n_cells):
                table[cell] = np.packbits(padded >= cell, bitorder="little").view("<u8")
        weights = np.zeros(64 * n_words)
        weights[places] = self._weights
        is_beta, whole = self.likelihood == "beta", whole_weights(self._weights)
        scale = 1.0 if is_beta else self.temperature
        return BoxModel(
            above=above,
            n_cuts=self._n_cuts,
            n_powers=np.array([max(1, int(n - 1).bit_length()) for n in self._n_cuts], np.int64),
            positives=np.ascontiguousarray(self._codes[:, :n_positives].T.astype(np.int64)),
            n_positive_words=n_first,
            weights=weights,
            is_unit=bool((self._weights == 1.0).all()),
            totals=self.totals,
            is_beta=is_beta,
            gain=1.0 / scale,
            negative_weight=self.negative_weight / scale,
            box_cost=self.box_cost / scale,
            side_cost=self.side_cost / scale,
            prior_weight=self.prior_weight,
            of_one=gammaln(self.prior_weight + whole),
            of_both=gammaln(2.0 * self.prior_weight + whole),
            close=min(0.5, _CLOSED_AT_FIRST / (2 * len(self._n_cuts))),
            max_boxes=self.n_boxes,
        )


def _cuts(column: Floats, max_cuts: int) -> Floats:
    """Return at most that many numbers between neighboring values, evenly among the rows."""
    values, counts = np.unique(column, return_counts=True)
    cuts = values[:-1] / 2 + values[1:] / 2
    cuts = np.where(cuts < values[1:], cuts, values[:-1])  # if rounding went up
    if len(cuts) <= max_cuts:
        return cuts
    shares = np.arange(1, max_cuts + 1) * (len(column) / (max_cuts + 1))
    places = np.searchsorted(counts.cumsum()[:-1], shares).clip(max=len(cuts) - 1)
    chosen: Floats = cuts[np.unique(places)]
    return chosen


def _sorted(boxes: Integers) -> BoxState:
    return tuple(sorted(map(tuple, boxes.tolist())))
