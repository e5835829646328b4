"""``bayescascade.compare``: names or densities, a frame of what is printed, whole under Ctrl-C."""

import numpy as np
import pandas as pd
import pytest

import bayescascade
from bayescascade import CascadeMixture, DensityEstimationTree, ParameterError, Table, compare
from tests.cli.conftest import TITANIC, run

QUICK = ["histogram", "det"]


def test_the_frame_is_what_is_printed():
    found = compare(TITANIC, models=QUICK, n_halvings=3, random_state=0)
    printed = run("compare", TITANIC, "--models", "histogram,det", "--seed", 0, "--repeats", 3)
    lines = printed.stdout.splitlines()
    assert [line[:70] for line in str(found).splitlines()] == [line[:70] for line in lines]
    for row, line in zip(found.table.itertuples(), lines[4:6], strict=True):
        assert line.startswith(row.title)
        assert f"{row.held_out:.4f} ± {row.held_out_error:.4f}" in line
        scores = found.log_likelihoods(row.Index)
        # Student's quantile of 2 degrees, and rows that all three halvings have in common
        expected = scores.std(ddof=1) * np.sqrt(1 + 1 / 3) * 4.303 / 1.96
        assert row.held_out_error == pytest.approx(expected, rel=1e-3)
    assert found.table["behind"].idxmin() == found.best_
    assert found.table.loc[found.best_, "behind"] == 0.0
    assert found._repr_html_().count("smoothed histogram") == 1


def test_a_density_of_ones_own_is_compared_and_left_as_it_was():
    """The same settings must score as the listed ones do, whatever the name."""
    table, mine = Table.from_csv(TITANIC), DensityEstimationTree(random_state=5)
    texts: list[str] = []
    models = {"mine": mine, "det": "det"}
    found = compare(
        table, models=models, n_halvings=2, random_state=0, done=lambda o: texts.append(o.model)
    )
    assert texts == ["mine", "det"] * 2
    assert (mine.random_state, hasattr(mine, "schema_")) == (5, False)
    assert found.table["title"].tolist() == ["mine", "density estimation tree"]
    assert found.log_likelihoods("mine") == pytest.approx(found.log_likelihoods("det"), abs=0.05)
    one = compare(table, models={"x": CascadeMixture(1)}, n_halvings=1)
    assert one.table["held_out_error"].isna().all()


def test_rows_are_read_as_declared():
    frame = pd.read_csv(TITANIC)
    assert compare(frame, models=QUICK, n_halvings=1, drop=["survived"]).data.schema.n_columns == 3
    with pytest.raises(ParameterError, match="drop must not be given with a Table"):
        compare(Table.from_frame(frame), models=QUICK, drop=["survived"])


def test_ctrl_c_keeps_what_was_finished(monkeypatch):
    fit = DensityEstimationTree.fit
    calls = []

    def stop(*arguments):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return fit(*arguments)

    monkeypatch.setattr(DensityEstimationTree, "fit", stop)
    found = compare(TITANIC, models=QUICK, random_state=0)
    assert (found.interrupted, len(found.outcomes), len(found.table)) == (True, 3, 2)
    calls[:] = [1]
    nothing = compare(TITANIC, models=["det"])
    assert str(nothing).endswith("nothing has been learned yet")
    assert nothing.table.empty
    with pytest.raises(bayescascade.DataError, match="got none"):
        _ = nothing.best_


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"models": ["bush"]}, "models must be some of auto, leaf, branch, .*, got 'bush'"),
        ({"models": []}, "models must name at least one density, got none"),
        ({"n_halvings": 0}, "n_halvings must be an integer >= 1, got 0"),
        ({"random_state": -1}, "random_state must be an integer >= 0, got -1"),
    ],
)
def test_what_is_wrong_is_said_before_rows_are_read(options, words):
    with pytest.raises(ParameterError, match=words):
        compare("no/such.csv", **options)
