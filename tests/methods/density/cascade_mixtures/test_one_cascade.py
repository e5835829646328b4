"""One cascade as the mixture: chosen where it predicts better, fairly, and then the density."""

from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bayescascade import AutoCascade, CascadeMixture, ParameterError, Table, load
from bayescascade.base.watch import Watch
from bayescascade.methods.density.cascade_mixtures.learning import weigh_cascade
from bayescascade.methods.density.mixtures.choosing import MixtureChooser
from bayescascade.methods.density.mixtures.em import EMSettings

LEVELS = {"sky": ["blue", "grey"], "wind": ["calm", "gale", "storm"], "rain": ["no", "yes"]}


@cache
def days(n=300):
    """Return rows of few cells, where wind and rain go together under a grey sky."""
    rng = np.random.default_rng(3)
    is_grey, wind = rng.random(n) < 0.4, rng.choice(LEVELS["wind"], n, p=[0.5, 0.3, 0.2])
    is_wet = rng.random(n) < np.where(is_grey, np.where(wind == "calm", 0.1, 0.9), 0.2)
    sky, rain = np.where(is_grey, "grey", "blue"), np.where(is_wet, "yes", "no")
    return pd.DataFrame({"sky": sky, "wind": wind, "rain": rain})


@cache
def fitted():
    """Return the mixture that held-out rows choose; treat it as read-only."""
    return CascadeMixture(random_state=0).fit(days())


@pytest.mark.slow
def test_it_is_chosen_where_it_predicts_better(tmp_path):
    """It is weighed among classes found by EM; what is printed and saved is the cascade."""
    model = fitted()
    model.report(tmp_path / "report.html")
    report = (tmp_path / "report.html").read_text()
    assert "log likelihood" in report
    assert "candidates on held-out rows" in report
    assert (model.kind_, model.n_components_, model.n_parameters_) == ("cascade", 1, None)
    others = model.candidates_[1:]
    assert set(others["kind"]) == {"independent", "dependent"}
    assert model.held_out_ == model.candidates_["held_out"][0]
    assert "1 class, a cascade averaged over its trees" in str(model)
    model.save(tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    assert str(again) == str(model)
    assert_allclose(again.score(days()), model.score(days()), rtol=0.01)


def test_it_is_one_density_of_complete_and_incomplete_rows():
    """The average over all trees, normalized, with gaps summed out; the only class is certain."""
    model = CascadeMixture(kind="cascade", random_state=0).fit(days())
    rows = pd.DataFrame(list(product(*LEVELS.values())), columns=list(LEVELS))
    densities = np.exp(model.score_samples(rows))
    assert densities.sum() == pytest.approx(1.0)
    is_open = rows["rain"] == "yes"
    asked = {"sky": None, "wind": None, "rain": "yes"}
    assert np.exp(model.score_samples(asked))[0] == pytest.approx(densities[is_open].sum())
    assert_array_equal(model.class_probabilities(rows), np.ones((12, 1)))
    best_tree = np.exp(model.mixture_.score_codes(model.encode(rows)))
    assert abs(best_tree - densities).max() > 1e-6
    drawn = model.sample(20_000, random_state=0).value_counts()
    seen = np.array([drawn.get(tuple(row), 0) for row in rows.itertuples(index=False)])
    assert (abs(seen - 20_000 * densities) <= 6 * np.sqrt(20_000 * densities)).all()


@pytest.mark.slow
def test_mixtures_that_are_best_by_chance_do_not_win():
    """Each of two is ahead in one fold alone: chosen by the other folds, neither is ahead."""
    table = Table.from_frame(days())
    seed = np.random.SeedSequence(0)
    grid = (("independent", "dependent"), (1.0,), (1,))
    mixtures = MixtureChooser(table, grid, seed, 5, 1e-3, 1, Watch(None), lambda _: None, 1e12)
    mixtures.choose()
    one, other = (EMSettings(kind, 1.0, 1) for kind in grid[0])
    lucky = np.array([1.5, -1.0, 0.0, 0.0, 0.0])
    flat = dict.fromkeys((one, other), np.zeros(5))
    mixtures.of_folds = flat
    equal = weigh_cascade(AutoCascade("quick", n_jobs=1), mixtures, seed)
    mixtures.of_folds = {one: lucky, other: lucky[[1, 0, 2, 3, 4]]}
    fair = weigh_cascade(AutoCascade("quick", n_jobs=1), mixtures, seed)
    assert max(own.sum() for own in mixtures.of_folds.values()) > 0
    assert fair.held_out == equal.held_out
    assert fair.gain == pytest.approx(equal.gain + 2.0 / len(days()))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_components": 3}, 'n_components must be 1 or "auto" with kind "cascade", got 3'),
        ({"smoothing": 2.0}, 'smoothing must be "auto" with kind "cascade", got 2.0'),
    ],
)
def test_what_a_cascade_has_not_is_refused(changed, message):
    """Else a number of classes would be ignored in silence."""
    with pytest.raises(ParameterError, match=message):
        CascadeMixture(kind="cascade", **changed).fit(days())
