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
