"""What compressed rows do once they are learned: classify, measure, print, and come from files."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.errors import ModelFileError, ParameterError, warn_user
from bayescascade.base.validation import check_integer, check_real
from bayescascade.data.levels import level_text
from bayescascade.methods.neighbors.learned import Compressed
from bayescascade.methods.neighbors.prototypes import Floats, State
from bayescascade.model.matrix_classifier import MatrixClassifier
from bayescascade.model.matrix_explorer import MatrixExplorer
from bayescascade.model.record import NOT_SAVED
from bayescascade.model.reporting import OF_ROWS
from bayescascade.report.numbers import count_texts, share_text
from bayescascade.report.page import Numbers, Page, Pieces, Table, counted

_WORSE = (
    "the prototypes take more rows wrong than the most frequent class alone would: use other "
    "prototypes (n_prototypes, random_state) or another rule"
)


class CompressedClassifier(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc] # untyped
    TransformerMixin,  # type: ignore[misc]
    MatrixExplorer[State, Compressed],
    MatrixClassifier,
):
    """A classifier by the nearest of few prototypes; `fit` is its subclass's.

    Attributes
    ----------
    prototypes_ : (n_prototypes, n_matrix_columns) float64
        In the units of the rows; text and categories are columns of 0 and 1, see `column_texts_`.
    prototype_labels_ : (n_prototypes,) array
        Their labels.
    scale_ : float, (n_matrix_columns,) or (rank, n_matrix_columns) float64
        The metric: rows x and z are ``|scale_ * (x - z)|``, or ``|scale_ @ (x - z)|``, apart.
    n_kept_ : int
        Number of prototypes.
    prior_scale_ : float or None
        That of the prior around class means, chosen or given; None is flat.
    summary_ : FitSummary
        Convergence, acceptance.
    log_posterior_ : float
        Log density of the prototypes that `fit` found, nats, unnormalized.

    The others are those of every `MatrixClassifier`.
    """

    _not_saved: ClassVar[tuple[str, ...]] = (*NOT_SAVED, "n_prototypes")  # whose labels JSON
    # would turn into text

    metric: str
    rule: str
    n_neighbors: int

    prior_scale_: float | None
    _n_choosing: int | None  # rows held out that chose it; None if it was given
    _sizes: NDArray[np.int64]  # rows of each class, and those of them taken wrong
    _wrong: NDArray[np.int64]
    _center: Floats  # of the rows, and what they are divided by, (n_matrix_columns,)
    _units: Floats

    # -- classifying -------------------------------------------------------------------------------

    @property
    def _means(self) -> Floats:
        return self._center

    def _probabilities(self, rows: Floats) -> Floats:
        """Return what `predict_proba` does, of rows of the matrix."""
        self._check_neighbors(self.n_kept_)
        return self._averaged(lambda one: one.probabilities(rows, self.rule, self.n_neighbors))

    def _block_words(self, rows: Floats) -> dict[str, list[int]]:
        """Return the number of the nearest prototype, from 1."""
        return {"nearest_prototype": (1 + self._best.nearest(rows)).tolist()}

    def _reasons(self, X: Any) -> list[str]:
        labels = [level_text(self.classes_.tolist()[c]) for c in self._best.labels]
        nearest = self._best.nearest(self._matrix(X)).tolist()
        return [f"prototype {1 + one} is nearest, of class {labels[one]}" for one in nearest]

    def transform(self, X: Any) -> Floats:
        """Return rows in the space of the metric, (n_rows, n_matrix_columns or rank) float64.

        Euclidean distances between them are those by which prototypes are near.
        """
        rows = self._matrix(X)
        return self._best.applied(rows)

    def to_sklearn(self, n_neighbors: int = 1, **options: Any) -> KNeighborsClassifier:
        """Return a fitted `KNeighborsClassifier` over the prototypes, for rows of numbers.

        Parameters
        ----------
        n_neighbors : int >= 1
        options : keywords
            Of that class, such as ``algorithm="ball_tree"``; "kd_tree" knows no scale per column,
            and "brute" loses digits of columns that are far from 0, such as 1e9 and one more.

        Raises
        ------
        ParameterError
            If `n_neighbors` is more than there are prototypes, or an option does not go with the
            metric.
        """
        check_is_fitted(self, "_best")
        check_integer("n_neighbors", n_neighbors, 1, self.n_kept_)
        return self._best.to_sklearn(self.classes_, n_neighbors, **options)

    def _check_neighbors(self, n_prototypes: int) -> None:
        if self.rule == "neighbors":
            check_integer("n_neighbors", self.n_neighbors, 1, n_prototypes)

    def _classified(self, model: Compressed, rows: Floats) -> NDArray[np.int64]:
        """Return the positions of the classes that rows are taken for."""
        shares = model.probabilities(rows, self.rule, self.n_neighbors)
        positions: NDArray[np.int64] = shares.argmax(axis=1)
        return positions

    def _labeled(self, model: Compressed, rows: Floats, labels: NDArray[np.int64]) -> Compressed:
        """Return a model whose prototypes are of the classes that the rule wants them to be of."""
        return model.relabeled(rows, labels) if self.rule == "nearest" else model

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
    def _n_features_out(self) -> int:
        """Columns of what `transform` returns, which scikit-learn names after the class."""
        return int(self._best.factor.shape[0])

    def prototypes_frame(self, target: str = "label") -> pd.DataFrame:
        """Return the prototypes and, in a last column called `target`, their labels.

        Raises
        ------
        ParameterError
            If the prototypes have such a column.
        """
        if target in self.column_texts_:
            raise ParameterError(f"target must be the name of no column, got {target!r}")
        frame = pd.DataFrame(self.prototypes_, columns=self.column_texts_)
        return frame.assign(**{target: self.prototype_labels_})

    def _facts(self) -> list[str]:
        rows = counted(int(self._sizes.sum()), "row")
        return [rows, *super()._facts(), counted(self.n_kept_, "prototype")]

    def _how_to_read(self) -> list[tuple[str, str]]:
        return [
            (
                "",
                "A few prototypes stand in for all rows: a new row is of the class whose "
                "prototypes are nearest to it. The table has a line for each class.",
            ),
            ("taken wrong", "the share of its rows that would be taken for another class"),
        ]

    def _cannot_tell(self) -> list[str]:
        return [
            "taken wrong is counted on rows that were learned from; of other rows more will be.",
            "A prototype is no row, but may be close to one where a class has few rows.",
            *OF_ROWS,
        ]

    def _heading(self) -> list[str]:
        return self._facts()[:-1]

    def _told(self) -> list[str]:
        part = share_text(self.n_kept_ / int(self._sizes.sum()))
        kept = f"{counted(self.n_kept_, 'prototype')}, {part} of the rows"
        is_own = self._best.factor.ndim == 1 and np.ptp(self._best.factor) > 0.0
        told = [kept, f"metric {self.metric}"]
        if is_own and self.metric == "scaled":
            told.append("columns standardized")
        return told

    def _how_made(self) -> Page:
        return (*super()._how_made(), *(Pieces([text]) for text in self._prior_texts))

    def _page(self) -> Page:
        """Return each class, and how it is taken."""
        return (
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

    @property
    def _prior_texts(self) -> list[str]:
        """What chose the prior, in words; empty if it was given."""
        if self._n_choosing is None:
            return []
        by = f"chosen on {self._n_choosing:,} rows held out"
        if not self._n_choosing:
            by = "not chosen, as prototypes leave no rows to hold out"
        return [f"prior scale {self.prior_scale_:g}, {by}"]

    def _found_pieces(self) -> list[str]:
        wrong = share_text(self._wrong.sum() / self._sizes.sum())
        return [*super()._found_pieces(), f"{wrong} of these rows taken wrong"]

    @property
    def _objections(self) -> list[str]:
        is_worse = self._wrong.sum() > self._sizes.sum() - self._sizes.max()
        return [*self.summary_.warnings, *([_WORSE] if is_worse else [])]

    def _warn_if_worse(self) -> None:
        if _WORSE in self._objections:
            warn_user(ConvergenceWarning(_WORSE))

    # -- files -------------------------------------------------------------------------------------

    def _own_record(self) -> dict[str, Any]:
        return {
            "prior": {"scale": self.prior_scale_, "n_choosing": self._n_choosing},
            "rows": self._sizes.tolist(),
            "wrong": self._wrong.tolist(),
            "center": self._center.tolist(),
            "units": self._units.tolist(),
        }

    def _read_own(self, record: Mapping[str, Any]) -> None:
        given = {"scale": record["parameters"]["prior_scale"], "n_choosing": None}
        prior = record.get("prior", given)  # older files lack it
        self.prior_scale_, self._n_choosing = prior["scale"], prior["n_choosing"]
        if self._n_choosing is not None:
            check_integer("n_choosing", self._n_choosing, 0)
        if self.prior_scale_ is not None or self._n_choosing is not None:
            check_real("prior scale", self.prior_scale_, above=0.0)
        n_classes, n_columns = len(self.classes_), len(self._encoder.source)
        self._sizes, self._wrong = (np.array(record[name], np.int64) for name in ("rows", "wrong"))
        self._center, self._units = (
            np.array(record[name], np.float64) for name in ("center", "units")
        )
        is_counted = (self._sizes.shape, self._wrong.shape) == ((n_classes,), (n_classes,))
        if not is_counted or (self._sizes < 1).any() or (self._wrong > self._sizes).any():
            raise ModelFileError("a saved model's rows must be counted for each class")
        is_scaled = (self._center.shape, self._units.shape) == ((n_columns,), (n_columns,))
        told = [*self._center.tolist(), *self._units.tolist()]
        if not is_scaled or not np.isfinite(told).all() or (self._units <= 0.0).any():
            raise ModelFileError("a saved model's units must be numbers > 0 for each column")

    def _read_learned(self, record: Mapping[str, Any]) -> Compressed:
        return Compressed.from_record(record, len(self._encoder.source), len(self.classes_))
