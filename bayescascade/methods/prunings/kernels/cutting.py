"""A block of Metropolis-Hastings steps on a pruning, which redraw whole subtrees at a time.

Within one tree, a row's item is asked for by at most one split, the first on the row's path that
reads it. So given what the other trees pay, the objective of a tree is a sum over its kept splits,
and that of the splits below (and with) split v has a sum over prunings that two passes find::

    Z_v = 1 + exp(-beta price_v) Z_left Z_right     from the bottom up, 1 where there is no child
    P(v is kept | the split above is) = 1 - 1 / Z_v            from the top down: a draw of them all

where price_v counts the uses that no split elsewhere asks for. There are two moves:

redraw
    Draw a split, and if those above it are kept, draw anew what is kept of its subtree, all of it
    at once, from the distribution given the rest. Without a bound, the rejection-free Gibbs step.
    With one, the draw x' comes from q(x' | x) = p(x') / P(B), where p has no bound and B, the
    prunings that agree with x outside of the subtree, is the same for x'; so that
    p(x') q(x | x') = p(x) q(x' | x), and the Metropolis-Hastings ratio for p within the bound is
    1 if x' is within it, otherwise 0: accepted if and only if the bound holds.

switch
    What several trees ask for is paid once, so one tree alone would rather go on using it, and one
    alone would rather not begin. Draw a split v and a number in [0, 1): the group are the splits
    whose uses are shared with those of v by at least that share. Are any of the group kept, cut
    them all. If none is, draw their subtrees anew, one after the other as in `redraw`, but with v's
    uses for free. The group depends on v and the number only, its subtrees do not overlap, and each
    way is the other's reverse. Write c_F for what v's uses cost in x and x', and Z_1, Z_2, ... for
    the sums of the subtrees, each given those before it as drawn, and those after it cut. Putting
    back has the probability prod_t exp(-beta cost_t) / Z_t, where the cost_t, v's uses aside, add
    up to the change of the objective; cutting has the probability 1. So the ratio of cutting is
    exp(beta (c_F(x) - c_F(x'))) / prod_t Z_t, and of putting back the inverse of that.
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
    """A pruning program as kernels read it, of n splits in preorder, U uses and E edges."""

    parent: Array  # (n,) int32: the split above, -1 at roots
    children: Array  # (n, 2) int32: the splits right below, -1 where there are fewer
    ends: Array  # (n,) int64: one past a split's subtree
    price: Array  # (n,) float64: what keeping a split adds to the objective, uses aside
    use_price: Array  # (U,) float64: what each use adds to it
    edge_starts: Array  # (n + 1,) int64: where the uses that each split asks for start
    edge_use: Array  # (E,) int32: those uses
    group_starts: Array  # (n + 1,) int64: where those start that ask for any of a split's uses
    group_splits: Array  # (G,) int32: these splits, the split itself included, ascending
    group_shares: Array  # (G,) float64: how alike their uses are


class Workspace(NamedTuple):
    """A pruning while it changes."""

    kept: Array  # (n,) bool
    was_kept: Array  # (n,) bool: what `lift` took
    n_asking: Array  # (U,) int32: kept splits that ask for a use
    is_free: Array  # (U,) bool: uses not to be weighed
    log_odds: Array  # (n,) float64: see `weigh`, as the next
    log_sum: Array
    group: Array  # (n,) int32: splits that are switched


def new_workspace(n_splits: int, n_uses: int) -> Workspace:
    """Return a work space for `load`."""
    kept, was_kept = np.empty(n_splits, np.bool_), np.empty(n_splits, np.bool_)
    n_asking, is_free = np.empty(n_uses, np.int32), np.zeros(n_uses, np.bool_)
    log_odds, log_sum = np.empty((2, n_splits))
    group = np.empty(n_splits, np.int32)
    return Workspace(kept, was_kept, n_asking, is_free, log_odds, log_sum, group)


@kernel
def load(program: ProgramArrays, work: Workspace, kept: Array) -> None:
    """Put a pruning, kept (n,) bool, into the work space."""
    work.n_asking[:] = 0
    copy(kept, work.kept)
    for split in range(kept.shape[0]):
        if kept[split]:
            count_edges(program, work, split, 1)


@inner_kernel
def copy(kept, target):
    """Copy a pruning; a slice would be assigned by way of a temporary array."""
    for split in range(kept.shape[0]):
        target[split] = kept[split]


@inner_kernel
def count_edges(program, work, split, step):
    """Count a split's uses once more (`step` 1) or once less (-1)."""
    for edge in range(program.edge_starts[split], program.edge_starts[split + 1]):
        work.n_asking[program.edge_use[edge]] += step


@inner_kernel
def price_of(program, work, split):
    """Return what keeping a split that is not kept adds to the objective."""
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
    """Cut a subtree, whatever of it is kept; return the change of the objective."""
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
    """Return log Z of a lifted subtree, and find for each split log Z and that of keeping it."""
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
    """Draw what is kept of a subtree just weighed; return the change of the objective."""
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
    """Keep of a subtree what was kept before it was lifted."""
    for split in range(top, program.ends[top]):
        if work.kept[split] != work.was_kept[split]:
            count_edges(program, work, split, 1 if work.was_kept[split] else -1)
            work.kept[split] = work.was_kept[split]


@inner_kernel
def redraw(rng, program, work, beta, room):
    """Draw a subtree anew; return the change of the objective, NaN if it was not accepted."""
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
    """Find what is switched; return the number of splits, and whether any of them is kept."""
    size, end, is_kept = 0, 0, False
    for place in range(program.group_starts[first], program.group_starts[first + 1]):
        split = program.group_splits[place]
        if program.group_shares[place] < least or split < end:
            continue
        end = program.ends[split]  # what is in its subtree goes with it
        if is_open(program, work, split):
            work.group[size] = split
            size += 1
            is_kept = is_kept or work.kept[split]
    return size, is_kept


@inner_kernel
def set_free(program, work, split, is_free):
    """Say whether a split's uses are free; return what those that are asked for cost."""
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
        while n_left > 0 and log_ratio + beta * paid > log_u:  # all that it can come to
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
    work: Workspace,
    n_steps: int,
    beta: float,
    room: float,
    margin: float,
    share_switched: float,
    proposed: Array,
    accepted: Array,
    best_kept: Array,
) -> None:
    """Run steps on ``exp(-beta * objective)`` from the pruning in the work space.

    room: by how much prunings may be worse than the first one, infinity for any; margin > 0: by how
    much one must be better to be the best, more than rounding adds up to; share_switched: how often
    SWITCH is tried; proposed, accepted (2,) int64: counts, added to; best_kept (n,) bool: the best
    pruning visited, the first one included, is left there.
    """
    copy(work.kept, best_kept)
    excess = 0.0  # over the objective of the best pruning
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
