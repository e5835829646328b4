"""Models of what a treatment does to each row."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.errors import ParameterError
from bayescascade.base.threads import single_threaded
from bayescascade.base.validation import check_probability
from bayescascade.data.given import GivenRows
from bayescascade.data.labels import classes_record, read_classes
from bayescascade.data.levels import level_text
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.data.unknown import UnknownCells
from bayescascade.methods.effects.adjustment import Nuisance, doubly_robust, nuisance, propensities
from bayescascade.methods.effects.fitting import MOST_CHOOSING, KernelFit
from bayescascade.methods.effects.hinge import MOST_EXACT
from bayescascade.methods.effects.learned import FUNCTIONS, KernelFunction
from bayescascade.methods.effects.learners import fit_forest, fit_learner, mixed
from bayescascade.methods.effects.losses import SURROGATES
from bayescascade.methods.effects.parameters import AUTO, EffectParameters, resolved_adjustment
from bayescascade.methods.effects.posterior import EffectPosterior
from bayescascade.methods.effects.problem import Fitted, Posed, Problem, posed
from bayescascade.methods.effects.reading import (
    TreatedRows,
    check_arms,
    check_overlap,
    check_propensity,
    held,
    second_of,
    two_classes,
    without_treatment,
)
from bayescascade.methods.effects.told import Told
from bayescascade.model.matrix_estimator import MatrixEstimator
from bayescascade.model.record import NOT_SAVED
from bayescascade.model.reporting import OF_ROWS
from bayescascade.model.roles import Predicted
from bayescascade.model.search import Seed, seed_sequence
from bayescascade.report.page import Page

if TYPE_CHECKING:
    from bayescascade.methods.effects.rules import EffectRules

Floats = NDArray[np.float64]


@dataclass(eq=False, repr=False, kw_only=True)
class EffectModel(MatrixEstimator):
    """Learns the effect of a treatment on each row, with two outcomes and two arms.

    It learns one function h(x). Its sign says whether treatment makes the good outcome more
    probable. A row shows only the outcome of its own arm; comparable rows show the other. So
    whatever decides who is treated must be in X.

    With ``combine="max"``, the minimax of the thesis, the function minimizes the larger of two
    risks. It may miss an effect that everyone has: if the good outcome has probability .9 with
    treatment and .6 without, its minimizer is h = 0. The mean of the risks is a tighter bound, and
    has the sign of the effect.

    Parameters
    ----------
    adjust
        "auto": doubly robust for the square and the mean, else "none", as False is.

    Attributes
    ----------
    objective_ : float
        Risk plus penalty.
    exact_ : object
        With `gap`, by which any function of the kernel may do better, and `objective`; of kernels.
    intercept_ : float
        Of kernels.
    penalty_, length_scale_ : float or None
        Given or chosen, of kernels.
    learner_ : str
        "kernel", "forest", "kernel and forest", or the class of a given learner.
    posterior_ : EffectPosterior
        For `explore`; of kernels, and not in saved models.
    effective_sizes_ : (2,) float64
        As how many rows of equal weight the arms count, not treated and treated.
    average_effect_ : float or None
        The mean of pseudo-outcomes, doubly robust, by the weights of the target.
    outcomes_, arms_ : (2,) array
        Labels; the second are the good outcome, and the treated.

    Examples
    --------
    >>> import numpy as np
    >>> from bayescascade import EffectModel
    >>> rng = np.random.default_rng(0)
    >>> X, treatment = rng.normal(size=(600, 2)), rng.random(600) < 0.5
    >>> y = rng.random(600) < 0.5 + 0.3 * treatment * np.sign(X[:, 0])
    >>> model = EffectModel(learner="kernel", random_state=0).fit(X, y, treatment, 0.5)
    >>> model.predict([[1.5, 0.0], [-1.5, 0.0]]).tolist()
    [1, -1]
    """

    model_name: ClassVar[str] = "EffectModel"
    title: ClassVar[str] = "effect model"
    purpose: ClassVar[str] = "For whom a treatment works, by one function of the rows."
    learned_word: ClassVar[str] = "function"
    declares = EffectParameters
    _not_saved: ClassVar[tuple[str, ...]] = (*NOT_SAVED, "learner", "target")
    _later_parameters: ClassVar[Mapping[str, Any]] = {}

    good: Any = EffectParameters.good.default
    treated: Any = EffectParameters.treated.default
    surrogate: str = EffectParameters.surrogate.default
    combine: str = EffectParameters.combine.default
    adjust: str | bool = EffectParameters.adjust.default
    learner: Any = EffectParameters.learner.default
    kernel: str = EffectParameters.kernel.default
    length_scale: float | str = EffectParameters.length_scale.default
    penalty: float | str = EffectParameters.penalty.default
    target: Any = EffectParameters.target.default
    standardize: bool = EffectParameters.standardize.default
    random_state: Seed = EffectParameters.random_state.default
    n_jobs: int | None = EffectParameters.n_jobs.default
    missing: str = EffectParameters.missing.default
    unknown: str = EffectParameters.unknown.default

    objective_: float = field(init=False)
    exact_: Any = field(init=False)
    penalty_: float | None = field(init=False)
    length_scale_: float | None = field(init=False)
    learner_: str = field(init=False)
    posterior_: EffectPosterior = field(init=False)
    effective_sizes_: Floats = field(init=False)
    average_effect_: float | None = field(init=False)
    outcomes_: NDArray[Any] = field(init=False)
    arms_: NDArray[Any] = field(init=False)
    _function: Any = field(init=False)
    _told: Told = field(init=False)
    _center: Floats = field(init=False)

    def fit(self, X: Any, y: Any, treatment: Any, propensity: Any = None) -> Self:
        """Learn for whom the treatment works.

        Parameters
        ----------
        X : DataFrame or other table, paths, mapping of columns, array or list of rows
            What is known before anybody is treated.
        y : (n_rows,) array, or str of files
            Outcomes, of two classes; see `good`.
        treatment : (n_rows,) array, or str
            Arms, two, see `treated`; or the column of X that holds them.
        propensity : float, or (n_rows,) array, optional
            The probability of being treated, in (0, 1), where it is known by design.

        Raises
        ------
        ParameterError
            If a parameter is out of its range.
        DataError
            If outcomes or arms are not two, an arm has one outcome or fewer than 10 rows, arms do
            not overlap, the treatment is in X, too, or rows cannot be used.

        Warns
        -----
        UserWarning
            If arms hardly overlap, so that few rows say most.
        """
        self.declares.check(self)
        adjust = resolved_adjustment(self)
        training = self._read_rows(X, y, treatment)
        known = check_propensity(propensity, len(training.y))
        seed = int(seed_sequence(self.random_state).generate_state(1)[0] >> 1)
        with single_threaded():
            found = self._nuisance(training, known, adjust, seed)
            given = posed(training, found, adjust, self.target, self.surrogate, self.combine)
            check_overlap(found.propensity, training.treatment, known is None)
            fitted = self._fitted(given.problem, seed)
            self._became(fitted, given, adjust, known is not None)
        return self

    def expected_seconds(self, n_rows: int) -> float:
        """Return about how many seconds of one core `fit` takes, of ten columns."""
        chooses = self.surrogate != "square" and AUTO in (self.length_scale, self.penalty)
        if self.surrogate != "hinge":
            return 0.15 * math.sqrt(n_rows) + 20.0 * chooses
        fit = 16.0 * math.pow(min(n_rows, MOST_EXACT) / 4000.0, 3.0)
        return fit + chooses * 30.0 * math.pow(min(n_rows, MOST_CHOOSING) / 1000.0, 2.0)

    # -- reading -----------------------------------------------------------------------------------

    def _read_rows(self, X: Any, y: Any, sample_weight: Any = None) -> TreatedRows:
        """Learn columns, outcomes and arms; the third is who is treated."""
        owner = type(self).__name__
        given, arms = without_treatment(GivenRows.labeled(X, y), sample_weight)
        self._set_encoder(MatrixEncoder.learn(given, self._policy()))
        rows = np.asarray(self._encoder.transform(given, owner), np.float64)
        n = len(rows)
        is_good, self.outcomes_ = two_classes(given.labels, "y", owner, n, self.good, "good")
        treated, self.arms_ = two_classes(arms, "treatment", owner, n, self.treated, "treated")
        training = TreatedRows(rows, is_good, treated)
        check_arms(training, self.arms_)
        for name, values in zip(self.column_texts_, rows.T, strict=True):
            if np.array_equal(values, treated) or np.array_equal(values, ~treated):
                raise held(name)
        self._center, self.n_rows_ = rows.mean(axis=0), n
        return training

    def _nuisance(self, training: TreatedRows, known: Any, adjust: str, seed: int) -> Nuisance:
        given = training.rows, training.y, training.treatment
        if adjust != "none":
            return nuisance(*given, known, seed, self.n_jobs)
        if isinstance(self.target, str):
            found = propensities(training.rows, training.treatment, known, seed, self.n_jobs)
        else:
            found = np.full(len(training.y), 0.5)
        return Nuisance(found, np.zeros(0), np.zeros(0))

    # -- fitting -----------------------------------------------------------------------------------

    def _fitted(self, problem: Problem, seed: int) -> Fitted:
        if not isinstance(self.learner, str):
            return fit_learner(problem, self.learner)
        forest = None
        if self.learner == "forest" or (self.learner == AUTO and problem.is_least_squares):
            forest = fit_forest(problem, seed, self.n_jobs)
            if self.learner == "forest":
                return forest
        kernels = KernelFit(problem, self.standardize, np.random.default_rng(seed))
        kernel = kernels.fit(self.kernel, self.length_scale, self.penalty)
        return kernel if forest is None else mixed(problem, kernel, forest)

    def _became(self, fitted: Fitted, given: Posed, adjust: str, is_known: bool) -> None:
        for name in ("posterior_", "exact_", "intercept_"):
            self.__dict__.pop(name, None)  # of an earlier fit
        if fitted.posterior is not None:
            self.posterior_ = fitted.posterior
        if fitted.exact is not None:
            self.exact_ = fitted.exact
        self._take(fitted.function, Told.of(fitted, given, adjust, self.target, is_known))

    def _take(self, function: Any, told: Told) -> None:
        """Become what was learned, or read."""
        self._function, self._told = function, told
        self.objective_, self.average_effect_, self.learner_ = (
            told.objective,
            told.average,
            told.learner,
        )
        self.penalty_, self.length_scale_ = told.penalty, told.length
        self.effective_sizes_ = np.array(told.sizes)
        if isinstance(function, KernelFunction):
            self.intercept_ = function.intercept

    # -- predicting --------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Floats:
        """Return h, greater than 0 where treating is said to help, (n_rows,).

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
        found: Floats = self._function.values(rows)
        return found

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
        return self._effects(self.decision_function(X))

    @property
    def _has_sizes(self) -> bool:
        return self.combine == "mean" and SURROGATES[self.surrogate].effect is not None

    def _effects(self, h: Floats) -> Floats:
        scaled = SURROGATES[self.surrogate].effect
        if scaled is None or not self._has_sizes:
            raise ParameterError(
                'surrogate must not be "hinge" and combine must be "mean" for sizes of effects: '
                "else h says their sign alone"
            )
        return np.clip(scaled(h), -1.0, 1.0)

    def effect_interval(self, X: Any, probability: float = 0.95) -> Floats:
        """Return an interval of each effect, of the Gaussian around the function, (n_rows, 2).

        Around a mixture with a forest, it is as wide as around the kernel alone.

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
        if not self._function.has_doubt:
            raise ParameterError(
                'learner must be "kernel", with the mean of squares or logistic losses, for '
                f"intervals, got a function by {self.learner_}"
            )
        return self._interval(self._numbers(X), probability)

    def _interval(self, rows: Floats, probability: float) -> Floats:
        half = ndtri(0.5 + probability / 2.0) * self._function.deviations(rows)
        h = self._values(rows)
        return np.column_stack([self._effects(h - half), self._effects(h + half)])

    def predict(self, X: Any, neutral: float = 0.0) -> NDArray[np.int64]:
        """Return 1 where treating is said to help, -1 where to harm, and 0 of neutral rows.

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
        rows = self._numbers(cells, unknown)
        h, told = self._values(rows), {}
        if intervals and self._has_sizes and self._function.has_doubt:
            low, high = self._interval(rows, 0.95).T.tolist()
            told = {"low_95": low, "high_95": high}
        return Predicted(told, values=self._effects(h) if self._has_sizes else h)

    @property
    def _means(self) -> Floats:
        return self._center

    def __sklearn_is_fitted__(self) -> bool:
        return "_function" in self.__dict__

    # -- what a user sees --------------------------------------------------------------------------

    def _facts(self) -> list[str]:
        return [
            *super()._facts(),
            f'outcome "{level_text(self.outcomes_.tolist()[1])}"',
            f'treated "{level_text(self.arms_.tolist()[1])}"',
        ]

    def _how_made(self) -> Page:
        return self._told.how_made(self.combine, self.surrogate)

    def _page(self) -> Page:
        return self._told.page(self.combine, self._kind())

    def _kind(self) -> str:
        if not self._function.has_doubt and not isinstance(self._function, KernelFunction):
            return "no posterior: not a kernel"
        is_posterior = self.combine == "mean" and self.surrogate in ("square", "logistic")
        return "posterior of a likelihood" if is_posterior else "Gibbs posterior, of the loss"

    def _how_to_read(self) -> list[tuple[str, str]]:
        return [
            ("helps", "rows for which the good outcome is more probable with the treatment"),
            ("average effect", "what treatment adds to the probability of the good outcome"),
            ("counting as", "how many rows of equal weight would say as much"),
        ]

    def _cannot_tell(self) -> list[str]:
        return [
            "It takes for granted that nothing outside of its columns decides both who is treated "
            "and the outcome. The rows cannot say whether that is so.",
            *OF_ROWS,
        ]

    # -- files -------------------------------------------------------------------------------------

    def _own_record(self) -> dict[str, Any]:
        if not hasattr(self._function, "to_record"):
            raise ParameterError(
                f'learner must be "kernel" or "forest" to be saved, got {self.learner_}'
            )
        return {
            "function": self._function.to_record(),
            "outcomes": classes_record(self.outcomes_),
            "arms": classes_record(self.arms_),
            "center": self._center.tolist(),
            "told": self._told._asdict(),
        }

    def _fields(self) -> dict[str, Any]:
        return {**self._encoding_fields(), **self._own_record()}

    def _restore(self, record: Mapping[str, Any]) -> None:
        self._read_encoding(record)
        n_columns = len(self._encoder.source)
        self.outcomes_, self.arms_ = map(read_classes, (record["outcomes"], record["arms"]))
        self._center = np.array(record["center"], np.float64)
        if (len(self.outcomes_), len(self.arms_)) != (2, 2) or self._center.shape != (n_columns,):
            raise ValueError("a saved model of effects has two outcomes and two arms")
        told = Told.from_record(record["told"])
        kind = FUNCTIONS[told.learner]
        self._take(kind.from_record(record["function"], n_columns), told)
