"""Rules that explain effects: associations and trees by brute force, intervals by coverage."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.neighbors import KNeighborsRegressor

from bayescascade import DataError, EffectRules
from bayescascade.data.table import Table
from bayescascade.methods.effects.lists import best_tree, find_associations, rows_with
from bayescascade.methods.lists.antecedents import Condition

N_SETS = 200


def _coded(rng, n=60):
    frame = pd.DataFrame({
        "a": rng.choice(list("xyz"), n), "b": rng.integers(0, 4, n), "c": rng.choice(list("uv"), n)
    })  # fmt: skip
    table = Table.from_frame(frame, ordinal=["b"])
    return table.schema, table.schema.encode(frame)


def test_associations_are_those_of_counting(rng):
    schema, codes = _coded(rng, 200)
    is_good = (codes[0] == 0) & (rng.random(200) < 0.9)
    found = find_associations(
        schema, codes, is_good, n_shown=4, max_size=2, min_support=0.05, memory_limit=1.0
    )
    assert found[0].conditions[0] == Condition(0, 0, 1)
    for one in found:
        rows = np.ones(200, bool)
        for column, low, high in one.conditions:
            rows &= np.isin(codes[column], range(low, high))
        side = is_good == one.is_positive
        assert one.support == pytest.approx((rows & side).mean())
        assert one.confidence == pytest.approx(side[rows].mean())
        assert one.lift == pytest.approx(side[rows].mean() / side.mean())
    assert [one.is_positive for one in found] == sorted(
        (o.is_positive for o in found), reverse=True
    )


def test_no_association_beats_those_shown(rng):
    """The first of each side has the highest confidence of all conditions with the support."""
    schema, codes = _coded(rng, 150)
    is_good = rng.random(150) < 0.3 + 0.1 * codes[1]
    found = find_associations(
        schema, codes, is_good, n_shown=1, max_size=1, min_support=0.1, memory_limit=1.0
    )
    levels = [(0, k, k + 1) for k in range(3)] + [(2, k, k + 1) for k in range(2)]
    runs = [(1, i, k) for i in range(4) for k in range(i + 1, 5) if k - i < 4]
    for one in found:
        side = is_good == one.is_positive
        masks = [rows_with(codes, (Condition(*c),)) for c in levels + runs]
        best = max(side[m].mean() for m in masks if (m & side).mean() >= 0.1)
        assert one.confidence == pytest.approx(best)


@pytest.mark.parametrize("least", [1.0, 12.0])
def test_tree_is_the_best_of_all(rng, least):
    for _ in range(10):
        schema, codes = _coded(rng)
        h = rng.normal(size=60) + (codes[0] == 1) * (codes[1] < 2)
        cuts = [(codes[0] == k) for k in range(3)] + [codes[1] < k for k in (1, 2, 3)]
        cuts += [codes[2] == 0, codes[2] == 1]

        def worth(leaves, h=h):
            sizes = [leaf.sum() for leaf in leaves]
            return sum(h[leaf].sum() ** 2 / n for leaf, n in zip(leaves, sizes, strict=True))

        best = -np.inf
        for first, inner, outer in product(cuts, [*cuts, None], [*cuts, None]):
            leaves = [first] if inner is None else [first & inner, first & ~inner]
            leaves += [~first] if outer is None else [~first & outer, ~first & ~outer]
            if all(leaf.sum() >= least for leaf in leaves):
                best = max(best, worth(leaves))
        left, leaves = np.ones(60, bool), []
        for rule in best_tree(schema, codes, h, least):
            leaves.append(left & rows_with(codes, rule))
            left = left & ~leaves[-1]
        assert worth([*leaves, left]) == pytest.approx(best, abs=1e-9)


def _misses(rng, gain, *, seen):
    """Return of all rules of `N_SETS` sets whether the interval misses the effect; of sets, any.

    The effect is `gain` where x_0 > 0, else 0; rules tell an h that follows its rows closely. If
    `seen`, effects are measured on the rows that h and rules were learned from.
    """
    misses, sets = [], []
    for _ in range(N_SETS):
        X = rng.uniform(-1, 1, (600, 3))
        treated = rng.random(600) < 0.5
        good = rng.random(600) < 0.4 + gain * (treated & (X[:, 0] > 0))
        outcomes = np.where(treated, 2.0, -2.0) * (good - 0.5)
        learned, others = slice(0, 300), slice(300, None)
        h = KNeighborsRegressor(20).fit(X[learned], outcomes[learned]).predict
        measured = learned if seen else others
        result = EffectRules(kind="tree", n_associations=0, random_state=0).fit(
            X[learned],
            h(X[learned]),
            (X[measured], h(X[measured]), good[measured], treated[measured]),
        )
        many = rng.uniform(-1, 1, (4000, 3))
        parts = result.rules_.part_of_codes(
            result._coded(result.schema_, pd.DataFrame(many, columns=result.schema_.names))
        )
        truth = [gain * (many[parts == k, 0] > 0).mean() for k in range(result.rules_.n_rules + 1)]
        each = result.effects_.intervals()
        misses += [not low <= one <= high for one, (low, high) in zip(truth, each, strict=True)]
        low, high = result.effects_.intervals(together=True).T
        sets.append(bool(((truth < low) | (truth > high)).any()))
    return misses, sets


def _is_kept(shares):
    """Whether 95 % are right, by 3.9 standard deviations; at least 92 % of 800 rules."""
    return np.mean(shares) - 0.05 <= 3.9 * np.sqrt(0.05 * 0.95 / len(shares))


@pytest.mark.slow
@pytest.mark.parametrize("gain", [0.0, 0.3])
def test_intervals_of_rules_cover(rng, gain):
    misses, sets = _misses(rng, gain, seen=False)
    assert _is_kept(misses)
    assert _is_kept(sets)


@pytest.mark.slow
@pytest.mark.parametrize("gain", [0.0, 0.3])
def test_intervals_on_rows_that_rules_saw_do_not(rng, gain):
    """The test above must be able to fail."""
    misses, sets = _misses(rng, gain, seen=True)
    assert not _is_kept(misses)
    assert gain or not _is_kept(sets)  # with an effect, rules are seldom chosen by chance


@pytest.mark.slow
def test_rules_of_a_rule(rng):
    """They find it, though h is noisy."""
    frame = pd.DataFrame({"age": rng.uniform(20, 80, 600), "sex": rng.choice(["f", "m"], 600)})
    truth = (frame["sex"] == "m") & (frame["age"] < 50)
    h = np.where(truth, 0.3, -0.1) + rng.normal(0, 0.2, 600)
    for kind in ("list", "tree"):
        result = EffectRules(kind=kind, random_state=0).fit(frame, h)
        assert (result.predict(frame) == truth).mean() > 0.97
        assert result.effects_ is None


def test_sentences_say_for_whom_and_why_not(rng):
    """A clear line, a line without enough rows of an arm, and the average, in one place."""
    sex = rng.choice(["f", "m"], 600)
    frame, helps = pd.DataFrame({"sex": sex}), sex == "f"
    treated = np.where(helps, rng.random(600) < 0.5, np.cumsum(~helps) <= 3)
    y = (rng.random(600) < 0.2 + 0.6 * (helps & treated)).astype(float)
    h = np.where(helps, 0.5, -0.1)
    result = EffectRules(kind="tree", n_associations=0, random_state=0).fit(
        frame, h, (frame, h, y, treated, np.where(helps, 0.5, 0.01))
    )
    found = result.to_dict()
    words = found["sentences"]
    assert "held-out rows" in words[0]
    assert sum("helps" in text and "sex is" in text for text in words) == 1
    assert any("an arm has too few held-out rows" in text for text in words)
    assert [one.get("reason") for one in found["measured"][1:]].count("3 treated rows") == 1
    assert "3 treated rows" in str(result)
    alike = EffectRules(n_associations=0, random_state=0).fit(
        frame, np.full(600, 0.3), (frame, np.full(600, 0.3), y, treated)
    )
    assert len(alike.to_dict()["sentences"]) == 1  # the average says it
    for gap, words in ((0.0, "no list is more probable"), (2.0, "2.00 nats"), (28, "not proved")):
        alike.gap_ = gap
        assert words in str(alike)
    with pytest.raises(DataError, match="treatment of held-out rows must be 0 or 1"):
        EffectRules().fit(frame, h, (frame, h, y, 2.0 * treated))
