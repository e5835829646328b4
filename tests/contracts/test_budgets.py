"""Whatever learns within budgets: rows pay for what is read of them, and limits are kept."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bayescascade import ParameterError
from tests.contracts.listed import COSTS, ESTIMATORS, fitted, rows

ACQUIRING = [name for name, case in ESTIMATORS.items() if hasattr(case.make, "acquire")]
OF_BUDGETS = [  # the path of "prune" is one of tradeoffs
    name for name in ACQUIRING if hasattr(ESTIMATORS[name].make, "path") and name != "prune"
]


@pytest.mark.parametrize("name", ACQUIRING)
def test_rows_pay_for_what_is_read_of_them(name):
    """Step by step they come to the same, and what is not read changes nothing."""
    model, frame = fitted(name), rows()[:40]
    read = np.asarray(model.features_used(frame))
    chances, costs = model.predict_proba(frame), model.acquisition_cost(frame)
    assert 0 < read.mean() < 1
    assert_allclose(costs, read @ [COSTS[column] for column in frame])
    other = frame.where(read, rows()[::-1][:40].set_axis(frame.index))
    assert not other.equals(frame)
    assert_array_equal(model.predict_proba(other), chances)
    for row in range(12):
        acquired = model.acquire(frame.iloc[row].__getitem__)
        assert acquired.is_complete
        assert acquired.total_cost == costs[row]
        assert_allclose(acquired.probabilities, chances[row])
        assert {step.feature for step in acquired.steps} == {*frame.columns[read[row]]}


@pytest.mark.parametrize("name", OF_BUDGETS)
def test_budgets_are_kept_by_a_path(name):
    """On the rows that choose; for nothing, nothing is read, and everybody is of one class."""
    model, limits = fitted(name), [0.0, 1.0, 3.0, 6.0]
    path = model.path(limits)
    costs = [each.validation_cost_ for each in path]
    assert costs == sorted(costs)
    assert (np.array(costs) <= limits).all()
    assert path[0].acquisition_cost(rows()).max() == 0
    assert len(set(path[0].predict(rows()))) == 1
    with pytest.raises(ParameterError, match="budget must be"):
        model.within(-1)
