"""Lists that say the same of every row in other words, and the shares that count them as one."""

from collections import Counter
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest

from bayescascade import RuleListClassifier
from bayescascade.model.draws import PosteriorRun, TraceLegend
from bayescascade.model.page import shares_page
from tests.methods.lists.fits import fates, people
from tests.methods.lists.problems import DENSITIES, LABELS, each
from tests.rules_reference import part_of


def experienced(posterior, state):
    """Return what each distinct row experiences of a list, by a walk through its conditions."""
    rules = [posterior.antecedents[rule] for rule in state.rules]
    return np.array([part_of(row, rules) for row in posterior._codes.T.tolist()])


def say_the_same(posterior, first, second):
    """Whether two lists give each row the same company, and of densities the same volume."""
    one, other = experienced(posterior, first), experienced(posterior, second)
    if not np.array_equal(one[:, None] == one, other[:, None] == other):
        return False
    if not hasattr(posterior, "log_volumes"):
        return True
    volumes = [posterior.log_volumes(state) for state in (first, second)]
    of_rows = [v[parts] for v, parts in zip(volumes, (one, other), strict=True)]
    if volumes[0].size != volumes[1].size or not np.allclose(*of_rows, rtol=0, atol=1e-9):
        return False
    return np.allclose(*map(np.sort, volumes), rtol=0, atol=1e-9)


@pytest.mark.slow
@each(*DENSITIES, *LABELS)
def test_lists_of_the_same_parts_say_the_same_of_every_row(problem):
    """Counted as one, they must be one to whoever reads them; and those that are one must count."""
    posterior = problem.posterior()
    rng = np.random.default_rng(0)
    lists = [problem.lists[k] for k in rng.permutation(len(problem.lists))[:60]]
    held = [
        frozenset(part for part in posterior.parts_of(state).values() if part is not None)
        for state in lists
    ]
    n_same = 0
    for i, j in combinations(range(len(lists)), 2):
        is_same = held[i] == held[j]
        assert is_same == say_the_same(posterior, lists[i], lists[j]), (lists[i], lists[j])
        n_same += is_same
        if is_same:
            likelihoods = [posterior.log_likelihood(lists[k]) for k in (i, j)]
            n_parts = {lists[k].n_rules for k in (i, j)}
            if len(n_parts) == 1:  # of densities, parts without rows count, too
                assert likelihoods[0] == pytest.approx(likelihoods[1], abs=1e-9)
    assert n_same > 0


@pytest.mark.slow
def test_shares_of_what_is_shown_are_counted_among_the_draws():
    """Quoted as the probability of a rule, a share must not depend on how a draw words it."""
    frame = people()
    model = RuleListClassifier(n_steps=4_000, n_chains=2, random_state=3).fit(frame, fates(frame))
    drawn = Counter(state for chain in model.run_.draws for state in chain)
    shown, total = model.run_.best_state, drawn.total()
    posterior = model.posterior_
    parts = experienced(posterior, shown)
    same = dict.fromkeys([*range(shown.n_rules + 1), "every"], 0)
    for state, n in drawn.items():
        company = experienced(posterior, state)
        groups = {tuple(np.flatnonzero(company == part)) for part in set(company.tolist())}
        own = {part: tuple(np.flatnonzero(parts == part)) for part in set(parts.tolist())}
        same["every"] += n * (groups == set(own.values()))
        for part, rows in own.items():
            same[part] += n * (rows in groups)
    result = model.summary_.as_best
    expected = [same.pop("every"), drawn[shown], *same.values()]
    assert list(result.values()) == pytest.approx([n / total for n in expected])
    assert result["every word"] < result["every part"] < result["rule 1"]
    assert f"the same groups ({result['every part']:.2f})" in str(model)


def test_a_small_share_is_not_printed_as_none():
    """0.00 reads as impossible."""
    (text,) = shares_page({}, {"every part": 0.004, "every word": 0.0})
    assert text.pieces == ["the same groups (under 0.01)", "the same list (0.00)"]


def test_a_shown_rule_without_rows_has_no_share():
    """0.00 would read as a rule that no draw has, where there is nothing to have."""
    legend = TraceLegend(parts_of=lambda state: {"rule 1": state, "rule 2": None, "else": "rest"})
    drawn = [["rows", "others"], ["rows", "rows"]]  # twice is twice as probable
    run = SimpleNamespace(legend=legend, best_state="rows", draws=drawn)
    assert PosteriorRun.shares_as_best(run) == {
        "every part": 0.75, "every word": 0.75, "rule 1": 0.75, "else": 1.0,
    }  # fmt: skip
