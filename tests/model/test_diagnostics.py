"""R-hat and effective sample size against ArviZ."""

import numpy as np
import pytest

from bayescascade.model.diagnostics import diagnose_array

N_CHAINS = (1, 2, 4)


@pytest.mark.parametrize("n_draws", [4, 5, 6, 7, 8, 50, 251])
@pytest.mark.parametrize("kept", [0.0, 0.3, 0.97, -0.8])
def test_diagnostics_are_those_of_arviz(n_draws, kept, rng):
    """Users compare our R-hat and sample sizes with those of other samplers."""
    az = pytest.importorskip("arviz")
    for n_chains in N_CHAINS:
        draws = rng.normal(size=(n_chains, n_draws))
        for t in range(1, n_draws):
            draws[:, t] += kept * draws[:, t - 1]
        for one in (draws, np.rint(2 * draws), draws + np.arange(n_chains)[:, np.newaxis]):
            if np.ptp(one) > 0.0:
                found = diagnose_array(one)
                assert found.ess == pytest.approx(float(az.ess(one)), rel=1e-6)
                if n_chains > 1:
                    assert found.r_hat == pytest.approx(float(az.rhat(one)), rel=1e-6)


def test_chains_that_stand_still_at_different_places_have_not_converged():
    """Chains that never meet must not look like one."""
    stuck = diagnose_array(np.repeat([[0.0], [1.0]], 100, axis=1))
    assert stuck.r_hat > 1e3
    assert stuck.ess < 10
    assert diagnose_array(np.full((2, 100), 3.0)).r_hat == 1.0
