"""What kernels share: the arrays of candidates, of rows, of a model and of a work space, by name.

Bit ``i % 64`` of word ``i // 64`` stands for row ``i``; rows are ordered so that most words hold
rows of one class and one weight, and are counted by one population count.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MOVES = ("add", "remove", "replace", "edit", "swap", "relocate")
ADD, REMOVE, REPLACE, EDIT, SWAP, RELOCATE = range(6)

DENSITY, LABELS = 0, 1
MAX_RULES = 62  # a set of rules is the bits of one int64

PRIOR_KEPT = 0.8
"""What heat leaves of the log prior, beside the inverse temperature's share of the log density.

With all of it (1), hot lists are as short as the prior has them, and between temperatures .2 and .1
lists that fit appear all at once, which few replicas get through; with none (0), lists of sixty
rules that say nothing have all of the mass below .75. On mushroom, 12 temperatures and 400,000
steps of each drew 72 (0.5), 447 (0.7), 1,824 (0.8) and 208 (1) effective numbers of rules.
"""

COLUMN, LOW, HIGH = range(3)  # columns of `items`
CURRENT, TRIAL, BEST = range(3)  # rows of a work space's lists

Array = NDArray[Any]  # the docstrings give dtypes


class CandidateArrays(NamedTuple):
    """Candidates as kernels read them: n of up to H conditions out of I items, p columns."""

    members: Array  # (n, H) int32: the items of each, ascending, -1 behind them
    sizes: Array  # (n,) int8
    starts: Array  # (H + 2,) int64: candidates of size k are starts[k] .. starts[k + 1] - 1
    items: Array  # (I, 3) int32: column, low and high of conditions on codes [low, high), ascending
    item_starts: Array  # (p + 1,) int64: where a column's items start
    offsets: Array  # (p + 1,) int64: where a column's codes start among all L
    widths: Array  # (L,) float64 >= 0: the volume of each


class RowArrays(NamedTuple):
    """Distinct rows as kernels read them, in W words of 64, of C classes.

    Runs are of words whose rows are of one class and one weight, or NaN if weights differ.
    """

    bits: Array  # (I, W) uint64: the rows that satisfy each item
    everyone: Array  # (W,) uint64: all rows
    run_start: Array  # (R,) int64
    run_end: Array  # (R,) int64
    run_class: Array  # (R,) int64
    run_weight: Array  # (R,) float64
    row_weights: Array  # (64 W,) float64
    n_classes: int


class ModelArrays(NamedTuple):
    """Prior and likelihood as kernels read them; see `bayescascade.methods.rules.models`."""

    kind: int  # DENSITY or LABELS
    alpha: float  # Dirichlet concentration
    total: float  # weight of all rows
    log_domain: float  # log volume of the domain, nats
    max_rules: int
    log_length: Array  # (max_rules + 1,) float64: log prior of each number of rules
    log_size: Array  # (H + 1,) float64: log weight, unnormalized, of a rule's size
    log_proposal: Array  # (H + 1,) float64: log probability to propose one candidate of that size
    size_cdf: Array  # (H + 1,) float64: of the sizes proposed
    log_gamma: Array  # (G,) float64: lnG(n + alpha) of whole n; G = 0 where weights are not whole
    log_gamma_all: Array  # (G,) float64: lnG(n + C alpha)


class VolumeSpace(NamedTuple):
    """Scratch for counting cells; see `volumes`."""

    box: Array  # (p, 2) int64: the codes of each column that are left, [low, high)
    users: Array  # (p,) int64: the rules that split a column, as bits
    masks: Array  # (D, 7) int64: the stack of splits; each cuts another column
    shares: Array  # (D, 4) float64


class Workspace(NamedTuple):
    """A list being changed, of at most R rules, the one proposed in its stead, and the best.

    Part l of m + 1 is a rule or, at m, the `else`. ``remaining[slots[l]]`` holds the rows that no
    rule before l captures; a proposal writes to spare slots, which change hands if it is accepted.
    """

    rules: Array  # (3, R) int64: candidates, as it is, as proposed, and of the best list visited
    slots: Array  # (2, R + 1) int64
    remaining: Array  # (2 R + 2, W) uint64
    captured: Array  # (W,) uint64
    counts: Array  # (C,) float64: of the part being counted
    log_volumes: Array  # (2, R + 1) float64, nats
    terms: Array  # (2, R + 1) float64: contribution of each part to the log likelihood
    sizes: Array  # (3,) int64: numbers of rules
    used: Array  # (H + 1,) int64
    members: Array  # (H,) int64: a candidate being looked up
    space: VolumeSpace


def new_space(candidates: CandidateArrays) -> VolumeSpace:
    """Allocate scratch for counting cells."""
    n_columns = candidates.offsets.shape[0] - 1
    depth = min(n_columns, MAX_RULES * candidates.members.shape[1]) + 2
    box, users = np.empty((n_columns, 2), np.int64), np.empty(n_columns, np.int64)
    return VolumeSpace(box, users, np.empty((depth, 7), np.int64), np.empty((depth, 4)))


def new_workspace(candidates: CandidateArrays, rows: RowArrays) -> Workspace:
    """Allocate a work space; `load` fills it."""
    return workspace_of(new_workspaces(candidates, rows, 1), 0)


def new_workspaces(candidates: CandidateArrays, rows: RowArrays, n_lists: int) -> Workspace:
    """Allocate work spaces of several lists: what is not scratch has one more axis, the first."""
    most, n_words = candidates.members.shape[1], rows.everyone.shape[0]
    return Workspace(
        rules=np.zeros((n_lists, 3, MAX_RULES), np.int64),
        slots=np.zeros((n_lists, 2, MAX_RULES + 1), np.int64),
        # untouched slots cost address space, not memory
        remaining=np.empty((n_lists, 2 * MAX_RULES + 2, n_words), np.uint64),
        captured=np.empty(n_words, np.uint64),
        counts=np.zeros(rows.n_classes),
        log_volumes=np.zeros((n_lists, 2, MAX_RULES + 1)),
        terms=np.zeros((n_lists, 2, MAX_RULES + 1)),
        sizes=np.zeros((n_lists, 3), np.int64),
        used=np.zeros(most + 1, np.int64),
        members=np.empty(most, np.int64),
        space=new_space(candidates),
    )


def workspace_of(works: Workspace, k: int) -> Workspace:
    """Return the work space of one of several lists; scratch is shared."""
    return Workspace(
        works.rules[k], works.slots[k], works.remaining[k], works.captured, works.counts,
        works.log_volumes[k], works.terms[k], works.sizes[k], works.used, works.members,
        works.space,
    )  # fmt: skip
