r"""The sum over all rule lists: evidence, averages, draws, and the masses of equivalent lists.

The density of what follows some rules depends only on the set R of points that they leave and on
the numbers ``u_c`` of rules of each size: this is the *state*. So orders of rules, and idle rules,
which capture no point, lead to the same state, and lists are paths in a graph of states, in layers
by the number of rules. An edge is a rule: its value v is the log prior of a candidate of this size,
``s(c) - ln Z - ln a_c`` (see `bounds`), plus its part's term. It stands for n rules: candidates of
one size that capture the same points of all, or the idle candidates of a size that are not used,
which are those that capture nothing of R, less ``u_c``, because all used rules are idle. With
``H`` the term of the length, forward and backward sums are

    A(t) = ln sum_{s -> t} n exp(A(s) + v)                      from A = 0 for no rule,
    C(s) = A(s) + H(m) + T(R)                                    if the list ends here,
    B(s) = ln [exp(C(s) - A(s)) + sum_{s -> t} n exp(v + B(t))],

and the log evidence is B of the empty list. The share of the posterior that goes through an edge is
``n exp(A(s) + v + B(t) - B(root))``. For labels the prior is normalized; for densities, lists with
a part without a cell have density zero, but not prior zero in this sum, so B is no evidence.

**What is left out.** The lists that pass through a state s of m rules have at most the mass

    exp(A(s) + ln sum_{k >= 0} exp(H(m + k) + slack_k) + sat(R)):

for every k, the priors of all ways to choose k further rules sum up to at most 1, and their parts
have ``sum T <= sat(R) + slack_k`` (`bounds`; the slack is 0 for labels). The same holds for the
lists of one edge, with A + v + ln n in place of A. A lower bound Z on the sum is known before: that
of any set of lists, here of a beam of the best states of each layer. In each layer, edges below
``1e-3 L Z / n_edges`` and then states of total mass at most ``L Z`` are left out. Their bounds are
added up, and with ``L = most_lost / (2 M + 2)`` for lists of at most M rules, all together are at
most `most_lost` of the sum. What is left out is in no layer any more, so no list is counted twice.

**Rounding.** The value of a list has an error of at most r along its path (`points`; this sum adds
up the same numbers). The log of a sum of n positive terms ``exp(x)``, relative to the largest x,
has an error of at most the largest of its terms, plus ``(2 n + 8 + 2 abs(x)) UNIT``: n for
the sum, each term has at most ``3 + abs(x - max)`` by the difference and the exponential, weighted
by ``exp(x - max) abs(x - max) <= 1``, and the logarithm and its sum with the largest x round two
numbers of the size of x. There is one such sum per layer, so `rounding` is r plus that for each
layer. A bound on what is left out is raised by twice r.

**The best list** is that of the largest value along a path; v stands for one rule, so n does not
count. If the sum of all that is left out is below its density, no list left out is more probable,
and no other one is by more than `4 rounding` plus the rounding of the posterior's log density.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import pairwise, zip_longest
from typing import NamedTuple

import numpy as np

from bayescascade.base.arrays import Flags, Floats, Integers
from bayescascade.methods.lists.exact.states import (
    AnyCodes,
    Bits,
    Layer,
    Separated,
    distinct_flags,
    layers_of,
    log_sums,
    maxima,
)
from bayescascade.methods.lists.kernels.layout import DENSITY
from bayescascade.methods.lists.kernels.states import IDLE
from bayescascade.methods.lists.posterior import RuleListPosterior
from bayescascade.methods.lists.rule_list import RuleList
from bayescascade.model.guard import UNIT, certified, shown_gap

MOST_LOST = 1e-6
"""Share of the sum that may be left out."""

_BEAM = 200  # states of a layer of the beam
_MOST_MODELS = 200
_AT_ONCE = 4096  # sets of points unpacked at once


class ListModel(NamedTuple):
    """All lists that divide the rows into the same parts, in any order, with any idle rules."""

    log_mass: float  # log of the sum of their densities, nats
    share: float  # of the posterior
    best: RuleList  # the most probable of them
    log_density: float  # of the best
    n_lists: float  # without those left out


class ListSum:
    """The sum over all lists.

    Attributes
    ----------
    log_total : float
        Log of the sum of the densities of all lists but those left out, nats.
    lost : float
        Proved bound on the sum of those left out, as a share of the sum.
    rounding : float
        Proved bound on the rounding error of the logs of sums, nats.
    n_states, n_edges : int
        Size of the graph.
    """

    def __init__(
        self, problem: Separated, layers: list[Layer], log_total: float, lost: float
    ) -> None:
        self._problem, self._layers = problem, layers
        self.log_total, self.lost = log_total, lost
        self.n_states = sum(layer.ends.size for layer in layers)
        self.n_edges = sum(layer.sources.size for layer in layers)
        most = max(self.n_edges, self.n_states)
        sizes = max(float(np.abs(layer.log_masses).max()) for layer in layers) + abs(log_total)
        per_layer = (2.0 * most + 8.0 + 2.0 * sizes) * UNIT
        self.rounding = problem.rounding.bound + len(layers) * per_layer

    @property
    def log_evidence(self) -> float | None:
        """Log probability of the labels, nats; None for densities, whose prior is restricted."""
        return None if self._problem.model.kind == DENSITY else self.log_total

    @property
    def extent(self) -> str:
        """The size of the sum, in words."""
        return f"sum over all lists, in {self.n_states:,} states; at most {self.lost:.0e} left out"

    @cached_property
    def state(self) -> RuleList:
        """The most probable list."""
        return self._best[0]

    @cached_property
    def log_density(self) -> float:
        """Log density of the most probable list, nats."""
        posterior, (state, claimed) = self._problem.posterior, self._best
        rounding = self._problem.rounding.bound + posterior.rounding(state)
        return certified(posterior.log_density, state, claimed, rounding)

    @property
    def is_optimal(self) -> bool:
        """Whether no list is more probable, up to rounding: no list left out has such a density."""
        return self.lost <= 0.0 or self._best[1] >= self.log_total + np.log(self.lost)

    @property
    def gap(self) -> float:
        """Bound on how much higher any list can be, nats; 0.0 if optimal up to rounding."""
        rounding = 4.0 * self.rounding + self._problem.posterior.rounding(self.state)
        above = 0.0 if self.is_optimal else self.log_total + float(np.log(self.lost))
        return shown_gap(max(0.0, above - self.log_density) * (not self.is_optimal), rounding)

    @cached_property
    def _best(self) -> tuple[RuleList, float]:
        return self._best_in(self._layers)

    def _best_in(self, layers: list[Layer]) -> tuple[RuleList, float]:
        after = _backward(layers, maxima, [layer.values for layer in layers])
        state, rules = 0, list[int]()
        for m, layer in enumerate(layers):
            first, last = layer.edges_of(state)
            if first == last or layer.ends[state] >= after[m][state]:
                break
            longer = layer.values[first:last] + after[m + 1][layer.targets[first:last]]
            edge = first + int(np.argmax(longer))
            rules.append(int(self._candidates(layer.keys[state], layer.rules[edge], rules)[0]))
            state = layer.targets[edge]
        return RuleList(tuple(rules)), float(after[0][0])

    def _candidates(self, key: Bits, rule: int, used: Sequence[int]) -> Integers:
        """Return the candidates that an edge from a state stands for."""
        problem = self._problem
        if rule > IDLE:
            return problem.members[rule]
        is_idle = ~(problem.masks.bits & key[:-1]).any(axis=1)
        is_idle &= problem.masks.sizes == IDLE - rule
        idle = np.concatenate([problem.members[k] for k in np.flatnonzero(is_idle)])
        return np.setdiff1d(idle, used)

    # -- draws -------------------------------------------------------------------------------------

    def draws(self, rng: np.random.Generator, n: int) -> list[RuleList]:
        """Return independent draws from the posterior."""
        drawn = []
        for path in self._paths(rng, n):
            rules = list[int]()
            for layer, (state, edge) in zip(self._layers, path[:-1], strict=False):
                among = self._candidates(layer.keys[state], layer.rules[edge], rules)
                rules.append(int(among[rng.integers(among.size)]))
            drawn.append(RuleList(tuple(rules)))
        return drawn

    def _paths(self, rng: np.random.Generator, n: int) -> list[list[tuple[int, int]]]:
        """Return draws of paths: a state and its edge in each layer, at the end -1."""
        paths: list[list[tuple[int, int]]] = [[] for _ in range(n)]
        going, states = np.arange(n), np.zeros(n, np.intp)
        for m, layer in enumerate(self._layers):
            first, last = layer.edges_of(states)
            rest = rng.random(going.size) - np.exp(layer.ends[states] - self._after[m][states])
            sums = np.cumsum(np.append(0.0, self._given_source(m)))
            edges = np.searchsorted(sums, sums[first] + rest, side="right") - 1
            edges = np.where((rest >= 0.0) & (last > first), np.clip(edges, first, last - 1), -1)
            for draw, state, edge in zip(
                going.tolist(), states.tolist(), edges.tolist(), strict=True
            ):
                paths[draw].append((state, edge))
            going, states = going[edges >= 0], layer.targets[edges[edges >= 0]]
            if not going.size:
                break
        return paths

    @cached_property
    def _after(self) -> list[Floats]:
        """The backward sums B of each layer."""
        return _backward(self._layers, log_sums, [layer.weights for layer in self._layers])

    def _given_source(self, m: int) -> Floats:
        """Return the probability of each edge of a layer, given that a list reaches its source."""
        layer = self._layers[m]
        if not layer.sources.size:
            return np.empty(0)
        longer = layer.weights + self._after[m + 1][layer.targets]
        return np.exp(longer - self._after[m][layer.sources])

    # -- averages ----------------------------------------------------------------------------------

    def probabilities(self, codes: AnyCodes) -> Floats:
        """Return the mean probability of each class over all lists, (n_rows, n_classes).

        NaN for rows that satisfy other candidates than every row of the table: lists of equal
        parts may differ there, see `draws`.
        """
        found, _, place = distinct_flags(self._problem.captured(codes).T)
        known = {key.tobytes(): point for point, key in enumerate(self._problem.points)}
        points = np.array([known.get(key.tobytes(), -1) for key in found], np.intp)
        means = np.pad(self._means, ((0, 1), (0, 0)), constant_values=np.nan)
        return means[points[place]]

    @cached_property
    def _means(self) -> Floats:
        """Mean probabilities of the points, (n_points, n_classes)."""
        features, alpha = self._problem.masks.features[:, :-1], self._problem.model.alphas[0]
        means = np.zeros(features.shape)
        for m, layer in enumerate(self._layers):
            reached = np.exp(layer.log_masses + self._after[m] - self.log_total)
            ended = reached * np.exp(layer.ends - self._after[m])
            groups = [(layer.keys, ended)]
            if layer.sources.size:
                captured = layer.keys[layer.sources] ^ self._layers[m + 1].keys[layer.targets]
                groups.append((captured, reached[layer.sources] * self._given_source(m)))
            for keys, shares in groups:
                for start in range(0, len(keys), _AT_ONCE):
                    holds = _unpacked(keys[start : start + _AT_ONCE, :-1])
                    smoothed = holds @ features + alpha
                    factors = shares[start : start + _AT_ONCE] / smoothed.sum(axis=1)
                    means += holds.T @ (smoothed * factors[:, np.newaxis])
        return means[: len(self._problem.points)]

    # -- lists of the same parts -------------------------------------------------------------------

    def models(self, rng: np.random.Generator, n_draws: int = 1000) -> list[ListModel]:
        """Return models, all lists of the same parts as one, the most probable first.

        They are found by draws; their masses are exact. All others together have the rest of the
        posterior, so a model of a larger share is surely in its place.
        """
        times: Counter[frozenset[bytes]] = Counter()
        for path in self._paths(rng, n_draws):
            keys = [layer.keys[s, :-1] for layer, (s, _) in zip(self._layers, path, strict=False)]
            parts = [pair ^ other for pair, other in pairwise(keys)] + [keys[-1]]
            times[frozenset(part.tobytes() for part in parts if part.any())] += 1
        found = [self._model(parts) for parts, _ in times.most_common(_MOST_MODELS)]
        return sorted(found, key=lambda model: -model.log_mass)

    def model_of(self, state: RuleList) -> ListModel:
        """Return the model of a list."""
        problem = self._problem
        group_of = np.empty(sum(map(len, problem.members)), np.intp)
        for k, members in enumerate(problem.members):
            group_of[members] = k
        left, parts = problem.root[0, :-1].copy(), list[Bits]()
        for rule in state.rules:
            parts.append(left & problem.masks.bits[group_of[rule]])
            left = left ^ parts[-1]
        return self._model(frozenset(part.tobytes() for part in (*parts, left) if part.any()))

    def _model(self, parts: frozenset[bytes]) -> ListModel:
        """Return the sum over the lists of these parts, by the part of the graph that has them."""
        masks = np.frombuffer(b"".join(sorted(parts)), np.uint64).reshape(len(parts), -1)
        layers = list[Layer]()
        kept, left = _parts_left(self._layers[0], masks)
        for layer, after in zip_longest(self._layers, self._layers[1:]):
            chosen = np.zeros(0, np.intp)
            if after is not None:
                kept_after, left_after = _parts_left(after, masks)
                chosen = np.flatnonzero(kept[layer.sources] & kept_after[layer.targets])
                change = left[layer.sources[chosen]] ^ left_after[layer.targets[chosen]]
                chosen = chosen[change & (change - 1) == 0]  # at most one part
            is_end = left[kept] & (left[kept] - 1) == 0
            layers.append(
                Layer(
                    keys=layer.keys[kept],
                    log_masses=layer.log_masses[kept],
                    ends=np.where(is_end, layer.ends[kept], -np.inf),
                    sources=(np.cumsum(kept) - 1)[layer.sources[chosen]],
                    targets=(np.cumsum(kept_after) - 1)[layer.targets[chosen]]
                    if after is not None
                    else chosen,
                    rules=layer.rules[chosen],
                    values=layer.values[chosen],
                    times=layer.times[chosen],
                )
            )
            if after is None or not kept_after.any():
                break
            kept, left = kept_after, left_after
        log_mass = float(_backward(layers, log_sums, [layer.weights for layer in layers])[0][0])
        share = float(np.exp(log_mass - self.log_total))
        best = self._best_in(layers)
        counted = [
            replace(layer, ends=np.where(layer.ends > -np.inf, 0.0, -np.inf)) for layer in layers
        ]
        log_n = _backward(counted, log_sums, [np.log(layer.times) for layer in layers])[0][0]
        return ListModel(log_mass, share, *best, float(np.exp(log_n)))


def sum_over_lists(
    posterior: RuleListPosterior,
    *,
    most_lost: float = MOST_LOST,
    most_work: float = np.inf,
    memory_limit: float = 2e9,
) -> ListSum:
    """Sum over all lists but a share of at most `most_lost` > 0.

    Nothing is random. TooLargeError if it needs more than `most_work` operations, about a
    nanosecond each, or `memory_limit` bytes; OutOfTime at the end of the time.
    """
    problem = Separated(posterior, memory_limit)
    layers = partial(layers_of, problem, most_work=most_work, memory_limit=memory_limit)
    _, log_least, _ = layers(beam=_BEAM)
    found = layers(most_lost=most_lost, log_least=log_least)
    return ListSum(problem, *found)


def _backward(
    layers: list[Layer], join: Callable[[Floats, Integers, Floats], Floats], values: list[Floats]
) -> list[Floats]:
    """Return sums or maxima over all continuations of each state, given the values of edges."""
    after = [layers[-1].ends]
    for layer, of_edges in zip(layers[-2::-1], values[-2::-1], strict=True):
        after.append(join(layer.ends, layer.sources, of_edges + after[-1][layer.targets]))
    return after[::-1]


def _parts_left(layer: Layer, masks: Bits) -> tuple[Flags, Integers]:
    """Return the states that leave only whole parts, and the parts that they leave, as bits."""
    left = layer.keys[:, np.newaxis, :-1] & masks
    is_whole, is_none = (left == masks).all(axis=2), ~left.any(axis=2)
    return (is_whole | is_none).all(axis=1), is_whole @ (1 << np.arange(len(masks)))


def _unpacked(bits: Bits) -> Floats:
    """Return the truth values of bits, as numbers."""
    flags = np.unpackbits(bits.astype("<u8").view(np.uint8), axis=1, bitorder="little")
    return flags.astype(np.float64)
