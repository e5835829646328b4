"""Files of feature costs: CSV with the columns name, cost and group."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

from bayescascade.base.errors import DataError
from bayescascade.base.files import replaced_file
from bayescascade.base.validation import check_real

__all__ = ["read_costs", "write_costs"]

_HEADER = ["name", "cost", "group"]

Key = str | int


def read_costs(path: str | Path) -> tuple[dict[Key, float], dict[str, list[Key]]]:
    """Return the costs in a file, by name, and the members of groups; see `FeatureCosts.read_csv`.

    Raises
    ------
    DataError
        If the file cannot be read, lacks a column, or a row has no name, no number >= 0 as its
        cost or contradicts another row; names the line.
    """
    costs: dict[Key, float] = {}
    groups: dict[str, list[Key]] = {}
    for line, cells in _rows(path):
        where, name, group = f"{path}, line {line}", cells["name"], cells.get("group", "")
        if not name:
            raise DataError(f"{where}: name must not be empty")
        if not cells["cost"] and not group:
            raise DataError(f"{where}: {name!r} must have a cost or a group")
        if cells["cost"]:
            cost = _cost(where, cells["cost"])
            if costs.setdefault(name, cost) != cost:
                raise DataError(f"{where}: {name!r} must have one cost, got also {cost:g}")
        if group:
            if name in groups.setdefault(group, []):
                raise DataError(f"{where}: {name!r} must be in {group!r} once, got it again")
            groups[group].append(name)
    return costs, groups


def write_costs(
    path: str | Path, costs: Mapping[Key, float], groups: Mapping[str, Sequence[Key]]
) -> None:
    """Write costs and groups as `read_costs` reads them.

    Raises
    ------
    FileError
        If the file cannot be written.
    """
    rows = [(key, repr(cost), "") for key, cost in costs.items()]
    for group, members in groups.items():
        rows += [(member, "", group) for member in members]
    with replaced_file(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([_HEADER, *rows])


def _rows(path: str | Path) -> list[tuple[int, dict[str, str]]]:
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


def _cost(where: str, text: str) -> float:
    try:
        return check_real("cost", float(text), minimum=0.0)
    except ValueError:  # of float or, as a ParameterError, of its range
        raise DataError(f"{where}: cost must be a finite number >= 0, got {text!r}") from None
