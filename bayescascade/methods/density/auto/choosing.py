"""Choice of a cascade for a table: by evidence, or by held-out rows if some have no evidence.

Candidates are weighed from the cheapest to the most expensive, as long as their operations, which
are counted beforehand, fit the effort. So the choice depends on table and seed, not on the clock.
What cannot win is not weighed: deeper trees end if twice the last gain would not reach the best,
or if gains that shrink in proportion leave too little for the next level. Trees of any depth are
summed over only for leaves whose shallow trees are close to the best, and leaf models only where
branch models gain from them, or where this is quick. If every kind in reach can be summed over, the
largest log evidence decides. Otherwise held-out rows compare the candidate of the largest evidence
with those that only chains can explore, and with tempered averages, which are not Bayesian; see
`held_out`.

Finally the best is averaged with densities of other kinds; see `averaging`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import inf
from typing import NamedTuple

import numpy as np

from bayescascade.base.errors import TooLargeError
from bayescascade.base.watch import OutOfTime, check_time
from bayescascade.data.table import Table
from bayescascade.methods.density.auto.averaging import ALONE, Average, stacked
from bayescascade.methods.density.auto.held_out import Candidate, HeldOutSplits, weighed

EFFORTS = {"quick": 4e9, "normal": 6e10, "thorough": 6e11}
"""Operations of choice and search, by `effort`; a core does about 1e9 a second."""

_OF_SUMS, _OF_HELD = 0.35, 0.3  # shares of the effort for sums over trees, and for held-out rows
_OF_ONE = {"levels": 0.05, "subsets": 0.15}  # for one sum over trees of any depth
_OF_DEPTH = {"dependent": 0.12, "independent": 0.03, "uniform": 0.02}  # for one of limited depth
_OF_ALL_TREES = ("independent", "uniform")  # leaves of trees of any depth
_GAIN, _WORTH = 1.0, 0.005  # least gain of another level of depth: nats; nats a row if it is slow
_BETTER = 0.05  # least gain of another concentration, nats of log evidence
_FAR = 0.5  # nats a row below the best, too far for any other concentration without splits
_LOST = 0.1  # nats a row below the best, after twice the last gain: no deeper trees
_SLACK, _BEHIND = 20.0, 0.05  # nats, and nats a row, that other trees of the same leaves may gain
_STOPS = (0.5, 0.2, 0.8)  # for the generative prior
_CHEAP = 0.003  # share of the effort
_FINE = 0.03  # largest share of the effort for which several concentrations are tried
_MOST_READ = 3  # candidates for the tree to read
_FINALISTS, _CLOSE = 3, 0.3  # compared on more rows, if within these nats a row

_READ = Candidate("branch", {"leaf": "independent", "leaf_concentration": 0.5})
"""The candidate for a tree to read, by chains."""

_ENOUGH = 500  # distinct held-out rows to choose the weights of an average by
_NEARLY = 0.7  # share of these that is enough


class CascadeChoice(NamedTuple):
    """The chosen cascade, and the candidates."""

    candidates: tuple[Candidate, ...]  # the best first
    readable: tuple[Candidate, ...]  # the first that is readable is shown if the best is not
    is_interrupted: bool  # whether by Ctrl-C or the time limit
    is_out_of_time: bool
    operations_left: float
    average: Average


@dataclass(eq=False)
class Chooser:
    """Compares candidates within an effort; see the module."""

    table: Table
    effort: str  # one of `EFFORTS`
    memory_limit: float  # bytes
    n_jobs: int | None
    seed: int  # for folds and chains
    report: Callable[[str], None]  # called with the name of the current stage
    is_by_evidence: bool = False  # whether evidence alone decides, without held-out rows
    left: float = field(init=False)
    known: dict[tuple[object, ...], Candidate] = field(init=False, default_factory=dict)

    def choose(self) -> CascadeChoice:
        """Compare candidates, and return the choice; Ctrl-C ends it once a candidate is known."""
        self.left = self._all = EFFORTS[self.effort]
        compared, is_interrupted, is_out_of_time = list[Candidate](), False, False
        average, readable = ALONE, list[Candidate]()
        try:
            self._weigh_all()
            held_out = HeldOutSplits([], self.seed, self.n_jobs, self.memory_limit)
            if not self.is_by_evidence and self.effort != "quick":
                held_out = HeldOutSplits.of(self.table, self.seed, self.n_jobs, self.memory_limit)
            if held_out.folds:
                compared, scored = self._compare(held_out)
                best = _with(compared, self._summed)[0]
                average = self._stacked(best, scored, held_out)
                if compared and not best.is_readable:
                    readable = self._best_to_read(held_out)
        except KeyboardInterrupt as ended:
            if not self.known:
                raise
            is_interrupted, is_out_of_time = True, isinstance(ended, OutOfTime)
        best, *others = _with(compared, self._summed)
        others = _with(readable, others)
        trees = [one for one in others if one.is_readable and one.kind[0] != "dependent"]
        trees, best_first = trees[:_MOST_READ], (best, *others)
        return CascadeChoice(
            best_first, tuple(trees), is_interrupted, is_out_of_time, self.left, average
        )

    @property
    def _summed(self) -> list[Candidate]:
        return sorted(self.known.values(), key=lambda one: -one.log_evidence)

    def _weigh_all(self) -> None:
        """Weigh the candidates that can be summed over, the cheapest first."""
        settings = {"partitions": "levels", "max_depth": 0}
        ones = [self._climb(Candidate("branch", {"leaf": leaf, **settings})) for leaf in _OF_DEPTH]
        may_gain = {one.kind[0] for one in ones if one is not None and self._deepen(one)}
        for leaf in _OF_ALL_TREES:
            self._weigh_all_trees(leaf, "levels", leaf in may_gain)
            if self._may_group:
                self._weigh_all_trees(leaf, "subsets", True)

    def _deepen(self, best: Candidate) -> bool:
        """Weigh trees of depth 1, 2, .. as long as each level gains enough.

        Return whether still deeper trees may gain.
        """
        may_gain, last = True, -inf  # gain of the level before
        n_open = int((self.table.schema.n_levels > 1).sum())
        is_dependent = best.kind[0] == "dependent"  # for other leaves, trees of any depth follow
        for depth in range(1, n_open + is_dependent):
            deeper = self._weigh(best.changed(max_depth=depth))
            if deeper is not None and depth == 1 and self._is_cheap(deeper):
                deeper = self._climb(deeper)
            if deeper is None:
                if is_dependent and 1 < depth <= 3:
                    best = self._climb(best) or best
                    self._weigh(best.changed(max_depth=None))
                break
            gain = deeper.log_evidence - best.log_evidence
            if gain < _GAIN and (depth > 1 or is_dependent):
                if gain > 0.0:  # too little for trees that take several times as long
                    del self.known[deeper.key]
                may_gain = False
                break
            best = max(best, deeper, key=lambda one: one.log_evidence)
            if self._is_lost(best, gain):
                break  # each level gains less than the one before
            least = _GAIN if best.operations <= self._quick else _WORTH * self.table.total_weight
            if gain**2 < least * last:
                may_gain = False
                break
            last = gain
        if best.settings["max_depth"] != 0:
            best = self._climb(best) or best
            grown = self._climb(best.changed(prior="generative", stop=_STOPS[0]))
            for depth in range(best.settings["max_depth"] + 1, n_open + is_dependent):
                if grown is None or self._is_lost(grown, 0.0):
                    break
                if is_dependent and grown.operations > self._quick:
                    break
                deeper = self._weigh(grown.changed(max_depth=depth))
                gain = -inf if deeper is None else deeper.log_evidence - grown.log_evidence
                if deeper is not None and 0.0 < gain < _GAIN:
                    del self.known[deeper.key]
                grown = deeper if gain >= _GAIN else None
        return may_gain

    def _weigh_all_trees(self, leaf: str, partitions: str, may_gain: bool) -> None:
        """Weigh trees of any depth by the best prior so far, if such leaves can be the best.

        may_gain: whether branch models may gain from depth. What is quick is weighed anyway.
        """
        for model in ("branch", "leaf"):
            found = self._first_of(leaf)
            if not found or self._behind(found[0]) > self._reach:
                break
            candidate = found[0].of_any_depth(model, partitions)
            if may_gain or candidate.counted(self.table, self.memory_limit) <= self._quick:
                own = self._climb(candidate)
                may_gain = own is not None and own.log_evidence >= found[0].log_evidence + _GAIN

    def _first_of(self, *leaves: str) -> list[Candidate]:
        """Return the candidate of the largest evidence with each of these leaves."""
        best = {one.kind[0]: one for one in reversed(self._summed)}
        return [best[leaf] for leaf in leaves if leaf in best]

    def _climb(self, candidate: Candidate) -> Candidate | None:
        """Return the candidate at its best leaf concentration or `stop`; None if too expensive."""
        name, usual = "leaf_concentration", 1.0
        if candidate.kind[0] == "uniform":
            name, usual = "concentration" if "stop" in candidate.settings else "", 2.0
        best = self._weigh(candidate)
        if best is None or best.operations > _FINE * self._all:
            return best
        if best.settings.get("max_depth") == 0:
            near = _FAR * self.table.total_weight
        elif not best.is_shallow:
            near = 0.0
        else:  # for a tree to read, independent leaves are worth a few quick sums
            near = inf if self._is_cheap(best) else self._reach
        if self._behind(best) > near:
            return best
        for stop in _STOPS[1:] if "stop" in best.settings else ():
            found = self._better(best, best.changed(stop=stop), 0.0)
            if found is not None:  # the evidence has one peak
                best = found
                break
        is_slow = best.operations > self._quick
        if is_slow and "stop" in best.settings and name == "leaf_concentration":
            return best  # it is nearly that of the other prior
        for factor in (2.0, 0.5) if name else ():
            found = best
            while found is not None:
                best = found
                a = best.settings.get(name, usual) * factor
                found = self._better(best, best.changed(**{name: a}), _BETTER)
        return best

    def _is_cheap(self, one: Candidate) -> bool:
        """Whether sums over trees of independent leaves, for a tree to read, are quick."""
        return one.kind[0] == "independent" and one.operations <= self._quick

    @property
    def _may_group(self) -> bool:
        """Whether subsets are more than levels."""
        return bool((self.table.schema.n_levels > 2).any())

    @property
    def _quick(self) -> float:
        """Largest number of operations of a quick sum."""
        return _CHEAP * self._all

    def _better(self, best: Candidate, other: Candidate, gain: float) -> Candidate | None:
        """Return another candidate if its evidence is larger by a margin; otherwise None."""
        found = self._weigh(other)
        is_better = found is not None and found.log_evidence >= best.log_evidence + gain
        return found if is_better else None

    def _behind(self, one: Candidate) -> float:
        """Return how far a candidate's evidence is below the largest, nats."""
        return max(other.log_evidence for other in self.known.values()) - one.log_evidence

    def _is_lost(self, one: Candidate, gain: float) -> bool:
        """Whether twice the last gain leaves a candidate far behind, and its sum takes a while."""
        behind = self._behind(one) - 2.0 * max(gain, 0.0)
        return behind > _LOST * self.table.total_weight and one.operations > self._quick / 4

    @property
    def _reach(self) -> float:
        """Nats of evidence that other partitions or priors of the same leaves may gain."""
        return _SLACK + _BEHIND * self.table.total_weight

    def _weigh(self, candidate: Candidate) -> Candidate | None:
        """Return a candidate with its evidence; None if it takes too much of the effort."""
        if candidate.key in self.known:
            return self.known[candidate.key]
        expected = candidate.counted(self.table, self.memory_limit)
        spent = self._all - self.left
        leaf, partitions = candidate.kind
        of_one = _OF_DEPTH[leaf] if candidate.is_shallow else _OF_ONE[partitions]
        allowed = min(of_one * self._all, _OF_SUMS * self._all - spent)
        if self.known and expected > allowed:
            return None
        if self.known:  # from now on there is a result to keep
            check_time()
            self.report(f"trying cascades, {len(self.known)} so far")
        self.left -= expected
        try:
            found = weighed(candidate, self.table, self.memory_limit, self.n_jobs)
        except TooLargeError:
            found = None
        if found is None:
            return None
        self.known[candidate.key] = replace(found, operations=expected)
        return self.known[candidate.key]

    @property
    def _in_reach(self) -> list[Candidate]:
        """Candidates of kinds of leaves that may be the best in trees of any depth, best first."""
        first = self._first_of(*_OF_ALL_TREES)
        return sorted((one for one in first if self._behind(one) <= self._reach), key=self._behind)

    def _unsummed(self, near: list[Candidate]) -> list[Candidate]:
        """Return candidates of the same leaves for chains, where all trees could not be summed."""
        finest = "subsets" if self._may_group else "levels"
        summed = {(one.model, one.kind) for one in self.known.values() if not one.is_shallow}
        searched = [one.of_any_depth("branch", finest) for one in near]
        return [one for one in searched if (one.model, one.kind) not in summed]

    def _contestants(self) -> list[Candidate]:
        """Return the best candidate, the best of dependent leaves, and the best to read."""
        summed = self._summed
        deep = [one for one in summed if one.kind[0] == "dependent" and one.is_shallow]
        few = [one for one in summed if one.is_readable and one.kind[0] != "dependent"]
        few = [one for one in few if self._behind(one) <= self._reach]
        return _with(summed[:1], [*deep[:1], *few[:1]])

    def _compare(self, held_out: HeldOutSplits) -> tuple[list[Candidate], HeldOutSplits]:
        """Return candidates scored on held-out rows, none if evidence decides; and these rows."""
        near = self._in_reach
        searched = self._unsummed(near)
        if near and not searched:
            return [], held_out
        contestants = self._contestants()
        allowed, n_steps = _OF_HELD * self._all, 0
        held_out = held_out.affordable(contestants, allowed / 2)
        while searched and not n_steps:
            fits, n_steps = held_out.within(searched, allowed / 2)
            if n_steps:
                held_out = fits
            else:
                searched.pop()  # that of least evidence
        contestants += searched
        found = self._scored(held_out.cut(1), contestants, n_steps)
        least = found[0].held_out - _CLOSE
        best = {one.untempered.key for one in found[:_FINALISTS] if one.held_out > least}
        if len(held_out.folds) > 1:
            finalists = [one for one in contestants if one.untempered.key in best]
            if len(finalists) == 1:  # the rows choose only a temper, and weights
                held_out = held_out.enough(_ENOUGH)
            found = _with(self._scored(held_out, finalists, n_steps), found)
        self.left -= allowed
        return found, held_out

    def _best_to_read(self, held_out: HeldOutSplits) -> list[Candidate]:
        """Return candidates for a tree to read, the one with the best single tree first."""
        trees = [one for one in self._summed if one.is_readable and one.is_shallow]
        few = [one for one in trees if one.kind[0] != "dependent"]
        self.report("looking for a tree to read")
        found = [held_out.of_best_tree(one) for one in (*few[:1], _READ)]
        return sorted(found, key=lambda one: -one.held_out)

    def _stacked(self, best: Candidate, held_out: HeldOutSplits, more: HeldOutSplits) -> Average:
        """Return the result of `stacked`; if few rows are scored, `more` are, as many as can be."""
        n_scored = held_out.rows.get(best.key, np.empty(0)).size
        allowed = min(self.left - best.operations, _OF_HELD / 2 * self._all)
        more = more.affordable([best], allowed).enough(_ENOUGH)
        n_more = sum(held.n_distinct for _, held in more.folds)
        if best.is_summed and n_scored < _NEARLY * min(_ENOUGH, n_more):
            held_out = more
            self._scored(held_out, [best], 0)
        self.report("fitting densities to average")
        of_cascade = held_out.rows[best.key]
        n_rows = np.cumsum([held.n_distinct for _, held in held_out.folds])
        folds = held_out.folds[: int(np.searchsorted(n_rows, of_cascade.size)) + 1]
        return stacked(self.table, folds, of_cascade, self.seed, self.n_jobs)

    def _scored(
        self, held_out: HeldOutSplits, contestants: list[Candidate], n_steps: int
    ) -> list[Candidate]:
        """Return candidates with their scores, the best first."""
        found = list[Candidate]()
        for one in contestants:
            check_time()
            self.report("comparing cascades")
            found += held_out.scored(one, n_steps)
        return sorted(found, key=lambda one: -one.held_out)


def _with(first: list[Candidate], others: list[Candidate]) -> list[Candidate]:
    """Return candidates, followed by the others that are not among them."""
    keys = {one.key for one in first}
    return [*first, *(one for one in others if one.key not in keys)]
