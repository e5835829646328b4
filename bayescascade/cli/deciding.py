"""Options on how a class is chosen for each row: by a threshold or by costs."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bayescascade.cli.file_types import INPUT
from bayescascade.cli.loading import in_role
from bayescascade.cli.options import RealType, name_and_rest, split_commas

if TYPE_CHECKING:
    from bayescascade.model.decisions import Decision

Command = TypeVar("Command", bound=Callable[..., Any])

_FORM = "--class-costs must be CLASS=COST,..., as in no=1,yes=5, or a file"


def with_decision(command: Command) -> Command:
    """Give a command `threshold` and `class_costs`, for `decision_of`."""
    costs = click.option(
        "--class-costs",
        type=INPUT,
        metavar="CLASS=COST,...|FILE.csv",
        help="Predict the class with the smallest expected cost. COST is the cost of "
        "predicting another class for a row of CLASS (default 1). A file has a line per "
        "true class and a column per predicted class.",
    )
    threshold = click.option(
        "--threshold",
        type=RealType(minimum=0.0, maximum=1.0),
        help="Predict the second of two classes if its probability is at least this.",
    )
    return threshold(costs(command))


def decision_of(
    model: Any, path: str, threshold: float | None, class_costs: str | None
) -> "Decision":
    """Return how classes are chosen; models that are not classifiers must not have the options."""
    from bayescascade.model.decisions import Decision

    arguments = decision_options(model, path, threshold, class_costs)
    decides = getattr(model, "decision", None)  # not of a model of numbers
    return Decision() if decides is None else decides(**arguments)


def decision_options(
    model: Any, path: str, threshold: float | None, class_costs: str | None
) -> dict[str, Any]:
    """Return the arguments of `predict`; none without the options."""
    from bayescascade.model.roles import Classifier

    given: dict[str, Any] = {}
    if threshold is not None:
        given["threshold"] = threshold
    if class_costs is not None:
        given["class_costs"] = _parsed_costs(class_costs)
    if given:
        in_role(Classifier, model, f"--{next(iter(given)).replace('_', '-')}", path)
    return given


def _parsed_costs(text: str) -> dict[str, Any]:
    """Return costs by class, or by true and predicted class if they are in a file."""
    if "=" not in text or Path(text).is_file():
        return _read_costs(text)
    costs: dict[str, float] = {}
    for part in split_commas(text):
        name, sign, cost = name_and_rest(part, "=")
        if not sign:
            raise click.UsageError(f"{_FORM}, got {text!r}")
        costs[name] = _number(cost, f"{_FORM}, got {text!r}")
    return costs


def _read_costs(path: str) -> dict[str, dict[str, float]]:
    from bayescascade.base.errors import DataError

    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            header, *lines = [[cell.strip() for cell in row] for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError, csv.Error, ValueError) as error:
        raise DataError(f"{_FORM}, cannot read {path}: {error}") from None
    costs = {}
    for line in lines:
        if len(line) != len(header):
            raise DataError(f"{path}: must have {len(header)} cells in each line, got {line}")
        wrong = f"{path}: must have costs after the first cell of a line, got {line}"
        numbers = [_number(cell, wrong) for cell in line[1:]]
        costs[line[0]] = dict(zip(header[1:], numbers, strict=True))
    return costs


def _number(text: str, wrong: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise click.UsageError(wrong) from None
