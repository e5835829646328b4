"""Costs of features and of groups of features, when a row is classified.

A feature is paid for at its first acquisition for a row, and is free after that. A group is a cost
that several features share, such as drawing blood: the first acquired member pays for the group,
which is then paid for all members. So Turney's discounts are a group of 2.10 and the members'
remaining costs, and a descriptor with many dimensions is a group whose members are free.
"""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import DataError, ParameterError
from bayescascade.base.files import replaced_file
from bayescascade.base.validation import check_real
from bayescascade.costs.items import CostItems, items_of
from bayescascade.data.given import column_text
from bayescascade.data.names import near_names
from bayescascade.report.numbers import cost_texts
from bayescascade.report.page import BLANK, Heading, Numbers, Page, PrintedTable, count_of
from bayescascade.report.printed import Printed

_MOST_LISTED = 10

_HEADER = ["name", "cost", "group"]  # columns of files


@dataclass(frozen=True, slots=True, repr=False)
class FeatureCosts(Printed):
    """Costs of features and of groups of features.

    Parameters
    ----------
    costs : mapping or Series of str or int to float >= 0
        Cost of each feature, by the name of its column (in arrays, by its index), and of each
        group, by its name.
    groups : mapping of str to sequence of str or int
        Members of each group. A row pays the cost of a group once, with the first member that is
        acquired. A member without a cost of its own is free after that. A feature may be in several
        groups.
    default : float >= 0
        Cost of groups, and of features in no group, that are not in `costs`.

    Raises
    ------
    ParameterError
        If a cost is negative or not finite, or a group has no members or the same member twice.

    Examples
    --------
    >>> costs = FeatureCosts({"blood": 2.1, "glucose": 15.5}, groups={"blood": ["glucose", "iron"]})
    >>> items = costs.resolve(["age", "glucose", "iron"])
    >>> items.names, items.costs
    (('age', 'glucose', 'blood'), array([ 1. , 15.5,  2.1]))
    >>> costs.total(["glucose", "iron"])
    17.6
    """

    costs: Mapping[str | int, float] = field(default_factory=dict)
    groups: Mapping[str, Sequence[str | int]] = field(default_factory=dict, kw_only=True)
    default: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        if isinstance(self.costs, pd.Series):
            object.__setattr__(self, "costs", self.costs.to_dict())
        for name in ("costs", "groups"):
            value = getattr(self, name)
            if not isinstance(value, Mapping):
                raise ParameterError(f"{name} must be a mapping, got {type(value).__name__}")
        costs = {
            _key("costs", key): check_real(f"costs[{key!r}]", cost, minimum=0.0)
            for key, cost in self.costs.items()
        }
        groups = {name: _members(name, members) for name, members in self.groups.items()}
        object.__setattr__(self, "costs", costs)
        object.__setattr__(self, "groups", groups)
        object.__setattr__(self, "default", check_real("default", self.default, minimum=0.0))

    @classmethod
    def of(cls, costs: "Costs", columns: Sequence[str | int] | None = None) -> "FeatureCosts":
        """Return the costs that a parameter `costs` describes.

        Parameters
        ----------
        costs : None, FeatureCosts, mapping, Series or sequence of float
            None: each feature costs 1. A sequence has one cost per feature. A Series is a mapping.
        columns : sequence of str or int, optional
            The features of a sequence, in order; by default, their indices.

        Raises
        ------
        ParameterError
            If `costs` is of another type, if a sequence is not as long as `columns`, or if a cost
            is negative or not finite.
        """
        if costs is None:
            return cls()
        if isinstance(costs, FeatureCosts):
            return costs
        if isinstance(costs, Mapping | pd.Series):
            return cls(costs)  # type: ignore[arg-type] # a Series becomes a mapping
        if isinstance(costs, str) or not isinstance(costs, Sequence | np.ndarray):
            hint = "; FeatureCosts.read_csv reads a file" if isinstance(costs, str | Path) else ""
            shown = type(costs).__name__ if isinstance(costs, pd.DataFrame) else repr(costs)
            raise ParameterError(
                "costs must be FeatureCosts, a mapping of features to costs or one cost per "
                f"feature, got {shown}{hint}"
            )
        keys: Sequence[str | int] = range(len(costs)) if columns is None else columns
        if len(costs) != len(keys):
            raise ParameterError(
                f"costs must have one cost per feature, {len(keys)}, got {len(costs)}"
            )
        return cls(dict(zip(keys, costs, strict=True)))

    def resolve(self, columns: Sequence[str | int]) -> "CostItems":
        """Return the cost of each of the columns.

        Parameters
        ----------
        columns : sequence of str or int
            Names of the columns, in order, or their indices. The costs of column ``3`` may be
            listed under ``"3"``, as in a file.

        Raises
        ------
        ParameterError
            If a cost or a member of a group is not that of a column, or if a group has the name of
            a column.
        """
        places = {str(column): place for place, column in enumerate(columns)}
        places |= {column: place for place, column in enumerate(columns)}  # type: ignore[misc]
        for group in self.groups:
            if group in places:
                raise ParameterError(f"a group must not be named like a column, got {group!r}")
        own: dict[int, float] = {}
        for key, cost in self.costs.items():
            if key in places:
                own[places[key]] = cost
            elif key not in self.groups:
                raise ParameterError(
                    f"costs must be of {_listed(columns)}, got {_meant(key, columns)}"
                )
        incurred: list[list[tuple[str, float]]] = [[] for _ in columns]
        for group, members in self.groups.items():
            for member in members:
                if member not in places:
                    raise ParameterError(
                        f"groups[{group!r}] must be of {_listed(columns)}, "
                        f"got {_meant(member, columns)}"
                    )
                incurred[places[member]].append((group, self.costs.get(group, self.default)))
        for place, column in enumerate(columns):
            cost = own.get(place, 0.0 if incurred[place] else self.default)
            incurred[place].insert(0, (column_text(column), cost))
        return items_of(incurred)

    def total(
        self, features: Sequence[str | int], columns: Sequence[str | int] | None = None
    ) -> float:
        """Return the total cost of features: each feature and each of their groups counts once.

        Parameters
        ----------
        features : sequence of str or int
            Names of columns, or their indices.
        columns : sequence of str or int, optional
            All columns. Without them, a feature with neither cost nor group costs `default`.

        Raises
        ------
        ParameterError
            If a feature is not one of the columns, or is a group; see also `resolve`.
        """
        if isinstance(features, str) or not isinstance(features, Iterable):
            raise ParameterError(f"features must be a list of features, got {features!r}")
        distinct = dict.fromkeys(features)
        if columns is None:
            members = [member for group in self.groups.values() for member in group]
            own = [key for key in self.costs if key not in self.groups]
            known = [*distinct, *members, *own]
            # an index is also found as text, but text not as an index
            in_order = sorted(known, key=lambda key: not isinstance(key, str))
            columns = list({str(key): key for key in in_order}.values())
        names = {str(column): place for place, column in enumerate(columns)}
        used = np.zeros((1, len(columns)), np.bool_)
        for feature in distinct:
            if str(feature) not in names:
                raise ParameterError(
                    f"features must be of {_listed(columns)}, got {_meant(feature, columns)}"
                )
            used[0, names[str(feature)]] = True
        items = self.resolve(columns)
        return float(items.total(items.paid(used))[0])

    def among(self, columns: Sequence[str | int]) -> "FeatureCosts":
        """Return only the costs of these columns, and of the groups that contain one of them.

        Parameters
        ----------
        columns : sequence of str or int
            Names of columns, or their indices. A column without a cost is not an error.
        """
        known = {str(column) for column in columns}
        groups = {
            group: [member for member in members if str(member) in known]
            for group, members in self.groups.items()
        }
        groups = {group: members for group, members in groups.items() if members}
        known |= groups.keys()
        costs = {key: cost for key, cost in self.costs.items() if str(key) in known}
        return FeatureCosts(costs, groups=groups, default=self.default)

    @classmethod
    def read_csv(cls, path: str | Path, default: float = 1.0) -> "FeatureCosts":
        """Read costs from a CSV file with the columns name, cost and, if needed, group.

        Each row has a feature and its group, if any; a feature in several groups has several rows.
        A row with the name of a group has the cost of the group. The cost of a feature with a group
        may be empty.

        Parameters
        ----------
        path : str or Path
            UTF-8 text.
        default : float >= 0
            Cost of groups, and of features in no group, that have no cost in the file.

        Raises
        ------
        DataError
            If the file cannot be read or lacks a column, or if a row has no name, has a cost that
            is not a number >= 0, or contradicts another row. The message names the line.
        """
        costs: dict[str | int, float] = {}
        groups: dict[str, list[str | int]] = {}
        for line, cells in _csv_rows(path):
            where, name, group = f"{path}, line {line}", cells["name"], cells.get("group", "")
            if not name:
                raise DataError(f"{where}: name must not be empty")
            if not cells["cost"] and not group:
                raise DataError(f"{where}: {name!r} must have a cost or a group")
            if cells["cost"]:
                try:
                    cost = check_real("cost", float(cells["cost"]), minimum=0.0)
                except ValueError:  # from float or, as a ParameterError, from the range
                    rule = f"cost must be a finite number >= 0, got {cells['cost']!r}"
                    raise DataError(f"{where}: {rule}") from None
                if costs.setdefault(name, cost) != cost:
                    raise DataError(f"{where}: {name!r} must have one cost, got also {cost:g}")
            if group:
                if name in groups.setdefault(group, []):
                    raise DataError(f"{where}: {name!r} must be in {group!r} once, got it again")
                groups[group].append(name)
        return cls(costs, groups=groups, default=default)

    def to_csv(self, path: str | Path) -> None:
        """Write the costs to a file for `read_csv`. The file does not contain `default`.

        Raises
        ------
        FileError
            If the file cannot be written.
        """
        rows = [(key, repr(cost), "") for key, cost in self.costs.items()]
        for group, members in self.groups.items():
            rows += [(member, "", group) for member in members]
        with replaced_file(path) as temporary, temporary.open("w", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([_HEADER, *rows])

    def to_dict(self) -> dict[str, Any]:
        """Return the costs as plain JSON types."""
        return {
            "costs": [[key, cost] for key, cost in self.costs.items()],  # JSON's keys are text
            "groups": {group: list(members) for group, members in self.groups.items()},
            "default": self.default,
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "FeatureCosts":
        """Rebuild costs from the result of `to_dict`.

        Raises
        ------
        KeyError, TypeError, ValueError
            If the record is malformed. An impossible cost is a ParameterError, which is a
            ValueError.
        """
        costs = {key: cost for key, cost in record["costs"]}
        return cls(costs, groups=record["groups"], default=record["default"])

    def __repr__(self) -> str:
        # short, because scikit-learn prints it with every estimator
        counts = f"{len(self.costs)} costs, {len(self.groups)} groups"
        return f"<FeatureCosts: {counts}, default {self.default:.12g}>"

    def page(self) -> Page:
        """Return a table of the features with a cost or a group, followed by the groups."""
        others = f"cost {self.default:.12g} for each"
        groups: dict[str | int, list[str]] = {k: [] for k in self.costs if k not in self.groups}
        for group, members in self.groups.items():
            for member in members:
                groups.setdefault(member, []).append(group)
        if not groups:
            return (Heading([f"{others} feature"]),)
        heading = [f"costs of {count_of(len(groups), 'feature')}", f"{others} other feature"]
        amounts = [self.costs.get(key, 0.0 if of else self.default) for key, of in groups.items()]
        amounts += [self.costs.get(group, self.default) for group in self.groups]
        labels = [*map(column_text, groups), *(f"{group} (group)" for group in self.groups)]
        columns = [Numbers("cost", cost_texts(amounts))]
        if self.groups:
            heading.insert(1, count_of(len(self.groups), "group"))
            own = [", ".join(of) for of in groups.values()] + [""] * len(self.groups)
            columns.append(Numbers("group", own))
        return (Heading(heading), BLANK, PrintedTable(labels, columns, "feature"))


Costs: TypeAlias = (
    FeatureCosts | Mapping[str | int, float] | pd.Series | Sequence[float] | Floats | None
)
"""The type of the parameter `costs` of estimators."""


def _key(name: str, key: object) -> str | int:
    """Return a feature's name or index in plain Python."""
    if isinstance(key, str):
        return str(key)
    if isinstance(key, int | np.integer) and not isinstance(key, bool) and key >= 0:
        return int(key)
    raise ParameterError(f"{name} must be of column names or indices >= 0, got {key!r}")


def _members(group: object, members: object) -> tuple[str | int, ...]:
    if not isinstance(group, str):
        raise ParameterError(f"a group's name must be a string, got {group!r}")
    name = f"groups[{group!r}]"
    if isinstance(members, str) or not isinstance(members, Sequence) or not members:
        raise ParameterError(f"{name} must be a list of at least one feature, got {members!r}")
    keys = tuple(_key(name, member) for member in members)
    if len(set(keys)) < len(keys):
        raise ParameterError(f"{name} must have each feature once, got {members!r}")
    return keys


def _listed(columns: Sequence[str | int]) -> str:
    """Return columns as text for a message."""
    shown = ", ".join(repr(column) for column in columns[:_MOST_LISTED])
    more = f" and {len(columns) - _MOST_LISTED} more" if len(columns) > _MOST_LISTED else ""
    return f"the columns {shown}{more}"


def _meant(column: object, columns: Sequence[str | int]) -> str:
    """Return text about an unknown column, with similar names."""
    return f"{column!r}{near_names(str(column), [str(each) for each in columns])}"


def _csv_rows(path: str | Path) -> list[tuple[int, dict[str, str]]]:
    """Return the rows of a file with their line numbers, cells stripped."""
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file)
            header = [cell.strip() for cell in next(reader, [])]
            rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if row]
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} must be a CSV file in UTF-8: {error}") from None
    if sorted(header) not in (sorted(_HEADER), sorted(_HEADER[:2])):
        found = ",".join(header) or ("an empty line" if rows else "an empty file")
        raise DataError(f"{path} must have the header {','.join(_HEADER)}, got {found}")
    for line, row in rows:
        if len(row) != len(header):
            raise DataError(f"{path}, line {line}: must have {len(header)} cells, got {len(row)}")
    return [(line, dict(zip(header, row, strict=True))) for line, row in rows]
