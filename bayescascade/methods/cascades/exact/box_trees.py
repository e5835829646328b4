"""The trees below one box: those of a table of that box alone, in the words of the whole one."""

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from bayescascade.methods.cascades.exact.lattice import (
    Blocks,
    Lattice,
    column_blocks,
    term_arrays,
    weights_of,
)
from bayescascade.methods.cascades.exact.plan import Plan
from bayescascade.methods.cascades.exact.recursion import Recursion, count_all
from bayescascade.methods.cascades.exact.tree_choices import choose_trees
from bayescascade.methods.cascades.tree import Tree, pack_block

if TYPE_CHECKING:
    from bayescascade.methods.cascades.posterior import CascadePosterior

Box = tuple[tuple[int, ...], ...]
"""The codes that are left of every column."""

_OBJECTS = 100_000  # bytes beside the arrays of a box

_blocks_of = lru_cache(256)(column_blocks)


class BoxTrees:
    """All trees below one box, as those of a table of that box alone.

    Columns with one level left are omitted, because their width is the same factor for all trees.
    The box has two levels of some column or more. Densities are raised to `power` > 0, which is 1
    unless the plan `is_tabulated`.
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
        plan = (
            replace(Plan.of(posterior, None), shift=0)
            .of_rows(self._rows)
            .with_columns(
                is_open, [len(box[j]) for j in is_open], [posterior.is_nominal[j] for j in is_open]
            )
        )
        blocks = tuple(_renamed(plan, i, box[j]) for i, j in enumerate(plan.columns))
        widths = tuple(columns[j].widths[list(box[j])] for j in plan.columns)
        self._lattice = Lattice(plan, blocks, widths, power)
        self._sums: Recursion | None = None

    @property
    def n_bytes(self) -> int:
        """Bytes that it takes, from the first run on."""
        return self._lattice.plan.memory_bytes + self._rows.codes.nbytes + _OBJECTS

    def run(self, tilt: float, maximize: bool = False, n_jobs: int | None = 1) -> None:
        """Sum over all trees, or find the best, each leaf counting `tilt` nats more."""
        if self._sums is None:
            plan = self._lattice.plan
            counts = count_all(self._lattice, self._rows, n_jobs)
            listed = weights_of(plan, counts)
            terms = term_arrays(plan, self._model, self._lattice.power, listed)
            shapes = Recursion(self._lattice.shapes(), terms, np.zeros(1), None)
            self._sums = Recursion(self._lattice, terms, counts, shapes)
        self._sums.run(maximize, tilt=tilt, n_jobs=n_jobs)

    def choose(self, rng: np.random.Generator) -> Tree:
        """Return a draw from all trees, or the best, as of the last run."""
        assert self._sums is not None
        return choose_trees(self._sums, [0], rng)[0]


def _renamed(plan: Plan, i: int, codes: tuple[int, ...]) -> Blocks:
    """Return a column's blocks by the words that they have in the whole table."""
    blocks = _blocks_of(plan.n_levels[i], plan.is_nominal[i], plan.partitions)
    nominal = plan.is_nominal[i]
    words = [pack_block(nominal, [codes[c] for c in block.tolist()]) for block in blocks.codes]
    return replace(blocks, words=np.array(words, np.uint64))
