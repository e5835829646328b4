"""Fast Boxes: closed forms against their losses, the next negative, and cross-validation."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from bayescascade import FastBoxes
from bayescascade.base.errors import ParameterError
from bayescascade.methods.boxes.fast_estimator import cluster, draw_boxes


def loss(side, rows, weights, is_own, is_negative, low, high, column, beta, c):
    """Return the loss of a lower side in plain words, with the diagonal distance subtracted."""
    total = beta * side
    for row, weight, own, negative in zip(rows, weights, is_own, is_negative, strict=True):
        others = [p for p in range(len(row)) if p != column]
        within = all(low[p] <= row[p] <= high[p] for p in others)
        middle = (low[column] + high[column]) / 2
        if not (row[column] <= low[column] or (row[column] <= middle and within)):
            continue
        if own:
            total += weight * np.exp(-(row[column] - side))
        if negative:
            apart = sum(max(row[p] - high[p], 0) + max(low[p] - row[p], 0) for p in others)
            total += c * weight * np.exp(row[column] - side - apart)
    return total


def problem(rng, n=80, d=3):
    """Return rows that are scaled to [-1, 1], of two clusters of positives."""
    rows = rng.uniform(-1, 1, (n, d))
    rows[0], rows[1] = -1.0, 1.0
    is_positive = (np.abs(rows[:, 0]) > 0.5) & (np.abs(rows[:, 1]) < 0.7)
    is_positive[:2] = False
    return rows, is_positive, rng.integers(1, 3, n).astype(float)


@pytest.mark.parametrize(("beta", "c"), [(0.0, 0.3), (1.0, 1.0), (30.0, 0.1)])
def test_faces_minimize_their_loss(rng, beta, c):
    """(2.25) and (2.26), lower sides and, of mirrored rows, upper ones."""
    rows, is_positive, weights = problem(rng)
    clusters = cluster(rows, is_positive, weights, 2, 0)
    revised = draw_boxes(rows, is_positive, weights, clusters, beta, c, False).revised
    for box in range(2):
        is_own = np.zeros(len(rows), bool)
        is_own[np.flatnonzero(is_positive)[clusters == box]] = True
        low, high = rows[is_own].min(axis=0), rows[is_own].max(axis=0)
        for column in range(3):
            for sign, found in ((1.0, revised.lower), (-1.0, revised.upper)):
                ends = (low, high) if sign > 0 else (-high, -low)
                data = (sign * rows, weights, is_own, ~is_positive, *ends, column, beta, c)
                best = minimize_scalar(
                    lambda side, data=data: loss(side, *data), bounds=(-20, 20), method="bounded",
                    options={"xatol": 1e-10},
                )  # fmt: skip
                side = sign * found[box, column]
                is_start = side == ends[0][column]  # where sides have crossed
                assert is_start or side == pytest.approx(best.x, abs=1e-5)
                if not is_start:
                    assert loss(side, *data) < loss(side + 0.05, *data)


def test_the_diagonal_distance_lessens_weights(rng):
    """Broken twin: the loss as printed, with the distance added, has another minimum."""
    rows, is_positive, weights = problem(rng)
    clusters = cluster(rows, is_positive, weights, 1, 0)
    revised = draw_boxes(rows, is_positive, weights, clusters, 1.0, 1.0, False).revised
    low, high = rows[is_positive].min(axis=0), rows[is_positive].max(axis=0)
    data = (rows, weights, is_positive, ~is_positive, low, high, 1, 1.0, 1.0)

    def printed(side):
        beyond = np.maximum(rows - high, 0) + np.maximum(low - rows, 0)
        apart = beyond.sum(axis=1) - beyond[:, 1]
        is_near = (rows[:, 1] <= low[1]) & ~is_positive
        more = weights[is_near] @ (
            np.exp(rows[is_near, 1] - side + apart[is_near])
            - np.exp(rows[is_near, 1] - side - apart[is_near])
        )
        return loss(side, *data) + more

    wrong = minimize_scalar(printed, bounds=(-20, 20), method="bounded").x
    assert abs(wrong - revised.lower[0, 1]) > 1e-3


def test_boxes_grow_to_the_next_negative_and_never_shrink(rng):
    """(2.29), (2.30): a side is next to a negative, or open where none is beyond."""
    rows, is_positive, weights = problem(rng)
    rows = rows * [1.0, 100.0, 1e-3] + 5.0
    drawn = draw_boxes(rows, is_positive, weights, cluster(rows, is_positive, weights, 2, 0),
                       0.5, 0.3, True)  # fmt: skip
    assert (drawn.final.lower <= drawn.starting.lower).all()
    assert (drawn.final.upper >= drawn.starting.upper).all()
    assert drawn.final.contains(rows[is_positive]).all()
    for column in range(3):
        negatives = set(rows[~is_positive, column].tolist())
        for side in drawn.final.lower[:, column]:
            assert side == -np.inf or np.nextafter(side, -np.inf) in negatives
        for side in drawn.final.upper[:, column]:
            assert side == np.inf or np.nextafter(side, np.inf) in negatives


def test_sides_without_negatives_are_open():
    """R_- is 0 where no negative is on that side."""
    rows = np.array([[0.0], [1.0], [2.0], [3.0]])
    is_positive = np.array([True, True, False, False])
    drawn = draw_boxes(rows, is_positive, np.ones(4), np.zeros(2, int), 0.0, 1.0, True)
    assert drawn.revised.lower.tolist() == [[-np.inf]]
    assert drawn.final.lower.tolist() == [[-np.inf]]
    assert drawn.final.upper[0, 0] < 2.0


@pytest.mark.slow
def test_cross_validation_takes_the_fewest_clusters(rng):
    """Two far clusters among others are two boxes."""
    rows = np.column_stack([rng.uniform(-4, 4, (600, 2)), np.ones(600)])
    centers = np.array([[-2.0, -2.0], [2.0, 2.0]])
    is_positive = (np.abs(rows[:, None, :2] - centers) < 0.8).all(axis=2).any(axis=1)
    model = FastBoxes(expansion=1.0, random_state=0).fit(rows, is_positive)
    assert model.n_clusters_ == 2
    assert model.score(rows, is_positive) > 0.97
    assert model.clusters_.shape == (is_positive.sum(),)
    assert model.boxes_.lower[:, 2].max() == -np.inf
    with pytest.raises(ParameterError, match="n_clusters must be at most"):
        FastBoxes(n_clusters=5).fit([[0.0], [1.0], [2.0]], [1, 0, 0])
