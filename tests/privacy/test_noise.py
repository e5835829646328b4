"""Both sources of noise have the laws that proofs are about, and OpenDP stays out of the way."""

import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import chisquare

from bayescascade.base.errors import ParameterError
from bayescascade.privacy import mechanisms as noise_module
from bayescascade.privacy.mechanisms import noise_source
from tests.privacy.noise_distributions import gaussian_law, laplace_law

LAWS = {"laplace": laplace_law, "gaussian": gaussian_law}
LEAST = 1e-7  # p-value; OpenDP cannot be seeded, and there are nine tests of it


def p_value(drawn, law):
    """Return that of draws, by classes of at least 200 expected; `law` is centered."""
    most = len(law) // 2
    observed = np.bincount(np.clip(drawn, -most, most) + most, minlength=len(law))
    classes = np.floor(np.cumsum(law) * len(drawn) / 200).astype(int)
    classes = np.unique(np.minimum(classes, classes[-1] - 1), return_inverse=True)[1]
    return chisquare(np.bincount(classes, observed), np.bincount(classes, law * len(drawn))).pvalue


@pytest.mark.parametrize("source", ["simulated", "opendp"])
@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("scale", [0.6, 3.0, 40.0])
def test_noise_has_its_law(source, kind, scale):
    """Chi-square; a scale that is 30 % off is rejected."""
    drawn = getattr(noise_source(source, 1), kind)(scale, 10_000)
    law = LAWS[kind](scale, int(45 * scale))
    assert drawn.dtype == np.int64
    assert p_value(drawn, law) > LEAST
    assert p_value(drawn, LAWS[kind](1.3 * scale, int(45 * scale))) < LEAST


@pytest.mark.parametrize("source", ["simulated", "opendp"])
def test_choices_have_the_law_of_the_exponential_mechanism(source):
    """Also where scores are so large that floats could not tell them apart; not a wider law."""
    noise, scores = noise_source(source, 2), np.array([0, 1, 5, 3])
    counts = np.bincount([noise.choose(scores, 2.0) for _ in range(2000)], minlength=4)
    for scale, is_law in ((2.0, True), (4.0, False)):
        expected = np.exp(scores / scale)
        fit = chisquare(counts, 2000 * expected / expected.sum())
        assert (fit.pvalue > LEAST) == is_law
    large = 2**60 + np.array([0, 64, -(2**61)])
    assert {noise.choose(large, 1.0) for _ in range(20)} == {1}


@pytest.mark.parametrize("source", ["simulated", "opendp"])
@pytest.mark.parametrize("kind", LAWS)
def test_wide_noise_fits_into_int64(source, kind):
    """At the widest scale allowed, and where nearly everything is 0."""
    wide = getattr(noise_source(source, 3), kind)(2.0**46, 400)
    assert 2.0**45 < np.abs(wide).mean() < 2.0**47
    assert not getattr(noise_source(source, 3), kind)(0.01, 400).any()


def test_only_simulated_noise_has_a_seed():
    """And only OpenDP's is private."""
    simulated = [noise_source("simulated", 5).laplace(9.0, 50).tolist() for _ in range(2)]
    assert simulated[0] == simulated[1]
    private = [noise_source("opendp", 5).laplace(9.0, 50).tolist() for _ in range(2)]
    assert private[0] != private[1]
    assert [noise_source(s).is_private for s in ("simulated", "opendp")] == [False, True]


def test_opendp_is_asked_for_where_it_is_missing(monkeypatch):
    with pytest.raises(ParameterError, match=r"noise must be one of .* got 'numpy'"):
        noise_source("numpy")
    noise_module._opendp.cache_clear()
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(ParameterError, match=r"pip install 'bayescascade\[privacy\]'"):
        noise_source("opendp")


@pytest.mark.slow
def test_opendp_is_imported_when_first_used():
    """It takes seconds."""
    code = "import sys, bayescascade as b; b.PrivacyLedger; b.audit_privacy; import {0}; {1}"
    result = code.format("bayescascade.privacy.mechanisms", "print('opendp' in sys.modules)")
    run = subprocess.run([sys.executable, "-c", result], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"
