"""Leaves whose columns are independent: density, evidence, words, plain data, saved counts."""

import json
import math

import numpy as np
import pytest

from bayescascade.base.errors import DataError, ModelFileError
from bayescascade.data.column import Column
from bayescascade.data.schema import Schema
from bayescascade.methods.density.trees.counted_tree import CountedTree
from bayescascade.methods.density.trees.density import LearnedDensityTree
from bayescascade.methods.density.trees.tree import Tree
from tests.methods.density.trees import problems as tiny
from tests.methods.density.trees.problems import each
from tests.methods.density.trees.test_density import DENSITIES, density_of
from tests.methods.lists.lists import cells_of

independent = [tiny.INDEPENDENT, tiny.INDEPENDENT_BRANCH]

WEATHER = Schema(
    (
        Column("sky", "nominal", ("blue", "grey")),
        Column("wind", "ordinal", ("calm", "breeze", "gale")),
        Column("rain", "continuous", (), (0.0, 1.0, 5.0, 20.0), has_missing_level=True),
        Column("town", "nominal", ("Ayr", "Bath", "Crewe", "Deal", "Ely")),
    )
)


def weather(blue=None, grey=None, counts=(30.0, 90.0)):
    """Return a tree split by sky, from what the levels inside its leaves have but by width."""
    even = {"wind": [1 / 3] * 3, "rain": np.array([1, 4, 15, 1]) / 21, "town": [0.2] * 5}
    rows = []
    for sky, text in (([1, 0], blue or {}), ([0, 1], grey or {})):
        inside = {"sky": sky, **even, **text}
        rows.append(np.concatenate([inside[name] for name in WEATHER.names]))
    tree = Tree.from_nested((0, [((0,), None), ((1,), None)]), [True, False, False, True])
    weights = np.array([sum(counts), *counts])
    return LearnedDensityTree(
        WEATHER, tree, weights, weights / weights[0], {}, level_probabilities=np.array(rows, float)
    )


def twin(problem, model, density, cell, empirical):
    """Return a cell's density, by the formula in its words."""
    record, a = problem.record, model.parameters["leaf_concentration"]
    (leaf,) = (
        node for node in density.tree.leaves
        if all(code in left for code, left in zip(cell, density.boxes[node], strict=True))
    )  # fmt: skip
    inside = [
        (row, weight) for row, weight in zip(record["rows"], record["weights"], strict=True)
        if all(code in left for code, left in zip(row, density.boxes[leaf], strict=True))
    ]  # fmt: skip
    n = sum(weight for _, weight in inside)
    value = float(density.probabilities[leaf])
    for j, code in enumerate(cell):
        n_level = sum(weight for row, weight in inside if row[j] == code)
        width = record["widths"][j][code]
        if not empirical:
            left = len(density.boxes[leaf][j])
            value *= (n_level + a) / (n + a * left) / width
        elif n > 0:
            value *= n_level / n / width
    return value


