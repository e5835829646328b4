"""What users call: which class is rare, exact and averaged unions, paths, pages, and bad input."""

import math

import numpy as np
import pandas as pd
import pytest

from bayescascade import BoxClassifier, BoxUnion, FastBoxes, hull_area, load
from bayescascade.base.errors import DataError, ParameterError
from bayescascade.methods.boxes import estimators
from bayescascade.methods.boxes.posterior import BoxPosterior
from bayescascade.methods.boxes.union import LearnedBoxes
from tests.interrupts import interrupted

EXACT = {"search": "exact", "likelihood": "gibbs", "n_boxes": 1, "side_cost": 0.5}
QUICK = {"n_steps": 3000, "n_chains": 2, "random_state": 0}


@pytest.fixture
def rows(rng):
    """Return rows, of which a corner is rare."""
    X = rng.normal(size=(240, 3)).round(2)
    return X, np.where((X[:, 0] > 0.8) & (X[:, 1] < 0.5), "yes", "no")


@pytest.mark.slow
def test_the_exact_union_is_proved_and_printed(rows, tmp_path):
    """Sides in a table, halfway to the next row, and the proof beside it."""
    model = BoxClassifier(**EXACT).fit(*rows)
    assert model.positive_ == "yes"
    assert model.exact_.gap == 0.0
    assert model.boxes_.n_sides == 2
    assert model.objective_ == model.exact_.objective
    assert (model.predict(rows[0]) == rows[1]).all()
    assert "exact: no union of up to 1 box has a higher objective" in str(model)
    assert model.boxes_.contains(rows[0]).sum() == (rows[1] == "yes").sum()
    model.save(tmp_path / "m.json")
    loaded = load(tmp_path / "m.json")
    assert str(loaded) == str(model)
    np.testing.assert_array_equal(loaded.predict_proba(rows[0]), model.predict_proba(rows[0]))


def test_what_is_not_proved_is_not_called_exact(rng, monkeypatch):
    """Neither a search that was ended, by default after some work, nor a program's word."""
    X, y = rng.normal(size=(200, 5)), rng.random(200) < 0.4
    settings = {**EXACT, "n_boxes": 2, "side_cost": 0.1}
    ended = BoxClassifier(**settings, time_limit=0.05).fit(X, y)
    assert ended.exact_.gap > 0.0
    assert "exact:" not in str(ended)
    assert "stopped at the time limit" in " ".join(str(ended).split())
    monkeypatch.setattr("bayescascade.methods.boxes.estimators._MOST_WORK", 2e7)
    by_default = BoxClassifier(**settings | {"n_boxes": 3}).fit(X[:60, :3], y[:60])
    text = " ".join(str(by_default).split())
    assert "each box is proved to be the best, given the others; no union of up to" in text
    assert "set a time_limit to search longer" in text
    program = BoxClassifier(**EXACT, solver="program").fit(X[:40, :2], y[:40])
    assert "exact" not in str(program)
    assert "to the solver's tolerance" in str(program)


@pytest.mark.parametrize("labels", ["no yes", "rare usual"], ids=["second", "first"])
def test_the_rare_class_is_named_where_the_objective_gains(labels, rng):
    """A rule of one half never names a class of which the box has three rows in ten."""
    X = rng.random((400, 2))
    corner = (X > 0.6).all(axis=1)
    is_rare = rng.random(400) < np.where(corner, 0.3, 0.01)
    usual, rare = labels.split() if labels == "no yes" else labels.split()[::-1]
    y = np.where(is_rare, rare, usual)
    model = BoxClassifier(**EXACT).fit(X, y)
    share = is_rare.mean()
    assert model.threshold_ == pytest.approx(share, rel=0.2)
    assert model.predict_proba(X)[:, list(model.classes_).index(rare)].max() < 0.5
    np.testing.assert_array_equal(model.predict(X) == rare, model.boxes_.contains(X))
    assert f'"{rare}" is predicted inside the boxes, from a probability of 0.0' in str(model)
    assert (model.predict(X, threshold=0.5) == usual).all()  # the broken twin
    dear = BoxClassifier(**EXACT | {"negative_weight": 0.9}).fit(X, y)
    assert dear.threshold_ == pytest.approx(0.9 / 1.9)
    with pytest.warns(UserWarning, match=f'"{rare}" is never predicted'):
        none = BoxClassifier(**EXACT, box_cost=1e6).fit(X, y)
    assert none.boxes_.n_boxes == 0
    assert (none.predict(X) == usual).all()
    assert f'warning: "{rare}" is never predicted' in " ".join(str(none).split())


