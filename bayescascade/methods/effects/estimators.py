"""Models of what a treatment does to each row."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.errors import DataError, ParameterError, warn_user
from bayescascade.base.validation import check_integer, check_probability, check_real, check_weights
from bayescascade.data.given import GivenRows
from bayescascade.data.labels import check_labels, classes_record, find_classes, read_classes
from bayescascade.data.levels import level_text
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.data.unknown import UnknownCells
from bayescascade.methods.effects.adjustment import (
    Nuisance,
    doubly_robust,
    nuisance,
    propensities,
)
from bayescascade.methods.effects.fitting import (
    Fitted,
    FittedLearner,
    KernelFit,
    Problem,
    fit_forest,
    mixed,
)
from bayescascade.methods.effects.learned import FUNCTIONS, KernelFunction
from bayescascade.methods.effects.losses import SURROGATES, effective_size, target_weights
from bayescascade.methods.effects.parameters import ADJUSTMENTS, AUTO, TARGETS, EffectParameters
from bayescascade.methods.effects.posterior import EffectPosterior
from bayescascade.model.matrix_estimator import MatrixEstimator
from bayescascade.model.record import NOT_SAVED
from bayescascade.model.reporting import OF_ROWS
from bayescascade.model.roles import Predicted
from bayescascade.model.search import Seed, seed_sequence
from bayescascade.report.numbers import count_texts, share_text
from bayescascade.report.page import Page, Pieces, warning

if TYPE_CHECKING:
    from bayescascade.methods.effects.rules import EffectRules

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_LEAST_ROWS = 10  # of an arm
_EXTREME, _MOST_EXTREME, _NO_OVERLAP = 0.05, 0.1, 0.9  # propensity; shares of rows beyond it
_WORDS = {"doubly_robust": "doubly robust", "residuals": "residuals", "none": "no adjustment"}


@dataclass(frozen=True)
class TreatedRows:
    """Rows of the matrix, whether their outcome is good, and whether they are treated."""

    rows: Floats  # (n, d)
    y: Flags  # (n,)
    treatment: Flags  # (n,)


@dataclass(eq=False, repr=False, kw_only=True)
class EffectModel(MatrixEstimator):
    """The effect of a treatment on each row, of two outcomes and two arms.

    Learns one function h(x) whose sign says whether treating makes the good outcome more probable;
    of a row only one outcome is seen, the other must be comparable rows': what decides who is
    treated must be in X.

    With ``combine="max"``, the thesis's minimax, the function minimizes the larger of two risks. It
    may find no effect where there is one for everyone: where the good outcome has probability .9 if
    treated and .6 if not, its minimizer is h = 0. The mean of the risks is as good a bound, a
    tighter one, and has the sign of the effect.

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
    _told: dict[str, Any] = field(init=False)  # what the page says beside
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
        adjust = self._adjustment()
        training = self._read_rows(X, y, treatment)
        known = _checked_propensity(propensity, len(training.y))
        seed = int(seed_sequence(self.random_state).generate_state(1)[0] >> 1)
        found = self._nuisance(training, known, adjust, seed)
        problem = self._problem(training, found, adjust)
        self._overlap(found.propensity, training.treatment, known is None)
        fitted = self._fitted(problem, np.random.default_rng(seed), seed)
        self._became(fitted)
        self._told = {
            "adjust": adjust,
            "rows": [int((~training.treatment).sum()), int(training.treatment.sum())],
            "positive": float(np.average(self.decision_values(training.rows) > 0)),
            "known": known is not None,
            "corollary": self._corollary(),
            "target": self.target if isinstance(self.target, str) else "given weights",
            "gap": getattr(fitted.exact, "gap", None),
        }
        return self

    # -- reading -----------------------------------------------------------------------------------

    def _read_rows(self, X: Any, y: Any, sample_weight: Any = None) -> TreatedRows:
        """Learn columns, outcomes and arms; the third is who is treated."""
        treatment, owner = sample_weight, type(self).__name__
        given = GivenRows.labeled(X, y)
        if isinstance(treatment, str):
            if not given.is_named or treatment not in given.cells.columns:
                raise ParameterError(f"treatment must name a column of X, got {treatment!r}")
            arms = given.cells[treatment]
            given = GivenRows(given.cells.drop(columns=treatment), given.labels)
        else:
            arms = treatment
            name = getattr(treatment, "name", None)
            if given.is_named and name is not None and name in given.cells.columns:
                raise DataError(f'X must not hold the treatment, got it as column "{name}"')
        self._set_encoder(MatrixEncoder.learn(given, self._policy()))
        rows = np.asarray(self._encoder.transform(given, owner), np.float64)
        outcomes, self.outcomes_ = _two(given.labels, "y", owner, len(rows), self.good, "good")
        treated, self.arms_ = _two(arms, "treatment", owner, len(rows), self.treated, "treated")
        for place, arm in enumerate(self.arms_.tolist()):
            of = outcomes[treated == bool(place)]
            told = f'arm "{level_text(arm)}"'
            if len(of) < _LEAST_ROWS:
                raise DataError(f"{told} must have at least {_LEAST_ROWS} rows, got {len(of)}")
            if of.all() or not of.any():
                raise DataError(f"{told} must have rows of both outcomes, got one")
        for place, name in enumerate(self.column_texts_):
            values = rows[:, place]
            if any(np.array_equal(values, each) for each in (treated, 1.0 - treated)):
                raise DataError(f'X must not hold the treatment, got it as column "{name}"')
        self._center, self.n_rows_ = rows.mean(axis=0), len(rows)
        return TreatedRows(rows, outcomes, treated)

    def _adjustment(self) -> str:
        """Return how labels are adjusted, "auto" resolved; ParameterError if that cannot be."""
        adjust = "none" if self.adjust is False else self.adjust
        if not isinstance(adjust, str) or adjust not in (AUTO, *ADJUSTMENTS):
            raise ParameterError(
                f"adjust must be {', '.join(map(repr, (AUTO, *ADJUSTMENTS)))} or False, "
                f"got {self.adjust!r}"
            )
        is_able = self.surrogate == "square" and self.combine == "mean"
        if adjust == AUTO:
            is_classifier = hasattr(self.learner, "predict_proba")
            adjust = "doubly_robust" if is_able and not is_classifier else "none"
        if adjust != "none" and not is_able:
            raise ParameterError(
                f'adjust must be "none" unless surrogate is "square" and combine "mean", '
                f"got {adjust!r}"
            )
        if isinstance(self.learner, str) and self.learner not in (AUTO, "kernel", "forest"):
            raise ParameterError(
                f'learner must be "auto", "kernel", "forest" or an estimator, got {self.learner!r}'
            )
        if self.learner == "forest" and not is_able:
            raise ParameterError(
                'learner must be "kernel" or an estimator unless surrogate is "square" and '
                f'combine "mean", got {self.learner!r}'
            )
        if isinstance(self.target, str) and self.target not in TARGETS:
            raise ParameterError(
                f"target must be {', '.join(map(repr, TARGETS))} or an array, got {self.target!r}"
            )
        return adjust

    def _nuisance(self, training: TreatedRows, known: Any, adjust: str, seed: int) -> Nuisance:
        given = training.rows, training.y, training.treatment
        if adjust != "none":
            return nuisance(*given, known, seed, self.n_jobs)
        if isinstance(self.target, str):
            found = propensities(training.rows, training.treatment, known, seed, self.n_jobs)
        else:
            found = np.full(len(training.y), 0.5)
        return Nuisance(found, np.zeros(0), np.zeros(0))

    def _problem(self, training: TreatedRows, found: Nuisance, adjust: str) -> Problem:
        """Return labels and weights to learn from."""
        y, treatment, e = training.y, training.treatment, found.propensity
        extra = np.ones(len(y))
        if isinstance(self.target, str):
            weights = target_weights(self.target, e, treatment)
        else:
            extra = weights = check_weights("target", self.target, len(y))
            if not (weights > 0.0).all():
                raise DataError("target must be > 0 in every row")
        self.effective_sizes_ = np.array([
            effective_size(weights[~treatment]), effective_size(weights[treatment])
        ])  # fmt: skip
        labels = np.where(y == treatment, 1.0, -1.0)
        self.average_effect_ = None
        if adjust != "none":
            of_target = {"treated": e, "population": np.ones_like(e), "overlap": e * (1.0 - e)}
            weights = of_target[self.target] if isinstance(self.target, str) else extra
            labels = doubly_robust(y, treatment, *found)
            self.average_effect_ = float(np.average(labels, weights=weights))
        if adjust == "residuals":
            mean = found.untreated + e * (found.treated - found.untreated)
            labels = (y - mean) / (treatment - e)
            weights = (treatment - e) ** 2 * extra
        return Problem(
            training.rows, labels, weights, treatment, adjust != "none", self.surrogate,
            self.combine,
        )  # fmt: skip

    def _overlap(self, propensity: Floats, treatment: Flags, is_estimated: bool) -> None:
        """Refuse arms that do not overlap, and warn where they hardly do."""
        edge = np.minimum(propensity, 1.0 - propensity)
        other = np.where(treatment, 1.0 - propensity, propensity)
        if is_estimated and np.mean(other < _EXTREME) > _NO_OVERLAP:
            raise DataError(
                "arms must overlap, got columns that tell who is treated in nearly every row: no "
                "row of one arm can be compared with one of the other"
            )
        extreme = float(np.mean(edge < _EXTREME))
        if extreme > _MOST_EXTREME:
            warn_user(UserWarning(
                f"arms hardly overlap: {share_text(extreme)} of rows have a probability under "
                f"{_EXTREME:g} of one arm, so effects there rest on few rows; target \"overlap\" "
                "counts them least"
            ))  # fmt: skip

    # -- fitting -----------------------------------------------------------------------------------

    def _fitted(self, problem: Problem, rng: np.random.Generator, seed: int) -> Fitted:
        if not isinstance(self.learner, str):
            return self._fitted_learner(problem)
        is_square = self.surrogate == "square" and self.combine == "mean"
        forest = kernel = None
        if self.learner == "forest" or (self.learner == AUTO and is_square):
            forest = fit_forest(problem, seed, self.n_jobs)
        if self.learner != "forest":
            kernel = KernelFit(problem, self.standardize, rng).fit(
                self.kernel, self.length_scale, self.penalty
            )
        if forest is None or kernel is None:
            self.learner_ = "kernel" if forest is None else "forest"
            found = kernel or forest
            assert found is not None
            return found
        found = mixed(problem, kernel, forest)
        self.learner_ = next(n for n, kind in FUNCTIONS.items() if isinstance(found.function, kind))
        return found

    def _fitted_learner(self, problem: Problem) -> Fitted:
        learner = clone(self.learner)
        weights = problem.weights
        if not problem.is_adjusted:
            weights = problem.arms.weights
        weights = weights / weights.mean()
        is_classifier = hasattr(learner, "predict_proba")
        if is_classifier and (problem.is_adjusted or self.surrogate != "logistic"):
            raise ParameterError(
                'learner must be a regressor unless surrogate is "logistic" and adjust "none", '
                f"got {learner!r}"
            )
        if not is_classifier and self.surrogate != "square":
            raise ParameterError(
                f'learner must be a classifier unless surrogate is "square", got {learner!r}'
            )
        labels = problem.labels > 0 if is_classifier else problem.labels
        learner.fit(problem.rows, labels, sample_weight=weights)
        self.learner_ = type(learner).__name__
        function = FittedLearner(learner)
        return Fitted(function, None, problem.risk(function.values(problem.rows)), None, None, None)

    def _became(self, fitted: Fitted) -> None:
        for name in ("posterior_", "exact_", "intercept_"):
            self.__dict__.pop(name, None)  # of an earlier fit
        self._function, self.objective_ = fitted.function, fitted.objective
        self.penalty_, self.length_scale_ = fitted.penalty, fitted.length
        if fitted.posterior is not None:
            self.posterior_ = fitted.posterior
        if fitted.exact is not None:
            self.exact_ = fitted.exact
        if isinstance(fitted.function, KernelFunction):
            self.intercept_ = fitted.function.intercept

    def _corollary(self) -> bool:
        """Whether the maximum is the risk of the treated alone, so that no ratio matters."""
        alpha = getattr(self.__dict__.get("exact_"), "alpha", 0.5)
        return self.combine == "max" and self.target == "treated" and bool(alpha > 1.0 - 1e-6)

    # -- predicting --------------------------------------------------------------------------------

    def decision_values(self, rows: Floats) -> Floats:
        """Return h of rows of the matrix, (n_rows,)."""
        found: Floats = self._function.values(rows)
        return found

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
        return self.decision_values(np.asarray(self._matrix(X), np.float64))

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

    def _effects(self, h: Floats) -> Floats:
        scaled = SURROGATES[self.surrogate].effect
        if self.combine == "max" or scaled is None:
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
        rows = np.asarray(self._matrix(X), np.float64)
        half = ndtri(0.5 + probability / 2.0) * self._function.deviations(rows)
        h = self.decision_values(rows)
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
        return self._signs(self.decision_function(X), check_probability("neutral", neutral))

    @staticmethod
    def _signs(h: Floats, neutral: float) -> NDArray[np.int64]:
        signs = np.sign(h).astype(np.int64)
        signs[np.argsort(np.abs(h), kind="stable")[: round(neutral * len(h))]] = 0
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
        rows, owner = np.asarray(self._matrix(others), np.float64), type(self).__name__
        named = {"y": (y, self.outcomes_), "treatment": (treatment, self.arms_)}
        is_good, is_treated = (
            _second(labels, known, f"{name} held out", owner, len(rows))
            for name, (labels, known) in named.items()
        )
        known = _checked_propensity(propensity, len(rows))
        found = nuisance(rows, is_good, is_treated, known, n_jobs=self.n_jobs)
        outcomes = doubly_robust(is_good, is_treated, *found)
        return rules.fit(X, h, (others, self.decision_values(rows), outcomes))

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
        rows = np.asarray(self._matrix(cells, unknown), np.float64)
        h = self.decision_values(rows)
        has_size = self.combine == "mean" and SURROGATES[self.surrogate].effect is not None
        told: dict[str, Any] = {}
        if intervals and has_size and self._function.has_doubt:
            half = ndtri(0.975) * self._function.deviations(rows)
            told = {
                "low_95": self._effects(h - half).tolist(),
                "high_95": self._effects(h + half).tolist(),
            }
        return Predicted(told, values=self._effects(h) if has_size else h)

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
        rows = count_texts(self._told["rows"])
        sizes = count_texts([round(each) for each in self.effective_sizes_.tolist()])
        chosen = [
            f"{name} {value:.3g}"
            for name, value in (("length", self.length_scale_), ("penalty", self.penalty_))
            if value is not None
        ]
        known = "known propensity" if self._told["known"] else "estimated propensity"
        target = self._told["target"]
        return (
            Pieces([
                f"{self.combine} of {self.surrogate} losses", _WORDS[self._told["adjust"]],
                f"by a {self.learner_}", *chosen,
            ]),
            Pieces([
                f"{rows[1]} treated, counting as {sizes[1]}; {rows[0]} not, as {sizes[0]}",
                f"target {target}, {known}",
            ]),
        )  # fmt: skip

    def _page(self) -> Page:
        told = [f"treating is said to help {share_text(self._told['positive'])} of rows"]
        if self.average_effect_ is not None:
            told.append(f"average effect {self.average_effect_:+.3f}")
        blocks: list[Any] = [Pieces(told), Pieces([*self._proof(), self._kind()])]
        if self._told["corollary"]:
            blocks.append(Pieces(["the risk of the treated alone decides: propensities do not"]))
        if self.combine == "max":
            blocks.append(warning(
                'combine "max" may find no effect where all rows gain: "mean" has the right sign'
            ))  # fmt: skip
        return tuple(blocks)

    def _proof(self) -> list[str]:
        gap = self._told["gap"]
        proved = [] if gap is None else [f"no function of the kernel is lower by over {gap:.1g}"]
        return [f"objective {self.objective_:.6g}", *proved]

    def _kind(self) -> str:
        if not self._function.has_doubt and not isinstance(self._function, KernelFunction):
            return "no posterior: not a kernel"
        is_posterior = self.combine == "mean" and self.surrogate in ("square", "logistic")
        return "posterior of a likelihood" if is_posterior else "Gibbs posterior, of the loss"

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
            "sizes": self.effective_sizes_.tolist(),
            "average": self.average_effect_,
            "objective": self.objective_,
            "chosen": [self.penalty_, self.length_scale_],
            "told": self._told,
        }

    def _fields(self) -> dict[str, Any]:
        return {**self._encoding_fields(), **self._own_record()}

    def _restore(self, record: Mapping[str, Any]) -> None:
        self._read_encoding(record)
        n_columns = len(self._encoder.source)
        kind = record["function"]["kind"]
        function = FUNCTIONS[kind].from_record(record["function"], n_columns)
        self.outcomes_, self.arms_ = map(read_classes, (record["outcomes"], record["arms"]))
        self._center = np.array(record["center"], np.float64)
        self.effective_sizes_ = np.array(record["sizes"], np.float64)
        average = record["average"]
        self.average_effect_ = None if average is None else check_real("average", average)
        self.objective_ = check_real("objective", record["objective"])
        self.penalty_, self.length_scale_ = (
            None if each is None else check_real("chosen", each, above=0.0)
            for each in record["chosen"]
        )
        self.learner_ = kind
        told = dict(record["told"])
        self._told = {
            "adjust": ADJUSTMENTS[ADJUSTMENTS.index(told["adjust"])],
            "target": ("given weights", *TARGETS)[
                ("given weights", *TARGETS).index(told["target"])
            ],
            "rows": [check_integer("rows", each, 1) for each in told["rows"]],
            "positive": check_probability("positive", told["positive"]),
            "known": bool(told["known"]),
            "corollary": bool(told["corollary"]),
            "gap": None if told["gap"] is None else check_real("gap", told["gap"], minimum=0.0),
        }
        sizes = len(self.outcomes_), len(self.arms_), len(self.effective_sizes_)
        if sizes != (2, 2, 2) or self._center.shape != (n_columns,):
            raise ValueError("a saved model of effects has two outcomes and two arms")
        if isinstance(function, KernelFunction):
            self.intercept_ = function.intercept
        self._function = function


