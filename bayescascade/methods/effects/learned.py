"""Learned effects: a function, its origin, effects and texts."""

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
from bayescascade.methods.effects.rules_page import effect_words
from bayescascade.report.numbers import count_texts, share_text
from bayescascade.report.page import Page, Pieces, count_of, warning

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
