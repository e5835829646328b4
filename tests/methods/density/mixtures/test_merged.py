"""Exact questions to densities of merged classes, against enumeration of all rows."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bayescascade.data.column import Column
from bayescascade.data.schema import Schema
from bayescascade.methods.density.continuous.density import ContinuousDensity
from bayescascade.methods.density.mixtures.merged import merge_alike
from tests.methods.density.continuous import test_density as continuous
from tests.methods.density.hidden_trees import test_hidden_trees as hidden
from tests.statistical.chi_square import fits

MERGED = np.array([0, 1, 2, 1, 0, 2, 0])
KINDS = pytest.mark.parametrize("of", [hidden, continuous], ids=["hidden", "continuous"])
EVIDENCE = [
    {},
    {"c1": "l2"},
    {"c0": "l1", "c1": ["l0", "l2"]},
    {"c2": "l0", "c3": ["l1", "l2", "l3"]},
    {"c1": ["l0", "l1"], "x": 0.2},
]
given = pytest.mark.parametrize("evidence", EVIDENCE)


def asked(of, evidence):
    """Return the density given evidence, which rows agree with it, and their probability."""
    density, codes = of.density(), of.every_row()
    if of is continuous:
        density = replace(density, merged=MERGED)
    evidence = {name: own for name, own in evidence.items() if name in density.schema.names}
    agree = np.ones(codes.shape[1], bool)
    for name, levels in evidence.items():
        j = density.schema.names.index(name)
        wanted = [0] if name == "x" else [int(one[1]) for one in np.atleast_1d(levels)]
        agree &= np.isin(codes[j], wanted)
    return density.condition(evidence), agree, of.by_hand()[agree].sum()


def widths(density, codes):
    """Return the volume of each row's cell."""
    x = density.schema.columns[-1].widths
    return np.where(codes[-1] < 0, x.sum() if density.conditions.get(-1) else 1.0, x[codes[-1]])


@KINDS
@given
def test_scores_given_evidence_are_shares_of_what_is_left(of, evidence):
    """All complete rows, and rows with gaps, whose missing cells must obey the evidence, too."""
    density, agree, left = asked(of, evidence)
    codes, expected = of.every_row(), np.where(agree, of.by_hand(), 0.0) / left
    assert density.conditions_probability == pytest.approx(left, abs=1e-9)
    found = np.exp(density.score_codes(codes)) * widths(density, codes)
    assert_allclose(found, expected, atol=1e-9)
    assert found.sum() == pytest.approx(1.0, abs=1e-9)
    rng = np.random.default_rng(0)
    gaps = np.where(rng.random(codes.shape) < 0.5, -1, codes).astype(np.int32)[:, :60]
    fills = ((gaps.T[:, :, np.newaxis] < 0) | (gaps.T[:, :, np.newaxis] == codes)).all(axis=1)
    found = np.exp(density.score_codes(gaps)) * widths(density, gaps)
    is_possible = fills[:, agree].any(axis=1)
    assert_allclose(found[is_possible], (fills @ expected)[is_possible], atol=1e-9)


@KINDS
@given
def test_classes_follow_bayes(of, evidence):
    """Shares of merged classes, of their levels, and those of a row with gaps."""
    density, agree, left = asked(of, evidence)
    codes, n_classes = of.every_row(), density.n_parts
    of_merged = density.merged.ravel() == np.arange(n_classes)[:, np.newaxis]
    joint = np.where(agree[:, np.newaxis, np.newaxis], of.by_class(), 0.0) @ of_merged.T / left
    assert_allclose(density.probabilities, joint.sum(axis=0).mean(axis=0), atol=1e-9)
    assert_allclose(density.counts, 50.0 * left * density.probabilities, rtol=1e-9)
    for j, found in enumerate(density.level_probabilities):
        levels = np.zeros((n_classes, found.shape[1]))
        np.add.at(levels.T, codes[j], joint[:, j])
        assert_allclose(found, levels / levels.sum(axis=1, keepdims=True), atol=1e-9)
        assert_allclose(density.overall(j), levels.sum(axis=0), atol=1e-9)
    row = codes[:, np.flatnonzero(agree)[[0, -1]]].copy()
    row[2] = -1
    fills = ((row.T[:, :, np.newaxis] < 0) | (row.T[:, :, np.newaxis] == codes)).all(axis=1)
    of_rows = np.einsum("rn,npk->rk", fills.astype(float), joint)
    of_rows /= of_rows.sum(axis=1, keepdims=True)
    assert_allclose(density.class_probabilities(row), of_rows, atol=1e-9)


@KINDS
@given
def test_draws_obey_evidence(of, evidence, rng):
    """They must be as common as they are probable given it, and not as in all rows."""
    density, agree, left = asked(of, evidence)
    expected = np.where(agree, of.by_hand(), 0.0) / left
    places = np.ravel_multi_index(tuple(density.sample_codes(20_000, rng)), tuple(of.SIZES))
    assert fits(places, expected)
    if evidence:
        assert not fits(places, of.by_hand())


def test_alike_classes_are_merged_and_the_largest_is_first(rng):
    """Eight kinds of classes with noise are eight, though there are forty."""
    kinds = 0.1 + 0.8 * np.eye(8)
    which = np.repeat(np.arange(8), 5)
    shares = np.where(which == 1, 3.0, 1.0)
    merged = merge_alike((kinds[which] + 1e-3 * rng.random((40, 8))).astype(np.float32), shares)
    assert (merged[which == 1] == 0).all()
    assert all(np.unique(merged[which == k]).size == 1 for k in range(8))
    assert np.unique(merged).tolist() == list(range(merged.max() + 1))
    assert merge_alike(np.full((3, 2), 0.5, np.float32), np.ones(3)).tolist() == [0, 0, 0]


def test_a_class_that_is_ruled_out_has_the_levels_of_all():
    """Its own would be 0 / 0, and no page of the density could be written."""
    names = [f"b{j}" for j in range(400)]
    schema = Schema(tuple(Column(name, "nominal", ("no", "yes")) for name in names))
    yes = np.array([0.999, 0.001])
    density = ContinuousDensity(
        schema=schema, total_weight=10.0, parents=np.full(400, -1), shares=np.array([0.5, 0.5]),
        tables=(np.array([1.0 - yes, yes])[np.newaxis],) * 400, merged=np.array([0, 1]),
    )  # fmt: skip
    left = density.condition(dict.fromkeys(names[:200], "yes"))
    assert_allclose(left.probabilities, [1.0, 0.0])
    for levels in left.level_probabilities[200:]:
        assert_allclose(levels, [[0.001, 0.999]] * 2)
