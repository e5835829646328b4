"""The compiled kernels are what their Python source says, draw for draw and within bounds."""

import os
import subprocess
import sys
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from bayescascade.methods.density.trees.density import LearnedDensityTree
from bayescascade.methods.lists.parts import log_first_volumes

STEPS = """
import json
import numpy as np
from tests.statistical.test_compiled_twins import POSTERIORS

posteriors, shown = POSTERIORS["{name}"]()
for name, posterior in posteriors:
    rng = np.random.default_rng(11)
    state = posterior.initial_state(rng)
    for inverse_temperature in (0.0, 0.5, 1.0):
        state, counts = posterior.advance(rng, state, 150, inverse_temperature)
        print(json.dumps([
            name, posterior.encode_state(state), round(counts.log_density, 8),
            posterior.encode_state(counts.best_state), dict(counts.accepted),
            int(rng.integers(2**60)),
            *[np.round(one, 8).tolist() for one in shown(posterior, state)],
        ]))
"""


def _cascades():
    from tests.methods.density.trees import problems as tiny

    plain = (tiny.ORDINAL, tiny.BINS, tiny.FRACTIONAL, tiny.MIXED_WAYS)
    chosen = [*product(plain, tiny.MODELS), *tiny.WITH_OPTIONS]

    def shown(posterior, state):
        """Return the densities of rows, every other one without a cell."""
        weights, _ = posterior.node_statistics(state)
        probabilities = posterior.model.probabilities(state, weights)
        density = LearnedDensityTree(posterior.schema, state, weights, probabilities, {})
        codes = posterior.schema.encode(posterior.table)
        codes[0, ::2] = -1
        return [density.score_codes(codes)]

    return [(problem.name, model.on(problem)) for problem, model in chosen], shown


def _rules():
    from tests.methods.lists import problems as tiny

    larger = tiny.Problem("larger", tiny.KINDS, (4, 5, 4), 3, (1,), n_rows=150, fractional=True)
    labeled = tiny.Problem("labeled", tiny.KINDS, (4, 5, 4), 2, (1,), n_classes=3, n_rows=300)
    most = tiny.Problem("most", ("nominal",) * 9, (2,) * 9, 3).posterior()
    chosen = (*tiny.FEW, tiny.MISSING, tiny.GAPS, larger, labeled)

    of_many = []
    for n_rules in (1, 20, 62):
        drawn = np.random.default_rng(n_rules).choice(len(most.antecedents), n_rules, False)
        of_many.append(log_first_volumes(most.schema, rules_of(most, drawn.tolist())))

    def shown(posterior, state):
        """Return volumes and counts of parts, candidates, and volumes of up to 62 rules."""
        volumes = log_first_volumes(posterior.schema, rules_of(posterior, state.rules))
        return [volumes, posterior.counts(state), posterior.antecedents.items, *of_many]

    return [(problem.name, problem.posterior(expected_rules=6.0)) for problem in chosen], shown


def rules_of(posterior, chosen):
    return [posterior.antecedents[rule] for rule in chosen]


def _budgets():
    from tests.methods.budget.pruning import problems as prunings
    from tests.methods.budget.single_trees import problems as trees

    larger = trees.TreeProblem("larger", (4, 5, 3), 9, n_rows=150, n_classes=3, fractional=True)
    wide = prunings.PruningProblem("wide", ((-1, 0, 1, 1, 0, 4, 5),) * 6, n_uses=40, tradeoff=0.1)
    chosen = (*prunings.PROBLEMS, wide, *trees.PROBLEMS, larger)
    return [(problem.name, problem.posterior()) for problem in chosen], lambda *_: []


POSTERIORS = {"cascades": _cascades, "rules": _rules, "budgets": _budgets}
N_LINES = {"cascades": (4 * 3 + 14) * 3, "rules": 9 * 3, "budgets": 12 * 3}

each = pytest.mark.parametrize("name", POSTERIORS)


def printed_lines(script: str, directory: Path, **environment: str) -> list[str]:
    """Return what a script prints in a directory, with variables added to the environment."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **environment},
        capture_output=True,
        text=True,
        check=False,
        cwd=directory,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


@cache
def compiled_lines(name):
    """Return what the compiled kernels of this session say, run once."""
    return printed_lines(STEPS.format(name=name), Path(__file__).parent)


@pytest.mark.slow
@each
def test_kernels_equal_their_python_source(name, tmp_path):
    """Same seed, same draws, compiled or not; Python checks the bounds of every array."""
    compiled = compiled_lines(name)
    assert len(compiled) == N_LINES[name]
    assert compiled == printed_lines(STEPS.format(name=name), tmp_path, NUMBA_DISABLE_JIT="1")


@pytest.mark.slow
@each
def test_kernels_stay_within_their_arrays(name, tmp_path):
    """Integers wrap around in compiled code only, so that its indices are checked as well."""
    checked = printed_lines(
        STEPS.format(name=name),
        tmp_path,
        NUMBA_BOUNDSCHECK="1",
        NUMBA_CACHE_DIR=str(tmp_path / "bounds-checked"),
    )
    assert checked == compiled_lines(name)


VOLUMES = """
from bayescascade.methods.lists.antecedents import Condition
from bayescascade.methods.lists.parts import log_first_volumes
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
