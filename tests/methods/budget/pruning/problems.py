"""Tiny pruning programs whose prunings can all be listed, and their objective in plain words."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bayescascade.methods.budget.pruning.posterior import KeptSplits, PruningPosterior
from bayescascade.methods.budget.pruning.program import PruningProgram
from tests.methods.lists.problems import each as each


@dataclass(frozen=True)
class PruningProblem:
    """Trees as the parents of their splits, with random gains and uses.

    Every use is asked for by one split of some trees, as in a forest; with `n_uses` 0 splits are
    free but for their work.
    """

    name: str
    parents: tuple[tuple[int, ...], ...]
    n_uses: int = 6
    tradeoff: float = 0.3
    temperature: float = 0.06
    seed: int = 0
    base_error: float = 0.5

    @property
    def parent(self):
        """The split above each split of the forest, -1 at roots."""
        flat = []
        for tree in self.parents:
            start = len(flat)
            flat += [start + above if above >= 0 else -1 for above in tree]
        return flat

    @cached_property
    def record(self):
        """Gains, work, prices of uses, and for each use the splits that ask for it."""
        rng = np.random.default_rng(self.seed)
        n_splits = len(self.parent)
        starts = np.cumsum([0, *map(len, self.parents)])
        asking = []
        for _ in range(self.n_uses):
            trees = rng.permutation(len(self.parents))[: rng.integers(1, len(self.parents) + 1)]
            asking.append([int(rng.integers(starts[t], starts[t + 1])) for t in trees])
        return {
            "gain": (rng.random(n_splits) * 0.2 - 0.02).tolist(),
            "work": (rng.random(n_splits) * 0.05).tolist(),
            "price": (rng.random(self.n_uses) * 0.4).tolist(),
            "asking": asking,
        }

    @cached_property
    def program(self):
        edges = sorted(
            (split, use) for use, splits in enumerate(self.record["asking"]) for split in splits
        )
        n_splits = len(self.parent)
        return PruningProgram(
            tree_starts=np.cumsum([0, *map(len, self.parents)]),
            node=np.arange(n_splits, dtype=np.int32),
            parent=np.array(self.parent, np.int32),
            error_gain=np.array(self.record["gain"]),
            base_error=self.base_error,
            work=np.array(self.record["work"]),
            use_cost=np.array(self.record["price"], float),
            use_item=np.zeros(self.n_uses, np.int32),
            edge_starts=np.searchsorted([split for split, _ in edges], np.arange(n_splits + 1)),
            edge_use=np.array([use for _, use in edges], np.int32),
        )

    def posterior(self, **settings):
        chosen = {"tradeoff": self.tradeoff, "temperature": self.temperature, **settings}
        return PruningPosterior(self.program, **chosen)

    @cached_property
    def sets(self):
        """Every set of splits that holds the split above each of its own, smallest first."""
        n_splits = len(self.parent)
        found = [
            frozenset(chosen)
            for chosen in subsets(range(n_splits))
            if all(self.parent[split] in (-1, *chosen) for split in chosen)
        ]
        return sorted(found, key=len)

    @cached_property
    def prunings(self):
        n_splits = len(self.parent)
        return [KeptSplits(np.isin(np.arange(n_splits), list(one))) for one in self.sets]

    def objective(self, kept, free=frozenset()):
        """Return error plus price of one set, but of free uses: `PruningProgram.objective`."""
        total = self.base_error
        for split in kept:
            total += self.tradeoff * self.record["work"][split] - self.record["gain"][split]
        asked = enumerate(zip(self.record["price"], self.record["asking"], strict=True))
        for use, (price, splits) in asked:
            if use not in free and any(split in kept for split in splits):
                total += self.tradeoff * price
        return total

    def probabilities(self, temperature=None):
        """Return the probability of each set by the twin."""
        objectives = np.array([self.objective(kept) for kept in self.sets])
        weights = np.exp(-(objectives - objectives.min()) / (temperature or self.temperature))
        return weights / weights.sum()


def subsets(items):
    """Yield every subset, each ascending."""
    if not items:
        yield ()
        return
    for rest in subsets(items[1:]):
        yield rest
        yield (items[0], *rest)


PAIR = PruningProblem("pair", ((-1, 0, 0), (-1, 0, 1)))
DEEP = PruningProblem("deep", ((-1, 0, 1, 1, 0, 4),), n_uses=4, seed=1)
THREE = PruningProblem("three", ((-1, 0), (-1, 0, 0), (-1,)), n_uses=9, tradeoff=0.5, seed=2)
FREE = PruningProblem("free", ((-1, 0, 1), (-1, 0)), n_uses=0, seed=3)
STUMP = PruningProblem("stump", ((-1,),), n_uses=1, seed=4)
PROBLEMS = (PAIR, DEEP, THREE, FREE, STUMP)
