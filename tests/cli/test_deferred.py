"""Tests of modules that are loaded when they are used."""

import subprocess
import sys

import pytest

_PACKAGE = {
    "__init__.py": "print('loaded')\nfrom .low import add\ndef twice(x): return add(x, x)\nn = 3\n",
    "low.py": "def add(a, b): return a + b\n",
    "high.py": "name = 'high'\n",
}


@pytest.fixture
def run(tmp_path):
    """Return what a script prints in which `slow` is deferred and `slow.twice` a function."""
    (tmp_path / "slow").mkdir()
    for name, text in _PACKAGE.items():
        (tmp_path / "slow" / name).write_text(text)
    head = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
    head += "from bayescascade.cli.deferred import defer\n"
    head += "defer('slow', 'slow.low', functions=['slow.twice', 'slow.low.add'])\n"

    def printed(script):
        asked = [sys.executable, "-c", head + script]
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()

    return printed


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("import slow; print('before')", "before"),
        ("import slow; print('before'); print(slow.n)", "before loaded 3"),
        ("from slow import n; print('after')", "loaded after"),
        ("from slow import twice; print('before')", "before"),
        ("from slow import twice; print('before'); print(twice(2))", "before loaded 4"),
        ("from slow import twice; twice(1); import slow; print(slow.twice(1))", "loaded 2"),
        ("from slow.low import add; print('before'); print(add(1, 2))", "before loaded 3"),
        ("import slow.high; import slow; print(slow.high.name)", "loaded high"),
        ("from slow.high import name; print(name)", "loaded high"),
        ("import slow, slow.high as h; slow.n; print(slow.high is h)", "loaded True"),
    ],
)
def test_modules_load_when_they_are_used(run, script, expected):
    """A module that loads at once delays each command; one that loads too late breaks it."""
    assert run(script) == expected.split()
