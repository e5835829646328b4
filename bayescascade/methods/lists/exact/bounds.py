r"""One prefix of a list: the lists that end after it, and bounds on all longer lists.

A prefix leaves a set R of points. Its value P is the contribution of its rules to the log density:
the log prior of their sizes and their parts' terms ``T``. A list that continues with k rules and
ends has ``P + prior(k) + sum T(S)`` over its k + 1 further parts S, disjoint sets of points with
union R; the points of a rule's part are among those that its candidate would capture. The bound on
the prior is at the end. `points` names the sums; let ``sat`` be the saturated value. The bounds on
``sum T`` and their proofs follow. They hold for any number of parts, some of which may be empty
(``T = 0``). They never assume that a longer list is less probable, because the prior may favor it.

Parts of points, one by one
    Labels: ``T(S) = ln E prod_c p_c^n_c`` over a Dirichlet distribution of ``p``. The likelihood of
    any set of points is at most its maximum, ``exp(sat)``, for any p: ``T(S) <= sat(S)``.
    Densities: with n the weight of all rows, and the terms that depend only on the number of parts
    in the prior's ``H``, ``T = D(s, a) + s ln(s / n v)``; `excess` has D. Let ``d(s) = D(s, a')``,
    ``a' = max(a, 1/2)``: ``T <= s ln(s / n v) + d(s)``, as lnG(s + a) - lnG(a) grows with a. The
    function ``s ln(s / v)`` is convex and homogeneous, so it is at most its sum over the cells of
    S. ``d`` is concave, as ``psi'(x + 1/2) < 1 / x``, and increasing, so k + 1 parts have ``sum
    d(s) <= (k + 1) d(s_R / (k + 1))``, the `slack`, which also grows with the number of parts.
    Together, ``sum T <= sat(R) + slack``.

Parts of groups in their order (`kernels.parts.partition`)
    Any division of R into K sets of points has at most the value of the best division into K
    intervals of the groups sorted by composition: T of labels (of the first class and the others
    together; the labels among the others add a term <= 0) is convex in the two weights, because it
    is the logarithm of an integral of exponentials of linear functions; so is ``s ln(s / v)`` in
    (s, v). A sum of convex functions of the parts' sums is largest at a vertex of the polytope of
    those sums, where the parts are separated by cones of the plane: by intervals of the ratio.

Stairs, for labels (`kernels.parts.climb`)
    Measure the weight of captured points on two axes: points of the first class only, and points
    without it. A part with weights (x, y) has ``T <= sat - O(x, y)``, ``O = -ln E p^x (1 - p)^y``
    with p from Beta(a, (C - 1) a): all other points have at most their maximum, and the labels
    among the other classes add a term <= 0. O grows with x and with y.

    Let q be a rule's cost (see below). A rule that captures (x, y) after (u, w) have been captured
    costs ``q + O(x, y)``. After that step *all* points of its candidate, (X, Y) of those in R, have
    been captured, so ``x <= X <= u + x`` and ``y <= Y <= w + y``: a candidate with points of both
    kinds can have a part of one kind only after the others were captured. If only these weights are
    kept, the least cost V(u, w) to continue and end, where the `else` costs O of the rest, is a
    shortest path. V decreases as u and w grow: the steps of a path from (u, w) are also possible
    from a later point, each reduced to what it still adds, at no more cost. So V at a grid step
    bounds V at all points between the previous step and it. A move by ``(i, j)`` grid steps
    captures more than ``i - 1`` and ``j - 1`` of them, and at least one point if i or j is not 0.
    Sums of whole weights are whole, so this minimum is rounded up. A rule that captures nothing on
    the axes costs ``q >= 0`` and does not move, so the shortest path needs none. A child starts at
    the weights that its rule captures; its candidates capture at least as much of R as of the
    child's points.

    At least one rule follows, so the rules also cost at least the minimum cost of a rule.

Bounds on the contribution of further rules to the log prior, by their number.

A prefix has ``m`` rules, ``u_c`` of them of size ``c``, so that ``a_c = N_c - u_c`` candidates of
that size are left. The log prior of ``k`` further rules of sizes ``c_1 .. c_k`` is, by `ListPrior`,
``H(m + k)`` and a sum over the rules j of ``s(c_j) - ln Z_j - ln(a_{c_j} - i_j)``: ``H`` is the log
probability of the length, for densities plus the likelihood's term for the number of parts; ``s``
the log weight of a size; ``i_j`` the number of further rules before j of that size; ``Z_j`` the
summed weights of the sizes with a candidate left.

* Sizes with ``a_c >= j`` cannot be used up before rule j, so ``Z_j`` is at least the sum of their
  weights or, if there are none, the least weight of a remaining size: ``L_j``.
* With ``k_c`` further rules of size c, the other terms are ``sum_c sum_{i < k_c} [s(c) - ln(a_c -
  i)]``. `totals` maximizes them over all ways to write k as the sum of some ``k_c <= a_c``.
* Let ``w_c = s(c) - ln Z_1 - ln a_c``, the log prior of a next rule of size c. The same maximum of
  ``sum_c sum_{i < k_c} [ln a_c - ln(a_c - i)]`` leads to an excess ``G(k)`` for which the log prior
  is at most ``G(k) + sum_j w_{c_j}``. With any slope ``mu``, ``G(k) <= max_k' [G(k') - mu k'] + mu
  k``: an offset, and a cost of ``-(w_c + mu)`` for each rule. The slopes are those of G at a few
  numbers of rules, lowered so that no cost is negative.
"""