def test_a_single_union_names_what_is_inside():
    """By hand: the rate inside, 5 of 8 with the prior rows, is less than 1.9 / 2.9."""
    X = np.array([0.0] * 3 + [1.0] * 6 + [2.0] * 3)[:, np.newaxis]
    y = np.array([0] * 3 + [1] * 4 + [0] * 2 + [0] * 3)
    model = BoxClassifier(**EXACT | {"side_cost": 0.0, "negative_weight": 1.9}).fit(X, y)
    assert model.predict_proba(X)[:, 1].max() < 1.9 / 2.9
    np.testing.assert_array_equal(model.predict(X), model.boxes_.contains(X))
    assert model.predict(X).any()


def test_the_doubt_of_a_side_is_that_of_the_most_similar_boxes():
    """By hand: of four draws three close the side, two of them in a box that is not the first."""
    rows, flags = np.array([[1.0, 5.0], [2.0, 6.0], [8.0, 1.0], [9.0, 0.0]]), np.array([True] * 4)
    sides = [[0.5], [0.9, 7.5], [7.0, 0.7], [-np.inf]]
    unions = [
        BoxUnion([[low, -np.inf] for low in lows], [[4.0, np.inf] if low < 4 else [np.inf] * 2
                 for low in lows])
        for lows in sides
    ]  # fmt: skip
    shown, *draws = (
        LearnedBoxes.of(one, rows, flags, np.ones(4), 1.0)
        for one in (BoxUnion([[0.8, -np.inf]], [[4.0, np.inf]]), *unions)
    )
    side, _ = shown.with_draws(draws, rows, np.ones(4)).sides
    assert side[:3] == (0, 0, False)
    assert side[4:] == (0.75, 0.5, 0.9)


def test_the_bound_is_that_of_all_unions_of_runs_of_values(rows):
    """Runs of M values are pairs of M + 1 gaps: counted here one by one."""
    model = BoxClassifier(**EXACT | {"n_boxes": 2}).fit(*rows)
    (_, missed), (inside, _) = model.learned_.counts
    runs = sum(1 for first in range(40) for _ in range(first, 40))
    n_unions = runs**3 * (runs**3 + 1) // 2 + 1
    slack = np.sqrt((math.log(n_unions) - math.log(0.1)) / (2 * 240))
    bound = model.bound(40, delta=0.1, negative_weight=0.5)
    assert bound == pytest.approx((missed + 0.5 * inside) / 240 + slack)
    assert model.bound([40] * 3, 0.1, 0.5) == bound
    with pytest.raises(ParameterError, match="n_values must be 3 integers, got 2"):
        model.bound([40, 40])


@pytest.mark.filterwarnings("ignore:chains do not agree")
@pytest.mark.parametrize(
    "likelihood",
    ["pooled", *(pytest.param(one, marks=pytest.mark.slow) for one in ("beta", "gibbs"))],
)
def test_averages_are_of_draws(rows, likelihood):
    """Rates of unions drawn; pooled ones of both posteriors, alike many."""
    model = BoxClassifier(likelihood=likelihood, n_boxes=2, **QUICK).fit(*rows)
    each = np.mean([one.probabilities(rows[0]) for one in model._draws], axis=0)
    np.testing.assert_allclose(model.predict_proba(rows[0])[:, 1], each)
    assert model.score(*rows) > 0.9
    shown = model.set_params(predictive="map").predict_proba(rows[0])
    np.testing.assert_allclose(shown[:, 1], model._best.probabilities(rows[0]))
    assert len(np.unique(shown)) <= 4
    assert (len(model._others) == 1) == (likelihood == "pooled")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:chains do not agree")
def test_progress_of_pooled_chains_ends_at_the_log_posterior_that_is_printed(rows):
    """Those of "gibbs" are on another scale: 680 was followed by -45.73."""
    heard = []
    model = BoxClassifier(**QUICK, progress=heard.append).fit(*rows)
    of_gibbs = [one for one in heard if one.phase.startswith("gibbs: ")]
    assert of_gibbs
    assert all(math.isnan(one.best_log_density) for one in of_gibbs)
    assert max(one.best_log_density for one in heard[len(of_gibbs) :]) == pytest.approx(
        model.run_.best_log_density
    )


