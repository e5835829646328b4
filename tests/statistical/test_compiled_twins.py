"""The compiled kernels are what their Python source says, draw for draw and within bounds."""

from functools import cache
from pathlib import Path

import pytest

from tests.statistical.own_process import printed_lines

CASCADES = """
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
    from bayescascade.methods.cascades.density import LearnedDensityTree
    weights, _ = posterior.node_statistics(state)
    density = LearnedDensityTree(
        schema, state, weights, posterior.model.probabilities(state, weights), {}
    )
    codes = schema.encode(problem.table)
    codes[0, ::2] = -1
    print(json.dumps([round(score, 8) for score in density.score_codes(codes)]))
"""

RULES = """
import json
import numpy as np
from tests.methods.rules.problems import BINS, FEW, GAPS, KINDS, MISSING, Problem
from bayescascade.methods.rules.parts import log_first_volumes

LARGER = Problem("larger", KINDS, (4, 5, 4), 3, (1,), n_rows=150, fractional=True)
LABELED = Problem("labeled", KINDS, (4, 5, 4), 2, (1,), n_classes=3, n_rows=300)

for problem in (*FEW, MISSING, GAPS, LARGER, LABELED):
    posterior = problem.posterior(expected_rules=6.0)
    rng = np.random.default_rng(11)
    state = posterior.initial_state(rng)
    print(json.dumps([problem.name, [list(map(list, one)) for one in posterior.antecedents]]))
    for inverse_temperature in (0.0, 0.5, 1.0):
        state, counts = posterior.advance(rng, state, 150, inverse_temperature)
        print(json.dumps([
            problem.name, state.rules, round(counts.log_density, 8), counts.best_state.rules,
            dict(counts.accepted), int(rng.integers(2**60)),
        ]))
        volumes = log_first_volumes(
            posterior.schema, [posterior.antecedents[rule] for rule in state.rules]
        )
        print(json.dumps([round(volume, 8) for volume in volumes.tolist()]))
        print(json.dumps(np.round(posterior.counts(state), 8).tolist()))

most = Problem("most", ("nominal",) * 9, (2,) * 9, 3).posterior()
for n_rules in (1, 20, 62):
    drawn = np.random.default_rng(n_rules).choice(len(most.antecedents), n_rules, replace=False)
    volumes = log_first_volumes(most.schema, [most.antecedents[int(rule)] for rule in drawn])
    print(json.dumps([round(volume, 8) for volume in volumes.tolist()]))
"""

BUDGETS = """
import json
import numpy as np
from tests.methods.cost_trees import problems as trees
from tests.methods.prunings import problems as prunings

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

N_LINES = {CASCADES: (4 * 3 + 17) * 4, RULES: 9 * (1 + 3 * 3) + 3, BUDGETS: 12 * 3}

scripts = pytest.mark.parametrize("script", N_LINES, ids=["cascades", "rules", "budgets"])


@cache
def compiled_lines(script):
    """Return what the compiled kernels of this session say, run once."""
    return printed_lines(script, Path(__file__).parent)


@pytest.mark.slow
@scripts
def test_kernels_equal_their_python_source(script, tmp_path):
    """Same seed, same draws, compiled or not; Python checks the bounds of every array."""
    compiled = compiled_lines(script)
    assert len(compiled) == N_LINES[script]
    assert compiled == printed_lines(script, tmp_path, NUMBA_DISABLE_JIT="1")


@pytest.mark.slow
@pytest.mark.parametrize("script", [RULES, BUDGETS], ids=["rules", "budgets"])
def test_kernels_stay_within_their_arrays(script, tmp_path):
    """Of whole numbers as compiled, too; to compile the cascades' with checks takes 30 s."""
    checked = printed_lines(
        script, tmp_path, NUMBA_BOUNDSCHECK="1", NUMBA_CACHE_DIR=str(tmp_path / "bounds-checked")
    )
    assert checked == compiled_lines(script)


VOLUMES = """
from bayescascade.methods.rules.antecedents import Condition
from bayescascade.methods.rules.parts import log_first_volumes
from bayescascade.data.schema import Schema
from bayescascade.data.column import Column

schema = Schema(tuple(Column(f"c{j}", "nominal", (0, 1)) for j in range(6)))
rules = [tuple(Condition(j, 0, 1) for j in pair) for pair in ((0, 1), (1, 2), (2, 3), (4, 5))]
print(log_first_volumes(schema, rules))
"""


@pytest.mark.slow
def test_kernels_can_be_loaded_from_the_cache(tmp_path):
    """Numba's cache cannot hold all that it compiles: some of it crashes whoever loads it."""
    cache = str(tmp_path / "cache")
    first = printed_lines(VOLUMES, tmp_path, NUMBA_CACHE_DIR=cache)
    assert printed_lines(VOLUMES, tmp_path, NUMBA_CACHE_DIR=cache) == first
