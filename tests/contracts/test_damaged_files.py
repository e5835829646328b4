"""Leaves of every saved model, damaged: what is no value of a leaf is refused, in our words.

Families add to `FORGED` what the types and ranges of single leaves do not say.
`python -m tests.golden --damaged` tries all leaves alike, too, and compares with a commit.
"""

import copy
import json
import re

import pytest

import bayescascade
from bayescascade import ModelFileError
from tests.contracts.listed import ESTIMATORS, SHOWN, fitted
from tests.golden.outcomes import of_damage, record_of

SHARED = {
    "format": "histogram", "version": "histogram", "model": "histogram", "schema": "histogram",
    "parameters": "leaf", "summary": "rules", "encoding": "forest", "costs": "l1",
    "choice": "miser", "classes": "l1", "item_shares": "l1", "feature_shares": "l1",
}  # fmt: skip
"""Keys that are read alike for all models, and the one for which they are damaged."""

QUICK = ("det", "histogram", "forest", "sensors", "rado")
SAVED = [
    pytest.param(name, marks=[pytest.mark.slow] * (name not in QUICK))
    for name in SHOWN
    if hasattr(ESTIMATORS[name].make, "save")
]

ANY_VALUE = (
    r"((cascade|chosen)/)?parameters/(columns|drop|nominal|ordinal|continuous|penalties)(/.*)?"
    r"|(cascade|chosen)/(format|version)|version|candidates/\*/settings"
    r"|(cascade/)?draws|.*/closed|gated/(cut|full/nobody)"
)
"""Places that hold what users give, or nothing, or that another place stands for."""

OPTIONAL = (
    r".*/\*|.*/(shares|acceptance|as_best|diagnostics|settings)(/.+)?|.*/max_(branches|leaves)"
    r"|.*/(feature_inclusion|temper|n_steps|budget|certificate|log_evidence|stopped_after|missing)"
    r"|.*/(held_out|smoothing|choice|standard_error|penalty|tradeoff|duality_gap|gap|numbers)"
    r"|.*/(average|errors|slopes?|length|overlap|n_choosing|support|sides|closed/\*)"
    r"|average|effects|gap|cut|chosen_tradeoff|penalty|duality_gap|objective|promise|readable"
    r"|rules|n_rows|choice|stopped_after"
)
"""Places that may be empty, or that are not in all files."""

ANY_NUMBER = (
    "mean|sd|r_hat|ess|n_rows|n_distinct|total_weight|n_draws|n_chains|n_rounds|fallen|"
    "n_leaves|operations|gap|log_evidence|log_posterior|log_likelihood|log_risk|objective|"
    "value|held_out|complexity|smoothing|default|error|standard_error|alpha|cost_exponent|"
    "threshold|tradeoff|chosen_tradeoff|lower_bound|gains|explained|bound|weight|"
    "coefficients|intercepts|intercept|coef|center|means|offset|offsets|cut|penalty|"
    "duality_gap|scale|shape|weights|class_shares|starts|budget|cost|above|above_error|"
    "points|factor|theta|n_rados|n_rounds_made|span|clusters|n_clusters|expansion|height|"
    "slopes|landmarks|sizes|length|gates|predictors|constants|cloud|lift|n_held_out|"
    "n_choosing|children|version|values|expected_branches|max_depth|max_features|"
    "leaf_concentration|memory_limit|n_steps|max_branches|fare"
)
"""Names of numbers that may be negative, or as large as can be."""

COUNTED = {"n_rows", "n_distinct", "total_weight", "n_draws", "n_chains", "n_rounds", "fallen"}
"""Those of them that may only be large."""


def is_allowed(place: str, kind: str) -> bool:
    """Say whether a damage may go unnoticed; the place has stars for numbers."""
    if kind in ("text", "flag", "mapping", "list"):
        return re.fullmatch(ANY_VALUE, place) is not None
    if kind in ("number", "none", "missing"):
        return re.fullmatch(f"{ANY_VALUE}|{OPTIONAL}", place) is not None
    if kind in ("negative", "huge"):
        name = place.rstrip("/*").rsplit("/", 1)[-1]
        is_any = re.fullmatch(ANY_NUMBER, name) is not None or "acceptance/" in place
        return is_any and not (kind == "negative" and name in COUNTED)
    return kind != "nan"


@pytest.mark.parametrize("name", SAVED)
def test_damaged_leaves_are_refused(name, tmp_path, monkeypatch):
    """Of another type, missing, no number or out of range; what is read in spite of it, works."""
    monkeypatch.chdir(tmp_path)
    record = record_of(fitted(name))
    skipped = [key for key, damaged in SHARED.items() if damaged != name]
    nested = [key for key, value in record.items() if isinstance(value, dict) and "format" in value]
    found = of_damage(record, 1, skipped=skipped + nested)  # which others have
    assert len(found) > 40
    wrong = []
    for damage, outcome in found.items():
        place, kind = damage.rsplit(" ", 1)
        place = re.sub(r"/\d+(?=/|$)", "/*", place)
        if outcome != "refused" and not (outcome == "loads" and is_allowed(place, kind)):
            wrong.append((damage, outcome))
    assert wrong == []


