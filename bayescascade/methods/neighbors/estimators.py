"""The nearest-neighbor classifier whose rows are few and learned; `posterior` has the formulas."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, TransformerMixin
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

import samplers
from bayescascade.base.errors import DataError, ModelFileError, ParameterError
from bayescascade.base.validation import check_choice, check_integer, check_real
from bayescascade.data.labels import (
    TrainingRows,
    check_labels,
    classes_record,
    label_codes,
    read_classes,
)
from bayescascade.data.levels import level_text
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.data.sources import as_frame
from bayescascade.methods.neighbors.learned import RULES, Compressed
from bayescascade.methods.neighbors.minibatches import climb_by_minibatches
from bayescascade.methods.neighbors.posterior import PrototypePosterior
from bayescascade.methods.neighbors.prototypes import METRICS, Floats, State
from bayescascade.methods.neighbors.starting import STARTS, Start, shares_of_classes
from bayescascade.model.ascent import OPTIMIZERS
from bayescascade.model.explore import Found, explore_by
from bayescascade.model.record import Saved
from bayescascade.model.roles import Predicted
from bayescascade.model.search import Search, Seed
from bayescascade.model.summary import FitSummary
from bayescascade.report.numbers import count_texts, nats_text, share_text
from bayescascade.report.page import BLANK, Heading, Numbers, Page, Pieces, Table, counted, warning
from bayescascade.report.printed import PrintedModel

__all__ = ["StochasticNeighborCompression"]

_STANDARDIZE = ("auto", "yes", "no")
_SEARCHES = ("ascent", "ascent+langevin")
_STEPS = 2_000  # of each chain
_KEPT = 100  # draws of each chain, and those that predict together
_EPOCHS = 5  # that `refine` takes by default


@dataclass(eq=False, repr=False, kw_only=True)
class StochasticNeighborCompression(PrintedModel, ClassifierMixin, TransformerMixin, Saved):  # type: ignore[misc] # untyped bases
    """Nearest-neighbor classification by a few learned prototypes in place of all rows.

    Prototypes move to where the rows' neighbors among them are most probably of their own class
    (Kusner 2016, chapter 3). The metric is chosen first, by rows held out, and then held.

    Parameters
    ----------
    compression : float in (0, 1]
        Prototypes, as a part of the rows; every class has at least one.
    n_prototypes : int >= 1 or mapping of label to int >= 1, optional
        How many there are, in all or of each class, in place of `compression`.
    metric : {"scaled", "diagonal", "linear"}
        One scale for all columns, the paper's; one for each; or a matrix of `rank` rows.
    rank : int >= 1, optional
        Of a linear metric; by default the number of columns of the matrix.
    start : {"kmeans", "sample"}
        Prototypes begin as the centers of clusters within classes, or as rows drawn at random.
    standardize : {"auto", "yes", "no"}
        Whether columns are divided by their standard deviations first; "auto" does what is better
        for rows held out.
    joint : bool
        Whether the metric goes on being learned together with the prototypes. New rows then tend to
        be classified worse: see `starting`.
    prior_scale : float > 0 or None
        See `PrototypePosterior`; None is flat, the paper's.
    rule : {"nearest", "neighbors", "stochastic"}
        The class of the nearest prototype, as in the paper, or most of the `n_neighbors` nearest,
        or most probable where neighbors are drawn as in the likelihood: its probabilities are
        between 0 and 1, those of the nearest are not.
    n_neighbors : int >= 1
        Of rule "neighbors".
    optimizer : {"lbfgs", "cg", "minibatch"}
        What climbs: all rows in every step, or `batch_size` of them.
    max_iter : int >= 1
        Iterations, or epochs by minibatches.
    batch_size : int >= 1
        Rows of a minibatch; fewer where there are fewer than ten times as many.
    dtype : {"float64", "float32"}
        In which distances are computed while learning.
    predictive : {"map", "average"}
        By the best prototypes, or the average over posterior draws.
    search : {"ascent", "ascent+langevin"}
        Only climb, or also sample from where each chain has climbed to.
    n_steps : int >= 1, optional
        Of each chain that samples; 2,000 by default.
    n_chains : int >= 1
        Starts to climb from, and chains to sample by; take 4 to be told R-hat.
    n_jobs, random_state, checkpoint, resume, progress
        See `explore`; cores share the rows of one climb.

    Attributes
    ----------
    prototypes_ : (n_prototypes, n_matrix_columns) float64
        In the units of the rows; text and categories are columns of 0 and 1, see `column_texts_`.
    prototype_labels_ : (n_prototypes,) array
        Their labels.
    scale_ : float, (n_matrix_columns,) or (rank, n_matrix_columns) float64
        The metric: rows x and z are ``|scale_ * (x - z)|``, or ``|scale_ @ (x - z)|``, apart.
    classes_ : (n_classes,) array
    n_kept_ : int
        Number of prototypes.
    posterior_, run_ : PrototypePosterior, PosteriorRun
        Over standardized rows; not in saved models.
    summary_ : FitSummary
        Convergence, acceptance.
    n_iter_ : int
        Iterations, or epochs, of the longest climb.
    log_posterior_ : float
        Log density of the prototypes, nats, unnormalized.

    Examples
    --------
    >>> import numpy as np
    >>> from bayescascade import StochasticNeighborCompression
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> model = StochasticNeighborCompression(compression=0.04, random_state=0)
    >>> model.fit(X, X[:, 0] > X[:, 1]).prototypes_.shape
    (12, 2)
    """

    model_name: ClassVar[str] = "StochasticNeighborCompression"
    title: ClassVar[str] = "neighbor compression"
    takes_texts: ClassVar[bool] = False

    compression: float = 0.04
    n_prototypes: int | Mapping[Any, int] | None = None
    metric: str = "scaled"
    rank: int | None = None
    start: str = "kmeans"
    standardize: str = "auto"
    joint: bool = False
    prior_scale: float | None = 2.0
    rule: str = "nearest"
    n_neighbors: int = 3
    optimizer: str = "lbfgs"
    max_iter: int = 100
    batch_size: int = 4096
    dtype: str = "float64"
    predictive: str = "map"
    search: str = "ascent"
    n_steps: int | None = None
    n_chains: int = 1
    n_jobs: int | None = None
    random_state: Seed = None
    checkpoint: str | Path | None = None
    resume: bool = False
    progress: Callable[[samplers.Progress], object] | None = None

    _not_saved = (*Saved._not_saved, "n_prototypes")  # whose labels JSON would turn into text

    # -- fitting -----------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any) -> Self:
        """Learn prototypes.

        Parameters
        ----------
        X : DataFrame, (n_rows, n_features) array or list of rows
            Numbers, truth values, text and categories, no cell missing.
        y : (n_rows,) array
            Labels, of at least two classes.

        Raises
        ------
        ParameterError
            If a parameter is out of its range, such as more prototypes of a class than rows.
        DataError
            If rows or labels cannot be used.
        """
        search = self._checked()
        X = as_frame(X)
        self._encoder = MatrixEncoder.learn(X)
        training = TrainingRows.read(self._encoder, X, y, owner=type(self).__name__)
        self.classes_ = training.classes
        self._set_features()
        rows, labels = np.asarray(training.rows, np.float64), training.labels
        sizes = np.bincount(labels)
        counts = self._counts(sizes)
        rng = search.rng()
        self._center, start, held = self._started(rows, labels, counts, rng)
        posterior = PrototypePosterior(
            (rows - self._center) / self._units,
            self.classes_[labels],
            counts,
            held=None if self.joint else held,
            **self._options(),
        )
        drawn = [start.points, *(start.draw() for _ in range(self.n_chains - 1))]
        starts = [posterior.layout.state(points, held) for points in drawn]
        if self.optimizer == "minibatch":
            starts = [
                climb_by_minibatches(
                    posterior,
                    state,
                    rng,
                    batch_size=self.batch_size,
                    n_epochs=self.max_iter,
                    progress=self.progress,
                )
                for state in starts
            ]
        found: Found[State] = explore_by(
            search,
            posterior,
            starts=starts,
            default_steps=_STEPS,
            n_blocks=_KEPT,
            title=self.title,
            settings={"model": self.model_name},
        )
        self.posterior_, self.run_, self.summary_ = posterior, found.run_, found.summary_
        self.log_posterior_ = found.log_density
        n_iterations = found.run_.extras.get("n_iterations", [self.max_iter])
        self.n_iter_ = self.max_iter if self.optimizer == "minibatch" else max(1, *n_iterations)
        self._best = self._compressed(found.state)
        states = [state for chain in found.run_.draws for state in chain]
        places = np.linspace(0, len(states) - 1, min(len(states), _KEPT)).astype(int)
        self._draws = [self._compressed(states[place]) for place in places]
        self._sizes = sizes
        taken = self._classified(self._best, rows)
        self._wrong = np.bincount(labels[taken != labels], minlength=len(sizes))
        return self

    def refine(self, X: Any, y: Any, n_epochs: int = _EPOCHS) -> Self:
        """Go on learning from more rows, by minibatches, from where the prototypes stand.

        Where they stand is the prior, as sure as the mean of so many rows as each has stood for so
        far. The rows of before are not looked at again; the metric stays, and draws are gone.

        Parameters
        ----------
        X, y : as in `fit`
            Of the classes that there are, not necessarily all of them.
        n_epochs : int >= 1

        Raises
        ------
        DataError
            If a label is of none of the classes, or rows cannot be used.
        """
        check_is_fitted(self, "_best")
        check_integer("n_epochs", n_epochs, minimum=1)
        checked = check_labels(y, "y", type(self).__name__)
        labels = label_codes(checked, self.classes_, "y")
        rows, best = self._matrix(X), self._best
        if len(labels) != len(rows):
            raise DataError(f"y must have a label per row of X, {len(rows)}, got {len(labels)}")
        counts = np.bincount(best.labels)
        sureness = np.sqrt(self._sizes / counts)[best.labels, np.newaxis]
        points = (best.points - self._center) / self._units
        factor = best.factor * self._units
        if self.metric != "linear":
            factor = np.log(factor[:1] if self.metric == "scaled" else factor)
        posterior = PrototypePosterior(
            (rows - self._center) / self._units,
            checked,
            counts,
            held=factor.ravel(),
            around=(points, np.ones_like(points) / sureness),
            classes=self.classes_,
            **self._options() | {"prior_scale": 1.0},
        )
        state = climb_by_minibatches(
            posterior,
            posterior.center,
            self._checked().rng(),
            batch_size=self.batch_size,
            n_epochs=n_epochs,
            progress=self.progress,
        )
        points = posterior.layout.points(state) * self._units + self._center
        self._best, self._draws = Compressed(points, best.labels, best.factor), []
        taken = self._classified(self._best, rows)
        self._wrong = self._wrong + np.bincount(labels[taken != labels], minlength=counts.size)
        self._sizes = self._sizes + np.bincount(labels, minlength=counts.size)
        return self

    def _checked(self) -> Search:
        """Return how to search; raises ParameterError if a parameter is out of its range."""
        check_real("compression", self.compression, above=0.0, maximum=1.0)
        for name, choices in (
            ("metric", METRICS),
            ("start", STARTS),
            ("standardize", _STANDARDIZE),
            ("rule", RULES),
            ("optimizer", (*OPTIMIZERS, "minibatch")),
            ("search", _SEARCHES),
            ("predictive", ("map", "average")),
        ):
            check_choice(name, getattr(self, name), choices)
        for name in ("n_neighbors", "batch_size", "max_iter"):
            check_integer(name, getattr(self, name), minimum=1)
        given = self.get_params(deep=False)
        taken = {k: v for k, v in given.items() if k in Search.__dataclass_fields__}
        if self.optimizer == "minibatch":  # which has climbed before
            taken |= {"optimizer": "lbfgs", "max_iter": 0}
        return Search(**taken)

    def _options(self) -> dict[str, Any]:
        """Return the parameters of the posterior that are parameters here, too."""
        return {
            "metric": self.metric,
            "rank": self.rank,
            "prior_scale": self.prior_scale,
            "dtype": self.dtype,
            "n_threads": effective_n_jobs(self.n_jobs),
        }

    def _counts(self, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of prototypes of each class."""
        given, n_rows = self.n_prototypes, int(sizes.sum())
        if isinstance(given, Mapping):
            names = self.classes_.tolist()
            if set(given) != set(names):
                raise ParameterError(f"n_prototypes must be of each class, {names}, got {given}")
            return np.array(
                [
                    check_integer(f"n_prototypes of class {level_text(name)}", given[name], 1, size)
                    for name, size in zip(names, sizes.tolist(), strict=True)
                ]
            )
        if given is None:
            wanted = max(len(sizes), round(self.compression * n_rows))
        else:
            wanted = check_integer("n_prototypes", given, len(sizes), n_rows)
        if self.rule == "neighbors":
            check_integer("n_neighbors", self.n_neighbors, 1, wanted)
        return shares_of_classes(wanted, sizes)

    def _started(
        self,
        rows: Floats,
        labels: NDArray[np.int64],
        counts: NDArray[np.int64],
        rng: np.random.Generator,
    ) -> tuple[Floats, Start, Floats]:
        """Return what rows are told from, and where to start, in units that are chosen."""
        center, spread = rows.mean(axis=0), rows.std(axis=0)
        common = np.full_like(spread, np.sqrt(np.mean(spread**2)) or 1.0)
        own = np.where(spread > 0.0, spread, common)
        choices = {"auto": [common, own], "yes": [own], "no": [common]}[self.standardize]
        if np.allclose(own, common, rtol=0.01):
            choices = [common]
        tried = []
        for units in choices:
            start = Start(
                (rows - center) / units, labels, counts, self.start, rng.spawn(1)[0],
                self._classified, **self._options(),
            )  # fmt: skip
            held, score = start.metric()
            tried.append((score, units, start, held))
        _, self._units, start, held = max(tried, key=lambda one: one[0])
        return center, start, held

    def _classified(self, model: Compressed, rows: Floats) -> NDArray[np.int64]:
        """Return the positions of the classes that rows are taken for."""
        shares = model.probabilities(rows, self.rule, self.n_neighbors)
        positions: NDArray[np.int64] = shares.argmax(axis=1)
        return positions

    def _compressed(self, state: State) -> Compressed:
        """Return a state in the units of the rows."""
        layout = self.posterior_.layout
        points = layout.points(state) * self._units + self._center
        return Compressed(
            points, layout.labels, layout.factor(layout.metric_of(state)) / self._units
        )

    # -- classifying -------------------------------------------------------------------------------

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row, (n_rows,); of equals the first.

        Parameters
        ----------
        X : DataFrame, (n_rows, n_features) array, list of rows, mapping or Series
            As in `fit`; DataFrames are matched by column name.
        """
        best = self.predict_proba(X).argmax(axis=1)  # which says if nothing is fitted
        labels: NDArray[Any] = self.classes_[best]
        return labels

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class for each row, (n_rows, n_classes) float64.

        It is what the `rule` says, and the mean of that over draws for ``predictive="average"``.
        """
        rows = self._matrix(X)
        models = [self._best]
        if self.predictive == "average":
            if not self._draws and not self.summary_.interrupted:
                raise ParameterError(
                    'predictive must be "map" where no draws were kept, got "average"'
                )
            models = self._draws or models
        told = [model.probabilities(rows, self.rule, self.n_neighbors) for model in models]
        return np.mean(told, axis=0) if len(told) > 1 else told[0]

    def predict_block(
        self, cells: pd.DataFrame, first_row: int, *, intervals: bool = False, explain: bool = False
    ) -> Predicted:
        """Return what rows of a file are; see `bayescascade.model.roles.Predictor`.

        Told is the number of the nearest prototype, from 1.
        """
        del first_row, intervals
        told: dict[str, list[object]] = {}
        if explain:
            near = self.to_sklearn(n_neighbors=1, algorithm="brute")
            nearest = near.kneighbors(self._matrix(cells), return_distance=False)
            told["nearest_prototype"] = (1 + nearest.ravel()).tolist()
        return Predicted(told, self.predict_proba(cells))

    def transform(self, X: Any) -> Floats:
        """Return rows in the space of the metric, (n_rows, n_matrix_columns or rank) float64.

        Euclidean distances between them are those by which prototypes are near.
        """
        return self._best.applied(self._matrix(X))

    def to_sklearn(self, n_neighbors: int = 1, **options: Any) -> KNeighborsClassifier:
        """Return a fitted `KNeighborsClassifier` over the prototypes, for rows of numbers.

        Parameters
        ----------
        n_neighbors : int >= 1
        options : keywords
            Of that class, such as ``algorithm="ball_tree"``.

        Raises
        ------
        ParameterError
            If `n_neighbors` is more than there are prototypes.
        """
        check_is_fitted(self, "_best")
        check_integer("n_neighbors", n_neighbors, 1, self.n_kept_)
        return self._best.to_sklearn(self.classes_, n_neighbors, **options)

    def _matrix(self, X: Any) -> Floats:
        check_is_fitted(self, "_best")
        return np.asarray(self._encoder.transform(X, type(self).__name__), np.float64)

    def _set_features(self) -> None:
        self.n_features_in_ = len(self._encoder.columns)
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        if self._encoder.is_named:
            self.feature_names_in_ = np.array(self._encoder.columns, dtype=object)

    # -- what was learned --------------------------------------------------------------------------

    @property
    def prototypes_(self) -> Floats:
        """The prototypes, in the units of the rows."""
        return self._best.points

    @property
    def prototype_labels_(self) -> NDArray[Any]:
        """The label of each prototype."""
        labels: NDArray[Any] = self.classes_[self._best.labels]
        return labels

    @property
    def scale_(self) -> Floats | float:
        """The metric; a number if it is the same for all columns."""
        factor = self._best.factor
        return float(factor[0]) if factor.ndim == 1 and np.ptp(factor) == 0.0 else factor

    @property
    def n_kept_(self) -> int:
        """Number of prototypes."""
        return len(self._best.labels)

    @property
    def feature_texts(self) -> list[str]:
        """What the features are called in text: their names, or "x3"."""
        return self._encoder.names

    @property
    def column_texts_(self) -> list[str]:
        """What the columns of the prototypes are called: "age", or "class=1st" of a level."""
        return self._encoder.column_texts

    def prototypes_frame(self, target: str = "label") -> pd.DataFrame:
        """Return the prototypes and, in a last column, their labels."""
        frame = pd.DataFrame(self.prototypes_, columns=self.column_texts_)
        return frame.assign(**{target: self.prototype_labels_})

    def page(self) -> Page:
        """Return how many prototypes there are, how they were found, and each class."""
        summary, n_rows = self.summary_, int(self._sizes.sum())
        heading = [
            self.title,
            counted(n_rows, "row"),
            counted(self.n_features_in_, "column"),
            f"{len(self.classes_)} classes",
        ]
        part = share_text(self.n_kept_ / n_rows)
        kept = f"{counted(self.n_kept_, 'prototype')}, {part} of the rows"
        is_own = self._best.factor.ndim == 1 and np.ptp(self._best.factor) > 0.0
        told = [kept, f"metric {self.metric}"]
        if is_own and self.metric == "scaled":
            told.append("columns standardized")
        if self.predictive == "average":
            told.append("predictive average")
        wrong = share_text(self._wrong.sum() / n_rows)
        return (
            Heading(heading),
            Pieces(told),
            Pieces(
                [
                    summary.found_words("prototypes"),
                    f"log posterior {nats_text(self.log_posterior_)}",
                    f"{wrong} of these rows taken wrong",
                ]
            ),
            Pieces(summary.convergence_pieces),
            *(warning(f"warning: {text}") for text in summary.warnings),
            BLANK,
            Table(
                [level_text(label) for label in self.classes_.tolist()],
                [
                    Numbers("rows", count_texts(self._sizes.tolist())),
                    Numbers("prototypes", count_texts(np.bincount(self._best.labels).tolist())),
                    Numbers(
                        "taken wrong",
                        list(map(share_text, (self._wrong / self._sizes).tolist())),
                    ),
                ],
                "class",
            ),
        )

    def record(self) -> dict[str, Any]:
        """Return the fitted model as plain data, at full precision, as `save` writes it."""
        return self.to_record()

    # -- files -------------------------------------------------------------------------------------

    def _fields(self) -> dict[str, Any]:
        return {
            "encoding": self._encoder.to_dict(),
            "classes": classes_record(self.classes_),
            "summary": self.summary_.to_dict(),
            "log_posterior": self.log_posterior_,
            "rows": self._sizes.tolist(),
            "wrong": self._wrong.tolist(),
            "center": self._center.tolist(),
            "units": self._units.tolist(),
            "best": self._best.to_record(),
            "draws": [draw.to_record() for draw in self._draws],
        }

    def _restore(self, record: Mapping[str, Any]) -> None:
        self._encoder = MatrixEncoder.from_dict(record["encoding"])
        self._set_features()
        self.classes_ = read_classes(record["classes"])
        self.summary_ = FitSummary.from_dict(record["summary"])
        self.log_posterior_ = float(record["log_posterior"])
        n_classes, n_columns = len(self.classes_), len(self._encoder.source)
        self._sizes, self._wrong = (np.array(record[name], np.int64) for name in ("rows", "wrong"))
        self._center, self._units = (
            np.array(record[name], np.float64) for name in ("center", "units")
        )
        is_counted = (self._sizes.shape, self._wrong.shape) == ((n_classes,), (n_classes,))
        if not is_counted or (self._sizes < 1).any() or (self._wrong > self._sizes).any():
            raise ModelFileError("a saved model's rows must be counted for each class")
        is_scaled = (self._center.shape, self._units.shape) == ((n_columns,), (n_columns,))
        told = [*self._center.tolist(), *self._units.tolist(), self.log_posterior_]
        if not is_scaled or not np.isfinite(told).all() or (self._units <= 0.0).any():
            raise ModelFileError("a saved model's units must be numbers > 0 for each column")
        self._best, *self._draws = (
            Compressed.from_record(one, n_columns, n_classes)
            for one in (record["best"], *record["draws"])
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_best")
