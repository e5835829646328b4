"""The compiled kernels are what their Python source says, draw for draw and within bounds."""

import pytest

from tests.statistical.own_process import printed_lines

SCRIPT = """
import json
import numpy as np
from tests.methods.cascades.problems import (
    BINS, FRACTIONAL, MIXED_WAYS, MODELS, ORDINAL, WITH_OPTIONS
)

PLAIN = [(p, m) for p in (ORDINAL, BINS, FRACTIONAL, MIXED_WAYS) for m in MODELS]
for problem, model in (*PLAIN, *WITH_OPTIONS):
    posterior = model.on(problem)
    rng = np.random.default_rng(11)
    state = posterior.initial_state(rng)
    for inverse_temperature in (0.0, 0.5, 1.0):
        state, counts = posterior.advance(rng, state, 150, inverse_temperature)
        print(json.dumps([
            problem.name, model.name, state.to_flat(), round(counts.log_density, 8),
            counts.best_state.to_flat(), dict(counts.accepted), int(rng.integers(2**60)),
        ]))
    schema = problem.table.schema
    from bayescascade.methods.cascades.density import DensityTree
    weights, _ = posterior.node_statistics(state)
    density = DensityTree(
        schema, state, weights, posterior.model.probabilities(state, weights), {}
    )
    codes = schema.encode(problem.table)
    codes[0, ::2] = -1
    print(json.dumps([round(score, 8) for score in density.score_codes(codes)]))
"""


@pytest.mark.slow
def test_kernels_equal_their_python_source(tmp_path):
    """Same seed, same draws, compiled or not: the compiler changed nothing."""
    compiled = printed_lines(SCRIPT, tmp_path)
    interpreted = printed_lines(SCRIPT, tmp_path, NUMBA_DISABLE_JIT="1")
    assert len(compiled) == (4 * 3 + 7) * 4
    assert compiled == interpreted


@pytest.mark.slow
def test_kernels_stay_within_their_arrays(tmp_path):
    """A read beyond the end of an array returns something, silently, unless it is checked."""
    checked = printed_lines(
        SCRIPT, tmp_path, NUMBA_BOUNDSCHECK="1", NUMBA_CACHE_DIR=str(tmp_path / "bounds-checked")
    )
    assert checked == printed_lines(SCRIPT, tmp_path)
