"""Saved models that somebody edited: what the tests of every family forge, and how."""

import copy
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import hypothesis.strategies as st

import bayescascade
from bayescascade.base.errors import ModelFileError
from bayescascade.model.readable_model import ReadableModel

JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 3),
    st.sampled_from([2**31, 2**63, 2**64, 10**30, 10**400, -(2**63)]),
    st.floats(allow_nan=False),
    st.text(max_size=3),
    st.lists(st.integers(-1, 3), max_size=4),
    st.lists(st.lists(st.integers(-1, 4), min_size=3, max_size=3), max_size=2),
    st.dictionaries(st.text(max_size=2), st.integers(0, 2), max_size=2),
)
"""What a place in a file may be replaced by."""

Place: TypeAlias = tuple[str | int, ...]
"""The keys and positions that lead to a value."""


def write(tmp_path: Path, record: object) -> Path:
    """Write a record, or text as it is, as forged.json; return the path."""
    path = tmp_path / "forged.json"
    path.write_text(record if isinstance(record, str) else json.dumps(record))
    return path


def at(record: Any, place: Place) -> Any:
    """Return what stands at a place in a record."""
    for key in place:
        record = record[key]
    return record


def places(record: Any, place: Place = ()) -> Iterator[Place]:
    """Yield the place of every value in a record."""
    items = record.items() if isinstance(record, dict) else enumerate(record)
    for key, value in items:
        yield (*place, key)
        if isinstance(value, dict | list):
            yield from places(value, (*place, key))


def forged(record: Any, place: Place, value: object) -> str:
    """Return a record, one value replaced, as a file has it."""
    record = copy.deepcopy(record)
    at(record, place[:-1])[place[-1]] = value
    return _text(record)


def edited_at_random(record: Any, data: st.DataObject) -> str:
    """Return a record with up to three places replaced or gone, as a file has it."""
    record = copy.deepcopy(record)
    if isinstance(record["draws"], list):
        record["draws"] = record["draws"][:3]
    all_places = list(places(record))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.sampled_from(all_places))
        try:
            holder = at(record, place[:-1])
            if data.draw(st.integers(0, 4)) == 0:
                del holder[place[-1]]
            else:
                holder[place[-1]] = data.draw(JUNK)
        except (KeyError, IndexError, TypeError):  # an earlier edit removed the place
            continue
    return _text(record)


def loaded_or_refused(tmp_path: Path, text: str) -> ReadableModel | None:
    """Return the model in a file, None if it is refused in our words; any other error is raised."""
    with suppress(ModelFileError):
        return bayescascade.load(write(tmp_path, text))
    return None


def _text(record: object) -> str:
    return json.dumps(record).replace("-Infinity", "-1e999").replace("Infinity", "1e999")
