"""An annealing starts so cool that trees do not outgrow the rows."""

import numpy as np
import pandas as pd

import samplers
from bayescascade import LeafPosterior, Table
from bayescascade.model.search import SCHEDULE, Search

N_ROWS, N_STEPS = 200, 20_000


def wide() -> LeafPosterior:
    """Return the posterior of few rows in many cells: six columns of six levels each."""
    codes = np.random.default_rng(0).integers(6, size=(N_ROWS, 6))
    frame = pd.DataFrame(codes).astype(str).rename(columns="c{}".format)
    return LeafPosterior(Table.from_frame(frame))


def annealed(posterior, schedule, seed=0):
    return samplers.anneal(
        posterior, n_steps=N_STEPS, schedule=schedule, n_chains=1, seed=seed, n_temperatures=200
    )


def test_trees_do_not_outgrow_the_rows():
    """Hot ones have many times as many leaves; steps are then slow, and lost."""
    posterior = wide()
    assert posterior.table.n_distinct == N_ROWS
    hot, cool = annealed(posterior, SCHEDULE), annealed(posterior, posterior.schedule)
    assert hot.traces["n_leaves"].max() > 2 * N_ROWS
    assert cool.traces["n_leaves"].max() < N_ROWS
    assert cool.best_log_density >= hot.best_log_density


def test_a_search_cools_as_its_posterior_says(monkeypatch):
    """Tables and models alone say how: a run that is resumed cools as before."""
    seen = []
    anneal = samplers.anneal
    monkeypatch.setattr(
        samplers, "anneal", lambda *a, **k: seen.append(k["schedule"]) or anneal(*a, **k)
    )
    posterior = wide()
    Search("anneal", 50, 1, 1, 0, None, False, None).run(posterior, default_steps=50)
    assert seen == [posterior.schedule] == [wide().schedule]
    assert seen[0].initial_temperature < SCHEDULE.initial_temperature


def test_tables_that_hold_hot_trees_cool_from_as_hot_as_before():
    """Their draws stay what they were: here every cell has a row."""
    cells = pd.DataFrame({"a": ["x", "x", "y", "y"], "b": ["u", "v", "u", "v"]})
    assert LeafPosterior(Table.from_frame(cells)).schedule == SCHEDULE
