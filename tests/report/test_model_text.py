"""A printed model says what it is of, how it was found, and how sure it is."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from bayescascade.data.column import Column
from bayescascade.data.schema import Schema
from bayescascade.methods.density.trees.counted_tree import CountedTree
from bayescascade.methods.density.trees.density import LearnedDensityTree
from bayescascade.methods.density.trees.estimators import LeafCascade
from bayescascade.model.draws import Diagnostic, Draws
from bayescascade.model.summary import FitSummary
from tests.report.trees import random_density, titanic_tree

SUMMARY = FitSummary(
    source="titanic.csv",
    n_rows=2201,
    n_distinct=14,
    total_weight=2201.0,
    notes=(),
    method="anneal+metropolis",
    n_chains=4,
    n_draws=1000,
    interrupted=False,
    acceptance={"grow": 0.1},
    diagnostics={
        "log_posterior": Diagnostic(-4146.8, 1.8, 1.0021, 1085.3),
        "n_leaves": Diagnostic(10.0, 0.7, 1.0, 1396.0),
    },
    shares={
        "leaves": {"6": 0.71, "7": 0.22, "5": 0.05, "12": 0.0001},
        "first split": {"sex": 0.98, "none": 0.02},
        "columns used": {"class": 1.0, "sex": 1.0, "age": 0.5},
    },
)


def model(
    density: LearnedDensityTree | None = None,
    parameters: Mapping[str, Any] | None = None,
    cls: type = LeafCascade,
    **changed: Any,
) -> Any:
    """Return a fitted model that nothing was fitted for."""
    density = titanic_tree() if density is None else density
    fitted = cls(**(parameters or {}))
    fitted._set_features(density.schema)
    counted = CountedTree(density.tree, density.counts)
    fitted._best, fitted._draws, fitted.log_posterior_ = counted, Draws([], []), -4913.27
    fitted.summary_ = replace(SUMMARY, **changed)
    return fitted


def test_head_and_foot_are_the_documented_ones():
    lines = str(model()).splitlines()
    assert lines[:6] == [
        "titanic.csv   2,201 rows   14 distinct   3 columns   16 cells",
        "leaf cascade, expected_leaves 8, concentration 2, max_branches 2",
        "best found by annealing and 4 chains   log posterior -4,913.27   5 leaves",
        "R-hat: log posterior 1.002, leaves 1.000   ESS: 1,085, 1,396   4 x 1,000 draws",
        "class: 1st, 2nd, 3rd, crew   sex: female, male   age: child < adult",
        "",
    ]
    assert lines[-5:] == [
        "",
        "share: posterior mean probability   density: share / cells",
        "posterior   leaves        6 (0.71)  7 (0.22)  5 (0.05)",
        "            first split   sex (0.98)  none (0.02)",
        "            columns used  class (1.00)  sex (1.00)  age (0.50)",
    ]
    assert len(lines) == 6 + 10 + 5


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"method": "anneal", "diagnostics": {}}, "best found by annealing in 4 chains"),
        ({"method": "metropolis", "n_chains": 1}, "best found by 1 chain "),
        ({"method": "tempering"}, "best found by 4 chains with replica exchange"),
        ({"interrupted": True}, "interrupted: best found so far by annealing and 4 chains"),
        ({"diagnostics": {}, "shares": {}}, "the best result only, no posterior draws"),
        ({"total_weight": 12.5}, "2,201 rows   weight 12.5"),
        ({"n_rows": 1, "total_weight": 1.0}, "titanic.csv   1 row   14 distinct"),
    ],
)
def test_what_was_done_is_said(changed, expected):
    """A heuristic that was ended early must not look like a finished search."""
    assert expected in str(model(**changed))


def test_draws_that_are_much_larger_than_what_is_shown_are_explained():
    """A reader concludes otherwise that the tree is wrong; of equal sizes nothing is said."""
    larger = {"leaves": {"9": 0.5, "12": 0.5}}
    text = " ".join(str(model(shares=larger)).split())
    assert text.endswith(
        "drawn trees have 10.5 leaves on average; leaves beyond those shown differ between draws"
    )
    assert "drawn trees" not in str(model())


def test_what_did_not_converge_is_warned_of_beside_the_estimate():
    """R-hat of 2.6 means that the posterior below is not to be believed."""
    unsettled = {"n_leaves": Diagnostic(11.0, 1.0, 2.5619, 4.8)}
    lines = str(model(diagnostics=unsettled)).splitlines()
    assert lines[3].startswith("R-hat: leaves 2.562   ESS: 5   ")
    assert lines[4] == "warning: leaves: R-hat 2.562 (should be at most 1.01), ESS 5 (at least 400)"
    short = {"n_leaves": Diagnostic(11.0, 1.0, 1.004, 293.0)}
    assert "warning: leaves: ESS 293 (should be at least 400)" in str(model(diagnostics=short))
    few = {"n_leaves": Diagnostic(11.0, 1.0, float("nan"), float("nan"))}
    assert "R-hat: leaves unknown   ESS: unknown" in str(model(diagnostics=few))


def test_columns_are_printed_with_their_levels(rng):
    """Which levels there are, in which order, and what is constant decides what a tree can say."""
    schema = Schema(
        (
            Column("size", "ordinal", tuple(range(1, 301))),
            Column("income", "continuous", (), (0.0, 10.0, 50.5)),
            Column("cell", "nominal", ("x", "y"), (), True),
            Column("only", "nominal", ("a",)),
            Column("shade", "nominal", tuple(f"shade {i:02}" for i in range(64))),
        )
    )
    text = str(model(random_density(rng, schema, 9)))
    assert "size: 1 < 2 < ... < 300 (300 levels)" in text
    assert "income: 2 bins in [0, 50.5]" in text
    assert "cell: x, y or missing" in text
    assert "only: a (constant)" in text
    assert "shade: shade 00, shade 01, shade 02, ... (64 levels)" in text
    assert "density: share / volume" in text
