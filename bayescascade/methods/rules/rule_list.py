"""The state of the rule lists' posteriors: which candidates, in which order."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["RuleList"]


@dataclass(frozen=True, slots=True)
class RuleList:
    """An ordered choice of candidates, ended by an `else` that is not listed.

    Parameters
    ----------
    rules : tuple of int
        Indices into the posterior's `Antecedents`, the rule tried first at the front; no repeats.
    """

    rules: tuple[int, ...] = ()

    @property
    def n_rules(self) -> int:
        """Number of rules, the `else` not counted."""
        return len(self.rules)

    def problem(self, n_candidates: int) -> str | None:
        """Return what is wrong with the list, None if nothing."""
        for rule in self.rules:
            if type(rule) is not int or not 0 <= rule < n_candidates:
                return f"a rule must be an integer from 0 to {n_candidates - 1}, got {rule!r}"
        if len(set(self.rules)) != len(self.rules):
            return f"rules must be different, got {self.rules}"
        return None

    def to_dict(self) -> dict[str, list[int]]:
        """Return the list as plain JSON types."""
        return {"rules": list(self.rules)}

    @classmethod
    def from_dict(cls, record: Any) -> "RuleList":
        """Return the list that `to_dict` told; raises KeyError or TypeError if it is none."""
        rules: Sequence[Any] = record["rules"]
        return cls(tuple(rules))

    def inserted(self, position: int, rule: int) -> "RuleList":
        """Return the list with a rule more, at a position from 0 to `n_rules`."""
        return RuleList((*self.rules[:position], rule, *self.rules[position:]))
