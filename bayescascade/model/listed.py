"""Declarations of estimators for commands that choose among several by name.

A declaration is next to the family's parameters, has no slow imports, and is listed in
the `listed` of its group in `bayescascade.methods`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from bayescascade.base.parameters import Parameters


@dataclass(frozen=True)
class Listed:
    """An estimator with a name in commands."""

    name: str  # in commands
    estimator: str  # its public name
    parameters: type[Parameters]
    about: str  # its purpose, as a part of a sentence

    def made(self, **given: Any) -> Any:  # Any: an estimator of any family
        """Return the estimator with those of the given parameters that it declares."""
        declared = self.parameters.declared()
        known = {name: value for name, value in given.items() if name in declared}
        return getattr(import_module("bayescascade"), self.estimator)(**known)


@dataclass(frozen=True, kw_only=True)
class ListedDensity(Listed):
    """A density that `compare` learns, and perhaps `fit`."""

    among: Sequence[Mapping[str, Any]] = ({},)  # candidates, of which the best is chosen
    is_quick: bool = False  # it takes seconds, and is compared by default
    is_fitted: bool = True  # `fit` learns it, too


@dataclass(frozen=True, kw_only=True)
class ListedBudgetLearner(Listed):
    """A classifier that `budget` learns, several budgets one after the other."""

    of_trees: Callable[[int], Mapping[str, Any]]  # parameters for the number of trees
    given: Mapping[str, Any] = field(default_factory=dict)  # other than defaults
    in_trials: Mapping[str, Any] = field(default_factory=dict)  # if it is one of several to try
    in_folds: Mapping[str, Any] = field(default_factory=dict)  # also, if rows are few
    price: float = 0.0  # microseconds of a usual core for a cell, if it is tried by default
    is_by_class: bool = True  # whether each of more than two classes has this price

    def work(self, n_cells: float, n_classes: int) -> float:
        """Return the work for rows, in microseconds of a usual core."""
        return self.price * n_cells * (n_classes if self.is_by_class and n_classes > 2 else 1)


@dataclass(frozen=True, kw_only=True)
class ListedLearner(Listed):
    """An estimator for a command on labeled rows of a file.

    Its `predict_block` names its output columns in `predict`.
    """

    given: Mapping[str, Any] = field(default_factory=dict)  # parameters that differ from defaults
    call: str = "fit"  # its method that learns and returns the printed object


@dataclass(frozen=True, kw_only=True)
class ListedCommand:
    """A command that learns from labeled rows by its first learner, or by --method.

    The rest is shared: DATA, --target, reading options, --out, --json, errors and Ctrl-C.
    """

    name: str
    short: str  # the line in the list of commands
    about: str  # the text of its help
    learners: Sequence[ListedLearner]
    options: Sequence[str] = ()  # the parameters with options, in this order; all if empty
    picture: str = ""  # words for the picture of --plot; "" without this option
    words: str = ""  # such as "the boxes are", for a search that Ctrl-C ends
