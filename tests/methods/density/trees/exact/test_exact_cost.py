"""Sizes are told before the work starts, are right, and decide what is refused."""

import gc
import pickle
import tracemalloc

import numpy as np
import pandas as pd
import pytest

from bayescascade import BranchPosterior, LeafPosterior, Table
from bayescascade.base.errors import ParameterError, TooLargeError
from bayescascade.methods.density.trees.exact import recursion
from bayescascade.methods.density.trees.exact.cost import ExactCost
from bayescascade.methods.density.trees.exact.posterior import solve
from tests.interrupts import interrupted
from tests.methods.density.trees.problems import BINARY, BRANCH, LEAF, MULTIWAY


def random_table(n_levels, n_rows=200, seed=5):
    rng = np.random.default_rng(seed)
    names = [f"c{j}" for j in range(len(n_levels))]
    cells = {c: rng.integers(0, q, n_rows) for c, q in zip(names, n_levels, strict=True)}
    nominal = {c: list(range(q)) for c, q in zip(names, n_levels, strict=True)}
    return Table.from_frame(pd.DataFrame(cells), nominal=nominal)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "n_levels", "given", "max_leaves"),
    [
        (BranchPosterior, (2,) * 11, {}, None),
        (BranchPosterior, (3, 6, 2, 7), {}, None),
        (LeafPosterior, (2,) * 9, {}, 6),
        (LeafPosterior, (4, 4, 3, 4), {"partitions": "levels"}, 40),
        (LeafPosterior, (3,) * 5, {"leaf": "independent"}, 4),
    ],
    ids=["branch", "multiway", "leaf", "levels", "independent"],
)
def test_memory_is_what_was_announced(kind, n_levels, given, max_leaves):
    """A user who sets a limit must not run out of memory, nor be refused needlessly."""
    posterior = kind(random_table(n_levels), **given)
    _ = solve(posterior, max_leaves=max_leaves).split_probabilities  # compiled, own arrays made
    gc.collect()
    tracemalloc.start()
    exact = solve(posterior, max_leaves=max_leaves)
    _ = exact.split_probabilities
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    announced = ExactCost.of(posterior, max_leaves).memory_bytes
    assert exact.cost.memory_bytes == announced
    assert 0.5 * announced < peak < 1.2 * announced + 200_000


FORTY = {"expected_leaves": 40.0}


@pytest.mark.parametrize(
    ("kind", "n_levels", "given"),
    [
        (LeafPosterior, (9,) * 100, {}),
        (BranchPosterior, (9,) * 100, {}),
        (BranchPosterior, (2,) * 12, {"feature_inclusion": 0.4}),
        (LeafPosterior, (8,) * 100, {**FORTY, "partitions": "levels", "leaf": "independent"}),
    ],
    ids=["leaf", "branch", "inclusion", "levels"],
)
def test_too_large_is_refused_at_once(kind, n_levels, given, monkeypatch):
    """A hundred columns must not fill the memory before the error names the cause."""
    monkeypatch.setattr("bayescascade.methods.density.trees.exact.posterior.ExactPosterior", None)
    posterior = kind(random_table(n_levels), **given)
    with pytest.raises(TooLargeError, match="; less work: fewer columns") as refused:
        solve(posterior)
    assert refused.value.needed == ExactCost.of(posterior).words()
    again = pickle.loads(pickle.dumps(refused.value))  # as workers send it
    assert (str(again), again.needed) == (str(refused.value), refused.value.needed)
    if "feature_inclusion" in given:
        assert "feature_inclusion ties all splits together" in str(refused.value)
        assert "feature_inclusion=None" in str(refused.value)


def test_a_work_limit_is_kept():
    """What is set to stop a long run must stop it."""
    posterior = BRANCH.on(BINARY)
    cost = ExactCost.of(posterior)
    assert cost.n_boxes == 3**3
    assert solve(posterior, work_limit=cost.n_terms).cost == cost
    with pytest.raises(TooLargeError, match="terms"):
        solve(posterior, work_limit=cost.n_terms - 1)


@pytest.mark.parametrize(
    "wrong", [{"max_leaves": 0}, {"memory_limit": 0.0}, {"work_limit": -1.0}], ids=str
)
def test_wrong_limits_are_errors(wrong):
    """Zero is not "no limit"."""
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        solve(LEAF.on(BINARY), **wrong)


def test_costs_in_words():
    """Sizes beyond any float must still be told."""
    assert ExactCost(4_782_969, 12 * 10**7, 77 * 10**6, None).words() == (
        "4,782,969 boxes, 77 MB, about 1.2e8 terms"
    )
    assert ExactCost(3**1000, 10**500, 10**400, None).words() == (
        "1.3e477 boxes, 1.0e388 TB, about 1.0e500 terms"
    )


def test_progress_rises_to_one():
    """A progress bar that jumps back or never ends is worse than none."""
    texts = []
    solve(BRANCH.on(MULTIWAY), progress=texts.append)
    assert texts == sorted(texts)
    assert texts[-1] == 1.0
    assert all(0 <= share <= 1 for share in texts)


def test_interrupts_are_seen_between_pieces(monkeypatch):
    """Ctrl-C must stop a long recursion: the kernel returns to Python several times a second."""
    evaluate = interrupted(3, recursion.evaluate_lines)
    monkeypatch.setattr(recursion, "evaluate_lines", evaluate)
    with pytest.raises(KeyboardInterrupt):
        solve(BranchPosterior(random_table((2,) * 12)))
    assert evaluate.n_calls == 3
