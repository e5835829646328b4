"""The moves on unions of boxes in plain words, each with all of its proposals.

A problem is rows of small whole numbers, which are their cells, flags and weights. A state is a
sorted tuple of boxes, each with a first and a last cell of every column.
"""

import math
from dataclasses import dataclass, field, replace
from itertools import combinations, product

import numpy as np

from bayescascade.methods.boxes.posterior import BoxPosterior


@dataclass(frozen=True)
class Problem:
    """Rows whose unions can all be listed."""

    name: str
    n_cells: tuple[int, ...]
    n_boxes: int
    likelihood: str = "beta"
    weighted: bool = False
    n_rows: int = 12
    settings: dict = field(default_factory=dict)

    @property
    def rows(self):
        """Return rows of which each cell has one, flags and weights."""
        rng = np.random.default_rng([self.n_rows, *self.n_cells])
        rows = rng.integers(0, self.n_cells, (self.n_rows, len(self.n_cells)))
        for column, size in enumerate(self.n_cells):
            rows[:size, column] = rng.permutation(size)
        flags = rng.random(self.n_rows) < 0.4
        flags[:2] = True, False
        weights = rng.random(self.n_rows) + 0.5 if self.weighted else np.ones(self.n_rows)
        return rows, flags, weights

    def setting(self, name):
        """Return a parameter."""
        defaults = {
            "negative_weight": 0.7, "box_cost": 0.3, "side_cost": 0.4, "temperature": 1.5,
            "prior_weight": 0.8,
        }  # fmt: skip
        return {**defaults, **self.settings}[name]

    def changed(self, **settings):
        """Return the problem with other parameters."""
        return replace(self, settings={**self.settings, **settings})

    def posterior(self, **changed):
        """Return the posterior of the rows, some parameters changed."""
        (rows, flags, weights), settings = self.arguments()
        return BoxPosterior(rows, flags, weights, **{**settings, **changed})

    def arguments(self):
        """Return what `BoxPosterior` takes."""
        names = ("negative_weight", "box_cost", "side_cost", "temperature", "prior_weight")
        named = {name: self.setting(name) for name in names}
        return self.rows, {"n_boxes": self.n_boxes, "likelihood": self.likelihood, **named}

    def states(self):
        """Return every state of some density."""
        boxes = sorted(self.single_boxes())
        counts = range(self.n_boxes + 1)
        unions = [tuple(union) for count in counts for union in combinations(boxes, count)]
        return [union for union in unions if self.log_density(union) > -math.inf]

    def single_boxes(self):
        """Return every box."""
        sides = [[(a, b) for a in range(n) for b in range(a, n)] for n in self.n_cells]
        return [tuple(sum(box, ())) for box in product(*sides)]

    def log_density(self, state):
        """Return the formula."""
        rows, flags, weights = self.rows
        inside, outside = [0.0, 0.0], [0.0, 0.0]
        for row, flag, weight in zip(rows.tolist(), flags.tolist(), weights.tolist(), strict=True):
            is_in = any(
                all(box[2 * j] <= row[j] <= box[2 * j + 1] for j in range(len(row)))
                for box in state
            )
            (inside if is_in else outside)[0 if flag else 1] += weight
        costs = self.setting("box_cost") * len(state)
        costs += self.setting("side_cost") * sum(self.n_closed(box) for box in state)
        if self.likelihood == "gibbs":
            worth = inside[0] + self.setting("negative_weight") * outside[1]
            return (worth - costs) / self.setting("temperature")
        positives, negatives = inside[0] + outside[0], inside[1] + outside[1]
        if inside[0] * negatives < inside[1] * positives * (1 - 1e-9):  # around the other class
            return -math.inf
        a = self.setting("prior_weight")

        def log_beta(x, y):
            return math.lgamma(x) + math.lgamma(y) - math.lgamma(x + y)

        rates = sum(log_beta(a + p, a + n) - log_beta(a, a) for p, n in (inside, outside))
        return rates - costs

    def n_closed(self, box):
        """Return how many sides of a box are closed."""
        return sum((box[2 * j] > 0) + (box[2 * j + 1] < n - 1) for j, n in enumerate(self.n_cells))


def _with(state, gone, *fresh):
    """Return a state without boxes and with others; None if one is there already."""
    kept = [box for place, box in enumerate(state) if place not in gone]
    if any(box in kept for box in fresh) or len(set(fresh)) < len(fresh):
        return None
    return tuple(sorted([*kept, *fresh]))


def _replaced(box, side, cell):
    return (*box[:side], cell, *box[side + 1 :])


