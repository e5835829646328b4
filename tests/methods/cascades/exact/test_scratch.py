"""Boxes in files: what they hold, what is refused, and that nothing of them is left."""

import errno
import os
from functools import partial

import pytest

from bayescascade import BranchCascade
from bayescascade.base.errors import ParameterError, TooLargeError
from bayescascade.methods.cascades.exact import ExactCost, plan, recursion, solve, solve_by_tilts
from bayescascade.methods.cascades.posterior import BranchPosterior, LeafPosterior
from tests.methods.cascades.exact.test_exact_cost import random_table

TABLE = random_table((3, 3, 2, 4))
LESS = ExactCost.of(BranchPosterior(TABLE)).memory_bytes - 1  # than fits
WAYS = {
    "branch": (BranchPosterior, solve),
    "leaf": (LeafPosterior, partial(solve_by_tilts, rng=0)),
}


def summed(name, **limits):
    posterior, way = WAYS[name]
    found = way(posterior(TABLE), n_jobs=2, **limits)
    return found, found.sample(200, 1)


@pytest.mark.parametrize("name", WAYS)
def test_files_hold_what_memory_would(name, monkeypatch, tmp_path):
    """In short numbers and by threads as without; and no file is seen at any time."""
    inside, drawn = summed(name)
    monkeypatch.setattr(recursion, "_MANY_TERMS", 0)
    monkeypatch.setattr(plan, "_MANY_BOXES", 1)
    monkeypatch.setattr(recursion, "_AT_ONCE", 7)
    outside, others = summed(name, memory_limit=LESS / 2, scratch=tmp_path)
    assert outside.cost.disk_bytes == 12 * outside.cost.n_boxes
    for value in ("log_density", "log_normalizer", "log_evidence", "gap", "error"):
        assert getattr(outside, value) == pytest.approx(getattr(inside, value), abs=1e-8, rel=0)
    assert others == drawn
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_told_before_anything_is_written(monkeypatch, tmp_path):
    """A file that cannot grow would end the process without a word."""

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(TooLargeError, match=r"scratch must have [\d,]+ bytes in .* No space left"):
        summed("branch", memory_limit=LESS, scratch=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_does_not_fit_says_that_a_directory_would_do(tmp_path):
    """And one that does not exist is refused before anything is searched."""
    with pytest.raises(TooLargeError, match=r"what fits: .*scratch, a directory with 52.9 kB free"):
        summed("branch", memory_limit=LESS)
    model = BranchCascade(scratch=tmp_path / "none")
    with pytest.raises(ParameterError, match=r"scratch must be a directory .* got '.*none'"):
        model.fit({"a": ["x", "y"]})
