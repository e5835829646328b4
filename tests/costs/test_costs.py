"""Feature costs: groups are paid once, files come back the same, mistakes are named; budgets."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from bayescascade import FeatureCosts
from bayescascade.base.errors import DataError, ParameterError
from bayescascade.costs.limits import is_within
from tests.methods.budget.forests import reference

BLOOD = FeatureCosts(
    {"blood": 2.1, "glucose": 15.51, "scan": 22.78, "age": 0},
    groups={"blood": ["glucose", "iron"], "morning": ("iron", "scan")},
    default=1.5,
)
COLUMNS = ["age", "scan", "iron", "sex", "glucose"]

NAMES = st.lists(st.sampled_from("abcdef"), unique=True, min_size=1)
MONEY = st.floats(0, 100)


def cost_of(costs, columns, acquired):
    items = costs.resolve(columns)
    used = np.array([[column in acquired for column in columns]])
    return items.total(items.paid(used))[0]


def test_items_are_what_a_bill_would_list():
    """What is paid for: features first, then groups, nothing that is free."""
    items = BLOOD.resolve(COLUMNS)
    assert items.names == ("scan", "sex", "glucose", "morning", "blood")
    np.testing.assert_array_equal(items.costs, [22.78, 1.5, 15.51, 1.5, 2.1])
    assert [items.of_column(j).tolist() for j in range(5)] == [[], [0, 3], [4, 3], [1], [2, 4]]
    assert items.texts == ["scan", "sex", "glucose", "morning (group)", "blood (group)"]
    assert items.of_features([1, 1]).texts == items.texts


PRINTED = """\
costs of 4 features   2 groups   cost 1.5 for each other feature

feature            cost            group
glucose           15.51            blood
scan              22.78          morning
age                0.00
iron               0.00   blood, morning
blood (group)      2.10
morning (group)    1.50"""


def test_costs_are_printed_as_a_price_list():
    """A line of 800 characters cannot be checked."""
    assert str(BLOOD) == PRINTED
    assert str(FeatureCosts()) == "cost 1 for each feature"
    assert str(FeatureCosts({3: 2})).splitlines()[-1] == "x3            2"
    assert repr(BLOOD) == "<FeatureCosts: 4 costs, 2 groups, default 1.5>"
    series = pd.Series({"a": 2, "b": 0})
    assert FeatureCosts.of(series, ["a", "b", "c"]) == FeatureCosts(series)
    assert FeatureCosts(series).costs == {"a": 2.0, "b": 0.0}
    with pytest.raises(ParameterError, match=r"got DataFrame$"):
        FeatureCosts.of(pd.DataFrame({"a": [1.0]}))
    with pytest.raises(ParameterError, match=r"got 'costs.csv'; .*read_csv reads a file"):
        FeatureCosts.of("costs.csv")


def test_features_are_added_up_for_who_asks():
    """Which tests to offer is asked before any model is fitted."""
    assert BLOOD.total(["glucose", "iron", "age"]) == pytest.approx(2.1 + 15.51 + 1.5)
    assert BLOOD.total(["iron", "iron", "height"], [*COLUMNS, "height"]) == pytest.approx(5.1)
    assert BLOOD.total([]) == 0.0
    assert BLOOD.total(pd.DataFrame(columns=COLUMNS).columns, COLUMNS) == pytest.approx(
        BLOOD.resolve(COLUMNS).costs.sum()
    )
    assert FeatureCosts({"3": 5.0}).total([3]) == FeatureCosts({3: 5.0}).total(["3"]) == 5.0
    with pytest.raises(ParameterError, match=r"features must be of the columns .*, got 'height'"):
        BLOOD.total(["height"], COLUMNS)
    with pytest.raises(ParameterError, match="must not be named like a column, got 'blood'"):
        BLOOD.total(["blood"])
    with pytest.raises(ParameterError, match="features must be a list of features, got 'iron'"):
        BLOOD.total("iron")


@given(
    costs=st.dictionaries(st.sampled_from("abcdefXY"), MONEY),
    groups=st.dictionaries(st.sampled_from("XY"), NAMES),
    default=MONEY,
    acquired=st.lists(st.sampled_from("abcdef")),
)
def test_a_row_pays_what_a_cashier_adds_up(costs, groups, default, acquired):
    """Any costs and groups, in any order of buying."""
    costs = {key: cost for key, cost in costs.items() if key in groups or key not in "XY"}
    expected = reference.row_cost(costs, groups, default, acquired)
    got = cost_of(FeatureCosts(costs, groups=groups, default=default), "abcdef", set(acquired))
    assert got == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_rows_pay_alike_alone_and_together(rng):
    """A step-by-step bill has the last digit of the one for all rows."""
    items = FeatureCosts.of(rng.random(40)).resolve(range(40))
    used = rng.random((50, 40)) < 0.5
    together = items.total(items.paid(used))
    alone = [items.total(items.paid(used[[i]]))[0] for i in range(50)]
    np.testing.assert_array_equal(together, alone)


def test_columns_of_an_encoding_incur_what_their_source_does():
    """The levels of one column are one test."""
    items = BLOOD.resolve(COLUMNS).of_features([4, 0, 4, 1])
    assert [items.of_column(j).tolist() for j in range(4)] == [[2, 4], [], [2, 4], [0, 3]]
    assert items.n_columns == 4
    assert items.n_items == 5


def test_costs_of_some_columns_are_enough_for_these():
    """A price list has more than any one model reads."""
    some = BLOOD.among(["iron", "sex", "height"])
    assert some == FeatureCosts(
        {"blood": 2.1}, groups={"blood": ["iron"], "morning": ["iron"]}, default=1.5
    )
    assert some.resolve(["iron", "sex"]).costs.sum() == pytest.approx(5.1)
    assert FeatureCosts({"3": 5.0, 4: 1.0}).among([3]) == FeatureCosts({"3": 5.0})
    assert BLOOD.among(["sex"]).groups == {}


def test_arrays_are_named_by_index():
    """Indices find columns as NumPy's integers, and as the text of a file."""
    assert FeatureCosts({1: 5.0}).resolve(range(3)).costs.tolist() == [1.0, 5.0, 1.0]
    assert FeatureCosts({np.int64(1): 5.0}) == FeatureCosts({1: 5.0})
    assert FeatureCosts({"2": 5.0}).resolve(range(3)).names == ("x0", "x1", "x2")  # of a file


