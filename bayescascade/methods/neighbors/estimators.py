"""The nearest-neighbor classifier whose rows are few and learned; `posterior` has the formulas."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.errors import DataError, ParameterError
from bayescascade.base.threads import n_threads_of
from bayescascade.base.validation import check_integer
from bayescascade.data.labels import (
    TrainingRows,
    check_labels,
    label_codes,
)
from bayescascade.data.levels import level_text
from bayescascade.methods.neighbors.base import CompressedClassifier
from bayescascade.methods.neighbors.learned import Compressed
from bayescascade.methods.neighbors.minibatches import climb_by_minibatches
from bayescascade.methods.neighbors.parameters import AUTO, CompressionParameters
from bayescascade.methods.neighbors.posterior import PrototypePosterior
from bayescascade.methods.neighbors.prototypes import State
from bayescascade.methods.neighbors.starting import choose_start, shares_of_classes
from bayescascade.model.search import Search

_STEPS = 2_000  # of each chain
_KEPT = 100  # draws of each chain, and those that predict together
_EPOCHS = 5  # that `refine` takes by default


@dataclass(eq=False, repr=False, kw_only=True)
class StochasticNeighborCompression(CompressedClassifier):
    """Nearest-neighbor classification by a few learned prototypes in place of all rows.

    Prototypes move to where the rows' neighbors among them are most probably of their own class
    (Kusner 2016, chapter 3). The metric is chosen first, by rows held out, and then held.

    Parameters
    ----------
    compression : float in (0, 1]
        Prototypes, as a part of the rows; every class has at least one.
    n_prototypes : int >= 1 or mapping of label to int >= 1, optional
        How many there are, in all or of each class, in place of `compression`; by rule "nearest",
        each is last given the class of most of the rows nearest to it, which may be another.
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
    prior_scale : float > 0, None or "auto"
        See `PrototypePosterior`; None is flat, the paper's. "auto" is 2, or 16 where rows held out
        are taken right so more often, by over a standard error, or as often and more probably.
        Where prototypes are many, 2 may pull them too far to their class's mean.
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
        Of each chain that samples; 2,000 by default, and no more where chains do not agree,
        which four times as many did not mend. A chain keeps 100 draws.
    n_chains : int >= 1
        Starts to climb from, and chains to sample by; take 4 to be told R-hat.
    n_jobs, random_state, checkpoint, resume, progress
        See `explore`; cores share the rows of one climb.
    time_limit : float > 0 or None
        Seconds after which `fit` stops, from its beginning, with the prototypes found by then,
        which then depend on the machine. Up to half of them choose a metric and climb.
    missing : {"level", "error"}
        What a missing cell is in rows to learn from: a level of its own in text and categories, and
        in numbers and ranks their median, with a column of 0 and 1 that says so; or an error. Rows
        to classify are read alike; where there was none, it is as a level that fit has not seen:
        see `unknown`.

    Attributes
    ----------
    posterior_, run_ : PrototypePosterior, PosteriorRun
        Over standardized rows; not in saved models.
    n_iter_ : int
        Iterations of the longest climb, or epochs by minibatches.

    The others are those of every `CompressedClassifier`.

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
    purpose: ClassVar[str] = (
        "Which class a row is of, by a few prototypes that stand in for all rows."
    )

    declares = CompressionParameters

    compression: float = CompressionParameters.compression.default
    n_prototypes: int | Mapping[Any, int] | None = CompressionParameters.n_prototypes.default
    metric: str = CompressionParameters.metric.default
    rank: int | None = CompressionParameters.rank.default
    start: str = CompressionParameters.start.default
    standardize: str = CompressionParameters.standardize.default
    joint: bool = CompressionParameters.joint.default
    prior_scale: float | str | None = CompressionParameters.prior_scale.default
    rule: str = CompressionParameters.rule.default
    n_neighbors: int = CompressionParameters.n_neighbors.default
    optimizer: str = CompressionParameters.optimizer.default
    max_iter: int = CompressionParameters.max_iter.default
    batch_size: int = CompressionParameters.batch_size.default
    dtype: str = CompressionParameters.dtype.default
    search: str = CompressionParameters.search.default
    n_chains: int = CompressionParameters.n_chains.default
    n_jobs: int | None = CompressionParameters.n_jobs.default
    missing: str = CompressionParameters.missing.default
    unknown: str = CompressionParameters.unknown.default

    def fit(self, X: Any, y: Any) -> Self:  # type: ignore[override] # rows have no weights
        """Learn prototypes; Ctrl-C ends it with those found so far.

        Parameters
        ----------
        X : DataFrame or other table, paths, mapping of columns, array or list of rows
            Tables of polars, Arrow, DuckDB, Dask or narwhals, too; paths or URLs of CSV, Parquet or
            Arrow files, whose column `y` names.
            Numbers, truth values, text and categories; NaN or None is missing.
        y : (n_rows,) array, or str of files
            Labels, of at least two classes.

        Raises
        ------
        ParameterError
            If a parameter is out of its range, such as more prototypes of a class than rows.
        DataError
            If rows or labels cannot be used.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            If more of the rows are taken wrong than the most frequent class alone would take, or as
            of `explore`.
        """
        search = self._checked()
        training = self._read_rows(X, y)
        rows, labels = np.asarray(training.rows, np.float64), training.labels
        sizes = np.bincount(labels)
        counts = self._counts(sizes)
        self._check_neighbors(int(counts.sum()))
        rng = search.rng()
        watch = search.watch
        with watch.part(0.5), watch.watching():
            chosen = choose_start(
                rows,
                self.standardize,
                self.column_texts_,
                rng,
                progress=self.progress,
                labels=labels,
                counts=counts,
                how=self.start,
                classified=self._classified,
                labeled=self._labeled,
                **self._options(),
            )
            is_late = watch.is_up
        self._center, self._units, start, best, is_stopped = chosen
        self.prior_scale_ = best.prior_scale
        self._n_choosing = start.n_held_out if self.prior_scale == AUTO else None
        posterior = PrototypePosterior(
            (rows - self._center) / self._units,
            self.classes_[labels],
            counts,
            held=None if self.joint else best.metric,
            **self._options() | {"prior_scale": best.prior_scale},
        )
        drawn = [best.points, *(start.draw() for _ in range(self.n_chains - 1))]
        starts = [posterior.layout.state(points, best.metric) for points in drawn]
        if self.optimizer == "minibatch" and not is_stopped:
            for place, state in enumerate(starts):
                with watch.part(1.0 if self.search == "ascent" else 0.5), watch.watching():
                    starts[place], is_stopped = climb_by_minibatches(
                        posterior,
                        state,
                        rng,
                        batch_size=self.batch_size,
                        n_epochs=self.max_iter,
                        progress=self.progress,
                    )
                    if is_stopped and watch.is_up:
                        is_late, is_stopped = True, False
                if is_stopped or is_late:
                    break
        if is_stopped:  # by Ctrl-C: neither further climbs nor draws; a checkpoint stays
            search = replace(search, search="ascent", max_iter=0, checkpoint=None, resume=False)
        self._sizes = sizes
        found = self._explore(
            posterior, training, search, starts=starts, default_steps=_STEPS, n_blocks=_KEPT
        )
        is_interrupted = is_stopped or found.run_.interrupted
        is_late = is_late or found.run_.timed_out
        self.run_ = replace(found.run_, interrupted=is_interrupted, timed_out=is_late)
        after = self.time_limit if is_late else None
        self.summary_ = replace(found.summary_, interrupted=is_interrupted, stopped_after=after)
        by_minibatches = self.optimizer == "minibatch"
        n_iterations = found.run_.extras["n_iterations"]
        self.n_iter_ = self.max_iter if by_minibatches else max(1, *n_iterations)
        taken = self._classified(self._best, rows)
        self._wrong = np.bincount(labels[taken != labels], minlength=len(sizes))
        self._warn_if_worse()
        return self

    def refine(self, X: Any, y: Any, n_epochs: int = _EPOCHS) -> Self:
        """Go on learning from more rows, by minibatches, from where the prototypes stand.

        Where they stand is the prior, as sure as the mean of so many rows as each has stood for so
        far. The rows of before are not looked at again; the metric stays, and draws are gone.
        Loaded models have no `random_state`: set it where minibatches must be the same again.

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
        labels = label_codes(checked, self.classes_, "labels to refine by")
        rows, best = np.asarray(self._matrix(X), np.float64), self._best
        if len(labels) != len(rows):
            raise DataError(f"y must have a label per row of X, {len(rows)}, got {len(labels)}")
        counts = np.bincount(best.labels)
        sureness = np.sqrt(self._sizes / counts)[best.labels, np.newaxis]
        points = (best.points - self._center) / self._units
        factor = best.factor * self._units
        is_linear = factor.ndim == 2  # whatever `metric` has been set to since
        posterior = PrototypePosterior(
            (rows - self._center) / self._units,
            checked,
            counts,
            held=factor.ravel() if is_linear else np.log(factor),
            around=(points, np.ones_like(points) / sureness),
            classes=self.classes_,
            **self._options()
            | {
                "metric": "linear" if is_linear else "diagonal",
                "rank": len(factor) if is_linear else None,
                "prior_scale": 1.0,
            },
        )
        state, _ = climb_by_minibatches(
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
        self.declares.check(self)
        climbed = self.optimizer == "minibatch"
        return self._search(**{"optimizer": "lbfgs", "max_iter": 0} if climbed else {})

    def _options(self) -> dict[str, Any]:
        """Return the parameters of the posterior that are parameters here, too."""
        return {
            "metric": self.metric,
            "rank": self.rank,
            "prior_scale": self.prior_scale,
            "dtype": self.dtype,
            "n_threads": n_threads_of(self.n_jobs),
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
        return shares_of_classes(wanted, sizes)

    def _learned(self, state: State, training: TrainingRows) -> Compressed:
        layout = self.posterior_.layout
        points = layout.points(state) * self._units + self._center
        factor = layout.factor(layout.metric_of(state)) / self._units
        rows = np.asarray(training.rows, np.float64)
        return self._labeled(Compressed(points, layout.labels, factor), rows, training.labels)
