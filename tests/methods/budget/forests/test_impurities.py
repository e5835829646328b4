"""Impurities are admissible, which the bound on a tree's cost rests on, and say what is wrong."""

from itertools import product

import pytest
from hypothesis import given, settings, strategies as st

from bayescascade import PolynomialImpurity
from bayescascade.base.errors import ParameterError
from bayescascade.methods.budget.forests.impurities import impurity_arrays, impurity_values
from tests.methods.budget.forests import reference_growing as reference

POLYNOMIAL = PolynomialImpurity([1.0, 0.5, 3.0], [[1, 1, 0], [2, 0, 1], [1, 1, 2]])

MEASURES = {
    "pairs": ("threshold_pairs", {}),
    "threshold pairs": ("threshold_pairs", {"alpha": 1.5}),
    "squares": ("powers", {"order": 2}),
    "fifth powers": ("powers", {"order": 5}),
    "polynomial": (POLYNOMIAL, {}),
}

FORMULAS = {
    "pairs": lambda n: reference.threshold_pairs(n, 0.0),
    "threshold pairs": lambda n: reference.threshold_pairs(n, 1.5),
    "squares": lambda n: reference.powers(n, 2),
    "fifth powers": lambda n: reference.powers(n, 5),
    "polynomial": lambda n: reference.polynomial(n, POLYNOMIAL.coefficients, POLYNOMIAL.exponents),
}

weights = st.floats(0, 40, allow_subnormal=False).map(lambda x: round(x * 4) / 4)
class_weights = st.tuples(weights, weights, weights)


def compiled(name):
    impurity, parameters = MEASURES[name]
    arrays = impurity_arrays(impurity, n_classes=3, **parameters)
    return lambda counts: float(impurity_values(arrays, [counts])[0])


@pytest.mark.parametrize("name", MEASURES)
@settings(deadline=None)
@given(counts=class_weights)
def test_formulas(name, counts):
    """A tree splits by the formula that the user chose."""
    assert compiled(name)(counts) == pytest.approx(FORMULAS[name](counts), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", MEASURES)
@settings(deadline=None)
@given(smaller=class_weights, more=class_weights, weight=weights, label=st.integers(0, 2))
def test_admissible(name, smaller, more, weight, label):
    """The bound on a tree's cost, and the linear search for cuts, need all four properties."""
    larger = tuple(n + m for n, m in zip(smaller, more, strict=True))
    example = tuple(weight * (i == label) for i in range(3))
    assert reference.broken_rule(compiled(name), smaller, larger, example) is None


@pytest.mark.parametrize("measure", [reference.gini, reference.entropy])
def test_gini_and_entropy_are_found_wanting(measure):
    """The check above is able to fail: the usual impurities are not admissible."""
    sets = list(product(range(3), repeat=2))
    broken = {
        reference.broken_rule(measure, smaller, larger, example)
        for smaller in sets
        for larger in sets
        if all(n <= m for n, m in zip(smaller, larger, strict=True))
        for example in ((1, 0), (0, 1))
    }
    assert {"monotone", "supermodular"} <= broken


@pytest.mark.parametrize(
    ("impurity", "parameters", "message"),
    [
        ("gini", {}, "impurity must be one of 'threshold_pairs', 'powers', got 'gini'"),
        (3, {}, "impurity must be one of 'threshold_pairs', 'powers' or a PolynomialImpurity"),
        ("threshold_pairs", {"alpha": -1.0}, "alpha must be a finite number >= 0, got -1.0"),
        ("powers", {"order": 1}, "order must be an integer from 2 to 30, got 1"),
        (POLYNOMIAL, {"n_classes": 4}, "impurity must have one exponent for each of the 4 classes"),
        (([1.0], []), {}, "got 0 rows for 1 coefficients"),
        (([], []), {}, "got 0 rows for 0 coefficients"),
        (([-1.0], [[1, 1]]), {}, r"coefficients\[0\] must be a finite number >= 0, got -1.0"),
        (([0.0], [[1, 1]]), {}, "coefficients must not be all zero"),
        (([1.0], [[2, 0]]), {}, r"exponents\[0\] must be positive for at least two"),
        (([1.0], [[1, 0.5]]), {}, r"exponents\[0\]\[1\] must be an integer >= 0, got 0.5"),
        (([1.0, 1.0], [[1, 1], [1, 1, 0]]), {}, r"exponents\[1\] must have 2 entries"),
    ],
)
def test_bad_impurities(impurity, parameters, message):
    """At once, by name; a polynomial when it is written down."""

    def make():
        made = PolynomialImpurity(*impurity) if isinstance(impurity, tuple) else impurity
        impurity_arrays(made, **{"n_classes": 3, **parameters})

    with pytest.raises(ParameterError, match=message):
        make()