@dataclass(eq=False, repr=False, kw_only=True)
class CausalSVM(EffectModel):
    """The thesis's conditional-difference support vector machine, exactly solved.

    An `EffectModel` of the larger of two hinge risks over the treated population, without
    adjustment: see there for what it cannot find.

    Parameters
    ----------
    learner
        "auto" and "kernel" are the same here.

    Examples
    --------
    >>> import numpy as np
    >>> from bayescascade import CausalSVM
    >>> rng = np.random.default_rng(0)
    >>> X, treatment = rng.normal(size=(200, 2)), rng.random(200) < 0.5
    >>> y = treatment == (X[:, 0] > 0)
    >>> model = CausalSVM(kernel="rbf", length_scale=2.0, penalty=1e-4, random_state=0)
    >>> model = model.fit(X, y, treatment, 0.5)
    >>> model.exact_.gap < 1e-8, model.predict([[1.5, 0.0], [-1.5, 0.0]]).tolist()
    (True, [1, -1])
    """

    model_name: ClassVar[str] = "CausalSVM"
    title: ClassVar[str] = "causal support vector machine"
    declares = EffectParameters

    surrogate: str = "hinge"
    combine: str = "max"
    adjust: str | bool = False
    kernel: str = "rbf"
    target: Any = "treated"
    standardize: bool = False


