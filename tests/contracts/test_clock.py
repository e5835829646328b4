"""Estimators look at the clock between pieces of work: shown by a clock that counts its looks."""

from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from typing import Any

import numpy as np
import pytest

from bayescascade.base import watch
from bayescascade.methods.budget.neighbors import margins
from tests.contracts.listed import ESTIMATORS, answers, rows

LIMIT = 1.0
MANY = 25  # looks; more pieces of work than that are left when the time is up
N_LATE = 40  # looks after the time is up: of loops that end one after the other

CHANGED: dict[str, dict[str, Any]] = {
    "margins": {"estimator": None, "margins": "in_sample"},
    "cstc": {"tradeoff": None},
    "l1": {"penalty": None},
    "gate": {"estimator": None, "n_trees": 60},
    "boosted gate": {"n_boosted": 100, "tradeoff": None},
    "miser": {"n_boosted": 100},
    "prune": {"forest": None},
    "classifiers": {"budget": 8.5},
    "det": {"n_folds": 20},
    "mixture": {"n_components": "auto"},
}  # fmt: skip
"""Parameters of more work."""


class Enough(BaseException):
    """There are as many looks as a test needs."""


class Counted:
    """A clock that stands still for some looks, and then jumps beyond any limit with each.

    If it always stands still, it raises Enough after more looks than are needed.
    """

    def __init__(self, n_looks: float) -> None:
        self.n_looks, self.n_seen = n_looks, 0

    def __call__(self) -> float:
        self.n_seen += 1
        if self.n_looks == inf and self.n_seen > MANY + N_LATE:
            raise Enough
        return 1e9 * self.n_seen if self.n_seen > self.n_looks else 0.0


@contextmanager
def counting(n_looks: float, kind: type[Counted] = Counted) -> Iterator[Counted]:
    """Let watches look at a clock whose time is up after some looks."""
    clock = kind(n_looks)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(watch, "perf_counter", clock)
        yield clock


def looks(name: str, n_looks: float) -> tuple[int, Any]:
    """Return how often a fit looks at the clock, and what it learned."""
    with counting(n_looks) as clock:
        model = ESTIMATORS[name].fit(time_limit=LIMIT, **CHANGED.get(name, {}))
    return clock.n_seen, model


def assert_ends_soon(name: str) -> None:
    """There are many pieces of work, and most are left when the time is up."""
    with pytest.raises(Enough):
        looks(name, inf)
    n_seen, model = looks(name, MANY)
    assert n_seen <= MANY + N_LATE
    answer = model.score_samples if hasattr(model, "score_samples") else model.predict
    assert len(answer(rows()[:10])) == 10
    assert f"time limit of {LIMIT:g} s" in " ".join(str(model).split())


@pytest.mark.parametrize("name", [*CHANGED, "sensors", "sensors of numbers", "neighbors"])
@pytest.mark.filterwarnings("ignore")
def test_fits_end_soon_after_the_time_is_up(name):
    """Who has 60,000 rows waits for the piece of work that has begun, not for all of them."""
    assert_ends_soon(name)


@pytest.mark.filterwarnings("ignore")
def test_a_forest_that_is_fitted_in_one_call_would_be_noticed(monkeypatch):
    """The test above must be able to fail: so 300 stumps took over 130 s of 4."""
    monkeypatch.setattr(margins, "fit_in_time", lambda one, *given, **more: one.fit(*given, **more))
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        assert_ends_soon("margins")


def test_all_prunings_of_a_forest_end_soon_after_the_time_is_up():
    """The time limit is for all budgets: the prunings after the first one had none."""
    case = ESTIMATORS["prune"]
    model = case.make(**{**case.parameters, "time_limit": LIMIT})
    with counting(MANY) as clock:
        path = [one for _, one in model.fit_budgets(range(1, 7), rows(), *case.beside())]
    assert clock.n_seen <= MANY + N_LATE
    assert [one.stopped_after_ for one in path] == [LIMIT] * 6


class Pressed(Counted):
    """A clock that stands still, and is Ctrl-C at one of its looks."""

    def __call__(self) -> float:
        self.n_seen += 1
        if self.n_seen == self.n_looks:
            raise KeyboardInterrupt
        return 0.0


LIMITED = [n for n, case in ESTIMATORS.items() if "time_limit" in case.make().get_params()]
WHOLE = {
    "det",
    "margins",
    "prune",
    "boosted gate",
    "group lasso",
    "always sensors",
    "rado",
    "auto budget",
}
"""Those that have no model before a moment that is later than the looks below, or at one look."""


@pytest.mark.parametrize("name", LIMITED)
@pytest.mark.filterwarnings("ignore")
def test_ctrl_c_at_any_look_leaves_a_model_or_ends_the_fit(name):
    """What was found is kept, and called a part; nothing is made up where nothing was found."""
    kept = []
    for n in (12, 20, 400):
        try:
            with counting(n, Pressed) as clock:
                model = ESTIMATORS[name].fit(time_limit=LIMIT, **CHANGED.get(name, {}))
        except KeyboardInterrupt:
            continue
        if clock.n_seen < n:  # it was over before
            break
        summary = getattr(model, "summary_", None)
        is_part = summary.interrupted if summary else model.is_interrupted_
        assert is_part
        assert "interrupted" in str(model) or summary is None
        assert np.isfinite(answers(model, rows()[:10])).all()
        kept.append(n)
    assert bool(kept) == (name not in WHOLE)
