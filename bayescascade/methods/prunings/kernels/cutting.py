"""A block of Metropolis-Hastings steps on a pruning, with the moves of `budget.pruning_moves`.

Of each use it is counted how many kept splits ask for it, so that a step's work is proportional to
the uses of the one or two splits that it touches.
"""

from math import log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.chain_kernels import accept, draw, enlist, strike
from bayescascade.base.jit import inner_kernel, kernel

__all__ = ["MOVES", "ProgramArrays", "Work", "load", "new_work", "sweep"]

MOVES = ("cut", "uncut", "slide")
CUT, UNCUT, SLIDE = range(3)

TIPS, BUDS = range(2)  # rows of `lists`, `places` and `sizes`

Array = NDArray[Any]  # the docstrings give dtypes


class ProgramArrays(NamedTuple):
    """A pruning program as kernels read it, of n splits, U uses and E edges.

    parent (n,) int32: the split above, -1 at roots; children (n, 2) int32: the splits right below,
    -1 where there are fewer; price (n,) float64: what keeping a split adds to the objective, uses
    aside; use_price (U,) float64: what each use adds to it; edge_starts (n + 1,) int64 and edge_use
    (E,) int32: the uses that each split asks for.
    """

    parent: Array
    children: Array
    price: Array
    use_price: Array
    edge_starts: Array
    edge_use: Array


class Work(NamedTuple):
    """A pruning while it changes.

    kept (n,) bool; n_kept_children (n,) int8; n_asking (U,) int32: kept splits that ask for a use;
    lists (2, n) int32: the tips and the buds, in any order; places (2, n) int32: where a split is
    listed, -1 if it is not; sizes (2,) int64: lengths of the lists.
    """

    kept: Array
    n_kept_children: Array
    n_asking: Array
    lists: Array
    places: Array
    sizes: Array


def new_work(n_splits: int, n_uses: int) -> Work:
    """Return a work space for `load`."""
    return Work(
        kept=np.empty(n_splits, np.bool_),
        n_kept_children=np.empty(n_splits, np.int8),
        n_asking=np.empty(n_uses, np.int32),
        lists=np.empty((2, n_splits), np.int32),
        places=np.empty((2, n_splits), np.int32),
        sizes=np.empty(2, np.int64),
    )


@kernel
def load(program: ProgramArrays, work: Work, kept: Array) -> None:
    """Put a pruning, kept (n,) bool, into the work space."""
    work.n_asking[:] = 0
    work.n_kept_children[:] = 0
    work.places[:] = -1
    work.sizes[:] = 0
    copy(kept, work.kept)
    for split in range(kept.shape[0]):
        above = program.parent[split]
        if kept[split]:
            if above >= 0:
                work.n_kept_children[above] += 1
            for edge in range(program.edge_starts[split], program.edge_starts[split + 1]):
                work.n_asking[program.edge_use[edge]] += 1
        elif above < 0 or kept[above]:
            enlist(work, BUDS, split)
    for split in range(kept.shape[0]):
        if kept[split] and work.n_kept_children[split] == 0:
            enlist(work, TIPS, split)


@inner_kernel
def copy(kept, target):
    """Copy a pruning; a slice would be assigned by way of a temporary array."""
    for split in range(kept.shape[0]):
        target[split] = kept[split]


@inner_kernel
def price_of(program, work, split, n_asking):
    """Return what a split adds to the objective, with the uses that so many kept splits ask for.

    n_asking: 1 if the split is kept, and so asks itself, 0 if it is not.
    """
    price = program.price[split]
    for edge in range(program.edge_starts[split], program.edge_starts[split + 1]):
        use = program.edge_use[edge]
        if work.n_asking[use] == n_asking:
            price += program.use_price[use]
    return price


@inner_kernel
def count_edges(program, work, split, step):
    """Count a split's uses once more (`step` 1) or once less (-1)."""
    for edge in range(program.edge_starts[split], program.edge_starts[split + 1]):
        work.n_asking[program.edge_use[edge]] += step


@inner_kernel
def cut(program, work, split):
    """Stop keeping a tip."""
    work.kept[split] = False
    count_edges(program, work, split, -1)
    strike(work, TIPS, split)
    for side in range(2):
        if program.children[split, side] >= 0:
            strike(work, BUDS, program.children[split, side])
    enlist(work, BUDS, split)
    above = program.parent[split]
    if above >= 0:
        work.n_kept_children[above] -= 1
        if work.n_kept_children[above] == 0:
            enlist(work, TIPS, above)


