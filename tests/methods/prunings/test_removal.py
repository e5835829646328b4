"""Removing features from a forest, one after the other."""

import numpy as np
import pytest

from bayescascade.methods.prunings.frontier import remove_features
from tests.methods.prunings.problems import DEEP, PAIR, THREE, PruningProblem, each

WIDE = PruningProblem("wide", ((-1, 0, 1, 1, 0, 4, 5),) * 4, n_uses=30, seed=5)


def features_of(problem):
    return np.random.default_rng(problem.seed).integers(0, 4, len(problem.parent))


def without(problem, kept, features, gone):
    """Return the kept splits that neither are on a feature nor below one that is."""
    left = set()
    for split in sorted(kept):
        above = problem.parent[split]
        if features[split] != gone and (above < 0 or above in left):
            left.add(split)
    return frozenset(left)


@each(PAIR, DEEP, THREE, WIDE)
def test_each_step_removes_the_feature_that_leaves_least(problem):
    """The twin tries every feature, and adds up the whole objective each time."""
    features = features_of(problem)
    steps = list(remove_features(problem.program, features, problem.tradeoff))
    kept = frozenset(range(len(features)))
    assert steps[0][0] == -1
    assert steps[0][1].all()
    for feature, left in steps[1:]:
        objectives = {
            gone: problem.objective(without(problem, kept, features, gone))
            for gone in {features[split] for split in kept}
        }
        assert objectives[feature] == pytest.approx(min(objectives.values()), abs=1e-12)
        kept = without(problem, kept, features, feature)
        assert frozenset(np.flatnonzero(left).tolist()) == kept
    assert not kept
