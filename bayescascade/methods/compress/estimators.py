"""Nearest-neighbor classification with a few learned rows; `posterior` has the formulas."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.arrays import Floats, Integers
from bayescascade.base.errors import DataError, ModelFileError, ParameterError, warn_user
from bayescascade.base.store import INLINE, Saved, Within, restored
from bayescascade.base.threads import n_threads_of
from bayescascade.base.validation import check_integer
from bayescascade.data.labels import TrainingRows, check_labels, label_codes
from bayescascade.data.levels import level_text
from bayescascade.data.units import Units
from bayescascade.methods.compress.learned import (
    CANNOT_TELL,
    HOW_TO_READ,
    WORSE,
    Compressed,
    PriorScale,
    State,
    Tally,
    VoteRule,
    class_page,
)
from bayescascade.methods.compress.minibatches import climb_each, refined
from bayescascade.methods.compress.parameters import AUTO, CompressionParameters
from bayescascade.methods.compress.starting import choose_start, counts_of_classes
from bayescascade.model.matrix_classifier import MatrixClassifier
from bayescascade.model.matrix_explorer import MatrixExplorer
from bayescascade.model.record import NOT_SAVED
from bayescascade.model.search import Search
from bayescascade.model.view import View
from bayescascade.report.numbers import share_text
from bayescascade.report.page import Pieces, count_of

_OF_SEARCH = 0.4  # share of the time left for climbs and chains
_STEPS = 2_000  # for each chain
_KEPT = 100  # draws of each chain, and for predictions together
_EPOCHS = 5  # default of `refine`


@dataclass(eq=False, repr=False, kw_only=True)
class NeighborCompressionClassifier(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc] # untyped
    TransformerMixin,  # type: ignore[misc]
    MatrixExplorer[State, Compressed],
    MatrixClassifier,
):
    """Nearest-neighbor classification with a few learned prototypes in place of all rows.

    Prototypes are moved to maximize the probability of the labels, given the nearest prototypes
    (Kusner 2016, chapter 3). The metric is chosen first, on held-out rows, and then fixed.

    Parameters
    ----------
    compression : float in (0, 1]
        Number of prototypes, as a share of the rows. Each class has at least one.
    n_prototypes : int >= 1 or mapping of label to int >= 1, optional
        Number of prototypes, in all or per class, in place of `compression`. With rule "nearest",
        each prototype finally gets the most common class of the rows nearest to it, so the numbers
        per class may change.
    metric : {"scaled", "diagonal", "linear"}
        One scale for all columns, as in the paper ("scaled"); one scale per column ("diagonal"); or
        a matrix with `rank` rows ("linear").
    rank : int >= 1, optional
        Rank of a linear metric. By default the number of columns of the matrix.
    standardize : {"auto", "yes", "no"}
        Whether columns are first divided by their standard deviations. "auto": chosen on held-out
        rows.
    joint : bool
        Whether the metric is also learned, together with the prototypes. This tends to increase the
        error on new rows; see `starting`.
    prior_scale : float > 0, None or "auto"
        Standard deviation of the prior around class means; see `PrototypePosterior`. None: a flat
        prior, as in the paper. "auto": 2, or 16 if this is better on held-out rows, by more than a
        standard error of the error rate, or by the log probability for equal error rates. With many
        prototypes, 2 may pull them too far towards the mean of their class.
    rule : {"stochastic", "nearest", "neighbors"}
        "stochastic": all prototypes vote, nearer ones with more weight: the most probable class if
        the neighbor is drawn as in the likelihood, which gives probabilities between 0 and 1.
        "nearest": predict the class of the nearest prototype, as in the paper, with probability 1.
        "neighbors": a vote of the `n_neighbors` nearest.
    optimizer : {"lbfgs", "cg", "minibatch"}
        Optimizer. "lbfgs" and "cg" use all rows in each step, "minibatch" uses `batch_size` rows.
    max_iter : int >= 1, optional
        Maximum number of iterations, or of epochs with minibatches; by default 100, with effort
        "quick" 25 and with "thorough" 500.
    batch_size : int >= 1
        Rows of a minibatch; at most a tenth of the rows.
    search : {"ascent", "ascent+langevin"}
        "ascent": only optimize. "ascent+langevin": also sample, from the optimum of each chain.
    n_steps : int >= 1, optional
        Steps per sampling chain; 2,000 by default, see `effort` in `explore`. There are no further
        rounds if chains do not agree, because even four times as many steps would not help. Each
        chain keeps 100 draws.
    n_chains : int >= 1
        Number of starts, and of chains. Use 4 for R-hat.
    n_jobs, random_state, checkpoint, resume, progress, effort
        See `explore`. The cores share the rows of one optimization.
    time_limit : float > 0 or None
        Seconds, from its beginning, after which `fit` stops with the best prototypes so far. The
        result may then depend on the machine. The choice of the metric and the optimization take up
        to half of this time if chains follow.
    missing : {"level", "error"}
        "level": missing cells of text and categories are a separate level. Missing numbers and
        ranks are imputed by the median, with an indicator column. "error": missing cells are an
        error. In new rows, a missing cell of a column that had none in fit is treated as an unknown
        level; see `unknown`.

    Attributes
    ----------
    prototypes_ : (n_prototypes, n_matrix_columns) float64
        The prototypes, in the units of the rows. Text and categories are columns of 0 and 1; see
        `column_texts_`.
    prototype_labels_ : (n_prototypes,) array
        Labels of the prototypes.
    scale_ : float, (n_matrix_columns,) or (rank, n_matrix_columns) float64
        The metric: the distance of rows x and z is ``|scale_ * (x - z)|``, or ``|scale_ @ (x -
        z)|`` for a matrix.
    n_kept_ : int
        Number of prototypes.
    prior_scale_ : float or None
        The prior scale, chosen or given. None: a flat prior.
    posterior_, run_ : PrototypePosterior, PosteriorRun
        The posterior over prototypes of standardized rows, and its draws; not in saved models.
    n_iter_ : int
        Iterations of the longest optimization, or epochs with minibatches.

    All other attributes are those of `MatrixExplorer` and `MatrixClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from bayescascade import NeighborCompressionClassifier
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> model = NeighborCompressionClassifier(compression=0.04, random_state=0)
    >>> model.fit(X, X[:, 0] > X[:, 1]).prototypes_.shape
    (12, 2)
    """

    model_name: ClassVar[str] = "NeighborCompressionClassifier"
    title: ClassVar[str] = "neighbor compression"
    purpose: ClassVar[str] = "The class of a row, by a few prototypes in place of all rows."

    declares = CompressionParameters
    _not_saved: ClassVar[tuple[str, ...]] = (*NOT_SAVED, "n_prototypes")  # whose labels JSON
    # would turn into text

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
    max_iter: int | None = CompressionParameters.max_iter.default
    batch_size: int = CompressionParameters.batch_size.default
    dtype: str = CompressionParameters.dtype.default
    search: str = CompressionParameters.search.default
    n_chains: int = CompressionParameters.n_chains.default
    missing: str = CompressionParameters.missing.default
    unknown: str = CompressionParameters.unknown.default

    n_rows_: Annotated[int | None, Within(1), Saved("n_rows")] = field(init=False, default=None)
    _prior: Annotated[PriorScale, Saved("prior")] = field(init=False)
    _tally: Annotated[Tally, INLINE, Saved("tally")] = field(init=False)
    _units: Annotated[Units, INLINE, Saved("units")] = field(init=False)

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn prototypes. Ctrl-C ends fit with the best prototypes so far.

        Parameters
        ----------
        X : DataFrame or other table, paths, mapping of columns, array or list of rows
            Tables may be of polars, Arrow, DuckDB, Dask or narwhals. Paths or URLs may be of CSV,
            Parquet or Arrow files; `y` then names the column of labels. Cells are numbers, truth
            values, text or categories; NaN or None is missing.
        y : (n_rows,) array, or str of files
            Labels, of at least two classes.
        sample_weight : (n_rows,) array of float >= 0, or str of files, optional
            Number of rows that each row counts as, 1 by default. Rows of weight zero are not used.
            `compression` is a share of the rows, not of their weights.

        Raises
        ------
        ParameterError
            If a parameter is out of its range, such as more prototypes than rows in a class.
        DataError
            If rows or labels cannot be used.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            If more rows are misclassified than by always predicting the most common class, and in
            the cases of `explore`.
        """
        return super().fit(X, y, sample_weight)

    def _learn_from(self, training: TrainingRows, search: Search) -> None:
        rows, labels, weights = _weighted(training)
        sizes = np.bincount(labels, minlength=training.n_classes)
        if not sizes.all():
            raise DataError("sample_weight must be > 0 for a row of each class")
        given = round(self.compression * len(rows)) if self.n_prototypes is None else None
        counts = counts_of_classes(self.n_prototypes, given, sizes, self.classes_.tolist())
        self._rule.check(int(counts.sum()))
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
                weights=weights,
                counts=counts,
                how=self.start,
                rule=self._rule,
                metric=self.metric,
                rank=self.rank,
                prior_scale=self.prior_scale,
                dtype=self.dtype,
                n_threads=n_threads_of(self.n_jobs),
            )
            is_late = watch.is_up
        self._units, is_stopped = chosen.units, chosen.is_stopped
        n_choosing = chosen.start.n_held_out if self.prior_scale == AUTO else None
        self._prior = PriorScale(chosen.best.prior_scale, n_choosing)
        posterior = chosen.posterior(self.classes_[labels], is_metric_fixed=not self.joint)
        with watch.watching():
            starts = chosen.states(posterior.layout, self.n_chains)
        if self._by_minibatches and not is_stopped:
            share = 1.0 if self.search == "ascent" else 0.5
            starts, is_stopped, timed_out = climb_each(
                posterior, starts, rng, watch, share, **self._batches(self._n_epochs)
            )
            is_late |= timed_out
        if is_stopped:  # by Ctrl-C: no further climbs or draws; a checkpoint stays
            search = replace(search, search="ascent", max_iter=0, checkpoint=None, resume=False)
        with watch.part(_OF_SEARCH):  # the rest is for the probabilities of all rows
            found = self._explore(
                posterior, training, search, starts=starts, default_steps=_STEPS, n_blocks=_KEPT
            )
        is_interrupted = is_stopped or found.run_.interrupted
        is_late = is_late or found.run_.timed_out
        self.run_ = replace(found.run_, interrupted=is_interrupted, timed_out=is_late)
        after = self.time_limit if is_late else None
        self.summary_ = replace(found.summary_, interrupted=is_interrupted, stopped_after=after)
        n_iterations = found.run_.extras["n_iterations"]
        self.n_iter_ = self._n_epochs if self._by_minibatches else max(1, *n_iterations)
        taken = self._rule.classified(self._best, rows)
        self._tally = Tally.of(labels, taken, len(sizes), weights)
        if self._tally.is_worse:
            warn_user(ConvergenceWarning(WORSE))

    def refine(self, X: Any, y: Any, n_epochs: int = _EPOCHS) -> Self:
        """Update the prototypes by learning from more rows, with minibatches.

        The prior is centered at the present prototypes. Its precision is that of the mean of the
        rows that each prototype represents so far. Earlier rows are not used again, the metric is
        fixed, and draws are dropped. Loaded models have no `random_state`; set it for reproducible
        minibatches.

        Parameters
        ----------
        X, y : as in `fit`
            Rows of the known classes. Not all classes need to occur.
        n_epochs : int >= 1

        Raises
        ------
        DataError
            If a label is not one of the classes, or rows cannot be used.
        """
        check_is_fitted(self, "_best")
        check_integer("n_epochs", n_epochs, minimum=1)
        checked = check_labels(y, "y", type(self).__name__)
        labels = label_codes(checked, self.classes_, "labels to refine by")
        rows = np.asarray(self._matrix(X), np.float64)
        if len(labels) != len(rows):
            raise DataError(f"y must have a label per row of X, {len(rows)}, got {len(labels)}")
        self._best = refined(
            self._best,
            self._units,
            self._tally.rows,
            rows,
            checked,
            self._checked().rng(),
            classes=self.classes_,
            dtype=self.dtype,
            n_threads=n_threads_of(self.n_jobs),
            batches=self._batches(n_epochs),
        )
        self._draws = []
        taken = self._rule.classified(self._best, rows)
        self._tally += Tally.of(labels, taken, len(self.classes_))
        self.n_rows_ = (self.n_rows_ or 0) + len(rows)
        return self

    def _checked(self) -> Search:
        self.declares.check(self)
        return self._search(**{"optimizer": "lbfgs", "max_iter": 0} if self._by_minibatches else {})

    @property
    def _by_minibatches(self) -> bool:
        return self.optimizer == "minibatch"

    @property
    def _n_epochs(self) -> int:
        return self._search(optimizer="lbfgs").n_iterations

    def _batches(self, n_epochs: int) -> dict[str, Any]:
        return {"batch_size": self.batch_size, "n_epochs": n_epochs, "progress": self.progress}

    def _learned(self, state: State, training: TrainingRows) -> Compressed:
        layout = self.posterior_.layout
        points = self._units.unscaled(layout.points(state))
        factor = layout.factor(layout.metric_of(state)) / self._units.units
        return self._rule.labeled(Compressed(points, layout.labels, factor), *_weighted(training))

    # -- classifying -------------------------------------------------------------------------------

    @property
    def _means(self) -> Floats:
        return self._units.center

    @property
    def _rule(self) -> VoteRule:
        return VoteRule(self.rule, self.n_neighbors)

    def _probabilities(self, rows: Floats) -> Floats:
        self._rule.check(self.n_kept_)
        return self._averaged(lambda one: self._rule.probabilities(one, rows))

    def _block_words(self, rows: Floats) -> dict[str, list[int]]:
        return {"nearest_prototype": (1 + self._best.nearest(rows)).tolist()}

    def _reasons(self, X: Any) -> list[str]:
        labels = [level_text(self.classes_.tolist()[c]) for c in self._best.labels]
        nearest = self._best.nearest(self._matrix(X)).tolist()
        return [
            f"prototype {1 + prototype} is nearest, of class {labels[prototype]}"
            for prototype in nearest
        ]

    def transform(self, X: Any) -> Floats:
        """Return rows transformed by the metric, (n_rows, n_matrix_columns or rank) float64.

        Their Euclidean distances are the distances of the metric.
        """
        return self._best.applied(self._matrix(X))

    def to_sklearn(self, n_neighbors: int | None = None, **options: Any) -> KNeighborsClassifier:
        """Return a fitted `KNeighborsClassifier` over the prototypes, for rows of numbers.

        Parameters
        ----------
        n_neighbors : int >= 1, optional
            Number of prototypes that vote, with equal weights. By default, the votes and their
            weights are those of `rule`.
        options : keywords
            Options of `KNeighborsClassifier`, such as ``algorithm="ball_tree"``. "kd_tree" does not
            support a scale per column. "brute" loses precision in columns with large values and
            small differences, such as 1e9 and 1e9 + 1.

        Raises
        ------
        ParameterError
            If `n_neighbors` exceeds the number of prototypes, or an option does not support the
            metric.
        """
        check_is_fitted(self, "_best")
        voters = self._rule.voters(self._best)
        if n_neighbors is not None:
            voters = {"n_neighbors": check_integer("n_neighbors", n_neighbors, 1, self.n_kept_)}
        return self._best.to_sklearn(self.classes_, **{**voters, **options})

    # -- what was learned --------------------------------------------------------------------------

    @property
    def prototypes_(self) -> Floats:
        """The prototypes, in the units of the rows."""
        return self._best.points

    @property
    def prototype_labels_(self) -> NDArray[Any]:
        """The label of each prototype."""
        return self.classes_[self._best.labels]

    @property
    def prior_scale_(self) -> float | None:
        """The prior's scale, given or chosen; None if the prior is flat."""
        check_is_fitted(self)
        return self._prior.scale

    @property
    def scale_(self) -> Floats | float:
        """The metric; one number if the scale is the same for all columns."""
        factor = self._best.factor
        return float(factor[0]) if self._best.has_one_scale else factor

    @property
    def n_kept_(self) -> int:
        """Number of prototypes."""
        return len(self._best.labels)

    @property
    def _n_features_out(self) -> int:
        """Number of columns of `transform`, which scikit-learn names after the class."""
        return int(self._best.factor.shape[0])

    def prototypes_frame(self, target: str = "label") -> pd.DataFrame:
        """Return the prototypes, with their labels in a last column called `target`.

        Raises
        ------
        ParameterError
            If the prototypes have a column of this name.
        """
        if target in self.column_texts_:
            raise ParameterError(f"target must be the name of no column, got {target!r}")
        frame = pd.DataFrame(self.prototypes_, columns=self.column_texts_)
        return frame.assign(**{target: self.prototype_labels_})

    def _parameter_words(self) -> list[str]:
        assert self.n_rows_ is not None
        part = share_text(self.n_kept_ / self.n_rows_)
        kept = f"{count_of(self.n_kept_, 'prototype')}, {part} of the rows"
        is_own = self._best.factor.ndim == 1 and np.ptp(self._best.factor) > 0.0
        texts = [kept, f"metric {self.metric}"]
        if is_own and self.metric == "scaled":
            texts.append("columns standardized")
        return texts

    def view(self) -> View:
        """Return what is shown: the prior, and for each class its prototypes and errors."""
        view, tally = super().view(), self._tally
        wrong = share_text(float(tally.wrong.sum() / tally.rows.sum()))
        objections = [WORSE] if tally.is_worse else []
        return view._replace(
            made=(*view.made, *(Pieces([text]) for text in self._prior.texts())),
            found=self._found_page([f"{wrong} of these rows misclassified"], objections),
            shown=class_page(self.classes_, tally, self._best.labels),
            facts=[*view.facts, count_of(self.n_kept_, "prototype")],
            terms=HOW_TO_READ,
            limits=CANNOT_TELL,
        )

    # -- files -------------------------------------------------------------------------------------

    def _read_learned(self, record: Mapping[str, Any]) -> Compressed:
        found: Compressed = restored(Compressed, record, self._sizes())
        classes = range(len(self.classes_))
        is_sorted = bool((np.diff(found.labels) >= 0).all())
        if not is_sorted or not np.array_equal(np.unique(found.labels), classes):
            raise ModelFileError("a saved model's prototypes must be of each class, in their order")
        if found.factor.shape[-1:] != found.points.shape[1:] or not found.factor.any():
            raise ModelFileError("a saved model's metric must be of its columns, not all of it 0")
        return found


def _weighted(training: TrainingRows) -> tuple[Floats, Integers, Floats | None]:
    """Return rows of positive weight, their labels and weights; None if all weights are 1."""
    used = training.weights > 0.0
    rows, labels = np.asarray(training.rows, np.float64)[used], training.labels[used]
    weights = training.weights[used]
    return rows, labels, None if (weights == 1.0).all() else weights
