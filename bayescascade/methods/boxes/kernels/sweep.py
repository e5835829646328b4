"""A block of Metropolis-Hastings steps on a union of boxes.

In each column, a box contains a range of cells. Cells are numbered from 0 to n_cuts, and a side at
the first or last cell is open. A move removes up to two boxes and adds up to two, which wait behind
the others; the rows of the proposed union are found as bits.

slide
    Any closed side of any box, by any power of two cells, either way. It stays closed, so the
    number of closed sides is the same for the reverse move.
toggle
    Open any side of any box; or close it, at any cell that leaves the box at least one cell.
shift
    Both sides of a column, if they are closed, by any power of two cells.
add, drop
    A box around any positive: each side is open, or closed with probability q at any cell that
    keeps the positive inside. All positives inside may propose a box, so its probability is the
    mean over them. Drop any box.
split, join
    Split any box in one column into two, with or without cells left out between them. Join any two
    boxes that differ in one column only, and share no cell there.
"""

from math import log

import numpy as np

from bayescascade.base.chain_kernels import accept
from bayescascade.base.jit import inner_kernel, kernel
from bayescascade.methods.boxes.kernels.layout import (
    DENSITY,
    ENTERED,
    FIRST,
    INSIDE,
    N_BOXES,
    N_FRESH,
    NEXT,
    NOW,
    SECOND,
    SIDES,
    Array,
    BoxModel,
    BoxWorkspace,
    box_probability,
    cover,
    fill,
    gained,
    log_density,
    n_closed,
)

MOVES = ("slide", "toggle", "shift", "add", "drop", "split", "join")
SLIDE, TOGGLE, SHIFT, ADD, DROP, SPLIT, JOIN = range(7)

IMPROVEMENT = 1e-8  # nats: more than all rounding errors

# -- moves: each notes boxes, and returns its log Hastings ratio, or NaN ---------------------------


@inner_kernel
def copy(source, target):
    """Copy an array of one axis."""
    for place in range(source.shape[0]):
        target[place] = source[place]


@inner_kernel
def below(rng, n):
    """Return a number from 0 to n - 1."""
    return np.int64(rng.random() * n)


@inner_kernel
def take(rng, model, work):
    """Draw a box to remove, and add a copy of it."""
    box = below(rng, work.numbers[N_BOXES])
    work.numbers[FIRST] = box
    work.numbers[N_FRESH] = 1
    copy(work.boxes[box], work.boxes[model.max_boxes])
    return box


@inner_kernel
def draw_step(rng, model, column):
    """Draw a power of two, and a sign."""
    step = 1 << below(rng, model.n_powers[column])
    return step if rng.random() < 0.5 else -step