from math import prod
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.arrays import Floats, Integers
from bayescascade.base.watch import OutOfTime
from bayescascade.methods.lists.exact.points import SearchRounding, points_of
from bayescascade.methods.lists.excess import log_excess
from bayescascade.methods.lists.kernels import parts
from bayescascade.methods.lists.kernels.bits import NOTHING, descend, divide
from bayescascade.methods.lists.kernels.layout import DENSITY
from bayescascade.methods.lists.posterior import DensityListPosterior, RuleListPosterior

_SLOPES_AT = (2, 8)
_N_SLOPES = len(_SLOPES_AT)
_MOST_PARTED = 48  # groups; the work is groups squared times parts
_N_STEPS = 32
_AT_ONCE = 1 << 20  # words of points times rules divided between two looks at the clock


class _Further(NamedTuple):
    """Bounds on the log prior of continuations of a prefix, with S slopes."""

    next_rule: Floats  # (H + 1,): log prior of a next rule of each size, -inf if none is left
    totals: Floats  # (K + 1,): maximum contribution of 0, 1, .. further rules
    slopes: Floats  # (S,)
    offsets: Floats  # (2, S): maximum excess over a slope's line, for >= 1 and >= 2 rules
    costs: Floats  # (S, H + 1) >= 0: cost of a rule of each size, infinite if none is left
    empty_gain: Floats  # (H + 1,): maximum gain of a rule that captures nothing, by size


def log_lengths(posterior: RuleListPosterior) -> Floats:
    """Return the term ``H`` of lists of 0, 1, .. rules, (M + 1,) float64."""
    lengths = posterior.prior.log_lengths(len(posterior.antecedents))
    if isinstance(posterior, DensityListPosterior):
        alphas = posterior.concentration * np.arange(1, lengths.size + 1)
        lengths = lengths - log_excess(posterior.table.weights.sum(), alphas)
    return lengths


def part_model(posterior: RuleListPosterior, *, is_whole: bool) -> parts.PartModel:
    """Return the likelihood of parts; is_whole: sums of weights are rounded to whole numbers."""
    n_classes = posterior.class_weights.size
    alphas = posterior.concentration * np.array([1.0, max(1, n_classes - 1), n_classes])
    whole = np.arange(posterior.model_arrays.log_gamma.size if is_whole else 0)
    return parts.PartModel(
        posterior.kind, n_classes, float(posterior.table.weights.sum()), is_whole, alphas,
        log_excess(whole, alphas[:, np.newaxis]),
    )  # fmt: skip


