"""Leaves of every saved model, damaged: the file is refused in our words, or it works.

Where the record follows from types, a value of another type, and a field that is gone, are refused.
`python -m tests.golden --damaged` tries all leaves of all models.
"""

import pytest

from tests.contracts.listed import ESTIMATORS, SHOWN, fitted
from tests.golden.outcomes import of_damage, record_of

TYPED = {
    "sensors": "", "sensors of numbers": "", "rado": "", "margins": "asks/", "effects": "",
    "det": "", "neighbors": "best/", "mixture": "mixture/", "classifiers": "tree/nodes/",
}  # fmt: skip
"""Estimators whose records, or these parts of them, are read by types."""

SHARED = {
    "format": "histogram",
    "version": "histogram",
    "model": "histogram",
    "schema": "histogram",
    "summary": "rules",
    "encoding": "forest",
    "costs": "l1",
    "choice": "miser",
    "classes": "l1",
    "item_shares": "l1",
    "feature_shares": "l1",
}
"""Keys that are read alike for all models, and the one for which they are damaged."""

SAVED = [name for name in SHOWN if hasattr(ESTIMATORS[name].make, "save")]
OF_ALL = ("format", "version", "model", "parameters/", "encoding/", "reading/encoding/", "n_rows ")


@pytest.mark.slow
@pytest.mark.parametrize("name", SAVED)
def test_damaged_leaves_are_refused_or_harmless(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    skipped = [key for key, damaged in SHARED.items() if damaged != name]
    found = of_damage(record_of(fitted(name)), 1, stride=3, skipped=skipped)
    assert len(found) > 30
    assert {place: one for place, one in found.items() if one.startswith("raises")} == {}
    typed = {
        place: one
        for place, one in found.items()
        if name in TYPED and place.startswith(TYPED[name]) and not place.startswith(OF_ALL)
    }
    kinds = ("text", "flag", "mapping", "list", "missing")
    accepted = [p for p, one in typed.items() if p.endswith(kinds) and one != "refused"]
    assert accepted == []
