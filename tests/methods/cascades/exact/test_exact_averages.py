"""Densities of rows averaged over all trees."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bayescascade.methods.cascades.exact import kernels, solve
from tests import reference
from tests.methods.cascades.exact.brute_force import (
    LEVELS,
    NO_DATA,
    WIDE_BINS,
    BruteForce,
    cases,
)
from tests.methods.cascades.problems import (
    BINARY,
    BINS,
    BOUNDED,
    BRANCH,
    CONSTANT,
    FRACTIONAL,
    INCLUSION,
    INDEPENDENT,
    INDEPENDENT_BRANCH,
    LEAF,
    MULTIWAY,
    ORDINAL,
)

AVERAGED = (
    (BINARY, INDEPENDENT), (MULTIWAY, LEAF), (MULTIWAY, BRANCH), (MULTIWAY, INCLUSION),
    (ORDINAL, BOUNDED), (BINS, INDEPENDENT), (FRACTIONAL, BRANCH), (CONSTANT, LEAF),
    (LEVELS, INDEPENDENT_BRANCH), (LEVELS, BOUNDED), (WIDE_BINS, LEAF), (NO_DATA, BRANCH),
)  # fmt: skip


def all_rows(problem):
    return list(product(*(range(q) for q in problem.n_levels)))


def coded(rows):
    return np.array(rows, np.int32).T


@cases(*AVERAGED)
def test_a_row_has_the_density_averaged_over_all_trees(problem, model):
    """The average is what predicts best; it must be that of the trees there are."""
    everything, exact = BruteForce(problem, model), solve(model.on(problem))
    rows = all_rows(problem)
    found = exact.log_predictive(coded(rows))
    for row, log_density in list(zip(rows, found, strict=True))[:4]:
        with_row = everything.log_normalizer_with(row)
        assert_allclose(log_density, with_row - everything.log_normalizer, atol=1e-9)
    widths = problem.record["widths"]
    volumes = [np.prod([w[c] for w, c in zip(widths, row, strict=True)]) for row in rows]
    assert_allclose(np.dot(volumes, np.exp(found)), 1.0, atol=1e-9)


def test_the_average_is_that_of_the_leaves_posterior_means():
    """Said differently: (n_l + alpha) / (n + K alpha) / v_l of each tree, times its probability."""
    everything, exact = BruteForce(MULTIWAY, LEAF), solve(LEAF.on(MULTIWAY))
    record, alpha = MULTIWAY.record, LEAF.parameters["concentration"]
    row, total, expected = (1, 0), sum(record["weights"]), 0.0
    for tree, probability in zip(MULTIWAY.nested, everything.probabilities, strict=True):
        boxes = reference.leaves_of(tree, record["n_levels"])
        (box,) = [b for b in boxes if all(c in codes for c, codes in zip(row, b, strict=True))]
        count = reference.weight_in(box, record["rows"], record["weights"])
        mean = (count + alpha) / (total + len(boxes) * alpha)
        volume = np.exp(reference.log_volume(box, record["widths"]))
        expected += probability * mean / volume
    assert_allclose(np.exp(exact.log_predictive(coded([row]))), expected, rtol=1e-9)


@cases((BINS, INDEPENDENT), (MULTIWAY, BRANCH), (LEVELS, LEAF))
def test_missing_cells_are_integrated_out(problem, model):
    """A row's known cells have the sum over what the others can be, times widths."""
    exact, widths = solve(model.on(problem)), problem.record["widths"]
    for known in (0, 1):
        row = [-1] * len(problem.n_levels)
        row[known] = 1
        expected = 0.0
        for complete in all_rows(problem):
            if complete[known] == 1:
                filled = [w[c] for w, c, r in zip(widths, complete, row, strict=True) if r < 0]
                expected += np.prod(filled) * np.exp(exact.log_predictive(coded([complete]))[0])
        assert_allclose(np.exp(exact.log_predictive(coded([row]))), expected, rtol=1e-9)
    nothing = coded([[-1] * len(problem.n_levels)])
    assert_allclose(exact.log_predictive(nothing), 0.0, atol=1e-9)


@cases((MULTIWAY, BRANCH), (LEVELS, INDEPENDENT))
def test_predictions_leave_no_trace(problem, model, rng, monkeypatch):
    """Even if interrupted: draws, evidence and later predictions must be the same."""
    exact, fresh = solve(model.on(problem)), solve(model.on(problem))
    rows = all_rows(problem)
    evaluate = kernels.evaluate_boxes

    def interrupted(*arguments):
        evaluate(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(kernels, "evaluate_boxes", interrupted)
        with pytest.raises(KeyboardInterrupt):
            exact.log_predictive(coded(rows))
    exact.log_predictive(coded(rows[:2]))
    for kept, new in zip(exact._sums.values, fresh._sums.values, strict=True):
        assert (kept == new).all()
    assert (exact._sums.counts == fresh._sums.counts).all()
    assert (exact.log_predictive(coded(rows)) == fresh.log_predictive(coded(rows))).all()
    seed = int(rng.integers(1000))
    draws = exact.sample(30, np.random.default_rng(seed))
    assert draws == fresh.sample(30, np.random.default_rng(seed))


def test_equal_rows_are_evaluated_once(monkeypatch):
    """A test file of many equal rows must not cost as many recursions."""
    exact = solve(BRANCH.on(BINARY))
    n_runs = 0
    evaluate = kernels.evaluate_boxes

    def counted(*arguments):
        nonlocal n_runs
        n_runs += 1
        return evaluate(*arguments)

    monkeypatch.setattr(kernels, "evaluate_boxes", counted)
    once = exact.log_predictive(coded([(0, 1, 0)]))
    runs_of_one = n_runs
    found = exact.log_predictive(coded([(0, 1, 0)] * 50))
    assert n_runs == runs_of_one
    assert (found == once[0]).all()
