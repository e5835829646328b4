"""The shared arrays of kernels: those of a table, of a model and of a work space."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MOVES = ("grow", "prune", "change", "swap", "regroup", "graft")
GROW, PRUNE, CHANGE, SWAP, REGROUP, GRAFT = range(6)

LEAF_MODEL, BRANCH_MODEL = 0, 1
EPS = 0.3  # share of each choice in a split proposal that ignores the data

# columns of the integer node table
FEATURE, PARENT, FIRST, NEXT, N_CHILDREN, START, END, N_SPLITTABLE, READY, N_FIELDS = range(10)
# lists: splittable leaves; inner nodes over leaves; inner nodes; nodes not in use
GROWABLE, TWIGS, INNER, FREE = range(4)
COUNT, LOG_VOLUME, VALUE, LOG_NORM, LOG_SPLITS, N_REALS = range(6)  # columns of the real node table
N_LEAVES, N_USED = 4, 5  # entries of `sizes` after the lists' lengths
COUNTED, SCORED = 1, 2  # values of READY: there is a histogram; there are also split scores
PROPOSED, IN_PLACE, ORDERED = 0, 1, 2  # rows of `assign`
WEIGHT, WIDTH, SCRATCH = 0, 1, 2  # rows of `branch`


Array = NDArray[Any]  # docstrings and comments give dtypes


class TableArrays(NamedTuple):
    """A table for kernels: p columns, N distinct rows, L levels in total."""

    codes: Array  # (p, N) uint8 or uint16
    row_codes: Array  # (N, p): the same codes
    weights: Array  # (N,) float64 > 0
    nominal: Array  # (p,) bool
    n_levels: Array  # (p,) int64
    offsets: Array  # (p + 1,) int64: where a column's levels start among the L
    widths: Array  # (L,) float64 > 0


class CascadeArrays(NamedTuple):
    """A cascade model for kernels, with Q levels in the widest column."""

    kind: int  # LEAF_MODEL or BRANCH_MODEL
    rate: float  # Poisson mean
    alpha: float  # Dirichlet concentration
    max_leaves: int  # >= 1
    by_levels: bool  # whether each remaining level has its own branch
    max_branches: int  # >= 2
    max_proposed: int  # B: most branches of a proposed split; flattening can give more
    branch_log_weights: Array  # (B + 1,) float64, unnormalized, used at 2 .. B
    branch_log_norms: Array  # (B + 1,) float64: log sums of the first of them
    inclusion: Array  # (p + 1,) float64: log prior of d used columns; zeros without that prior
    log_stirling: Array  # (S + 1, S + 1) float64: log Stirling numbers of the second kind
    log_gamma: Array  # (G,) float64: lnG(n + alpha) for integer weights n; otherwise G = 0
    log_integers: Array  # (S + 1,) float64
    independent: bool  # whether leaves are independent, not uniform
    leaf_alpha: float  # Dirichlet concentration inside leaves
    leaf_log_gamma: Array  # as `log_gamma`, for `leaf_alpha`; G = 0 also if unused
    dependent: bool  # whether columns depend on each other inside a leaf
    is_generative: bool  # whether the prior is the generative process
    log_stop: float  # log of its probability of a leaf
    log_go: float  # log of its probability of a split
    log_ways: Array  # (p, Q + 1) float64: log number of splits of a column by its remaining levels
    n_kept: int  # columns that every path leaves whole


class DependenceWorkspace(NamedTuple):
    """Space for one dependent leaf; s and t index its k columns with two or more levels left."""

    concentration: float  # pseudo-rows of the prior
    n_left: Array  # (p,) int64: number of remaining levels of each column
    free: Array  # (p,) int64: the columns with two or more
    places: Array  # (p,) int64: a row's levels in them
    shares: Array  # (p,) float64: one over their numbers of levels
    inverses: Array  # (p,) float64: one over the probabilities of a row's levels
    log_columns: Array  # (p,) float64: ln M_s
    logs: Array  # (p, p) float64: ln W_st for t < s
    weights: Array  # (p, p) float64: scaled W_st, or ln W_st if it does not fit into floats
    graph: Array  # (p, p) float64: weights during the elimination
    pairs: Array  # (L, L) float64: in a chain, the weights of pairs of levels


class CascadeWorkspace(NamedTuple):
    """The tree of a chain, with at most C nodes, and Q levels in the widest column.

    A node's rows are ``rows[start:end]``, so a move touches the rows of one node only; its children
    are linked in the order of their blocks' lowest codes. ``histogram[node]`` has the weight of
    each level among its rows. It is computed when needed and kept until the rows change, so most
    proposals need no pass over rows. With independent leaves B = Q + 2, and the histograms from C
    on are scratch for proposed branches; otherwise B = 0.
    """

    nodes: Array  # (C, N_FIELDS) int64
    reals: Array  # (C, N_REALS) float64
    box: Array  # (C, p) uint64: remaining blocks at the node
    histogram: Array  # (C + B, L) float64
    score: Array  # (C, p) float64: log weight of each column for a split of the node
    rows: Array  # (N,) int32: row indices, contiguous per node
    spare: Array  # (2, N) int32: scratch for partitioning; rows saved while a move is tried
    lists: Array  # (4, C) int64
    places: Array  # (4, C) int64: position of a node in each list, -1 if not in it
    sizes: Array  # (6,) int64
    uses: Array  # (p,) int64: splits on each column
    assign: Array  # (3, Q) int64: branch of each code in the proposed and current split; its rank
    branch: Array  # (3, Q) float64: weight and width of each branch, and scratch
    order: Array  # (Q,) int64: codes in order of density
    words: Array  # (Q,) uint64: blocks of the proposed split
    edges: Array  # (Q + 1,) int64: where the rows of each branch start
    subtree: Array  # (C,) int64: nodes of the subtree of a proposal
    saved_subtree: Array  # (C,) int64: the same before the change, and copies of the nodes
    saved_nodes: Array  # (C, N_FIELDS) int64
    saved_reals: Array  # (C, N_REALS) float64
    saved_box: Array  # (C, p) uint64
    dependence: DependenceWorkspace  # empty unless leaves are dependent


class FlatTree(NamedTuple):
    """Space for a tree as in `Tree`: feature and parent (C,) int32, block (C,) uint64."""

    feature: Array
    parent: Array
    block: Array


def new_workspace(table: TableArrays, model: CascadeArrays, capacity: int) -> CascadeWorkspace:
    """Allocate a work space for trees of up to `capacity` nodes; `load` fills it."""
    p, n_rows = table.codes.shape
    widest = max(2, int(table.n_levels.max()))
    n_branches = widest + 2 if model.independent else 0
    n_levels = int(table.offsets[p])
    nodes, reals, boxes = (capacity, N_FIELDS), (capacity, N_REALS), (capacity, p)
    of_dependence = (p, n_levels) if model.dependent else (0, 0)
    return CascadeWorkspace(*(
        np.empty(nodes, np.int64), np.empty(reals), np.empty(boxes, np.uint64),
        np.empty((capacity + n_branches, n_levels)), np.empty((capacity, p)),
        np.empty(n_rows, np.int32), np.empty((2, n_rows), np.int32),
        np.empty((4, capacity), np.int64), np.empty((4, capacity), np.int64),
        np.zeros(6, np.int64), np.zeros(p, np.int64), np.empty((3, widest), np.int64),
        np.empty((3, widest)), np.empty(widest, np.int64), np.empty(widest, np.uint64),
        np.empty(widest + 1, np.int64), np.empty(capacity, np.int64), np.empty(capacity, np.int64),
        np.empty(nodes, np.int64), np.empty(reals), np.empty(boxes, np.uint64),
        new_dependence_workspace(model.leaf_alpha, *of_dependence),
    ))  # fmt: skip


def new_dependence_workspace(
    concentration: float, n_columns: int, n_levels: int = 0
) -> DependenceWorkspace:
    """Allocate space for dependent leaves of tables with these columns and, for chains, levels."""
    integers, reals = np.empty((3, n_columns), np.int64), np.empty((3, n_columns))
    matrices, pairs = np.empty((3, n_columns, n_columns)), np.empty((n_levels, n_levels))
    return DependenceWorkspace(concentration, *(*integers, *reals, *matrices, pairs))
