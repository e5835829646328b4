"""Chains that redraw whole subtrees exactly, if the boxes of a subtree fit but not all boxes.

A step draws a number of bytes up to `SubtreeRedraws.largest`, and follows a row of the table down
the tree to the first box whose own boxes take no more. This choice does not depend on the subtree
there, so drawing the subtree from its conditional distribution, by the recursion over that box
alone, is a Gibbs step.

* **Leaf model.** Its density is ``w_K exp(sum_l g_l)``, see `passes`, so leaves inside and outside
  depend on each other. The subtree is drawn with a tilt s. This is drawn before, from a grid, with
  probabilities ``t(s; K)`` that are largest at the slope of ``ln w`` at K. In the space of trees
  and tilts the step is one of Metropolis-Hastings: the new tree, with K' leaves, is accepted with
  probability ``min(1, w_K' exp(-s K') t(s; K') / (w_K exp(-s K) t(s; K)))``.
* **Branch model.** No correction is necessary, unless columns are included at random: then ``w`` is
  the model's factor for their number.
* **Annealing.** A density raised to a power b, ``w_K**b exp(sum_l b g_l)``, is of the same form:
  all logs that the recursion reads from tables are multiplied by b. If weights are not integers, or
  too many for tables, there are redraws only at b = 1.
* **Polishing.** The last state of an annealing is improved: all subtrees that fit are replaced by
  the best ones, with the slope as tilt, as long as the tree becomes more probable and work is left.

Evaluated boxes are kept as long as they fit, because they occur repeatedly.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from math import inf, prod
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator

from bayescascade.methods.density.trees.exact.blocks import Blocks, column_blocks
from bayescascade.methods.density.trees.exact.lattice import Lattice, Root, term_arrays, weights_of
from bayescascade.methods.density.trees.exact.plan import SearchPlan, number_of_blocks
from bayescascade.methods.density.trees.exact.recursion import Recursion, count_all
from bayescascade.methods.density.trees.exact.tree_choices import choose_trees
from bayescascade.methods.density.trees.models import LeafModel
from bayescascade.methods.density.trees.tree import LEAF, Tree, block_codes, pack_block, root_box
from samplers.types import StepCounts

if TYPE_CHECKING:
    from bayescascade.methods.density.trees.tree_posterior import CascadePosterior

_SHARE = 1 / 2500  # of all steps; one in a large box takes as long as 20,000 other steps
_GRID, _SPREAD = 0.125, 0.15  # nats: step of the grid of tilts, and their spread about the slope
_REACH = np.arange(-8, 9)  # steps of the grid; beyond, probabilities are below 1e-9
_LARGEST = 2e7  # bytes of a box, 0.1 seconds: then redraws take about as long as all other steps
_MOST_POLISHED = 5e8  # three seconds, a few times a chain, for more probable trees
_POLISHED_OF_STEP = 5e4  # bytes of a box that takes as long as a step
_BYTES_OF_BOX = 8  # or more
_PER_TERM = 5  # bytes of boxes that take as long as a term
_SMALLEST = 1 << 14  # bytes
_UNLIMITED = 1 << 62  # bytes, more than any limit
_ASCENT = 1e-9  # nats

Box = tuple[tuple[int, ...], ...]
"""The remaining codes of each column."""

_OBJECTS = 100_000  # bytes in addition to the arrays of a box
_blocks_of = lru_cache(256)(column_blocks)


class BoxTrees:
    """All trees below one box, as trees of a table with that box alone.

    Columns with one remaining level are omitted, because their width is the same factor for all
    trees. Some column of the box has two or more levels. Densities are raised to `power` > 0, which
    is 1 unless the plan `is_tabulated`.
    """

    def __init__(self, posterior: "CascadePosterior", box: Box, power: float = 1.0) -> None:
        table, columns = posterior.table, posterior.schema.columns
        self._model = posterior.model
        inside = np.ones(table.n_distinct, np.bool_)
        codes = np.zeros_like(table.codes)
        for j, kept in enumerate(box):
            place = np.full(columns[j].n_levels, -1)
            place[list(kept)] = np.arange(len(kept))
            inside &= place[table.codes[j]] >= 0
            codes[j] = np.maximum(place[table.codes[j]], 0)
        self._rows = replace(table, codes=codes[:, inside], weights=table.weights[inside])
        is_open = [j for j, kept in enumerate(box) if len(kept) > 1]
        sizes, nominal = [len(box[j]) for j in is_open], [posterior.is_nominal[j] for j in is_open]
        plan = replace(SearchPlan.of(posterior, None), shift=0).of_rows(self._rows)
        plan = plan.with_columns(is_open, sizes, nominal)
        blocks = tuple(_renamed(plan, i, box[j]) for i, j in enumerate(plan.columns))
        widths = tuple(columns[j].widths[list(box[j])] for j in plan.columns)
        self._lattice = Lattice(plan, blocks, widths, power)
        self._sums: Recursion | None = None

    @property
    def n_bytes(self) -> int:
        """Bytes in use, from the first run on."""
        return self._lattice.plan.memory_bytes + self._rows.codes.nbytes + _OBJECTS

    def run(self, tilt: float, maximize: bool = False, n_jobs: int | None = 1) -> None:
        """Sum over all trees, or find the best, with `tilt` nats added for each leaf."""
        if self._sums is None:
            plan = self._lattice.plan
            counts = count_all(self._lattice, self._rows, n_jobs)
            listed = weights_of(plan, counts)
            terms = term_arrays(plan, self._model, self._lattice.power, listed)
            shapes = Recursion(self._lattice.shapes(), terms, np.zeros(1), None)
            self._sums = Recursion(self._lattice, terms, counts, shapes)
        self._sums.run(maximize, tilt=tilt, n_jobs=n_jobs)

    def choose(self, rng: Generator) -> Tree:
        """Return a draw from all trees, or the best, by the last run."""
        assert self._sums is not None
        return choose_trees(self._sums, [0], rng)[0]


def _renamed(plan: SearchPlan, i: int, codes: tuple[int, ...]) -> Blocks:
    """Return a column's blocks as words of the whole table."""
    blocks = _blocks_of(plan.n_levels[i], plan.is_nominal[i], plan.partitions)
    nominal = plan.is_nominal[i]
    words = [pack_block(nominal, [codes[c] for c in block.tolist()]) for block in blocks.codes]
    return replace(blocks, words=np.array(words, np.uint64))


