"""The published result of a private direction, and the guarantee in words; nothing else is kept."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from bayescascade.base.store import As, Within, Words, stored
from bayescascade.base.validation import check_bounds
from bayescascade.methods.causal.pair import arrow, read_names
from bayescascade.methods.causal.parameters import PrivateNoiseParameters
from bayescascade.methods.causal.posterior import DIRECTIONS
from bayescascade.methods.causal.protection import MOST_ERROR, credibility
from bayescascade.methods.causal.scores import SCORES
from bayescascade.privacy.accounting import times_text
from bayescascade.report.page import (
    BLANK,
    Block,
    Heading,
    Numbers,
    Page,
    Pieces,
    PrintedTable,
    warning,
)
from bayescascade.report.printed import Readable

_UNSTABLE = (
    "no answer: the rows did not pass the private test of stability, and nothing else is "
    "published; use more rows, a larger epsilon or another score"
)
_UNDEFINED = (
    "no answer: half of the test rows, or of their residuals, have the same value, so the log "
    "interquartile range is -inf; use another score"
)

_WHOSE = {
    "test": ("one of the {n_test:,} test rows", "Training rows are"),
    "train": ("one of the {n_training:,} training rows", "Test rows are"),
    "both": ("any one row", ""),
}
"""The protected and the other rows in words."""


@dataclass(frozen=True)
class DirectionRelease(Readable):
    """A direction, published under differential privacy.

    Parameters
    ----------
    direction : {"x->y", "y->x"} or None
        The direction with the lower private score, or a randomized direction. None if the rows did
        not pass the stability test, so nothing else is published, or if exact scores are infinite.
    scores : mapping of str to float, or None
        Scores of both directions, with noise; they may be outside the range of the score. Exact log
        IQRs are -inf if half of the numbers are equal. None if scores are not published.
    scale : float >= 0
        Scale of the Laplace noise on each score; 0 if there are no scores or they are exact.
    regression_error : float >= 0
        Error of the regressions due to noise, in half widths of the bounds. If it exceeds 0.05,
        directions are unreliable.
    epsilon, delta : float
        The privacy budget that was spent.
    protects : {"test", "train", "both"}
        The protected rows.
    score : str
    n_training, n_test : int
    names : mapping of str to str
        Names of "x" and "y".
    x_bounds, y_bounds : (float, float)
        The declared bounds.
    is_private : bool
        Whether the noise was private. Otherwise it was simulated, and nobody is protected.
    """

    direction: Annotated[str, Words(*DIRECTIONS)] | None
    scores: Mapping[str, Annotated[float, Within(null=-math.inf)]] | None
    scale: Annotated[float, Within(0)]
    regression_error: Annotated[float, Within(0)]
    epsilon: Annotated[float, Within(above=0)]
    delta: float
    protects: str
    score: str
    n_training: Annotated[int, Within(1)]
    n_test: Annotated[int, Within(1)]
    names: Annotated[Mapping[str, str], As(dict, read_names)]
    x_bounds: tuple[float, float]
    y_bounds: tuple[float, float]
    is_private: bool

    def __post_init__(self) -> None:
        PrivateNoiseParameters.check_values(
            protect=self.protects, score=self.score, delta=self.delta
        )
        check_bounds("x_bounds", self.x_bounds)
        check_bounds("y_bounds", self.y_bounds)
        if self.scores is not None:
            are_finite = all(map(math.isfinite, self.scores.values()))
            if set(self.scores) != set(DIRECTIONS) or not (are_finite or self.score == "iqr"):
                raise ValueError(f"scores must be a number for each direction, got {self.scores}")
            if self.direction != direction_of(self.scores):
                raise ValueError("direction must be that of the lower score")

    @property
    def is_undefined(self) -> bool:
        """Whether there is no direction because exact scores are infinite.

        These scores have no stability test, so their delta is 0.
        """
        return self.direction is None and self.delta == 0.0

    @property
    def probability(self) -> float | None:
        """The probability that noise did not change the order of the scores, given both.

        It is computed from the distribution of the noise, with a uniform prior on all possible
        margins. None without direction or scores, or if the error of the regressions is above 0.05.
        """
        is_known = self.direction is not None and self.regression_error <= MOST_ERROR
        if self.scores is None or not is_known:
            return None
        margin = abs(self.scores[DIRECTIONS[0]] - self.scores[DIRECTIONS[1]])
        return credibility(margin, self.scale, SCORES[self.score].largest) if self.scale else 1.0

    @property
    def guarantee(self) -> str:
        """The guarantee in words: who is protected, against whom, and how much."""
        if not self.is_private:
            return "Simulated, not private: anyone who knows the seed can remove the noise."
        whose, others = _WHOSE[self.protects]
        whose = whose.format(n_test=self.n_test, n_training=self.n_training)
        delta = f", except with probability {self.delta:g}" if self.delta else ""
        return (
            f"Whatever else an observer knows, replacing {whose} makes no result more than "
            f"{times_text(self.epsilon)} times as probable{delta} (epsilon "
            f"{self.epsilon:g}, delta {self.delta:g})."
        ) + (f" {others} not protected." if others else "")

    def page(self) -> Page:
        """Return the direction, the scores, and the guarantee."""
        rows = f"{self.n_training:,} training rows, {self.n_test:,} test rows"
        heading = Heading(["private additive noise model", rows, SCORES[self.score].text])
        guarantee = warning(self.guarantee) if not self.is_private else Pieces([self.guarantee])
        if self.direction is None:
            why = _UNDEFINED if self.is_undefined else _UNSTABLE
            table = self._scores_page([]) if self.scores is not None else ()
            return (heading, Pieces([why]), BLANK, *table, guarantee)
        found = [arrow(self.direction, self.names)]
        if self.scores is None:
            found.append("drawn by the exponential mechanism (no probability is available)")
        elif self.scale and self.probability is not None:
            found.append(
                f"without noise the answer would be the same (probability {self.probability:.3f})"
            )
        blocks: list[Block] = [heading, Pieces(found)]
        share = 50 * self.regression_error  # in percent of the width
        error = f"noise moves the regressions by about {share:.2g} % of the width of the bounds"
        if self.regression_error > MOST_ERROR:
            blocks.append(
                warning(
                    f"{error}; this is too much to rely on the direction: use more rows or a "
                    "larger epsilon"
                )
            )
            error = ""
        blocks.append(BLANK)
        if self.scores is not None:
            blocks += self._scores_page([error] if self.regression_error and error else [])
        return (*blocks, guarantee)

    def _scores_page(self, errors: list[str]) -> Page:
        """Return a table of the scores, and notes about them."""
        assert self.scores is not None
        shown = [arrow(direction, self.names) for direction in DIRECTIONS]
        texts = [f"{self.scores[direction]:.4g}" for direction in DIRECTIONS]
        noise = f"Laplace noise of scale {self.scale:.3g} on each"
        below = ["a lower score: residuals depend less on the cause"]
        below += [noise if self.scale else "exact scores", *errors]
        return PrintedTable(shown, [Numbers("private score", texts)]), Pieces(below, "dim"), BLANK

    def to_dict(self) -> dict[str, Any]:
        """Return all fields and the probability as plain data. Infinite scores are None."""
        return {**stored(self), "probability": self.probability}


def direction_of(scores: Mapping[str, float]) -> str | None:
    """Return the direction of the lower score, the first one in a tie; None if one is infinite."""
    if not all(map(math.isfinite, scores.values())):
        return None
    return min(DIRECTIONS, key=lambda direction: scores[direction])
