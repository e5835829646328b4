"""The posterior of prunings: its density, its moves one by one, and what it says of a state."""

import dataclasses
import math

import numpy as np
import pytest

from bayescascade.base.errors import ModelFileError, ParameterError
from bayescascade.methods.budget.pruning.budget_prune import BudgetPruneClassifier
from bayescascade.methods.budget.pruning.posterior import KeptSplits, PruningPosterior
from tests.methods.budget.pruning.problems import DEEP, PAIR, PROBLEMS, THREE, each


@each(*PROBLEMS)
def test_density_is_the_objective_over_the_temperature(problem):
    """What is sampled must be what was optimized."""
    posterior = problem.posterior(temperature=0.07)
    for kept, pruning in zip(problem.sets, problem.prunings, strict=True):
        expected = -problem.objective(kept) / 0.07
        assert posterior.log_density(pruning) == pytest.approx(expected, rel=1e-12)
        assert posterior.log_prior(pruning) == 0.0


def test_prunings_beyond_the_bound_or_below_a_cut_have_no_density():
    """Chains below a bound must be told where to start; no forest has a split below a cut."""
    hanging = KeptSplits(np.array([False, True, False, False, False, False]))
    assert PAIR.posterior().log_density(hanging) == -math.inf
    assert PAIR.posterior().log_prior(hanging) == -math.inf
    objectives = sorted(map(THREE.objective, THREE.sets))
    posterior = THREE.posterior(temperature=math.inf, max_objective=objectives[7])
    densities = [posterior.log_density(state) for state in THREE.prunings]
    assert densities.count(0.0) == 8
    assert densities.count(-math.inf) == len(THREE.sets) - 8
    with pytest.raises(ParameterError, match="initial_states must be given"):
        posterior.initial_state(np.random.default_rng(0))


def test_descriptions_are_those_of_the_program():
    """Each becomes a trace, and diagnostics are read off the objective's."""
    posterior = THREE.posterior()
    kept = np.array([True, False, True, True, False, False])
    described = posterior.describe(KeptSplits(kept))
    assert described["objective"] == pytest.approx(THREE.objective(frozenset({0, 2, 3})))
    parts = described["error"] + THREE.tradeoff * described["cost"]
    assert parts == pytest.approx(described["objective"])
    assert (described["n_splits"], described["n_trees"]) == (3.0, 2.0)


@pytest.mark.parametrize(
    ("encoded", "message"),
    [
        ({}, "cannot be read"),
        ({"n_splits": 6, "kept": "ffff"}, "cannot be read: kept must have 6 bits, got 2 bytes"),
        ({"n_splits": 5, "kept": "f8"}, "must be of 6 splits, got 5"),
        ({"n_splits": 6, "kept": "40"}, "keeps a split below a cut"),
        (None, "cannot be read"),
    ],
)
def test_forged_states_are_refused(encoded, message):
    """The kernels trust what they are given."""
    with pytest.raises(ModelFileError, match=message):
        THREE.posterior().decode_state(encoded)


def test_fingerprints_tell_programs_apart():
    """A checkpoint of another forest, price or temperature must not be resumed."""
    program = dataclasses.replace(THREE.program, base_error=0.25)
    posteriors = [
        THREE.posterior(),
        DEEP.posterior(),
        THREE.posterior(tradeoff=0.4),
        THREE.posterior(temperature=0.4),
        THREE.posterior(max_objective=0.4),
        type(THREE.posterior())(program, THREE.tradeoff, THREE.temperature),
    ]
    assert len({posterior.fingerprint() for posterior in posteriors}) == len(posteriors)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tradeoff": -0.1}, "tradeoff must be a finite number >= 0"),
        ({"temperature": 0.0}, "temperature must be a finite number > 0"),
        ({"max_objective": math.nan}, "max_objective must be a finite number"),
        ({"max_objective": -math.inf}, "max_objective must be a finite number"),
    ],
)
def test_impossible_parameters_are_refused(settings, message):
    """A negative price would reward waste, and a temperature of zero divides by zero."""
    with pytest.raises(ParameterError, match=message):
        THREE.posterior(**settings)
    with pytest.raises(ParameterError, match=r"PruningProgram, model.program_, got BudgetPruneCl"):
        PruningPosterior(BudgetPruneClassifier(), 0.1, 0.1)
