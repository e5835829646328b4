"""scikit-learn's own checks of estimators, without those that fail by its own fault."""

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import pytest
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

RELEASE = tuple(map(int, version("scikit-learn").split(".")[:2]))


def follow_scikit_learn(estimators: Sequence[Any]) -> pytest.MarkDecorator:
    """Return what runs a test with every check of every estimator."""
    return parametrize_with_checks(list(estimators), expected_failed_checks=_own_faults)


def _own_faults(estimator: Any) -> dict[str, str]:
    tags, found = get_tags(estimator), {}
    cells, classes = tags.input_tags, tags.classifier_tags
    if RELEASE < (1, 8) and cells.categorical and not cells.allow_nan:
        found["check_positive_only_tag_during_fit"] = "takes a fraction from whole numbers"
    if RELEASE < (1, 7) and classes is not None and not classes.multi_class:
        # the first label against the others, which shuffling makes another one
        found["check_sample_weight_equivalence_on_dense_data"] = "compares other labels"
    return found
