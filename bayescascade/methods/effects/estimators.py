"""Models of what a treatment does to each row."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from bayescascade.base.notices import notice
from bayescascade.base.threads import single_threaded
from bayescascade.data.given import GivenRows
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.methods.effects.answers import EffectAnswers
from bayescascade.methods.effects.fitting import MOST_CHOOSING, n_choosing
from bayescascade.methods.effects.hinge import MOST_EXACT
from bayescascade.methods.effects.learned import LearnedEffects
from bayescascade.methods.effects.learners import fit_function
from bayescascade.methods.effects.parameters import AUTO, EffectParameters, resolved_adjustment
from bayescascade.methods.effects.posterior import EffectPosterior
from bayescascade.methods.effects.problem import compared, posed
from bayescascade.methods.effects.reading import (
    TreatedRows,
    check_arms,
    check_overlap,
    check_propensity,
    two_classes,
    without_treatment,
)
from bayescascade.model.record import NOT_SAVED
from bayescascade.model.search import Seed, seed_sequence

Floats = NDArray[np.float64]


@dataclass(eq=False, repr=False, kw_only=True)
class EffectModel(EffectAnswers):
    """Learns the effect of a treatment on each row, with two outcomes and two arms.

    It learns one function h(x). Its sign says whether treatment makes the good outcome more
    probable. A row shows only the outcome of its own arm; comparable rows show the other. So
    everything that influences who is treated must be in X.

    With ``combine="max"``, the minimax of the thesis, the function minimizes the larger of two
    risks. It may miss an effect that everyone has: if the good outcome has probability .9 with
    treatment and .6 without, its minimizer is h = 0. The mean of the risks is a tighter bound, and
    has the sign of the effect.

    Parameters
    ----------
    adjust
        "auto": doubly robust for the square and the mean, otherwise "none". False means "none".

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

    exact_: Any = field(init=False)
    posterior_: EffectPosterior = field(init=False)

    def fit(self, X: Any, y: Any, treatment: Any, propensity: Any = None) -> Self:
        """Learn for whom the treatment works.

        Parameters
        ----------
        X : DataFrame or other table, paths, mapping of columns, array or list of rows
            What is known before anybody is treated.
        y : (n_rows,) array, or str of files
            Outcomes, of two classes; see `good`.
        treatment : (n_rows,) array, or str
            Arms (two values, see `treated`), or the name of their column in X.
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
            If arms hardly overlap, so that few rows say most; of a fit of over ten seconds.
        """
        self.declares.check(self)
        adjust = resolved_adjustment(self)
        training = self._read_rows(X, y, treatment)
        known = check_propensity(propensity, len(training.y))
        notice(f"a fit to {len(training.y):,} rows", self.expected_seconds(len(training.y)))
        seed = int(seed_sequence(self.random_state).generate_state(1)[0] >> 1)
        with single_threaded():
            found = compared(training, known, adjust, self.target, seed, self.n_jobs)
            given = posed(training, found, adjust, self.target, self.surrogate, self.combine)
            check_overlap(found.propensity, training.treatment, known is None)
            fitted = fit_function(given.problem, self, seed)
        for name in ("posterior_", "exact_", "intercept_"):
            self.__dict__.pop(name, None)  # of an earlier fit
        if fitted.posterior is not None:
            self.posterior_ = fitted.posterior
        if fitted.exact is not None:
            self.exact_ = fitted.exact
        is_known = known is not None
        self._take(LearnedEffects.of(fitted, given, adjust, self.target, is_known))
        return self

    def expected_seconds(self, n_rows: int) -> float:
        """Return about how many seconds of one core `fit` takes, of ten columns."""
        n_fits = n_choosing(self.kernel, self.length_scale, self.penalty)
        if self.kernel == AUTO and self.surrogate == "square" and self.combine == "mean":
            n_fits = 0  # scales by the marginal likelihood
        n_tried = min(n_rows, MOST_CHOOSING)
        if self.surrogate != "hinge":
            return 0.15 * math.sqrt(n_rows) + 5e-5 * n_tried * n_fits
        return 2.5e-10 * min(n_rows, MOST_EXACT) ** 3 + 1.5e-7 * n_tried**2 * n_fits

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
        check_arms(training, self.arms_, self.column_texts_)
        self._center, self.n_rows_ = rows.mean(axis=0), n
        return training
