"""Stepwise EM for trees of hidden states, one state for each column.

Each column u of a row has a hidden state z_u, one of h. The Chow-Liu tree of the rows joins the
columns, and the states follow it from the root r ::

    p(x, z) = pi(z_r)  prod_(u, v) M_v(z_u, z_v)  prod_u E_u(z_u, x_u)        (v is a child of u)

If each M_v keeps the state, z is one class of the whole row, and p is a mixture with independent
columns. So EM starts from such a mixture, with ``M_v = c I + (1 - c) s`` for its shares s and c =
0.9: from random probabilities it ends in worse maxima. A state then means similar rows in all
columns, and a column mostly keeps the state of its parent. Several members, from different starts,
are learned together, and the density is their average.

With a = `smoothing`, each row of M_v has a pseudo-rows in the shares of z_v, each E_u(z, .) has a
in the shares of the column's levels, halfway between those of all rows and equal ones, and pi has a
in equal shares: the Dirichlet priors of the M step. Stepwise EM (O. Cappe and E. Moulines, On-line
EM, JRSS B 71, 2009) replaces a share of the expected counts by those of a batch of rows, scaled to
all rows; the share falls from 0.3 to 0.03 by half a cosine. The counts of a batch come from one
pass up the tree and one pass down, in products of matrices. Probabilities of a row are multiplied
in float32, and the logarithms of their norms are summed in float64.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import csc_array

from bayescascade.base.arrays import Codes, Floats, Integers, Reals
from bayescascade.base.watch import check_time
from bayescascade.methods.density.mixtures.em import (
    Components,
    EMSettings,
    Indicators,
    maximized,
    parents_first,
)

EPOCHS = 20
"""Passes through the rows over which the share of a batch falls."""

_FIRST, _LAST = 0.3, 0.03  # shares of a batch in the counts
_KEEPS = 0.9  # initial probability that a column keeps the state of its parent
_LARGEST, _SMALLEST, _FEWEST = 500, 32, 16  # rows of a batch; batches
_TINY = np.float32(1e-30)  # against 0 / 0


class HiddenTrees(NamedTuple):
    """The probabilities of m trees of hidden states, which join the columns in the same way."""

    parents: Integers  # (p,), -1 for the root
    first: Reals  # (m, 1, h), of the root's states
    moves: Reals  # (p, m, h, h), of a column's state, in the row of its parent's state
    levels: Reals  # (m, L + p, h), of all columns' levels, and then of each one's missing cell
    starts: Integers  # (p,), the place of each column's first level

    @property
    def order(self) -> Sequence[int]:
        """The columns, parents before their children."""
        return parents_first(tuple(self.parents.tolist()))

    def cells(self, codes: Codes | Integers) -> Integers:
        """Return the places in `levels` of (p, n) coded rows."""
        missing = self.levels.shape[1] - self.starts.size + np.arange(self.starts.size)
        return np.where(codes < 0, missing[:, np.newaxis], codes + self.starts[:, np.newaxis])


class Counts(NamedTuple):
    """Expected counts of states, of pairs of them along the tree, and of levels in states."""

    first: Reals  # (m, 1, h)
    moves: Reals  # (p, m, h, h)
    levels: Reals  # (m, L, h)


def started(rows: Indicators, mixtures: Sequence[Components]) -> HiddenTrees:
    """Return trees whose columns have the class of a mixture as their state, mostly."""
    tree = maximized(rows, EMSettings("dependent", 1.0, 1), np.ones((rows.weights.size, 1)))
    assert tree.parents is not None
    shares = np.exp([[one.log_shares] for one in mixtures])
    moves = _KEEPS * np.eye(shares.shape[-1]) + (1 - _KEEPS) * shares
    levels = np.exp([one.log_levels.T for one in mixtures])
    return HiddenTrees(
        tree.parents[0],
        shares.astype(np.float32),
        np.repeat(moves[np.newaxis].astype(np.float32), len(rows.codes), axis=0),
        with_missing(levels.astype(np.float32), len(rows.codes)),
        rows.starts,
    )


def with_missing(levels: Reals, n_columns: int) -> Reals:
    """Return (m, L, h) probabilities with a row of ones for the missing cell of each column."""
    missing = np.ones_like(levels, shape=(len(levels), n_columns, levels.shape[2]))
    return np.concatenate([levels, missing], axis=1)


def epochs(
    rows: Indicators, trees: HiddenTrees, smoothing: float, rng: np.random.Generator
) -> Iterator[HiddenTrees]:
    """Yield the trees after each of `EPOCHS` passes of stepwise EM through the rows."""
    total = rows.weights.sum()
    # heavy rows are in several batches, so that these are alike
    times = np.rint(rows.weights * (rows.weights.size / total)).clip(1).astype(np.int64)
    copies, n = np.repeat(np.arange(times.size), times), int(times.sum())
    n_batches = max(1, n // min(_LARGEST, max(_SMALLEST, n // _FEWEST)))
    prior = (smoothing * rows.prior[:, np.newaxis]).astype(np.float32)
    kept: Counts | None = None
    for epoch in range(EPOCHS):
        check_time()
        for i, batch in enumerate(np.array_split(rng.permutation(copies), n_batches)):
            done = (epoch * n_batches + i) / (EPOCHS * n_batches)
            share = _LAST + (_FIRST - _LAST) * 0.5 * (1 + np.cos(np.pi * done))
            weights = rows.weights[batch] / times[batch]
            weights *= total / weights.sum()
            counted = expected_counts(trees, rows.codes[:, batch], weights)
            kept = counted if kept is None else _moved(kept, counted, np.float32(share))
            trees = _maximized(trees, kept, prior, smoothing)
        yield trees


def expected_counts(trees: HiddenTrees, codes: Codes | Integers, weights: Floats) -> Counts:
    """Return the expected counts of weighted rows (p, n)."""
    inside, sent, _ = pass_up(trees, codes)
    by = weights.astype(np.float32)[:, np.newaxis]
    (p, n), (m, n_levels, h) = codes.shape, trees.levels.shape
    moves, beliefs = np.zeros_like(trees.moves), np.empty((p, m, n, h), inside[0].dtype)
    for u, outside in pass_down(trees, inside, sent, beliefs):
        moves[u] = trees.moves[u] * ((outside * by).transpose(0, 2, 1) @ inside[u])
    first = (beliefs[trees.order[0]] * by).sum(axis=1, keepdims=True)
    cells = trees.cells(codes).ravel()
    of_cells = csc_array((np.tile(by[:, 0], p), cells, np.arange(p * n + 1)), (n_levels, p * n))
    levels = of_cells @ beliefs.transpose(0, 2, 1, 3).reshape(p * n, m * h)
    return Counts(first, moves, levels[:-p].reshape(-1, m, h).swapaxes(0, 1))


def pass_up(trees: HiddenTrees, codes: Codes | Integers) -> tuple[list[Reals], list[Reals], Floats]:
    """Return messages up the trees for (p, n) coded rows, and log probabilities of rows.

    First the probabilities of the cells at and below each column given its state, (m, n, h), those
    of the root times the shares of its states; then the same given the parent's state. Both are
    scaled for each row. The log probabilities are (m, n), nats. Cells coded -1 are summed out.
    """
    own, norms = trees.levels.take(trees.cells(codes), axis=1), list[Reals]()  # (m, p, n, h)
    inside, sent = [trees.first] * len(codes), [trees.first] * len(codes)
    reached, ones = dict[int, Reals](), np.ones_like(trees.first, shape=(own.shape[3], 1))

    def normalized(messages: Reals) -> Reals:
        norms.append(messages @ ones + _TINY)  # a third of the time of a sum
        scaled: Reals = messages / norms[-1]
        return scaled

    for u in reversed(trees.order):
        parent, messages = int(trees.parents[u]), own[:, u]
        if u in reached:
            messages *= reached.pop(u)
        if parent < 0:
            inside[u] = normalized(messages * trees.first)
        else:
            inside[u], sent[u] = messages, messages @ trees.moves[u].transpose(0, 2, 1) + _TINY
            both = reached[parent] * sent[u] if parent in reached else sent[u]
            reached[parent] = normalized(both)  # or many children underflow
    log_probabilities: Floats = np.log(norms, dtype=np.float64).sum(axis=0)[..., 0]
    return inside, sent, log_probabilities


def pass_down(
    trees: HiddenTrees, inside: list[Reals], sent: list[Reals], beliefs: Reals
) -> Iterator[tuple[int, Reals]]:
    """Fill in probabilities of states (p, m, n, h) given rows, from the messages up the trees.

    Yields each column but the root, with the message from its parent, (m, n, h): the probability of
    the parent's states given the cells that are not at or below the column, over a factor.
    """
    for u in trees.order:
        parent = int(trees.parents[u])
        if parent < 0:
            beliefs[u] = inside[u]
        else:
            outside = beliefs[parent] / sent[u]
            np.multiply(outside @ trees.moves[u], inside[u], out=beliefs[u])
            yield u, outside


def _moved(counts: Counts, counted: Counts, share: np.float32) -> Counts:
    """Move counts towards those of a batch, in place."""
    for own, new in zip(counts, counted, strict=True):
        own += share * (new - own)
    return counts


def _maximized(trees: HiddenTrees, counts: Counts, prior: Reals, smoothing: float) -> HiddenTrees:
    """Return the most probable probabilities given expected counts and the pseudo-rows."""
    a = np.float32(smoothing)
    first = counts.first + a / counts.first.shape[-1]
    ones = np.ones_like(prior, shape=(first.shape[-1], 1))
    of_state = ones.T @ counts.moves + np.float32(1.0)
    moves = counts.moves + a * of_state / (of_state @ ones)
    levels = counts.levels + prior
    totals = np.add.reduceat(levels, trees.starts, axis=1)
    levels /= np.repeat(totals, np.diff(trees.starts, append=levels.shape[1]), axis=1)
    return trees._replace(
        first=first / first.sum(axis=2, keepdims=True),
        moves=moves / (moves @ ones),
        levels=with_missing(levels, trees.starts.size),
    )
