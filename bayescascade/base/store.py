"""Saved values: plain JSON from typed values and back, by the annotations of their fields.

A frozen dataclass or NamedTuple is a JSON object with a key for each field. The type of a field is
`Annotated` with a rule where its class does not say enough:

    Of("p", "M+1", least=0)   an array; sizes are numbers, names, or None for any; Of(...) has any
    Within(0, 1)              a number in a closed range
    Words("step", "relu")     one of these texts
    Packed("p", 3)            an array of floats, compressed; see `model.packing`
    As(write, read)           plain JSON by two functions, for what has its own form in files;
                              As(write, read, "p") reads with the size of this name
    INLINE                    its fields stand in the record of the owner
    SKIPPED                   not saved; it has a default
    GIVEN                     not saved; the reader knows it by its name

A name has one size in a whole record: it is given by the reader, or by the first array that has it.
Names that are new in an element of a list of any length are its own.
Members of a union of classes have different attributes `kind`, which is saved beside their fields.
A number that may be NaN or infinite is saved as null then, and its rule says which of both:
`Within(null=math.nan)`. `Saved(key)` gives a field another key; estimators save the attributes that
have one.

A NamedTuple that is `listed` is a list of its fields.

Other keys are refused, unless they are names of attributes, which follow from the fields.

Invariants that types cannot say are checked in `__post_init__`, which raises ValueError.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from inspect import get_annotations
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    NamedTuple,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
from numpy.typing import DTypeLike

from bayescascade.base.errors import ModelFileError, ParameterError
from bayescascade.base.saved_arrays import read_array
from bayescascade.base.texts import shortened
from bayescascade.base.validation import check_choice, check_integer, check_real

T = TypeVar("T")

INLINE: Final = object()
SKIPPED: Final = object()
GIVEN: Final = object()

_LISTED: set[type] = set()

Sizes = dict[str, Any]
"""Sizes by name, and the values of fields that are `GIVEN`."""


def listed(kind: type[T]) -> type[T]:
    """Save a NamedTuple as a list of its fields."""
    _LISTED.add(kind)
    return kind


class Of:
    """The shape, type and limits of an array; `below` names the size of what its places are in."""

    def __init__(
        self, *shape: Any, kind: DTypeLike = np.float64, least: float = -math.inf,
        most: float = math.inf, above: float | None = None, below: str | None = None,
    ) -> None:  # fmt: skip
        self.kind, self.least, self.most = kind, least if below is None else 0, most
        self._above = above
        self.below = None if below is None else _size_of(below)
        self._shape = None if shape == (...,) else [_size_of(length) for length in shape]

    def read(self, name: str, data: Any, sizes: Sizes, kind: Any) -> Any:
        """Return the array, and note the sizes that had none."""
        del kind  # a name of arrays, which has no dtype
        own = [None] * _depth(data) if self._shape is None else self._shape
        shape = tuple(None if n is None else n.within(sizes) for n in own)
        most = self.most
        if self.below is not None:
            most = sizes[self.below.name] + self.below.more - 1
        found = read_array({name: data}, name, shape, self.kind, least=self.least, most=most)
        if self._above is not None and not (found > self._above).all():
            raise ModelFileError(f"a saved model's {name} must be numbers > {self._above:g}")
        for n, length in zip(own, found.shape, strict=True):
            if n is not None and n.name:
                sizes.setdefault(n.name, length - n.more)
        return found


def _depth(data: Any) -> int:
    """Return the depth of nested lists, by their first elements."""
    is_nested = isinstance(data, list) and data and isinstance(data[0], list)
    return 1 + _depth(data[0]) if is_nested else 1


class _Size(NamedTuple):
    """A named size and what is added to it, as in "M+1"; a number has no name."""

    name: str
    more: int

    def within(self, sizes: Sizes) -> int | None:
        """Return the size, None if it is not known."""
        if not self.name:
            return self.more
        return int(sizes[self.name]) + self.more if self.name in sizes else None


def _size_of(length: str | int | None) -> _Size | None:
    if length is None or isinstance(length, int):
        return None if length is None else _Size("", length)
    name, _, more = length.partition("+")
    return _Size(name, int(more or 0))


class Within(NamedTuple):
    """The range of a number, and what null stands for: NaN or infinity."""

    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    null: float | None = None

    def read(self, name: str, data: Any, sizes: Sizes, kind: Any) -> Any:
        """Return the number."""
        del sizes
        if data is None and self.null is not None:
            return self.null
        if kind is int:
            return _checked(check_integer, name, data, self.least, self.most)
        limits = {"minimum": self.least, "maximum": self.most, "above": self.above}
        number = _checked(check_real, name, data, **limits, below=self.below)
        return number if kind is float else data  # in int | float, integers stay integers


MaybeNaN = Annotated[float, Within(null=math.nan)]
"""A finite number, or NaN, which is null in files."""


Share = Annotated[float, Within(0, 1)]


class Words(tuple[str, ...]):
    """Allowed texts."""

    def __new__(cls, *words: str) -> "Words":
        """Make a rule."""
        return super().__new__(cls, words)

    def read(self, name: str, data: Any, sizes: Sizes, kind: Any) -> Any:
        """Return the text."""
        del sizes, kind
        return _checked(check_choice, name, data, self)


class As(NamedTuple):
    """Functions that return plain JSON of a value, and the value of plain JSON, if it is valid."""

    write: Callable[[Any], Any]
    reads: Callable[..., Any]
    size: str = ""

    def read(self, name: str, data: Any, sizes: Sizes, kind: Any) -> Any:
        """Return the value."""
        del name, kind
        return self.reads(data, sizes[self.size]) if self.size else self.reads(data)


@dataclass(frozen=True)
class Saved:
    """The key in files of an estimator's attribute, or of a field that has another name."""

    key: str
    is_optional: bool = False  # whether it is left out if it has its default


