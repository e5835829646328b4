"""A block of Metropolis-Hastings steps on a pruning, which redraw whole subtrees.

Within one tree, at most one split asks for a row's item: the first on the row's path that reads it.
So, given the uses paid by the other trees, the objective of a tree is a sum over its kept splits.
For the subtree at split v, the sum over prunings is found by two passes::

    Z_v = 1 + exp(-beta price_v) Z_left Z_right     from the bottom up, 1 if there is no child
    P(v is kept | the split above is) = 1 - 1 / Z_v            from the top down: a draw of all

where price_v counts the uses that no split elsewhere asks for. There are two moves:

redraw
    Draw a split and, if those above it are kept, draw its whole subtree again, from its
    distribution given the rest. Without a bound, this is a Gibbs step without rejection. With a
    bound, the draw x' has q(x' | x) = p(x') / P(B), where p has no bound and B, the set of prunings
    that agree with x outside the subtree, is the same for x'; so that p(x') q(x | x') = p(x) q(x' |
    x), and the Metropolis-Hastings ratio for p within the bound is 1 if x' is within it, otherwise
    0: accepted if and only if the bound holds.

switch
    Uses of several trees are paid once, so a single tree rarely stops using them, and rarely starts
    to. Draw a split v and a number in [0, 1): the group has the splits whose uses are shared with
    those of v by at least that share. If any split of the group is kept, cut all of them. If none
    is kept, draw their subtrees again, one after the other as in `redraw`, but with v's uses for
    free. The group depends only on v and the number, its subtrees do not overlap, and each
    direction is the reverse of the other. Write c_F for the cost of v's uses in x and x', and Z_1,
    Z_2, ... for the sums of the subtrees, each given the earlier ones as drawn and the later ones
    cut. Putting back has the probability prod_t exp(-beta cost_t) / Z_t, where the cost_t add up to
    the change of the objective without v's uses; cutting has the probability 1. So the ratio for
    cutting is exp(beta (c_F(x) - c_F(x'))) / prod_t Z_t, and that for putting back is its inverse.
"""

from math import exp, log, log1p
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.jit import inner_kernel, kernel

MOVES = ("redraw", "switch")
REDRAW, SWITCH = range(2)

Array = NDArray[Any]  # the docstrings give dtypes


class ProgramArrays(NamedTuple):
    """Arrays of a pruning program with n splits in preorder, U uses and E edges."""

    parent: Array  # (n,) int32: the split above, -1 at roots
    children: Array  # (n, 2) int32: the child splits, -1 if there are fewer
    ends: Array  # (n,) int64: one past a split's subtree
    price: Array  # (n,) float64: contribution of a kept split to the objective, without uses
    use_price: Array  # (U,) float64: contribution of each use
    edge_starts: Array  # (n + 1,) int64: start of the uses of each split
    edge_use: Array  # (E,) int32: these uses
    group_starts: Array  # (n + 1,) int64: start of the splits that share a use with each split
    group_splits: Array  # (G,) int32: these splits, the split itself included, ascending
    group_shares: Array  # (G,) float64: similarity of their uses


class CuttingSpace(NamedTuple):
    """The work space of a changing pruning."""

    kept: Array  # (n,) bool
    was_kept: Array  # (n,) bool: splits removed by `lift`
    n_asking: Array  # (U,) int32: number of kept splits that ask for a use
    is_free: Array  # (U,) bool: uses without a price
    log_odds: Array  # (n,) float64: see `weigh`, like the next
    log_sum: Array
    group: Array  # (n,) int32: splits to switch


def new_workspace(n_splits: int, n_uses: int) -> CuttingSpace:
    """Return a work space for `load`."""
    kept, was_kept = np.empty(n_splits, np.bool_), np.empty(n_splits, np.bool_)
    n_asking, is_free = np.empty(n_uses, np.int32), np.zeros(n_uses, np.bool_)
    log_odds, log_sum = np.empty((2, n_splits))
    group = np.empty(n_splits, np.int32)
    return CuttingSpace(kept, was_kept, n_asking, is_free, log_odds, log_sum, group)


@kernel
def load(program: ProgramArrays, work: CuttingSpace, kept: Array) -> None:
    """Load a pruning, kept (n,) bool, into the work space."""
    work.n_asking[:] = 0
    copy(kept, work.kept)
    for split in range(kept.shape[0]):
        if kept[split]:
            count_edges(program, work, split, 1)


@inner_kernel
def copy(kept, target):
    """Copy a pruning; assigning a slice would make a temporary array."""
    for split in range(kept.shape[0]):
        target[split] = kept[split]


@inner_kernel
def count_edges(program, work, split, step):
    """Add a split's uses to the counts (`step` 1) or subtract them (-1)."""
    for edge in range(program.edge_starts[split], program.edge_starts[split + 1]):
        work.n_asking[program.edge_use[edge]] += step


@inner_kernel
def price_of(program, work, split):
    """Return the change of the objective by keeping a split that is not kept."""
    price = program.price[split]
    for edge in range(program.edge_starts[split], program.edge_starts[split + 1]):
        if work.n_asking[program.edge_use[edge]] == 0:
            price += program.use_price[program.edge_use[edge]]
    return price


@inner_kernel
def is_open(program, work, split):
    """Whether all splits above a split are kept."""
    return program.parent[split] < 0 or work.kept[program.parent[split]]


