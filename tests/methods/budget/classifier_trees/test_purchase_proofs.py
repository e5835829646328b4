"""What is said to be the most probable set of purchases is so, up to a proved rounding."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from bayescascade import InternalError, explore
from bayescascade.methods.budget.classifier_trees import posterior as posterior_module
from bayescascade.methods.budget.classifier_trees.growing import GrowingRows
from bayescascade.methods.budget.classifier_trees.posterior import solved
from bayescascade.methods.budget.classifier_trees.rounding import (
    rounding_of_leaf,
    rounding_of_share,
)
from bayescascade.model.guard import UNIT
from tests.methods.budget.classifier_trees.problems import ROOT, PurchaseProblem


def alike(seed, apart, n_rows=400, times=1.0):
    """Return the posterior of a root whose five columns differ by little, but for their noise."""
    problem = PurchaseProblem("alike", 1, n_features=5, n_rows=n_rows, seed=seed)
    rng = np.random.default_rng(seed)
    X = problem.rows.rows[:, :1] + apart * rng.normal(size=(n_rows, 5))
    rows, basis = problem.rows, problem.rows.basis
    # a class that the small differences tell
    labels = (X[:, 1] - X[:, 2] + 0.01 * apart * rng.normal(size=n_rows) > 0).astype(int)
    object.__setattr__(problem, "rows", GrowingRows.of(basis, X, labels, times * rows.weights, 2))
    return problem.posterior()


def explained(squares, chosen, n_columns):
    """Return the share that columns explain, exactly."""
    m, size = len(chosen), len(squares)
    places = [*chosen, *range(n_columns, size)]
    matrix = [[Fraction(float(squares[min(i, j), max(i, j)])) for j in places] for i in places]
    total = Fraction(0)
    for k in range(m):
        for i in range(k + 1, len(places)):
            factor = matrix[k][i] / matrix[k][k]
            for j in range(i, len(places)):
                matrix[i][j] -= factor * matrix[k][j]
        total += sum(matrix[k][j] ** 2 for j in range(m, len(places))) / matrix[k][k]
    return total


def errors(posterior):
    """Return the errors of the shares and of the log marginals of all sets at the root."""
    model = posterior.model
    (node,), squares = posterior.nodes, model.squares[0]
    features, shares = node.explained_by_sets(1e9)
    w, k = float(model.weights[0]), float(model.contrasts[0])
    of_shares, of_values = [], []
    for size in range(len(features) + 1):
        for chosen in combinations(features.tolist(), size):
            exact = explained(squares, chosen, int(model.starts[-1]))
            number = sum(1 << features.tolist().index(one) for one in chosen)
            of_shares.append(abs(float(exact - Fraction(float(shares[number])))))
            left = float(Fraction(w) * (1 - exact))
            freedom = max(w - 1, 0.0)
            truth = (freedom - size) * math.log1p(w) - freedom * math.log1p(left)
            held = np.isin(np.arange(len(features)), chosen)[np.newaxis]
            found = np.empty((1, 2))
            posterior_module.buying.all_parts(model, posterior._work(), held, found)
            of_values.append(abs(found[0, 0] - k / 2 * truth))
    return max(of_shares), max(of_values), float(shares.max())


@pytest.mark.parametrize("apart", [1.0, 1e-2])
def test_rounding_is_bounded(apart):
    """By fractions; the broken twin counts operations, and leaves out that columns are alike."""
    for seed in range(3):
        posterior = alike(seed, apart)
        of_share, of_value, most = errors(posterior)
        bound = rounding_of_share(posterior.model, 0)
        assert of_share <= bound < 1e-7
        assert of_value <= rounding_of_leaf(posterior.model, 0, most) < 1e-3
        if apart < 1:
            assert of_share > 5 * 7 * UNIT


def test_a_certificate_says_what_rounding_leaves_open():
    """A gap of 0 where figures that are printed cannot be wrong."""
    found = explore(ROOT.posterior(), "exact", solve=solved, random_state=0)
    assert found.certificate.gap == 0.0
    assert not found.certificate.is_rounding
    many = replace(ROOT, n_rows=60)
    many.rows.weights[:] *= 1e13
    found = explore(many.posterior(), "exact", solve=solved, random_state=0)
    assert found.certificate.is_rounding
    assert found.certificate.gap > 5e-3


def test_a_set_that_does_not_keep_its_claim_is_not_certified(monkeypatch):
    """Whatever is wrong with the sums over sets, no page may call its state exact."""
    weigh = posterior_module._weigh

    def overstate(posterior, leaf, features, values):
        pays = weigh(posterior, leaf, features, values)
        values += 1e-6
        return pays

    monkeypatch.setattr(posterior_module, "_weigh", overstate)
    with pytest.raises(InternalError, match=r"a search found .* but its result is worth"):
        explore(ROOT.posterior(), "exact", solve=solved, random_state=0)