@pytest.mark.parametrize(
    ("value", "columns", "expected"),
    [
        (None, "ab", [1.0, 1.0]),
        ({"b": 3}, "ab", [1.0, 3.0]),
        ([2, 3], "ab", [2.0, 3.0]),
        ((2.5, 3), None, [2.5, 3.0]),
        (np.array([2.0, 3.0]), "ab", [2.0, 3.0]),
        (FeatureCosts(default=4), "ab", [4.0, 4.0]),
    ],
)
def test_costs_are_taken_in_every_form(value, columns, expected):
    """Whatever a user has costs in."""
    costs = FeatureCosts.of(value, columns)
    assert costs.resolve(columns or range(2)).costs.tolist() == expected


AB = ["a", "b"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FeatureCosts({"a": -1.0}), r"costs\['a'\] must be a finite number >= 0, got -1.0"),
        (lambda: FeatureCosts({"a": "2"}), r"costs\['a'\] must be a finite number >= 0, got '2'"),
        (lambda: FeatureCosts({-1: 2}), "costs must be of column names or indices >= 0, got -1"),
        (lambda: FeatureCosts([1, 2]), "costs must be a mapping, got list"),
        (lambda: FeatureCosts(groups=["a"]), "groups must be a mapping, got list"),
        (lambda: FeatureCosts(groups={"g": "ab"}), "must be a list of at least one feature"),
        (lambda: FeatureCosts(groups={"g": ["a", "a"]}), "must have each feature once"),
        (lambda: FeatureCosts(groups={3: ["a"]}), "a group's name must be a string, got 3"),
        (lambda: FeatureCosts(default=float("inf")), "default must be a finite number >= 0, got i"),
        (lambda: FeatureCosts({"c": 1}).resolve(AB), "must be of the columns 'a', 'b', got 'c'"),
        (lambda: FeatureCosts({0: 1}).resolve(AB), "costs must be of the columns 'a', 'b', got 0"),
        (
            lambda: FeatureCosts(groups={"g": ["c"]}).resolve(AB),
            r"groups\['g'\] must be of the columns .* got 'c'",
        ),
        (lambda: FeatureCosts(groups={"a": ["b"]}).resolve(AB), "must not be named like a column"),
        (lambda: FeatureCosts.of("12", AB), "costs must be FeatureCosts, a mapping .* got '12'"),
        (lambda: FeatureCosts.of([1.0], AB), "costs must have one cost per feature, 2, got 1"),
        (
            lambda: FeatureCosts.of([1.0, -2.0], AB),
            r"costs\['b'\] must be a finite number >= 0, got",
        ),
        (
            lambda: FeatureCosts.of(np.ones((2, 2)), AB),
            r"costs\['a'\] must be a finite number >= 0",
        ),
    ],
)
def test_mistakes_are_named(make, message):
    """A negative cost would pay for being acquired, a misspelled feature would cost the default."""
    with pytest.raises(ParameterError, match=message):
        make()


