"""Sizes are told before the work starts, are right, and decide what is refused."""

import gc
import tracemalloc

import numpy as np
import pandas as pd
import pytest

from bayescascade import BranchPosterior, LeafPosterior, Table
from bayescascade.base.errors import ParameterError, TooLargeError
from bayescascade.methods.cascades.exact import recursion
from bayescascade.methods.cascades.exact.cost import ExactCost
from bayescascade.methods.cascades.exact.posterior import solve
from tests.interrupts import interrupted
from tests.methods.cascades.exact.brute_force import brute_force, cases
from tests.methods.cascades.problems import BINARY, BRANCH, LEAF, MULTIWAY


def random_table(n_levels, n_rows=200, seed=5):
    rng = np.random.default_rng(seed)
    names = [f"c{j}" for j in range(len(n_levels))]
    cells = {c: rng.integers(0, q, n_rows) for c, q in zip(names, n_levels, strict=True)}
    nominal = {c: list(range(q)) for c, q in zip(names, n_levels, strict=True)}
    return Table.from_frame(pd.DataFrame(cells), nominal=nominal)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("posterior", "max_leaves"),
    [
        (BranchPosterior(random_table((2,) * 11)), None),
        (BranchPosterior(random_table((3, 6, 2, 7))), None),
        (LeafPosterior(random_table((2,) * 9)), 6),
        (LeafPosterior(random_table((4, 4, 3, 4)), partitions="levels"), 40),
        (LeafPosterior(random_table((3,) * 5), leaf="independent"), 4),
    ],
    ids=["branch", "multiway", "leaf", "levels", "independent"],
)
def test_memory_is_what_was_announced(posterior, max_leaves):
    """A user who sets a limit must not run out of memory, nor be refused needlessly."""
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


@cases((BINARY, LEAF), (BINARY, BRANCH), (MULTIWAY, LEAF), (MULTIWAY, BRANCH))
def test_terms_are_those_of_a_walk_over_all_boxes(problem, model):
    """Work is announced by arithmetic: it must be what going through the boxes would count."""
    cost = ExactCost.of(model.on(problem))
    most, n_leaves = problem.max_branches, brute_force(problem, model).trees
    cap = max(tree.n_leaves for tree in n_leaves)
    n_boxes = pairs = products = 0
    for box in np.ndindex(*[2**q - 1 for q in problem.n_levels]):
        sizes = [int(mask + 1).bit_count() for mask in box]
        n_boxes += 1
        narrowed = sum(m < q for m, q in zip(sizes, problem.n_levels, strict=True))
        n = cap - narrowed
        joins = n * (n - 1) // 2 if model is LEAF else 1
        dearest = int(np.argmax([(min(q, most) > 2, q) for q in problem.n_levels], axis=0)[1])
        for j, m in enumerate(sizes):
            below = pairs_of(m, most)
            if min(problem.n_levels[j], most) > 2 and j != dearest:
                continue
            pairs += below * (joins > 0)
            products += below * joins
    scattered = problem.table.n_distinct
    assert cost.n_boxes == n_boxes
    n_terms = 4 * n_boxes + pairs + products // 8
    assert cost.n_terms == n_terms // (1 if model is LEAF else 5) + scattered


def pairs_of(size, most):
    """First parts and rests joined for the sums over partitions into 2 .. most blocks."""
    rests = [mask.bit_count() for mask in range(1, 2 ** (size - 1))]
    return sum(min(most, rest + 1) - 1 for rest in rests)


@pytest.mark.parametrize(
    "posterior",
    [
        LeafPosterior(random_table((9,) * 100)),
        BranchPosterior(random_table((9,) * 100)),
        BranchPosterior(random_table((2,) * 100), feature_inclusion=0.4),
        LeafPosterior(random_table((8,) * 100), 40.0, partitions="levels", leaf="independent"),
    ],
    ids=["leaf", "branch", "inclusion", "levels"],
)
def test_too_large_is_refused_at_once(posterior, monkeypatch):
    """A hundred columns must not fill the memory before anyone is told."""
    monkeypatch.setattr("bayescascade.methods.cascades.exact.posterior.ExactPosterior", None)
    with pytest.raises(TooLargeError, match="what would fit: ") as refused:
        solve(posterior)
    assert refused.value.needed == ExactCost.of(posterior).words()


def test_what_fits_does():
    """Advice that leads to the next refusal is none."""
    posterior = LeafPosterior(random_table((3,) * 9))
    limits = {"memory_limit": 3e6}
    with pytest.raises(TooLargeError) as refused:
        solve(posterior, max_leaves=8, **limits)
    message = str(refused.value)
    assert 'max_leaves=4; partitions="levels"; 5 of 9 columns, without ' in message
    assert ExactCost.of(posterior, 4).memory_bytes <= 3e6 < ExactCost.of(posterior, 5).memory_bytes
    by_levels = LeafPosterior(posterior.table, partitions="levels")
    assert ExactCost.of(by_levels, 8).memory_bytes <= 3e6
    fewer, more = (LeafPosterior(random_table((3,) * p)) for p in (5, 6))
    assert ExactCost.of(fewer, 8).memory_bytes <= 3e6 < ExactCost.of(more, 8).memory_bytes


def test_a_work_limit_is_kept():
    """What is set to stop a long run must stop it."""
    posterior = BRANCH.on(BINARY)
    terms = ExactCost.of(posterior).n_terms
    assert solve(posterior, work_limit=terms).cost.n_terms == terms
    with pytest.raises(TooLargeError, match="terms"):
        solve(posterior, work_limit=terms - 1)


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
    told = []
    solve(BRANCH.on(MULTIWAY), progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert all(0 <= share <= 1 for share in told)


def test_interrupts_are_seen_between_pieces(monkeypatch):
    """Ctrl-C must stop a long recursion: the kernel returns to Python several times a second."""
    evaluate = interrupted(3, recursion.evaluate_lines)
    monkeypatch.setattr(recursion, "evaluate_lines", evaluate)
    with pytest.raises(KeyboardInterrupt):
        solve(BranchPosterior(random_table((2,) * 12)))
    assert evaluate.n_calls == 3


def test_what_ties_splits_together_is_named():
    """Who asks for feature_inclusion should hear that it is what makes the table too large."""
    posterior = BranchPosterior(random_table((2,) * 12), feature_inclusion=0.4)
    with pytest.raises(TooLargeError, match="feature_inclusion ties all splits together") as error:
        solve(posterior)
    assert "feature_inclusion=None" in str(error.value)
    assert solve(BranchPosterior(random_table((2,) * 4), feature_inclusion=0.4)).is_complete
