"""Arrays in saved models: in the narrowest type, compressed, as text.

A file has ``{"type": "<u2", "size": 1200, "data": "eJzt..."}``: base64 of zlib of 1,200 numbers in
little-endian order. A reader sets the maximum total bytes. An array that announces more, or that
has another size than it announces, is refused before it is unpacked.
"""

import zlib
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.errors import ModelFileError
from bayescascade.base.store import Of, Sizes

MOST_BYTES = 1 << 28
"""Maximum bytes of all arrays of a model, unpacked."""

WHOLE = ("|u1", "<u2", "<u4")  # larger numbers are floats anyway
_TYPES = {"whole": (*WHOLE, "<u8"), "number": (*WHOLE, "<f8")}


def narrow(numbers: NDArray[Any]) -> NDArray[Any]:
    """Return numbers >= 0 in the narrowest type: float64 unless they are integers."""
    most = numbers.max(initial=0)
    for name in WHOLE:
        if most <= np.iinfo(name).max:
            found = numbers.astype(name)
            if numbers.dtype.kind in "ui" or np.array_equal(found, numbers):
                return found
    return numbers.astype("<u8" if numbers.dtype.kind in "ui" else "<f8")


def pack(numbers: NDArray[Any]) -> dict[str, Any]:
    """Return a one-dimensional array of `narrow` as plain JSON types."""
    data = np.ascontiguousarray(numbers.astype(numbers.dtype.newbyteorder("<"), copy=False))
    text = b64encode(zlib.compress(data.tobytes())).decode("ascii")
    return {"type": data.dtype.str, "size": int(data.size), "data": text}


def pack_singles(arrays: Sequence[NDArray[Any]]) -> dict[str, Any]:
    """Return arrays of numbers, rounded to float32, as plain JSON types."""
    numbers = np.concatenate([own.ravel() for own in arrays]).astype(np.float32)
    return pack(numbers.view(np.uint32))


class Unpacked:
    """Reader of arrays of `pack`, at most `most_bytes` in total; it trusts nothing in a record."""

    def __init__(self, record: Mapping[str, Any], most_bytes: int = MOST_BYTES) -> None:
        self._record, self._left = record, most_bytes

    def whole(self, name: str, size: int | None = None) -> NDArray[Any]:
        """Return an array of integers >= 0 of a size (None: any). Errors as in `_restore`."""
        return self._array(name, size, _TYPES["whole"])

    def numbers(self, name: str, size: int | None = None) -> NDArray[Any]:
        """Return an array of finite numbers >= 0; otherwise as `whole`."""
        found = self._array(name, size, _TYPES["number"])
        if found.dtype.kind == "f" and not (np.isfinite(found) & (found >= 0)).all():
            raise ModelFileError(f"a saved model's {name} must be finite and >= 0")
        return found

    def singles(self, name: str, shapes: Sequence[tuple[int, ...]]) -> list[NDArray[np.float32]]:
        """Return the float32 arrays of `pack_singles`, of these shapes; any bits are numbers."""
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
        numbers = self.whole(name, int(ends[-1])).astype(np.uint32).view(np.float32)
        parts = np.split(numbers, ends[:-1])
        return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]

    def _array(self, name: str, size: int | None, types: tuple[str, ...]) -> NDArray[Any]:
        kind, n, text = (self._record[name][key] for key in ("type", "size", "data"))
        if kind not in types or type(n) is not int or not isinstance(text, str):
            raise ModelFileError(f"a saved model's {name} must be packed numbers")
        if n < 0 or (size is not None and n != size):
            wanted = "0 or more" if size is None else size
            raise ModelFileError(f"a saved model's {name} must be {wanted} numbers, got {n}")
        n_bytes = n * np.dtype(kind).itemsize
        self._left -= n_bytes
        if self._left < 0:
            raise ModelFileError(f"a saved model's {name} must fit the memory of draws, got {n}")
        unzip = zlib.decompressobj()
        try:
            data = unzip.decompress(b64decode(text, validate=True), n_bytes + 1)
        except (zlib.error, Base64Error, ValueError):
            raise ModelFileError(f"a saved model's {name} must be packed numbers") from None
        if len(data) != n_bytes or not unzip.eof or unzip.unused_data:
            raise ModelFileError(f"a saved model's {name} must be as many numbers as its size says")
        found = np.frombuffer(data, kind)
        return found.astype(found.dtype.newbyteorder("="), copy=False)


class Packed(Of):
    """An array of float64, saved as its shape and its bits; the marks are those of `Of`."""

    def write(self, numbers: NDArray[np.float64]) -> dict[str, Any]:
        """Return plain JSON types."""
        bits = np.ascontiguousarray(numbers).reshape(-1).view(np.uint64)
        return {"shape": list(numbers.shape), **pack(bits)}

    def read(self, name: str, data: Any, sizes: Sizes, kind: Any) -> Any:
        """Return the array, whose shape and numbers are checked as those of lists."""
        bits = Unpacked({name: data}).whole(name)
        numbers = bits.view(np.float64).reshape(data["shape"])
        return super().read(name, numbers.tolist(), sizes, kind)
