r"""Additive noise models: the direction whose residuals do not depend on the cause.

If ``y = f(x) + noise`` with noise independent of x, then in general no such model holds from y to x
(Hoyer et al. 2009). Algorithm 3 of Kusner (2016): regress each variable on the other, and choose
the direction whose residuals depend less on the assumed cause.

**Departure.** The thesis divides the rows once into halves; here every row's residual comes from a
regression without this row, and all rows are test rows: twice as many for both. Kernel ridge
regression leaves out each row alone, in closed form.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import DataError, ModelFileError
from bayescascade.base.threads import single_threaded
from bayescascade.base.validation import check_integer, check_real
from bayescascade.methods.causal.pair import Pair, arrow, read_names, split_rows
from bayescascade.methods.causal.parameters import AdditiveNoiseParameters
from bayescascade.methods.causal.posterior import DIRECTIONS, DirectionPosterior
from bayescascade.methods.causal.regression import (
    KERNEL_RIDGE,
    GaussianFeatures,
    check_regression,
    left_out_residuals,
    regressed,
    regression_words,
)
from bayescascade.methods.causal.scores import N_MEASURED, SCORES, score_of
from bayescascade.model.readable_model import ReadableModel
from bayescascade.model.record import NOT_SAVED
from bayescascade.model.reporting import OF_ROWS
from bayescascade.model.search import Seed, seed_sequence
from bayescascade.report.page import BLANK, Heading, Numbers, Page, Pieces, PrintedTable, count_of

_MOST_COMPARED = 1000  # maximum number of rows for the median distance


class DirectionModel(ReadableModel):
    """The common part of both additive noise models."""

    title: ClassVar[str]
    purpose: ClassVar[str] = "Which of two columns is the cause of the other, if one of them is."

    direction_: str | None
    n_rows_: int
    names_: Mapping[str, str]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "names_")

    def _facts(self) -> list[str]:
        return [count_of(self.n_rows_, "row"), "2 columns"]

    def _column_names(self) -> list[str]:
        return [str(name) for name in self.names_.values()]

    def _how_to_read(self) -> list[tuple[str, str]]:
        return [
            (
                "",
                "Each column is predicted from the other. In the right direction, the residuals "
                "do not depend on the cause. A lower score means less dependence.",
            )
        ]

    def _cannot_tell(self) -> list[str]:
        return [
            "It assumes that one of the two columns causes the other, that nothing causes both, "
            "and that noise is added to the effect of the cause. If this is not true, the answer "
            "means nothing, and the scores do not show it.",
            *OF_ROWS[:1],
        ]

    def _fields(self) -> dict[str, Any]:
        return {"names": dict(self.names_), "n_rows": self.n_rows_}

    def _restore(self, record: Mapping[str, Any]) -> None:
        self.n_rows_ = check_integer("n_rows", record["n_rows"], 1)
        self.names_ = read_names(record["names"])


@dataclass(eq=False, repr=False, kw_only=True)
class AdditiveNoiseModel(DirectionModel):
    """The direction between two variables under an additive noise model.

    The model assumes that one variable causes the other, that they have no common cause, and that
    the noise is additive and independent of the cause. The scores cannot check these assumptions.
    If both scores are large, no additive noise model fits.

    Parameters
    ----------
    score : {"hsic", "spearman", "kendall", "iqr", "variance"}
        How the dependence of residuals on the cause is measured; see
        `bayescascade.methods.causal.scores`. Rank scores ("spearman", "kendall") detect only
        monotone dependence. "iqr" and "variance" compare the spreads of residuals, which is valid
        for few noise distributions.
    regression : "kernel_ridge" or scikit-learn regressor
        Regression of the effect on the cause. "kernel_ridge" chooses bandwidth and lambda by
        leave-one-out errors.
    bandwidth : "half median" or float > 0
        Bandwidth of the Gaussian kernels of "hsic", in standard deviations of each variable. "half
        median": half the median distance.
    random_state : int, SeedSequence, Generator or None
        Seed for splitting the rows.

    Attributes
    ----------
    direction_ : {"x->y", "y->x"}
        The direction with the lower score.
    scores_ : dict of str to float
        Scores of both directions.
    margin_ : float >= 0
        Absolute difference of the scores.
    is_decided_ : bool
        Whether the margin is larger than is likely by chance for pairs without a direction.
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
    >>> response = np.tanh(3 * dose) + 0.3 * rng.uniform(-1, 1, 400)
    >>> model = AdditiveNoiseModel(random_state=0).fit(dose, response)
    >>> model.direction_
    'x->y'
    """

    declares = AdditiveNoiseParameters

    title: ClassVar[str] = "additive noise model"
    model_name: ClassVar[str] = "AdditiveNoiseModel"
    _not_saved: ClassVar[tuple[str, ...]] = (*NOT_SAVED, "regression")  # may be any object

    score: str = AdditiveNoiseParameters.score.default
    regression: Any = AdditiveNoiseParameters.regression.default
    bandwidth: str | float = AdditiveNoiseParameters.bandwidth.default
    n_folds: int = AdditiveNoiseParameters.n_folds.default
    temperature: float | None = AdditiveNoiseParameters.temperature.default
    random_state: Seed = AdditiveNoiseParameters.random_state.default

    def fit(self, x: Any, y: Any) -> Self:
        """Find the direction between two columns of numbers.

        Parameters
        ----------
        x, y : (n_rows,) array, list, Series, or table of one column

        Raises
        ------
        DataError
            If a cell is not a finite number (the message names the row), if the lengths differ, if
            there are fewer than 20 rows, or if one value occurs in more than a tenth of the rows of
            a column. For the spreads, also if half of the residuals are equal.
        ParameterError
            If a parameter is out of its range.
        """
        self.declares.check(self)
        check_regression(self.regression)
        rng = np.random.default_rng(seed_sequence(self.random_state))
        read = Pair.read(x, y)
        pair = read.standardized()
        read.check_ties()
        part_of = None  # leave out each row alone
        if not isinstance(self.regression, str):
            part_of = split_rows(len(pair.x), min(self.n_folds, len(pair.x) // 2), rng)
        with single_threaded():  # threads only slow down products of narrow matrices
            scores = {
                DIRECTIONS[0]: self._score(pair.x, pair.y, part_of, rng),
                DIRECTIONS[1]: self._score(pair.y, pair.x, part_of, rng),
            }
        if not np.isfinite(list(scores.values())).all():
            raise DataError(
                f'score "{self.score}" needs residuals that vary in the middle: half of them are '
                "equal; use another score"
            )
        self._became(scores, len(pair.x), read.names)
        self.regression_ = regression_words(self.regression)
        return self

    @property
    def scores_(self) -> dict[str, float]:
        """The score of each direction."""
        check_is_fitted(self)
        return dict(self.posterior_.scores)

    @property
    def margin_(self) -> float:
        """Absolute difference of the scores."""
        return abs(self.scores_[DIRECTIONS[0]] - self.scores_[DIRECTIONS[1]])

    @property
    def is_decided_(self) -> bool:
        """Whether scores differ by more than is likely by chance for pairs without a direction."""
        usual = SCORES[self.score].independent(self.n_rows_)
        return self.margin_ >= SCORES[self.score].undirected * usual

    def page(self) -> Page:
        """Return the direction, the scores, and their uncertainty."""
        posterior, scored = self.posterior_, SCORES[self.score]
        shown = [arrow(direction, self.names_) for direction in DIRECTIONS]
        told = f"leave-one-out {self.regression_}"
        if self.regression_ != regression_words(KERNEL_RIDGE):
            told = f"{self.regression_}, {self.n_folds} folds"
        usual = scored.independent(self.n_rows_)
        lower = "cause and residuals vary less together"
        if np.isfinite(scored.largest):
            lower = (
                f"residuals depend less on the cause; independent columns score about {usual:.2g}"
            )
        found = [arrow(posterior.direction, self.names_), f"score lower by {self.margin_:.4f}"]
        if not self.is_decided_:
            least = scored.undirected * usual
            found = [
                "undecided",
                f"scores differ by {self.margin_:.4f}; a direction needs {least:.4f} or more",
            ]
        return (
            Heading([self.title, count_of(self.n_rows_, "row"), scored.told, told]),
            Pieces(found),
            BLANK,
            PrintedTable(
                shown, [Numbers("score", [f"{self.scores_[one]:.4f}" for one in DIRECTIONS])]
            ),
            Pieces(
                [
                    f"a lower score: {lower}",
                    f"this score is right in {scored.n_right} of {N_MEASURED} measured pairs with "
                    "known causes, and not more often where scores differ widely",
                    "this is not a probability",
                    "assumption: nothing causes both columns",
                ],
                "dim",
            ),
        )

    def _became(self, scores: Mapping[str, float], n_rows: int, names: Mapping[str, str]) -> None:
        temperature = self.temperature or SCORES[self.score].independent(n_rows)
        self.posterior_ = DirectionPosterior(scores, temperature)
        self.direction_ = self.posterior_.direction
        self.n_rows_, self.names_ = n_rows, names

    def _score(
        self, cause: Floats, effect: Floats, part_of: Any, rng: np.random.Generator
    ) -> float:
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
            kernels = (self._kernel(cause, rng), self._kernel(residuals, rng))
        return score_of(self.score, cause, residuals, kernels)

    def _kernel(self, numbers: Floats, rng: np.random.Generator) -> GaussianFeatures:
        """Return features of the kernel of a variable, with the chosen bandwidth."""
        spread = float(numbers.std())
        if self.bandwidth != "half median":
            return GaussianFeatures.around(numbers, float(self.bandwidth) * (spread or 1.0))
        compared = numbers
        if len(numbers) > _MOST_COMPARED:
            compared = rng.choice(numbers, _MOST_COMPARED, replace=False)
        apart = pdist(compared[:, np.newaxis])
        apart = apart[apart > 0]
        return GaussianFeatures.around(numbers, float(np.median(apart)) / 2 if len(apart) else 1.0)

    def _fields(self) -> dict[str, Any]:
        fields = {"scores": self.scores_, "regression": self.regression_}
        return {**super()._fields(), **fields}

    def _restore(self, record: Mapping[str, Any]) -> None:
        super()._restore(record)
        scores = {
            direction: check_real("scores", record["scores"][direction]) for direction in DIRECTIONS
        }
        self.declares.check(self)
        if not isinstance(record["regression"], str):
            raise ModelFileError("a saved model's regression must be a text")
        self._became(scores, self.n_rows_, self.names_)
        self.regression_ = record["regression"]
