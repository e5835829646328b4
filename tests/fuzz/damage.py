"""Ways to damage a file: bytes, and whatever stands in JSON."""

import copy
import json
import zlib
from base64 import b64decode
from typing import Any

import numpy as np

from bayescascade.model.packing import narrow, pack
from tests.edited_files import at, places

_DEEP = 20_000
_LONG = 5_000

_JUNK = (
    "NaN", "Infinity", "-Infinity", "1e400", "-1e400", "1e308", "-1", "0", "1", "1.5", "-0.0",
    "5e-324", "2147483648", "9223372036854775807", "9223372036854775808", "1" + "0" * 40,
    "1" + "0" * 5000, '""', '"x"', '"\\u0000"', '"\\ud800"', '"' + "y" * _LONG + '"', "null",
    "true", "false",
    "[]", "{}", "[[]]", '{"a": 1}', "[0, 1, 2]", "[1e308, 1e308]", "[null]",
    "[" * _DEEP + "]" * _DEEP, "[0" + ", 0" * _LONG + "]", "[" * 500 + "]" * 500,
)  # fmt: skip
"""What a value may be replaced by, as a file has it."""

_MARK = "\0here\0"


def damaged_bytes(rng: np.random.Generator, content: bytes) -> bytes:
    """Return a file cut short, or with bytes flipped, doubled, taken out or put in."""
    found = bytearray(content)
    kind = rng.integers(6)
    if kind == 0:
        return bytes(found[: rng.integers(len(found) + 1)])
    if kind == 1:
        return bytes(rng.integers(0, 256, int(rng.integers(200)), np.uint8))
    for _ in range(int(rng.integers(1, 6))):
        place = int(rng.integers(max(1, len(found))))
        length = int(rng.integers(1, 40))
        if kind == 2 and found:
            found[place] = int(rng.integers(256))
        elif kind == 3 and found:
            found[place] ^= 1 << int(rng.integers(8))
        elif kind == 4:
            del found[place : place + length]
        else:
            found[place:place] = found[place : place + length]
    return bytes(found)


def damaged_json(rng: np.random.Generator, record: Any) -> bytes:
    """Return a record as a file has it, up to three of its values damaged."""
    record = copy.deepcopy(record)
    junk = []
    for _ in range(int(rng.integers(1, 4))):
        everything = list(places(record))
        if not everything:
            break
        # shallow values are few, and matter as much as those of a thousand draws
        depth = int(rng.choice(sorted({len(place) for place in everything})))
        some = [place for place in everything if len(place) == depth]
        place = some[rng.integers(len(some))]
        holder, key = at(record, place[:-1]), place[-1]
        kind = rng.integers(8)
        if kind == 0:
            del holder[key]
        elif kind == 1 and isinstance(holder[key], list) and holder[key]:
            del holder[key][rng.integers(len(holder[key])) :]
        elif kind == 2 and isinstance(holder[key], list) and holder[key]:
            holder[key].append(copy.deepcopy(holder[key][rng.integers(len(holder[key]))]))
        elif kind == 3:
            other = some[rng.integers(len(some))]
            holder[key] = copy.deepcopy(at(record, other))
        elif kind == 4 and type(holder[key]) in (int, float):
            holder[key] = _near(rng, holder[key])
        else:
            junk.append(_JUNK[rng.integers(len(_JUNK))])
            holder[key] = _MARK
    text = json.dumps(record)
    for one in junk:
        text = text.replace(json.dumps(_MARK), one, 1)
    if rng.random() < 0.05:  # a key twice
        text = text.replace(', "', ', "version": 1, "', 1)
    return text.encode("utf-8", "surrogatepass")


def damaged_arrays(rng: np.random.Generator, record: Any) -> bytes:
    """Return a record as a file has it, numbers of its packed draws changed where it has any."""
    record = copy.deepcopy(record)
    draws = record.get("draws")
    if not isinstance(draws, dict):
        return damaged_json(rng, record)
    name = str(rng.choice([key for key, own in draws.items() if isinstance(own, dict)]))
    data = zlib.decompress(b64decode(draws[name]["data"]))
    numbers = np.frombuffer(data, draws[name]["type"]).astype(np.float64)
    for _ in range(int(rng.integers(1, 4)) if numbers.size else 0):
        at, other = rng.integers(numbers.size, size=2)
        choices = (numbers[other], numbers[at] + 1, abs(numbers[at] - 1), 255, 2.0**53, 0.5)
        numbers[at] = choices[rng.integers(len(choices))]
    if rng.random() < 0.2:
        numbers = np.delete(numbers, rng.integers(numbers.size)) if numbers.size else np.ones(1)
    draws[name] = pack(narrow(numbers))
    return json.dumps(record).encode()


def _near(rng: np.random.Generator, value: float) -> float:
    changes = [value + 1, value - 1, -value, value * 1000, value + 1e-9, 0 * value, value * 1e30]
    changed = changes[rng.integers(len(changes))]
    return int(changed) if isinstance(value, int) and rng.random() < 0.8 else changed
