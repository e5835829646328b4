"""Linear classifiers learned from Rademacher observations: boosted, or a posterior's maximum."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import ParameterError
from bayescascade.base.store import Of, Saved, Within, Words, stored_attributes
from bayescascade.base.watch import Watch
from bayescascade.data.levels import level_text
from bayescascade.data.partitions import by_partitions
from bayescascade.methods.rados.boosting import boost
from bayescascade.methods.rados.parameters import LEARNERS, RadoParameters
from bayescascade.methods.rados.posterior import RadoPosterior
from bayescascade.methods.rados.protection import Promise
from bayescascade.methods.rados.rados import Rados
from bayescascade.methods.rados.reading import Reading
from bayescascade.model.explore import explore_by
from bayescascade.model.matrix_classifier import MatrixClassifier
from bayescascade.model.search import Search, Seed
from bayescascade.model.view import OF_ROWS, View, joined
from bayescascade.report.page import Numbers, Page, Pieces, PrintedTable, count_of

_MOST_SHOWN = 20  # coefficients
_MOST_REASONS = 4  # number for a row
_ENOUGH = 2  # from this number of rados for each column, "auto" is "moments"
_MOST_ITERATIONS = 1_000  # for learner "map"


class _FitFacts(NamedTuple):
    """Facts on the rados and on the fit."""

    n_rows: Annotated[int, Within(1)]
    n_rados: Annotated[int, Within(1)]
    support: Annotated[int, Within(1)] | None
    n_rounds_made: Annotated[int, Within(0)]
    stopped_after: Annotated[float, Within(above=0)] | None
    log_risk: float


@dataclass(eq=False, repr=False, kw_only=True)
class RadoBoostClassifier(MatrixClassifier):
    """A linear classifier of two classes that learns from sums of rows (rados), not from rows.

    Parameters
    ----------
    n_rounds : int >= 1
        Rounds of boosting. Each changes one coefficient.
    weak_learner : {"best", "prudential"}
        Feature of each round: the best one, or the median one, as in the paper for noisy rados. On
        four public tables with noise, the median one had more errors.
    kappa : float >= 1
        Divisor of the coefficients of boosting; see `boosting`.
    learner : {"auto", "boost", "map", "moments"}
        "boost": RadoBoost. "map": the maximum of `posterior_`. "moments": the maximum of its
        approximation by mean and covariance of the rados, which is nearly least squares. "auto":
        "moments" if there are at least two rados for each column, otherwise "map". With 1,000
        rados of the default support, "moments" had fewer errors than "boost" on eight of twelve
        public tables, by up to 10 percentage points, and at most 1 point more on the others. With
        100 rados of up to 117 columns, "map" had fewer than "moments" on two of three tables. With
        noise for privacy, learners differ little.
    prior_scale : float > 0
        Prior standard deviation of coefficients in `posterior_`, for features with standard
        deviation 1.
    n_rados, support, standardize, intercept, missing
        Parameters of the rados that `fit` makes; see `Rados.sample`. Its default of `support`
        differs, because rados that are given to others should reveal little about single rows.
    time_limit : float > 0 or None
        Seconds after which a fit stops. The result may then depend on the machine: there are fewer
        rados, which take at most half of the time, and fewer rounds or iterations.

    Attributes
    ----------
    classes_ : (2,) array
    coef_ : (n_matrix_columns,) float64
        Coefficients, in the units of the rows. Text and categories are columns of 0 and 1; see
        `column_texts_`.
    intercept_ : float
    theta_ : (n_columns,) float64
        The coefficients in the units of the rados. The last one is the intercept, if there is one.
    rados_ : Rados
        The rados from which the classifier learned; not in saved models.
    posterior_ : RadoPosterior
        Posterior over `theta_`, for `explore`; not in saved models.
    boosted_ : Boosted or None
        The rounds of boosting, if any; not in saved models.
    promise_ : Promise or None
        The privacy guarantee of the rados, if any.
    learner_ : {"boost", "map", "moments"}
        The learner that was used.

    Notes
    -----
    Probabilities are 1 / (1 + exp(-decision)), as in the logistic model. With many rows, boosting
    gives small coefficients. Then probabilities are near 1/2, and only their order is meaningful.

    Examples
    --------
    >>> import numpy as np
    >>> from bayescascade import RadoBoostClassifier
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> model = RadoBoostClassifier(random_state=0).fit(X, X[:, 0] > X[:, 1])
    >>> bool(model.coef_[0] > 0 > model.coef_[1])
    True
    """

    model_name: ClassVar[str] = "RadoBoostClassifier"
    title: ClassVar[str] = "rado classifier"
    purpose: ClassVar[str] = (
        "Which of two classes a row belongs to, learned from sums of rows in place of rows."
    )

    declares = RadoParameters

    n_rounds: int = RadoParameters.n_rounds.default
    weak_learner: str = RadoParameters.weak_learner.default
    kappa: float = RadoParameters.kappa.default
    learner: str = RadoParameters.learner.default
    prior_scale: float = RadoParameters.prior_scale.default
    n_rados: int = RadoParameters.n_rados.default
    support: int | str | None = RadoParameters.support.default
    standardize: bool = RadoParameters.standardize.default
    intercept: bool = RadoParameters.intercept.default
    random_state: Seed = RadoParameters.random_state.default
    time_limit: float | None = RadoParameters.time_limit.default
    missing: str = RadoParameters.missing.default
    unknown: str = RadoParameters.unknown.default

    _reading: Annotated[Reading, Saved("reading")] = field(init=False)
    theta_: Annotated[Floats, Of("coefficients"), Saved("theta")] = field(init=False)
    learner_: Annotated[str, Words(*LEARNERS[1:]), Saved("learner")] = field(init=False)
    _about: Annotated[_FitFacts, Saved("about")] = field(init=False)
    promise_: Annotated[Promise | None, Saved("promise")] = field(init=False)

    def fit(self, X: Any, y: Any) -> Self:
        """Make rados from rows, and learn from the rados.

        Parameters
        ----------
        X : DataFrame or other table, paths, mapping of columns, array or list of rows
            Tables may be of polars, Arrow, DuckDB, Dask or narwhals. Paths or URLs may be of CSV,
            Parquet or Arrow files; `y` then names the column of labels. Cells are numbers, truth
            values, text or categories; NaN or None is missing.
        y : (n_rows,) array, or str of files
            Labels of two classes.

        Raises
        ------
        ParameterError
            If a parameter is out of its range.
        DataError
            If rows or labels cannot be used.
        """
        watch = Watch(self.time_limit)
        self.declares.check(self)
        with watch.part(0.5), watch.watching():
            rados = Rados.sample(
                X,
                y,
                self.n_rados,
                support=self.support,
                standardize=self.standardize,
                intercept=self.intercept,
                missing=self.missing,
                random_state=self.random_state,
            )
        return self._learn(rados, watch, is_late=len(rados) < self.n_rados)

    def fit_rados(self, rados: Rados) -> Self:
        """Learn from given rados. Parameters for making rados are not used.

        Raises
        ------
        ParameterError
            If a parameter is out of its range, or if `rados` is not a `Rados`.
        """
        watch = Watch(self.time_limit)
        self.declares.check(self)
        if not isinstance(rados, Rados):
            raise ParameterError(f"rados must be Rados, got {type(rados).__name__}")
        return self._learn(rados, watch, is_late=False)

    def _learn(self, rados: Rados, watch: Watch, is_late: bool) -> Self:
        """Learn from rados in the remaining time; `is_late`: too short to make them all."""
        self._set_reading(rados.reading)
        self.rados_, self.promise_ = rados, rados.promise
        self.learner_ = self.learner
        if self.learner == "auto":
            is_enough = len(rados) >= _ENOUGH * rados.values.shape[1]
            self.learner_ = "moments" if is_enough else "map"
        self.posterior_ = RadoPosterior(
            rados.values,
            rados.n_rows,
            prior_scale=self.prior_scale / rados.spreads(),
            approximation="moments" if self.learner_ == "moments" else "none",
            names=rados.reading.columns,
        )
        self.boosted_ = None
        if self.learner_ == "boost":
            with watch.watching():
                self.boosted_ = boost(
                    rados.values, self.n_rounds, weak_learner=self.weak_learner, kappa=self.kappa
                )
            self.theta_ = self.boosted_.theta
        elif self.learner_ == "moments":
            self.theta_ = self.posterior_.peak()
        else:
            scales = self.posterior_.scales  # units in which all coefficients have the same prior
            alike = RadoPosterior(rados.values * scales, rados.n_rows)
            how = Search(
                "ascent", None, 1, 1, 0, None, False, None, self.time_limit,
                max_iter=_MOST_ITERATIONS, watch=watch,
            )  # fmt: skip
            found = explore_by(how, alike, starts=[np.zeros(len(scales))])
            self.theta_ = scales * found.state
        self._about = _FitFacts(
            n_rows=rados.n_rows,
            n_rados=len(rados),
            support=rados.support,
            n_rounds_made=0 if self.boosted_ is None else self.boosted_.n_rounds,
            stopped_after=watch.seconds if is_late or watch.is_up else None,
            log_risk=-rados.n_rows * np.log(2.0) - self.posterior_.log_likelihood(self.theta_),
        )
        return self

    # -- classifying -------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Floats:
        """Return scores, (n_rows,) float64, positive for the second class.

        Raises
        ------
        DataError
            See `predict`.
        """
        return self._decisions(self._matrix(X))

    def _decisions(self, rows: Floats) -> Floats:
        largest = np.finfo(np.float64).max
        with np.errstate(over="ignore", invalid="ignore"):
            cells = np.nan_to_num(self._reading.scaled(rows), posinf=largest, neginf=-largest)
            decisions: Floats = np.nan_to_num(cells @ self.theta_)
        return decisions

    @by_partitions
    def predict(self, X: Any, *, threshold: Any = None, class_costs: Any = None) -> NDArray[Any]:
        """Return the class of each row, (n_rows,); see `MatrixClassifier.predict`."""
        if threshold is not None or class_costs is not None:
            return super().predict(X, threshold=threshold, class_costs=class_costs)
        is_second = self.decision_function(X) > 0.0
        return self.classes_[is_second.astype(np.int64)]

    def _probabilities(self, rows: Floats) -> Floats:
        decisions = self._decisions(rows)
        return np.column_stack([expit(-decisions), expit(decisions)])

    def _block_words(self, rows: Floats) -> dict[str, list[float]]:
        return {"decision": self._decisions(rows).tolist()}

    def _reasons(self, X: Any) -> list[str]:
        """Return the largest terms of each decision; their signs point to the classes."""
        names, texts = self._reading.columns, []
        for row in self._reading.scaled(self._matrix(X)) * self.theta_:
            most = np.argsort(-np.abs(row), kind="stable")[:_MOST_REASONS].tolist()
            parts = [f"{names[j]} {row[j]:+.2f}" for j in most if row[j] != 0.0]
            texts.append(f"decision {row.sum():+.2f}: {', '.join(parts) or 'all terms are zero'}")
        return texts

    @property
    def _means(self) -> Floats:
        return self._reading.center

    # -- what was learned --------------------------------------------------------------------------

    @property
    def coef_(self) -> Floats:
        """Coefficients, in the units of the rows."""
        check_is_fitted(self)
        reading = self._reading
        return self.theta_[: len(reading.units)] / reading.units

    @property
    def intercept_(self) -> float:
        """The decision function for a row of zeros."""
        check_is_fitted(self)
        own = float(self.theta_[-1]) if self._reading.has_intercept else 0.0
        return own - float(self.coef_ @ self._reading.center)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "theta_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    # -- files -------------------------------------------------------------------------------------

    def _fields(self) -> dict[str, Any]:
        return stored_attributes(self)  # the columns are those of the rados

    def _read_columns(self, record: Mapping[str, Any]) -> None:
        """There are none to read: the columns are those of the rados."""

    def _restore(self, record: Mapping[str, Any]) -> None:
        super()._restore(record)
        self._set_reading(self._reading)
        if len(self.theta_) != self._reading.n_columns:
            raise ValueError(f"theta must be {self._reading.n_columns} numbers")
        if (self._about.support or 0) > self._about.n_rows:
            raise ValueError(f"support must be at most n_rows, got {self._about.support}")

    def _sizes(self) -> dict[str, Any]:
        return {}  # the columns are those of the rados

    def _set_reading(self, reading: Reading) -> None:
        self._reading = reading
        self.classes_ = reading.classes
        self._set_encoder(reading.encoder)

    def view(self) -> View:
        """Return what is shown: the guarantee, and the coefficients, the largest first."""
        view = super().view()
        about, after = self._about, self._about.stopped_after
        how = {
            "boost": f"{count_of(about.n_rounds_made, 'round')}, weak learner {self.weak_learner}",
            "map": "maximum of the posterior",
            "moments": "by mean and covariance of the rados",
        }[self.learner_]
        stopped = [] if after is None else [f"stopped at the time limit of {after:g} s"]
        no, yes = (level_text(label) for label in self.classes_.tolist())
        order = np.argsort(-np.abs(self.theta_), kind="stable")[:_MOST_SHOWN]
        hidden = len(self.theta_) - len(order)
        table = PrintedTable(
            [self._reading.columns[k] for k in order],
            [Numbers("coefficient", [f"{self.theta_[k]:.4g}" for k in order])],
            "feature",
        )
        rest: Page = (Pieces([f"and {hidden:,} smaller ones"], "dim"),) if hidden else ()
        signs = f'a coefficient above 0 favors "{yes}", one below 0 "{no}"'
        key = Pieces([signs, "features are scaled as in the rados"], "dim")
        promise = () if self.promise_ is None else self.promise_.page()
        n_rows, n_features = count_of(about.n_rows, "row"), self.n_features_in_
        lines = "Each line is a feature, or a level of one. The most important lines come first."
        return view._replace(
            heading=[
                self.title,
                f"{count_of(about.n_rados, 'rado')} of {n_rows}",
                count_of(n_features, "feature"),
            ],
            made=(Pieces([how, *stopped, f"log rado-risk {about.log_risk:,.2f}"]),),
            shown=joined(promise, (table, *rest, key)),
            facts=[n_rows, count_of(about.n_rados, "sum of rows", "sums of rows")],
            terms=[
                ("", lines),
                (
                    "coefficient",
                    f'above 0, a large value (or this level) makes "{yes}" more probable, below 0 '
                    f'it makes "{no}" more probable; values far from 0 have a strong effect',
                ),
            ],
            limits=[
                "Each feature counts on its own. Information that two features have only together "
                "is not used.",
                "Sums of rows also reveal something about single rows, except for what is "
                "guaranteed above.",
                *OF_ROWS,
            ],
        )
