"""The short way through lines of boxes, shared out among threads: against the long way."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bayescascade.base.errors import TooLargeError
from bayescascade.methods.cascades.exact import plan, recursion, solve
from bayescascade.methods.cascades.exact.cost import cheapest_boxes
from bayescascade.methods.cascades.exact.scratch import Scratch
from bayescascade.methods.cascades.posterior import BranchPosterior, LeafPosterior
from tests.methods.cascades.exact.test_exact_cost import random_table

TABLES = {
    "binary": ((2,) * 6, {}),
    "grouped": ((3, 4, 2, 3), {}),
    "pairs": ((4, 3, 5), {"max_branches": 2}),
    "levels": ((4, 3, 5, 2), {"partitions": "levels"}),
}


@pytest.fixture
def in_threads(monkeypatch):
    monkeypatch.setattr(recursion, "_MANY_TERMS", 0)
    monkeypatch.setattr(plan, "_MANY_BOXES", 1)


def values_of(exact):
    """Return the logs of all boxes' values, maxima and sums."""
    boxes = exact._sums
    found = []
    for maximize in (True, False):
        boxes.run(maximize, n_jobs=2)
        found.append(np.log(boxes.values.mantissa) + boxes.values.exponent * recursion.UNIT)
    return found


@pytest.mark.usefixtures("in_threads")
@pytest.mark.parametrize("name", TABLES)
def test_the_short_way_leads_where_the_long_one_does(name, monkeypatch):
    """A faster sum that is another sum would be wrong on every large table."""
    n_levels, parameters = TABLES[name]
    posterior = BranchPosterior(random_table(n_levels), **parameters)
    short = solve(posterior)
    assert short._sums.tables is not None
    assert short._sums.counts.dtype == np.uint16
    short_values = values_of(short)
    rows = np.array([[0] * len(n_levels), [q - 1 for q in n_levels]], np.int32).T
    averages, used = short.log_predictive(rows), short.split_probabilities.used
    monkeypatch.setattr(plan, "_FEW_ROWS", 0)
    long = solve(posterior)
    assert long._sums.tables is None
    for found, expected in zip(short_values, values_of(long), strict=True):
        assert_allclose(found, expected, rtol=1e-12, atol=1e-9)
    assert long.tree == short.tree
    assert_allclose(averages, long.log_predictive(rows), rtol=0, atol=1e-9)
    assert_allclose([*used.values()], [*long.split_probabilities.used.values()], atol=1e-9)


@pytest.mark.slow
@pytest.mark.usefixtures("in_threads")
def test_exponents_too_large_for_short_numbers_are_kept_in_long_ones(monkeypatch):
    """Of a prior or weights so extreme that exponents wrap, everything would be wrong."""
    posterior = LeafPosterior(random_table((3, 2, 3)))
    found = []
    for few_rows in (plan._FEW_ROWS, 0):
        monkeypatch.setattr(plan, "_FEW_ROWS", few_rows)
        boxes = recursion.Recursion.of(posterior, plan.Plan.of(posterior, None))
        for tilt in (-0.5, 2e7, -2e7, -0.5):
            boxes.run(tilt=tilt, n_jobs=2)
            found.append(boxes.log_values()[0])
    assert found[:4] == pytest.approx(found[4:], rel=1e-12)
    assert found[0] == found[3]


@pytest.mark.usefixtures("in_threads")
def test_long_exponents_are_refused_where_only_short_ones_fit(tmp_path):
    """What was announced and checked must not be exceeded in the middle of a search."""
    posterior = LeafPosterior(random_table((3, 2, 3)))
    plans = plan.Plan.of(posterior, None)
    needed = plans.memory_bytes + 8 * plans.index().n_entries
    for limit, extreme in ((needed, 2e7), (needed - 1, 0.0)):
        _, boxes = cheapest_boxes(posterior, plans, limit, np.inf, 1)
        boxes.run(tilt=extreme)
    with pytest.raises(TooLargeError, match=r"memory_limit must be at least .* GB for long expon"):
        boxes.run(tilt=2e7)
    assert boxes.values.exponent.dtype == np.int16
    on_disk = recursion.Recursion.of(
        posterior, plans, scratch=Scratch(tmp_path), memory_limit=needed - 1
    )
    on_disk.run(tilt=2e7)
    boxes = recursion.Recursion.of(posterior, plans)
    boxes.run(tilt=2e7)
    assert on_disk.log_values() == boxes.log_values()


@pytest.mark.usefixtures("in_threads")
def test_an_interrupt_in_a_thread_stops_them_all(monkeypatch):
    """Ctrl-C must not leave threads at work for minutes."""
    posterior = BranchPosterior(random_table((3,) * 4))
    boxes = solve(posterior)._sums
    calls = []
    evaluate = recursion.evaluate_lines

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == 10:
            raise KeyboardInterrupt
        return evaluate(*arguments)

    monkeypatch.setattr(recursion, "evaluate_lines", interrupted)
    with pytest.raises(KeyboardInterrupt):
        boxes.run(n_jobs=2)
    assert len(calls) < 30