@given(
    costs=st.dictionaries(st.sampled_from(["a", "b", "c,d", 'e"f', "X", "Y"]), MONEY),
    groups=st.dictionaries(st.sampled_from("XY"), NAMES),
)
def test_a_file_comes_back_the_same(tmp_path_factory, costs, groups):
    """Costs to the last digit, whatever names they have."""
    path = tmp_path_factory.mktemp("costs") / "costs.csv"
    original = FeatureCosts(costs, groups=groups, default=3.0)
    original.to_csv(path)
    assert FeatureCosts.read_csv(path, default=3.0) == original


def test_a_file_by_hand_is_read(tmp_path):
    """Spaces, empty lines and empty cells are how people write tables."""
    path = tmp_path / "costs.csv"
    path.write_text("name, cost, group\nblood,2.1,\n\nglucose, 15.51, blood\niron,,blood\nage,0,\n")
    expected = FeatureCosts(
        {"blood": 2.1, "glucose": 15.51, "age": 0.0}, groups={"blood": ["glucose", "iron"]}
    )
    assert FeatureCosts.read_csv(path) == expected
    path.write_text("name,cost\nage,3\n")
    assert FeatureCosts.read_csv(path) == FeatureCosts({"age": 3.0})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must have the header name,cost,group, got an empty file"),
        ("\nname,cost\n", "must have the header name,cost,group, got an empty line"),
        ("name,price\na,1\n", "must have the header name,cost,group, got name,price"),
        ("name,cost\na,1,2\n", "line 2: must have 2 cells, got 3"),
        ("name,cost\n\na,-1\n", "line 3: cost must be a finite number >= 0, got '-1'"),
        ("name,cost\na,x\n", "line 2: cost must be a finite number >= 0, got 'x'"),
        ("name,cost\n,1\n", "line 2: name must not be empty"),
        ("name,cost,group\na,,\n", "line 2: 'a' must have a cost or a group"),
        ("name,cost\na,1\na,2\n", "line 3: 'a' must have one cost, got also 2"),
        ("name,cost,group\na,1,g\na,1,g\n", "line 3: 'a' must be in 'g' once, got it again"),
    ],
)
def test_files_with_mistakes_name_the_line(tmp_path, text, message):
    """Whoever wrote the file must find the mistake in it."""
    path = tmp_path / "costs.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        FeatureCosts.read_csv(path)

    with pytest.raises(DataError, match=r"cannot read .*: No such file"):
        FeatureCosts.read_csv(tmp_path / "none.csv")


def test_rounding_is_within_a_budget():
    """Who may pay 0.3 would be refused 0.1 and 0.2."""
    assert 0.1 + 0.2 > 0.3
    assert is_within(0.1 + 0.2, 0.3)
    assert not is_within(0.300001, 0.3)
    assert is_within(0.0, 0.0)
    assert not is_within(1e-12, 0.0)
