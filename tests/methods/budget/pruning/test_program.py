"""The pruning program against (IP) of the thesis, written out."""

import numpy as np
import pytest

from bayescascade.base.errors import DataError, ParameterError
from bayescascade.methods.budget.pruning.program import PruningProgram
from tests.methods.budget.pruning import reference
from tests.methods.budget.pruning.forests import forest_of, items_of, random_problem

# Nan (2018), figure 4.1: the paper's nodes 1 to 12 in preorder. Features 1, 2 and 3 are columns 0,
# 1 and 2; node 7, which the paper's row does not reach, reads column 0.
FIRST = (0, 0.5, [3, 1], (1, 0.5, [4, 0], [1, 3]))
SECOND = (2, 0.5, (0, 0.5, [2, 0], [1, 2]), (1, 0.5, [5, 1], [0, 1]))
ROW = [[0.9, 0.1, 0.9]]  # ends in the paper's nodes 4 and 11


@pytest.fixture
def thesis():
    """Return the program of the thesis's two trees and one row, with costs 1, 10 and 100."""
    items = items_of([(0,), (1,), (2,)], [1.0, 10.0, 100.0])
    return PruningProgram.of(forest_of([FIRST, SECOND]), items, np.array(ROW, np.float32))


def test_the_two_trees_of_the_thesis_are_its_constraints(thesis):
    """A wrong edge would make a row pay for a feature that its path does not read."""
    # Splits: the paper's nodes 1 and 3, then 6, 7 and 10.
    assert thesis.node.tolist() == [0, 2, 5, 6, 9]
    assert thesis.tree_starts.tolist() == [0, 2, 5]
    assert thesis.parent.tolist() == [-1, 0, -1, 2, 2]
    # The paper's rows of w: 1 pays for feature 1, 3 and 10 both for feature 2, 6 for feature 3.
    assert thesis.use_cost.tolist() == [1.0, 10.0, 100.0]
    edges = [
        thesis.edge_use[start:stop].tolist()
        for start, stop in zip(thesis.edge_starts, thesis.edge_starts[1:], strict=False)
    ]
    assert edges == [[0], [1], [2], [], [1]]
    assert not thesis.is_closed(np.array([0, 1, 0, 0, 0], np.bool_))  # below a cut


def test_the_errors_of_the_two_trees_by_hand(thesis):
    """A pruning's error would be off, and with it every tradeoff."""
    # 12 rows a tree. Errors of the paper's nodes 1-5: 4, 1, 3, 0, 1; 6-12: 4, 2, 0, 1, 2, 1, 0.
    assert thesis.base_error * 24 == pytest.approx(4 + 4)
    np.testing.assert_allclose(thesis.error_gain * 24, [0, 2, 0, 1, 1], atol=1e-12)
    kept = np.array([1, 1, 1, 1, 1], np.bool_)  # feature 2 is paid once for both trees
    assert thesis.objective(kept, 0.01) == pytest.approx(4 / 24 + 0.01 * 111)


@pytest.mark.parametrize("split_cost", [0.0, 0.3])
def test_every_pruning_has_the_value_that_the_definition_gives(rng, split_cost):
    """Groups, free columns, repeated reads, weights or depth would be priced wrongly."""
    n_prunings = 0
    for _ in range(10):
        problem = random_problem(rng)
        program = _program(problem, split_cost=split_cost)
        for leaves in reference.all_prunings(problem.roots):
            kept = np.array(reference.kept_splits(problem.roots, leaves), np.bool_)
            assert program.is_closed(kept)
            expected = reference.objective(
                problem.roots,
                leaves,
                0.2,
                problem.rows,
                problem.weights,
                problem.column_items,
                problem.items.costs,
                split_cost,
            )
            assert program.objective(kept, 0.2) == pytest.approx(expected, abs=1e-12)
            n_prunings += 1
    assert n_prunings > 200


def test_rows_that_part_in_leaves_only_are_one():
    """Without it the program of a shallow forest would be as large as the data."""
    items = items_of([(0,)], [1.0])
    rows = np.linspace(0, 1, 50, dtype=np.float32)[:, np.newaxis]
    program = PruningProgram.of(forest_of([(0, 0.5, [3, 1], [1, 4])]), items, rows)
    assert program.use_cost.tolist() == pytest.approx([1.0])


def test_errors_may_be_counted_on_other_rows():
    """The label of a node must stay that of the forest when errors are measured elsewhere."""
    forest = forest_of([(0, 0.5, [3, 1], [1, 4])])
    other = np.array([[2, 3], [0, 2], [2, 1]], np.float64)
    program = PruningProgram.of(
        forest, items_of([(0,)], [1.0]), np.zeros((1, 1), np.float32), counts=other
    )
    # The root says class 1, as it has 4 and 5 rows: 2 wrong; the leaves say 0 and 1: 2 and 2 wrong.
    assert program.base_error == pytest.approx(2 / 5)
    assert program.error_gain.tolist() == pytest.approx([-2 / 5])


def test_a_tree_without_rows_to_measure_it_has_no_error():
    """A tree whose bag has every row would make the error NaN."""
    forest = forest_of([(0, 0.5, [3, 1], [1, 4]), [1, 2]])
    counts = forest.counts.copy()
    counts[:3] = 0
    program = PruningProgram.of(
        forest, items_of([(0,)], [1.0]), np.zeros((1, 1), np.float32), counts=counts
    )
    assert program.base_error == pytest.approx(1 / 6)
    assert program.error_gain.tolist() == [0.0]


def test_bad_weights_and_costs_are_refused(rng):
    """A negative weight would make cutting a split cost money."""
    problem = random_problem(rng)
    with pytest.raises(DataError, match="row_weight must be finite and >= 0, got -1 in row 2"):
        _program(problem._replace(weights=np.array([1.0, -1, 1, 1, 1, 1])))
    with pytest.raises(ParameterError, match=r"row_weight must have shape \(6,\), got \(2,\)"):
        _program(problem._replace(weights=np.ones(2)))
    with pytest.raises(ParameterError, match=r"split_cost must be a finite number >= 0, got -0\.5"):
        _program(problem, split_cost=-0.5)


def _program(problem, split_cost=0.0):
    return PruningProgram.of(
        problem.forest, problem.items, problem.rows, problem.weights, split_cost=split_cost
    )
