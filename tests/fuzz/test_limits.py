"""The fuzzer of time limits forgets nothing that has one."""

from inspect import isclass, signature

import click
import pytest

import bayescascade
from tests.contracts.listed import ESTIMATORS
from tests.fuzz import limits


def test_all_estimators_with_a_time_limit_are_tried():
    """A new one must be listed, or nobody would see that it never ends."""
    public = [getattr(bayescascade, name) for name in bayescascade.__all__]
    timed = {one for one in public if isclass(one) and hasattr(one, "fit")}
    timed = {one for one in timed if "time_limit" in signature(one).parameters}
    names = [name for name in limits.names_of(None) if name in ESTIMATORS]
    assert {ESTIMATORS[name].make for name in names} == timed


@pytest.mark.parametrize("name", limits.commands())
def test_commands_with_a_time_limit_get_the_options_that_they_need(name, tmp_path, monkeypatch):
    """A command without a required option ends at once, and would never be late."""
    monkeypatch.chdir(tmp_path)
    for file in ("rows.csv", "costs.csv", "rados.npz"):
        (tmp_path / file).touch()
    words = limits.words_of_command(name)
    with click.Context(limits.commands()[name]) as context:
        context.command.parse_args(context, words[len(name.split()) :])
