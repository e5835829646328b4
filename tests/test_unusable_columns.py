"""Columns that no density can use: left out and named where the cascade is chosen by itself."""

import numpy as np
import pandas as pd
import pytest

from bayescascade import AutoCascade, LeafCascade
from bayescascade.base.errors import DataError, UndeclaredError
from tests.cli.conftest import run

N = 120


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "id": [f"patient {i}" for i in range(N)],
            "sky": rng.choice(["grey", "blue"], N),
            "ward": [f"w{i % 70}" for i in range(N)],
            "empty": [None] * N,
            "wind": rng.choice(["yes", "no"], N),
        }
    )


def test_a_table_with_ids_is_fitted_without_them(frame):
    """A newcomer's table has such columns; what was left out is said."""
    text = "left out: columns .*different in every row.*70 levels.*only missing cells"
    with pytest.warns(UserWarning, match=text):
        model = AutoCascade("quick", random_state=0).fit(frame)
    assert model.schema_.names == ("sky", "wind")
    assert np.isfinite(model.score_samples(frame)).all()
    with pytest.raises(UndeclaredError, match="3 columns must be declared or dropped"):
        LeafCascade().fit(frame)


@pytest.mark.parametrize("how", [{"columns": ["id", "sky"]}, {"nominal": ["ward"]}])
def test_what_is_asked_for_is_not_left_out(frame, how):
    """Else a model lacks a column that its user named."""
    with pytest.raises(DataError, match=r"id|ward"):
        AutoCascade("quick", random_state=0, **how).fit(frame)


def test_nothing_is_left_of_ids_alone(frame):
    """The error is that of the column, not that no column is left."""
    with pytest.raises(UndeclaredError, match='"id" has a different value in every row'):
        AutoCascade("quick").fit(frame[["id"]])


def test_a_command_says_what_it_leaves_out(frame, tmp_path):
    """On stderr, where notes are; and fits the rest."""
    path = tmp_path / "rows.csv"
    frame.to_csv(path, index=False)
    found = run("fit", path, "--effort", "quick", "--seed", 0)
    assert found.exit_code == 0, found.stderr
    assert 'note: left out: columns "id" (different in every row)' in found.stderr
    assert "2 columns" in found.stdout


@pytest.mark.slow
def test_dates_are_left_out_in_the_words_of_who_reads(frame, tmp_path):
    """Else a column is lost, although one option keeps it, that its user cannot find."""
    frame["admitted"] = pd.date_range("2023-01-01", periods=N).astype(str)
    rows, path = frame[["sky", "wind", "admitted"]], tmp_path / "rows.csv"
    rows.to_csv(path, index=False)
    found = run("fit", path, "--effort", "quick", "--seed", 0)
    assert found.stderr.startswith(
        'note: left out: column "admitted" (dates; --dates parts keeps them as year,\n'
        "  month and weekday)\n"
    )
    with pytest.warns(UserWarning, match=r'\(dates; ReadAs\(dates="parts"\) keeps them as year'):
        AutoCascade("quick", random_state=0).fit(rows)
    refused = run("classify", path, "--target", "wind")
    error = 'error: column "admitted" holds dates such as 2023-01-01: '
    assert refused.stderr.splitlines()[-1].startswith(error)
    assert "(--dates parts)" in refused.stderr
    assert "ReadAs" not in refused.stderr


@pytest.mark.parametrize(
    "command", [("classify",), ("boxes",), ("budget", "--budgets", 2)], ids=lambda each: each[0]
)
@pytest.mark.parametrize("written", ["%Y-%m-%d", "%d/%m/%Y"], ids=["dates", "ambiguous"])
def test_refused_dates_are_one_line(command, written, frame, tmp_path):
    """A note that they are levels, and then an error, contradict each other."""
    days = pd.date_range("2023-01-01", "2023-12-31")
    frame["admitted"] = days[days.day < 13].strftime(written)[:N]
    path = tmp_path / "rows.csv"
    frame[["sky", "wind", "admitted"]].to_csv(path, index=False)
    name, *options = command
    refused = run(name, path, "--target", "wind", *options)
    assert refused.exit_code == 2
    assert refused.stderr.startswith('error: column "admitted" holds dates such as ')
    assert refused.stderr.count("\n") == 1
