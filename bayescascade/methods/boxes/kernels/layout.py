"""Arrays of a union of boxes for kernels: rows as bits, rows of a box, and log densities.

A row is a bit of a 64-bit word; positives come before negatives. The rows of a box are the
intersection of the words of its closed sides, so no row is looked at by itself.
"""

from math import lgamma
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.jit import inner_kernel

N_BOXES, N_FRESH, FIRST, SECOND = range(4)  # places in `numbers`
INSIDE, ENTERED, SIDES, DENSITY = range(4)  # places in `sums`
NOW, NEXT = range(2)  # places in `covered`

ROUNDING = 1e-9  # relative: shares of positives that differ by less are equal

Array = NDArray[Any]  # the docstrings give dtypes


class BoxModel(NamedTuple):
    """Rows and prior as kernels read them: W words of rows, d columns, C cells at most.

    above (d, C + 1, W) uint64: rows whose cell is at least a given one; n_cuts, n_powers (d,)
    int64: number of cells minus one, and number of smaller powers of two; positives (P, d) int64:
    their cells; n_positive_words: number of their words; weights (64 W,) float64, and is_unit:
    whether all are 1; totals (2,): weights of positives and negatives; is_beta; gain,
    negative_weight, box_cost and side_cost: nats for a positive inside, a negative inside, a box
    and a closed side; prior_weight > 0: of rates; of_one, of_both float64: log gamma of
    prior_weight, and of twice that, plus 0, 1, 2, ..., as most weights are integers; close: q;
    max_boxes.
    """

    above: Array
    n_cuts: Array
    n_powers: Array
    positives: Array
    n_positive_words: int
    weights: Array
    is_unit: bool
    totals: Array
    is_beta: bool
    gain: float
    negative_weight: float
    box_cost: float
    side_cost: float
    prior_weight: float
    of_one: Array
    of_both: Array
    close: float
    max_boxes: int


class BoxWorkspace(NamedTuple):
    """A changing union of up to M boxes, and up to two boxes that a move adds.

    boxes (M + 2, 2 d) int64: the first and last cell of each column; inside (M + 2, W) uint64: the
    rows of each box; covered (2, W) uint64: those of the union, current and proposed; numbers (4,)
    int64; sums (4,) float64: weights of positives and negatives inside, closed sides and log
    density.
    """

    boxes: Array
    inside: Array
    covered: Array
    numbers: Array
    sums: Array


# -- rows ------------------------------------------------------------------------------------------


@inner_kernel
def fill(model, work, box):
    """Find the rows of a box."""
    bits, sides = work.inside[box], work.boxes[box]
    for word in range(bits.shape[0]):
        bits[word] = model.above[0, 0, word]
    for column in range(model.n_cuts.shape[0]):
        first, last = sides[2 * column], sides[2 * column + 1]
        if first > 0:
            enter = model.above[column, first]
            for word in range(bits.shape[0]):
                bits[word] &= enter[word]
        if last < model.n_cuts[column]:
            leave = model.above[column, last + 1]
            for word in range(bits.shape[0]):
                bits[word] &= ~leave[word]


@inner_kernel
def cover(work, box, which):
    """Add the rows of a box to the union."""
    bits, covered = work.inside[box], work.covered[which]
    for word in range(bits.shape[0]):
        covered[word] |= bits[word]


@inner_kernel
def count_bits(bits):
    """Return the number of set bits of a word; compiled, this is one instruction."""
    n_bits = 0
    while bits != np.uint64(0):
        bits &= bits - np.uint64(1)
        n_bits += 1
    return n_bits


@inner_kernel
def gained(model, after, before, start, stop):
    """Return the weight of rows, in a range of words, that are only in the proposed union."""
    total, n_rows = 0.0, 0
    for word in range(start, stop):
        bits = after[word] & ~before[word]
        if model.is_unit:
            n_rows += count_bits(bits)
            continue
        while bits != np.uint64(0):
            rest = bits & (bits - np.uint64(1))
            total += model.weights[64 * word + count_bits((bits ^ rest) - np.uint64(1))]
            bits = rest
    return total + n_rows


@inner_kernel
def box_probability(model, work, box):
    """Return the probability that `add` proposes a box, given its rows."""
    sides, bits, total = work.boxes[box], work.inside[box], 0.0
    for word in range(model.n_positive_words):
        left = bits[word]
        while left != np.uint64(0):
            rest = left & (left - np.uint64(1))
            row = 64 * word + count_bits((left ^ rest) - np.uint64(1))
            left, product = rest, 1.0
            for column in range(model.n_cuts.shape[0]):
                n_cuts, code = model.n_cuts[column], model.positives[row, column]
                if sides[2 * column] > 0:
                    product *= model.close / code
                elif code > 0:
                    product *= 1.0 - model.close
                if sides[2 * column + 1] < n_cuts:
                    product *= model.close / (n_cuts - code)
                elif code < n_cuts:
                    product *= 1.0 - model.close
            total += product
    return total / model.positives.shape[0]


# -- densities -------------------------------------------------------------------------------------


@inner_kernel
def log_gamma(table, weight, offset):
    """Return the log gamma of a weight plus an offset, from the table if possible."""
    whole = np.int64(weight)
    if whole < table.shape[0] and whole == weight:
        return table[whole]
    return lgamma(weight + offset)


@inner_kernel
def log_rate(model, positives, negatives):
    """Return the log of the integral over a rate, up to a constant."""
    both = log_gamma(model.of_both, positives + negatives, 2.0 * model.prior_weight)
    positives = log_gamma(model.of_one, positives, model.prior_weight)
    return positives + log_gamma(model.of_one, negatives, model.prior_weight) - both


@inner_kernel
def log_density(model, inside, entered, n_sides, n_boxes):
    """Return the log density of a union up to a constant, nats; -inf for density zero."""
    costs = model.box_cost * n_boxes + model.side_cost * n_sides
    if model.is_beta:
        others = entered * model.totals[0] * (1.0 - ROUNDING)
        if inside * model.totals[1] < others:
            return -np.inf
        rates = log_rate(model, inside, entered)
        rates += log_rate(model, model.totals[0] - inside, model.totals[1] - entered)
        return rates - costs
    return inside * model.gain - model.negative_weight * entered - costs


@inner_kernel
def n_closed(model, box):
    """Return the number of closed sides of a box."""
    found = 0
    for column in range(model.n_cuts.shape[0]):
        found += box[2 * column] > 0
        found += box[2 * column + 1] < model.n_cuts[column]
    return found