def _checked(check: Callable[..., Any], name: str, *given: Any, **limits: Any) -> Any:
    try:
        return check(f"a saved model's {name}", *given, **limits)
    except ParameterError as error:
        raise ModelFileError(str(error)) from None


class _Field(NamedTuple):
    """A field: attribute and key, type, marks, and the default with which it is left out."""

    name: str
    key: str
    type: Any
    marks: tuple[Any, ...]
    default: Any


def stored(value: Any) -> Any:
    """Return plain JSON types."""
    kind: Any = type(value)
    if _has_fields(kind) and kind not in _LISTED:
        own = {"kind": value.kind} if isinstance(getattr(kind, "kind", None), str) else {}
        return {**own, **_stored_fields(value, _fields(kind))}
    if isinstance(value, np.ndarray | np.generic):
        plain = value.tolist()
        return stored(plain) if value.dtype.kind == "f" and not np.isfinite(value).all() else plain
    if isinstance(value, Mapping):
        return {str(k): stored(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [stored(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def restored(kind: Any, data: Any, sizes: Sizes, name: str = "") -> Any:
    """Return the value of a type whose `stored` is `data`, which may be damaged.

    Without a name, other keys of the data belong to somebody else, and are allowed.

    Raises ModelFileError, which names the key, the rule and the value.
    """
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        rule = kind.__metadata__[0]
        if hasattr(rule, "read"):
            return rule.read(name, data, sizes, args[0])
        return restored(args[0], data, sizes, name)
    if origin in (Union, UnionType):
        return _member(args, data, sizes, name)
    if origin in (list, tuple) and isinstance(data, list):
        if origin is list or args[-1] is ...:
            return origin(restored(args[0], each, dict(sizes), name) for each in data)
        if len(args) == len(data):
            pairs = zip(args, data, strict=True)
            return tuple(restored(part, each, sizes, name) for part, each in pairs)
    elif origin in (dict, Mapping) and isinstance(data, dict):
        return {k: restored(args[1], v, sizes, f"{name} {k!r}") for k, v in data.items()}
    elif kind is float:
        return _checked(check_real, name, data)
    elif kind in (bool, int, str) and type(data) is kind:
        return data
    elif kind in _LISTED and isinstance(data, list):
        if len(data) == len(kind._fields):
            return _made(kind, dict(zip(kind._fields, data, strict=True)), sizes)
    elif _has_fields(kind) and isinstance(data, dict):
        if name:
            _refuse_others(kind, data, name)
        return _made(kind, data, sizes)
    raise ModelFileError(f"a saved model's {name} must be {_word(kind)}, got {_text(data)}")


def _made(kind: Any, data: Mapping[str, Any], sizes: Sizes) -> Any:
    try:
        return kind(**restored_fields(_fields(kind), data, sizes))
    except ModelFileError:
        raise
    except (ValueError, OverflowError) as error:
        raise ModelFileError(str(error)) from None


def restored_fields(fields: list[_Field], data: Mapping[str, Any], sizes: Sizes) -> dict[str, Any]:
    """Return the values of the fields of a record, by name."""
    found = {}
    for field in sorted(fields, key=_has_places):
        if GIVEN in field.marks:
            found[field.name] = sizes[field.name]
        elif INLINE in field.marks:
            found[field.name] = restored(field.type, data, sizes)
        elif field.key in data:
            value = restored(field.type, data[field.key], sizes, field.key)
            if field.default is not MISSING and stored(value) == stored(field.default):
                raise ModelFileError(f"a saved model's {field.key} must be left out, or another")
            found[field.name] = value
        elif field.default is not MISSING:
            found[field.name] = field.default
        else:
            raise ModelFileError(f"a saved model must have the field {field.key!r}")
    return found


def _refuse_others(kind: Any, data: Mapping[str, Any], name: str) -> None:
    """Refuse keys that are neither those of fields nor of other attributes of the class."""
    fields = _fields(kind)
    others = {*data} - {field.key for field in fields}
    if not any(INLINE in field.marks for field in fields):
        for key in others:
            if not hasattr(kind, key):
                raise ModelFileError(f"a saved model's {name} must not have the field {key!r}")


def _has_places(field: _Field) -> bool:
    """Return whether an array is of places in others, which are read before."""
    return any(isinstance(mark, Of) and mark.below is not None for mark in field.marks)


def stored_attributes(owner: object) -> dict[str, Any]:
    """Return the attributes of an estimator whose annotations have a key in files."""
    kind: Any = type(owner)
    return _stored_fields(owner, saved_fields(kind))


def _stored_fields(value: Any, fields: list[_Field]) -> dict[str, Any]:
    record: dict[str, Any] = {}
    for field in fields:
        if GIVEN in field.marks:
            continue
        write = next((mark.write for mark in field.marks if hasattr(mark, "write")), stored)
        plain = write(getattr(value, field.name))
        if INLINE in field.marks:
            record |= plain
        elif field.default is MISSING or plain != stored(field.default):
            record[field.key] = plain
    return record


@cache
def saved_fields(owner: Any) -> list[_Field]:
    """Return the attributes of a class that are saved, those of its bases first."""
    found = {}
    for base in reversed(owner.__mro__):
        for name, hint in get_annotations(base).items():
            if any(isinstance(mark, Saved) for mark in getattr(hint, "__metadata__", ())):
                found[name] = _field(name, hint, getattr(owner, name, None))
    return list(found.values())


def _field(name: str, hint: Any, default: Any = None) -> _Field:
    marks = getattr(hint, "__metadata__", ())
    saved = next((mark for mark in marks if isinstance(mark, Saved)), Saved(name))
    rest = tuple(mark for mark in marks if not isinstance(mark, Saved))
    kind = get_args(hint)[0] if marks else hint
    kind = Annotated[kind, *rest] if rest else kind
    return _Field(name, saved.key, kind, rest, default if saved.is_optional else MISSING)


@cache
def _fields(kind: Any) -> list[_Field]:
    """Return the saved fields of a dataclass or NamedTuple."""
    names = [f.name for f in fields(kind) if f.init] if is_dataclass(kind) else kind._fields
    hints = get_type_hints(kind, include_extras=True)
    skipped = [n for n in names if SKIPPED in getattr(hints[n], "__metadata__", ())]
    return [_field(n, hints[n], _default(kind, n)) for n in names if n not in skipped]


def _default(kind: Any, name: str) -> Any:
    """Return the default of a field, None if it has none."""
    if not is_dataclass(kind):
        return kind._field_defaults.get(name)
    own = kind.__dataclass_fields__[name]
    made = own.default if own.default_factory is MISSING else own.default_factory()
    return None if made is MISSING else made


def _has_fields(kind: Any) -> bool:
    return isinstance(kind, type) and (is_dataclass(kind) or hasattr(kind, "_fields"))


def _member(types: tuple[Any, ...], data: Any, sizes: Sizes, name: str) -> Any:
    """Return the value of the member of a union that has the kind of the data."""
    if data is None and NoneType in types:
        return None
    found = [each for each in types if each is not NoneType]
    if len(found) > 1:
        kind = data.get("kind") if isinstance(data, dict) else MISSING
        kinds = {getattr(each, "kind", None): each for each in found}
        if isinstance(kind, str) and kind in kinds:
            found = [kinds[kind]]
        else:
            found = [each for each in found if each is type(data)]
    if found:
        return restored(found[0], data, sizes, name)
    words = " or ".join(map(_word, types))
    raise ModelFileError(f"a saved model's {name} must be {words}, got {_text(data)}")


_WORDS = {
    bool: "true or false", int: "an integer", str: "text", list: "a list", tuple: "a list",
    dict: "a mapping", Mapping: "a mapping", NoneType: "null",
}  # fmt: skip


def _word(kind: Any) -> str:
    """Return a type in words."""
    origin = get_origin(kind)
    if origin is tuple and ... not in (parts := get_args(kind)):
        return f"a list of {len(parts)}"
    own = getattr(kind, "kind", None)
    return _WORDS.get(origin or kind) or (f"a mapping of kind {own!r}" if own else "a mapping")


def _text(data: Any) -> str:
    return shortened(repr(data))
