"""Density trees, lists and histograms: normalized, drawn from, and conditioned, cell by cell."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bayescascade import SmoothedHistogram
from bayescascade.base.errors import DataError
from tests.methods.density.trees import problems as trees
from tests.methods.density.trees.test_density import density_of, grades
from tests.methods.lists.lists import DOMAINS, cells_of
from tests.methods.lists.test_density_list import incomes, random_list
from tests.statistical.chi_square import fits

MODELS = (trees.LEAF, trees.BRANCH, trees.INDEPENDENT)


def densities_of(problem, model, kind="posterior_mean"):
    """Return what draws density trees of a problem."""

    def drawn(rng):
        tree = problem.trees[int(rng.integers(len(problem.trees)))]
        return density_of(problem, model, tree, kind)

    return drawn


DRAWN = {
    **{
        f"{problem.name}-{model.name}": densities_of(problem, model)
        for problem in (trees.BINARY, trees.MULTIWAY, trees.BINS, trees.ORDINAL)
        for model in MODELS
    },
    "shares": densities_of(trees.FRACTIONAL, trees.LEAF, "empirical"),
    "shares-independent": densities_of(trees.BINS, trees.INDEPENDENT_BRANCH, "empirical"),
    **{
        name: lambda rng, schema=schema: random_list(rng, schema, n_rules=4)
        for name, schema in DOMAINS.items()
    },
    **{
        f"histogram-{problem.name}-{count}": lambda _, table=problem.table, count=count: (
            SmoothedHistogram(count).fit(table).cells_
        )
        for problem in (trees.BINS, trees.FRACTIONAL, trees.MIXED_WAYS)
        for count in (None, 0.3)
    },
}
SURE = [name for name in DRAWN if not name.startswith("shares")]  # no cell is impossible
each = pytest.mark.parametrize("name", DRAWN)
each_sure = pytest.mark.parametrize("name", SURE)
KNOWN = {"tree": grades, "list": incomes}  # over columns sex, grade and income
known = pytest.mark.parametrize("make", KNOWN.values(), ids=KNOWN)


@each
def test_densities_integrate_to_one(name, rng):
    """Otherwise scores of different models could not be compared; also over missing cells."""
    for number in range(12):
        density = DRAWN[name](rng)
        cells, volumes = cells_of(density.schema)
        full = np.exp(density.score_codes(cells))
        assert np.dot(full, volumes) == pytest.approx(1.0, abs=1e-12)
        if number > 3:
            continue
        widths = [c.widths[codes] for c, codes in zip(density.schema.columns, cells, strict=True)]
        for missing in itertools.product((False, True), repeat=cells.shape[0]):
            asked = np.where(np.array(missing)[:, None], -1, cells).astype(np.int32)
            found = np.exp(density.score_codes(asked))
            volume = np.prod([w for w, m in zip(widths, missing, strict=True) if m], axis=0)
            known = cells[~np.array(missing)]
            for i in range(cells.shape[1]):
                compatible = (known == known[:, [i]]).all(axis=0)
                assert found[i] == pytest.approx((full * volume)[compatible].sum(), rel=1e-12)


@each_sure
def test_draws_have_the_density(name, rng):
    """Synthetic rows must have the frequencies that the printed model states."""
    density = DRAWN[name](rng)
    cells, volumes = cells_of(density.schema)
    probabilities = np.exp(density.score_codes(cells)) * volumes
    codes = density.sample_codes(3000, rng)
    drawn = np.ravel_multi_index(codes, density.schema.n_levels)
    assert fits(drawn, probabilities)
    uneven = probabilities * np.linspace(0.4, 1.6, probabilities.size)
    assert not fits(drawn, uneven / uneven.sum())


def evidences(column):
    """Yield evidence on a column and the codes that it allows."""
    n_present = column.n_levels - column.has_missing_level
    if column.has_missing_level:
        yield None, {n_present}
    if column.kind == "nominal":
        for n in range(1, n_present + 1):
            for codes in itertools.combinations(range(n_present), n):
                yield [column.levels[code] for code in codes], set(codes)
        return
    is_binned = column.kind == "continuous"
    if is_binned:
        yield (column.edges[0] + column.edges[1]) / 2, {0}
    for low, high in itertools.combinations(range(n_present + 1), 2):
        ends = (column.edges[low], column.edges[high]) if is_binned else ()
        yield ends or list(column.levels[low:high]), set(range(low, high))


def assert_conditional(density, conditional, allowed):
    """Check a conditional density on every cell; `allowed` maps columns to codes."""
    cells, volumes = cells_of(density.schema)
    inside = np.ones(cells.shape[1], bool)
    for j, codes in allowed.items():
        inside &= np.isin(cells[j], list(codes))
    joint = np.exp(density.score_codes(cells))
    marginal = np.dot(joint[inside], volumes[inside])
    found = np.exp(conditional.score_codes(cells))
    assert_allclose(found[inside], joint[inside] / marginal, rtol=1e-12)
    assert (found[~inside] == 0).all()
    assert np.dot(found, volumes) == pytest.approx(1.0, abs=1e-12)
    assert conditional.conditions_probability == pytest.approx(marginal, rel=1e-12)
    assert not list(asked_in_vain(conditional))


def asked_in_vain(conditional):
    """Yield splits and conditions that the evidence decides, or that do not fit it."""
    for rule in getattr(conditional, "rules", ()):
        for j, low, high in rule or [(0, 0, 0)]:
            left = conditional.conditions.get(j, range(conditional.schema.columns[j].n_levels))
            if not 0 < sum(low <= code < high for code in left) < len(left):
                yield rule
    tree = getattr(conditional, "tree", None)
    for node in range(tree.n_nodes if tree else 0):
        children = tree.children(node)
        if children:
            column = int(tree.feature[node])
            kept = [code for child in children for code in conditional.boxes[child][column]]
            if sorted(kept) != list(conditional.boxes[node][column]) or len(children) < 2:
                yield node


@each_sure
def test_conditional_is_joint_over_marginal(name, rng):
    """On every cell, whatever is known; given in steps or at once."""
    for _ in range(3):
        density = DRAWN[name](rng)
        columns = density.schema.columns
        for j, column in enumerate(columns):
            for evidence, codes in evidences(column):
                conditional = density.condition({column.name: evidence})
                assert_conditional(density, conditional, {j: codes})
    last = len(columns) - 1
    for (first, some), (second, more) in itertools.product(*map(evidences, (columns[0], column))):
        if last:
            stepwise = density.condition({columns[0].name: first}).condition({column.name: second})
            at_once = density.condition({columns[0].name: first, column.name: second})
            assert_conditional(density, stepwise, {0: some, last: more})
            assert_allclose(stepwise.probabilities, at_once.probabilities, rtol=1e-12)
            assert_allclose(stepwise.counts, at_once.counts, rtol=1e-12)


@known
def test_the_same_column_may_be_narrowed_twice(make):
    """Known to be 1 to 3, then known to be 2; that a cell is missing is a fact as well."""
    narrowed = make().condition({"grade": [1, 2, 3]}).condition({"grade": 2})
    assert_conditional(make(), narrowed, {1: {1}})
    assert_conditional(make(), make().condition({"income": None}), {2: {3}})


@known
def test_draws_keep_to_the_evidence(make, rng):
    """Synthetic rows given the evidence."""
    density = make().condition({"sex": "male", "grade": [2, 3]})
    codes = density.sample_codes(2000, rng)
    assert set(codes[0]) == {1}
    assert set(codes[1]) == {1, 2}
    cells, volumes = cells_of(density.schema)
    drawn = np.ravel_multi_index(codes, density.schema.n_levels)
    assert fits(drawn, np.exp(density.score_codes(cells)) * volumes)
    assert not fits(drawn, np.exp(make().score_codes(cells)) * volumes)


@known
@pytest.mark.parametrize(
    ("evidence", "words"),
    [
        ({"sex": "robot"}, "robot"),
        ({"height": 3}, "height"),
        ({"grade": [1, 3]}, 'ordinal column "grade" must be neighboring levels, got 1, 3'),
        ({"grade": []}, "must name a level"),
        ({"income": (10.0, 20.0)}, "increasing edges"),
        ({"income": (30.0, 10.0)}, "increasing edges"),
        ({"income": 500.0}, "income"),
        ({"sex": None}, "missing"),
    ],
)
def test_evidence_that_cannot_be_is_an_error(make, evidence, words):
    """Name the column and the value, so that a typing error is found."""
    with pytest.raises(DataError, match=words):
        make().condition(evidence)


@known
def test_conditions_may_not_contradict_earlier_ones(make):
    """Known to be male, then known to be female."""
    male = make().condition({"sex": "male"})
    with pytest.raises(DataError, match="must agree with the conditions given before, sex is male"):
        male.condition({"sex": "female"})
    with pytest.raises(DataError, match="contradicts the conditions: sex is male"):
        male.explain({"sex": "female", "grade": 1, "income": 1.0})
    assert male.score_codes(np.zeros((3, 1), np.int32))[0] == -np.inf


@known
def test_unknown_levels_are_named(make):
    """A level never seen is told first; of the rest what is known without it."""
    first, *others = make().explain({"sex": "robot", "grade": 1, "income": 5.0}).splitlines()
    assert first == "sex is robot, which no training row has"
    assert others == make().explain({"sex": None, "grade": 1, "income": 5.0}).splitlines()
    with pytest.raises(DataError, match='column "grade" is missing'):
        make().explain({"sex": "male"})
