"""What is proved of prunings holds to the last digit, whatever rows weigh and features cost."""

import json
from dataclasses import replace

import numpy as np
import pytest

import bayescascade
from bayescascade import BudgetPruneClassifier
from bayescascade.base.errors import InternalError
from bayescascade.methods.budget.pruning.path import gap_text
from bayescascade.methods.budget.pruning.program import Pruning
from bayescascade.methods.budget.pruning.solvers import FlowSolver
from tests.methods.budget.pruning import large
from tests.methods.budget.pruning.linear_program import relax
from tests.methods.budget.pruning.problems import PruningProblem


def found(seeds):
    """Return what is wrong with proofs of random problems."""
    flaws = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        listed, words = large.draw_listed(rng)
        flaws += [f"{seed}: {words}: {flaw}" for flaw in large.flaws(listed, rng)]
    return flaws


@pytest.mark.parametrize(
    "seeds", [range(60), pytest.param(range(60, 400), marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_random_problems_are_certified(seeds):
    """Bounds, what is called optimal, and the objectives that are printed."""
    assert found(seeds) == []


def test_roundings_left_out_are_seen(monkeypatch):
    """The broken twin: bounds as they are added up are above the best pruning, by a hair."""
    usual = Pruning.of.__func__

    def exact(cls, *given, **named):
        return usual(cls, *given, **{**named, "rounding": 0.0})

    monkeypatch.setattr(Pruning, "of", classmethod(exact))
    assert any("is above the best" in flaw for flaw in found(range(60)))


def test_a_flow_that_does_not_keep_its_claim_is_not_certified(monkeypatch, rng):
    """Whatever is wrong with the flow, no page may say optimal."""
    while True:  # until a problem keeps something
        listed, _ = large.draw_listed(rng)
        solver = FlowSolver(listed.program)
        kept = solver.solve(0.0).kept
        if kept.any():
            break
    objective = type(listed.program).objective

    def worse(self, kept, tradeoff):
        return objective(self, kept, tradeoff) + 1e-9

    monkeypatch.setattr(type(listed.program), "objective", worse)
    with pytest.raises(InternalError, match="Nothing is certified; please report it"):
        solver.solve(0.0)


def middle_program(rng):
    """Return a program of some hundred splits, whose prunings cannot be listed."""
    parents = tuple(
        tuple(-1 if v == 0 else int(rng.integers(v)) for v in range(20)) for _ in range(12)
    )
    return PruningProblem("middle", parents, n_uses=150, seed=int(rng.integers(1000))).program


def test_middle_programs_agree_with_a_linear_program(rng):
    """Another road to the optimum, by HiGHS, whose own tolerance is 1e-7."""
    for _ in range(3):
        program = middle_program(rng)
        for tradeoff in (0.0, 0.03, 0.1, 0.3, 10.0):
            _, value = relax(program, tradeoff)
            best = FlowSolver(program).solve(tradeoff)
            assert best.gap == 0.0
            assert best.rounding < 1e-10
            assert value == pytest.approx(best.objective, abs=1e-6)


def test_optimal_is_said_of_proofs_alone():
    """A gap of 1e-7 was called optimal; a rounding that can be seen is none."""
    assert gap_text(0.0, "gap {:.2g} %") == "optimal"
    assert gap_text(1e-9, "gap {:.2g} %") == "gap 1e-07 %"
    pruning = Pruning(np.zeros(1, np.bool_), 0.1, 0.5, 0.5 - 1e-7, rounding=1e-12)
    assert pruning.gap > 0
    assert replace(pruning, rounding=2e-7).gap == 0.0
    seen = replace(pruning, lower_bound=0.4, rounding=0.2)
    assert seen.gap == pytest.approx(0.2)


def test_saved_proofs_say_what_they_said(tmp_path, rng):
    X = rng.normal(size=(120, 4))
    model = BudgetPruneClassifier(tradeoff=0.05, random_state=0).fit(X, X[:, 0] + X[:, 1] > 0)
    assert model.duality_gap_ == 0.0
    assert "optimal" in str(model)
    model.save(tmp_path / "m.json")
    record = json.loads((tmp_path / "m.json").read_text())
    assert record["lower_bound"] == [model.lower_bound_, model._rounding]
    assert str(bayescascade.load(tmp_path / "m.json")) == str(model)
