"""Classifiers of several budgets, and their one file."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from bayescascade.base.errors import ModelFileError, ParameterError
from bayescascade.base.files import write_json
from bayescascade.base.validation import check_real
from bayescascade.costs.limits import is_within
from bayescascade.model.record import FORMAT, VERSION, contradictions_refused, model_class
from bayescascade.report.numbers import cost_texts
from bayescascade.report.page import BLANK, Heading, Numbers, Page, Pieces, PrintedTable, count_of
from bayescascade.report.printed import Readable


class BudgetPath(Readable):
    """Fitted classifiers for several budgets, one each, which are saved in one file.

    It is a sequence of the classifiers, in ascending order of their budgets. `bayescascade.load`
    reads a saved one.

    Parameters
    ----------
    models : iterable of classifiers
        Each is fitted within another budget, its parameter `budget`: for example the result of a
        method `path`, or those of `fit_budgets`.

    Attributes
    ----------
    models : tuple of classifiers
    budgets : list of float
        Their budgets, ascending.

    Raises
    ------
    ParameterError
        If there are no models, if one has no budget, or if two have the same budget.

    Examples
    --------
    >>> import numpy as np
    >>> from bayescascade import BudgetedForestClassifier, BudgetPath
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> model = BudgetedForestClassifier(max_trees=5, random_state=0)
    >>> path = BudgetPath(one for _, one in model.fit_budgets([1, 2], X, X[:, 0] > X[:, 1]))
    >>> path.budgets, path.within(1.5).budget
    ([1, 2], 1)
    """

    model_name: ClassVar[str] = "BudgetPath"
    title: ClassVar[str] = "path of budgets"

    def __init__(self, models: Iterable[Any]) -> None:
        given = list(models)
        if not given:
            raise ParameterError("models must be at least one classifier, got none")
        for one in given:
            if getattr(one, "budget", None) is None or not hasattr(one, "validation_cost_"):
                raise ParameterError(f"models must be fitted within a budget, got {one!r}")
        given.sort(key=lambda one: float(one.budget))
        self.models = tuple(given)
        if len(set(self.budgets)) < len(given):
            raise ParameterError(f"models must have different budgets, got {self.budgets}")

    @property
    def budgets(self) -> list[float]:
        """The budgets, ascending."""
        return [one.budget for one in self.models]

    def __len__(self) -> int:
        return len(self.models)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.models)

    def __getitem__(self, place: int) -> Any:
        return self.models[place]

    def __repr__(self) -> str:
        return f"BudgetPath(budgets={self.budgets})"

    def within(self, budget: float) -> Any:
        """Return the classifier of the largest budget that is at most `budget`.

        Raises ParameterError if the budget is below the smallest.
        """
        amount = check_real("budget", budget, minimum=0.0)
        possible = [one for one in self.models if is_within(one.budget, amount)]
        if not possible:
            least = self.budgets[0]
            raise ParameterError(f"budget must be >= {least:.12g}, the smallest, got {amount:g}")
        return possible[-1]

    # -- what a user sees, and files ---------------------------------------------------------------

    def page(self) -> Page:
        """Return a line for each budget, with the mean cost of a validation row."""
        first, *others = dict.fromkeys(one.title for one in self.models)
        heading = [self.title, count_of(len(self), "budget"), *([] if others else [first])]
        names = [f"{budget:.12g}" for budget in self.budgets]
        columns = [Numbers("mean cost", cost_texts([one.validation_cost_ for one in self.models]))]
        note = "a budget chooses its classifier: --budget in commands, within in Python"
        table = PrintedTable(names, columns, "budget")
        return (Heading(heading), BLANK, table, BLANK, Pieces([note], "dim"))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data at full precision, like the file of `save`."""
        return self.to_record()

    def to_record(self) -> dict[str, Any]:
        """Return plain JSON types, at full precision."""
        records = [one.to_record() for one in self.models]
        return {"format": FORMAT, "version": VERSION, "model": self.model_name, "models": records}

    def save(self, path: str | Path) -> None:
        """Write all classifiers as one JSON file; `bayescascade.load` reads it back.

        What they have in common, such as training rows, is written once.
        """
        record = self.to_record()
        alike = _alike(record["models"])
        models = [_without(alike, one) for one in record["models"]]
        write_json(path, {**record, "alike": alike, "models": models})

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Rebuild a path from the record of a saved file; ModelFileError if it is malformed."""
        with contradictions_refused():
            models = []
            for own in record["models"]:
                one = _joined(record.get("alike", {}), own)
                found = model_class(one["model"])
                if found is None or not hasattr(found, "fit_budgets"):
                    raise ModelFileError("a saved path must have classifiers within budgets")
                models.append(found.from_record(one))
            return cls(models)


def _alike(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the fields that are equal in all records, also fields of fields."""
    found: dict[str, Any] = {}
    for key in (key for key in records[0] if all(key in one for one in records)):
        values = [one[key] for one in records]
        if all(value == values[0] for value in values):
            found[key] = values[0]
        elif all(isinstance(value, dict) for value in values):
            found[key] = _alike(values)
    return found


def _without(alike: dict[str, Any], record: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a record that are not alike in all."""
    return {
        key: _without(alike[key], value) if key in alike else value
        for key, value in record.items()
        if key not in alike or value != alike[key]
    }


def _joined(alike: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Return the whole record."""
    joined = {k: _joined(alike[k], v) if k in alike else v for k, v in own.items()}
    return {**alike, **joined}
