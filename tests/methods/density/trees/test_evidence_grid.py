"""Evidences of models and parameters: what is compared, and that the comparison is right."""

import pytest

from bayescascade import BranchPosterior, LeafCascade, LeafPosterior, Table
from bayescascade.base.errors import DataError, ParameterError
from bayescascade.methods.density.trees.evidence_grid import evidence
from bayescascade.methods.density.trees.exact import ExactCost, solve
from bayescascade.methods.density.trees.exact.plan import SearchPlan
from bayescascade.report.page import render
from tests.methods.density.trees.fits import people


def table() -> Table:
    return Table.from_frame(people()[["sex", "crew", "age"]])


def test_every_combination_is_solved_sorted_and_printed():
    """The best must be first, be what its own exact posterior says, and say what differs."""
    grid = {"expected_leaves": [2, 8.0], "leaf": ["uniform", "independent"]}
    points = evidence(table(), models=["leaf", "branch"], grid=grid)
    assert len(points) == 6  # the branch model has no expected_leaves
    evidences = [point.log_evidence for point in points]
    assert evidences == sorted(evidences, reverse=True)
    for point in points:
        posterior_of = LeafPosterior if point.model == "leaf" else BranchPosterior
        exact = solve(posterior_of(table(), **point.parameters))
        assert point.log_evidence == pytest.approx(exact.log_evidence, abs=1e-9)
        assert point.log_posterior == pytest.approx(exact.log_density, abs=1e-9)
        assert point.n_leaves == exact.tree.n_leaves
    header, *lines = str(points).split("\n")[2:]
    assert header.split() == ["log", "evidence", "below", "best", "leaves"]
    first = next(line for line in lines if "0.00" in line)
    assert first.split()[-1] == str(points[0].n_leaves)
    result = {line.split("  ")[0].split(", ", 1)[1] for line in lines}
    assert result >= {"expected_leaves 2, leaf uniform", "leaf independent"}
    assert max(map(len, [header, *lines])) <= 80


def test_tilts_tell_the_evidence_where_sums_by_leaves_do_not_fit():
    """A table too large for one way must not be left out if there is another."""
    whole = evidence(table(), models=["leaf"], grid={"expected_leaves": [2.0, 8.0]})
    posterior = LeafPosterior(table(), 8.0)
    cost = SearchPlan.of(posterior, None).memory_bytes / 1e9
    assert cost < ExactCost.of(posterior).memory_bytes / 1e9
    grid, limit = {"expected_leaves": [2.0, 8.0]}, cost * 1.001
    points = evidence(table(), models=["leaf"], grid=grid, memory_limit=limit)
    for point, expected in zip(points, whole, strict=True):
        assert point.parameters == expected.parameters
        assert point.log_evidence == pytest.approx(expected.log_evidence, abs=1e-6)
        assert point.n_leaves == expected.n_leaves


def test_what_no_model_can_be_is_left_out_with_the_reason():
    """One combination must not cost the others; a value that no model takes is a typo."""
    grid = {"leaf": ["dependent", "uniform"], "prior": ["generative", "poisson"]}
    grid |= {"feature_inclusion": [0.5]}
    points = evidence(table(), models=["leaf", "branch"], grid=grid)
    assert len(points) == 8
    assert [bool(point.impossible) for point in points] == [False] * 3 + [True] * 5
    reasons = {point.impossible for point in points if point.parameters["leaf"] == "uniform"}
    assert reasons == {
        "",
        'feature_inclusion must be None with prior "generative", got 0.5',
    }
    assert points[0].impossible == ""
    assert 'leaf must be "uniform" or "independent" in a sum' in str(points)


@pytest.mark.parametrize(
    ("models", "grid", "message"),
    [
        (["branch"], {"prior": ["size"]}, "prior must be one of"),
        (["leaf"], {"leaf": ["uniform", "naive"]}, "leaf must be one of"),
        (["forest"], {}, "model must be one of leaf, branch, got forest"),
        ([], {}, "models must be named once each, got none"),
        (["leaf", "leaf"], {}, "models must be named once each"),
        (["leaf"], {"expected_branches": [2]}, "grid must name parameters out of .*branches$"),
        (["leaf"], {"expected_leaves": []}, "a grid must have values, got none"),
        (["leaf"], {"expected_leaves": [-1]}, "expected_leaves must be"),
        (["leaf"], {"leaf": ["naive"]}, "leaf must be"),
    ],
)
def test_bad_grids_are_refused(models, grid, message):
    """A typo in a grid must not be a column of nothing."""
    with pytest.raises(ParameterError, match=message):
        evidence(table(), models=models, grid=grid)


def test_the_frame_is_what_is_printed():
    """Of data read and columns dropped; Ctrl-C keeps what was finished."""
    frame = people()[["sex", "crew", "age"]]
    found = evidence(frame, models=["leaf"], grid={"expected_leaves": [2, 8]}, drop=["age"])
    assert found.data.schema.n_columns == 2
    assert found.table["log_evidence"].tolist() == [point.log_evidence for point in found]
    assert found.table["below_best"].iloc[0] == 0.0
    best = LeafCascade(**found.best_.parameters).fit(frame, None)
    assert best.expected_leaves == found.table["expected_leaves"].iloc[0]
    done = []

    def stop(point):
        done.append(point)
        raise KeyboardInterrupt

    interrupted = evidence(table(), done=stop)
    assert (list(interrupted), interrupted.interrupted) == (done, True)


def test_too_large_ones_are_told_not_computed():
    """One that does not fit must not cost the others; of it there is no figure."""
    found = evidence(table(), models=["branch"], grid={"max_branches": [2]}, memory_limit=1e-9)
    assert found[0].log_evidence is None
    assert "boxes" in found[0].needed
    lines = render(found.page(), width=60).split("\n")
    assert any("too large" in line for line in lines)
    assert max(map(len, lines)) <= 60
    assert found.table[["log_evidence", "below_best", "leaves"]].isna().all(axis=None)
    with pytest.raises(DataError, match="got none"):
        _ = found.best_
