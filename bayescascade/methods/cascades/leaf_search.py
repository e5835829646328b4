"""Search for the leaves that the rows speak for: sums over all trees of each kind, where they fit.

`choose_leaf` returns the choice together with what it knows of all trees over the chosen leaves, so
that the fit that follows does not sum again.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from bayescascade.base.errors import TooLargeError
from bayescascade.base.watch import OutOfTime
from bayescascade.methods.cascades.leaf_choice import LeafChoice, best_of_few_steps
from bayescascade.methods.cascades.posterior import CascadePosterior
from bayescascade.methods.cascades.summing import Summed
from bayescascade.model.parameters import SAMPLED
from bayescascade.model.search import Search

OF_SUMS, FOR_CHAINS = 0.5, 60.0  # of the time, and seconds left if it was not enough

SumUp: TypeAlias = Callable[[CascadePosterior, Search, int], Summed]
"""Sums over all trees, beside bytes in use; raises TooLargeError if that takes too much."""

Known: TypeAlias = Summed | type[KeyboardInterrupt] | None
"""All trees of a posterior, what ended the sum before it found a tree, or None if none was made."""


def choose_leaf(
    leaves: Sequence[str],
    posterior_of: Callable[[str], CascadePosterior],
    sum_up: SumUp,
    search: Search,
) -> tuple[LeafChoice, Known]:
    """Sum over all trees of each kind of leaves, or find one that is probable.

    Raises KeyboardInterrupt if it is ended before a tree was found.
    """
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
            del kept[other]  # large, and will not be chosen
        if summed.is_interrupted and not summed.timed_out:
            kept = _stopped(kept, choice)
            break
    if refusal is not None and not choice.best:
        raise refusal
    return choice, ended.get(choice.leaf, kept.get(choice.leaf))


def sum_up_in_time(
    sum_up: SumUp, posterior: CascadePosterior, search: Search, in_use: int = 0
) -> Summed:
    """Sum over all trees in a part of the time; raises OutOfTime if that finds no tree."""
    watch = search.watch
    with watch.part(OF_SUMS, FOR_CHAINS), watch.watching():
        summed = sum_up(posterior, search, in_use)
        return summed._replace(timed_out=summed.is_interrupted and watch.is_up)


def _sum_up_if_small(
    sum_up: SumUp, posterior: CascadePosterior, search: Search, in_use: int
) -> Known:
    """Sum over all trees; None where chains are asked for or, by "auto", are all that fits."""
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
    """Return what is known of leaves once Ctrl-C was pressed; the choice is then among these."""
    for leaf in set(choice.best) - set(choice.sums) - set(kept):  # of a few steps: no more follow
        del choice.best[leaf]
    return {k: v._replace(draws=[], is_interrupted=True) for k, v in kept.items()}
