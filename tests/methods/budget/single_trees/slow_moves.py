"""Proposals on budgeted trees, in plain Python: each with its Hastings ratio and a full listing.

The compiled sweep makes the same proposals with the same probabilities. A candidate is drawn column
first, then any of the column's thresholds.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from bayescascade.methods.budget.single_trees.posterior import BudgetTreePosterior
from bayescascade.methods.budget.single_trees.tree import LEAF, BudgetTree, SplitCandidates
from samplers.types import Proposal

Listed = Sequence[tuple[Proposal[BudgetTree], float]]
"""Every proposal with its probability; the probabilities sum to one."""


def _twigs(tree: BudgetTree) -> list[int]:
    """Return the splits over two leaves."""
    return [node for node in tree.splits if tree.nodes[node + 1 : node + 3] == (LEAF, LEAF)]


def _invalid(state: BudgetTree) -> Proposal[BudgetTree]:
    return Proposal(state, -math.inf)


class Grow:
    """Split any leaf by any candidate; the reverse of `Prune`."""

    def __init__(self, candidates: SplitCandidates) -> None:
        self._log_candidate = candidates.log_probabilities()

    def proposals(self, state: BudgetTree) -> Listed:
        return [
            (self._at(state, leaf, candidate), math.exp(log_probability) / state.n_leaves)
            for leaf in state.leaves
            for candidate, log_probability in enumerate(self._log_candidate.tolist())
        ] or [(_invalid(state), 1.0)]

    def _at(self, state: BudgetTree, leaf: int, candidate: int) -> Proposal[BudgetTree]:
        grown = state.grown(leaf, candidate)
        log_forward = float(self._log_candidate[candidate]) - math.log(state.n_leaves)
        return Proposal(grown, -math.log(len(_twigs(grown))) - log_forward)


class Prune(Grow):
    """Make any split over two leaves a leaf; the reverse of `Grow`."""

    def proposals(self, state: BudgetTree) -> Listed:
        twigs = _twigs(state)
        listed = [(self._at(state, twig, len(twigs)), 1 / len(twigs)) for twig in twigs]
        return listed or [(_invalid(state), 1.0)]

    def _at(self, state: BudgetTree, twig: int, n_twigs: int) -> Proposal[BudgetTree]:
        pruned = BudgetTree((*state.nodes[:twig], LEAF, *state.nodes[twig + 3 :]))
        log_back = float(self._log_candidate[state.nodes[twig]]) - math.log(pruned.n_leaves)
        return Proposal(pruned, log_back + math.log(n_twigs))


class Change(Grow):
    """Put any candidate in the place of any split, whose subtrees stay."""

    def proposals(self, state: BudgetTree) -> Listed:
        return [
            (self._at(state, split, candidate), math.exp(log_probability) / state.n_splits)
            for split in state.splits
            for candidate, log_probability in enumerate(self._log_candidate.tolist())
        ] or [(_invalid(state), 1.0)]

    def _at(self, state: BudgetTree, split: int, candidate: int) -> Proposal[BudgetTree]:
        log_ratio = self._log_candidate[state.nodes[split]] - self._log_candidate[candidate]
        nodes = (*state.nodes[:split], candidate, *state.nodes[split + 1 :])
        return Proposal(BudgetTree(nodes), float(log_ratio))


class Regrow:
    """Draw any node's subtree from the top down, each node by the density of what ends there.

    Densities are asked of a posterior whose trees may have any number of leaves.
    """

    def __init__(self, posterior: BudgetTreePosterior, max_leaves: int, beta: float) -> None:
        self._posterior, self._max_leaves, self._beta = posterior, max_leaves, beta

    def proposals(self, state: BudgetTree) -> Listed:
        return list(self._listed(state))

    def _listed(self, state: BudgetTree) -> Iterator[tuple[Proposal[BudgetTree], float]]:
        n_nodes, ends = len(state.nodes), state.ends()
        for top in range(n_nodes):
            old = state.nodes[top : ends[top]]
            bare = BudgetTree((*state.nodes[:top], LEAF, *state.nodes[ends[top] :]))
            room = self._max_leaves - bare.n_leaves + 1
            chances = dict(self._subtrees(bare, top, room))
            for new, chance in chances.items():
                tree = BudgetTree((*state.nodes[:top], *new, *state.nodes[ends[top] :]))
                log_ratio = math.log(chances[old] / chance * n_nodes / len(tree.nodes))
                yield Proposal(tree, log_ratio), chance / n_nodes
            yield _invalid(state), max(0.0, 1.0 - sum(chances.values())) / n_nodes

    def _subtrees(self, tree, leaf, room):
        """Yield each subtree of up to `room` leaves for a leaf, with its probability."""
        candidates = range(self._posterior.candidates.n_candidates)
        choices = {LEAF: tree, **{c: tree.grown(leaf, c) for c in candidates}}
        logs = np.array([self._posterior.log_density(choice) for choice in choices.values()])
        possible = np.isfinite(logs)
        chances = np.where(
            possible, np.exp(self._beta * np.where(possible, logs - logs.max(), 0)), 0
        )
        for (candidate, split), chance in zip(
            choices.items(), chances / chances.sum(), strict=True
        ):
            if candidate == LEAF:
                yield (LEAF,), chance
            elif chance > 0.0 and room > 1:
                for right, on_right in self._subtrees(split, leaf + 2, room - 1):
                    n_right = len(right) // 2 + 1
                    for left, on_left in self._subtrees(split, leaf + 1, room - n_right):
                        yield (candidate, *left, *right), chance * on_left * on_right


def moves(posterior: BudgetTreePosterior, beta: float, unbounded: BudgetTreePosterior) -> dict:
    """Return the moves by name; `unbounded` has trees of any number of leaves."""
    plain = {"grow": Grow, "prune": Prune, "change": Change}
    named = {name: kind(posterior.candidates) for name, kind in plain.items()}
    return {**named, "regrow": Regrow(unbounded, posterior.max_leaves, beta)}
