"""Rules with weights, as files have them: what is forged is refused before it is printed."""

import numpy as np
import pytest

from bayescascade.base.errors import ModelFileError
from bayescascade.data.column import Column
from bayescascade.data.schema import Schema
from bayescascade.methods.rules.antecedents import conditions_of
from bayescascade.methods.rules.models import MAX_RULES
from bayescascade.methods.rules.rule_list import read_rules

SCHEMA = Schema((Column("grade", "ordinal", tuple(range(20))),))
RULES = [[list(condition)] for condition in conditions_of(0, SCHEMA.columns[0])]
N_CANDIDATES = np.array([0, len(RULES)])


@pytest.mark.parametrize("n_classes", [None, 2])
def test_lists_are_as_long_as_kernels_have_room_for(n_classes):
    """A 63rd rule has no bit in the words that say which rules hold."""

    def record(n_rules):
        shape = (n_rules + 1,) if n_classes is None else (n_rules + 1, n_classes)
        return {"rules": RULES[:n_rules], "counts": np.ones(shape).tolist()}

    longest, _ = read_rules(record(MAX_RULES), SCHEMA, N_CANDIDATES, n_classes)
    assert len(longest) == 62
    with pytest.raises(ModelFileError, match="rules must be different, at most 62"):
        read_rules(record(MAX_RULES + 1), SCHEMA, N_CANDIDATES, n_classes)


def test_rules_are_no_more_than_candidates():
    """A list without replacement runs out of them."""
    record = {"rules": RULES[:3], "counts": [1.0] * 4}
    assert len(read_rules(record, SCHEMA, np.array([0, 3]))[0]) == 3
    with pytest.raises(ModelFileError, match="among the candidates"):
        read_rules(record, SCHEMA, np.array([0, 2]))
