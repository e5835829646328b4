"""What was learned of effects, in words: a function and its origin; rules and their page."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import ParameterError
from bayescascade.base.store import As, Share, Within, Words, restored, stored
from bayescascade.methods.effects.functions import Function
from bayescascade.methods.effects.losses import SURROGATES
from bayescascade.methods.effects.measured import EffectSlope, MeasuredEffects
from bayescascade.methods.effects.parameters import ADJUSTMENTS, COMBINATIONS, TARGETS
from bayescascade.methods.effects.problem import EXTREME, ArmsProblem, FunctionFit
from bayescascade.report.numbers import count_texts, share_text
from bayescascade.report.page import BLANK, Numbers, Page, Pieces, PrintedTable, count_of, warning

ANY = "any row"
"""The label of a list without rules."""
MOST_GAP = 3.0
"""The largest printed gap, nats: a list may be 20 times as probable. More says nothing."""


def rules_page(learned: Any) -> Page:
    """Return the rules of an `EffectRules`, with shares of h > 0 and effects, and associations."""
    n_parts = learned.rules_.n_rules + 1
    sides = ["h > 0" if mean > 0.0 else "h <= 0" for mean in learned.means_.tolist()]
    labels = [f"{label}: {side}" for label, side in zip(learned.rules_.labels, sides, strict=True)]
    rows = learned.rules_.counts.sum(axis=1)
    shares = (learned.rules_.counts[:, 1] / np.maximum(rows, 1.0)).tolist()
    columns = [
        Numbers("rows", count_texts(rows.tolist())),
        Numbers("h > 0", [share_text(share) for share in shares], bars=shares),
        *_treated_column(learned, n_parts),
        *_effect_columns(learned, slice(0, n_parts)),
    ]
    alike = [f"{sides[0]} in all groups"] if len(set(sides)) == 1 < n_parts else []
    agrees = f"agrees with h > 0 on {share_text(learned.fidelity_)}"
    blocks: list[Any] = [
        Pieces([_found_words(learned), *alike]),
        Pieces([f"{agrees} of {learned.n_held_out_:,} held-out rows"]),
        BLANK,
        PrintedTable(labels, columns, hanging=3, least_label=0, stacks=True),
    ]
    for side, words in ((True, "associated with h > 0"), (False, "associated with h <= 0")):
        places = [
            i
            for i, association in enumerate(learned.associations_)
            if association.is_positive == side
        ]
        if places:
            chosen = slice(n_parts + places[0], n_parts + places[-1] + 1)
            blocks += [BLANK, _association_table(learned, places, words, chosen)]
    return (*blocks, BLANK, Pieces(_key(learned), "dim"))


def _found_words(learned: Any) -> str:
    if learned.gap_ is None:
        return "tree of depth 2: no other explains more of h"
    rules = count_of(learned.rules_.n_rules, "rule")
    if learned.gap_ == 0.0:
        return f"list of {rules}: no list is more probable"
    if learned.gap_ > MOST_GAP:
        return f"list of {rules}: best found, not proved to be near the best"
    gap = f"{learned.gap_:.2f} nats"
    return f"list of {rules}: best found, no list is more probable by more than {gap}"


def _association_table(
    learned: Any, places: Sequence[int], words: str, chosen: slice
) -> PrintedTable:
    shown = [learned.associations_[place] for place in places]
    columns = [
        Numbers("support", [share_text(association.support) for association in shown]),
        Numbers("conf.", [share_text(association.confidence) for association in shown]),
        Numbers("lift", [f"{association.lift:.2f}" for association in shown]),
        *_effect_columns(learned, chosen),
    ]
    labels = [association.words for association in shown]
    return PrintedTable(labels, columns, words, hanging=3, least_label=0, stacks=True)


def group_names(learned: Any) -> list[str]:
    """Return the parts of the list, and then the associations, in words."""
    return [*learned.rules_.labels, *(association.words for association in learned.associations_)]


def rules_sentences(learned: Any) -> list[str]:
    """Return for whom the treatment works, as measured on held-out rows, for all reports."""
    measured, average = learned.effects_, learned.average_effect_
    if measured is None:
        return ["Effects were not measured: pass held-out rows with outcomes (held_out)."]
    rows, (reason,) = average.n_rows[0], average.reasons
    if reason:
        whole = f"has no interval: {reason}"
    else:
        whole = f"is {effect_words(average.effects[0], *average.intervals()[0])}"
    group_rows = f"{int(rows.sum()):,} held-out rows, {int(rows[1]):,} of them treated"
    return [f"The average effect in {group_rows}, {whole}.", *_clear_sentences(learned)]


def _clear_sentences(learned: Any) -> list[str]:
    """Return which groups have an effect, first of the rules; of associations if no rule has."""
    measured, names = learned.effects_, group_names(learned)
    if len(names) == 1:
        return []  # all rows, whose effect is the average
    n_lines = len(learned.rules_.labels) if learned.rules_.n_rules else 0
    clear = [k for k in np.flatnonzero(measured.is_clear).tolist() if names[k] != ANY]
    shown = [k for k in clear if k < n_lines] or clear
    ends = measured.intervals()
    found = [
        f"The treatment {'helps' if measured.effects[k] > 0.0 else 'harms'} "
        f"{_where(names[k], learned.rules_.labels)}: "
        f"{effect_words(measured.effects[k], *ends[k])}."
        for k in shown
    ]
    if not found and measured.is_measured.any():
        found = ["No group has an interval without 0 after correction for all of them."]
    n_few = int((~measured.is_measured[:n_lines]).sum())
    n_others = n_lines - n_few - sum(k < n_lines for k in clear)
    if n_others and clear:
        lines = count_of(n_others, "other line")
        found.append(f"In {lines} of the list, held-out rows do not show the sign of the effect.")
    if n_few:
        found.append(f"In {count_of(n_few, 'line')} of the list, an arm has too few held-out rows.")
    return found


def _where(name: str, labels: Sequence[str]) -> str:
    if name == "else" and len(labels) == 2:
        return f"unless {labels[0].removeprefix('if ')}"
    if name == "else":
        return "in rows to which no rule applies"
    if name.startswith("else if "):
        return f"in rows to which no earlier rule applies, if {name.removeprefix('else if ')}"
    return name if name.startswith("if ") else f"if {name}"


def effect_words(effect: float, low: float, high: float) -> str:
    """Return an effect, "+0.00" near 0, and its interval."""
    return f"{round(effect, 2) + 0.0:+.2f} (95 % interval {low:+.2f} to {high:+.2f})"


def _treated_column(learned: Any, n_parts: int) -> list[Numbers]:
    if learned.effects_ is None:
        return []
    rows = learned.effects_.n_rows[:n_parts]
    texts = [f"{treated:,} of {both:,}" for treated, both in zip(
        rows[:, 1].tolist(), rows.sum(axis=1).tolist(), strict=True
    )]  # fmt: skip
    return [Numbers("treated", texts)]


def _effect_columns(learned: Any, chosen: slice) -> list[Numbers]:
    if learned.effects_ is None:
        return []
    effects, ends = learned.effects_.effects[chosen], learned.effects_.intervals()[chosen]
    marks = np.where(learned.effects_.is_clear[chosen], "*", " ")
    reasons = learned.effects_.reasons[chosen]
    known = [not reason for reason in reasons]
    texts = [
        f"{effect:+.2f}" if is_known else ""
        for effect, is_known in zip(effects, known, strict=True)
    ]
    between = [
        f"{reason} " if reason else f"{low:+.2f} {high:+.2f}{mark}"
        for (low, high), mark, reason in zip(ends, marks, reasons, strict=True)
    ]
    return [Numbers("effect", texts), Numbers("95 % interval ", between)]


def _key(learned: Any) -> list[str]:
    sign = "h: estimated effect of the treatment"
    if learned.effects_ is None:
        return [sign, "no effects measured: pass held-out rows with outcomes (held_out)"]
    n_measured = int(learned.effects_.is_measured.sum())
    effect = "effect: mean outcome if treated minus if not, on held-out rows"
    key = [sign, effect, "treated: of the held-out rows"]
    if n_measured:
        key.append("intervals: 95 % for each alone, lower and upper end")
    if learned.effects_.is_clear.any():
        together = f" even after correction for all {n_measured} intervals"
        key.append(f"* excludes 0{together if n_measured > 1 else ''}")
    return key


GIVEN = "given weights"
"""Name of a target that is an array."""

_WORDS = {"doubly_robust": "doubly robust", "residuals": "residuals", "none": "no adjustment"}

HOW_TO_READ = [
    ("above 0", "rows for which the good outcome is more probable with the treatment"),
    ("average effect", "the change of the probability of the good outcome by the treatment"),
    ("slope", "1 if estimates are as large as measured effects, 0 if they say nothing of them"),
    ("effective", "the number of rows with equal weights that have the same information"),
    ("propensity", "the probability of being treated, given the columns"),
]
ASSUMED = (
    "It assumes that nothing outside its columns influences both the treatment and the outcome. "
    "The rows cannot show whether this is true.",
    "It has no interval for the effect on a single row, because none would hold. Rules measure "
    "the effect in groups of rows.",
)
NOT_MEASURED = "No rows were held out, so the effect in groups of rows was not measured."


def _function_record(function: Any) -> Any:
    """Return plain JSON types; ParameterError for a scikit-learn learner."""
    if not isinstance(function, Function):
        raise ParameterError(
            f'learner must be "kernel" or "forest" to be saved, got {function.words}'
        )
    return stored(function)


def _read_function(data: Any, n_columns: int) -> Any:
    return restored(Function, data, {"columns": n_columns}, "function")


Count = Annotated[int | float, Within(above=0)]


@dataclass(frozen=True, slots=True, eq=False)
class LearnedEffects:
    """A function h, how it was learned, and its quality."""

    function: Annotated[Any, As(_function_record, _read_function, "columns")]
    surrogate: Annotated[str, Words(*SURROGATES)]
    combine: Annotated[str, Words(*COMBINATIONS)]
    adjust: Annotated[str, Words(*ADJUSTMENTS)]
    target: Annotated[str, Words(GIVEN, *TARGETS)]
    learner: str
    n_rows: tuple[Count, Count]  # not treated, and treated
    sizes: tuple[Count, Count]  # effective numbers, given the weights
    is_known: bool  # whether the propensity is known
    overlap: tuple[Share, Share, Share] | None  # see `overlap_of`; None if it is not needed
    average: MeasuredEffects | None  # effect
    slope: EffectSlope | None  # None if it was not tested whether effects differ
    objective: float
    gap: Annotated[float, Within(0)] | None
    penalty: Annotated[float, Within(0)] | None
    length: Annotated[float, Within(0)] | None
    positive: Share  # share of h > 0
    is_treated_alone: bool  # whether corollary 1 holds

    def __post_init__(self) -> None:
        if self.learner != self.function.words:
            raise ValueError(f"learner must be {self.function.words!r}, got {self.learner!r}")

    @classmethod
    def of(
        cls,
        fitted: FunctionFit,
        given: ArmsProblem,
        adjust: str,
        target: Any,
        is_known: bool,
        overlap: tuple[float, float, float] | None,
    ) -> "LearnedEffects":
        """Return the learned effects of a function fitted to a problem."""
        problem, function = given.problem, fitted.function
        n_treated = int(problem.treatment.sum())
        alpha = float(getattr(fitted.exact, "alpha", 0.5))
        named = target if isinstance(target, str) else GIVEN
        return cls(
            function=function,
            surrogate=problem.surrogate,
            combine=problem.combine,
            adjust=adjust,
            target=named,
            learner=function.words,
            n_rows=(len(problem.labels) - n_treated, n_treated),
            sizes=(float(given.sizes[0]), float(given.sizes[1])),
            is_known=is_known,
            overlap=overlap,
            average=given.average,
            slope=fitted.slope,
            objective=fitted.objective,
            gap=getattr(fitted.exact, "gap", None),
            penalty=fitted.penalty,
            length=fitted.length,
            positive=float((function.values(problem.rows) > 0.0).mean()),
            is_treated_alone=(problem.combine, named) == ("max", "treated") and alpha > 1.0 - 1e-6,
        )

    # -- effects -----------------------------------------------------------------------------------

    @property
    def has_sizes(self) -> bool:
        """Whether h gives the sizes of effects, and not only their signs."""
        return self.combine == "mean" and SURROGATES[self.surrogate].effect is not None

    def effects(self, h: Floats) -> Floats:
        """Return the effects given by h, (n,); ParameterError if it gives only signs."""
        scaled = SURROGATES[self.surrogate].effect
        if scaled is None or not self.has_sizes:
            raise ParameterError(
                'surrogate must not be "hinge" and combine must be "mean" for sizes of effects: '
                "otherwise h is only their sign"
            )
        return np.clip(scaled(h), -1.0, 1.0)

    # -- texts -------------------------------------------------------------------------------------

    def how_made(self) -> Page:
        """Return the learner and its choices."""
        rows, sizes = (count_texts([round(n) for n in each]) for each in (self.n_rows, self.sizes))
        named = (("length", self.length), ("penalty", self.penalty))
        chosen = [f"{name} {value:.3g}" for name, value in named if value is not None]
        losses = f"{self.combine} of {self.surrogate} losses"
        return (
            Pieces([losses, _WORDS[self.adjust], f"learner: {self.learner}", *chosen]),
            Pieces([
                f"{rows[1]} treated (effective {sizes[1]}), {rows[0]} not (effective {sizes[0]})",
                f"target {self.target}", *self.overlap_words,
            ]),
        )  # fmt: skip

    @property
    def overlap_words(self) -> list[str]:
        """How similar the arms are, in words."""
        how = "known" if self.is_known else "estimated"
        if self.overlap is None:
            return [f"{how} propensity"]
        low, high, extreme = self.overlap
        between = f"{low:.2g}" if low == high else f"{low:.2f} to {high:.2f} in 90 % of rows"
        texts = [f"{how} propensity {between}"]
        if low != high:
            texts.append(f"under {EXTREME:g} for one arm in {share_text(extreme)}")
        return texts

    def sentences(self) -> list[str]:
        """Return the average effect, after whether the effect differs between rows."""
        if self.average is None:
            return []
        (reason,), (effect,), (ends,) = (
            self.average.reasons, self.average.effects, self.average.intervals(),
        )  # fmt: skip
        whole = f"has no interval: {reason}" if reason else f"is {effect_words(effect, *ends)}"
        whole = f"average effect (target {self.target}) {whole}."
        if self.slope is None:
            return [f"The {whole}"]
        if not self.slope.is_test(self.average.sizes):
            untested = "It was not tested whether the effect differs between rows: "
            return [f"{untested}one arm has too few rows.", f"The {whole}"]
        slope, least = self.slope.slope, self.slope.least
        if not least > 0.0:
            return [f"No sign that the effect differs between rows: the {whole}"]
        of_slope = f"slope of held-out outcomes on estimates {slope:.2f}, at least {least:.2f}"
        return [f"The effect differs between rows ({of_slope}).", f"The {whole}"]

    def page(self) -> Page:
        """Return the lines about the learned effects."""
        found = [f"estimated effect above 0 in {share_text(self.positive)} of rows"]
        if self.slope is not None:
            found.append(f"differences between rows multiplied by {self.slope.factor:.2f}")
        proved = [f"objective {self.objective:.6g}"]
        if self.gap is not None:
            proved.append(f"no function of the kernel is lower by more than {self.gap:.1g}")
        blocks: list[Any] = [Pieces(found), Pieces([*proved, self._kind(), *self._held()])]
        if self.is_treated_alone:
            blocks.append(
                Pieces(["only the risk of the treated counts, so propensities have no effect"])
            )
        if self.combine == "max":
            blocks.append(warning(
                'combine "max" may miss an effect that all rows have: "mean" has the right sign'
            ))  # fmt: skip
        return tuple(blocks)

    def _kind(self) -> str:
        if "kernel" not in self.learner:
            return "no posterior: not a kernel"
        is_posterior = self.combine == "mean" and self.surrogate in ("square", "logistic")
        return "Bayesian posterior" if is_posterior else "Gibbs posterior of the loss"

    def _held(self) -> list[str]:
        n = getattr(self.function, "n_held", 0)
        return [f"a saved model holds {count_of(n, 'row')}"] if n else []
