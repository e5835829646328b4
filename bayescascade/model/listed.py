"""What a family declares of an estimator for the commands that choose among several by name.

A declaration stands beside the family's parameters, imports nothing heavy, and is listed in
`bayescascade.methods.listed`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from bayescascade.base.parameters import Parameters


@dataclass(frozen=True)
class Listed:
    """An estimator that commands know by a name."""

    name: str  # in commands
    estimator: str  # its public name
    parameters: type[Parameters]
    about: str  # what it is or does, as a part of a sentence

    def made(self, **given: Any) -> Any:  # Any: an estimator, each family has its own
        """Return the estimator with what is given; of what it does not declare, nothing."""
        declared = self.parameters.declared()
        known = {name: value for name, value in given.items() if name in declared}
        return getattr(import_module("bayescascade"), self.estimator)(**known)


@dataclass(frozen=True, kw_only=True)
class ListedDensity(Listed):
    """A density that `compare` learns, and perhaps `fit`."""

    among: Sequence[Mapping[str, Any]] = ({},)  # settings of which those are taken that suit
    is_quick: bool = False  # it takes seconds, so that it is compared by default
    is_fitted: bool = True  # `fit` learns it, too


@dataclass(frozen=True, kw_only=True)
class ListedBudgetLearner(Listed):
    """A classifier that `budget` learns, several budgets one after the other."""

    of_trees: Callable[[int], Mapping[str, Any]]  # what parameters a number of trees is
    given: Mapping[str, Any] = field(default_factory=dict)  # other than defaults
    in_trials: Mapping[str, Any] = field(default_factory=dict)  # where it is one of several to try


@dataclass(frozen=True, kw_only=True)
class ListedLearner(Listed):
    """What a command learns from the rows of a file and their labels, alone or as one of several.

    Its output columns in `predict` are those that its `predict_block` names.
    """

    given: Mapping[str, Any] = field(default_factory=dict)  # parameters in place of defaults
    call: str = "fit"  # its method that learns, and returns what is printed


@dataclass(frozen=True, kw_only=True)
class ListedCommand:
    """A command that learns from labeled rows by the first of some learners, or as --method says.

    Everything else follows: DATA, --target, how it is read, --out, --json, errors and Ctrl-C.
    """

    name: str
    short: str  # the line in the list of commands
    about: str  # the text of its help
    learners: Sequence[ListedLearner]
    options: Sequence[str] = ()  # the parameters that have options, in this order; if none, all
    picture: str = ""  # what --plot draws, by `plot` of what is learned; "" if there is none
    words: str = ""  # such as "the boxes are", best if Ctrl-C ends the search
