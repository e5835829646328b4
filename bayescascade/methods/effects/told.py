"""What is known of a fitted model of effects beside its function: in words, and in files."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from bayescascade.base.validation import check_choice, check_flag, check_probability, check_real
from bayescascade.methods.effects.learned import FUNCTIONS
from bayescascade.methods.effects.parameters import ADJUSTMENTS, TARGETS
from bayescascade.methods.effects.problem import Fitted, Posed
from bayescascade.report.numbers import count_texts, share_text
from bayescascade.report.page import Page, Pieces, warning

GIVEN = "given weights"
"""What a target is called that is an array."""

_WORDS = {"doubly_robust": "doubly robust", "residuals": "residuals", "none": "no adjustment"}


class Told(NamedTuple):
    """How a function was learned, and what it is worth."""

    adjust: str
    target: str
    learner: str
    n_rows: tuple[float, float]  # not treated, and treated
    sizes: tuple[float, float]  # as how many rows of equal weight they count
    is_known: bool  # the propensity
    average: float | None  # effect
    objective: float
    gap: float | None
    penalty: float | None
    length: float | None
    positive: float  # share of h > 0
    is_treated_alone: bool  # corollary 1 holds

    @classmethod
    def of(cls, fitted: Fitted, given: Posed, adjust: str, target: Any, is_known: bool) -> "Told":
        """Return what is known of a function that was fitted to a problem."""
        problem, function = given.problem, fitted.function
        names = {kind: name for name, kind in FUNCTIONS.items()}
        own = type(getattr(function, "learner", None)).__name__  # of scikit-learn's
        n_treated = int(problem.treatment.sum())
        alpha = float(getattr(fitted.exact, "alpha", 0.5))
        named = target if isinstance(target, str) else GIVEN
        return cls(
            adjust=adjust,
            target=named,
            learner=names.get(type(function), own),
            n_rows=(len(problem.labels) - n_treated, n_treated),
            sizes=(float(given.sizes[0]), float(given.sizes[1])),
            is_known=is_known,
            average=given.average,
            objective=fitted.objective,
            gap=getattr(fitted.exact, "gap", None),
            penalty=fitted.penalty,
            length=fitted.length,
            positive=float((function.values(problem.rows) > 0.0).mean()),
            is_treated_alone=(problem.combine, named) == ("max", "treated") and alpha > 1.0 - 1e-6,
        )

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "Told":
        """Return what ``_asdict`` gave; errors as of `ReadableModel._restore`."""
        check_choice("adjust", record["adjust"], ADJUSTMENTS)
        check_choice("target", record["target"], (GIVEN, *TARGETS))
        check_choice("learner", record["learner"], tuple(FUNCTIONS))
        check_real("objective", record["objective"])
        check_probability("positive", record["positive"])
        pairs = {}
        for name in ("n_rows", "sizes"):
            first, second = record[name]
            for each in (first, second):
                check_real(name, each, above=0.0)
            pairs[name] = first, second
        for name in ("is_known", "is_treated_alone"):
            check_flag(name, record[name])
        for name in ("average", "gap", "penalty", "length"):
            if record[name] is not None:
                check_real(name, record[name], minimum=None if name == "average" else 0.0)
        return cls(**{**record, **pairs})

    def how_made(self, combine: str, surrogate: str) -> Page:
        """Return by what it was learned."""
        rows, sizes = (count_texts([round(n) for n in each]) for each in (self.n_rows, self.sizes))
        named = (("length", self.length), ("penalty", self.penalty))
        chosen = [f"{name} {value:.3g}" for name, value in named if value is not None]
        losses = f"{combine} of {surrogate} losses"
        known = "known propensity" if self.is_known else "estimated propensity"
        return (
            Pieces([losses, _WORDS[self.adjust], f"by a {self.learner}", *chosen]),
            Pieces([
                f"{rows[1]} treated, counting as {sizes[1]}; {rows[0]} not, as {sizes[0]}",
                f"target {self.target}, {known}",
            ]),
        )  # fmt: skip

    def page(self, combine: str, kind: str) -> Page:
        """Return what was learned; `kind` says of what posterior."""
        found = [f"treating is said to help {share_text(self.positive)} of rows"]
        if self.average is not None:
            found.append(f"average effect {self.average:+.3f}")
        proved = [f"objective {self.objective:.6g}"]
        if self.gap is not None:
            proved.append(f"no function of the kernel is lower by over {self.gap:.1g}")
        blocks: list[Any] = [Pieces(found), Pieces([*proved, kind])]
        if self.is_treated_alone:
            blocks.append(Pieces(["the risk of the treated alone decides: propensities do not"]))
        if combine == "max":
            blocks.append(warning(
                'combine "max" may find no effect where all rows gain: "mean" has the right sign'
            ))  # fmt: skip
        return tuple(blocks)
