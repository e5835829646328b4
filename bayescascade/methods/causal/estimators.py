r"""Additive noise models: the direction in which the noise does not depend on the cause.

If ``y = f(x) + noise`` with noise independent of x, then in general no such model holds from y to x
(Hoyer et al. 2009). Algorithm 3 of Kusner (2016): regress each variable on the other, and choose
the direction whose residuals depend less on the assumed cause. The default score, "shapes", needs
no regression, and allows noise whose size depends on the cause.

**Departure.** The thesis divides the rows once into halves; here every row's residual comes from a
regression without this row, and all rows are test rows: twice as many for both. Kernel ridge
regression leaves out each row alone, in closed form.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.arrays import Floats, Integers
from bayescascade.base.errors import DataError, ModelFileError, ParameterError
from bayescascade.base.store import As, Saved, Within, Words, restored
from bayescascade.base.threads import single_threaded
from bayescascade.methods.causal.pair import Pair, arrow, read_names, split_rows
from bayescascade.methods.causal.parameters import AdditiveNoiseParameters
from bayescascade.methods.causal.posterior import DIRECTIONS, DirectionPosterior
from bayescascade.methods.causal.randomization import exceeds_chance
from bayescascade.methods.causal.regression import (
    KERNEL_RIDGE,
    check_regression,
    half_median,
    left_out_residuals,
    regressed,
    regression_words,
    row_features,
)
from bayescascade.methods.causal.scores import (
    N_MEASURED,
    SCORES,
    Features,
    score_of,
    spread_of_shapes,
)
from bayescascade.model.readable_model import ReadableModel
from bayescascade.model.record import NOT_SAVED
from bayescascade.model.search import Seed, seed_sequence
from bayescascade.model.view import OF_ROWS, View
from bayescascade.report.page import BLANK, Heading, Numbers, Page, Pieces, PrintedTable, count_of


class DirectionModel(ReadableModel):
    """The common part of both additive noise models."""

    title: ClassVar[str]
    purpose: ClassVar[str] = "Which of two columns is the cause of the other, if one of them is."

    names_: Annotated[Mapping[str, str], As(dict, read_names), Saved("names")]
    n_rows_: Annotated[int, Within(1), Saved("n_rows")]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "names_")

    def view(self) -> View:
        """Return what is shown: the direction, the scores, and their uncertainty."""
        lines = (
            "Each column is tried as the cause. In the right direction, the residuals, or the "
            "shape, of the effect do not depend on the cause. Lower means less dependence."
        )
        view = super().view()
        return view._replace(
            shown=self._shown(),
            more=(),
            facts=[count_of(self.n_rows_, "row"), "2 columns"],
            names=[str(name) for name in self.names_.values()],
            terms=[("", lines)],
            limits=[
                "It assumes that one of the two columns causes the other, that nothing causes "
                "both, and that noise is added to the effect of the cause. If this is not true, "
                "the answer means nothing, and the scores do not show it.",
                *OF_ROWS[:1],
            ],
        )


@dataclass(eq=False, repr=False, kw_only=True)
class AdditiveNoiseModel(DirectionModel):
    """The direction between two variables under an additive noise model.

    The model assumes that one variable causes the other, that they have no common cause, and that
    the noise is additive and independent of the cause. The scores cannot check these assumptions.
    If both scores are large, no additive noise model fits.

    Parameters
    ----------
    score : {"shapes", "hsic", "spearman", "kendall", "iqr", "variance"}
        How dependence on the cause is measured; see `bayescascade.methods.causal.scores`. "shapes"
        compares the shapes of the effect at different values of the cause. The others are of
        residuals of a regression. Rank scores ("spearman", "kendall") detect only monotone
        dependence. "iqr" and "variance" compare the spreads of residuals, which is valid for few
        noise distributions.
    decide : {"tested", "always"}
        "tested": undecided unless the scores differ by more than is likely by chance, and if many
        rows of a column have equal values. "always": the direction with the lower score, untested.
    regression : "kernel_ridge" or scikit-learn regressor
        Regression of the effect on the cause, for all scores but "shapes". "kernel_ridge" chooses
        bandwidth and lambda by leave-one-out errors.
    bandwidth : "half median" or float > 0
        Bandwidth of the Gaussian kernels of "hsic", in standard deviations of each variable. "half
        median": half the median distance.
    random_state : int, SeedSequence, Generator or None
        Seed for splitting the rows, and for the draws that decide.

    Attributes
    ----------
    direction_ : {"x->y", "y->x"} or None
        The direction with the lower score; None if undecided.
    scores_ : dict of str to float
        Scores of both directions.
    margin_ : float >= 0
        Absolute difference of the scores.
    is_decided_ : bool
        Whether the margin is larger than is likely by chance for pairs without a direction:
        independent or exchangeable columns with these cells. At most 1 % of them get a direction;
        see `bayescascade.methods.causal.randomization`. With more than 500 rows, 500 of them
        decide. False if a value is in more than a tenth of a column's rows. If `decide` is
        "always": whether the scores differ at all.
    posterior_ : DirectionPosterior
        Posterior over both directions, for `explore`.
    n_rows_ : int
    names_ : dict of str to str
        Names of "x" and "y".

    Examples
    --------
    >>> import numpy as np
    >>> from bayescascade import AdditiveNoiseModel
    >>> rng = np.random.default_rng(0)
    >>> dose = rng.uniform(-1, 1, 400)
    >>> response = np.exp(dose) + 0.5 * rng.normal(size=400)
    >>> model = AdditiveNoiseModel(random_state=0).fit(dose, response)
    >>> model.direction_
    'x->y'
    """

    declares = AdditiveNoiseParameters

    title: ClassVar[str] = "additive noise model"
    model_name: ClassVar[str] = "AdditiveNoiseModel"
    _not_saved: ClassVar[tuple[str, ...]] = (*NOT_SAVED, "regression")  # may be any object

    score: str = AdditiveNoiseParameters.score.default
    decide: str = AdditiveNoiseParameters.decide.default
    regression: Any = AdditiveNoiseParameters.regression.default
    bandwidth: str | float = AdditiveNoiseParameters.bandwidth.default
    n_folds: int = AdditiveNoiseParameters.n_folds.default
    temperature: float | None = AdditiveNoiseParameters.temperature.default
    random_state: Seed = AdditiveNoiseParameters.random_state.default

    is_decided_: Annotated[bool, Saved("decided")] = field(init=False)
    regression_: Annotated[str, Saved("regression")] = field(init=False)
    tied_: Annotated[Annotated[str, Words("x", "y")] | None, Saved("tied")] = field(init=False)

    def fit(self, x: Any, y: Any) -> Self:
        """Find the direction between two columns of numbers.

        Parameters
        ----------
        x, y : (n_rows,) array, list, Series, or table of one column

        Raises
        ------
        DataError
            If a cell is not a finite number (the message names the row), if the lengths differ, if
            there are fewer than 20 rows, or if a column is constant. For the spreads, also if half
            of the residuals are equal.
        ParameterError
            If a parameter is out of its range, or a regressor is given for "shapes".
        """
        self.declares.check(self)
        check_regression(self.regression)
        if self.score == "shapes" and not isinstance(self.regression, str):
            raise ParameterError('score must be of residuals with a regressor, got "shapes"')
        rng = np.random.default_rng(seed_sequence(self.random_state))
        read = Pair.read(x, y)
        pair, self.tied_ = read.standardized(), read.tied()
        with single_threaded():  # threads only slow down products of narrow matrices
            scores = self._both_scores(pair.x, pair.y, rng)
            if not np.isfinite(list(scores.values())).all():
                raise DataError(
                    f'score "{self.score}" needs residuals that vary in the middle: half of them '
                    "are equal; use another score"
                )
            observed = scores[DIRECTIONS[0]] - scores[DIRECTIONS[1]]
            is_decided = observed != 0.0 and (self.decide == "always" or self.tied_ is None)
            if is_decided and self.decide == "tested":
                difference = partial(self._difference, rng)
                is_decided = exceeds_chance(observed, pair.x, pair.y, difference, rng)
        self._became(scores, is_decided, len(pair.x), read.names)
        self.regression_ = "none" if self.score == "shapes" else regression_words(self.regression)
        return self

    @property
    def direction_(self) -> str | None:
        """The direction with the lower score; None if undecided."""
        check_is_fitted(self)
        return self.posterior_.direction if self.is_decided_ else None

    @property
    def scores_(self) -> dict[str, float]:
        """The score of each direction."""
        check_is_fitted(self)
        return dict(self.posterior_.scores)

    @property
    def margin_(self) -> float:
        """Absolute difference of the scores."""
        return abs(self.scores_[DIRECTIONS[0]] - self.scores_[DIRECTIONS[1]])

    def _shown(self) -> Page:
        posterior, scored = self.posterior_, SCORES[self.score]
        shown = [arrow(direction, self.names_) for direction in DIRECTIONS]
        heading = [self.title, count_of(self.n_rows_, "row"), scored.text]
        if self.score != "shapes":
            is_own = self.regression_ == regression_words(KERNEL_RIDGE)
            folds = f"{self.regression_}, {self.n_folds} folds"
            heading.append(f"leave-one-out {self.regression_}" if is_own else folds)
        lower, notes = scored.lower, []
        if np.isfinite(scored.largest):
            usual = scored.independent(self.n_rows_)
            lower += f"; independent columns score about {usual:.2g}"
        found = ["undecided", f"scores differ by {self.margin_:.4f}"]
        if self.is_decided_:
            found = [arrow(posterior.direction, self.names_), f"score lower by {self.margin_:.4f}"]
            if self.decide == "always":
                notes.append("not tested: pairs without a direction have a lower score, too")
        elif self.tied_ is None:
            found[1] += ", as they may in pairs without a direction"
        if self.tied_ is not None:
            column = f'a value is in more than a tenth of the rows of "{self.names_[self.tied_]}"'
            notes.append(f"{column}: such effects often look like causes")
        return (
            Heading(heading),
            Pieces(found),
            BLANK,
            PrintedTable(
                shown,
                [Numbers("score", [f"{self.scores_[direction]:.4f}" for direction in DIRECTIONS])],
            ),
            Pieces(
                [
                    f"a lower score: {lower}",
                    *notes,
                    f"this score is right in {scored.right} % of {N_MEASURED} measured pairs "
                    "with known causes (each source counts once), on which the default was chosen, "
                    "and not more often where scores differ widely",
                    "this is not a probability",
                    "assumption: nothing causes both columns",
                ],
                "dim",
            ),
        )

    def _became(
        self, scores: Mapping[str, float], is_decided: bool, n_rows: int, names: Mapping[str, str]
    ) -> None:
        temperature = self.temperature or SCORES[self.score].independent(n_rows)
        self.posterior_ = DirectionPosterior(scores, temperature)
        self.is_decided_ = is_decided
        self.n_rows_, self.names_ = n_rows, names

    def _difference(self, rng: np.random.Generator, x: Floats, y: Floats) -> float:
        """Return the score of "x->y" less that of "y->x", for columns in any units."""
        first, second = ((column - column.mean()) / column.std() for column in (x, y))
        forward, backward = self._both_scores(first, second, rng).values()
        return forward - backward

    def _both_scores(self, x: Floats, y: Floats, rng: np.random.Generator) -> dict[str, float]:
        if self.score == "shapes":
            both = (spread_of_shapes(x, y), spread_of_shapes(y, x))
            return dict(zip(DIRECTIONS, both, strict=True))
        part_of = None  # leave out each row alone
        if not isinstance(self.regression, str):
            part_of = split_rows(len(x), min(self.n_folds, len(x) // 2), rng)
        both = (self._score(x, y, part_of), self._score(y, x, part_of))
        return dict(zip(DIRECTIONS, both, strict=True))

    def _score(self, cause: Floats, effect: Floats, part_of: Integers | None) -> float:
        if part_of is None:
            residuals = left_out_residuals(cause, effect)
        else:
            residuals = np.empty_like(effect)
            for part in np.unique(part_of):
                others = part_of != part
                predict = regressed(self.regression, cause[others], effect[others])
                residuals[~others] = effect[~others] - predict(cause[~others])
        kernels = None
        if self.score == "hsic":
            kernels = (self._kernel(cause), self._kernel(residuals))
        return score_of(self.score, cause, residuals, kernels)

    def _kernel(self, numbers: Floats) -> Features:
        if self.bandwidth == "half median":
            return partial(row_features, bandwidth=half_median(numbers))
        spread = float(numbers.std()) or 1.0
        return partial(row_features, bandwidth=float(self.bandwidth) * spread)

    def _fields(self) -> dict[str, Any]:
        return {**super()._fields(), "direction": self.direction_, "scores": self.scores_}

    def _restore(self, record: Mapping[str, Any]) -> None:
        super()._restore(record)
        self.declares.check(self)
        read = restored(dict[str, float], record["scores"], {}, "scores")
        scores = {direction: read[direction] for direction in DIRECTIONS}
        self._became(scores, self.is_decided_, self.n_rows_, self.names_)
        if record["direction"] != self.direction_:
            raise ModelFileError(
                "a saved model's direction must be that of the lower score, or null if undecided"
            )
        self.regression_ = record["regression"]
