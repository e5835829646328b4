"""Unions of boxes that are called best, against all of them in fractions; and steps of chains.

``python -m tests.fuzz.boxes --minutes 5 --seed 0``
"""

from fractions import Fraction
from itertools import combinations

import numpy as np

from bayescascade.methods.boxes.exact.levels import Costs, LevelRows
from bayescascade.methods.boxes.exact.search import best_union
from bayescascade.methods.boxes.posterior import MOVE_WEIGHTS
from tests.fuzz.running import Found, Problem, main
from tests.methods.boxes import slow_moves
from tests.methods.boxes.reference import all_boxes
from tests.statistical.chi_square import fits

SHAPES = ((1, 1, 11), (2, 1, 11), (3, 1, 8), (1, 2, 9), (2, 2, 7), (1, 3, 6))
"""Columns, boxes and rows whose unions are soon listed."""


def worth(rows, is_positive, weights, costs, boxes):
    """Return what boxes are worth, without any error."""
    negative_weight, box_cost, side_cost = map(Fraction, costs)
    low, high = (np.array([[pair[k] for pair in box] for box in boxes]) for k in (0, 1))
    inside = ((rows[:, None] >= low) & (rows[:, None] <= high)).all(axis=2).any(axis=1)
    n_sides = int(np.isfinite(low).sum() + np.isfinite(high).sum())
    total = -box_cost * len(boxes) - side_cost * n_sides
    for is_in, is_one, weight in zip(inside, is_positive, weights.tolist(), strict=True):
        if is_in == is_one:
            total += Fraction(weight) * (1 if is_one else negative_weight)
    return total


def best(rows, is_positive, weights, costs, n_boxes):
    """Return what the best of all unions is worth."""
    outside = Fraction(costs[0]) * sum(map(Fraction, weights[~is_positive].tolist()), Fraction(0))
    unions = (
        union
        for count in range(1, n_boxes + 1)
        for union in combinations(all_boxes(rows.tolist()), count)
    )
    given = rows, is_positive, weights, costs
    return max(outside, max(worth(*given, union) for union in unions))


def draw(problem: Problem):
    """Draw rows with ties, weights of any size, costs of any size, and the most boxes."""
    rng = problem.rng
    n_columns, n_boxes, n_rows = SHAPES[int(rng.integers(len(SHAPES)))]
    rows = rng.integers(0, int(rng.integers(2, 7)), (n_rows, n_columns)).astype(float)
    is_positive = rng.random(n_rows) < rng.choice([0.3, 0.5, 0.7])
    is_positive[:2] = True, False
    style = str(rng.choice(["ones", "any", "huge", "sizes"]))
    weights = {
        "ones": np.ones(n_rows),
        "any": rng.random(n_rows) + 0.1,
        "huge": 1e15 + rng.integers(0, 9, n_rows),
        "sizes": 10.0 ** rng.uniform(-12, 12, n_rows),
    }[style]
    scale = float(np.median(weights))
    balance = float(rng.choice([0.0, 1.0, rng.random(), 10.0 ** rng.uniform(-6, 6)]))
    box_cost, side_cost = (
        scale * float(rng.choice([0.0, 0.5, rng.random(), 10.0 ** rng.uniform(-9, 4)]))
        for _ in range(2)
    )
    problem.note(
        columns=n_columns, boxes=n_boxes, weights=style, balance=balance, box=box_cost,
        side=side_cost,
    )  # fmt: skip
    return (rows, is_positive, weights, (balance, box_cost, side_cost)), n_boxes


def exact(problem: Problem) -> None:
    """Hold unions, gaps, and bounds of searches that end early to the list of all unions."""
    (rows, is_positive, weights, costs), n_boxes = draw(problem)
    true = best(rows, is_positive, weights, costs, n_boxes)
    copied = np.repeat(rows, int(problem.rng.integers(1, 3)), axis=1)
    read = LevelRows(copied, is_positive, weights, Costs(*costs))
    for most in (1.0, float(problem.rng.integers(50, 5000)), np.inf):
        found = best_union(read, n_boxes, most_work=most)
        boxes = [
            list(zip(*box, strict=True))
            for box in zip(found.union.lower, found.union.upper, strict=True)
        ]
        own = worth(copied, is_positive, weights, costs, boxes) if boxes else found.objective
        complaints = {
            "is worth otherwise": abs(own - Fraction(found.objective)) > found.rounding,
            "has a bound too low": Fraction(found.upper_bound) < true,
            "is called best": found.is_optimal and true - own > found.rounding,
            "is not proved": most == np.inf
            and not (found.is_optimal and found.is_best_given_others and found.n_proved == n_boxes),
            "has too many boxes": len(boxes) > n_boxes,
        }
        for words, is_so in complaints.items():
            if is_so:
                raise Found(f"a union {words}: {found}, the best is worth {float(true)!r}")


def steps(problem: Problem) -> None:
    """Hold single compiled steps to those in plain words, of any shape, weights and costs."""
    rng = problem.rng
    n_cells = tuple(rng.integers(1, 5, int(rng.integers(1, 3))).tolist())
    one = slow_moves.Problem(
        "drawn", n_cells, int(rng.integers(1, 3)), str(rng.choice(["beta", "gibbs"])),
        bool(rng.random() < 0.5), int(rng.integers(6, 20)),
        {"side_cost": float(rng.choice([0.0, 0.4, 3.0])), "temperature": rng.random() + 0.1},
    )  # fmt: skip
    problem.note(cells=str(n_cells), boxes=one.n_boxes, likelihood=one.likelihood)
    states, posterior = one.states(), one.posterior()
    index = {state: place for place, state in enumerate(states)}
    matrix, _ = slow_moves.transitions(one, states, MOVE_WEIGHTS)
    state = states[int(rng.integers(len(states)))]
    for n_draws in (500, 5_000):  # what does not fit by chance does by more draws
        drawn = [index[posterior.advance(rng, state, 1, 1.0)[0]] for _ in range(n_draws)]
        if fits(drawn, matrix[index[state]]):
            return
    raise Found(f"steps from {state} are not those of {one}")


CHECKS = {"exact": exact, "steps": steps}

if __name__ == "__main__":
    main(CHECKS, "Attack unions of boxes that are called best, and their chains")
