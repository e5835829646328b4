r"""The additive noise model under differential privacy: Algorithm 3 of Kusner (2016), published.

The rows are divided at random, independently of their cells: regressions are learned from one part
and scored on the other. `protection` bounds the effect of a row on the scores, and noise hides it:

* Test rows, by ranks and HSIC: Laplace noise for both scores.
* Training rows: a private histogram from which the regressions are learned (`regression`).
* Test rows, by IQR: no bound holds for all rows. A bound is proposed, and the number of rows to
  replace until it fails is tested privately (propose-test-release); the scores are published if the
  number is large enough.
* The direction alone: the exponential mechanism, a draw from `DirectionPosterior`.

**Departures from the thesis**, each proved in `protection`, `regression` or `bayescascade.privacy`:
private regressions, which need thousands of rows, instead of noise for the effect of a row on
kernel ridge regressions, which hides nearly everything even with 50,000 rows (and theorem 7, which
bounds the effect, is false); lower sensitivities of rho and HSIC, whose root is published; one test
for both scores, by distances to a proposed bound, instead of two intervals for each IQR (Algorithm
4, whose threshold is wrong for epsilon < 1). Protecting "both" does not cost the sum of both,
because a row is either a test row or a training row.
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from threading import Lock
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import ModelFileError, ParameterError, PrivacyError
from bayescascade.base.store import restored
from bayescascade.base.threads import single_threaded
from bayescascade.base.validation import check_choice, check_integer, check_real
from bayescascade.methods.causal.estimators import DirectionModel
from bayescascade.methods.causal.pair import LEAST_ROWS, Pair, declared_bounds, split_rows
from bayescascade.methods.causal.parameters import PRIVATE_SCORES, PrivateNoiseParameters
from bayescascade.methods.causal.posterior import DIRECTIONS
from bayescascade.methods.causal.protection import (
    ROUNDING,
    PrivacyPlan,
    Protection,
    iqr_distance,
    planned,
)
from bayescascade.methods.causal.regression import (
    KERNEL_RIDGE,
    GaussianFeatures,
    Predict,
    histogram_regressions,
    kernel_ridge,
    regressed,
)
from bayescascade.methods.causal.release import DirectionRelease, direction_of
from bayescascade.methods.causal.scores import SCORES, score_of
from bayescascade.model.record import NOT_SAVED
from bayescascade.model.search import Seed, seed_sequence
from bayescascade.privacy.accounting import LostLedger, PrivacyLedger
from bayescascade.privacy.mechanisms import (
    NoiseSource,
    NoisyValues,
    exponential,
    laplace,
    noise_source,
    propose_test_release,
)
from bayescascade.report.page import Page

_FIXED_BANDWIDTH = 0.2

_PAYING = Lock()  # so that two simultaneous fits pay twice


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateAdditiveNoiseModel(DirectionModel):
    """The direction between two variables, published with differential privacy.

    Parameters
    ----------
    score : {"hsic", "spearman", "kendall", "iqr"}
        How the dependence of residuals on the cause is measured; see `AdditiveNoiseModel`.
    epsilon : float > 0
        Privacy budget of a fit: a change of one row changes no probability by a factor above
        e**epsilon.
    delta : float in [0, 1)
        Delta of the privacy budget: the guarantee may fail with this probability. It must be
        positive, and should be well below 1 / n_rows, for "iqr" with protected test rows, which
        needs a stability test.
    protect : {"both", "test", "train"}
        Rows to protect: all ("both"), those on which scores are computed ("test"), or those to
        which regressions are fitted ("train"). Each fit splits the rows again, so over several fits
        only "both" protects all rows.
    publish : {"scores", "direction"}
        Publish both scores, or only the direction, which is hardly more often right for the same
        epsilon.
    x_bounds, y_bounds : (float, float)
        Bounds of the variables, which must not be computed from these rows. Values outside are
        clipped.
    regularization : float >= 1e-6, optional
        Lambda of kernel ridge regression, ``lambda / 2 |w|**2 + mean squared error``, with
        bandwidth 0.2. None: if training rows are not protected, lambda and bandwidth are chosen on
        them.
    bandwidth : float >= 0.02
        Bandwidth of the Gaussian kernels of "hsic", in half widths of the bounds.
    proposed : float > 0, optional
        Proposed bound on the change of a score by one row, for the stability test. None: a bound
        that normal rows pass.
    noise : {"opendp", "simulated"}
        Source of the noise. "simulated" noise has a seed, protects nobody, and is only for
        simulation studies.
    ledger : PrivacyLedger, optional
        Ledger whose budget is spent. None: a new ledger for one fit. The ledger is not saved or
        pickled with the model. A loaded model needs a new ledger before it can fit.
    random_state : int, SeedSequence, Generator or None
        Seed for splitting the rows, and for simulated noise. Real noise has no seed.

    Attributes
    ----------
    release_ : DirectionRelease
        The published result. The model keeps nothing else about the rows.
    direction_ : {"x->y", "y->x"} or None
        See `DirectionRelease`.
    epsilon_, delta_ : float
        The privacy budget that was spent.
    n_rows_ : int
    names_ : dict of str to str

    Examples
    --------
    >>> import numpy as np
    >>> from bayescascade import PrivateAdditiveNoiseModel
    >>> rng = np.random.default_rng(1)
    >>> dose = rng.uniform(0, 5, 4000)
    >>> response = dose**2 + rng.uniform(0, 5, 4000)
    >>> model = PrivateAdditiveNoiseModel(
    ...     epsilon=1.0, x_bounds=(0, 5), y_bounds=(0, 30), noise="simulated", random_state=0
    ... )
    >>> model.fit(dose, response).direction_
    'x->y'
    """

    declares = PrivateNoiseParameters

    title: ClassVar[str] = "private additive noise model"
    model_name: ClassVar[str] = "PrivateAdditiveNoiseModel"
    _not_saved: ClassVar[tuple[str, ...]] = (*NOT_SAVED, "ledger")

    _is_spent = False

    score: str = PrivateNoiseParameters.score.default
    epsilon: float = PrivateNoiseParameters.epsilon.default
    delta: float = PrivateNoiseParameters.delta.default
    protect: str = PrivateNoiseParameters.protect.default
    publish: str = PrivateNoiseParameters.publish.default
    x_bounds: tuple[float, float] | None = PrivateNoiseParameters.x_bounds.default
    y_bounds: tuple[float, float] | None = PrivateNoiseParameters.y_bounds.default
    regularization: float | None = PrivateNoiseParameters.regularization.default
    bandwidth: float = PrivateNoiseParameters.bandwidth.default
    proposed: float | None = PrivateNoiseParameters.proposed.default
    test_share: float = PrivateNoiseParameters.test_share.default
    noise: str = PrivateNoiseParameters.noise.default
    ledger: PrivacyLedger | None = PrivateNoiseParameters.ledger.default
    random_state: Seed = PrivateNoiseParameters.random_state.default

    def fit(self, x: Any, y: Any) -> Self:
        """Spend the privacy budget, and publish the result.

        Parameters
        ----------
        x, y : (n_rows,) array, list, Series, or table of one column
            The number of rows is not secret. Missing cells are an error, and that is not private.

        Raises
        ------
        ParameterError
            If a parameter is out of its range, bounds are missing, or parameters contradict each
            other.
        DataError
            If a cell is not a finite number (the message names the row), the lengths differ, or
            there are fewer than 20 rows. Nothing is spent then.
        PrivacyError
            If the budget is spent, for example by an earlier fit. Then nothing is published.
        """
        protection = self._protection(self.epsilon)
        x_bounds = declared_bounds("x_bounds", self.x_bounds)
        y_bounds = declared_bounds("y_bounds", self.y_bounds)
        splitting, drawing = seed_sequence(self.random_state).spawn(2)
        noise = noise_source(self.noise, np.random.default_rng(drawing))
        read = Pair.read(x, y)
        n_rows = len(read.x)
        if not protection.can_pass(n_rows):
            raise ParameterError(
                f"epsilon must be larger, or there must be more rows, for score {self.score!r} "
                f"with protect={self.protect!r}: no {n_rows:,} rows would pass its test of "
                f"stability, got epsilon {self.epsilon:g}"
            )
        self._spend(protection, read.names)
        n_test = protection.n_test(n_rows)
        is_test = split_rows(n_rows, n_rows, np.random.default_rng(splitting)) < n_test
        with single_threaded():
            published = self._published(protection, read.within(x_bounds, y_bounds), is_test, noise)
        cost = protection.cost
        self.release_ = DirectionRelease(
            *published, protection.regression_error(n_rows), cost.epsilon, cost.delta,
            self.protect, self.score, n_rows - n_test, n_test, read.names, x_bounds, y_bounds,
            noise.is_private,
        )  # fmt: skip
        self.n_rows_, self.names_ = n_rows, read.names
        return self

    def plan(
        self,
        *,
        n_rows: int | None = None,
        margin: float | None = None,
        epsilon: float | None = None,
        probability: float | None = None,
    ) -> PrivacyPlan:
        """Plan a study: how many rows, or how much epsilon, a stable direction needs.

        The direction is stable if noise does not change it. Three of four quantities are given, and
        the fourth is computed, by theorem 4 of Kusner (2016). No rows are needed, so nothing is
        spent. If there is a stability test, the result is conditional on passing it. The error of
        private regressions must be at most 0.05 half widths of the bounds; their noise makes
        margins smaller.

        Parameters
        ----------
        n_rows : int >= 20, optional
            Total number of rows.
        margin : float > 0, optional
            Difference of the scores without noise, such as from an earlier study.
        epsilon : float > 0, optional
            By default that of the model, if one of the others is left out.
        probability : float in (1/2, 1), optional
            Probability that noise does not change the direction.

        Returns
        -------
        PrivacyPlan
            The four quantities.

        Raises
        ------
        ParameterError
            If not exactly one is left out, one is out of its range, or there is no solution.

        Examples
        --------
        >>> model = PrivateAdditiveNoiseModel(score="spearman", epsilon=1.0)
        >>> model.plan(margin=0.01, probability=0.95).n_rows
        11778
        >>> print(model.plan(n_rows=5000, margin=0.01))
        probability 0.789 that noise does not change the direction
        with 5,000 rows, scores that differ by 0.01, epsilon 1
          score spearman, all rows protected
        """
        check_choice("score", self.score, (*PRIVATE_SCORES, "variance"))
        if n_rows is not None:
            check_integer("n_rows", n_rows, LEAST_ROWS)
        if margin is not None:
            check_real("margin", margin, above=0.0, maximum=min(SCORES[self.score].largest, 1e3))
        given = {"n_rows": n_rows, "margin": margin, "probability": probability}
        if sum(value is None for value in given.values()) == 1 and epsilon is None:
            epsilon = self.epsilon
        known = {name: v for name, v in {**given, "epsilon": epsilon}.items() if v is not None}
        missing = [name for name in (*given, "epsilon") if name not in known]
        if len(missing) != 1:
            raise ParameterError(
                "exactly one of n_rows, margin, epsilon and probability must be left out (it is "
                f"computed), got {', '.join(known) or 'none'}"
            )
        return planned(self._protection, missing[0], known)

    @property
    def direction_(self) -> str | None:
        """The published direction."""
        check_is_fitted(self)
        return self.release_.direction

    @property
    def epsilon_(self) -> float:
        """The spent epsilon."""
        check_is_fitted(self)
        return self.release_.epsilon

    @property
    def delta_(self) -> float:
        """The spent delta."""
        check_is_fitted(self)
        return self.release_.delta

    def _shown(self) -> Page:
        return self.release_.page()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickling, without the ledger: a copy would be a second budget."""
        state: dict[str, Any] = dict(super().__getstate__())
        if self.ledger is None:
            return state
        return {**state, "ledger": LostLedger(), "_is_spent": True}

    def __copy__(self) -> Self:
        """Return a copy that spends from the same ledger."""
        made = self.__class__.__new__(self.__class__)
        made.__dict__.update(self.__dict__)
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a copy that spends from the same ledger."""
        made = self.__class__.__new__(self.__class__)
        made.__dict__.update(deepcopy(self.__dict__, memo))
        return made

    def _fields(self) -> dict[str, Any]:
        return {**super()._fields(), "release": self.release_.to_dict()}

    def _restore(self, record: Mapping[str, Any]) -> None:
        super()._restore(record)
        self.release_, self._is_spent = restored(DirectionRelease, record["release"], {}), True
        release = self.release_
        n_rows = release.n_training + release.n_test
        if (n_rows, release.names) != (self.n_rows_, self.names_):
            raise ModelFileError("a saved release must be of the rows and columns of its model")

    def _protection(self, epsilon: float) -> Protection:
        if self.score == "variance":
            raise ParameterError(
                f"score must be one of {', '.join(PRIVATE_SCORES)}, got 'variance', which one "
                "row can change without bound; 'iqr' also measures spread"
            )
        self.declares.check(self)
        self.declares.check_values(epsilon=epsilon)
        settings = {name: getattr(self, name) for name in Protection.__dataclass_fields__}
        return Protection(**{**settings, "epsilon": epsilon})

    def _spend(self, protection: Protection, names: Mapping[str, str]) -> None:
        """Pay for a fit from the ledger; without one, only once."""
        with _PAYING:
            if self.ledger is not None:
                whose = "" if self.protect == "both" else f" ({self.protect} rows only)"
                what = f"direction between {names['x']} and {names['y']}{whose}"
                self.ledger.spend(protection.cost, what)
            elif self._is_spent:
                raise PrivacyError(
                    "the privacy budget of this model is spent: each release reveals more about "
                    "the same rows; use a ledger with a larger budget, or a new model if you may "
                    "spend more privacy of these people"
                )
            self._is_spent = True

    def _published(
        self, protection: Protection, pair: Pair, is_test: Any, noise: NoiseSource
    ) -> tuple[str | None, dict[str, float] | None, float]:
        """Return the direction, the private scores, and the scale of their noise."""
        n_rows, epsilon = len(pair.x), protection.epsilon
        learned, causes = (pair.x[~is_test], pair.y[~is_test]), (pair.x[is_test], pair.y[is_test])
        predictors = self._regressions(protection, *learned, noise)
        rests = [
            effect - predict(cause).clip(-1.0, 1.0)
            for predict, cause, effect in zip(predictors, causes, causes[::-1], strict=True)
        ]
        tested = list(zip(causes, rests, strict=True))
        scores = [score_of(self.score, *score, protection.kernels) for score in tested]
        each = protection.sensitivity(n_rows)
        if self.publish == "direction" and not each:
            return direction_of(dict(zip(DIRECTIONS, scores, strict=True))), None, 0.0
        if self.publish == "direction":
            lowest = exponential(np.negative(scores), each, epsilon, noise, error=ROUNDING)
            return DIRECTIONS[lowest.index], None, 0.0
        if protection.is_tested:
            distance = iqr_distance([score for both in tested for score in both], each / 2)
            finite = np.nan_to_num(scores, neginf=0.0)  # distance 0: released with delta only
            release = propose_test_release(
                distance, finite, 2 * each, epsilon, protection.delta, noise, error=ROUNDING
            )
        elif not each:  # private regressions on test rows without protection
            release = NoisyValues(np.array(scores), 0.0, protection.cost, noise.is_private)
        else:
            release = laplace(scores, 2 * each, epsilon, noise, error=ROUNDING)
        if release is None:
            return None, None, 0.0
        private = dict(zip(DIRECTIONS, release.values.tolist(), strict=True))
        return direction_of(private), private, release.scale

    def _regressions(
        self, protection: Protection, x: Floats, y: Floats, noise: NoiseSource
    ) -> tuple[Predict, Predict]:
        if protection.protects_training:
            return histogram_regressions(x, y, protection.epsilon, noise)
        amount = self.regularization
        if amount is not None:
            features = GaussianFeatures(_FIXED_BANDWIDTH, -1, 1)
            return kernel_ridge(x, y, features, amount), kernel_ridge(y, x, features, amount)
        return regressed(KERNEL_RIDGE, x, y), regressed(KERNEL_RIDGE, y, x)
