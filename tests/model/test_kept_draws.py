"""Draws that a model keeps of many."""

import numpy as np
import pytest

from bayescascade.model.draws import thinned


@pytest.mark.parametrize(("n", "most"), [(0, 3), (2, 3), (3, 3), (10, 3), (1001, 1000), (400, 100)])
def test_kept_draws_are_spread_evenly_over_all_chains(n, most):
    """An average over the first draws alone would be that of one chain."""
    kept = thinned([range(n // 3), range(n // 3, n)], most)
    assert len(kept) == min(n, most)
    assert kept == sorted(set(kept))
    if n > most:
        assert (kept[0], kept[-1]) == (0, n - 1)
        gaps = np.diff(kept)
        assert gaps.max() - gaps.min() <= 1
