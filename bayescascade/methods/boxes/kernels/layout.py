"""A union of boxes as kernels have it: which rows are where, and its density, nats."""

from math import lgamma
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.jit import inner_kernel

N_BOXES, N_REGIONS, N_FRESH, FIRST, SECOND = range(5)  # places in `numbers`
INSIDE, ENTERED, SIDES, DENSITY = range(4)  # places in `sums`

Array = NDArray[Any]  # the docstrings give dtypes


class BoxModel(NamedTuple):
    """Rows and prior as kernels read them: n rows, d columns, C cells at most.

    codes (n, d) uint16: cells of rows; order (d, n) int32: rows by their cells; starts (d, C + 1)
    int64: where the rows of a cell start; n_cuts, n_powers (d,) int64: cells but one, and how many
    powers of two are less; is_positive (n,) bool; weights (n,) float64 > 0; positives (P,) int32:
    rows; totals (2,): weights of positives and negatives; is_beta; gain, negative_weight,
    box_cost and side_cost: nats that a positive inside, a negative inside, a box and a closed side
    are worth; prior_weight > 0: of rates; of_one, of_both (W,) float64: log gamma of
    prior_weight, and of twice that, plus 0, 1, 2, ..., which most weights are; close: q;
    max_boxes.
    """

    codes: Array
    order: Array
    starts: Array
    n_cuts: Array
    n_powers: Array
    is_positive: Array
    weights: Array
    positives: Array
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


class BoxWork(NamedTuple):
    """A union while it changes, of up to M boxes.

    boxes (M, 2 d) int64: the first and last cell of each column; covers (n,) int32: boxes that hold
    each row; fresh, regions (2, 2 d) int64: boxes that a move brings, and what changes hands; signs
    (2,) int64: 1 if a region enters; numbers (5,) int64; sums (4,) and change (2,) float64: weights
    of positives and negatives inside, closed sides and log density, and what a move adds to the
    first two.
    """

    boxes: Array
    covers: Array
    fresh: Array
    regions: Array
    signs: Array
    numbers: Array
    sums: Array
    change: Array


# -- rows ------------------------------------------------------------------------------------------


@inner_kernel
def is_inside(model, row, region):
    """Whether a row is in a box."""
    for column in range(model.codes.shape[1]):
        code = model.codes[row, column]
        if code < region[2 * column] or code > region[2 * column + 1]:
            return False
    return True


@inner_kernel
def narrowest(model, region):
    """Return the column whose cells in a box hold the fewest rows."""
    least, best = model.codes.shape[0] + 1, 0
    for column in range(model.codes.shape[1]):
        first, last = region[2 * column], region[2 * column + 1]
        n_rows = model.starts[column, last + 1] - model.starts[column, first]
        if n_rows < least:
            least, best = n_rows, column
    return best


@inner_kernel
def walk(model, work, region, sign, is_done):
    """Add up what is covered anew, or no more, if a region enters or leaves; or let it do so."""
    column = narrowest(model, region)
    start = model.starts[column, region[2 * column]]
    stop = model.starts[column, region[2 * column + 1] + 1]
    last = 0 if sign > 0 else 1
    for place in range(start, stop):
        row = model.order[column, place]
        if not is_inside(model, row, region):
            continue
        if is_done:
            work.covers[row] += sign
        elif work.covers[row] == last:
            which = 0 if model.is_positive[row] else 1
            work.change[which] += sign * model.weights[row]


@inner_kernel
def box_probability(model, region):
    """Return the probability that a box is proposed by `add`."""
    n_columns = model.codes.shape[1]
    column = narrowest(model, region)
    start = model.starts[column, region[2 * column]]
    stop = model.starts[column, region[2 * column + 1] + 1]
    total = 0.0
    for place in range(start, stop):
        row = model.order[column, place]
        if not (model.is_positive[row] and is_inside(model, row, region)):
            continue
        product = 1.0
        for each in range(n_columns):
            code, beyond = model.codes[row, each], model.n_cuts[each] - model.codes[row, each]
            if region[2 * each] > 0:
                product *= model.close / code
            elif code > 0:
                product *= 1.0 - model.close
            if region[2 * each + 1] < model.n_cuts[each]:
                product *= model.close / beyond
            elif beyond > 0:
                product *= 1.0 - model.close
        total += product
    return total / model.positives.shape[0]


@inner_kernel
def log_gamma(table, weight, offset):
    """Return the log gamma of a weight and an offset, from the table if it is there."""
    whole = np.int64(weight)
    if whole < table.shape[0] and whole == weight:
        return table[whole]
    return lgamma(weight + offset)


@inner_kernel
def log_rate(model, positives, negatives):
    """Return the log of the integral over a rate, but for a constant."""
    both = log_gamma(model.of_both, positives + negatives, 2.0 * model.prior_weight)
    positives = log_gamma(model.of_one, positives, model.prior_weight)
    return positives + log_gamma(model.of_one, negatives, model.prior_weight) - both


@inner_kernel
def log_density(model, inside, entered, n_sides, n_boxes):
    """Return the log density of a union, but for a constant, nats; -inf if it has none."""
    costs = model.box_cost * n_boxes + model.side_cost * n_sides
    if model.is_beta:
        if inside * (model.totals[1] - entered) < entered * (model.totals[0] - inside):
            return -np.inf
        rates = log_rate(model, inside, entered)
        rates += log_rate(model, model.totals[0] - inside, model.totals[1] - entered)
        return rates - costs
    return inside * model.gain - model.negative_weight * entered - costs


@inner_kernel
def n_closed(model, box):
    """Return how many sides of a box are closed."""
    found = 0
    for column in range(model.codes.shape[1]):
        found += box[2 * column] > 0
        found += box[2 * column + 1] < model.n_cuts[column]
    return found
