r"""Looking at one prefix of a list: the lists it begins, and bounds on all that are longer.

A prefix leaves a set R of points. Its value P is what its rules add to the log density: the log
prior of their sizes and their parts' terms ``T``. A list that goes on with k rules and ends has ``P
+ prior(k) + sum T(S)`` over its k + 1 further parts S, disjoint sets of points that make up R; the
points of a rule's part are among those that its candidate would capture. The prior is bounded at
the end. `points` names the sums; let ``sat`` be the saturated value. Here are the bounds on ``sum
T`` and why they hold. They are of any number of parts, of which some may be empty (``T = 0``), and
nowhere is a longer list taken for less probable: the prior may favor it.

Parts of points, one by one
    Labels: ``T(S) = ln E prod_c p_c^n_c`` over a Dirichlet distribution of ``p``. The likelihood of
    any part of the points is at most its maximum, ``exp(sat)``, whatever p: ``T(S) <= sat(S)``.
    Densities: of all rows' weight n, with what parts add up to anyway in the prior's ``H``, ``T =
    D(s, a) + s ln(s / n v)``; `excess` has D. Let ``d(s) = D(s, a')``, ``a' = max(a, 1/2)``: ``T <=
    s ln(s / n v) + d(s)``, as lnG(s + a) - lnG(a) grows with a. The function ``s ln(s / v)`` is
    convex and homogeneous, so it is at most its sum over the cells of S. ``d`` is concave, as
    ``psi'(x + 1/2) < 1 / x``, and grows, so k + 1 parts have ``sum d(s) <= (k + 1) d(s_R / (k +
    1))``, the `slack`; it grows with the number of parts too. In all, ``sum T <= sat(R) + slack``.

Parts of groups in their order (`kernels.parts.partition`)
    Any division of R into K sets of points has at most the value of the best division into K
    intervals of the groups sorted by composition: T of labels (of the first class and the others,
    whose labels add a term <= 0 to it) is convex in the two classes' weights, being the logarithm
    of an integral of exponentials of linear functions; so is ``s ln(s / v)`` in (s, v). A sum of
    convex functions of the parts' sums is largest at a vertex of the polytope of those sums, where
    the parts are separated by cones of the plane: by intervals of the ratio.

Stairs, for labels (`kernels.parts.climb`)
    Count what captured points weigh on two axes: points of the first class alone, and points
    without it. A part with (x, y) of them has ``T <= sat - O(x, y)``, ``O = -ln E p^x (1 - p)^y``
    with p from Beta(a, (C - 1) a): all other points are worth their maximum, and labels of the
    other classes, told apart, add a term <= 0. O grows with x and with y.

    Let q be a rule's cost (see below). A rule that captures (x, y) when (u, w) had been before
    costs ``q + O(x, y)``. At the end of that step *all* points of its candidate, (X, Y) of those in
    R, have been captured, so ``x <= X <= u + x`` and ``y <= Y <= w + y``: a candidate with points
    of both kinds can have a part of one kind only after the others were captured. Forget which
    points they were, and the least cost V(u, w) of going on and ending, where the `else` costs O of
    all that is left, is a shortest path. V falls as u and w grow: the steps of a path from (u, w)
    are possible from further on, each cut to what it still adds, at no more cost. So V at a step of
    a grid bounds V at all points up to it from the step before; a step that goes on by ``(i, j)``
    steps of the grid captures more than ``i - 1`` and ``j - 1`` of them, and at least one point
    where i or j is not 0. Sums of whole weights are whole: that least one is rounded up. A rule
    that captures nothing on the axes costs ``q >= 0`` and leads nowhere, so the shortest path needs
    none. A child begins at what its rule captures; what its candidates capture of R is no less than
    what they do of the child's points.

    As one rule follows at least, the rules also cost at least the least cost of a rule.

What further rules can add to the log prior, whatever they are: bounds by their number.

A prefix has ``m`` rules, ``u_c`` of them of size ``c``, so that ``a_c = N_c - u_c`` candidates of
that size are left. The log prior of ``k`` further rules of sizes ``c_1 .. c_k`` is, by `ListPrior`,
``H(m + k)`` and a sum over the rules j of ``s(c_j) - ln Z_j - ln(a_{c_j} - i_j)``: ``H`` is the log
probability of the length, and for densities the likelihood's term for the number of parts with it;
``s`` the log weight of a size; ``i_j`` how many of the further rules before j have that size;
``Z_j`` the summed weights of the sizes of which a candidate is left.

* Sizes with ``a_c >= j`` cannot have run out before rule j, so ``Z_j`` is at least the sum of their
  weights, or if there are none the least weight of a size that is left: ``L_j``.
* With ``k_c`` further rules of size c, the other terms are ``sum_c sum_{i < k_c} [s(c) - ln(a_c -
  i)]``. `totals` maximizes them over all ways to write k as the sum of some ``k_c <= a_c``.
* Let ``w_c = s(c) - ln Z_1 - ln a_c``, the log prior of a next rule of size c. The same maximum of
  ``sum_c sum_{i < k_c} [ln a_c - ln(a_c - i)]`` leads to an excess ``G(k)`` for which the log
  prior is at most ``G(k) + sum_j w_{c_j}``. With any slope ``mu``, ``G(k) <= max_k' [G(k') - mu k']
  + mu k``: an offset, and a cost of ``-(w_c + mu)`` for each rule. Slopes are those of G at a few
  numbers of rules, but so low that no cost is negative.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.arrays import Floats, Integers
from bayescascade.methods.rules.exact.points import SearchRounding, points_of
from bayescascade.methods.rules.excess import log_excess
from bayescascade.methods.rules.kernels import parts
from bayescascade.methods.rules.kernels.bits import NOTHING, descend, divide
from bayescascade.methods.rules.kernels.layout import DENSITY
from bayescascade.methods.rules.list_posterior import RuleListPosterior
from bayescascade.methods.rules.posterior import DensityListPosterior

_SLOPES_AT = (2, 8)
_N_SLOPES = len(_SLOPES_AT)
_MOST_PARTED = 48  # groups; the work is their square times the number of parts
_N_STEPS = 32


class _Further(NamedTuple):
    """Bounds on the log prior of what may follow a prefix, with S slopes."""

    next_rule: Floats  # (H + 1,): log prior of a next rule of each size, -inf if none is left
    totals: Floats  # (K + 1,): the most that 0, 1, .. further rules contribute, by their number too
    slopes: Floats  # (S,)
    offsets: Floats  # (2, S): most that one or more, two or more, rules exceed a slope's line by
    costs: Floats  # (S, H + 1) >= 0: price of a rule of each size, infinite if none is left
    empty_gain: Floats  # (H + 1,): most that a rule of each size adds that captures nothing


class _FurtherRules:
    """The bounds of a posterior, kept for each vector of the numbers of rules of each size.

    lengths (M + 1,): what a list of 0, 1, .. rules has for its length, ``H``.
    """

    def __init__(self, posterior: RuleListPosterior) -> None:
        candidates = posterior.antecedents
        self._n_of_size = candidates.n_of_size
        self._log_sizes = posterior.prior.log_sizes(candidates.max_size)
        self.lengths = posterior.prior.log_lengths(len(candidates))
        if isinstance(posterior, DensityListPosterior):
            alphas = posterior.concentration * np.arange(1, self.lengths.size + 1)
            self.lengths = self.lengths - log_excess(posterior.table.weights.sum(), alphas)
        self._longest = self.lengths.size - 1
        self._known: dict[tuple[int, ...], _Further] = {}

    def after(self, used: tuple[int, ...]) -> _Further:
        """Return bounds after a prefix, by its numbers of rules of 0 (none), 1, .. conditions."""
        found = self._known.get(used)
        if found is None:
            found = self._known[used] = self._bounds(np.array(used))
        return found

    def leave_out(self, least: Floats) -> None:
        """Leave out long lists: of 0, 1, .. rules the log prior must reach `least`, (M + 1,)."""
        totals = self.after((0,) * self._n_of_size.size).totals
        longest = int(np.flatnonzero(totals >= least[: totals.size]).max(initial=0))
        if longest < self._longest:
            self._longest = longest
            self._known.clear()

    def _bounds(self, used: Integers) -> _Further:
        n_rules, left = int(used.sum()), self._n_of_size - used
        most = max(0, min(self._longest - n_rules, int(left.sum())))
        lengths = self.lengths[n_rules : n_rules + most + 1]
        sizes = np.flatnonzero(left)
        log_left = np.log(np.maximum(left, 1))
        next_rule = np.full(left.size, -np.inf)
        next_rule[sizes] = (self._log_sizes - log_left)[sizes] - self._log_norm(sizes)
        depletion = [log_left[c] - np.log(left[c] - np.arange(min(left[c], most))) for c in sizes]
        terms = [
            d + self._log_sizes[c] - log_left[c] for d, c in zip(depletion, sizes, strict=True)
        ]
        fixed = lengths - np.concatenate([[0.0], np.cumsum(self._least_log_norms(left, most))])
        one_norm = self._log_norm(sizes) if sizes.size else 0.0
        excess = fixed + _best_split(depletion, most) + one_norm * np.arange(most + 1)
        slopes, offsets = _lines(excess, -float(next_rule.max(initial=-np.inf)))
        return _Further(
            next_rule=next_rule,
            totals=fixed + _best_split(terms, most),
            slopes=slopes,
            offsets=offsets,
            costs=np.maximum(0.0, -(next_rule + slopes[:, np.newaxis])),
            empty_gain=self._empty_gain(left, lengths),
        )

    def _log_norm(self, sizes: NDArray[np.intp]) -> float:
        return float(np.logaddexp.reduce(self._log_sizes[sizes]))

    def _least_log_norms(self, left: Integers, most: int) -> Floats:
        """Return a lower bound on the log of the summed weights at each further rule."""
        norms = np.empty(most)
        for before in range(most):
            sure = np.flatnonzero(left > before)
            norms[before] = self._log_norm(sure) if sure.size else self._log_sizes[left > 0].min()
        return norms

    def _empty_gain(self, left: Integers, lengths: Floats) -> Floats:
        """Return what a rule that captures nothing can gain, by size.

        A list with k further rules has one length more with it, and one candidate of its size less
        for each of them: it is more probable by ``H(m + k + 1) - H(m + k) + s(c) - ln Z - ln(a_c -
        k_c)`` than the list without it, and ``k_c <= k``. Where a size may run out, ``Z`` would
        change as well: there the gain is not bounded, but infinite.
        """
        gain = np.full(left.size, -np.inf)
        most = lengths.size - 1
        sizes = np.flatnonzero(left)
        if most > 0 and sizes.size:
            may_run_out = left[sizes].min() <= most
            for size in sizes:
                depleted = np.log(np.maximum(1, left[size] - np.arange(most)))
                each = np.diff(lengths) - depleted + self._log_sizes[size] - self._log_norm(sizes)
                gain[size] = np.inf if may_run_out else each.max()
        return gain


def _lines(excess: Floats, highest: float) -> tuple[Floats, Floats]:
    """Return slopes of at most `highest`, and the offsets of the lines above the excess."""
    steps = np.diff(excess)
    if not steps.size:  # nothing can follow
        return np.zeros(_N_SLOPES), np.full((2, _N_SLOPES), -np.inf)
    slopes = np.minimum(steps[np.minimum(_SLOPES_AT, steps.size - 1)], highest)
    above = excess - slopes[:, np.newaxis] * np.arange(excess.size)
    offsets = [above[:, least:].max(axis=1, initial=-np.inf) for least in (1, 2)]
    return slopes, np.array(offsets)


def _best_split(terms: list[Floats], most: int) -> Floats:
    """Return the largest sum of the first few terms of each list, 0 .. most of them in all."""
    best = np.full(most + 1, -np.inf)
    best[0] = 0.0
    for each in terms:
        sums = np.concatenate([[0.0], np.cumsum(each)])
        after = best.copy()
        for k in range(1, sums.size):
            after[k:] = np.maximum(after[k:], best[: most + 1 - k] + sums[k])
        best = after
    return best


class _Children(NamedTuple):
    """What may follow a prefix, one entry for each candidate that has an effect."""

    rules: Integers  # candidates
    values: Floats  # what the rule adds to the value of the prefix
    closed: Floats  # what a list that ends with the rule adds
    bounds: Floats  # what longer lists add, at most


class Prefix:
    """The prefix that is being looked at; `enter` another before anything else is asked.

    All values and bounds are in nats, relative to the value of the prefix. The points may take
    `memory_limit` bytes.
    """

    def __init__(self, posterior: RuleListPosterior, memory_limit: float) -> None:
        self.further = _FurtherRules(posterior)
        self.sizes: list[int] = posterior.antecedents.sizes.tolist()
        self._points = points_of(posterior, memory_limit)
        self.rounding = SearchRounding.of(posterior, self._points, self.further.lengths.size)
        self._is_density = posterior.kind == DENSITY
        self._candidates = posterior.candidates
        n_classes = 1 if self._is_density else self._points.features.shape[1] - 4
        alphas = posterior.concentration * np.array([1.0, max(1, n_classes - 1), n_classes])
        is_whole = self.rounding.is_whole
        whole = np.arange(posterior.model_arrays.log_gamma.size if is_whole else 0)
        self._model = parts.PartModel(
            posterior.kind, n_classes, float(posterior.table.weights.sum()), is_whole, alphas,
            log_excess(whole, alphas[:, np.newaxis]),
        )  # fmt: skip
        self._make_room()
        self.root_sizes = (0,) * (posterior.antecedents.max_size + 1)
        self.enter((), self.root_sizes)

    def enter(self, rules: tuple[int, ...], used: tuple[int, ...]) -> bytes:
        """Look at the prefix of these rules; return a key of what it leaves, and rules by size."""
        self._rules, self._used = rules, used
        self._after = self.further.after(used)
        descend(
            self._candidates, self._points.arrays, np.array(rules, np.int64), self._remaining,
            self._spare[0], self._weights, self._key,
        )  # fmt: skip
        self._whole = self._weights @ self._points.features
        self._slack = self._slack_of_parts()
        return self._key.tobytes() + bytes(used)

    def closed(self) -> float:
        """Return what the `else` adds if the list ends here."""
        value = parts.part_value(self._model, self._whole)
        return float(self.further.lengths[len(self._rules)]) + value

    def value(self, rules: tuple[int, ...]) -> float:
        """Return a positive list's log density as a search adds it up; go back to the root."""
        value, used = 0.0, self.root_sizes
        for position, rule in enumerate(rules):
            self.enter(rules[:position], used)
            children, _ = self.children()
            place = np.flatnonzero(children.rules == rule)
            idle = self._after.next_rule[self.sizes[rule]]  # it captures nothing
            value += float(children.values[place[0]] if place.size else idle)
            used = tuple(n + (size == self.sizes[rule]) for size, n in enumerate(used))
        self.enter(rules, used)
        value += self.closed()
        self.enter((), self.root_sizes)
        return value

    def most_likely(self) -> Floats:
        """Return a bound on the parts of 0, 1, .. further rules, (M + 1,) float64."""
        most: Floats = self._slack + self._whole[-1]
        return most

    def bound(self) -> float:
        """Return what longer lists add, at most, by the prior and by parts of groups."""
        totals = self._after.totals
        if totals.size == 1:
            return -np.inf
        of_parts = np.full(totals.size, self._whole[-1])
        if self._weights.any():
            best = np.empty(totals.size)
            is_small = parts.partition(
                self._model, self._points.features, self._weights, self._members, self._intervals,
                self._firsts, self._sums, best,
            )  # fmt: skip
            if is_small:
                of_parts = np.minimum(of_parts, best)
        return float((totals + of_parts + self._slack[: totals.size])[1:].max())

    def children(self) -> tuple[_Children, float]:
        """Return which rules may follow, and what longer lists add at most, by the stairs."""
        divide(
            self._candidates, self._points.arrays, self._points.features, self._remaining,
            self._spare, self._group, self._captured, self._left, self._fates,
        )  # fmt: skip
        parts.value_children(
            self._model, self._candidates.sizes, self._fates, self._captured, self._left,
            self._after.next_rule, self._after_next(),
            float(self.further.lengths[len(self._rules) + 1]), self._values, self._closed,
            self._bounds,
        )  # fmt: skip
        bound = np.inf if self._is_density else self._climb()
        rules = np.flatnonzero(self._values > -np.inf)
        found = _Children(rules, self._values[rules], self._closed[rules], self._bounds[rules])
        return found, bound

    def idle_rules(self) -> list[tuple[int, float]]:
        """Return rules that capture nothing, one of each size that may pay, and their log prior."""
        found = []
        for size in np.flatnonzero(self._after.empty_gain > 0.0):
            idle = np.flatnonzero((self._fates == NOTHING) & (self._candidates.sizes == size))
            unused = [rule for rule in idle.tolist() if rule not in self._rules]
            if unused and not self._is_density:
                found.append((unused[0], float(self._after.next_rule[size])))
        return found

    def _after_next(self) -> Floats:
        """Return what the prior and slack add at most after a next rule of each size."""
        most = np.full(len(self._used), -np.inf)
        for size in np.flatnonzero(self._after.next_rule > -np.inf):
            used = tuple(n + (k == size) for k, n in enumerate(self._used))
            totals = self.further.after(used).totals
            most[size] = (totals + self._slack[: totals.size])[1:].max(initial=-np.inf)
        return most

    def _climb(self) -> float:
        """Lower the children's bounds by the stairs; return the prefix's."""
        after = self._after
        least = after.costs[:, 1:].min(axis=1)
        parts.climb(
            self._model, self._candidates.sizes, self._fates, self._captured, self._whole,
            self._points.least_pure, after.costs, self._stairs,
        )  # fmt: skip
        parts.bound_children(
            self._model, self._fates, self._captured, self._left, self._whole, self._values,
            after.offsets[1] + after.slopes, least, self._stairs, self._bounds,
        )  # fmt: skip
        cost = np.maximum(self._stairs.to_go[:, 0, 0], least)
        return float((after.offsets[0] - cost).min() + self._whole[-2])

    def _slack_of_parts(self) -> Floats:
        """Return how much 1, 2, .. parts of densities exceed the saturated value, at most."""
        n = self.further.lengths.size
        if not self._is_density:
            return np.zeros(n)
        alpha, k = max(0.5, self._model.alphas[0]), np.arange(1, n + 1)
        return k * log_excess(self._whole[0] / k, alpha)

    def _make_room(self) -> None:
        n_groups, n_features = self._points.features.shape
        n, n_words = len(self.sizes), self._points.arrays.everyone.size
        self._remaining = np.empty(n_words, np.uint64)
        self._spare = np.empty((2, n_words), np.uint64)
        self._key = np.empty(2, np.uint64)
        self._weights, self._group = np.empty((2, n_groups))
        self._captured, self._left = np.empty((2, n, n_features))
        self._fates = np.empty(n, np.int8)
        self._values, self._closed, self._bounds = np.empty((3, n))
        n_parted = min(_MOST_PARTED, n_groups)
        self._members = np.empty(n_parted, np.int64)
        self._intervals, self._firsts = np.empty((n_parted, n_parted)), np.empty(n_parted)
        self._sums = np.empty(n_features)
        n = _N_STEPS + 1
        overheads, ends, cheapest = np.empty((n, n)), np.empty((n, n)), np.empty((2, n, n))
        self._stairs = parts.Stairs(overheads, ends, cheapest, np.empty((_N_SLOPES, n, n)))
