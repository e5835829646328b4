"""Every search has an effort, in the same three words, or a reason why it has none."""

import pytest

from bayescascade import GatedSensorsClassifier
from bayescascade.cli.application import application
from bayescascade.model.parameters import EFFORTS
from bayescascade.model.rounds import OF_CHAINS, STEPS, WORK, Rounds
from bayescascade.model.search import Search
from tests.contracts.test_parameters import DECLARING

PATH = "a given number of tradeoffs, each fitted to its end"
GREEDY = "grown greedily, once for each fold or tree"
REASONS = {
    "DensityEstimationTree": GREEDY,
    "BudgetedForestClassifier": GREEDY,
    "BudgetPruneClassifier": PATH,
    "SubmodularTreeClassifier": GREEDY,
    "CostSensitiveTreeClassifier": PATH,
    "CostWeightedLogisticClassifier": PATH,
    "MarginNeighborsClassifier": "one way of each row for each rule",
    "AdaptiveClassifier": PATH,
    "GreedyMiserClassifier": PATH,
    "RadoBoostClassifier": "a convex problem, solved to its optimum",
    "rados fit": "as RadoBoostClassifier",
    "rados make": "sums, without a search",
}
"""Why an estimator or a command that may end early has no effort."""


def commands(group, path=()):
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


def options(command):
    return {option for one in command.params for option in one.opts}


SEARCHES = {
    **{make.__name__: set(make.declares.declared()) for make in DECLARING},
    **{name: {one.lstrip("-").replace("-", "_") for one in options(command)}
       for name, command in commands(application)},
}  # fmt: skip
SEARCHES = {k: v for k, v in SEARCHES.items() if v & {"n_steps", "steps", "time_limit"}}


@pytest.mark.parametrize("name", SEARCHES)
def test_searches_have_an_effort_or_a_reason(name):
    assert ("effort" in SEARCHES[name]) != (name in REASONS)


def test_reasons_are_of_searches():
    assert set(REASONS) <= set(SEARCHES)


@pytest.mark.parametrize("make", DECLARING)
def test_effort_has_the_same_words_everywhere(make):
    declared = make.declares.declared().get("effort")
    assert declared is None or (declared.words, declared.default) == (EFFORTS, "normal")


def test_more_effort_is_more_work_and_given_steps_stay():
    """A quick search that took as long, or a thorough one that ended as early, would be a lie."""
    for factors in (STEPS, WORK):
        assert list(factors) == list(EFFORTS)
        assert sorted(factors.values()) == list(factors.values())
    given = {"search": "anneal", "n_chains": 1, "n_jobs": 1, "random_state": 0, "checkpoint": None}
    given |= {"resume": False, "progress": None}
    steps = [Search(n_steps=None, effort=effort, **given).steps(1_000) for effort in EFFORTS]
    assert steps == [250, 1_000, 5_000]
    assert {Search(n_steps=7, effort=effort, **given).steps(1_000) for effort in EFFORTS} == {7}
    assert OF_CHAINS.by("quick").plain == 1 < OF_CHAINS.by("thorough").plain
    assert [Rounds(most=10.0).by(effort).most for effort in EFFORTS] == [2.0, 10.0, 1_000.0]
    trained = [GatedSensorsClassifier(effort=effort)._n_steps for effort in EFFORTS]
    assert trained == [200, 800, 4_000]
    assert GatedSensorsClassifier(effort="quick", n_steps=9)._n_steps == 9
