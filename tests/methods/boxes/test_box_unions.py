"""Unions of boxes: rows inside, sides halfway, files, and how good they are on rows."""

import numpy as np
import pytest

from bayescascade.base.errors import DataError, ParameterError
from bayescascade.methods.boxes.measures import generalization_bound, hull_area
from bayescascade.methods.boxes.union import UNION, BoxUnion


def test_sides_belong_to_boxes_and_open_ones_take_everything():
    """Closed intervals; a missing cell passes an open side only."""
    union = BoxUnion([[0.0, -np.inf], [5.0, 5.0]], [[1.0, np.inf], [5.0, 6.0]])
    rows = [[0.0, 9.0], [1.0, np.nan], [1.1, 0.0], [5.0, 6.0], [np.nan, 0.0]]
    assert union.contains(rows).tolist() == [True, True, False, True, False]
    assert union.inside(rows).sum(axis=0).tolist() == [2, 1]
    assert (union.n_boxes, union.n_sides) == (2, 6)
    empty = BoxUnion(np.empty((0, 2)), np.empty((0, 2)))
    assert not empty.contains(rows).any()
    with pytest.raises(DataError, match="X must have 2 columns, got shape"):
        union.contains([[1.0]])


@pytest.mark.parametrize(
    ("lower", "upper"), [([[1.0]], [[0.0]]), ([[np.nan]], [[1.0]]), ([1.0], [2.0])]
)
def test_impossible_boxes_are_refused(lower, upper):
    """By name."""
    with pytest.raises(DataError, match="lower"):
        BoxUnion(lower, upper)


def test_halfway_lets_no_row_in_and_none_out(rng):
    """Not even one at a corner, which two sides keep out together."""
    for _ in range(50):
        rows = rng.integers(0, 6, (12, 3)).astype(float)
        corner = rows[rng.integers(12, size=2)]
        union = BoxUnion([corner.min(axis=0)], [corner.max(axis=0)])
        wide = union.halfway(rows)
        assert (wide.contains(rows) == union.contains(rows)).all()
        assert (wide.lower <= union.lower).all()
        assert (wide.upper >= union.upper).all()
    around = BoxUnion([[2.0, 2.0]], [[3.0, 3.0]]).halfway([[2, 2], [3, 3], [0, 3], [9, 9]])
    assert around.lower.tolist() == [[1.0, -np.inf]]
    assert around.upper.tolist() == [[np.inf, 6.0]]
    beside = np.nextafter(1.0, 2.0)
    assert BoxUnion([[beside]], [[2.0]]).halfway([[1.0], [beside]]).lower[0, 0] == beside


def test_a_record_of_an_impossible_union_is_refused():
    """A lower side above the upper one."""
    union = BoxUnion([[0.1, -np.inf]], [[np.inf, 0.3]])
    record = UNION.write(union)
    assert record == {"n_boxes": 1, "closed": [[0, 0, 0, 0.1], [0, 1, 1, 0.3]]}
    assert UNION.reads(record, 2).upper.tolist() == union.upper.tolist()
    with pytest.raises(DataError, match="lower must be at most upper"):
        UNION.reads({"n_boxes": 1, "closed": [[0, 0, 0, 2.0], [0, 0, 1, 1.0]]}, 2)


def test_hull_area_counts_corners_and_leaves_dents_out():
    """As if a point on the line between two others were a classifier, which it is."""
    assert hull_area([], []) == 0.5
    assert hull_area([0.0], [1.0]) == 1.0
    assert hull_area([0.5], [0.2]) == 0.5
    assert hull_area([0.0, 0.5, 0.5], [0.5, 1.0, 0.6]) == pytest.approx(0.875)
    points = np.random.default_rng(0).random((2, 40))
    assert hull_area(*points) == pytest.approx(hull_area(*points[:, ::-1]))
    with pytest.raises(DataError, match="from 0 to 1"):
        hull_area([2.0], [0.0])
    with pytest.raises(DataError, match="one length"):
        hull_area([0.1], [0.0, 1.0])


def test_bound_counts_unions_rightly():
    """Erratum 26: with one box there are two unions; the thesis's count is below one."""
    by_hand = 0.1 + np.sqrt((np.log(2) + np.log(20)) / 200)
    assert generalization_bound(0.1, 100, [2], 2) == pytest.approx(by_hand)
    three = 0.1 + np.sqrt((np.log(3 + 3 + 1) + np.log(20)) / 200)  # {}, 3 boxes, 3 pairs of them
    assert generalization_bound(0.1, 100, [3], 2) == pytest.approx(three, abs=1e-12)
    with pytest.raises(ParameterError, match="n_anchors must be an integer >= 2, got 1"):
        generalization_bound(0.1, 100, [1], 2)
    assert generalization_bound(0.1, 100, [10_000] * 300, 50) > 1.0  # no overflow