class _FurtherRules:
    """The bounds for a posterior, cached by the numbers of rules of each size.

    lengths (M + 1,): the term ``H`` of a list of 0, 1, .. rules.
    """

    def __init__(self, posterior: RuleListPosterior) -> None:
        candidates = posterior.antecedents
        self._n_of_size = candidates.n_of_size
        self._log_sizes = posterior.prior.log_sizes(candidates.max_size)
        self.lengths = log_lengths(posterior)
        self._longest = self.lengths.size - 1
        self._known: dict[tuple[int, ...], _Further] = {}

    def after(self, used: tuple[int, ...]) -> _Further:
        """Return the bounds after a prefix, by numbers of rules of 0 (none), 1, .. conditions."""
        found = self._known.get(used)
        if found is None:
            found = self._known[used] = self._bounds(np.array(used))
        return found

    def leave_out(self, least: Floats) -> None:
        """Exclude long lists: the log prior of 0, 1, .. rules must reach `least`, (M + 1,)."""
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
        """Return a bound on the gain of a rule that captures nothing, by size.

        With this rule, a list with k further rules is longer by one, and each of them has one
        candidate of its size less. The log density differs by ``H(m + k + 1) - H(m + k) + s(c) - ln
        Z - ln(a_c - k_c)`` from that without it, and ``k_c <= k``. If a size may be used up, ``Z``
        would change as well; then the bound is infinite.
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
    """Return slopes of at most `highest`, and offsets of the lines above the excess."""
    steps = np.diff(excess)
    if not steps.size:  # no rule can follow
        return np.zeros(_N_SLOPES), np.full((2, _N_SLOPES), -np.inf)
    slopes = np.minimum(steps[np.minimum(_SLOPES_AT, steps.size - 1)], highest)
    above = excess - slopes[:, np.newaxis] * np.arange(excess.size)
    offsets = [above[:, least:].max(axis=1, initial=-np.inf) for least in (1, 2)]
    return slopes, np.array(offsets)


def _best_split(terms: list[Floats], most: int) -> Floats:
    """Return the largest sum of the first terms of each list, for 0 .. `most` terms in total."""
    best = np.full(most + 1, -np.inf)
    best[0] = 0.0
    for each in terms:
        sums = np.concatenate([[0.0], np.cumsum(each)])
        after = best.copy()
        for k in range(1, sums.size):
            after[k:] = np.maximum(after[k:], best[: most + 1 - k] + sums[k])
        best = after
    return best


def slack(n_parts: int, weight: float, alpha: float) -> Floats:
    """Return a bound on the excess of 1, 2, .. parts of densities over the saturated value."""
    k = np.arange(1, n_parts + 1)
    found: Floats = k * log_excess(weight / k, max(0.5, alpha))
    return found


def bound_of_all(posterior: DensityListPosterior) -> tuple[float, SearchRounding]:
    """Return a bound on the log density of all lists, and its rounding.

    It needs no list of cells: those without rows add nothing to the saturated value.
    """
    table, further = posterior.table, _FurtherRules(posterior)
    totals = further.after((0,) * (posterior.antecedents.max_size + 1)).totals
    widths = zip(table.schema.columns, table.codes, strict=True)
    log_volumes = sum(np.log(column.widths)[codes] for column, codes in widths)
    total = float(table.weights.sum())
    saturated = table.weights @ (np.log(table.weights / total) - log_volumes)
    of_parts = saturated + slack(further.lengths.size, total, posterior.concentration)
    n_points, n_groups = prod(table.schema.n_levels.tolist()), 1 + table.weights.size
    rounding = SearchRounding.of(posterior, n_points, (n_groups, 3), further.lengths.size)
    return float((totals + of_parts[: totals.size]).max()), rounding


class _Children(NamedTuple):
    """The rules that may follow a prefix, one entry for each candidate that captures something."""

    rules: Integers  # candidates
    values: Floats  # contribution of the rule to the value of the prefix
    closed: Floats  # contribution of the rule and the `else` if the list ends there
    bounds: Floats  # upper bound for longer lists


class Prefix:
    """The current prefix; call `enter` for another prefix before the other methods.

    All values and bounds are in nats, relative to the value of the prefix. The points may take
    `memory_limit` bytes. After `end`, of `perf_counter`, rules that may follow raise OutOfTime.
    """

    def __init__(
        self, posterior: RuleListPosterior, memory_limit: float, end: float = np.inf
    ) -> None:
        self._end = end
        self.further = _FurtherRules(posterior)
        self.sizes: list[int] = posterior.antecedents.sizes.tolist()
        self._points = points_of(posterior, memory_limit, end)
        n_points, shape = self._points.arrays.row_weights.size, self._points.features.shape
        self.rounding = SearchRounding.of(posterior, n_points, shape, self.further.lengths.size)
        self._is_density = posterior.kind == DENSITY
        self._candidates = posterior.antecedents.arrays
        self._model = part_model(posterior, is_whole=self.rounding.is_whole)
        self._make_room()
        self.root_sizes = (0,) * (posterior.antecedents.max_size + 1)
        self.enter((), self.root_sizes)

    def enter(self, rules: tuple[int, ...], used: tuple[int, ...]) -> bytes:
        """Make these rules the prefix; return a key of its remaining points and rule sizes."""
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
        """Return the contribution of the `else` if the list ends here."""
        value = parts.part_value(self._model, self._whole)
        return float(self.further.lengths[len(self._rules)]) + value

    def value(self, rules: tuple[int, ...]) -> float:
        """Return a list's log density > -inf as a search adds it up; go back to the root."""
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
        """Return a bound on the terms of the parts of 0, 1, .. further rules, (M + 1,) float64."""
        most: Floats = self._slack + self._whole[-1]
        return most

    def bound(self) -> float:
        """Return an upper bound for longer lists, by the prior and by partitions of groups."""
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
        """Return the rules that may follow, and an upper bound for longer lists by the stairs."""
        n, at_once = len(self.sizes), max(1, _AT_ONCE // self._remaining.size)
        for first in range(0, n, at_once):  # of millions of cells, all would take minutes
            if perf_counter() > self._end:
                raise OutOfTime
            divide(
                self._candidates, self._points.arrays, self._points.features, self._remaining,
                self._spare, self._group, self._captured, self._left, self._fates, first,
                min(first + at_once, n),
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
        """Return a rule that captures nothing for each size that may gain, and its log prior."""
        found = []
        for size in np.flatnonzero(self._after.empty_gain > 0.0):
            idle = np.flatnonzero((self._fates == NOTHING) & (self._candidates.sizes == size))
            unused = [rule for rule in idle.tolist() if rule not in self._rules]
            if unused and not self._is_density:
                found.append((unused[0], float(self._after.next_rule[size])))
        return found

    def _after_next(self) -> Floats:
        """Return a bound on prior plus slack after a next rule of each size."""
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
        """Return a bound on the excess of 1, 2, .. parts of densities over the saturated value."""
        n = self.further.lengths.size
        return slack(n, self._whole[0], self._model.alphas[0]) if self._is_density else np.zeros(n)

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
