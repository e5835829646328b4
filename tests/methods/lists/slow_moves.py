"""Proposals on rule lists, in slow and plain Python: with Hastings ratios and full listings.

The compiled sweep must make the same proposals with the same probabilities. Candidates are proposed
as the prior has them: a size by its weight, then any candidate of that size. A proposal that would
list a candidate twice, or that leads to no candidate, is invalid: the chain stays.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import permutations

import numpy as np

from bayescascade.methods.lists.antecedents import Antecedent, Condition
from bayescascade.methods.lists.posterior import RuleListPosterior
from bayescascade.methods.lists.rule_list import RuleList
from samplers.types import Proposal
from tests.statistical.proposals import Listed


def moves(posterior: RuleListPosterior) -> "dict[str, ListMove]":
    """Return the moves by name, each with its exact Hastings ratio."""
    return {name: _CLASSES[name](posterior) for name in posterior.move_weights()}


class ListMove(Listed):
    """A way to change a list; `proposals` lists every outcome with its probability."""

    def __init__(self, posterior: RuleListPosterior) -> None:
        self.antecedents = posterior.antecedents
        self.log_length = posterior.prior.log_lengths(len(posterior.antecedents))
        self._index = {rule: i for i, rule in enumerate(posterior.antecedents)}
        self._log_size = posterior.log_size_proposal

    def log_candidate(self, rule: int) -> float:
        """Return the log probability that a candidate is drawn, nats."""
        size = int(self.antecedents.sizes[rule])
        return float(self._log_size[size] - np.log(self.antecedents.n_of_size[size]))

    def _candidates(self) -> Iterator[tuple[int, float]]:
        for rule in range(len(self.antecedents)):
            yield rule, math.exp(self.log_candidate(rule))


def _removed(state: RuleList, position: int) -> RuleList:
    return RuleList(state.rules[:position] + state.rules[position + 1 :])


def _replaced(state: RuleList, position: int, rule: int) -> RuleList:
    return _removed(state, position).inserted(position, rule)


def _swapped(state: RuleList, i: int, j: int) -> RuleList:
    return _replaced(_replaced(state, i, state.rules[j]), j, state.rules[i])


def _relocated(state: RuleList, origin: int, destination: int) -> RuleList:
    return _removed(state, origin).inserted(destination, state.rules[origin])


def _invalid(state: RuleList) -> Proposal[RuleList]:
    return Proposal(state, -math.inf)


class Add(ListMove):
    """Put a candidate at any position; the reverse of `Remove`."""

    def proposals(self, state: RuleList) -> Sequence[tuple[Proposal[RuleList], float]]:
        if state.n_rules == self.log_length.size - 1:
            return [(_invalid(state), 1.0)]
        n_positions = state.n_rules + 1
        return [
            (self._at(state, position, rule), probability / n_positions)
            for position in range(n_positions)
            for rule, probability in self._candidates()
        ]

    def _at(self, state: RuleList, position: int, rule: int) -> Proposal[RuleList]:
        if rule in state.rules:
            return _invalid(state)
        # as many positions to put it as rules to take away again
        return Proposal(state.inserted(position, rule), -self.log_candidate(rule))


class Remove(ListMove):
    """Take any rule away; the reverse of `Add`."""

    def proposals(self, state: RuleList) -> Sequence[tuple[Proposal[RuleList], float]]:
        if not state.rules:
            return [(_invalid(state), 1.0)]
        return [(self._at(state, i), 1 / state.n_rules) for i in range(state.n_rules)]

    def _at(self, state: RuleList, position: int) -> Proposal[RuleList]:
        return Proposal(_removed(state, position), self.log_candidate(state.rules[position]))


class Replace(ListMove):
    """Put any candidate in the place of a rule."""

    def proposals(self, state: RuleList) -> Sequence[tuple[Proposal[RuleList], float]]:
        if not state.rules:
            return [(_invalid(state), 1.0)]
        return [
            (self._at(state, position, rule), probability / state.n_rules)
            for position in range(state.n_rules)
            for rule, probability in self._candidates()
        ]

    def _at(self, state: RuleList, position: int, rule: int) -> Proposal[RuleList]:
        if rule in state.rules:
            return _invalid(state)
        log_ratio = self.log_candidate(state.rules[position]) - self.log_candidate(rule)
        return Proposal(_replaced(state, position, rule), log_ratio)


class Edit(ListMove):
    """Exchange, add or drop one condition of a rule, each a third of the time.

    The condition that comes is drawn column first: any column, then any condition on it.
    """

    def proposals(self, state: RuleList) -> Sequence[tuple[Proposal[RuleList], float]]:
        if not state.rules:
            return [(_invalid(state), 1.0)]
        found = []
        share = 1 / (3 * state.n_rules)
        n_columns = self.antecedents.schema.n_columns
        for position, rule in enumerate(state.rules):
            n_conditions = len(self.antecedents[rule])
            for gone in range(n_conditions):
                found.append((self._at(state, position, gone, None), share / n_conditions))
            for column in range(n_columns):
                items = self._items(column)
                if not items:  # neither an exchange nor an addition
                    found.append((_invalid(state), 2 * share / n_columns))
                for item in items:
                    each = share / n_columns / len(items)
                    found.append((self._at(state, position, None, item), each))
                    for gone in range(n_conditions):
                        proposal = self._at(state, position, gone, item)
                        found.append((proposal, each / n_conditions))
        return found

    def _items(self, column: int) -> list[int]:
        return np.flatnonzero(self.antecedents.items[:, 0] == column).tolist()

    def _log_item(self, item: int) -> float:
        n_items = len(self._items(int(self.antecedents.items[item, 0])))
        return -math.log(self.antecedents.schema.n_columns * n_items)

    def _at(self, state, position, gone, new):
        row = self.antecedents.members[state.rules[position]]
        old: list[int] = row[row >= 0].tolist()
        kept = [item for k, item in enumerate(old) if k != gone]
        members = sorted(kept if new is None else [*kept, new])
        items = self.antecedents.items[members].tolist()
        antecedent: Antecedent = tuple(Condition(*item) for item in items)
        if len({condition.column for condition in antecedent}) < len(members):
            return _invalid(state)
        rule = self._index.get(antecedent, -1)
        if rule < 0 or rule in state.rules:
            return _invalid(state)
        log_ratio = 0.0
        if gone is not None:
            log_ratio += self._log_item(old[gone])
        if new is not None:
            log_ratio -= self._log_item(new)
        if gone is None:
            log_ratio -= math.log(len(members))  # choosing it again, to drop it
        if new is None:
            log_ratio += math.log(len(old))
        return Proposal(_replaced(state, position, rule), log_ratio)


class Swap(ListMove):
    """Exchange two rules."""

    changed = staticmethod(_swapped)

    def proposals(self, state: RuleList) -> Sequence[tuple[Proposal[RuleList], float]]:
        pairs = list(permutations(range(state.n_rules), 2))
        found = [(Proposal(self.changed(state, i, j), 0.0), 1 / len(pairs)) for i, j in pairs]
        return found or [(_invalid(state), 1.0)]


class Relocate(Swap):
    """Move a rule to any other position."""

    changed = staticmethod(_relocated)


_CLASSES: dict[str, type[ListMove]] = {
    "add": Add,
    "remove": Remove,
    "replace": Replace,
    "edit": Edit,
    "swap": Swap,
    "relocate": Relocate,
}