@inner_kernel
def uncut(program, work, split):
    """Keep a bud."""
    work.kept[split] = True
    count_edges(program, work, split, 1)
    strike(work, BUDS, split)
    for side in range(2):
        if program.children[split, side] >= 0:
            enlist(work, BUDS, program.children[split, side])
    enlist(work, TIPS, split)
    above = program.parent[split]
    if above >= 0:
        if work.n_kept_children[above] == 0:
            strike(work, TIPS, above)
        work.n_kept_children[above] += 1


@inner_kernel
def n_tips_with(program, work, bud):
    """Return the number of tips if a bud is kept."""
    above = program.parent[bud]
    replaces = above >= 0 and work.n_kept_children[above] == 0
    return work.sizes[TIPS] + 1 - replaces


@inner_kernel
def n_buds_without(program, work, tip):
    """Return the number of buds if a tip is cut."""
    n_below = int(program.children[tip, 0] >= 0) + int(program.children[tip, 1] >= 0)
    return work.sizes[BUDS] + 1 - n_below


@inner_kernel
def try_cut(rng, program, work, beta, room):
    """Propose to cut a tip; return the change of the objective, NaN if it was not accepted."""
    if work.sizes[TIPS] == 0:
        return np.nan
    tip = draw(rng, work, TIPS)
    change = -price_of(program, work, tip, 1)
    log_q_ratio = log(work.sizes[TIPS]) - log(n_buds_without(program, work, tip))
    if change <= room and accept(rng, -beta * change + log_q_ratio):
        cut(program, work, tip)
        return change
    return np.nan


@inner_kernel
def try_uncut(rng, program, work, beta, room):
    """Propose to keep a bud; return the change of the objective, NaN if it was not accepted."""
    if work.sizes[BUDS] == 0:
        return np.nan
    bud = draw(rng, work, BUDS)
    change = price_of(program, work, bud, 0)
    log_q_ratio = log(work.sizes[BUDS]) - log(n_tips_with(program, work, bud))
    if change <= room and accept(rng, -beta * change + log_q_ratio):
        uncut(program, work, bud)
        return change
    return np.nan


@inner_kernel
def try_slide(rng, program, work, beta, room):
    """Propose to cut a tip and keep another bud; return the change of the objective, or NaN."""
    n_tips = work.sizes[TIPS]
    if n_tips == 0:
        return np.nan
    tip = draw(rng, work, TIPS)
    if n_buds_without(program, work, tip) == 1:  # no other bud
        return np.nan
    change = -price_of(program, work, tip, 1)
    cut(program, work, tip)
    place = np.int64(rng.random() * (work.sizes[BUDS] - 1))
    if place >= work.places[BUDS, tip]:
        place += 1
    bud = work.lists[BUDS, place]
    change += price_of(program, work, bud, 0)
    log_q_ratio = log(n_tips) - log(n_tips_with(program, work, bud))
    if change <= room and accept(rng, -beta * change + log_q_ratio):
        uncut(program, work, bud)
        return change
    uncut(program, work, tip)
    return np.nan


@kernel
def sweep(
    rng: np.random.Generator,
    program: ProgramArrays,
    work: Work,
    n_steps: int,
    beta: float,
    room: float,
    margin: float,
    move_cdf: Array,
    proposed: Array,
    accepted: Array,
    best_kept: Array,
) -> None:
    """Run steps on ``exp(-beta * objective)`` from the pruning in the work space.

    room: by how much prunings may be worse than the first one, infinity for any; margin > 0: by how
    much one must be better to be the best, more than rounding adds up to; move_cdf (3,) float64:
    cumulative selection probabilities of MOVES; proposed, accepted (3,) int64: counts, added to;
    best_kept (n,) bool: the best pruning visited, the first one included, is left there.
    """
    copy(work.kept, best_kept)
    excess = 0.0  # over the objective of the best pruning
    for _ in range(n_steps):
        u = rng.random()
        if u < move_cdf[CUT]:
            move = CUT
            change = try_cut(rng, program, work, beta, room)
        elif u < move_cdf[UNCUT]:
            move = UNCUT
            change = try_uncut(rng, program, work, beta, room)
        else:
            move = SLIDE
            change = try_slide(rng, program, work, beta, room)
        proposed[move] += 1
        if not np.isnan(change):
            accepted[move] += 1
            excess += change
            room -= change
            if excess < -margin:
                copy(work.kept, best_kept)
                excess = 0.0
