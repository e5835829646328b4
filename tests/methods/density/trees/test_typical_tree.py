"""The typical tree of a posterior: shown in place of the best, in fits, files and commands."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import bayescascade
from bayescascade import AutoCascade, BranchCascade, DensityRuleList, LeafCascade
from bayescascade.base.errors import ParameterError
from bayescascade.model.typical import typical_draw
from tests.commands import run


class Normal:
    """A density that draws rows of its own mean, and scores them by their distance from it."""

    def __init__(self, mean: float) -> None:
        self.mean = mean

    def sample_codes(self, n, rng):
        """Return n rows of one column."""
        return rng.normal(self.mean, size=(1, n))

    def score_codes(self, codes):
        """Return log densities."""
        return -((codes[0] - self.mean) ** 2) / 2


def frame() -> pd.DataFrame:
    """Return 300 rows of which two columns go together, and noise."""
    rng = np.random.default_rng(5)
    columns = {name: rng.integers(0, 4, 300) for name in "abcd"}
    columns["b"] = np.where(rng.random(300) < 0.8, columns["a"], columns["b"])
    return pd.DataFrame(columns).map("klmn".__getitem__)


def test_the_typical_draw_is_nearest_to_all_others():
    """Not that in the middle of the list, nor of equal shares; one far away changes nothing."""
    means, shares = [0.0, 5.0, 1.0, 0.9, 40.0], np.array([0.3, 0.1, 0.3, 0.29, 0.01])
    densities = [Normal(mean) for mean in means]
    rng = np.random.default_rng(1)
    drawn = [one.sample_codes(int(1e5 * q), rng) for one, q in zip(densities, shares, strict=True)]
    scores = np.array([one.score_codes(np.concatenate(drawn, axis=1)) for one in densities])
    pairs = ((scores[:, np.newaxis] - scores) ** 2).mean(axis=2) @ shares
    assert typical_draw(densities, shares) == pairs.argmin()
    assert typical_draw(densities[:3], np.array([0.1, 0.8, 0.1])) == 1


@pytest.mark.slow
def test_a_model_shows_its_typical_tree(tmp_path):
    """The tree, text, report and score are that draw's; what was found stays the best's."""
    best = LeafCascade(n_steps=4000, n_chains=2, random_state=0, search="anneal+metropolis")
    best.fit(frame())
    model = LeafCascade(**{**best.get_params(), "tree": "typical"}).fit(frame())
    counted, times = model._draws
    shown = [one.tree for one in counted].index(model.tree_.tree)
    assert shown == typical_draw(*model._drawn())
    assert model.tree_.tree != best.tree_.tree
    assert model.log_posterior_ == best.log_posterior_
    n_drawn = min(sum(times), 250)
    found = f"{best.tree_.n_leaves} leaves"
    words = " ".join(str(model).split())
    assert f"The typical tree of {n_drawn} drawn ones" in words
    assert f"It has {model.tree_.n_leaves} leaves; the best tree, of {found}, is " in words
    assert "typical" not in str(best)
    scores = model.tree_.score_codes(model.encode(frame()))
    assert_array_equal(model.score_samples(frame()), scores)
    model.report(tmp_path / "report.html")
    assert "which is not shown, is the best of 2" in (tmp_path / "report.html").read_text()
    model.save(tmp_path / "m.json")
    loaded = bayescascade.load(tmp_path / "m.json")
    assert (str(loaded), loaded.tree_.tree) == (str(model), model.tree_.tree)
    loaded.set_params(tree="best")
    assert str(loaded) == str(best)
    assert_array_equal(loaded.feature_importances_, best.feature_importances_)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [AutoCascade, BranchCascade])
def test_commands_show_it(kind, tmp_path):
    """Of a saved model that was fitted without a thought of it."""
    path = tmp_path / "m.json"
    options = {"effort": "quick"} if kind is AutoCascade else {"search": "exact"}
    model = kind(**options, random_state=0).fit(frame())
    model.save(path)
    shown = run("show", path, "--tree", "typical").stdout
    assert "The typical tree of " in shown
    model.tree = "typical"
    assert shown == model.to_text() + "\n"
    assert run("show", path, "--tree", "typical", "--dot").stdout == model.tree_.to_dot()
    assert "The typical tree" not in run("show", path).stdout


def test_there_must_be_draws():
    """A list has no tree, and annealing draws none."""
    with pytest.raises(ParameterError, match='tree must be "best" with search "anneal"'):
        LeafCascade(search="anneal", tree="typical").fit(frame())
    with pytest.raises(ParameterError, match="tree must be one of 'best', 'typical', got 'worst'"):
        AutoCascade(tree="worst").fit(frame())
    annealed = LeafCascade(search="anneal", n_steps=500, random_state=0).fit(frame())
    annealed.tree = "typical"
    with pytest.raises(ParameterError, match='"best" for a model without draws'):
        str(annealed)
    assert not hasattr(DensityRuleList(), "tree")
