"""The moves of the compiled sweep in plain words: all outcomes, by summing over prunings."""

import itertools
import math

import numpy as np

from bayescascade.methods.budget.pruning.posterior import KeptSplits
from samplers.types import Proposal

Kept = frozenset[int]
Listed = list[tuple[Proposal[KeptSplits], float]]


class Redraw:
    """Any subtree anew, as probable as the prunings are that differ there only."""

    def __init__(self, problem, beta):
        self.problem, self.beta = problem, beta

    def below(self, top):
        """Return the splits of a subtree."""
        parent, found = self.problem.parent, {top}
        for split in range(top + 1, len(parent)):
            if parent[split] in found:
                found.add(split)
        return frozenset(found)

    def is_open(self, kept, split):
        return self.problem.parent[split] in (-1, *kept)

    def outcomes(self, kept, top, free=frozenset()):
        """Return the probability of each pruning that differs in a subtree, given free uses."""
        outside = kept - self.below(top)
        alike = [one for one in self.problem.sets if one - self.below(top) == outside]
        costs = np.array([self.problem.objective(one, free) for one in alike])
        weights = np.exp(-self.beta * (costs - costs.min()) / self.problem.temperature)
        return dict(zip(alike, (weights / weights.sum()).tolist(), strict=True))

    def proposals(self, state):
        kept = frozenset(np.flatnonzero(state.kept).tolist())
        return list(self._listed(kept))

    def _listed(self, kept):
        tops = range(len(self.problem.parent))
        for top in tops:
            chances = self.outcomes(kept, top) if self.is_open(kept, top) else {kept: 1.0}
            for other, chance in chances.items():
                log_ratio = math.log(chances[kept]) - math.log(chance)
                yield self.proposal(other, log_ratio), chance / len(tops)

    def proposal(self, kept, log_ratio):
        n_splits = len(self.problem.parent)
        return Proposal(KeptSplits(np.isin(np.arange(n_splits), list(kept))), log_ratio)


class Switch(Redraw):
    """Cut all that ask for about the same, or, with that for free, draw one after the other."""

    def _listed(self, kept):
        tops = range(len(self.problem.parent))
        for first in tops:
            for group, chance in self.groups(first):
                yield from self._switched(kept, first, group, chance / len(tops))

    def _switched(self, kept, first, group, chance):
        tops = [top for top in group if self.is_open(kept, top)]
        cut = kept.difference(*(self.below(top) for top in tops))
        put_back = self.put_back(cut, tops, self.uses(first))
        if cut != kept:
            yield self.proposal(cut, math.log(put_back[kept])), chance
            return
        for other, share in put_back.items():
            log_ratio = -math.log(share) if other & set(tops) else -math.inf
            yield self.proposal(other, log_ratio), chance * share

    def put_back(self, cut, tops, free):
        """Return the probability of each pruning that subtrees drawn in order can lead to."""
        found = {cut: 1.0}
        for top in tops:
            found = {
                other: share * chance
                for one, share in found.items()
                for other, chance in self.outcomes(one, top, free).items()
            }
        return found

    def uses(self, split):
        asking = self.problem.record["asking"]
        return frozenset(use for use, splits in enumerate(asking) if split in splits)

    def groups(self, first):
        """Yield each group that a threshold drawn from [0, 1) can give, and how often it does."""
        n_splits = len(self.problem.parent)

        def price(uses):
            return sum(self.problem.record["price"][use] for use in uses)

        likeness = {
            split: price(self.uses(first) & self.uses(split))
            / max(price(self.uses(first)), price(self.uses(split)))
            for split in range(n_splits)
            if self.uses(first) & self.uses(split)
        }
        steps = sorted({0.0, *likeness.values(), 1.0})
        for low, high in itertools.pairwise(steps):
            group = []
            for split in sorted(likeness):
                if likeness[split] >= high and not any(split in self.below(top) for top in group):
                    group.append(split)
            yield group, high - low


def moves(problem, beta=1.0):
    """Return the moves by name."""
    return {"redraw": Redraw(problem, beta), "switch": Switch(problem, beta)}
