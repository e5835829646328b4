"""Choice of the kind of leaves: uniform, independent or dependent ones, by evidence.

Cascades that differ only in their leaves have the same prior over trees, so the logs of their sums
over all trees of ``exp(posterior.log_density(tree))`` have the same differences as their log
evidences. If a sum is not possible for one kind of leaves, the best trees of all kinds are compared
instead, because a sum and a single tree are not comparable. The sum for the chosen leaves is
returned with the choice, so the fit does not repeat it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import samplers
from bayescascade.base.errors import TooLargeError
from bayescascade.base.watch import OutOfTime
from bayescascade.data.table import Table
from bayescascade.methods.density.trees.tree import Tree
from bayescascade.methods.density.trees.tree_posterior import CascadePosterior, operations_of_step
from bayescascade.model.parameters import SAMPLED
from bayescascade.model.rounds import WORK
from bayescascade.model.search import SCHEDULE, Search
from bayescascade.model.solution import Certificate
from bayescascade.model.trace import COLUMNS_USED

if TYPE_CHECKING:
    from bayescascade.methods.density.trees.exact import (
        StoppedPosterior,
        SummedPosterior,
        TiltedPosterior,
    )
    from bayescascade.methods.density.trees.exact.tilted import BestTree
    from bayescascade.methods.density.trees.shallow_trees import ShallowTrees

_FEW_STEPS, _FEWEST_STEPS = 20_000, 200
_FEW_ADDITIONS = 2e9  # some seconds

OF_SUMS, FOR_CHAINS = 0.5, 60.0  # share of the time, and least seconds left for chains


class Summed(NamedTuple):
    """The result of an exact search: a sum over all trees."""

    exact: "SummedPosterior | StoppedPosterior | TiltedPosterior | ShallowTrees"
    certificate: Certificate
    shares: Mapping[str, Mapping[str, float]]
    log_sum: float | None  # over all trees, nats, if that is known
    draws: list[Tree]
    is_interrupted: bool = False
    timed_out: bool = False  # whether the time limit interrupted it
    n_bytes: int = 0  # kept bytes, if other sums may follow


SumUp: TypeAlias = Callable[[CascadePosterior, Search, int], Summed]
"""Sums over all trees, given the bytes in use; raises TooLargeError if it takes too much."""

Known: TypeAlias = Summed | type[KeyboardInterrupt] | None
"""A sum over all trees, the exception that ended it without a tree, or None if not tried."""

_AUTO_TERMS = 5e8  # terms of a pass up to which search "auto" is exact, with normal effort
_MOST_TERMS = 1e12  # hours
_CHEAP_TERMS = 2e8  # terms up to which the shares of columns are exact, too


@dataclass(frozen=True, slots=True)
class LeafChoice:
    """The choice of leaves, and its reasons; both mappings are by the kind of leaves."""

    best: dict[str, float] = field(default_factory=dict)  # log density of the best tree found, nats
    # logs of sums over all trees, nats, if known
    sums: dict[str, float] = field(default_factory=dict)

    @property
    def is_by_evidence(self) -> bool:
        """Whether all sums are known."""
        return len(self.sums) == len(self.best)

    @property
    def leaf(self) -> str:
        """The leaves of the largest sum, or of the best tree."""
        compared = self._compared
        return max(compared, key=compared.__getitem__)

    @property
    def _compared(self) -> dict[str, float]:
        return self.sums if self.is_by_evidence else self.best

    def words(self) -> str:
        """Return words such as "leaf dependent (log evidence 12.3 nats above uniform leaves)"."""
        if len(self.best) == 1:
            return f"leaf {self.leaf} (no others were compared)"
        own = self._compared[self.leaf]
        others = [
            f"{own - v:,.1f} nats above {k} leaves"
            for k, v in self._compared.items()
            if k != self.leaf
        ]
        what = "log evidence" if self.is_by_evidence else "log posterior of the best tree"
        return f"leaf {self.leaf} ({what} {' and '.join(others)})"


def steps_within(table: Table, most: int, additions: float) -> int:
    """Return the number of chain steps over dependent leaves for these additions, up to `most`."""
    each = operations_of_step(table, "dependent")
    return int(min(most, max(_FEWEST_STEPS, additions / each)))


def best_of_few_steps(
    posterior: CascadePosterior, n_steps: int | None, time_limit: float = inf
) -> float:
    """Return the best log density of a short annealing with a fixed seed; raises interrupts."""
    n_steps = _FEW_STEPS if n_steps is None else min(_FEW_STEPS, int(n_steps))
    if posterior.model.leaf == "dependent":
        n_steps = steps_within(posterior.table, n_steps, _FEW_ADDITIONS)
    run = samplers.anneal(
        posterior, n_steps=n_steps, schedule=SCHEDULE, n_chains=1, seed=0, time_limit=time_limit
    )
    if run.interrupted:
        raise KeyboardInterrupt
    return float(run.best_log_density)


def sum_up(
    posterior: CascadePosterior, search: Search, memory_limit: float, n_draws: int
) -> Summed:
    """Sum over all trees; TooLargeError for too much memory or, with search "auto", time."""
    from bayescascade.methods.density.trees.exact import (
        SummedPosterior,
        certificate_of,
        solve_or_tilt,
    )

    if posterior.model.leaf == "dependent":
        needed = 'a branch cascade with partitions "levels" and no feature_inclusion'
        raise TooLargeError(f'search "exact" with leaf "dependent" needs {needed}', needed)

    def report_pass(n_passes: int, share: float, best: "BestTree | None") -> None:
        gap = {} if best is None else {"gap": best.gap}
        search.report(f"pass {n_passes + 1}", share, **gap)

    search.report("counting boxes")
    exact, drawn = solve_or_tilt(
        posterior, memory_limit=max(1.0, memory_limit),
        work_limit=WORK[search.effort] * _AUTO_TERMS if search.search == "auto" else _MOST_TERMS,
        rng=search.rng(),
        progress=lambda share: search.report("summing over trees", share),
        pass_progress=report_pass, draw_progress=lambda: search.report("drawing trees"),
        n_jobs=search.n_jobs, n_draws=n_draws,
        checkpoint=search.checkpoint, resume=search.resume,
    )  # fmt: skip
    certificate = certificate_of(exact)
    shares, is_interrupted = dict[str, dict[str, float]](), exact.is_interrupted
    if isinstance(exact, SummedPosterior) and not is_interrupted:
        try:
            search.report("adding up splits")
            shares = _shares(exact)
        except KeyboardInterrupt:
            is_interrupted = True
    log_sum = None if certificate.log_evidence is None else exact.log_normalizer
    n_bytes = exact.cost.memory_bytes
    return Summed(exact, certificate, shares, log_sum, drawn, is_interrupted, n_bytes=n_bytes)


def _shares(exact: "SummedPosterior") -> dict[str, dict[str, float]]:
    """Return exact posterior shares, largest first, if they are cheap."""
    shares: dict[str, dict[str, float]] = {}
    if exact.max_leaves is not None:
        counts = enumerate(exact.leaf_count_probabilities.tolist(), start=1)
        shares["leaves"] = shares_of({str(k): p for k, p in counts})
    if exact.cost.n_terms * exact.posterior.schema.n_columns <= _CHEAP_TERMS:
        split = exact.split_probabilities
        shares["first split"] = shares_of({**split.first, "none": split.none})
        shares[COLUMNS_USED] = dict(sorted(split.used.items(), key=lambda item: -item[1]))
    return shares


def shares_of(probabilities: Mapping[str, float]) -> dict[str, float]:
    """Return the probabilities that are not 0, largest first."""
    possible = ((word, p) for word, p in probabilities.items() if p > 0)
    return dict(sorted(possible, key=lambda item: -item[1]))


def choose_leaf(
    leaves: Sequence[str],
    posterior_of: Callable[[str], CascadePosterior],
    sum_up: SumUp,
    search: Search,
) -> tuple[LeafChoice, Known]:
    """Sum over trees of each kind of leaves, or find a probable tree; else KeyboardInterrupt."""
    choice, refusal, kept = LeafChoice(), None, dict[str, Summed]()
    ended: dict[str, type[KeyboardInterrupt]] = {}
    for place, leaf in enumerate(leaves):
        posterior = posterior_of(leaf)
        try:
            in_use = sum(own.n_bytes for own in kept.values())
            with search.watch.part(1.0 / (len(leaves) - place)):
                summed = _sum_up_if_small(sum_up, posterior, search, in_use)
                if not isinstance(summed, Summed):
                    if summed is not None:
                        ended[leaf] = summed
                    search.report(f"annealing {leaf} leaves")
                    left = search.watch.left
                    choice.best[leaf] = best_of_few_steps(posterior, search.n_steps, left)
                    continue
        except TooLargeError as error:
            refusal = error
            continue
        except KeyboardInterrupt:
            if not kept:
                raise
            kept = _stopped(kept, choice)
            break
        kept[leaf], choice.best[leaf] = summed, summed.exact.log_density
        if summed.log_sum is not None:
            choice.sums[leaf] = summed.log_sum
        for other in set(kept) - {choice.leaf, max(choice.best, key=choice.best.__getitem__)}:
            del kept[other]  # it is large and will not be chosen
        if summed.is_interrupted and not summed.timed_out:
            kept = _stopped(kept, choice)
            break
    if refusal is not None and not choice.best:
        raise refusal
    return choice, ended.get(choice.leaf, kept.get(choice.leaf))


def sum_up_in_time(
    sum_up: SumUp, posterior: CascadePosterior, search: Search, in_use: int = 0
) -> Summed:
    """Sum over all trees in a part of the time; raises OutOfTime if no tree was found."""
    watch = search.watch
    with watch.part(OF_SUMS, FOR_CHAINS), watch.watching():
        summed = sum_up(posterior, search, in_use)
        return summed._replace(timed_out=summed.is_interrupted and watch.is_up)


def _sum_up_if_small(
    sum_up: SumUp, posterior: CascadePosterior, search: Search, in_use: int
) -> Known:
    """Sum over all trees; None if `search` needs chains or is "auto" and only chains fit."""
    if search.search in SAMPLED:
        return None
    try:
        return sum_up_in_time(sum_up, posterior, search, in_use)
    except TooLargeError:
        if search.search == "exact":
            raise
        return None
    except OutOfTime:
        return OutOfTime


def _stopped(kept: Mapping[str, Summed], choice: LeafChoice) -> dict[str, Summed]:
    """Return the sums so far after Ctrl-C; the choice is then among these."""
    for leaf in set(choice.best) - set(choice.sums) - set(kept):  # by few steps only
        del choice.best[leaf]
    return {k: v._replace(draws=[], is_interrupted=True) for k, v in kept.items()}