def _range(problem, box, side):
    """Return the cells at which a side is closed, and the one at which it is open."""
    last = problem.n_cells[side // 2] - 1
    if side % 2:
        return list(range(box[side - 1], last)), last
    return list(range(1, box[side + 1] + 1)), 0


def _steps(n_cells):
    """Return powers of two less than the number of cuts, both ways."""
    n_cuts = n_cells - 1
    n_powers = max(1, (n_cuts - 1).bit_length()) if n_cuts else 0
    return [sign * 2**power for power in range(n_powers) for sign in (1, -1)]


def slide(problem, state):
    """Yield every other state with its probability and Hastings ratio; so do all moves."""
    n_sides = 2 * len(problem.n_cells)
    for place, side in product(range(len(state)), range(n_sides)):
        closed, opened = _range(problem, state[place], side)
        old = state[place][side]
        steps = _steps(problem.n_cells[side // 2])
        if old == opened:
            continue
        for step in steps:
            if old + step in closed:
                fresh = _replaced(state[place], side, old + step)
                chance = 1 / len(state) / problem.n_closed(state[place]) / len(steps)
                yield _with(state, [place], fresh), chance, 0.0


def toggle(problem, state):
    """Open or close a side."""
    n_sides = 2 * len(problem.n_cells)
    for place, side in product(range(len(state)), range(n_sides)):
        closed, opened = _range(problem, state[place], side)
        chance = 1 / len(state) / n_sides
        if state[place][side] != opened:
            fresh = _replaced(state[place], side, opened)
            yield _with(state, [place], fresh), chance, -math.log(len(closed))
            continue
        for cell in closed:
            fresh = _replaced(state[place], side, cell)
            yield _with(state, [place], fresh), chance / len(closed), math.log(len(closed))


def shift(problem, state):
    """Move both sides of a column."""
    for place, column in product(range(len(state)), range(len(problem.n_cells))):
        first, last = state[place][2 * column : 2 * column + 2]
        end = problem.n_cells[column] - 1
        steps = _steps(problem.n_cells[column])
        for step in steps if first > 0 and last < end else []:
            if first + step > 0 and last + step < end:
                fresh = _replaced(state[place], 2 * column, first + step)
                fresh = _replaced(fresh, 2 * column + 1, last + step)
                chance = 1 / len(state) / len(problem.n_cells) / len(steps)
                yield _with(state, [place], fresh), chance, 0.0


def _proposed(problem, box):
    """Return the probability that `add` draws a box; rows that are alike are one."""
    rows, flags, _ = problem.rows
    positives = {tuple(row) for row in rows[flags].tolist()}
    close = min(0.5, 3.0 / (2 * len(problem.n_cells)))
    total = 0.0
    for row in positives:
        product_ = 1.0
        for j, n in enumerate(problem.n_cells):
            for side, n_places in ((2 * j, row[j]), (2 * j + 1, n - 1 - row[j])):
                opened = 0 if side == 2 * j else n - 1
                is_in = box[side] <= row[j] if side == 2 * j else box[side] >= row[j]
                if not is_in:
                    product_ = 0.0
                elif box[side] != opened:
                    product_ *= close / n_places
                elif n_places:
                    product_ *= 1.0 - close
        total += product_
    return total / len(positives)


def add(problem, state):
    """Bring a box around a positive."""
    if len(state) < problem.n_boxes:
        for box in problem.single_boxes():
            chance = _proposed(problem, box)
            if chance > 0.0:
                yield _with(state, [], box), chance, -math.log(len(state) + 1) - math.log(chance)


def drop(problem, state):
    """Take a box away."""
    for place, box in enumerate(state):
        chance = _proposed(problem, box)
        if chance > 0.0:
            yield _with(state, [place]), 1 / len(state), math.log(len(state)) + math.log(chance)


def _log_split(problem, n_boxes, length):
    return -math.log(n_boxes * len(problem.n_cells) * length * (length + 1) / 2)


def split(problem, state):
    """Make two boxes of one."""
    if len(state) == problem.n_boxes:
        return
    for place, column in product(range(len(state)), range(len(problem.n_cells))):
        first, last = state[place][2 * column : 2 * column + 2]
        for end in range(first, last):
            for begin in range(end + 1, last + 1):
                left = _replaced(state[place], 2 * column + 1, end)
                right = _replaced(state[place], 2 * column, begin)
                log_there = _log_split(problem, len(state), last - first)
                log_back = -math.log(len(state) * (len(state) + 1) / 2)
                yield _with(state, [place], left, right), math.exp(log_there), log_back - log_there


def join(problem, state):
    """Make one box of two."""
    for one, other in combinations(range(len(state)), 2):
        columns = {
            side // 2
            for side in range(2 * len(problem.n_cells))
            if state[one][side] != state[other][side]
        }
        left, right = sorted((state[one], state[other]))
        if len(columns) > 1:
            continue
        (column,) = columns
        if left[2 * column + 1] >= right[2 * column]:
            continue
        merged = _replaced(left, 2 * column + 1, right[2 * column + 1])
        log_there = -math.log(len(state) * (len(state) - 1) / 2)
        length = merged[2 * column + 1] - merged[2 * column]
        log_back = _log_split(problem, len(state) - 1, length)
        yield _with(state, [one, other], merged), math.exp(log_there), log_back - log_there


MOVES = {
    "slide": slide, "toggle": toggle, "shift": shift, "add": add, "drop": drop, "split": split,
    "join": join,
}  # fmt: skip


def transitions(problem, states, weights, beta=1.0, broken=False):
    """Return the transition matrix of a step of these moves, without ratios if `broken`."""
    index = {state: place for place, state in enumerate(states)}
    densities = np.array([problem.log_density(state) for state in states])
    matrix = np.zeros((len(states), len(states)))
    total = sum(weights.values())
    for place, state in enumerate(states):
        for name, weight in weights.items():
            for other, chance, log_ratio in MOVES[name](problem, state):
                if other in index:  # None and those of no density are not
                    to = index[other]
                    ratio = beta * (densities[to] - densities[place])
                    ratio += 0.0 if broken else log_ratio
                    matrix[place, to] += weight / total * chance * math.exp(min(0.0, ratio))
        matrix[place, place] += 1.0 - matrix[place].sum()
    heated = beta * densities
    return matrix, np.exp(heated - np.logaddexp.reduce(heated))