@each(tiny.MULTIWAY, tiny.BINS, tiny.FRACTIONAL, tiny.ORDINAL, models=independent)
@pytest.mark.parametrize("kind", DENSITIES)
def test_densities_are_products_over_columns(problem, model, kind):
    """Posterior means of levels, or shares of the rows, over their widths."""
    for tree in problem.trees[:: max(1, len(problem.trees) // 12)]:
        density = density_of(problem, model, tree, kind)
        cells, _ = cells_of(density.schema)
        found = np.exp(density.score_codes(cells))
        expected = [twin(problem, model, density, cell, kind == "empirical") for cell in cells.T]
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-300)


@each(tiny.MULTIWAY, tiny.BINS, models=independent)
def test_a_node_has_its_average_density(problem, model):
    """What is printed beside an independent leaf, and above it, is probability over volume."""
    density = density_of(problem, model, problem.trees[len(problem.trees) // 2])
    cells, volumes = cells_of(density.schema)
    densities = np.exp(density.score_codes(cells))
    for node, box in enumerate(density.boxes):
        inside = np.array([all(c in b for c, b in zip(cell, box, strict=True)) for cell in cells.T])
        average = np.dot(densities[inside], volumes[inside]) / volumes[inside].sum()
        assert np.exp(density.log_densities[node]) == pytest.approx(average, rel=1e-12)


def test_evidence_keeps_the_share_of_the_levels():
    """Three quarters of a leaf's rows have calm or breeze: so many are expected."""
    density = weather({"wind": [0.5, 0.25, 0.25]}, {"wind": [0.0, 0.1, 0.9]})
    given = density.condition({"wind": ["calm", "breeze"]})
    np.testing.assert_allclose(given.counts, [31.5, 22.5, 9.0])
    probability = 0.25 * 0.75 + 0.75 * 0.1
    assert given.conditions_probability == pytest.approx(probability)
    np.testing.assert_allclose(given.probabilities[1:], [0.1875 / probability, 0.075 / probability])
    assert given.level_shares(1, 1).tolist() == pytest.approx([2 / 3, 1 / 3])
    assert given.level_shares(2, 1).tolist() == pytest.approx([0.0, 1.0])
    decided = given.condition({"sky": "grey"})
    assert decided.tree == Tree.root()
    assert decided.level_shares(0, 1).tolist() == pytest.approx([0.0, 1.0])


def test_a_leaf_that_evidence_makes_impossible_keeps_a_density():
    """Shares of rows may be 0; what is left of such a leaf has probability 0, never NaN."""
    density = weather({"wind": [0.0, 0.5, 0.5]})
    given = density.condition({"wind": "calm"})
    assert given.probabilities.tolist() == [1.0, 0.0, 1.0]
    assert np.isfinite(given.level_probabilities).all()
    scores = given.score_codes(np.array([[0, 1], [0, 0], [1, 1], [0, 0]], np.int32))
    assert scores[0] == -np.inf
    assert np.isfinite(scores[1])
    with pytest.raises(DataError, match="positive probability"):
        density.condition({"wind": "calm", "sky": "blue"})


def test_explanations_tell_what_a_leaf_mostly_and_a_row_rarely_has():
    """The leaf's average density alone would not say why the row is rare."""
    density = weather(grey={"wind": [0.04, 0.16, 0.8], "town": [0.9, 0.04, 0.02, 0.02, 0.02]})
    row = {"sky": "grey", "wind": "calm", "rain": 0.5, "town": "Bath"}
    words = density.explain(row)
    assert words.startswith("sky is grey: 90 of 120 rows, probability 0.75, average density ")
    assert words.endswith(
        "; mostly town is Ayr 0.90 and wind is gale 0.80; "
        "rarely wind is calm 0.04 and town is Bath 0.04"
    )


def standouts(**inside):
    """Return what stands out among 90 rows, in words."""
    return [standout.words(WEATHER) for standout in weather(grey=inside).standouts(2)]


def test_standouts_are_few_levels_told_by_what_they_are_worth():
    """A reader sees what makes a leaf what it is: most telling first, of ordered ones neighbors."""
    assert standouts() == standouts(wind=[0.4, 0.3, 0.3]) == []
    assert standouts(rain=[0.4, 0.0, 0.6, 0.0]) == []  # [0, 1) is 8 times as likely, but not most
    assert standouts(wind=[0.05, 0.05, 0.9], town=[0.6, 0.1, 0.1, 0.1, 0.1]) == [
        "wind is gale 0.90",
        "town is Ayr 0.60",
    ]
    assert standouts(wind=[0.49, 0.01, 0.5]) == []  # calm or gale is no range of winds
    assert standouts(wind=[0.6, 0.39, 0.01]) == ["wind is calm, breeze 0.99"]
    assert standouts(rain=[0.45, 0.45, 0.1, 0.0]) == ["rain is in [0, 5) 0.90"]
    assert standouts(town=[0.5, 0.01, 0.48, 0.005, 0.005]) == ["town is Ayr, Crewe 0.98"]
    assert standouts(town=[0.245, 0.245, 0.245, 0.245, 0.02]) == []  # all but one say nothing
    inside = {"wind": [0.1, 0.1, 0.8]}  # which two rows have by chance
    assert weather(grey=inside, counts=(30.0, 9.0)).standouts(2)
    assert not any(s.column == 1 for s in weather(grey=inside, counts=(30.0, 2.0)).standouts(2))
    assert weather(grey=inside, counts=(30.0, 0.0)).standouts(2) == []


def test_plain_data_has_every_level():
    """Programs get all that the density is made of, in the form of the branches."""
    record = weather({"town": [0.9, 0.1, 0.0, 0.0, 0.0]}).node_dict()
    blue = record["branches"][0]["child"]
    assert blue["levels"]["sky"] == [{"levels": ["blue"], "probability": 1.0}]
    assert blue["levels"]["town"][:2] == [
        {"levels": ["Ayr"], "probability": 0.9},
        {"levels": ["Bath"], "probability": 0.1},
    ]
    assert blue["levels"]["rain"][0] == {"interval": [0.0, 1.0], "probability": 1 / 21}
    assert blue["levels"]["rain"][3] == {"interval": None, "missing": True, "probability": 1 / 21}
    assert json.loads(json.dumps(record)) == record


FORGERIES = {
    "shape": [[[10.0, 0.0, 6.0, 4.0]], [[10.0, 0.0], [6.0, 4.0]], [], 3.0, None],
    "numbers": [[[10.0, 0.0, "x", 4.0], [0.0, 20.0, 15.0, 5.0]], [[1.0], [1.0, 2.0]], {}],
    "finite numbers >= 0": [
        [[10.0, 0.0, 11.0, -1.0], [0.0, 20.0, 15.0, 5.0]],
        [[10.0, 0.0, 6.0, math.inf], [0.0, 20.0, 15.0, 5.0]],
        [[10.0, 0.0, 6.0, math.nan], [0.0, 20.0, 15.0, 5.0]],
    ],
    "0 for levels not in the leaf": [[[9.0, 1.0, 6.0, 4.0], [0.0, 20.0, 15.0, 5.0]]],
    "sum up to those of its leaves": [
        [[10.0, 0.0, 6.0, 3.0], [0.0, 20.0, 15.0, 5.0]],
        [[10.0, 0.0, 1e308, 1e308], [0.0, 20.0, 15.0, 5.0]],
    ],
}


@pytest.mark.parametrize(
    ("told", "words"), [(told, words) for words, many in FORGERIES.items() for told in many]
)
def test_forged_counts_of_levels_are_refused(told, words):
    """A probability that was edited must not be printed as if it had been computed."""
    schema = Schema((Column("a", "nominal", ("b", "c")), Column("d", "ordinal", (1, 2))))
    tree = Tree.from_nested((0, [((0,), None), ((1,), None)]), [True, False])
    record = {**tree.to_flat(), "leaf_counts": [10.0, 20.0]}
    good = {**record, "level_counts": [[10.0, 0.0, 6.0, 4.0], [0.0, 20.0, 15.0, 5.0]]}
    CountedTree.from_record(good, schema, "independent")
    with pytest.raises(ModelFileError, match=words):
        CountedTree.from_record({**record, "level_counts": told}, schema, "independent")
