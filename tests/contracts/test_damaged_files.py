"""Every leaf of every saved model, damaged: the file is refused in our words, or it works.

Where the record follows from types, a value of another type, and a field that is gone, are refused.
"""

import pytest

from tests.contracts.listed import ESTIMATORS, fitted
from tests.golden.outcomes import of_damage, record_of

TYPED = {
    "sensors": "",
    "sensors of numbers": "",
    "rado": "",
    "margins": "asks/",
}
"""Estimators whose records, or these parts of them, are read by types."""

SAVED = [name for name in ESTIMATORS if hasattr(ESTIMATORS[name].make, "save")]
OF_ALL = ("format", "version", "model", "parameters/", "encoding/", "reading/encoding/", "n_rows ")


@pytest.mark.slow
@pytest.mark.parametrize("name", SAVED)
def test_damaged_leaves_are_refused_or_harmless(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = of_damage(record_of(fitted(name)), 1)
    assert len(found) > 100
    assert {place: one for place, one in found.items() if one.startswith("raises")} == {}
    typed = {
        place: one
        for place, one in found.items()
        if name in TYPED and place.startswith(TYPED[name]) and not place.startswith(OF_ALL)
    }
    kinds = ("text", "flag", "mapping", "list", "missing")
    accepted = [p for p, one in typed.items() if p.endswith(kinds) and one != "refused"]
    assert accepted == []
