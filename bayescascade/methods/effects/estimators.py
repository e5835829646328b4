"""Models of the effect of a treatment on each row."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.arrays import Flags, Floats, Integers
from bayescascade.base.store import As, Of, Saved
from bayescascade.base.threads import single_threaded
from bayescascade.base.validation import check_probability, check_weights
from bayescascade.data.cell_policy import Matrix
from bayescascade.data.given import GivenRows
from bayescascade.data.labels import CLASSES
from bayescascade.data.levels import level_text
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.methods.effects.adjustment import propensities
from bayescascade.methods.effects.fitting import fit_function
from bayescascade.methods.effects.functions import KernelFunction
from bayescascade.methods.effects.learned import (
    ASSUMED,
    HOW_TO_READ,
    NOT_MEASURED,
    LearnedEffects,
)
from bayescascade.methods.effects.parameters import EXTENTS, EffectParameters, resolved_adjustment
from bayescascade.methods.effects.posterior import EffectPosterior
from bayescascade.methods.effects.problem import (
    TreatedRows,
    check_arms,
    check_overlap,
    check_propensity,
    compared,
    overlap_of,
    posed,
    second_of,
    two_classes,
    without_treatment,
)
from bayescascade.model.matrix_estimator import MatrixEstimator
from bayescascade.model.record import NOT_SAVED
from bayescascade.model.roles import Predicted
from bayescascade.model.search import Seed, seed_sequence
from bayescascade.model.view import OF_ROWS, View, joined
from bayescascade.report.page import Heading

if TYPE_CHECKING:
    from bayescascade.methods.effects.rules import EffectRules


def _record_of(rules: Any) -> Any:
    return None if rules is None else rules.to_record()


def _read_rules(data: Any) -> Any:
    from bayescascade.methods.effects.rules import EffectRules

    return None if data is None else EffectRules.from_record(data)


@dataclass(eq=False, repr=False, kw_only=True)
class EffectModel(MatrixEstimator):
    """Model of the effect of a treatment on each row, for two outcomes and two arms.

    It learns one function h(x). Its sign says whether treatment makes the good outcome more
    probable. Only the outcome under the row's own arm is observed; the other outcome is inferred
    from comparable rows. So X must contain all variables that influence both treatment and outcome.

    With ``combine="max"``, the minimax of the thesis, the function minimizes the larger of two
    risks. It may miss an effect that is the same for all rows: if the good outcome has probability
    .9 with treatment and .6 without, the minimizer is h = 0. The mean of the risks is a tighter
    bound, and its minimizer has the sign of the effect.

    Parameters
    ----------
    adjust
        "auto": doubly robust for the square and the mean, otherwise "none". False means "none".

    Attributes
    ----------
    objective_ : float
        Risk plus penalty.
    exact_ : object
        For kernels: the `objective`, and a `gap` by which another function may have a lower
        objective.
    intercept_ : float
        Intercept, for kernels.
    penalty_, length_scale_ : float or None
        Penalty and length scale, given or chosen, for kernels.
    learner_ : str
        What was learned: "kernel", "forest", "T-learner", some of them, such as "kernel and
        forest", or the class of a given learner.
    posterior_ : EffectPosterior
        Posterior over functions, for `explore`; only for kernels, and not in saved models.
    effective_sizes_ : (2,) float64
        Effective numbers of untreated and of treated rows, given their weights.
    average_effect_ : MeasuredEffects or None
        Doubly robust estimate of the average effect in the target population, as one group, with
        its interval. None without doubly robust outcomes or residuals.
    slope_ : EffectSlope or None
        Whether effects differ between rows: the slope of doubly robust outcomes on estimates from
        other rows. `effect` is shrunk by its `factor`. Only with the learner "auto".
    effect_rules_ : EffectRules or None
        Rules of the last `explain` with held-out rows, which prints, reports and files contain.
    outcomes_, arms_ : (2,) array
        Labels of outcomes and arms. The second ones are the good outcome and the treated arm.

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
    effort: str = EffectParameters.effort.default
    standardize: bool = EffectParameters.standardize.default
    random_state: Seed = EffectParameters.random_state.default
    n_jobs: int | None = EffectParameters.n_jobs.default
    missing: str = EffectParameters.missing.default
    unknown: str = EffectParameters.unknown.default

    exact_: Any = field(init=False)
    posterior_: EffectPosterior = field(init=False)
    outcomes_: Annotated[NDArray[Any], CLASSES, Saved("outcomes")] = field(init=False)
    arms_: Annotated[NDArray[Any], CLASSES, Saved("arms")] = field(init=False)
    effect_rules_: Annotated[Any, As(_record_of, _read_rules), Saved("rules")] = field(init=False)

    _center: Annotated[Floats, Of("columns"), Saved("center")] = field(init=False)
    _learned: Annotated[LearnedEffects, Saved("learned")] = field(init=False)

    # -- fitting -----------------------------------------------------------------------------------

    def fit(
        self, X: Any, y: Any, treatment: Any, propensity: Any = None, sample_weight: Any = None
    ) -> Self:
        """Learn for whom the treatment works.

        Parameters
        ----------
        X : DataFrame or other table, paths, mapping of columns, array or list of rows
            Variables that are known before treatment.
        y : (n_rows,) array, or str of files
            Outcomes, of two classes; see `good`.
        treatment : (n_rows,) array, or str
            Arms (two values, see `treated`), or the name of their column in X.
        propensity : float, or (n_rows,) array, optional
            The probability of treatment, in (0, 1), if it is known by design.
        sample_weight : (n_rows,) array of float >= 0, or str of files, optional
            Weights of rows, 1 by default. Only their ratios matter. Rows of weight zero are not
            used.

        Raises
        ------
        ParameterError
            If a parameter is out of its range.
        DataError
            If there are not two outcomes and two arms, if an arm has only one outcome or fewer than
            10 rows, if arms do not overlap, if X contains the treatment, or if rows cannot be used.

        Warns
        -----
        UserWarning
            If arms hardly overlap, so that few rows have most of the weight.
        """
        self.declares.check(self)
        adjust = resolved_adjustment(self)
        training, used = self._read_treated(X, y, treatment, sample_weight)
        known, target = check_propensity(propensity, len(used)), self.target
        known = known[used] if np.ndim(known) else known
        if not isinstance(target, str):
            target = check_weights("target", target, len(used))[used]
        seed = int(seed_sequence(self.random_state).generate_state(1)[0] >> 1)
        n_trees = EXTENTS[self.effort].n_trees
        with single_threaded():
            found = compared(training, known, adjust, target, seed, self.n_jobs, n_trees)
            given = posed(training, found, adjust, target, self.surrogate, self.combine)
            check_overlap(found.propensity, training.treatment, known is None)
            fitted = fit_function(given, self, seed)
        for name in ("posterior_", "exact_", "intercept_"):
            self.__dict__.pop(name, None)  # from an earlier fit
        if fitted.posterior is not None:
            self.posterior_ = fitted.posterior
        if fitted.exact is not None:
            self.exact_ = fitted.exact
        is_needed = adjust != "none" or isinstance(target, str)
        overlap = overlap_of(found.propensity) if is_needed else None
        is_known = known is not None
        self._take(LearnedEffects.of(fitted, given, adjust, target, is_known, overlap))
        self.effect_rules_ = None  # of an earlier fit
        return self

    def _read_treated(
        self, X: Any, y: Any, treatment: Any, sample_weight: Any
    ) -> tuple[TreatedRows, Flags]:
        """Learn the columns, outcomes and arms, and return the used rows, and which they are."""
        owner = type(self).__name__
        given, arms = without_treatment(GivenRows.labeled(X, y, sample_weight), treatment)
        self._set_encoder(MatrixEncoder.learn(given, self._policy()))
        rows = np.asarray(self._encoder.transform(given, owner), np.float64)
        n = len(rows)
        is_good, self.outcomes_ = two_classes(given.labels, "y", owner, n, self.good, "good")
        treated, self.arms_ = two_classes(arms, "treatment", owner, n, self.treated, "treated")
        weights = np.ones(n)
        if given.weights is not None:
            weights = check_weights("sample_weight", given.weights, n)
        used = weights > 0.0
        weights = weights[used] / weights[used].mean()
        training = TreatedRows(rows[used], is_good[used], treated[used], weights)
        check_arms(training, self.arms_, self.column_texts_)
        self._center, self.n_rows_ = training.rows.mean(axis=0), len(training.y)
        return training, used

    def _take(self, learned: LearnedEffects) -> None:
        self._learned, self.effective_sizes_ = learned, np.array(learned.sizes)
        self.objective_, self.average_effect_ = learned.objective, learned.average
        self.slope_ = learned.slope
        self.penalty_, self.length_scale_ = learned.penalty, learned.length
        self.learner_ = learned.learner
        if isinstance(learned.function, KernelFunction):
            self.intercept_ = learned.function.intercept

    # -- predicting --------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Floats:
        """Return h, (n_rows,), which is positive if treatment is estimated to help.

        Parameters
        ----------
        X : as in `fit`

        Raises
        ------
        DataError
            If a column is missing or a cell cannot be read.
        """
        return self._values(self._numbers(X))

    def _numbers(self, X: Any) -> Floats:
        return np.asarray(self._matrix(X), np.float64)

    def _values(self, rows: Floats) -> Floats:
        return np.asarray(self._learned.function.values(rows))

    def effect(self, X: Any) -> Floats:
        """Return P(good if treated) - P(good if not), (n_rows,), in [-1, 1].

        Parameters
        ----------
        X : as in `fit`

        Raises
        ------
        ParameterError
            If only the sign is learned: with the hinge loss, or with the maximum of the risks.
        DataError
            If a column is missing or a cell cannot be read.
        """
        return self._learned.effects(self.decision_function(X))

    def predict(self, X: Any, neutral: float = 0.0) -> Integers:
        """Return 1 if treatment is estimated to help, -1 if to harm, and 0 for neutral rows.

        Parameters
        ----------
        X : as in `fit`
        neutral : float in [0, 1]
            Share of the rows that are neutral, which are those with the smallest ``|h|``.

        Raises
        ------
        ParameterError
            If `neutral` is out of its range.
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
        """Return rules that describe where h > 0, and the effect in each rule.

        Parameters
        ----------
        X : as in `fit`
            Rows to learn the rules from, such as those of `fit`. Only their h is used, no outcome.
        held_out : (X, y, treatment[, propensity[, sample_weight]]), optional
            Held-out rows, as in `fit`. Effects are measured on their outcomes, so they must not be
            rows of `fit`. An unknown propensity is estimated from the columns, and intervals hold
            as far as this estimate is right. The model keeps these rules in `effect_rules_`. By
            default no effects are measured, and agreement of the rules with h is measured on a
            fifth of X.
        **parameters
            Parameters of `EffectRules`, such as ``kind="tree"``.

        Raises
        ------
        ParameterError
            If a parameter is out of its range, or no condition has the minimum support.
        DataError
            If rows cannot be used, or held-out rows have other outcomes or arms than `fit`.
        """
        from bayescascade.methods.effects.rules import EffectRules

        rules, h = EffectRules(**parameters), self.decision_function(X)
        if held_out is None:
            return rules.fit(X, h)
        others, y, treatment, propensity, weights = (*held_out, None, None)[:5]
        rows, owner = self._numbers(others), type(self).__name__
        is_good = second_of(y, self.outcomes_, "y held out", owner, len(rows))
        is_treated = second_of(treatment, self.arms_, "treatment held out", owner, len(rows))
        known = check_propensity(propensity, len(rows))
        if known is None:
            known = self._estimated(rows, is_treated)
        measured = others, self._values(rows), is_good, is_treated, known, weights
        self.effect_rules_ = rules.fit(X, h, measured)
        return rules

    def _estimated(self, rows: Floats, treated: Flags) -> Floats:
        if treated.all() or not treated.any():
            return np.full(len(rows), 0.5)  # nothing is measured in one arm
        with single_threaded():
            n_trees, weights = EXTENTS[self.effort].n_trees, np.ones(len(rows))
            return propensities(rows, treated, None, 0, self.n_jobs, weights, n_trees)

    def _predicted(self, rows: Matrix, intervals: bool, explain: bool) -> Predicted:
        """Return effects, or h if only its sign is learned."""
        del intervals, explain  # no interval for single rows holds
        learned, h = self._learned, self._values(np.asarray(rows, np.float64))
        return Predicted({}, values=learned.effects(h) if learned.has_sizes else h)

    @property
    def _means(self) -> Floats:
        return self._center

    def __sklearn_is_fitted__(self) -> bool:
        return "_learned" in self.__dict__

    # -- what a user sees --------------------------------------------------------------------------

    def view(self) -> View:
        """Return for whom the treatment works, then how this was learned, and the rules."""
        view, learned = super().view(), self._learned
        rules = None if self.effect_rules_ is None else self.effect_rules_.view()
        facts = [
            *view.facts,
            f'outcome "{level_text(self.outcomes_.tolist()[1])}"',
            f'treated "{level_text(self.arms_.tolist()[1])}"',
        ]
        of_rules = () if rules is None else (Heading(rules.heading), *rules.shown)
        return view._replace(
            heading=[self.title, *facts],
            made=learned.how_made(),
            opens=True,
            shown=joined(learned.page(), of_rules),
            facts=facts,
            lead=[*learned.sentences(), *([NOT_MEASURED] if rules is None else rules.lead)],
            terms=[*HOW_TO_READ, *([] if rules is None else rules.terms)],
            limits=[*ASSUMED, OF_ROWS[0]],  # it is a model of causes, if the assumption is true
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fitted model as plain data at full precision, and what it says in words."""
        rules = None if self.effect_rules_ is None else self.effect_rules_.to_dict()
        return {**self.to_record(), "sentences": self.view().lead, "rules": rules}

    # -- files -------------------------------------------------------------------------------------

    def _sizes(self) -> dict[str, Any]:
        return {**super()._sizes(), "groups": 1}

    def _restore(self, record: Mapping[str, Any]) -> None:
        super()._restore(record)
        if (len(self.outcomes_), len(self.arms_)) != (2, 2):
            raise ValueError("a saved model of effects has two outcomes and two arms")
        self._take(self._learned)