@inner_kernel
def lift(program, work, top):
    """Cut all kept splits of a subtree; return the change of the objective."""
    change = 0.0
    for split in range(top, program.ends[top]):
        work.was_kept[split] = work.kept[split]
        if work.kept[split]:
            work.kept[split] = False
            count_edges(program, work, split, -1)
            change -= price_of(program, work, split)
    return change


@inner_kernel
def weigh(program, work, top, beta):
    """Return log Z of a lifted subtree; write log Z, and log Z of keeping it, for each split."""
    for split in range(program.ends[top] - 1, top - 1, -1):
        price = program.price[split]
        for edge in range(program.edge_starts[split], program.edge_starts[split + 1]):
            use = program.edge_use[edge]
            if work.n_asking[use] == 0 and not work.is_free[use]:
                price += program.use_price[use]
        odds = -beta * price
        for side in range(2):
            if program.children[split, side] >= 0:
                odds += work.log_sum[program.children[split, side]]
        work.log_odds[split] = odds
        work.log_sum[split] = max(odds, 0.0) + log1p(exp(-abs(odds)))
    return work.log_sum[top]


@inner_kernel
def lay(rng, program, work, top):
    """Draw the kept splits of a weighed subtree; return the change of the objective."""
    change = 0.0
    for split in range(top, program.ends[top]):
        if is_open(program, work, split) and rng.random() < exp(
            work.log_odds[split] - work.log_sum[split]
        ):
            change += price_of(program, work, split)
            work.kept[split] = True
            count_edges(program, work, split, 1)
    return change


@inner_kernel
def put_back(program, work, top):
    """Restore the splits of a subtree that were kept before `lift`."""
    for split in range(top, program.ends[top]):
        if work.kept[split] != work.was_kept[split]:
            count_edges(program, work, split, 1 if work.was_kept[split] else -1)
            work.kept[split] = work.was_kept[split]


@inner_kernel
def redraw(rng, program, work, beta, room):
    """Draw a subtree again; return the change of the objective, NaN if not accepted."""
    top = np.int64(rng.random() * work.kept.shape[0])
    if not is_open(program, work, top):
        return np.nan
    change = lift(program, work, top)
    weigh(program, work, top, beta)
    change += lay(rng, program, work, top)
    if change <= room:
        return change
    put_back(program, work, top)
    return np.nan


@inner_kernel
def find_group(program, work, first, least):
    """Find the splits to switch; return their number, and whether any of them is kept."""
    size, end, is_kept = 0, 0, False
    for place in range(program.group_starts[first], program.group_starts[first + 1]):
        split = program.group_splits[place]
        if program.group_shares[place] < least or split < end:
            continue
        end = program.ends[split]  # its subtree is switched with it
        if is_open(program, work, split):
            work.group[size] = split
            size += 1
            is_kept = is_kept or work.kept[split]
    return size, is_kept


@inner_kernel
def set_free(program, work, split, is_free):
    """Set whether a split's uses are free; return the cost of those that kept splits ask for."""
    price = 0.0
    for edge in range(program.edge_starts[split], program.edge_starts[split + 1]):
        use = program.edge_use[edge]
        work.is_free[use] = is_free
        if work.n_asking[use] > 0:
            price += program.use_price[use]
    return price


@inner_kernel
def switch(rng, program, work, beta, room):
    """Cut a group or put it back; return the change of the objective, NaN if not accepted."""
    first = np.int64(rng.random() * work.kept.shape[0])
    size, was_kept = find_group(program, work, first, rng.random())
    if size == 0:
        return np.nan
    log_u = log(rng.random())
    log_ratio, change, n_left = 0.0, 0.0, size
    paid = set_free(program, work, first, True)
    if was_kept:
        while n_left > 0 and log_ratio + beta * paid > log_u:  # the largest possible ratio
            n_left -= 1
            change += lift(program, work, work.group[n_left])
            log_ratio -= weigh(program, work, work.group[n_left], beta)
        is_kept = n_left > 0
    else:
        is_kept, n_left = False, 0
        for place in range(size):
            top = work.group[place]
            lift(program, work, top)
            log_ratio += weigh(program, work, top, beta)
            change += lay(rng, program, work, top)
            is_kept = is_kept or work.kept[top]
    log_ratio += beta * (paid - set_free(program, work, first, False))
    if is_kept != was_kept and change <= room and log_ratio > log_u:
        return change
    for place in range(n_left, size):
        put_back(program, work, work.group[place])
    return np.nan


@kernel
def sweep(
    rng: np.random.Generator,
    program: ProgramArrays,
    work: CuttingSpace,
    n_steps: int,
    beta: float,
    room: float,
    margin: float,
    share_switched: float,
    proposed: Array,
    accepted: Array,
    best_kept: Array,
) -> None:
    """Run steps for ``exp(-beta * objective)`` from the pruning in the work space.

    room: how much worse than the first one prunings may be, infinity for any; margin > 0: how much
    better one must be to replace the best, above the total rounding; share_switched: probability of
    SWITCH; proposed, accepted (2,) int64: counts are added; best_kept (n,) bool: output, the best
    visited pruning, including the first.
    """
    copy(work.kept, best_kept)
    excess = 0.0  # of the objective over that of the best pruning
    if work.kept.shape[0] == 0:
        return
    for _ in range(n_steps):
        if rng.random() < share_switched:
            move = SWITCH
            change = switch(rng, program, work, beta, room)
        else:
            move = REDRAW
            change = redraw(rng, program, work, beta, room)
        proposed[move] += 1
        if not np.isnan(change):
            accepted[move] += 1
            excess += change
            room -= change
            if excess < -margin:
                copy(work.kept, best_kept)
                excess = 0.0
