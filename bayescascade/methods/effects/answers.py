"""Models of effects that are fitted: what they say of rows, what they print, and what is saved."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.saved_arrays import read_array
from bayescascade.base.threads import single_threaded
from bayescascade.base.validation import check_probability
from bayescascade.data.labels import classes_record, read_classes
from bayescascade.data.levels import level_text
from bayescascade.data.unknown import UnknownCells
from bayescascade.methods.effects.adjustment import doubly_robust, nuisance
from bayescascade.methods.effects.functions import KernelFunction
from bayescascade.methods.effects.learned import LearnedEffects
from bayescascade.methods.effects.reading import check_propensity, second_of
from bayescascade.model.matrix_estimator import MatrixEstimator
from bayescascade.model.reporting import OF_ROWS
from bayescascade.model.roles import Predicted
from bayescascade.report.page import Page

if TYPE_CHECKING:
    from bayescascade.methods.effects.rules import EffectRules

Floats = NDArray[np.float64]


class EffectAnswers(MatrixEstimator):
    """What `EffectModel` does once it is fitted, or read from a file."""

    n_jobs: int | None
    outcomes_: NDArray[Any]
    arms_: NDArray[Any]
    _center: Floats

    def _take(self, learned: LearnedEffects) -> None:
        """Become what was learned, or read."""
        self._learned, self.effective_sizes_ = learned, np.array(learned.sizes)
        self.objective_, self.average_effect_ = learned.objective, learned.average
        self.penalty_, self.length_scale_ = learned.penalty, learned.length
        self.learner_ = learned.learner
        if isinstance(learned.function, KernelFunction):
            self.intercept_ = learned.function.intercept

    # -- predicting --------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Floats:
        """Return h, greater than 0 where treating is estimated to help, (n_rows,).

        Parameters
        ----------
        X : as in `fit`

        Raises
        ------
        DataError
            If a column is missing or a cell cannot be read.
        """
        return self._values(self._numbers(X))

    def _numbers(self, X: Any, unknown: UnknownCells | None = None) -> Floats:
        return np.asarray(self._matrix(X, unknown), np.float64)

    def _values(self, rows: Floats) -> Floats:
        return np.asarray(self._learned.function.values(rows))

    def effect(self, X: Any) -> Floats:
        """Return P(good if treated) - P(good if not), within [-1, 1], (n_rows,).

        Parameters
        ----------
        X : as in `fit`

        Raises
        ------
        ParameterError
            If the loss says the sign alone: with the hinge, or the maximum.
        DataError
            If a column is missing or a cell cannot be read.
        """
        return self._learned.effects(self.decision_function(X))

    def effect_interval(self, X: Any, probability: float = 0.95) -> Floats:
        """Return an interval of each effect, of the Gaussian around the function, (n_rows, 2).

        Around a mixture with a forest, variances are those of the kernel, and by how much its mean
        square error on rows left out exceeds that of the mixture. Intervals are right for rows on
        average, and less often beside a jump of the effect: in four made worlds, those of 95 % held
        92 to 97 % of the effects. Those of a kernel alone held 86 to 92 % where the effect was
        linear, and 60 % where it jumped.

        Parameters
        ----------
        X : as in `fit`
        probability : float in (0, 1)
            That the effect is within.

        Raises
        ------
        ParameterError
            If the probability is out of range, or the function has no posterior: that of a forest,
            of another learner, or of a loss that is no likelihood.
        DataError
            If a column is missing or a cell cannot be read.
        """
        check_is_fitted(self)
        probability = check_probability("probability", probability, strict=True)
        return self._learned.intervals(self._numbers(X), probability)

    def predict(self, X: Any, neutral: float = 0.0) -> NDArray[np.int64]:
        """Return 1 where treating is estimated to help, -1 where to harm, and 0 of neutral rows.

        Parameters
        ----------
        X : as in `fit`
        neutral : float in [0, 1]
            The share of the rows with the smallest ``|h|`` that are 0.

        Raises
        ------
        ParameterError
            If `neutral` is out of range.
        DataError
            If a column is missing or a cell cannot be read.
        """
        h, share = self.decision_function(X), check_probability("neutral", neutral)
        signs = np.sign(h).astype(np.int64)
        signs[np.argsort(np.abs(h), kind="stable")[: round(share * len(h))]] = 0
        return signs

    def explain(
        self, X: Any, held_out: tuple[Any, ...] | None = None, **parameters: Any
    ) -> "EffectRules":
        """Return rules for where h > 0, and the effect in each of them.

        Parameters
        ----------
        X : as in `fit`
            Rows whose h rules are learned from, such as those of `fit`: no outcome is used.
        held_out : (X, y, treatment) or (X, y, treatment, propensity), optional
            As in `fit`, but other rows: effects are measured on them, by doubly robust outcomes,
            and say nothing if `fit` has seen them. By default no effect is measured, and a fifth of
            X says how well the rules agree with h.
        **parameters
            Those of `EffectRules`, such as ``kind="tree"``.

        Raises
        ------
        ParameterError
            If a parameter is out of its range, or no condition has the support.
        DataError
            If rows cannot be used, or those held out are not of the outcomes and arms of `fit`.
        """
        from bayescascade.methods.effects.rules import EffectRules

        rules, h = EffectRules(**parameters), self.decision_function(X)
        if held_out is None:
            return rules.fit(X, h)
        others, y, treatment, propensity = (*held_out, None)[:4]
        rows, owner = self._numbers(others), type(self).__name__
        is_good = second_of(y, self.outcomes_, "y held out", owner, len(rows))
        is_treated = second_of(treatment, self.arms_, "treatment held out", owner, len(rows))
        known = check_propensity(propensity, len(rows))
        with single_threaded():
            found = nuisance(rows, is_good, is_treated, known, n_jobs=self.n_jobs)
        outcomes = doubly_robust(is_good, is_treated, *found)
        return rules.fit(X, h, (others, self._values(rows), outcomes))

    def predict_block(
        self,
        cells: pd.DataFrame,
        first_row: int,
        *,
        intervals: bool = False,
        explain: bool = False,
        unknown: UnknownCells | None = None,
    ) -> Predicted:
        """Return effects, or h where there is its sign alone; see `roles.Predictor`."""
        del first_row, explain
        rows, learned = self._numbers(cells, unknown), self._learned
        h, told = self._values(rows), {}
        if intervals and learned.has_sizes and learned.function.has_doubt:
            low, high = learned.intervals(rows, 0.95).T.tolist()
            told = {"low_95": low, "high_95": high}
        return Predicted(told, values=learned.effects(h) if learned.has_sizes else h)

    @property
    def _means(self) -> Floats:
        return self._center

    def __sklearn_is_fitted__(self) -> bool:
        return "_learned" in self.__dict__

    # -- what a user sees --------------------------------------------------------------------------

    def _facts(self) -> list[str]:
        return [
            *super()._facts(),
            f'outcome "{level_text(self.outcomes_.tolist()[1])}"',
            f'treated "{level_text(self.arms_.tolist()[1])}"',
        ]

    def _how_made(self) -> Page:
        return self._learned.how_made()

    def _page(self) -> Page:
        return self._learned.page()

    def _how_to_read(self) -> list[tuple[str, str]]:
        return [
            ("above 0", "rows for which the good outcome is more probable with the treatment"),
            (
                "average effect",
                "the change of the probability of the good outcome by the treatment",
            ),
            ("effective", "the number of rows with equal weights that have the same information"),
        ]

    def _cannot_tell(self) -> list[str]:
        return [
            "It assumes that nothing outside its columns influences both the treatment and the "
            "outcome. The rows cannot show whether this is true.",
            *OF_ROWS,
        ]

    # -- files -------------------------------------------------------------------------------------

    def _fields(self) -> dict[str, Any]:
        return {
            **self._encoding_fields(),
            "learned": self._learned.to_record(),
            "outcomes": classes_record(self.outcomes_),
            "arms": classes_record(self.arms_),
            "center": self._center.tolist(),
        }

    def _restore(self, record: Mapping[str, Any]) -> None:
        self._read_encoding(record)
        n_columns = len(self._encoder.source)
        self.outcomes_, self.arms_ = map(read_classes, (record["outcomes"], record["arms"]))
        self._center = read_array(record, "center", (n_columns,))
        if (len(self.outcomes_), len(self.arms_)) != (2, 2):
            raise ValueError("a saved model of effects has two outcomes and two arms")
        self._take(LearnedEffects.from_record(record["learned"], n_columns))