def test_pooled_chains_go_on_in_their_second_half(rows, tmp_path, monkeypatch):
    """The first half is not drawn again, and the result is the same file, byte for byte."""
    monkeypatch.setattr("samplers.chains.ROUND_SECONDS", 0.0)
    phases = []

    def stop(report):
        phases.append(report.phase)
        if report.phase == "annealing":
            raise KeyboardInterrupt

    settings = {**QUICK, "n_boxes": 2, "checkpoint": tmp_path / "run"}
    whole = BoxClassifier(**QUICK, n_boxes=2).fit(*rows)
    part = BoxClassifier(**settings, progress=stop).fit(*rows)
    assert part.run_.interrupted
    assert "gibbs: annealing" in phases
    phases.clear()
    again = BoxClassifier(**settings, resume=True, progress=lambda report: phases.append(
        report.phase)).fit(*rows)  # fmt: skip
    assert "gibbs: annealing" not in phases
    for model, name in ((whole, "whole"), (again, "again")):
        model.save(tmp_path / name)
    assert (tmp_path / "whole").read_bytes() == (tmp_path / "again").read_bytes()


def test_ctrl_c_between_pooled_chains_leaves_those_of_the_first_half(rows, monkeypatch):
    monkeypatch.setattr(estimators, "BoxPosterior", interrupted(2, BoxPosterior))
    model = BoxClassifier(**QUICK, n_boxes=2).fit(*rows)
    assert (model.posterior_.likelihood, model.run_.interrupted) == ("gibbs", True)
    assert "interrupted" in str(model)
    assert len(np.unique(model.predict_proba(rows[0]), axis=0)) > 2


def test_paths_go_from_large_unions_to_small_ones(rows):
    """The more a negative weighs, the fewer are inside."""
    model = BoxClassifier(**EXACT | {"n_boxes": 2})
    path = model.path(*rows, weights=[0.01, 0.3, 1.0, 10.0])
    false, true = path.roc(*rows)
    assert (np.diff(false) <= 0.0).all()
    assert (np.diff(true) <= 0.0).all()
    assert path.hull_area(*rows) == hull_area(false, true) > 0.95
    assert all(one.is_optimal for one in path.found)
    assert path.plot(*rows).lines
    with pytest.raises(ParameterError, match="weights must be a finite number > 0"):
        model.path(*rows, weights=[0.0])


def test_text_columns_have_levels_as_sides(rng):
    """A side prints as its level, and a level of many as a column of yes and no."""
    frame = pd.DataFrame({
        "size": pd.Categorical(rng.choice(["s", "m", "l"], 200), ["s", "m", "l"], ordered=True),
        "color": rng.choice(["red", "blue", "green"], 200),
    })  # fmt: skip
    y = (frame["size"] != "s") & (frame["color"] == "red")
    text = str(BoxClassifier(**EXACT).fit(frame, y))
    assert "color is red" in text
    assert any(line.split()[:2] == ["size", "m"] for line in text.splitlines())


def test_the_rare_class_may_be_named(rows):
    """Or is the rarer one; weights count."""
    X, y = rows
    assert BoxClassifier(**EXACT, positive="no").fit(X, y).positive_ == "no"
    heavy = np.where(y == "yes", 100.0, 1.0)
    assert BoxClassifier(**EXACT).fit(X, y, heavy).positive_ == "no"
    with pytest.raises(ParameterError, match="positive must be 'no' or 'yes', got 'maybe'"):
        BoxClassifier(**EXACT, positive="maybe").fit(X, y)


@pytest.mark.filterwarnings("ignore:.* is never predicted")
@pytest.mark.parametrize("make", [lambda: BoxClassifier(**EXACT), lambda: FastBoxes(n_clusters=1)])
def test_bad_rows_are_refused(make):
    """Three classes, and one of weight 0; rows that are all alike, or missing, are not."""
    X = [[0.0], [1.0], [2.0], [3.0]]
    with pytest.raises(DataError, match="y must have two classes"):
        make().fit(X, [1, 2, 3, 1])
    with pytest.raises(DataError, match="sample_weight must be > 0 for a row of each class"):
        make().fit(X, [0, 0, 1, 1], [1.0, 1.0, 0.0, 0.0])
    alike = make().fit([[1.0]] * 4, [0, 0, 1, 1])
    assert np.isfinite(alike.predict_proba([[1.0], [2.0]])).all()
    missing = make().fit([[np.nan], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    assert np.isfinite(missing.predict_proba([[np.nan]])).all()


def test_more_boxes_than_positives_are_allowed():
    """A box that holds nothing is dropped."""
    settings = EXACT | {"n_boxes": 5, "side_cost": 0.1}
    assert BoxClassifier(**settings).fit([[0.0], [1.0], [2.0]], [0, 1, 0]).boxes_.n_boxes == 1
