"""The search for the best list: best first, by bounds that `bounds` proves.

The prefix with the highest bound is visited next. Each candidate that may follow it ends a list,
which may be the best so far, and starts longer lists, which wait with their own bound. No unseen
list is more probable than the highest bound among the waiting prefixes. When that is not above the
best list, the search is over.

A rule of a label list may be idle: it captures none of the remaining points. If the prior expects
more rules than the data need, the best list has such rules, possibly at its end. Density lists have
none, because a part without a cell has density zero. Idle rules stay idle, so idle rules of one
size are equivalent, and the first unused one represents them. It is followed as a prefix of its
own, with the bound of the previous prefix, unless no list gains by it (`bounds`: its empty gain);
the list that ends with it is noted then.

Two prefixes that leave the same points, with equal numbers of rules of each size, are equivalent.
Only the more probable one is followed; within rounding, the first (`exact.points`). The rules used
by one are idle after the other, and both have used the same number of each size. So if a list
continues one of them by a rule of the other, the other can be continued by an idle rule of that
size instead. (Prefixes are distinguished by 128 bits of a hash, so a list is overlooked with a
probability below 1e-20 in a search of a billion prefixes.)

A waiting candidate takes only 20 bytes, but there are many. When they use all allowed memory, the
prefix with the highest bound is searched depth first, which needs almost no memory, before the next
one; its bound counts until all of it has been searched.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from time import perf_counter
from typing import NamedTuple

import numpy as np

from bayescascade.base.arrays import Codes, Floats
from bayescascade.base.watch import OutOfTime
from bayescascade.methods.lists.exact.bounds import Prefix, bound_of_all
from bayescascade.methods.lists.posterior import DensityListPosterior, RuleListPosterior
from bayescascade.methods.lists.rule_list import RuleList
from bayescascade.model.guard import certified, shown_gap

_BYTES_OF_CHILD = 20
_BYTES_OF_BRANCH = 1200
_BYTES_OF_KEY = 250
_SECONDS_BETWEEN_REPORTS = 0.5


class BoundPoint(NamedTuple):
    """The state of a search."""

    seconds: float  # since its start
    n_visited: int  # prefixes looked at
    log_density: float  # of the best list so far, nats
    upper_bound: float  # nats; no list's log density is higher


@dataclass(frozen=True, slots=True)
class CertifiedList:
    """The best list found, and a bound on how much better any other list can be."""

    state: RuleList
    log_density: float  # of the list, nats
    # Nats; no list's log density is higher. If the search ended, it exceeds `log_density` by the
    # rounding.
    upper_bound: float
    rounding: float  # >= 0, nats: proved bound on the rounding of the proof; see `exact.points`
    is_optimal: bool  # the search ended: no list is more probable by more than `rounding`
    interrupted: bool  # whether Ctrl-C ended the search early
    n_visited: int  # prefixes looked at
    seconds: float
    trace: tuple[BoundPoint, ...]  # at each better list, and about twice a second

    @property
    def gap(self) -> float:
        """Bound on how much higher any list can be, nats; 0.0 if optimal up to rounding."""
        open_gap = 0.0 if self.is_optimal else self.upper_bound - self.log_density
        return shown_gap(open_gap, self.rounding)


def best_list(
    posterior: RuleListPosterior,
    *,
    time_limit: float | None = None,
    memory_limit: float = 2e9,
    start: RuleList | None = None,
    progress: Callable[[BoundPoint], object] | None = None,
    max_visited: int | None = None,
) -> CertifiedList:
    """Search for the most probable list until it is proved, or a limit is reached.

    Nothing is random. Ctrl-C, `time_limit` >= 0, seconds, and `max_visited` >= 1 prefixes end it
    with the best list so far and a valid bound, which is that of all lists if even listing the
    cells of a domain would take longer. When waiting prefixes exceed `memory_limit` > 0,
    bytes, it continues depth first. With a better `start`, more lists can be excluded. `progress`
    is called about twice a second. TooLargeError if the cells of a density's domain take more than
    `memory_limit`.
    """
    started, first = perf_counter(), RuleList() if start is None else start
    if posterior.log_density(first) < posterior.log_density(RuleList()):
        first = RuleList()
    try:
        end = np.inf if time_limit is None else started + time_limit
        prefix = Prefix(posterior, memory_limit, end)
    except OutOfTime:
        return _unsearched(posterior, first, started)
    try:
        log_density = prefix.value(first.rules)
    except OutOfTime:
        log_density = posterior.log_density(first)
        prefix.enter((), prefix.root_sizes)
    search = _ListSearch(
        prefix=prefix,
        best=(log_density, first.rules),
        started=started,
        time_limit=np.inf if time_limit is None else time_limit,
        memory_limit=memory_limit,
        max_visited=np.inf if max_visited is None else max_visited,
        progress=progress,
    )
    is_optimal = search.run()
    state = RuleList(search.best[1])
    of_posterior = posterior.rounding(state)
    rounding = prefix.rounding.proved(of_posterior)
    log_density = certified(
        posterior.log_density, state, search.best[0], prefix.rounding.bound + of_posterior
    )
    upper_bound = log_density if is_optimal else max(log_density, search.ceiling)
    upper_bound += rounding
    last = BoundPoint(perf_counter() - started, search.n_visited, log_density, upper_bound)
    return CertifiedList(
        state=state,
        **last._asdict(),
        rounding=rounding,
        is_optimal=is_optimal,
        interrupted=search.interrupted,
        trace=(*search.trace, last),
    )


def _unsearched(posterior: RuleListPosterior, first: RuleList, started: float) -> CertifiedList:
    """Return a list with a bound on all lists, as nothing was searched."""
    assert isinstance(posterior, DensityListPosterior), "points of labels are quickly listed"
    bound, search_rounding = bound_of_all(posterior)
    log_density = posterior.log_density(first)
    rounding = search_rounding.proved(posterior.rounding(first))
    seconds, upper_bound = perf_counter() - started, max(log_density, bound) + rounding
    point = BoundPoint(seconds, 0, log_density, upper_bound)
    return CertifiedList(
        state=first, **point._asdict(), rounding=rounding, is_optimal=False, interrupted=False,
        trace=(point,),
    )  # fmt: skip


@dataclass(slots=True)
class _Branch:
    """A visited prefix, and the rules that may follow it, highest bound first."""

    rules: tuple[int, ...]
    used: tuple[int, ...]
    followers: Codes
    values: Floats
    bounds: Floats
    position: int = 0

    @property
    def is_over(self) -> bool:
        return self.position == self.bounds.size

    @property
    def bound(self) -> float:
        """Bound of the next rule to follow."""
        return float(self.bounds[self.position])

    @property
    def n_bytes(self) -> int:
        return _BYTES_OF_BRANCH + _BYTES_OF_CHILD * self.bounds.size


@dataclass(slots=True)
class _ListSearch:
    """A running search; after an interrupt, `best` and `ceiling` are still valid."""

    prefix: Prefix
    best: tuple[float, tuple[int, ...]]
    started: float
    time_limit: float
    memory_limit: float
    max_visited: float
    progress: Callable[[BoundPoint], object] | None
    ceiling: float = np.inf
    interrupted: bool = False
    n_visited: int = 0
    trace: list[BoundPoint] = field(default_factory=list)
    _waiting: list[tuple[float, int, _Branch]] = field(default_factory=list)
    _seen: dict[bytes, float] = field(default_factory=dict)
    _n_bytes: int = 0
    _likely: Floats = field(default_factory=lambda: np.empty(0))

    def run(self) -> bool:
        """Search; return whether the best list is proved."""
        root, order = self.prefix, count()
        try:
            self.ceiling = max(root.closed(), root.bound())
            self._likely = root.most_likely()
            self._leave_out_the_long()
            branch = self._look((), root.root_sizes, 0.0, self.ceiling)
            if branch is not None:
                self._wait(branch, next(order))
            while self._waiting and not self._must_stop():
                # bounds of children are at most their prefix's, so this never rises
                self.ceiling = -self._waiting[0][0]
                if self.ceiling <= self._enough():
                    break
                branch = self._follow_best()
                if branch is None:
                    continue
                if self._n_bytes < self.memory_limit:
                    self._wait(branch, next(order))
                elif not self._follow_to_the_end(branch):
                    return False
        except KeyboardInterrupt as ended:
            self.interrupted = not isinstance(ended, OutOfTime)
            return False
        return not self._waiting or -self._waiting[0][0] <= self._enough()

    def _wait(self, branch: _Branch, number: int) -> None:
        heapq.heappush(self._waiting, (-branch.bound, number, branch))
        self._n_bytes += branch.n_bytes

    def _follow_best(self) -> _Branch | None:
        """Visit the prefix with the highest bound."""
        _, number, branch = self._waiting[0]
        position = branch.position
        branch.position += 1
        if branch.is_over:
            heapq.heappop(self._waiting)
            self._n_bytes -= branch.n_bytes
        else:
            heapq.heapreplace(self._waiting, (-branch.bound, number, branch))
        return self._follow(branch, position)

    def _follow_to_the_end(self, branch: _Branch) -> bool:
        """Search a whole branch depth first; return whether it was completed."""
        path = [branch]
        while path:
            if self._must_stop():
                return False
            branch = path[-1]
            if branch.is_over or branch.bound <= self._enough():
                path.pop()
                continue
            branch.position += 1
            after = self._follow(branch, branch.position - 1)
            if after is not None:
                path.append(after)
        return True

    def _follow(self, branch: _Branch, position: int) -> _Branch | None:
        rule = int(branch.followers[position])
        size = self.prefix.sizes[rule]
        used = tuple(n + (k == size) for k, n in enumerate(branch.used))
        value, bound = float(branch.values[position]), float(branch.bounds[position])
        return self._look((*branch.rules, rule), used, value, bound)

    def _look(
        self, rules: tuple[int, ...], used: tuple[int, ...], value: float, bound: float
    ) -> _Branch | None:
        """Visit a prefix and note the lists that end after it; return its branch, if useful."""
        prefix = self.prefix
        key = prefix.enter(rules, used)
        if self._seen.get(key, -np.inf) >= value - prefix.rounding.alike:
            return None
        if self._n_bytes < self.memory_limit:
            self._n_bytes += 0 if key in self._seen else _BYTES_OF_KEY
            self._seen[key] = value
        self.n_visited += 1
        self._note(value + prefix.closed(), rules)  # a new list if the last rule is idle
        bound = min(bound, value + prefix.bound())
        if bound <= self._enough():
            return None
        children, by_stairs = prefix.children()
        if children.rules.size:
            place = int(np.argmax(children.closed))
            self._note(value + float(children.closed[place]), (*rules, int(children.rules[place])))
        bound = min(bound, value + by_stairs)
        if bound <= self._enough():
            return None
        bounds = np.minimum(bound, value + children.bounds)
        kept = np.flatnonzero(bounds > self._enough())
        kept = kept[np.argsort(-bounds[kept], kind="stable")]
        idle = prefix.idle_rules()  # first, because no bound is higher
        idle_rules = np.array([rule for rule, _ in idle], np.int32)
        idle_values = np.array([log_prior for _, log_prior in idle], np.float64)
        branch = _Branch(
            rules=rules,
            used=used,
            followers=np.concatenate([idle_rules, children.rules[kept].astype(np.int32)]),
            values=value + np.concatenate([idle_values, children.values[kept]]),
            bounds=np.concatenate([np.full(len(idle), bound), bounds[kept]]),
        )
        return None if branch.is_over else branch

    def _note(self, log_density: float, rules: tuple[int, ...]) -> None:
        """Keep a list if it is the best so far by more than rounding."""
        if log_density > self._enough():
            self.best = (log_density, rules)
            self._leave_out_the_long()
            self.trace.append(self._point())

    def _leave_out_the_long(self) -> None:
        self.prefix.further.leave_out(self._enough() - self._likely)

    def _enough(self) -> float:
        """Return the log density that a list must exceed to be better, rounding apart."""
        return self.best[0] + self.prefix.rounding.enough

    def _must_stop(self) -> bool:
        now = perf_counter() - self.started
        last = self.trace[-1].seconds if self.trace else 0.0
        if now - last > _SECONDS_BETWEEN_REPORTS:
            self.trace.append(self._point())
            if self.progress is not None:
                self.progress(self.trace[-1])
        return now > self.time_limit or self.n_visited >= self.max_visited

    def _point(self) -> BoundPoint:
        upper_bound = max(self.best[0], self.ceiling) + self.prefix.rounding.proved(0.0)
        return BoundPoint(perf_counter() - self.started, self.n_visited, self.best[0], upper_bound)