class SubtreeRedraws:
    """The steps of a chain, with redraws of subtrees between the compiled ones.

    `memory_limit` > 0, bytes, is for all chains together. Arrays of boxes are kept up to half of
    it. The evaluation of large ones, and memory that was freed but not returned to the system, take
    about as much again. `n_jobs` counts threads of large boxes as joblib does; the result does not
    depend on it. If `n_steps` of a chain is given, polishing its end takes no longer than about as
    many steps.

    Attributes: `share` of all steps, in [0, 1], are redraws. A subtree may be redrawn if its boxes
    take at most a number of bytes that is drawn between `smallest` and `largest`, evenly by its
    logarithm, and polished if they take at most `most_polished` bytes.
    """

    name = "redraw"

    def __init__(
        self,
        posterior: "CascadePosterior",
        memory_limit: float,
        n_jobs: int | None = 1,
        n_steps: int | None = None,
    ) -> None:
        self.share = _SHARE if posterior.table.n_distinct > 0 else 0.0
        self.largest = max(1, int(min(memory_limit, _LARGEST)))
        self._of_polishing = inf if n_steps is None else _POLISHED_OF_STEP * n_steps
        self.most_polished = int(min(memory_limit / 4, _MOST_POLISHED, self._of_polishing))
        self.smallest = min(_SMALLEST, self.largest)
        self._posterior = posterior
        self._most_kept = memory_limit / 2
        self._n_jobs = n_jobs
        plan = replace(SearchPlan.of(posterior, None), shift=0)
        self._is_annealed = plan.is_tabulated
        self._plan = replace(plan, n_distinct=0, n_whole=min(plan.n_whole, 1))
        self._sizes: dict[tuple[int, ...], int] = {}
        self._root = Root.of(posterior, plan)
        self._total = float(posterior.table.weights.sum())
        self._kept: OrderedDict[tuple[Box, float, float | None], BoxTrees] = OrderedDict()
        self._lock = Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kept": OrderedDict(), "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=Lock())

    # -- steps -------------------------------------------------------------------------------------

    def advance(
        self, rng: Generator, state: Tree, n_steps: int, inverse_temperature: float
    ) -> tuple[Tree, StepCounts[Tree]]:
        """Take steps; see `samplers.types.ProvidesAdvance`."""
        posterior, beta = self._posterior, inverse_temperature
        has_redraws = beta == 1.0 or self._is_annealed
        n_redraws = int(rng.binomial(n_steps, self.share)) if has_redraws else 0
        ends = np.linspace(0, n_steps - n_redraws, n_redraws + 2).astype(int)[1:]
        tree, n_accepted = state, 0
        proposed = dict.fromkeys(posterior.move_weights(), 0)
        accepted = dict(proposed)
        best, begin, best_log_density = state, 0, -np.inf
        if ends[0] == 0:  # otherwise a sweep returns the density
            best_log_density = posterior.log_density(state)
        log_density = best_log_density
        for i, end in enumerate(ends.tolist()):
            if end > begin:
                tree, counts = posterior.sweep(rng, tree, end - begin, beta)
                log_density = counts.log_density
                for name in counts.proposed:
                    proposed[name] += counts.proposed[name]
                    accepted[name] += counts.accepted[name]
                if counts.best_log_density > best_log_density:
                    best, best_log_density = counts.best_state, counts.best_log_density
            if i < n_redraws:
                other = self.redrawn(rng, tree, beta)
                if other is not None:
                    tree, n_accepted = other, n_accepted + 1
                    log_density = posterior.log_density(tree)
                    if log_density > best_log_density:
                        best, best_log_density = tree, log_density
            begin = end
        proposed[self.name], accepted[self.name] = n_redraws, n_accepted
        return tree, StepCounts(proposed, accepted, log_density, best, best_log_density)

    def redrawn(self, rng: Generator, tree: Tree, power: float = 1.0) -> Tree | None:
        """Return the tree with a subtree redrawn; None if it is rejected or impossible."""
        node, box = self.place(rng, tree)
        tilts, log_chances = self.tilts(tree.n_leaves, power)
        at = int(rng.choice(tilts.size, p=np.exp(log_chances)))
        u = rng.random()
        if box is None:
            return None
        tilt = float(tilts[at])
        new = self._replaced(rng, tree, node, box, tilt, power)
        log_ratio = self.log_rest(new, tilt, power) - self.log_rest(tree, tilt, power)
        return new if np.log(u) < log_ratio else None

    def polished(self, tree: Tree) -> Tree:
        """Return a tree that is at least as probable; see above."""
        rng = np.random.default_rng(0)  # nothing is drawn
        posterior = self._posterior
        root = root_box(posterior.schema)
        log_density, left = posterior.log_density(tree), self._of_polishing
        while True:
            better, tilt = tree, self._slope(tree.n_leaves)
            codes = tree.codes(posterior.is_nominal, root)
            sizes = np.array([min(self.size(box), _UNLIMITED) for box in codes])
            outer = np.where(np.arange(tree.n_nodes) > 0, sizes[tree.parent], inf)
            most = float(self.most_polished)
            while (of_all := sizes[(sizes <= most) & (outer > most)].sum()) > left:
                most /= 2.0
            left -= of_all
            for node in reversed(range(tree.n_nodes)):  # so that earlier nodes keep their places
                if 0 < sizes[node] <= most < outer[node]:
                    better = self._replaced(rng, better, node, tuple(codes[node]), tilt, None)
            if posterior.log_density(better) <= log_density + _ASCENT:
                return tree
            tree, log_density = better, posterior.log_density(better)

    def place(self, rng: Generator, tree: Tree) -> tuple[int, Box | None]:
        """Draw the node for a redraw, and its box; None if it cannot be split or is too large."""
        posterior = self._posterior
        columns = posterior.schema.columns
        most = np.exp(rng.uniform(np.log(self.smallest), np.log(self.largest)))
        row = posterior.table.codes[:, int(rng.integers(posterior.table.n_distinct))].tolist()
        node, box = 0, [tuple(range(column.n_levels)) for column in columns]
        while (size := self.size(box)) > most and tree.feature[node] != LEAF:
            j = int(tree.feature[node])
            for child in tree.children(node):
                codes = block_codes(posterior.is_nominal[j], int(tree.block[child]))
                if row[j] in codes:
                    node, box[j] = child, codes
                    break
        return node, tuple(box) if 0 < size <= most else None

    def size(self, box: Sequence[tuple[int, ...]]) -> int:
        """Return the bytes, or equivalent work, of all trees below a box; 0 for a single tree."""
        n_left = tuple(map(len, box))
        if n_left not in self._sizes:
            is_open = [j for j, q in enumerate(n_left) if q > 1]
            nominal = [self._posterior.is_nominal[j] for j in is_open]
            size = _BYTES_OF_BOX * prod(
                number_of_blocks(n_left[j], self._posterior.is_nominal[j], self._plan.partitions)
                for j in is_open
            )
            if not is_open:
                size = 0
            elif size <= max(self.largest, self.most_polished):  # otherwise it is too large already
                plan = self._plan.with_columns(is_open, [n_left[j] for j in is_open], nominal)
                size = max(plan.memory_bytes, _PER_TERM * plan.n_terms)
            self._sizes[n_left] = size
        return self._sizes[n_left]

    def _replaced(
        self, rng: Generator, tree: Tree, node: int, box: Box, tilt: float, power: float | None
    ) -> Tree:
        """Return the tree with a subtree drawn from a power of the density; None: the best."""
        key = (box, tilt, power)
        with self._lock:  # for the kept boxes and their workspaces
            trees = self._kept.get(key)
            if trees is None:
                trees = BoxTrees(self._posterior, box, 1.0 if power is None else power)
                n_bytes = trees.n_bytes + sum(kept.n_bytes for kept in self._kept.values())
                while self._kept and n_bytes > self._most_kept:
                    n_bytes -= self._kept.popitem(last=False)[1].n_bytes
                trees.run(tilt, power is None, self._n_jobs)
                self._kept[key] = trees
            self._kept.move_to_end(key)
            subtree = trees.choose(rng)
        nominal = self._posterior.is_nominal
        return tree.replaced(nominal, node, subtree.to_nested(nominal))

    # -- what a tree counts beside what its parts do -----------------------------------------------

    def _slope(self, n_leaves: int) -> float:
        """Return the increase of ``ln w`` by one more leaf; 0 for the branch model."""
        if not isinstance(self._posterior.model, LeafModel):
            return 0.0
        k = np.array([n_leaves, n_leaves + 1])
        return float(np.diff(self._root.log_weights(k, self._total))[0])

    def tilts(self, n_leaves: int, power: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
        """Return tilts and the logs of their probabilities; only 0 for the branch model."""
        if not isinstance(self._posterior.model, LeafModel):
            return np.zeros(1), np.zeros(1)
        slope = power * self._slope(n_leaves)
        tilts = _GRID * (np.rint(slope / _GRID) + _REACH)
        log_chances = -0.5 * ((tilts - slope) / _SPREAD) ** 2
        return tilts, log_chances - np.log(np.exp(log_chances).sum())

    def log_rest(self, tree: Tree, tilt: float, power: float = 1.0) -> float:
        """Return ``ln (w_K**b exp(-s K) t(s; K))`` for a power b."""
        model = self._posterior.model
        if not isinstance(model, LeafModel):
            n_columns = self._posterior.schema.n_columns
            return power * float(model.log_inclusion(n_columns)[tree.features_used.size])
        k = tree.n_leaves
        if model.max_leaves is not None and k > model.max_leaves:
            return -np.inf
        tilts, log_chances = self.tilts(k, power)
        at = int(np.rint((tilt - tilts[0]) / _GRID))
        if not 0 <= at < tilts.size:
            return -np.inf
        log_w = float(self._root.log_weights(np.array([k]), self._total)[0])
        return power * log_w - tilt * k + float(log_chances[at])