def _two(
    labels: Any, name: str, owner: str, n_rows: int, second: Any = None, parameter: str = ""
) -> tuple[Flags, NDArray[Any]]:
    """Return whether labels are the second of two, (n_rows,), and both; DataError if not two.

    The second is that in order, or the one given by a parameter.
    """
    checked = check_labels(labels, name, owner)
    if len(checked) != n_rows:
        raise DataError(f"{name} must have a label per row of X, {n_rows:,}, got {len(checked):,}")
    classes, codes = find_classes(checked, name)
    if len(classes) != 2:
        raise DataError(f"{name} must have two values, got {len(classes)}")
    if second is not None and second not in classes.tolist():
        told = " or ".join(map(repr, classes.tolist()))
        raise ParameterError(f"{parameter} must be {told}, got {second!r}")
    if second == classes.tolist()[0] and second is not None:
        return codes == 0, classes[::-1]
    return codes == 1, classes


def _second(labels: Any, known: NDArray[Any], name: str, owner: str, n_rows: int) -> Flags:
    """Return whether labels are the second of two that are known, both of which there must be."""
    found, classes = _two(labels, name, owner, n_rows)
    if set(classes.tolist()) != set(known.tolist()):
        raise DataError(f"{name} must be of those of fit, {known.tolist()}, got {classes.tolist()}")
    return found if classes.tolist() == known.tolist() else ~found


def _checked_propensity(propensity: ArrayLike | None, n_rows: int) -> Any:
    """Return a known propensity as a number or (n_rows,) array; ParameterError unless in (0, 1)."""
    if propensity is None:
        return None
    given = np.asarray(propensity, np.float64)
    if given.shape not in ((), (n_rows,)):
        raise ParameterError(f"propensity must be a number or {n_rows} of them, got {given.shape}")
    wrong = ~((given > 0.0) & (given < 1.0))
    if wrong.any():
        raise ParameterError(
            f"propensity must be > 0 and < 1, got {np.atleast_1d(given)[np.atleast_1d(wrong)][0]:g}"
        )
    return given