@inner_kernel
def closed_side(model, box, place):
    """Return the closed side of a box after this many other closed ones."""
    for side in range(box.shape[0]):
        place -= box[side] < model.n_cuts[side // 2] if side % 2 else box[side] > 0
        if place < 0:
            return side
    return -1


@inner_kernel
def slide(rng, model, work):
    """Move a closed side."""
    box = take(rng, model, work)
    side = closed_side(model, work.boxes[box], below(rng, n_closed(model, work.boxes[box])))
    if side < 0:
        return np.nan
    column, is_upper, n_cuts = side // 2, side % 2, model.n_cuts[side // 2]
    cell = work.boxes[box, side] + draw_step(rng, model, column)
    least = work.boxes[box, 2 * column] if is_upper else 1
    most = n_cuts - 1 if is_upper else work.boxes[box, 2 * column + 1]
    if cell < least or cell > most:
        return np.nan
    work.boxes[model.max_boxes, side] = cell
    return 0.0


@inner_kernel
def toggle(rng, model, work):
    """Open a closed side, or close an open one."""
    box = take(rng, model, work)
    side = below(rng, 2 * model.n_cuts.shape[0])
    column, is_upper, n_cuts = side // 2, side % 2, model.n_cuts[side // 2]
    least = work.boxes[box, 2 * column] if is_upper else 1
    n_places = n_cuts - least if is_upper else work.boxes[box, 2 * column + 1]
    if n_places == 0:
        return np.nan
    opened = n_cuts if is_upper else 0
    if work.boxes[box, side] == opened:
        work.boxes[model.max_boxes, side] = least + below(rng, n_places)
        return log(n_places)
    work.boxes[model.max_boxes, side] = opened
    return -log(n_places)


@inner_kernel
def shift(rng, model, work):
    """Move both sides of a column."""
    box = take(rng, model, work)
    column = below(rng, model.n_cuts.shape[0])
    first, last = work.boxes[box, 2 * column], work.boxes[box, 2 * column + 1]
    if first == 0 or last == model.n_cuts[column]:
        return np.nan
    step = draw_step(rng, model, column)
    if first + step < 1 or last + step > model.n_cuts[column] - 1:
        return np.nan
    work.boxes[model.max_boxes, 2 * column] += step
    work.boxes[model.max_boxes, 2 * column + 1] += step
    return 0.0


@inner_kernel
def add(rng, model, work):
    """Add a box around a positive; `step` calculates the probability of the box."""
    if work.numbers[N_BOXES] == model.max_boxes:
        return np.nan
    row = below(rng, model.positives.shape[0])
    fresh = work.boxes[model.max_boxes]
    for column in range(model.n_cuts.shape[0]):
        n_cuts, code = model.n_cuts[column], model.positives[row, column]
        fresh[2 * column], fresh[2 * column + 1] = 0, n_cuts
        if code > 0 and rng.random() < model.close:
            fresh[2 * column] = 1 + below(rng, code)
        if code < n_cuts and rng.random() < model.close:
            fresh[2 * column + 1] = code + below(rng, n_cuts - code)
    work.numbers[N_FRESH] = 1
    return -log(work.numbers[N_BOXES] + 1)


@inner_kernel
def drop(rng, model, work):
    """Remove a box; `step` calculates the probability of adding it back."""
    take(rng, model, work)
    work.numbers[N_FRESH] = 0
    return log(work.numbers[N_BOXES])


@inner_kernel
def log_split(model, n_boxes, length):
    """Return the log probability of a split, from the number of cells of a column minus one."""
    return -log(n_boxes * model.n_cuts.shape[0] * 0.5 * length * (length + 1.0))


@inner_kernel
def split(rng, model, work):
    """Make two boxes of one."""
    n_boxes, fresh = work.numbers[N_BOXES], model.max_boxes
    box = take(rng, model, work)
    column = below(rng, model.n_cuts.shape[0])
    first, last = work.boxes[box, 2 * column], work.boxes[box, 2 * column + 1]
    length = last - first
    if length == 0 or n_boxes == model.max_boxes:
        return np.nan
    one, other = below(rng, length + 1), below(rng, length)
    left, right = (other, one - 1) if other < one else (one, other)
    copy(work.boxes[box], work.boxes[fresh + 1])
    work.boxes[fresh, 2 * column + 1] = first + left
    work.boxes[fresh + 1, 2 * column] = first + 1 + right
    work.numbers[N_FRESH] = 2
    return -log(0.5 * n_boxes * (n_boxes + 1.0)) - log_split(model, n_boxes, length)


@inner_kernel
def join(rng, model, work):
    """Make one box of two."""
    n_boxes, fresh = work.numbers[N_BOXES], work.boxes[model.max_boxes]
    if n_boxes < 2:
        return np.nan
    first = take(rng, model, work)
    second = below(rng, n_boxes - 1)
    second += second >= first
    column = -1
    for each in range(model.n_cuts.shape[0]):
        for side in (2 * each, 2 * each + 1):
            if work.boxes[first, side] != work.boxes[second, side]:
                if column not in (-1, each):
                    return np.nan
                column = each
    left, right = first, second
    if work.boxes[first, 2 * column] > work.boxes[second, 2 * column]:
        left, right = second, first
    if work.boxes[left, 2 * column + 1] >= work.boxes[right, 2 * column]:
        return np.nan
    fresh[2 * column] = work.boxes[left, 2 * column]
    fresh[2 * column + 1] = work.boxes[right, 2 * column + 1]
    work.numbers[SECOND] = second
    length = fresh[2 * column + 1] - fresh[2 * column]
    return log_split(model, n_boxes - 1, length) + log(0.5 * n_boxes * (n_boxes - 1.0))


@inner_kernel
def propose(rng, model, work, move):
    """Propose a move; return its log Hastings ratio, or NaN if it is impossible."""
    work.numbers[N_FRESH] = 0
    work.numbers[FIRST] = -1
    work.numbers[SECOND] = -1
    if move == ADD:
        return add(rng, model, work)
    if work.numbers[N_BOXES] == 0:
        return np.nan
    if move == SLIDE:
        return slide(rng, model, work)
    if move == TOGGLE:
        return toggle(rng, model, work)
    if move == SHIFT:
        return shift(rng, model, work)
    if move == DROP:
        return drop(rng, model, work)
    if move == SPLIT:
        return split(rng, model, work)
    return join(rng, model, work)


# -- steps -----------------------------------------------------------------------------------------


@inner_kernel
def is_new(work, fresh):
    """Whether a box differs from all that stay."""
    for box in range(work.numbers[N_BOXES]):
        if box in (work.numbers[FIRST], work.numbers[SECOND]):
            continue
        is_equal = True
        for side in range(fresh.shape[0]):
            if work.boxes[box, side] != fresh[side]:
                is_equal = False
                break
        if is_equal:
            return False
    return True


@inner_kernel
def put_box(work, source, target):
    """Put a box and its rows at a place."""
    copy(work.boxes[source], work.boxes[target])
    copy(work.inside[source], work.inside[target])


@inner_kernel
def put_boxes(model, work):
    """Replace the removed boxes by the added ones."""
    first, second, n_fresh = work.numbers[FIRST], work.numbers[SECOND], work.numbers[N_FRESH]
    if n_fresh > 0:
        if first < 0:
            first = work.numbers[N_BOXES]
            work.numbers[N_BOXES] += 1
        put_box(work, model.max_boxes, first)
    if n_fresh == 2:
        put_box(work, model.max_boxes + 1, work.numbers[N_BOXES])
        work.numbers[N_BOXES] += 1
    gone = second if n_fresh > 0 else first
    if gone >= 0:
        work.numbers[N_BOXES] -= 1
        put_box(work, work.numbers[N_BOXES], gone)


@inner_kernel
def weigh(model, work):
    """Return the increase of the weights of positives and of negatives inside."""
    now, then = work.covered[NOW], work.covered[NEXT]
    middle, end = model.n_positive_words, now.shape[0]
    inside = gained(model, then, now, 0, middle) - gained(model, now, then, 0, middle)
    entered = gained(model, then, now, middle, end) - gained(model, now, then, middle, end)
    return inside, entered


@inner_kernel
def step(rng, model, work, move, beta):
    """Propose a move, and make it if accepted; return whether it was."""
    log_ratio = propose(rng, model, work, move)
    if np.isnan(log_ratio):
        return False
    sides, n_boxes = work.sums[SIDES], work.numbers[N_BOXES]
    fresh, n_fresh = model.max_boxes, work.numbers[N_FRESH]
    first, second = work.numbers[FIRST], work.numbers[SECOND]
    for box in range(fresh, fresh + n_fresh):
        if not is_new(work, work.boxes[box]):
            return False
        sides += n_closed(model, work.boxes[box])
        n_boxes += 1
        fill(model, work, box)
    for box in (first, second):
        if box >= 0:
            sides -= n_closed(model, work.boxes[box])
            n_boxes -= 1
    if move in (ADD, DROP):
        probability = box_probability(model, work, fresh if move == ADD else first)
        if probability == 0.0:  # too small for a float
            return False
        log_ratio += -log(probability) if move == ADD else log(probability)
    copy(
        work.inside[fresh] if n_fresh > 0 else model.above[0, model.n_cuts[0] + 1],
        work.covered[NEXT],
    )
    if n_fresh == 2:
        cover(work, fresh + 1, NEXT)
    for box in range(work.numbers[N_BOXES]):
        if box not in (first, second):
            cover(work, box, NEXT)
    inside, entered = weigh(model, work)
    inside, entered = work.sums[INSIDE] + inside, work.sums[ENTERED] + entered
    density = log_density(model, inside, entered, sides, n_boxes)
    if not accept(rng, beta * (density - work.sums[DENSITY]) + log_ratio):
        return False
    copy(work.covered[NEXT], work.covered[NOW])
    put_boxes(model, work)
    work.sums[INSIDE], work.sums[ENTERED], work.sums[SIDES] = inside, entered, sides
    work.sums[DENSITY] = density
    return True


@kernel
def load(model: BoxModel, work: BoxWorkspace) -> None:
    """Calculate the rows covered, from `work.boxes` and their number."""
    copy(model.above[0, model.n_cuts[0] + 1], work.covered[NOW])  # no row
    copy(work.covered[NOW], work.covered[NEXT])
    sides = 0.0
    for box in range(work.numbers[N_BOXES]):
        fill(model, work, box)
        cover(work, box, NEXT)
        sides += n_closed(model, work.boxes[box])
    inside, entered = weigh(model, work)
    copy(work.covered[NEXT], work.covered[NOW])
    work.sums[INSIDE], work.sums[ENTERED], work.sums[SIDES] = inside, entered, sides
    work.sums[DENSITY] = log_density(model, inside, entered, sides, work.numbers[N_BOXES])


@kernel
def sweep(
    rng: np.random.Generator,
    model: BoxModel,
    work: BoxWorkspace,
    n_steps: int,
    beta: float,
    move_cdf: Array,
    proposed: Array,
    accepted: Array,
    best: Array,
) -> int:
    """Take steps; write the best union to `best`, and return its number of boxes.

    move_cdf (7,): cumulative probabilities of the moves; proposed, accepted (7,) int64 are counted
    up; best (M, 2 d) int64.
    """
    highest, n_best = work.sums[DENSITY], work.numbers[N_BOXES]
    for box in range(n_best):
        copy(work.boxes[box], best[box])
    for _ in range(n_steps):
        u, move = rng.random(), 0
        while u >= move_cdf[move]:
            move += 1
        proposed[move] += 1
        if not step(rng, model, work, move, beta):
            continue
        accepted[move] += 1
        if work.sums[DENSITY] > highest + IMPROVEMENT:
            highest, n_best = work.sums[DENSITY], work.numbers[N_BOXES]
            for box in range(n_best):
                copy(work.boxes[box], best[box])
    return int(n_best)
