"""Choice of a cascade for a table: by evidence, or by held-out rows if some have no evidence.

Candidates are weighed from the cheapest to the most expensive, as long as their operations, which
are counted beforehand, fit the effort. So the choice depends on table and seed, not on the clock.
If every kind of cascade can be summed over, the largest log evidence decides. Otherwise held-out
rows compare the candidate of the largest evidence with those that only chains can explore, and with
tempered averages, which are not Bayesian; see `held_out`.

Finally the best is stacked with mixtures of classes, the best of each kind: held-out rows of up to
five folds choose the weights of the average that predicts; see `model.stacking`. The smoothing and
number of classes are chosen within the training rows of the first fold, by a search of seconds;
`CascadeMixture` searches further.

The cascade predicts alone unless the average gains 0.01 nats a row. No density scores rows better
than their own shares do: for n rows, w_i of them in cell i, ``sum_i w_i ln p_i <= sum_i w_i ln(w_i
/ n)``. In tables of few cells this bound often excludes the gain, and no mixture is fitted.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.special import logsumexp

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import TooLargeError
from bayescascade.base.threads import n_threads_of, single_threaded
from bayescascade.base.watch import OutOfTime, check_time, watch_in_use
from bayescascade.data.table import Table
from bayescascade.methods.cascades.held_out import Candidate, HeldOut, weighed
from bayescascade.methods.mixtures.choosing import NUMBERS, Chooser as MixtureChooser, climb_all
from bayescascade.methods.mixtures.density import MixtureDensity
from bayescascade.methods.mixtures.em import KINDS, Rows, Settings, log_cells
from bayescascade.model.stacking import stacking_weights

EFFORTS = {"quick": 4e9, "normal": 6e10, "thorough": 6e11}
"""Nanoseconds of one core for choice and search, by `effort`."""

_OF_SUMS, _OF_HELD = 0.35, 0.3  # shares of the effort for sums over trees, and for held-out rows
_OF_ONE = 0.2  # for one sum
_OF_DEPTH = {"dependent": 0.12, "independent": 0.03, "uniform": 0.02}  # for one of limited depth
_GAIN = 1.0  # least gain of another level of depth, nats of log evidence
_BETTER = 0.05  # least gain of another concentration, nats of log evidence
_FAR = 0.5  # nats a row below the best, too far for any other concentration
_STOPS = (0.5, 0.2, 0.8)  # for the generative prior
_FINE = 0.03  # largest share of the effort for which several concentrations are tried
_FINALISTS, _CLOSE = 3, 0.3  # compared on more rows, if within these nats a row

_SEARCHED = (
    Candidate("branch", {"leaf": "independent", "leaf_concentration": 0.5}),
    Candidate("leaf", {"leaf": "independent", "leaf_concentration": 0.5}),
    Candidate("leaf", {"leaf": "independent", "leaf_concentration": 2.0}),
    Candidate("branch", {}),
    Candidate("leaf", {}),
)
"""The candidates for chains, if sums over all trees do not fit."""

_LEAST_GAIN = 0.01  # nats a row
_ENOUGH = 500  # distinct held-out rows to choose weights by
_SMOOTHINGS = (1.0, 4.0, 16.0)
_N_STARTS, _MAX_ITER, _TOL = 2, 50, 3e-4
_MOST_STEPS = 1e11  # for choosing a mixture: some seconds


Average: TypeAlias = tuple[dict[str, MixtureDensity], dict[str, float]]
"""Mixtures by their kind, and the weights of the "cascade" and of each of them."""

_ALONE: Average = {}, {"cascade": 1.0}


def stacked(
    table: Table, folds: Sequence[tuple[Table, Table]], alone: Floats, seed: int, n_jobs: int | None
) -> Average:
    """Return mixtures of a table, and the weights of these and of a cascade; see the module.

    Each fold is (learned, held out), and settings are chosen within the first; alone (n_held,)
    float64: the cascade's log densities of the held-out rows, in the folds' order.
    """
    weights = np.concatenate([held.weights for _, held in folds])
    most = sum(_most_log_density(held) for _, held in folds)
    if most - float(weights @ alone) <= _LEAST_GAIN * weights.sum():
        return _ALONE
    n_threads, watch = n_threads_of(n_jobs), watch_in_use()
    chosen_by, found_by = np.random.SeedSequence(seed).spawn(2)
    grid, steps = (KINDS, _SMOOTHINGS, NUMBERS), (_MAX_ITER, _TOL, n_threads, watch)

    def fitted(tables: Sequence[Table], settings: Settings) -> list[MixtureDensity]:
        rows = [Rows.of(one) for one in tables]
        found, is_interrupted = climb_all(rows, settings, found_by, _N_STARTS, *steps)
        if is_interrupted:
            raise KeyboardInterrupt
        check_time()
        best = (max(climbs, key=lambda one: one.objective[-1]).components for climbs in found)
        return [MixtureDensity.of(table.schema, *one) for one in zip(rows, best, strict=True)]

    with single_threaded():
        chooser = MixtureChooser(folds[0][0], grid, chosen_by, *steps, lambda _: None, _MOST_STEPS)
        best = {one.settings.kind: one.settings for one in reversed(chooser.choose())}
        if chooser.is_interrupted:
            raise KeyboardInterrupt
        check_time()
        learned, codes = [one for one, _ in folds], [one.codes.astype(np.int32) for _, one in folds]
        scores = [alone]
        for settings in best.values():
            own = zip(fitted(learned, settings), codes, strict=True)
            scores.append(np.concatenate([one.score_codes(held) for one, held in own]))
        shares = stacking_weights(np.array(scores), weights).tolist()
        averaged = logsumexp(scores, axis=0, b=np.array(shares)[:, np.newaxis])
        if weights @ (averaged - alone) <= _LEAST_GAIN * weights.sum():
            return _ALONE
        kept = {kind: w for kind, w in zip(best, shares[1:], strict=True) if w > 0.0}
        mixtures = {kind: fitted([table], best[kind])[0] for kind in kept}
    return mixtures, {"cascade": shares[0], **kept}


def _most_log_density(table: Table) -> float:
    """Return the largest possible sum of the log densities of a table's rows; see the module."""
    weights = table.weights
    return float(weights @ (np.log(weights / weights.sum()) - log_cells(table)))


