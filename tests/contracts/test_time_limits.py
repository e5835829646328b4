"""What takes far longer than its time limit ends by then, with a model that can be used."""

import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

import bayescascade
from bayescascade import BranchCascade, BudgetPruneClassifier, LeafCascade, explore
from tests.contracts.listed import ESTIMATORS, gibbs

LIMIT, GRACE = 0.4, 5.0  # seconds: machines differ by a factor of three
LARGE = (5_000, 12, 4)
OF_FOREST = (4_000, 12, 4)


class Long(NamedTuple):
    """A search of a listed estimator that takes far longer: its parameters, and rows and levels."""

    name: str
    changed: Mapping[str, Any]
    shape: tuple[int, int, int] = (3_000, 5, 4)

    def fit(self, **more: Any) -> Any:
        case, frame = ESTIMATORS[self.name], rows(*self.shape)
        asked = {k: v for k, v in case.parameters.items() if k in ("leaf", "partitions", "budget")}
        if self.name == "prune":
            asked = {"forest": large_forest()}
        model = case.make(**{"random_state": 0, **asked, **self.changed, **more})
        return model.fit(frame, labels(*self.shape)) if case.is_labeled else model.fit(frame)


@cache
def rows(n: int, n_columns: int, n_levels: int) -> pd.DataFrame:
    """Return rows of which every other column is like the one before."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, n_levels, (n, n_columns))
    for j in range(1, n_columns, 2):
        codes[:, j] = np.where(rng.random(n) < 0.7, codes[:, j - 1], codes[:, j])
    names = [f"c{j}" for j in range(n_columns)]
    return pd.DataFrame(codes.astype(str), columns=names)


@cache
def labels(n: int, n_columns: int, n_levels: int) -> pd.Series:
    rng = np.random.default_rng(1)
    frame = rows(n, n_columns, n_levels)
    return ((frame["c0"] == frame["c2"]) ^ (rng.random(n) < 0.2)).astype(int)


@cache
def large_forest() -> Any:
    """Return a fitted forest whose best pruning within a budget takes seconds."""
    forest = RandomForestClassifier(60, n_jobs=2, random_state=0)
    whole = BudgetPruneClassifier(forest, tradeoff=0.0)
    return whole.fit(rows(*OF_FOREST), labels(*OF_FOREST)).estimator_


ENDLESS = {"n_steps": 10**8, "n_chains": 2}
PROBLEMS = {
    **{f"leaf {how}": Long("leaf", {"search": how, **ENDLESS})
       for how in ("anneal+metropolis", "anneal", "metropolis", "tempering")},
    "leaf exact": Long("branch", {"search": "exact"}, (3_000, 5, 5)),
    "leaf auto": Long("leaf auto", ENDLESS, (3_000, 5, 5)),
    "dependent": Long("dependent", ENDLESS),
    "dependent exact": Long(
        "dependent exact", {"max_depth": 4, "temper": "auto"}, (3_000, 16, 4)
    ),
    "rules": Long("rules", ENDLESS),
    "rules exact": Long("rules", {"search": "exact", "max_size": 3}, (3_000, 8, 4)),
    "labels": Long("labels", ENDLESS),
    "labels exact": Long("labels", {"search": "exact", "max_size": 4}, (3_000, 8, 4)),
    "det": Long("det", {"n_folds": 3_000}),
    "mixture": Long("mixture", {"n_components": 5, "n_starts": 3_000}, LARGE),
    "hidden": Long("hidden", {"kind": "hidden"}, (20_000, 100, 4)),
    "continuous": Long("continuous", {"kind": "continuous"}, (20_000, 60, 4)),
    "forest": Long("forest", {"max_trees": 20_000, "budget": None}),
    "prune": Long("prune", {"budget": 6.0}, OF_FOREST),
    "gate": Long("gate", {"learner": "linear", "n_trees": 5}, (3_000, 40, 4)),
    "boosted gate": Long("boosted gate", {"n_boosted": 10**5, "n_trees": 5}),
    "miser": Long("miser", {"n_boosted": 10**5}),
    "tree": Long("tree", ENDLESS),
    "neighbors": Long("neighbors", {"search": "ascent+langevin", **ENDLESS}),
    "minibatches": Long("neighbors", {"optimizer": "minibatch", "max_iter": 10**7}),
    "rado": Long("rado", {"learner": "boost", "n_rounds": 10**7, "n_rados": 100}, (3_000, 40, 4)),
}  # fmt: skip


class StillRunningError(BaseException):
    """A fit took longer than it was to."""


@contextmanager
def stopped_after(seconds: float) -> Iterator[None]:
    def stop(_number: int, _frame: FrameType | None) -> None:
        raise StillRunningError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.filterwarnings("ignore")
def test_searches_end_in_time_with_a_model(name, tmp_path):
    """Who has a minute gets within it what can be found in it, and is told that it is that."""
    long = PROBLEMS[name]
    for _ in range(6):  # what is compiled on the way takes longer
        began = time.perf_counter()
        model = long.fit(time_limit=LIMIT)
        took = time.perf_counter() - began
        if took < LIMIT + GRACE:
            break
    assert took < LIMIT + GRACE
    frame = rows(*long.shape)[:10]
    answer = model.score_samples if hasattr(model, "score_samples") else model.predict
    assert len(answer(frame)) == 10
    if name != "det":  # which has no page of its search
        text = " ".join(str(model).split())
        assert f"time limit of {LIMIT:g} s" in text or f"part of {LIMIT:g} s" in text
    model.save(tmp_path / "m.json")
    assert str(bayescascade.load(tmp_path / "m.json")) == str(model)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_without_a_limit_it_would_still_be_running():
    """The test above must be able to fail; all others say themselves that they were ended."""
    with pytest.raises(StillRunningError), stopped_after(3 * LIMIT):
        PROBLEMS["det"].fit()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_posterior_of_ones_own_ends_in_time():
    began = time.perf_counter()
    found = explore(gibbs(), n_steps=10**9, time_limit=LIMIT, random_state=0)
    assert time.perf_counter() - began < LIMIT + GRACE
    assert found.state == 3
    assert f"stopped at the time limit of {LIMIT:g} s" in str(found)


@pytest.mark.slow
def test_a_limit_that_is_not_reached_changes_nothing():
    """Equal seeds must give equal results wherever the clock does not decide."""
    model, limited = (
        LeafCascade(search="anneal+metropolis", n_steps=300, random_state=0, time_limit=limit).fit(
            rows(200, 3, 3)
        )
        for limit in (None, 600.0)
    )
    assert str(model) == str(limited)
    assert model.run_ == limited.run_
    assert BranchCascade(random_state=0, time_limit=600.0).fit(rows(200, 3, 3)).exact_.gap == 0.0
