"""The comparison finds what it is for: a digit of a print, and a damaged file that is accepted."""

import json
import shutil
from pathlib import Path

import pytest

import bayescascade
import samplers
from tests.contracts import listed
from tests.golden import __main__ as golden, outcomes


@pytest.mark.slow
def test_a_changed_digit_in_a_print_is_found(tmp_path, monkeypatch):
    """As the comparison would always pass if it looked at nothing."""
    tree, package = tmp_path / "changed", Path(bayescascade.__file__).parent
    shutil.copytree(package, tree / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    for other in (Path(samplers.__file__).parent, golden.ROOT / "tests"):
        (tree / other.name).symlink_to(other)
    changed = tree / package.name / "methods/density/histogram/estimators.py"
    text = changed.read_text()
    changed.write_text(text.replace("- self.log_n_cells_)}", "- self.log_n_cells_, 2)}"))
    assert changed.read_text() != text
    there = golden.outcomes(tree, tmp_path / "home", ["bayescascade.methods.density.histogram"])
    monkeypatch.chdir(tmp_path)
    here = json.loads(json.dumps(outcomes.of_estimator(listed.ESTIMATORS["histogram"])))
    assert golden.first_difference(here["print"], there["histogram"]["print"]) is not None
    assert golden.first_difference(here["answers"], there["histogram"]["answers"]) is None


def test_a_damage_that_is_no_longer_refused_is_found():
    old = {"net/gates text": "refused", "n none": "loads", "n text": "raises KeyError"}
    assert golden.first_accepted(old, {**old, "n none": "refused"}) is None
    for place, after in (("net/gates text", "loads"), ("n none", "raises KeyError")):
        assert golden.first_accepted(old, {**old, place: after})[1] == f"{place}: {after}"
