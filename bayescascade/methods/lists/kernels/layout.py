"""The arrays of kernels by name: candidates, rows, models and work spaces.

Bit ``i % 64`` of word ``i // 64`` stands for row ``i``; rows are ordered so that most words have
rows of one class and one weight, which one population count counts.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MOVES = ("add", "remove", "replace", "edit", "swap", "relocate")
ADD, REMOVE, REPLACE, EDIT, SWAP, RELOCATE = range(6)

DENSITY, LABELS = 0, 1
MAX_RULES = 62  # a set of rules is the bits of one int64

PRIOR_KEPT = 0.8
"""The share of the log prior that is added to the tempered density at high temperatures.

With all of it (1), hot lists are as short as under the prior, and between inverse temperatures .2
and .1 lists that fit appear suddenly, which few replicas pass; with none (0), lists of sixty
useless rules have all of the mass below .75. On mushroom, with 12 temperatures of 400,000 steps,
the effective sample size of the number of rules was 72 (0.5), 447 (0.7), 1,824 (0.8) and 208 (1).
"""

COLUMN, LOW, HIGH = range(3)  # columns of `items`
CURRENT, TRIAL, BEST = range(3)  # rows of a work space's lists

Array = NDArray[Any]  # the docstrings give dtypes


class CandidateArrays(NamedTuple):
    """Arrays of n candidates of up to H conditions, with I items and p columns."""

    members: Array  # (n, H) int32: the items of each, ascending, padded with -1
    sizes: Array  # (n,) int8
    starts: Array  # (H + 2,) int64: candidates of size k are starts[k] .. starts[k + 1] - 1
    items: Array  # (I, 3) int32: column, low and high of conditions on codes [low, high), ascending
    item_starts: Array  # (p + 1,) int64: start of a column's items
    offsets: Array  # (p + 1,) int64: start of a column's codes among all L
    widths: Array  # (L,) float64 >= 0: volume of each code


class RowArrays(NamedTuple):
    """Arrays of distinct rows of C classes, in W words of 64 bits.

    A run has the words of rows of one class and one weight, or weight NaN if weights differ.
    """

    bits: Array  # (I, W) uint64: the rows that satisfy each item
    everyone: Array  # (W,) uint64: all rows
    run_start: Array  # (R,) int64
    run_end: Array  # (R,) int64
    run_class: Array  # (R,) int64
    run_weight: Array  # (R,) float64
    row_weights: Array  # (64 W,) float64
    n_classes: int


class RuleListArrays(NamedTuple):
    """Prior and likelihood as arrays; see `bayescascade.methods.lists.models`."""

    kind: int  # DENSITY or LABELS
    alpha: float  # Dirichlet concentration
    total: float  # weight of all rows
    log_domain: float  # log volume of the domain, nats
    max_rules: int
    log_length: Array  # (max_rules + 1,) float64: log prior of each number of rules
    log_size: Array  # (H + 1,) float64: log weight, unnormalized, of a rule's size
    log_norm: float  # log of the sum of the weights of sizes that have candidates
    # (H + 1, R + 1) float64: log weight of 0, 1, .. rules of a size, over the candidates left
    log_rules: Array
    log_proposal: Array  # (H + 1,) float64: log probability to propose a specific candidate by size
    size_cdf: Array  # (H + 1,) float64: of proposed sizes
    log_gamma: Array  # (G,) float64: lnG(n + alpha) of whole n; G = 0 if weights are not whole
    log_gamma_all: Array  # (G,) float64: lnG(n + C alpha)


class VolumeSpace(NamedTuple):
    """Scratch for counting cells; see `volumes`."""

    box: Array  # (p, 2) int64: remaining codes of each column, [low, high)
    users: Array  # (p,) int64: bits of the rules that split a column
    masks: Array  # (D, 7) int64: the stack of splits, each on another column
    shares: Array  # (D, 4) float64


class RuleListWorkspace(NamedTuple):
    """The current list, of at most R rules, the proposed list, and the best list.

    Part l of m + 1 is a rule or, at m, the `else`. ``remaining[slots[l]]`` has the rows that no
    rule before l captures; a proposal writes to spare slots, which are exchanged if it is accepted.
    """

    rules: Array  # (3, R) int64: candidates of the current, proposed and best list
    slots: Array  # (2, R + 1) int64
    remaining: Array  # (2 R + 2, W) uint64
    captured: Array  # (W,) uint64
    counts: Array  # (C,) float64: of the counted part
    log_volumes: Array  # (2, R + 1) float64, nats
    terms: Array  # (2, R + 1) float64: contribution of each part to the log likelihood
    sizes: Array  # (3,) int64: numbers of rules
    used: Array  # (H + 1,) int64
    members: Array  # (H,) int64: a candidate for `lookup`
    space: VolumeSpace


def new_space(candidates: CandidateArrays) -> VolumeSpace:
    """Allocate scratch for counting cells."""
    n_columns = candidates.offsets.shape[0] - 1
    depth = min(n_columns, MAX_RULES * candidates.members.shape[1]) + 2
    box, users = np.empty((n_columns, 2), np.int64), np.empty(n_columns, np.int64)
    return VolumeSpace(box, users, np.empty((depth, 7), np.int64), np.empty((depth, 4)))


def new_workspaces(candidates: CandidateArrays, rows: RowArrays, n_lists: int) -> RuleListWorkspace:
    """Allocate work spaces for several lists: all but scratch has an additional first axis."""
    most, n_words = candidates.members.shape[1], rows.everyone.shape[0]
    return RuleListWorkspace(
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


def workspace_of(works: RuleListWorkspace, k: int) -> RuleListWorkspace:
    """Return the work space of one of several lists; scratch is shared."""
    return RuleListWorkspace(
        works.rules[k], works.slots[k], works.remaining[k], works.captured, works.counts,
        works.log_volumes[k], works.terms[k], works.sizes[k], works.used, works.members,
        works.space,
    )  # fmt: skip
