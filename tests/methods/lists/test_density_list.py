"""What a user asks of a density list: densities, missing cells, draws, evidence, words, data."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bayescascade.base.errors import DataError
from bayescascade.data.column import Column
from bayescascade.data.schema import Schema
from bayescascade.methods.lists import parts as draws
from bayescascade.methods.lists.antecedents import Condition
from bayescascade.methods.lists.density_list import LearnedDensityList
from bayescascade.methods.lists.label_list import LabelList
from bayescascade.methods.lists.parts import parts_of_codes
from tests import rules_reference as reference
from tests.methods.lists.lists import BINS, DOMAINS, LEVELS, cells_of, random_rules
from tests.statistical.chi_square import fits

each = pytest.mark.parametrize("schema", DOMAINS.values(), ids=DOMAINS)


def random_list(rng, schema, n_rules=3, max_size=2):
    """Return a density list of random rules, counts and probabilities."""
    rules = random_rules(rng, schema, n_rules, max_size)
    counts = rng.integers(0, 20, len(rules) + 1).astype(float)
    return LearnedDensityList(schema, rules, counts, rng.dirichlet(np.ones(len(rules) + 1)))


def parts_by_hand(density, cells):
    """Return the part of each cell, cell by cell."""
    return np.array([reference.part_of(cell, density.rules) for cell in cells.T.tolist()])


@each
def test_rows_belong_to_the_first_rule_that_fits(schema, rng):
    """Printed "if ... else if ...": what is missing or unknown satisfies no condition of labels."""
    cells, _ = cells_of(schema)
    for _ in range(20):
        density = random_list(rng, schema, 4)
        expected = parts_by_hand(density, cells)
        assert_array_equal(parts_of_codes(cells, density.rules), expected)
        assert_array_equal(parts_of_codes(cells[:, ::2], density.rules), expected[::2])
        counts = np.ones((density.n_rules + 1, 2))
        labels = LabelList(schema, np.array([0, 1]), density.rules, counts, 1.0)
        hidden = np.where(rng.random(cells.shape) < 0.3, -1, cells).astype(np.int32)
        for codes in (cells, hidden):
            found = labels.part_of_codes(codes)
            assert found.dtype == np.int64
            assert_array_equal(found, parts_by_hand(density, codes))


@each
def test_density_is_probability_over_volume(schema, rng):
    """Of the part that captures the cell first, by a count of its cells."""
    cells, volumes = cells_of(schema)
    for _ in range(20):
        density = random_list(rng, schema)
        parts = parts_by_hand(density, cells)
        of_parts = np.bincount(parts, volumes)
        assert_allclose(np.exp(density.log_volumes), of_parts, rtol=1e-12)
        expected = density.probabilities[parts] / of_parts[parts]
        assert_allclose(np.exp(density.score_codes(cells)), expected, rtol=1e-12)
        assert_allclose(
            density.relative_densities, density.probabilities / of_parts * volumes.sum(), rtol=1e-12
        )


def test_scores_do_not_depend_on_how_codes_are_stored(rng):
    """Codes of a table come in another layout than those of a frame."""
    density = random_list(rng, BINS)
    cells, _ = cells_of(BINS)
    expected = density.score_codes(cells)
    assert_array_equal(density.score_codes(np.asfortranarray(cells)), expected)
    assert_array_equal(density.score_codes(cells[:, ::-1]), expected[::-1])
    assert density.score_codes(cells[:, :0]).shape == (0,)


def drawn_cells(density, n, rng):
    return np.ravel_multi_index(density.sample_codes(n, rng), density.schema.n_levels)


@each
@pytest.mark.parametrize("least_share", [0.0, 0.9], ids=["reject", "cut"])  # else by parts
def test_draws_have_the_density(schema, least_share, rng, monkeypatch):
    """Synthetic rows must have the frequencies that the list states, however they are drawn."""
    monkeypatch.setattr(draws, "LEAST_SHARE", least_share)
    monkeypatch.setattr(draws, "FREE_TRIES", 0)
    cells, volumes = cells_of(schema)
    for _ in range(3):
        density = random_list(rng, schema, n_rules=4)
        probabilities = np.exp(density.score_codes(cells)) * volumes
        assert fits(drawn_cells(density, 3000, rng), probabilities)


def test_draws_of_another_density_are_noticed(rng):
    """The test above must be able to fail: rules in another order, volumes left out."""
    rules = ((Condition(0, 0, 1),), (Condition(1, 0, 1),))
    shares = np.array([0.5, 0.3, 0.2])
    density = LearnedDensityList(LEVELS, rules, shares, shares)
    turned = LearnedDensityList(LEVELS, rules[::-1], shares, shares)
    cells, volumes = cells_of(LEVELS)
    probabilities = np.exp(density.score_codes(cells)) * volumes
    assert fits(drawn_cells(density, 3000, rng), probabilities)
    assert not fits(drawn_cells(turned, 3000, rng), probabilities)
    binned = random_list(rng, BINS)
    cells, volumes = cells_of(BINS)
    assert not fits(drawn_cells(binned, 3000, rng), np.exp(binned.score_codes(cells)))


def test_draws_from_a_sliver_of_the_domain_take_few_tries(rng, monkeypatch):
    """Sixteen conditions leave one cell in 65,536: rejection would try as often for every row."""
    n_cells, draw = [], draws._Draws.draw

    def counted(self, column, codes, n):
        n_cells.append(n)
        return draw(self, column, codes, n)

    monkeypatch.setattr(draws._Draws, "draw", counted)
    schema = Schema(tuple(Column(f"c{j}", "nominal", (0, 1)) for j in range(18)))
    rules = tuple((Condition(j, 1, 2),) for j in range(16))
    shares = np.append(np.full(16, 0.1 / 16), 0.9)
    codes = LearnedDensityList(schema, rules, 100 * shares, shares).sample_codes(4000, rng)
    parts = parts_of_codes(codes, rules)
    assert fits(parts, shares)
    left = codes[:, parts == 16]
    assert not left[:16].any()
    assert fits(left[16] * 2 + left[17], np.full(4, 0.25))

    def tries(n):
        n_cells.clear()
        assert not draws.draw_from_part(schema, rules, 16, n, rng, {})[:16].any()
        return sum(n_cells) / (18 * n)

    assert tries(1) <= 2 * draws.FREE_TRIES
    assert tries(1000) <= 2 / draws.LEAST_SHARE
    monkeypatch.setattr(draws, "LEAST_SHARE", 0.0)  # the twin that never cuts
    assert tries(1) > 10 * draws.FREE_TRIES


def test_successive_draws_are_independent(rng):
    """Rows come in no order: half of them is as good a sample as all."""
    schema = Schema(tuple(Column(f"c{j}", "nominal", (0, 1)) for j in range(12)))
    rules = tuple((Condition(j, 1, 2), Condition(j + 1, 1, 2)) for j in range(10))
    shares = np.append(np.zeros(10), 1.0)
    codes = LearnedDensityList(schema, rules, shares, shares).sample_codes(4000, rng)
    first, second = codes[:, :2000].mean(axis=1), codes[:, 2000:].mean(axis=1)
    assert (np.abs(first - second) < 0.08).all()


def incomes():
    """Return a list over a nominal, an ordinal and a continuous column, with a missing level."""
    schema = Schema(
        (
            Column("sex", "nominal", ("female", "male")),
            Column("grade", "ordinal", (1, 2, 3, 4)),
            Column("income", "continuous", (), (0.0, 10.0, 30.0, 100.0), has_missing_level=True),
        )
    )
    rules = ((Condition(0, 1, 2), Condition(1, 0, 2)), (Condition(2, 0, 2),), (Condition(2, 3, 4),))
    counts = np.array([10.0, 5.0, 3.0, 2.0])
    return LearnedDensityList(schema, rules, counts, counts / 20)


def test_evidence_shortens_the_list():
    """What is known is no longer asked, and what cannot be is not listed."""
    male = incomes().condition({"sex": "male"})
    assert [male.part_words(part) for part in range(4)] == [
        "grade is 1, 2",
        "income is in [0, 30)",
        "income is missing",
        "no rule applies",
    ]
    assert male.conditions_words() == "sex is male"
    known = incomes().condition({"income": None})
    assert [known.part_words(part) for part in range(2)] == [
        "sex is male and grade is 1, 2",
        "no rule applies",
    ]
    assert incomes().condition({"sex": "male", "grade": 1}).n_rules == 0
    narrowed = incomes().condition({"grade": [2, 3, 4], "income": (10.0, 100.0)})
    assert narrowed.part_words(0) == "sex is male and grade is 2"
    assert narrowed.part_words(1) == "income is in [10, 30)"
    # rows are spread uniformly: half of the first rule's cells are left, a sixth of each other's
    first = incomes().condition({"grade": 1})
    assert_allclose(first.counts, [10 / 2, 5 / 6, 3 / 6, 2 / 6])
    words = first.explain({"sex": "male", "grade": 1, "income": 1.0})
    assert words.startswith("sex is male: 5 of 6.666666667 rows, probability 0.75")


def test_evidence_of_probability_zero_is_an_error():
    """With plug-in densities a part can be impossible; nothing follows from it."""
    density = incomes()
    impossible = LearnedDensityList(
        density.schema, density.rules, density.counts, np.array([0.0, 0.5, 0.3, 0.2])
    )
    with pytest.raises(DataError, match="positive probability"):
        impossible.condition({"sex": "male", "grade": 1})
    assert impossible.score_codes(np.zeros((3, 1), np.int32))[0] > -np.inf
    assert impossible.score_codes(np.array([[1], [0], [0]], np.int32))[0] == -np.inf


def test_explanations_name_the_rule_and_the_figures():
    """A rare row is shown with why it is rare, one with missing cells with each of its parts."""
    words = incomes().explain({"sex": "male", "grade": 2, "income": 50.0})
    assert words.startswith("sex is male and grade is 1, 2: 10 of 20 rows, probability 0.5, ")
    figure = float(words.split("density ")[1].split(",")[0])
    assert figure == pytest.approx(0.5 / (2 * 101), rel=1e-3)
    assert words.endswith(f"{0.5 / 202 * 808:.3g} x uniform")
    other = incomes().explain({"sex": "female", "grade": 2, "income": 50.0})
    assert other.startswith("no rule applies: 2 of 20 rows")
    lines = incomes().explain(pd.Series({"sex": None, "grade": 1, "income": 5.0})).splitlines()
    assert [line.split(":")[0] for line in lines] == [
        "sex is male and grade is 1, 2",
        "income is in [0, 30)",
    ]


def test_a_list_without_rules():
    """The smallest model is one density for all cells, of which there are a whole number."""
    density = LearnedDensityList(LEVELS, (), np.array([5.0]), np.array([1.0]))
    leaf = {"count": 5.0, "volume": 6.0, "probability": 1.0, "density": pytest.approx(1 / 6)}
    assert density.to_dict() == {"n_rules": 0, "rules": [], "else": leaf}
    assert density.explain({"a": "x", "b": 0}).startswith("any row: 5 of 5 rows")
    assert density.relative_densities.tolist() == pytest.approx([1.0])
    assert_allclose(density.score_codes(np.full((2, 1), -1, np.int32)), 0.0, atol=1e-15)


def test_plain_data():
    """Programs read the list in this form; the keys are documented."""
    record = incomes().to_dict()
    assert json.loads(json.dumps(record)) == record
    first, second, third = record["rules"]
    assert first["if"] == {"sex": ["male"], "grade": [1, 2]}
    assert first["volume"] == pytest.approx(2 * 101)
    assert second["if"] == {"income": {"interval": [0.0, 30.0]}}
    assert third == {
        "if": {"income": [None]}, "count": 3.0, "volume": pytest.approx(6.0), "probability": 0.15,
        "density": pytest.approx(0.15 / 6),
    }  # fmt: skip
    assert set(record["else"]) == {"count", "volume", "probability", "density"}


def test_volumes_and_densities_are_logarithms():
    """1,200 binary columns have more cells than a float can count."""
    schema = Schema(tuple(Column(f"c{j}", "nominal", (0, 1)) for j in range(1200)))
    density = LearnedDensityList(
        schema, ((Condition(7, 0, 1),),), np.ones(2), np.array([0.75, 0.25])
    )
    codes = np.zeros((1200, 2), np.int32)
    codes[:, 1] = -1
    scores = density.score_codes(codes)
    assert scores[0] == pytest.approx(math.log(0.75) - 1199 * math.log(2))
    assert scores[1] == pytest.approx(0.0, abs=1e-10)
    assert density.sample_codes(3, np.random.default_rng(0)).shape == (1200, 3)
    assert density.to_dict()["else"]["volume"] == math.inf
