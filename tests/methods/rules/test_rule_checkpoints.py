"""Fits of rule lists that are interrupted and resumed."""

import pytest
from numpy.testing import assert_allclose

import bayescascade
from bayescascade import DensityRuleList, RuleListClassifier
from samplers import CheckpointError
from tests.methods.rules.fits import DECLARED, QUICK, boats, fates, people

ESTIMATORS = {
    "density": (DensityRuleList, DECLARED, lambda _: None),
    "classifier": (RuleListClassifier, {}, fates),
    "average": (RuleListClassifier, {"predictive": "average"}, boats),
}
LONGER = {**QUICK, "n_steps": 40_000}


@pytest.fixture(params=ESTIMATORS)
def fit(request, monkeypatch):
    """Return a function that fits with changed parameters, its chains reporting often."""
    monkeypatch.setattr("samplers.chains.ROUND_SECONDS", 0.005)
    estimator, parameters, labels = ESTIMATORS[request.param]

    def fit(**changes):
        frame = people()
        return estimator(**{**LONGER, **parameters, **changes}).fit(frame, labels(frame))

    return fit


class InterruptedAt:
    """A progress callback that is Ctrl-C at the n-th report."""

    def __init__(self, n):
        self.n = n

    def __call__(self, _progress):
        self.n -= 1
        if self.n == 0:
            raise KeyboardInterrupt


@pytest.mark.parametrize("n", [1, 8])
def test_interrupted_and_resumed_fit_is_the_whole_one(fit, n, tmp_path):
    """What was paid for is kept, and the result is the same file, byte for byte."""
    whole, resumed, checkpoint = (tmp_path / name for name in ("whole", "resumed", "run"))
    fit().save(whole)
    first = fit(checkpoint=checkpoint, progress=InterruptedAt(n))
    assert first.run_.interrupted
    again = fit(checkpoint=checkpoint, resume=True)
    assert not again.run_.interrupted
    again.save(resumed)
    assert resumed.read_bytes() == whole.read_bytes()


def test_an_interrupted_fit_is_a_model(fit, tmp_path):
    """Ctrl-C means enough, not never mind: even before there is a draw to average over."""
    model = fit(progress=InterruptedAt(1))
    assert model.summary_.interrupted
    assert "interrupted" in str(model)
    assert isinstance(model.explain(people(1)), str)
    model.save(tmp_path / "model.json")
    loaded = bayescascade.load(tmp_path / "model.json")
    assert loaded.rules_.to_dict() == model.rules_.to_dict()


@pytest.mark.parametrize("changes", [{"max_size": 1}, {"concentration": 2.0}], ids=str)
def test_a_checkpoint_of_another_model_is_refused(fit, changes, tmp_path):
    """Going on with it would mix two posteriors."""
    fit(checkpoint=tmp_path / "run", progress=InterruptedAt(3))
    with pytest.raises(CheckpointError):
        fit(checkpoint=tmp_path / "run", resume=True, **changes)


@pytest.mark.parametrize("name", ["density", "average"])
def test_an_average_over_no_draws_is_the_best_list(name, tmp_path):
    """Else a model that Ctrl-C saved early could be used for nothing."""
    estimator, parameters, labels = ESTIMATORS[name]
    frame = people()
    model = estimator(
        **{**QUICK, **parameters, "predictive": "average", "progress": InterruptedAt(1)}
    ).fit(frame, labels(frame))
    model.save(tmp_path / "model.json")
    score = "score_samples" if name == "density" else "predict_proba"
    best = getattr(model.set_params(predictive="map"), score)(frame)
    loaded = bayescascade.load(tmp_path / "model.json")
    assert loaded.predictive == "average"
    assert_allclose(getattr(loaded, score)(frame), best, rtol=1e-12)
    if name == "average":
        assert loaded.credible_interval(frame.head(5)).shape == (5, 3, 2)
