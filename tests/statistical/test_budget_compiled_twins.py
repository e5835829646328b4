"""The kernels of budgeted chains are what their Python source says, draw for draw."""

import pytest

from tests.statistical.own_process import printed_lines

SCRIPT = """
import json
import numpy as np
from tests.methods.prunings import problems as prunings
from tests.methods.cost_trees import problems as trees

LARGER = trees.TreeProblem("larger", (4, 5, 3), 9, n_rows=150, n_classes=3, fractional=True)
WIDE = prunings.PruningProblem("wide", ((-1, 0, 1, 1, 0, 4, 5),) * 6, n_uses=40, tradeoff=0.1)

for problem in (*prunings.PROBLEMS, WIDE, *trees.PROBLEMS, LARGER):
    posterior = problem.posterior()
    rng = np.random.default_rng(11)
    state = posterior.initial_state(rng)
    for inverse_temperature in (0.0, 0.5, 1.0):
        state, counts = posterior.advance(rng, state, 200, inverse_temperature)
        print(json.dumps([
            problem.name, posterior.encode_state(state), round(counts.log_density, 8),
            posterior.encode_state(counts.best_state), dict(counts.accepted),
            int(rng.integers(2**60)),
        ]))
"""

LINES = 12 * 3


@pytest.mark.slow
def test_kernels_equal_their_python_source(tmp_path):
    """Same seed, same draws, compiled or not: the compiler changed nothing."""
    compiled = printed_lines(SCRIPT, tmp_path)
    assert len(compiled) == LINES
    assert compiled == printed_lines(SCRIPT, tmp_path, NUMBA_DISABLE_JIT="1")


@pytest.mark.slow
def test_kernels_stay_within_their_arrays(tmp_path):
    """A read beyond the end of an array returns something, silently, unless it is checked."""
    checked = printed_lines(
        SCRIPT, tmp_path, NUMBA_BOUNDSCHECK="1", NUMBA_CACHE_DIR=str(tmp_path / "bounds-checked")
    )
    assert checked == printed_lines(SCRIPT, tmp_path)
