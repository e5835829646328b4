"""Whatever private sums say beside their values is the same for neighbors: see `tests.fuzz`."""

import numpy as np
import pandas as pd
import pytest

from bayescascade import DataError, ParameterError, Rados
from tests.fuzz.neighbors import check_alike, revealed

N = 40


def hidden(cells, **given):
    """Return what sums say that hide a feature with these cells."""
    frame = pd.DataFrame({"age": np.arange(N) % 7, "hiv": cells})
    private = {"feature": "hiv", "epsilon": 9.0, "delta": 0.1, "n_rados": 3, "noise": "simulated"}
    return Rados.sample_feature_private(frame, np.arange(N) % 2, **private, random_state=0, **given)


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
def test_classes_have_one_order_and_no_others(classes):
    X, alike = np.zeros((N, 2)), np.full(N, classes[0])
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
        check_alike(*(revealed(lambda frame=frame: noisy(frame, y)) for frame in X))
    huge = noisy(np.full((N, 1), 1.2e308), y, edge_bounds=(1e308, 1.7e308))
    assert np.isfinite(huge.reading.center).all()