class Choice(NamedTuple):
    """The chosen cascade, and the candidates."""

    candidates: tuple[Candidate, ...]  # the best first
    readable: Candidate | None  # shown if the tree of the best is not readable
    is_interrupted: bool  # whether by Ctrl-C or the time limit
    is_out_of_time: bool
    nanoseconds_left: float
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
    _ends: dict[str, float] = field(init=False, default_factory=dict)  # of climbs, by kind of leaf

    def choose(self) -> Choice:
        """Compare candidates, and return the choice; Ctrl-C ends it once a candidate is known."""
        self.left = self._all = EFFORTS[self.effort]
        compared, is_interrupted, is_out_of_time = list[Candidate](), False, False
        average = _ALONE
        try:
            self._weigh_all()
            held_out = HeldOut([], self.seed, self.n_jobs, self.memory_limit)
            if not self.is_by_evidence and self.effort != "quick":
                held_out = HeldOut.of(self.table, self.seed, self.n_jobs, self.memory_limit)
            if held_out.folds:
                compared, scored = self._compare(held_out)
                best = _with(compared, self._summed)[0]
                average = self._stacked(best, scored, held_out)
        except KeyboardInterrupt as ended:
            if not self.known:
                raise
            is_interrupted, is_out_of_time = True, isinstance(ended, OutOfTime)
        best_first = _with(compared, self._summed)
        trees = (one for one in best_first[1:] if one.is_readable)
        readable = next((one for one in trees if one.kind[0] != "dependent"), None)
        return Choice(
            tuple(best_first), readable, is_interrupted, is_out_of_time, self.left, average
        )

    @property
    def _summed(self) -> list[Candidate]:
        return sorted(self.known.values(), key=lambda one: -one.log_evidence)

    def _weigh_all(self) -> None:
        """Weigh the candidates that can be summed over, the cheapest first."""
        settings = {"partitions": "levels", "max_depth": 0}
        ones = [self._climb(Candidate("branch", {"leaf": leaf, **settings})) for leaf in _OF_DEPTH]
        for one in ones:
            if one is not None:
                self._deepen(one)
        for model in ("branch", "leaf"):
            for partitions in ("subsets", "levels"):
                for leaf in ("independent", "uniform"):
                    own = {"leaf": leaf, "partitions": partitions}
                    self._climb_by_process(self._climb(Candidate(model, own)))

    def _deepen(self, best: Candidate) -> None:
        """Weigh trees of depth 1, 2, .. as long as each level gains enough."""
        n_open = int((self.table.schema.n_levels > 1).sum())
        is_dependent = best.kind[0] == "dependent"  # for other leaves, trees of any depth follow
        for depth in range(1, n_open + is_dependent):
            deeper = self._climb(best.changed(max_depth=depth))
            if deeper is None and is_dependent and depth <= 3:
                self._climb(best.changed(max_depth=None))
            if deeper is None or (depth > 1 and deeper.log_evidence < best.log_evidence + _GAIN):
                break
            best = max(best, deeper, key=lambda one: one.log_evidence)
        self._climb_by_process(best)

    def _climb_by_process(self, found: Candidate | None) -> None:
        """Weigh the best so far with the generative prior."""
        if found is not None and found.settings.get("max_depth", 1) != 0:
            self._climb(found.changed(prior="generative", stop=_STOPS[0]))

    def _climb(self, candidate: Candidate) -> Candidate | None:
        """Return the candidate at its best leaf concentration or `stop`; None if too expensive."""
        name, usual = "leaf_concentration", 1.0
        if candidate.kind[0] == "uniform":
            name, usual = "concentration", 2.0
            if "stop" not in candidate.settings:
                name = ""
        if name:  # where the last climb with such leaves ended
            at = candidate.settings.get(name, self._ends.get(candidate.kind[0], usual))
            candidate = candidate.changed(**({} if at == usual else {name: at}))
        best = self._weigh(candidate)
        if best is None or best.expected_seconds * 1e9 > _FINE * self._all or self._is_far(best):
            return best
        for stop in _STOPS[1:] if "stop" in best.settings else ():
            found = self._better(best, best.changed(stop=stop), 0.0)
            if found is not None:  # the evidence has one peak
                best = found
                break
        for factor in (2.0, 0.5) if name else ():
            found = best
            while found is not None:
                best = found
                a = best.settings.get(name, usual) * factor
                found = self._better(best, best.changed(**{name: a}), _BETTER)
        if name:
            self._ends[candidate.kind[0]] = best.settings.get(name, usual)
        return best

    def _better(self, best: Candidate, other: Candidate, gain: float) -> Candidate | None:
        """Return another candidate if its evidence is larger by a margin; otherwise None."""
        found = self._weigh(other)
        is_better = found is not None and found.log_evidence >= best.log_evidence + gain
        return found if is_better else None

    def _is_far(self, one: Candidate) -> bool:
        """Whether a candidate's evidence is too low for any other concentration to help."""
        most = max(other.log_evidence for other in self.known.values())
        return most - one.log_evidence > _FAR * self.table.total_weight

    def _weigh(self, candidate: Candidate) -> Candidate | None:
        """Return a candidate with its evidence; None if it takes too much of the effort."""
        if candidate.key in self.known:
            return self.known[candidate.key]
        expected = candidate.nanoseconds(self.table, self.memory_limit)
        spent = self._all - self.left
        of_one = _OF_DEPTH[candidate.kind[0]] if candidate.is_shallow else _OF_ONE
        allowed = min(of_one * self._all, _OF_SUMS * self._all - spent)
        if self.known and expected > allowed:
            return None
        if self.known:  # from now on there is a result to keep
            check_time()
            self.report(f"trying cascades, {len(self.known)} so far")
        self.left -= expected
        try:
            found, of_passes = weighed(
                candidate, self.table, self.memory_limit, self.n_jobs, allowed
            )
        except TooLargeError:
            return None
        self.left -= of_passes
        expected += of_passes
        if found is None:
            return None
        self.known[candidate.key] = replace(found, expected_seconds=expected * 1e-9)
        return self.known[candidate.key]

    def _compare(self, held_out: HeldOut) -> tuple[list[Candidate], HeldOut]:
        """Return candidates scored on held-out rows, none if evidence decides; and these rows."""
        summed = self._summed
        kinds = {(one.model, *one.kind) for one in summed if not one.is_shallow}
        searched = [one for one in _SEARCHED if (one.model, *one.kind) not in kinds]
        of_uniform = [one for one in summed if one.kind[0] == "uniform"]
        if of_uniform and self._is_far(of_uniform[0]):
            searched = [one for one in searched if one.kind[0] != "uniform"]
        if not searched:
            return [], held_out
        deep = [one for one in summed if one.kind[0] == "dependent" and one.is_shallow]
        few = [one for one in summed if one.is_readable and one.kind[0] != "dependent"]
        with_sums = _with(summed[:1], [*deep[:1], *few[:1]])
        allowed = _OF_HELD * self._all
        held_out = held_out.affordable(with_sums, allowed / 2)
        held_out, n_steps = held_out.within(searched, _FINALISTS, allowed / 2)
        contestants = [*with_sums, *(searched if n_steps else ())]
        found = self._scored(held_out.cut(1), contestants, n_steps)
        least = found[0].held_out - _CLOSE
        best = {one.untempered.key for one in found[:_FINALISTS] if one.held_out > least}
        if len(held_out.folds) > 1:
            finalists = [one for one in contestants if one.untempered.key in best]
            found = _with(self._scored(held_out, finalists, n_steps), found)
        self.left -= allowed
        return found, held_out

    def _stacked(self, best: Candidate, held_out: HeldOut, more: HeldOut) -> Average:
        """Return the result of `stacked`; if few rows are scored, `more` are, as many as can be."""
        n_scored = held_out.rows.get(best.key, np.empty(0)).size
        more = more.affordable([best], self.left - 1e9 * best.expected_seconds)
        n_more = sum(held.n_distinct for _, held in more.folds)
        if best.is_summed and n_scored < min(_ENOUGH, n_more):
            held_out = more
            self._scored(held_out, [best], 0)
        self.report("fitting mixtures")
        of_cascade = held_out.rows[best.key]
        n_rows = np.cumsum([held.n_distinct for _, held in held_out.folds])
        folds = held_out.folds[: int(np.searchsorted(n_rows, of_cascade.size)) + 1]
        return stacked(self.table, folds, of_cascade, self.seed, self.n_jobs)

    def _scored(
        self, held_out: HeldOut, contestants: list[Candidate], n_steps: int
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
