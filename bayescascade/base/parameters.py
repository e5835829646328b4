"""Parameters declared once: default, allowed values, and help in one line.

A family lists its parameters as attributes of a class of `Parameters`, in a module that imports
nothing heavy. Estimators get their defaults and checks from there, and commands their options.
"""

from collections.abc import Mapping
from copy import copy
from typing import Any, ClassVar, Generic, TypeVar

T = TypeVar("T")

UNSET: Any = object()

_SIGNS = {"minimum": ">=", "above": ">", "maximum": "<=", "below": "<"}
_TYPES = {"integer": "int", "number": "float", "flag": "bool"}


class Parameter(Generic[T]):
    """One parameter.

    about: what it is, without a full stop, for the command's help; words: its allowed texts, beside
    numbers if it is a number; none: what None means, such as "all", None where it is not allowed;
    in_commands: the default of commands, if that is another; option: its name in commands, if not
    its own without "n_"; metavar: what stands for its value in the help; more: what else the
    docstring says, and typed: the type that it gives; limits of a number: `minimum` and `maximum`,
    of a real one also `above` and `below`.
    """

    kind: ClassVar[str] = "text"

    name = ""

    def __init__(
        self,
        default: T,
        about: str,
        *,
        words: tuple[str, ...] = (),
        none: str | None = None,
        in_commands: T = UNSET,
        option: str = "",
        metavar: str | None = None,
        more: str = "",
        typed: str = "",
        **limits: float,
    ) -> None:
        self.default = default
        self.about = about
        self.words = words
        self.none = none
        self.in_commands = default if in_commands is UNSET else in_commands
        self.differs_in_commands = in_commands is not UNSET
        self.metavar = metavar
        self.more = more
        self._typed = typed
        self.limits: dict[str, Any] = limits
        self._option = option

    def with_default(self, default: Any) -> Any:
        """Return a copy of the parameter with another default."""
        other = copy(self)
        other.default, other.in_commands = default, default
        return other

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @property
    def option(self) -> str:
        """Name of the option, such as "--max-size"."""
        return "--" + (self._option or self.name.removeprefix("n_").replace("_", "-"))

    @property
    def type_text(self) -> str:
        """Type and range in the style of numpydoc, such as 'int >= 1 or None'."""
        if self._typed:
            return self._typed
        words = [f'"{word}"' for word in self.words]
        if self.kind == "text":
            if not words:
                return ""
            allowed = [f"{{{', '.join(words)}}}"]
        else:
            bounds = " and ".join(f"{_SIGNS[k]} {bound:g}" for k, bound in self.limits.items())
            allowed = [f"{_TYPES[self.kind]} {bounds}".rstrip(), *words]
        return " or ".join([*allowed, *["None"] * (self.none is not None)])

    def check(self, value: Any, name: str | None = None) -> Any:
        """Return a value in plain types; ParameterError names `name` or the parameter."""
        from bayescascade.base.errors import ParameterError

        is_word = isinstance(value, str) and value in self.words
        if is_word or (value is None and self.none is not None):
            return value
        name = self.name if name is None else name
        if isinstance(value, str) and self.words and self.kind != "text":
            is_optional = self.none is not None
            allowed = [self._rule, *(f'"{word}"' for word in self.words), *["None"] * is_optional]
            *others, last = allowed
            raise ParameterError(f"{name} must be {', '.join(others)} or {last}, got {value!r}")
        return self._checked(name, value)

    @property
    def _rule(self) -> str:
        """What a number may be, in words."""
        bounds = " and ".join(f"{_SIGNS[k]} {bound:g}" for k, bound in self.limits.items())
        return f"{'an' if self.kind == 'integer' else 'a'} {self.kind} {bounds}".rstrip()

    def _checked(self, name: str, value: Any) -> Any:
        from bayescascade.base.validation import check_choice

        return check_choice(name, value, self.words)

    def words_of(self, value: Any) -> str:
        """Return a value in the words of commands; "" if there are none."""
        if value is None or value is False:
            return self.none or ""
        return value if isinstance(value, str) else f"{value:g}"


class Choice(Parameter[T]):
    """One of some words."""


class Integer(Parameter[T]):
    """An integer within limits, or one of some words."""

    kind = "integer"

    def _checked(self, name: str, value: Any) -> int:
        from bayescascade.base.validation import check_integer

        return check_integer(name, value, **self.limits)


class Real(Parameter[T]):
    """A finite number within limits, or one of some words."""

    kind = "number"

    def _checked(self, name: str, value: Any) -> float:
        from bayescascade.base.validation import check_real

        return check_real(name, value, **self.limits)


class LooseInteger(Integer[T]):
    """An integer in commands; other values are checked where they are used."""

    def check(self, value: Any, name: str | None = None) -> Any:
        """Return a value; if `name` is given, by a command, it must be an integer."""
        return value if name is None else super().check(value, name)


class Jobs(Parameter[T]):
    """Number of parallel jobs, in the convention of joblib."""

    kind = "integer"

    def _checked(self, name: str, value: Any) -> int | None:
        from bayescascade.base.validation import check_jobs

        del name
        return check_jobs(value)


class Flag(Parameter[T]):
    """True or False."""

    kind = "flag"

    def _checked(self, name: str, value: Any) -> bool:
        from bayescascade.base.validation import check_flag

        return check_flag(name, value)


class Other(Parameter[T]):
    """A value that is checked where it is used, such as a path; subclasses have options."""

    def _checked(self, name: str, value: Any) -> Any:
        del name
        return value


class Label(Other[T]):
    """One of the labels of the rows; in commands, its text."""

    @property
    def type_text(self) -> str:
        """The type in docstrings."""
        return "label or None"


class Interval(Other[T]):
    """Two numbers, low and high."""


class TwoLevels(Other[T]):
    """Two texts, two numbers or two truth values."""


class Parameters:
    """The parameters of an estimator, or of several; subclasses add theirs."""

    @classmethod
    def declared(cls) -> Mapping[str, Parameter[Any]]:
        """Return the parameters by name, first those of the class itself."""
        found: dict[str, Parameter[Any]] = {}
        for each in cls.__mro__:
            for name, value in vars(each).items():
                if isinstance(value, Parameter):
                    found.setdefault(name, value)
        return found

    @classmethod
    def check(cls, owner: object) -> None:
        """Raise ParameterError if an attribute of an estimator is out of its range."""
        cls.check_values(**{name: getattr(owner, name) for name in cls.declared()})

    @classmethod
    def check_values(cls, **given: Any) -> None:
        """Raise ParameterError if a value is out of its range."""
        declared = cls.declared()
        for name, value in given.items():
            declared[name].check(value)
