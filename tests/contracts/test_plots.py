"""Whatever has a picture draws it where it is told, and it can be read."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from sklearn.exceptions import NotFittedError

import bayescascade
from bayescascade import DensityRuleList, RuleListClassifier
from bayescascade.base.errors import DataError, ParameterError
from tests.contracts.listed import ESTIMATORS, SHOWN, fitted, rows

PLOTTED = [name for name in SHOWN if hasattr(ESTIMATORS[name].make, "plot")]
SAMPLED = [name for name in SHOWN if hasattr(ESTIMATORS[name].make, "plot_posterior")]


def boxes(texts):
    """Return where texts stand, (left, bottom, right, top) in pixels, the empty ones left out."""
    return [text.get_window_extent().extents for text in texts if text.get_text()]


def assert_readable(ax):
    """No label may run into another, or out of the picture."""
    ax.figure.canvas.draw()
    width, height = ax.figure.canvas.get_width_height()
    for texts in (ax.get_yticklabels() if ax.axison else [], ax.texts):
        places = boxes(texts)
        for left, bottom, right, top in places:
            assert min(left, bottom) >= -1
            assert right <= width + 1
            assert top <= height + 1
        for a, b in combinations(places, 2):
            assert not ((a[:2] + 1 < b[2:] - 1).all() and (b[:2] + 1 < a[2:] - 1).all())


def test_trees_lists_and_forests_have_pictures():
    others = {name for name in SHOWN if ESTIMATORS[name].others is not None}
    assert set(SHOWN) - set(PLOTTED) - others == {"neighbors", "rado"}
    assert set(SAMPLED) == {name for name in SHOWN if hasattr(fitted(name), "run_")}


@pytest.mark.parametrize("name", PLOTTED)
def test_a_model_is_drawn(name):
    """Into a user's axes, which leaves pyplot alone; or into a new figure that fits it."""
    model = fitted(name)
    with pytest.raises(NotFittedError):
        ESTIMATORS[name].make(**ESTIMATORS[name].parameters).plot()
    new = model.plot()
    assert isinstance(new, Axes)
    assert_readable(new)
    open_figures, own = plt.get_fignums(), plt.Figure().subplots()
    assert model.plot(own) is own
    assert plt.get_fignums() == open_figures
    assert own.patches


@pytest.mark.parametrize("name", SAMPLED)
def test_a_posterior_is_drawn(name, tmp_path):
    """What is drawn are the shares that are printed; of a saved model, too."""
    model = fitted(name)
    ax = model.plot_posterior()
    assert_readable(ax)
    shares = model.summary_.shares
    if not shares:
        assert len(ax.lines) == 2  # a chain each
        return
    output = [text.get_text() for text in ax.get_yticklabels()]
    for title, of_title in shares.items():
        assert any(text.startswith(title) for text in output)
        most = max(of_title.values())
        assert any(bar.get_width() == pytest.approx(most) for bar in ax.patches)
    model.save(tmp_path / "m.json")
    loaded = bayescascade.load(tmp_path / "m.json")
    assert [text.get_text() for text in loaded.plot_posterior().get_yticklabels()] == output


def test_nothing_sampled_no_posterior():
    model = ESTIMATORS["labels"].fit(search="anneal")
    with pytest.raises(DataError, match="must have draws"):
        model.plot_posterior()


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
def test_long_and_odd_names_can_be_read(n_classes):
    """Formulas, line breaks and names of 80 columns are text like any other."""
    odd = {"sex": "a $x^2$ of " + 15 * "very " + "long", "crew": 'q"\n', "age": "_%$", "fare": "f"}
    frame = rows().rename(columns=odd).replace({"male": "$m" * 30, "adult": "{a}"})
    labels = pd.Series(np.arange(150) % 7 % n_classes).map({0: "$a", 1: "b" * 60, 2: "c"})
    options = {"search": "anneal", "n_steps": 300, "random_state": 0}
    classifier = RuleListClassifier(**options).fit(frame, labels)
    density = DensityRuleList(**options, continuous={"f": [0, 5, 20, 100]}).fit(frame)
    assert_readable(classifier.plot())
    assert_readable(density.plot())


@pytest.mark.slow
def test_trees_of_forests_are_drawn_one_by_one():
    model = fitted("forest")
    assert len(model.plot(tree=1).patches) == int(np.diff(model.forest_.tree_starts)[1])
    assert model.to_dot(1).count("label=") == int(np.diff(model.forest_.tree_starts)[1])
    assert "sex is female" in model.to_dot(0) + model.to_dot(1)
    with pytest.raises(ParameterError, match="tree must be an integer from 0 to"):
        model.plot(tree=99)
    of_costs = fitted("tree").to_dot()
    assert 'label="everyone\\n150 rows' in of_costs
