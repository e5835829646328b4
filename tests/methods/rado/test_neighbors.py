"""Whatever private sums say beside their values is the same for neighbors: see `tests.fuzz`."""

import numpy as np
import pandas as pd
import pytest

from bayescascade import DataError, ParameterError, Rados
from bayescascade.methods.rado import private_rows
from tests.fuzz.neighbors import PAIRS, check_alike, told
from tests.fuzz.running import Found

N = 40


def hidden(cells, **given):
    """Return what sums say that hide a feature with these cells."""
    frame = pd.DataFrame({"age": np.arange(N) % 7, "hiv": cells})
    private = {"feature": "hiv", "epsilon": 9.0, "delta": 0.1, "n_rados": 3, "noise": "simulated"}
    return Rados.sample_feature_private(frame, np.arange(N) % 2, **private, random_state=0, **given)


@pytest.mark.parametrize("values", PAIRS, ids=str)
def test_nobody_shows_by_which_values_occur(values):
    """All alike, and one other: the reading once had the values that occurred."""
    one, other = ([values[0]] * N, [values[0]] * (N - 1) + [values[1]])
    for first, second in ((one, other), (other[::-1], one)):
        check_alike(*(told(lambda c=c: hidden(c, values=values)) for c in (first, second)))
    made = [hidden(cells, values=values) for cells in (one, other)]
    place = made[0].reading.columns.index(made[0].promise.feature)
    assert (np.abs(made[0].values[:, place] - made[1].values[:, place]) == 1.0).all()
    alone = hidden(one, like=made[1])
    assert Rados.merge([alone, made[1]]).n_rows == 2 * N


def test_a_reading_of_the_rows_would_show(monkeypatch):
    """The test above must be able to fail: values are those that occur."""
    real = private_rows.codes_of_two

    def strict(label, cells, levels):
        assert len(set(cells)) == 2, "one value"
        return real(label, cells, levels)

    monkeypatch.setattr(private_rows, "codes_of_two", strict)
    cells = [["no"] * N, ["no"] * (N - 1) + ["yes"]]
    with pytest.raises(Found, match="tells neighbors apart"):
        check_alike(*(told(lambda c=c: hidden(c, values=("no", "yes"))) for c in cells))


def test_types_declare_values_and_cells_outside_are_errors():
    assert hidden(np.zeros(N, bool)).reading.center.tolist()[1] == 0.5
    both = pd.Categorical(["no"] * N, ["no", "yes"])
    assert hidden(both).reading.columns == ["age", "hiv=yes", "(intercept)"]
    with pytest.raises(ParameterError, match="values must be the two values of the feature"):
        hidden(pd.Categorical(["no"] * N))  # whose categories are those that occur
    for cells in (["no"] * (N - 1) + ["?"], ["no"] * (N - 1) + [None]):
        with pytest.raises(DataError, match=r'"hiv" must be "no" or "yes", .* in row 40'):
            hidden(cells, values=("no", "yes"))


def noisy(X, y, **given):
    bounds = {"edge_bounds": (-1, 1), "epsilon": 1.0, "delta": 1e-5, "noise": "simulated"}
    return Rados.sample_gaussian(X, y, n_rados=3, random_state=0, **{**bounds, **given})


@pytest.mark.parametrize("classes", [("no", "yes"), (0, 1), (-1, 1), (False, True)], ids=str)
def test_labels_all_alike_are_as_good_as_others(classes):
    X = np.zeros((N, 2))
    alike, other = np.full(N, classes[0]), np.array([*[classes[0]] * (N - 1), classes[1]])
    check_alike(*(told(lambda y=y: noisy(X, y, classes=classes)) for y in (alike, other)))
    assert noisy(X, alike, classes=classes[::-1]).reading.classes.tolist() == list(classes)
    with pytest.raises(DataError, match=r"y must be .* as was declared, got .* in row 3"):
        noisy(X, np.where(np.arange(N) == 2, 7, 1), classes=(0, 1))


def test_no_cell_decides_how_its_column_is_read():
    """Numbers and truth values, as text or not, are numbers; only types declare levels."""
    y = np.arange(N) % 2 == 0
    plain = [True] * N
    for cell in (0.5, "0.5", "true", False, -1e300):
        X = [pd.DataFrame({"x": pd.Series(cells, dtype=object)}) for cells in (plain, [*plain])]
        X[1].loc[3, "x"] = cell
        check_alike(*(told(lambda frame=frame: noisy(frame, y)) for frame in X))
    huge = noisy(np.full((N, 1), 1.2e308), y, edge_bounds=(1e308, 1.7e308))
    assert np.isfinite(huge.reading.center).all()
