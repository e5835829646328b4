"""Effects in words: a rule list or short tree for h > 0, associations, and measured effects.

A part of the list predicts h > 0 if its mean of h is positive. In addition to the thesis, effects
in each rule are measured on outcomes of other rows: see `measured`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.arrays import Codes, Flags, Floats
from bayescascade.base.errors import DataError
from bayescascade.base.store import Of, Saved, Within, restored, stored
from bayescascade.base.validation import check_weights
from bayescascade.data.cell_policy import UnknownCells
from bayescascade.data.given import GivenRows
from bayescascade.data.schema import Schema
from bayescascade.methods.effects.learned import group_names, rules_page, rules_sentences
from bayescascade.methods.effects.lists import (
    RuleAssociation,
    best_tree,
    find_associations,
    most_probable_list,
    rows_with,
    soft_labels,
)
from bayescascade.methods.effects.measured import MeasuredEffects
from bayescascade.methods.effects.parameters import EffectRulesParameters
from bayescascade.methods.effects.problem import check_propensity
from bayescascade.methods.lists.label_list import LabelList
from bayescascade.methods.lists.parts import encode_for_labels
from bayescascade.methods.lists.rule_list import check_rule, read_rules
from bayescascade.model.readable_model import ReadableModel
from bayescascade.model.roles import Predicted
from bayescascade.model.search import Seed, seed_sequence
from bayescascade.model.view import OF_ROWS, View
from bayescascade.report.numbers import share_text
from bayescascade.report.page import count_of

_HELD_OUT = 5  # one row in five is held out if no held-out rows are given
_MOST_RULES = np.iinfo(np.int64).max


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
        best. It is printed up to 3 nats, a factor of 20. None for a tree.
    associations_ : tuple of Association
        Conditions with support, confidence and lift, first for h > 0 and then for h <= 0.
    fidelity_ : float
        Share of held-out rows where `predict` agrees with h > 0.
    effects_ : MeasuredEffects or None
        Effects in each part of the list, and in each association, on held-out rows.
    average_effect_ : MeasuredEffects or None
        The effect in all held-out rows, as one group.

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

    rules_: LabelList = field(init=False)
    means_: Annotated[Floats, Of("parts"), Saved("means")] = field(init=False)
    gap_: Annotated[Annotated[float, Within(0)] | None, Saved("gap")] = field(init=False)
    associations_: Annotated[tuple[RuleAssociation, ...], Saved("associations")] = field(init=False)
    fidelity_: Annotated[float, Within(0, 1), Saved("fidelity")] = field(init=False)
    n_held_out_: Annotated[int, Within(1), Saved("n_held_out")] = field(init=False)
    effects_: MeasuredEffects | None = field(init=False)
    average_effect_: MeasuredEffects | None = field(init=False)

    # -- fitting -----------------------------------------------------------------------------------

    def fit(self, X: Any, h: Any, held_out: tuple[Any, ...] | None = None) -> Self:
        """Learn rules that describe where h > 0.

        Parameters
        ----------
        X : DataFrame or other table, paths, mapping of columns, array or list of rows
        h : (n_rows,) array of float
            Value of h for each row, such as the estimated effect.
        held_out : (X, h) or (X, h, y, treatment[, propensity[, sample_weight]]), optional
            Held-out rows, to measure the rules; h must not be learned from their outcomes. y
            (n_rows,) has outcomes, 0 and 1 or other numbers, and treatment (n_rows,) 1 for treated
            rows and 0 for others. propensity is the probability of treatment, a number or
            (n_rows,), by default the same for all rows. sample_weight (n_rows,) >= 0 has weights.
            By default a fifth of the rows is held out, and no effects are measured.

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
        arms: tuple[Any, ...] = ()
        if held_out is None:
            is_held_out = rng.permutation(len(frame)) % _HELD_OUT == 0
            others, h_others = frame[is_held_out], h[is_held_out]
            frame, h = frame[~is_held_out], h[~is_held_out]
        else:
            others = GivenRows.of(held_out[0]).frame(list(frame.columns), type(self).__name__)
            h_others = _numbers("h of held-out rows", held_out[1], len(others))
            arms = held_out[2:]
        if not len(frame):
            raise DataError("X must have at least one row besides those held out, got none")
        self._learn(frame, h, rng)
        self._measure(others, h_others, arms)
        return self

    def _learn(self, frame: pd.DataFrame, h: Floats, rng: np.random.Generator) -> None:
        labeled = soft_labels(frame, h, self.n_bins, type(self).__name__)
        columns = labeled.table.schema.columns
        schema = Schema(tuple(column for column in columns if column.name != labeled.target))
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

    def _measure(self, frame: pd.DataFrame, h: Floats, arms: tuple[Any, ...]) -> None:
        codes = self._coded(self.schema_, frame)
        parts = self.rules_.part_of_codes(codes)
        self.fidelity_ = float(((self.means_[parts] > 0.0) == (h > 0.0)).mean())
        self.n_held_out_ = len(frame)
        self.effects_ = self.average_effect_ = None
        if arms:
            measured, used = _weighed(*arms, n_rows=len(frame))
            groups = self._groups(codes)[:, used]
            self.effects_ = MeasuredEffects.of(*measured, groups)
            self.average_effect_ = MeasuredEffects.of(*measured, np.ones((1, used.sum()), np.bool_))

    def _groups(self, codes: Codes) -> Flags:
        """Return the rows in each part, and then in each association, (n_groups, n)."""
        parts = self.rules_.part_of_codes(codes)
        of_parts = parts == np.arange(self.rules_.n_rules + 1)[:, np.newaxis]
        return np.array(
            [
                *of_parts,
                *(rows_with(codes, association.conditions) for association in self.associations_),
            ]
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
        record: dict[str, Sequence[object]] = {}
        if explain:
            record["rule"] = [words[part] for part in parts.tolist()]
        return Predicted(record, values=self.means_[parts])

    # -- what was learned --------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "fidelity_")

    def view(self) -> View:
        """Return the rules, with shares of h > 0 and effects, and the associations."""
        view = super().view()
        share = self.rules_.counts[:, 1].sum() / self.rules_.total
        n_rows = count_of(int(self.rules_.total), "row")
        n_columns = count_of(self.n_features_in_, "column")
        facts = [n_rows, n_columns, f"h > 0 in {share_text(share)}"]
        terms = [
            (
                "",
                "Read the list from the top: the first line whose conditions a row "
                "satisfies counts.",
            ),
            ("h > 0", "the share of a line's rows for which the model estimates a gain"),
            (
                "effect",
                "the effect of the treatment in a line's rows: the difference of the means of both "
                "arms, measured on held-out rows",
            ),
            (
                "95 % interval",
                "contains the effect in the group in at least about 95 of 100 repetitions, also if "
                "few rows are treated or have an outcome; it is not for a single row",
            ),
            ("treated", "how many of a line's held-out rows are treated"),
        ]
        why = "Rules describe what a model's h is associated with. They do not say why the effect "
        return view._replace(
            heading=[self.title, *facts],
            opens=True,
            shown=rules_page(self),
            more=(),
            facts=facts,
            lead=rules_sentences(self),
            terms=terms,
            limits=[f"{why}differs.", *OF_ROWS],
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fitted rules as plain data at full precision, and what they say in words."""
        record: dict[str, Any] = {"sentences": rules_sentences(self)}
        if self.effects_ is not None and self.average_effect_ is not None:
            names = ["all rows", *group_names(self)]
            found = [*_listed(self.average_effect_), *_listed(self.effects_)]
            record["measured"] = [
                {"group": name, **association}
                for name, association in zip(names, found, strict=True)
            ]
        return {**self.to_record(), **record}

    # -- files -------------------------------------------------------------------------------------

    def _fields(self) -> dict[str, Any]:
        measured = {"effects": self.effects_, "average": self.average_effect_}
        return {
            "schema": self.schema_.to_dict(),
            "list": self.rules_.to_record(),
            **super()._fields(),
            **{key: None if values is None else stored(values) for key, values in measured.items()},
        }

    def _read_columns(self, record: Mapping[str, Any]) -> None:
        schema = Schema.from_dict(record["schema"])
        most = max(self.max_size, 2)
        listed = np.array([0, *[_MOST_RULES] * most])
        rules, counts = read_rules(record["list"], schema, listed, 2)
        self.rules_ = LabelList(schema, np.array([False, True]), rules, counts, 1.0)
        self._set_features(schema)

    def _restore(self, record: Mapping[str, Any]) -> None:
        self.declares.check(self)
        super()._restore(record)
        for association in self.associations_:
            check_rule(association.conditions, self.schema_, max(self.max_size, 2))
        n_groups = len(self.rules_.counts) + len(self.associations_)
        if (record["effects"] is None) != (record["average"] is None):
            raise ValueError("effects of groups and of all rows must be measured together")
        self.effects_, self.average_effect_ = (
            restored(MeasuredEffects | None, record[name], {"groups": n}, name)
            for name, n in (("effects", n_groups), ("average", 1))
        )

    def _sizes(self) -> dict[str, Any]:
        return {"parts": len(self.rules_.counts), "schema": self.schema_}


def _listed(measured: MeasuredEffects) -> list[dict[str, Any]]:
    """Return the effect of each group as plain data, with its interval or the reason for none."""
    found = []
    for k, reason in enumerate(measured.reasons):
        rows = dict(zip(("untreated", "treated"), measured.n_rows[k].tolist(), strict=True))
        if reason:
            found.append({**rows, "effect": None, "reason": reason})
            continue
        low, high = measured.intervals()[k].tolist()
        is_clear = bool(measured.is_clear[k])
        effect = float(measured.effects[k])
        found.append({**rows, "effect": effect, "low": low, "high": high, "is_clear": is_clear})
    return found


def _weighed(
    y: Any, treatment: Any, propensity: Any = None, sample_weight: Any = None, *, n_rows: int
) -> tuple[tuple[Floats, Flags, Floats], Flags]:
    """Return outcomes, arms and weights of rows with positive weight, and which rows these are."""
    outcomes = _numbers("y of held-out rows", y, n_rows)
    arms = _numbers("treatment of held-out rows", treatment, n_rows)
    if not np.isin(arms, (0.0, 1.0)).all():
        raise DataError("treatment of held-out rows must be 0 or 1, got other numbers")
    treated = arms == 1.0
    known = check_propensity(propensity, n_rows)
    weights = np.ones(n_rows)
    if sample_weight is not None:
        weights = check_weights("sample_weight of held-out rows", sample_weight, n_rows)
    used = weights > 0.0
    if known is not None:
        weights = weights / np.where(treated, known, 1.0 - known)
    return (outcomes[used], treated[used], weights[used]), used


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