FORGED = [
    ("leaf exact", "tree/feature/0", 99),
    ("leaf exact", "tree/parent/1", 10**30),
    ("leaf exact", "tree/block/1", (2**32 - 1) << 32),
    ("leaf exact", "tree/leaf_counts/0", 10**6),
    ("leaf exact", "log_posterior", 0.0),
    ("leaf exact", "parameters/max_branches", 1),
    ("leaf exact", "parameters/concentration", 3.0),
    ("leaf exact", "draws/times", []),
    ("leaf exact", "draws/times/0", 0),
    ("leaf exact", "draws/blocks/size", 10**12),
    ("leaf exact", "draws/block/type", "|O"),
    ("leaf exact", "draws/counts/data", "eJw"),
    ("leaf exact", "draws/more", {"type": "|u1", "size": 0, "data": ""}),
    ("leaf auto", "leaf_choice", {}),
    ("leaf auto", "leaf_choice", {"best": {"round": -1.0}, "sums": {}}),
    ("leaf auto", "leaf_choice", {"best": {}, "sums": {}}),
    ("rules", "summary/shares", {"rules": {"1": 2.0}}),
    ("rules", "summary/diagnostics", {"log_posterior": {"mean": 1}}),
    ("rules", "schema/columns/3/edges", [0.0, 20.0, 5.0, 100.0]),
    ("rules", "schema/columns/0/levels", ["male"]),
    ("rules", "n_candidates/1", 7),
    ("rules", "draws/0/counts", [1e6]),
    ("rules", "draws/0/rules", [[[0, 0, 1]], [[0, 0, 1]]]),
    ("rules", "rules/counts/0", 1e308),
    *(
        ("labels", "rules/rules/0", rule)
        for rule in (
            [], [[0, 0, 1], [0, 1, 2]], [[1, 0, 1], [0, 0, 1]], [[9, 0, 1]], [[0, 0, 2]],
            [[0, 1, 1]], [[0, 0]], [[0, 0, 1.0]], [[0, False, True]], [[0, 0, 10**30]],
        )
    ),
    ("labels", "parameters/max_size", 1),
    ("det", "parameters/complexity", 0.5),
    ("det", "tree", lambda _: record_of(fitted("leaf exact"))["tree"]),
    ("det", "tree/feature/0", 99),
    ("det", "tree/parent/1", -1),
    ("histogram", "cells/0/0", 99),
    ("histogram", "cells", lambda cells: [cells[0], *cells[:-1]]),
    ("histogram", "counts/0", 7.0),
    ("histogram", "log_evidence", 0.0),
    ("histogram", "parameters/pseudo_count", 3.0),
    ("hidden", "mixture/parents", [1, 0, 1, 1]),
    ("hidden", "mixture/parents", [-1, -1, 1, 1]),
    ("hidden", "mixture/n_states", 2),
    ("continuous", "mixture/parents", [1, 0, 1, 1]),
    ("continuous", "mixture/parents", [-1, 0, 1, 9]),
    ("continuous", "mixture/shares/0", 0.9),
    ("continuous", "mixture/merged/0", 9),
    ("continuous", "mixture/tables", {"type": "<u4", "size": 3, "data": "eJw="}),
    ("mixture", "mixture/classes/0/tables/0/0", 0.9),
    ("mixture", "mixture/classes/0/parents", [2, 0, 1, 1]),
    ("classifiers", "tree/nodes/0", lambda node: {**node, "children": [0, 0]}),
    ("classifiers", "tree/nodes/2", lambda node: {**node, "children": [1, 4]}),
    ("classifiers", "tree/nodes/0", lambda node: {**node, "bought": [], "gains": []}),
    ("classifiers", "tree/nodes/1/leaf/coefficients", [[1.0]]),
    ("margins", "asks/rule/n_neighbors", 151),
    ("margins", "asks/neighborhoods/labels", [0] * 150),
    ("forest", "encoding/columns/0", "crew"),
    ("forest", "costs/groups", {"blood": ["none"]}),
    ("forest", "item_shares/0", 0.123),
    ("forest", "forest/feature/0", 10),
    ("forest", "classes/values", [1, 1, 2]),
    ("forest", "classes/values", [1, 2]),
    ("forest", "classes/dtype", "<U300000000"),
    ("forest", "classes/dtype", "V8"),
    ("forest", "classes/dtype", "nothing"),
    ("forest", "classes/values", ["a", 2, 3]),
]  # fmt: skip
"""A listed estimator, a place in its file, and a value that contradicts others, or what is there.

A function makes it of the value that is there.
"""


@pytest.mark.parametrize(
    ("name", "place", "value"), FORGED, ids=[f"{n} {p} {i}" for i, (n, p, _) in enumerate(FORGED)]
)
def test_contradictions_are_refused(name, place, value, tmp_path):
    """An edited file must not become a model that nobody has learned."""
    record = copy.deepcopy(record_of(fitted(name)))
    *above, last = [int(key) if key.isdigit() else key for key in place.split("/")]
    holder = record
    for key in above:
        holder = holder[key]
    holder[last] = value(holder[last]) if callable(value) else value
    path = tmp_path / "forged.json"
    path.write_text(json.dumps(record))
    with pytest.raises(ModelFileError, match=r"forged\.json"):
        bayescascade.load(path)
