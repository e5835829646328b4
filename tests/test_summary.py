"""What a fit says of itself: data, convergence, and the posterior of leaves and columns."""

import json
from dataclasses import replace

import numpy as np
import pytest

from bayescascade.model.diagnostics import Diagnostic, fallen_chains
from bayescascade.model.summary import FitSummary
from tests.methods.density.trees.fits import ESTIMATORS, fitted


def test_summaries_are_read_off_the_draws():
    """The shares printed under the tree are frequencies among the draws."""
    model = fitted(ESTIMATORS[0])
    summary, draws = model.summary_, [tree for chain in model.run_.draws for tree in chain]
    assert (summary.n_rows, summary.total_weight) == (150, 150.0)
    assert summary.n_distinct == model.posterior_.table.n_distinct
    assert (summary.n_chains, summary.n_draws) == (2, len(model.run_.draws[0]))
    assert summary.method == "anneal+metropolis"
    assert not summary.interrupted
    sizes = [tree.n_leaves for tree in draws]
    leaves, first_splits, used = summary.shares.values()
    assert list(summary.shares) == ["leaves", "first split", "columns used"]
    for size, share in leaves.items():
        assert share == pytest.approx(sizes.count(int(size)) / len(sizes))
    assert sum(leaves.values()) == pytest.approx(1.0)
    assert list(leaves.values()) == sorted(leaves.values(), reverse=True)
    for index, name in enumerate(model.schema_.names):
        share = np.mean([index in tree.features_used for tree in draws])
        assert used[name] == pytest.approx(share)
        first = np.mean([tree.feature[0] == index for tree in draws])
        assert first_splits.get(name, 0.0) == pytest.approx(first)


def test_a_pure_search_claims_no_posterior():
    """Annealing draws nothing, so nothing is said of uncertainty."""
    summary = fitted(ESTIMATORS[0], search="anneal").summary_
    assert summary.n_draws == 0
    assert summary.diagnostics == summary.shares == {}
    assert summary.warnings == []


def with_diagnostic(r_hat, ess):
    summary = fitted(ESTIMATORS[0]).summary_
    return replace(summary, diagnostics={"log_posterior": Diagnostic(0.0, 1.0, r_hat, ess)})


@pytest.mark.parametrize(
    ("r_hat", "ess", "is_fine"),
    [(1.01, 400.0, True), (1.02, 4000.0, False), (1.0, 399.0, False),
     (float("nan"), float("nan"), False)],
)  # fmt: skip
def test_poor_convergence_is_a_warning(r_hat, ess, is_fine):
    """Estimates from chains that disagree must not look like the others."""
    warnings = with_diagnostic(r_hat, ess).warnings
    assert (not warnings) == is_fine
    if not is_fine:
        named = "ESS" if r_hat <= 1.01 else "R-hat"  # only what is wrong
        assert warnings[0].startswith(f"log posterior: {named}")
        assert warnings[-1].startswith("run longer chains (n_steps)")
        tempered = replace(with_diagnostic(r_hat, ess), method="tempering").warnings
        assert ("tempering" in warnings[-1], "tempering" in tempered[-1]) == (True, False)


def test_undefined_diagnostics_survive_json():
    """NaN is no JSON; it is written as null."""
    summary = with_diagnostic(float("nan"), float("inf"))
    text = json.dumps(summary.to_dict(), allow_nan=False)
    again = FitSummary.from_dict(json.loads(text))
    assert np.isnan(again.diagnostics["log_posterior"].r_hat)
    assert again.warnings


def test_an_annealing_that_fell_says_so():
    """The best tree is then one of the first temperature: all steps after it were lost."""
    gained = {"best_log_density": np.array([[-9.0, -5.0], [-8.0, -5.0]]),
              "log_density": np.array([[-9.0, -5.0], [-8.0, -5.5]])}  # fmt: skip
    fell = {**gained, "log_density": np.array([[-9.0, -5.0], [-8.0, -99.0]])}
    assert (fallen_chains(gained), fallen_chains(fell)) == (0, 1)
    fine = replace(fitted(ESTIMATORS[0], search="anneal").summary_, fallen=0)
    assert fine.warnings == []
    assert fine.objection == ""
    summary = replace(fine, fallen=1)
    assert summary.warnings[0].startswith("1 of 2 chains: annealing ended at a less probable state")
    assert "R-hat" not in summary.objection
    assert FitSummary.from_dict(summary.to_dict()).fallen == 1
