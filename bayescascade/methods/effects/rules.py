"""Effects in words: a rule list or short tree for h > 0, associations, and measured effects.

A part of the list predicts h > 0 if its mean of h is positive. In addition to the thesis, effects
in each rule are measured on outcomes of other rows.

For the doubly robust outcomes g of `adjustment`, the effect in a group is the mean of g over its m
rows, with the interval mean +- q s / sqrt(m), s their standard deviation and q a quantile of
Student's t with m - 1 degrees of freedom. For K groups, intervals of level c^(1/K) each hold
simultaneously with probability at least c for any overlap of the groups, if the means are normal
(Sidak 1967, theorem 1).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from scipy.stats import t as student
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.arrays import Codes, Flags, Floats, Integers
from bayescascade.base.errors import DataError
from bayescascade.base.saved_arrays import read_array
from bayescascade.base.validation import check_integer, check_probability, check_real
from bayescascade.data.given import GivenRows
from bayescascade.data.schema import Schema
from bayescascade.data.unknown import UnknownCells
from bayescascade.methods.effects.lists import (
    Association,
    best_tree,
    find_associations,
    most_probable_list,
    rows_with,
    soft_labels,
)
from bayescascade.methods.effects.parameters import EffectRulesParameters
from bayescascade.methods.effects.rules_page import rules_page
from bayescascade.methods.rules.cells import encode_for_labels
from bayescascade.methods.rules.label_list import LabelList
from bayescascade.methods.rules.rule_list import read_rules
from bayescascade.model.readable_model import ReadableModel
from bayescascade.model.reporting import OF_ROWS
from bayescascade.model.roles import Predicted
from bayescascade.model.search import Seed, seed_sequence
from bayescascade.report.numbers import share_text
from bayescascade.report.page import Heading, Page, count_of

LEAST_ROWS = 10
"""Minimum number of rows of a group for an interval."""

_HELD_OUT = 5  # one row in five is held out if no held-out rows are given
_MOST_RULES = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredEffects:
    """Effects in groups, (n_groups,) each; NaN if a group has too few rows."""

    n_rows: Integers
    effects: Floats
    errors: Floats  # standard errors

    @classmethod
    def of(cls, outcomes: Floats, groups: Flags) -> Self:
        """Measure effects by doubly robust outcomes (n,) in groups (n_groups, n)."""
        n_rows = groups.sum(axis=1)
        effects, errors = np.full((2, len(groups)), np.nan)
        for k, chosen in enumerate(groups):
            if n_rows[k] >= LEAST_ROWS:
                effects[k] = outcomes[chosen].mean()
                errors[k] = outcomes[chosen].std(ddof=1) / np.sqrt(n_rows[k])
        return cls(n_rows.astype(np.int64), effects, errors)

    def intervals(self, level: float = 0.95, *, together: bool = False) -> Floats:
        """Return intervals (n_groups, 2), for each group separately, or for all `together`."""
        n_groups = int(np.isfinite(self.errors).sum())
        each = level ** (1.0 / max(n_groups, 1)) if together else level
        reach = student.ppf((1.0 + each) / 2.0, np.maximum(self.n_rows - 1, 1)) * self.errors
        return np.stack([self.effects - reach, self.effects + reach], axis=1)

    @property
    def is_clear(self) -> Flags:
        """Whether 0 is outside of the simultaneous 95 % interval."""
        low, high = self.intervals(together=True).T
        clear: Flags = (low > 0.0) | (high < 0.0)
        return clear

    def to_record(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {
            "n_rows": self.n_rows.tolist(),
            "effects": _plain(self.effects),
            "errors": _plain(self.errors),
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any], n_groups: int) -> Self:
        """Rebuild one from `to_record`; ValueError if the record is malformed."""
        n_rows = read_array(record, "n_rows", (n_groups,), np.int64, least=0)
        effects, errors = (np.array(record[key], np.float64) for key in ("effects", "errors"))
        is_known = np.isfinite(effects)
        if not (
            effects.shape == errors.shape == (n_groups,)
            and (is_known == np.isfinite(errors)).all()
            and (errors[is_known] >= 0.0).all()
        ):
            raise ValueError("measured effects must be numbers, one a rule")
        return cls(n_rows, effects, errors)


def _plain(numbers: Floats) -> list[float | None]:
    return [None if np.isnan(one) else one for one in numbers.tolist()]


@dataclass(eq=False, repr=False, kw_only=True)
class EffectRules(ReadableModel):
    """Rules that describe where a function h of rows is positive, and the effect in each rule.

    `EffectModel.explain` returns it. Use `fit` to explain the h of other models.

    Parameters
    ----------
    kind : {"list", "tree"}
        "list": the most probable rule list, by branch and bound, with a proof or a bound on how
        much more probable another list may be. "tree": the tree of depth 2 that explains most of h,
        printed as a list.
    max_size, min_support, n_bins, n_associations, memory_limit, random_state

    Attributes
    ----------
    rules_ : LabelList
        The rules. Their classes are h <= 0 and h > 0, with counts of the training rows.
    means_ : (n_rules + 1,) float64
        Mean of h in each part. `predict` returns whether it is positive.
    gap_ : float or None
        No list is more probable by more than this, nats. 0 means that the list is proved to be the
        best. None for a tree.
    associations_ : tuple of Association
        Conditions with support, confidence and lift, first for h > 0 and then for h <= 0.
    fidelity_ : float
        Share of held-out rows where `predict` agrees with h > 0.
    effects_ : MeasuredEffects or None
        Effects in each part of the list, and in each association, on held-out rows.

    Examples
    --------
    >>> import numpy as np
    >>> from bayescascade import EffectRules
    >>> X = np.random.default_rng(0).uniform(-1, 1, (400, 3))
    >>> rules = EffectRules(random_state=0).fit(X, np.where(X[:, 1] > 0, 0.2, -0.1))
    >>> rules.rules_.n_rules, rules.fidelity_ > 0.9
    (1, True)
    """

    declares = EffectRulesParameters

    title: ClassVar[str] = "rules of effects"
    purpose: ClassVar[str] = "For which rows a treatment is estimated to work, in words."
    model_name: ClassVar[str] = "EffectRules"
    takes_texts: ClassVar[bool] = True

    kind: str = EffectRulesParameters.kind.default
    max_size: int = EffectRulesParameters.max_size.default
    min_support: float = EffectRulesParameters.min_support.default
    n_bins: int = EffectRulesParameters.n_bins.default
    n_associations: int = EffectRulesParameters.n_associations.default
    memory_limit: float = EffectRulesParameters.memory_limit.default
    random_state: Seed = EffectRulesParameters.random_state.default

    gap_: float | None = field(init=False)
    effects_: MeasuredEffects | None = field(init=False)

    # -- fitting -----------------------------------------------------------------------------------

    def fit(self, X: Any, h: Any, held_out: tuple[Any, ...] | None = None) -> Self:
        """Learn rules that describe where h > 0.

        Parameters
        ----------
        X : DataFrame or other table, paths, mapping of columns, array or list of rows
        h : (n_rows,) array of float
            Value of h for each row, such as the estimated effect.
        held_out : (X, h) or (X, h, outcomes), optional
            Held-out rows, to measure the rules. Outcomes (n_rows,) must have the effect as their
            mean, such as doubly robust outcomes, and must not depend on h. By default a fifth of
            the rows is held out, and no effects are measured.

        Raises
        ------
        ParameterError
            If a parameter is out of its range, or no condition has the minimum support.
        DataError
            If rows or h cannot be used.
        """
        self.declares.check(self)
        frame = GivenRows.of(X).frame()
        h = _numbers("h", h, len(frame))
        rng = np.random.default_rng(seed_sequence(self.random_state))
        outcomes = None
        if held_out is None:
            is_held_out = rng.permutation(len(frame)) % _HELD_OUT == 0
            others, h_others = frame[is_held_out], h[is_held_out]
            frame, h = frame[~is_held_out], h[~is_held_out]
        else:
            others = GivenRows.of(held_out[0]).frame(list(frame.columns), type(self).__name__)
            h_others = _numbers("h of held-out rows", held_out[1], len(others))
            if len(held_out) > 2:
                outcomes = _numbers("outcomes of held-out rows", held_out[2], len(others))
        self._learn(frame, h, rng)
        self._measure(others, h_others, outcomes)
        return self

    def _learn(self, frame: pd.DataFrame, h: Floats, rng: np.random.Generator) -> None:
        labeled = soft_labels(frame, h, self.n_bins, type(self).__name__)
        columns = labeled.table.schema.columns
        schema = Schema(tuple(one for one in columns if one.name != labeled.target))
        codes, is_better = self._coded(schema, frame), h > 0.0
        how = self.max_size, self.min_support, self.memory_limit
        if self.kind == "tree":
            least = max(1.0, self.min_support * len(h))
            rules, self.gap_ = best_tree(schema, codes, h, least), None
        else:
            seed = int(rng.integers(2**31))
            rules, self.gap_ = most_probable_list(labeled, *how, seed)
        counts = np.zeros((len(rules) + 1, 2))
        self.rules_ = LabelList(schema, np.array([False, True]), rules, counts, 1.0)
        parts = self.rules_.part_of_codes(codes)
        np.add.at(counts, (parts, is_better.astype(int)), 1.0)
        self.means_ = np.bincount(parts, h, len(counts)) / np.maximum(counts.sum(axis=1), 1.0)
        self._set_features(schema)
        self.associations_ = find_associations(schema, codes, is_better, self.n_associations, *how)

    def _measure(self, frame: pd.DataFrame, h: Floats, outcomes: Floats | None) -> None:
        codes = self._coded(self.schema_, frame)
        parts = self.rules_.part_of_codes(codes)
        self.fidelity_ = float(((self.means_[parts] > 0.0) == (h > 0.0)).mean())
        self.n_held_out_ = len(frame)
        self.effects_ = None
        if outcomes is not None:
            self.effects_ = MeasuredEffects.of(outcomes, self._groups(codes))

    def _groups(self, codes: Codes) -> Flags:
        """Return the rows in each part, and then in each association, (n_groups, n)."""
        parts = self.rules_.part_of_codes(codes)
        of_parts = parts == np.arange(self.rules_.n_rules + 1)[:, np.newaxis]
        return np.array(
            [*of_parts, *(rows_with(codes, one.conditions) for one in self.associations_)]
        )

    @staticmethod
    def _coded(
        schema: Schema, frame: pd.DataFrame, first_row: int = 1, whole: UnknownCells | None = None
    ) -> Codes:
        return encode_for_labels(
            schema, frame, missing="level", unknown="ignore", first_row=first_row, whole=whole
        )

    # -- rows --------------------------------------------------------------------------------------

    def predict(self, X: Any) -> Flags:
        """Return whether the rules predict h > 0, (n_rows,); unknown levels meet no condition."""
        check_is_fitted(self)
        frame = GivenRows.of(X, self.schema_.columns).frame(self.schema_.names, type(self).__name__)
        said: Flags = (self.means_ > 0.0)[
            self.rules_.part_of_codes(self._coded(self.schema_, frame))
        ]
        return said

    @property
    def feature_texts(self) -> list[str]:
        """Names of the columns."""
        return list(self.schema_.names)

    def predict_block(
        self,
        cells: pd.DataFrame,
        first_row: int,
        *,
        intervals: bool = False,
        explain: bool = False,
        unknown: UnknownCells | None = None,
    ) -> Predicted:
        """Return the mean of h in each row's part; see `bayescascade.model.roles.Predictor`."""
        del intervals
        parts = self.rules_.part_of_codes(self._coded(self.schema_, cells, first_row, unknown))
        words = [self.rules_.part_words(part) for part in range(self.rules_.n_rules + 1)]
        told: dict[str, Sequence[object]] = {}
        if explain:
            told["rule"] = [words[part] for part in parts.tolist()]
        return Predicted(told, values=self.means_[parts])

    # -- what was learned --------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "fidelity_")

    def _facts(self) -> list[str]:
        share = self.rules_.counts[:, 1].sum() / self.rules_.total
        n_rows = count_of(int(self.rules_.total), "row")
        return [n_rows, count_of(self.n_features_in_, "column"), f"h > 0 in {share_text(share)}"]

    def page(self) -> Page:
        """Return the rules, with shares of h > 0 and effects, and the associations."""
        return (Heading([self.title, *self._facts()]), *rules_page(self))

    def _how_to_read(self) -> list[tuple[str, str]]:
        return [
            (
                "",
                "Read the list from the top: the first line whose conditions a row "
                "satisfies counts.",
            ),
            ("h > 0", "the share of a line's rows for which the model estimates a gain"),
            ("effect", "the effect of the treatment in a line's rows, measured on held-out rows"),
        ]

    def _cannot_tell(self) -> list[str]:
        return [
            "Rules describe what a model's h is associated with. They do not say why the effect "
            "differs.",
            *OF_ROWS,
        ]

    # -- files -------------------------------------------------------------------------------------

    def _fields(self) -> dict[str, Any]:
        return {
            "schema": self.schema_.to_dict(),
            "list": self.rules_.to_record(),
            "means": self.means_.tolist(),
            "gap": self.gap_,
            "associations": [one.to_record() for one in self.associations_],
            "fidelity": self.fidelity_,
            "n_held_out": self.n_held_out_,
            "effects": None if self.effects_ is None else self.effects_.to_record(),
        }

    def _restore(self, record: Mapping[str, Any]) -> None:
        self.declares.check(self)
        schema = Schema.from_dict(record["schema"])
        most = max(self.max_size, 2)
        listed = np.array([0, *[_MOST_RULES] * most])
        rules, counts = read_rules(record["list"], schema, listed, 2)
        self.rules_ = LabelList(schema, np.array([False, True]), rules, counts, 1.0)
        self.means_ = _numbers("means", record["means"], len(counts))
        gap = record["gap"]
        self.gap_ = None if gap is None else check_real("gap", gap, minimum=0.0)
        self.associations_ = tuple(
            Association.from_record(one, schema, most) for one in record["associations"]
        )
        self.n_held_out_ = check_integer("n_held_out", record["n_held_out"], 1)
        n_groups = len(counts) + len(self.associations_)
        effects = record["effects"]
        self.effects_ = None if effects is None else MeasuredEffects.from_record(effects, n_groups)
        self._set_features(schema)
        self.fidelity_ = check_probability("fidelity", record["fidelity"])


def _numbers(name: str, given: Any, n_rows: int) -> Floats:
    """Return one finite number per row; DataError otherwise."""
    try:
        numbers = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{name} must be numbers, got {type(given).__name__}") from None
    if numbers.shape != (n_rows,):
        raise DataError(f"{name} must have a number per row, {n_rows}, got shape {numbers.shape}")
    if not np.isfinite(numbers).all():
        row = int(np.argmin(np.isfinite(numbers)))
        raise DataError(f"{name} must be finite, got {numbers[row]} in row {row + 1}")
    return numbers
