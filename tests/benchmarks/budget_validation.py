"""What classifiers cost and err, and which of them is taken within a budget."""

from typing import NamedTuple


class Judged(NamedTuple):
    """What one classifier costs and errs, on the validation and on the test rows."""

    validation_cost: float
    validation_error: float
    test_cost: float
    test_error: float


def best_within(judged, budget, allowed=0.0):
    """Return the cheapest within a budget whose validation error is near the least.

    It may be `allowed` times the deviation of a row's error above it.
    """
    within = [one for one in judged if one.validation_cost <= budget * (1 + 1e-9)]
    least = min(one.validation_error for one in within)
    most = least + allowed * (least * (1.0 - least)) ** 0.5
    near = [one for one in within if one.validation_error <= most]
    return min(near, key=lambda one: (one.validation_cost, one.validation_error))


def commonest_label(rows):
    """Return what costs nothing, and is always there to choose."""
    commonest = rows.train.labels.mode()[0]
    return Judged(
        0.0,
        (rows.validation.labels != commonest).mean(),
        0.0,
        (rows.test.labels != commonest).mean(),
    )
