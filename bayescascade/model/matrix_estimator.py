"""Estimators over a matrix: how rows are read, and how columns are shown and saved."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.arrays import Floats
from bayescascade.base.parameters import Parameters
from bayescascade.base.store import restored
from bayescascade.base.validation import check_choice, check_integer
from bayescascade.data.cell_policy import CellPolicy, Matrix, UnknownCells
from bayescascade.data.column import Column
from bayescascade.data.given import GivenRows
from bayescascade.data.matrix import MatrixEncoder
from bayescascade.model.readable_model import ReadableModel
from bayescascade.model.roles import Predicted
from bayescascade.model.view import View
from bayescascade.report.page import count_of

MISSING = ("level", "error")
"""Choices of `missing` for estimators that need a number in every cell."""


class MatrixEstimator(ReadableModel):
    """An estimator that reads rows by a `MatrixEncoder`, which `fit` sets by `_set_encoder`.

    Attributes
    ----------
    cells : CellPolicy
        Which cells are accepted.
    ignored : {"mean", "missing"}
        How an unknown level is treated if `unknown` is "ignore"; see `CellPolicy`.
    n_features_in_, feature_names_in_
        As in scikit-learn.
    n_rows_ : int or None
        Number of training rows; None if the family does not count them.
    notes_ : tuple of str
        Notes on columns that say what the label or another column says.
    """

    cells: ClassVar[CellPolicy] = CellPolicy()
    ignored: ClassVar[str] = "mean"
    declares: ClassVar[type[Parameters]]
    takes_texts: ClassVar[bool] = False

    unknown: str
    missing: str  # for estimators with the choices `MISSING`

    n_rows_: int | None = None
    notes_: tuple[str, ...] = ()

    _encoder: MatrixEncoder

    # -- rows --------------------------------------------------------------------------------------

    def _set_encoder(self, encoder: MatrixEncoder) -> None:
        self._encoder = encoder
        self.n_features_in_ = len(encoder.columns)
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        if encoder.is_named:
            self.feature_names_in_ = np.array(encoder.columns, dtype=object)

    @property
    def learned_columns(self) -> Iterable[Column]:
        """The columns as files are read for them."""
        check_is_fitted(self)
        return self._encoder.known

    def _policy(self) -> CellPolicy:
        """Return the policy for cells of training rows, by the parameter `missing`."""
        return replace(self.cells, missing=check_choice("missing", self.missing, MISSING))

    def _matrix(self, X: Any, unknown: UnknownCells | None = None) -> Matrix:
        """Return rows as a matrix; NotFittedError, or errors of `MatrixEncoder.transform`."""
        check_is_fitted(self)
        rows = GivenRows.of(X, self.learned_columns)
        return self._reader.transform(rows, type(self).__name__, self._means, unknown)

    def predict_block(
        self,
        cells: Any,
        first_row: int,
        *,
        intervals: bool = False,
        explain: bool = False,
        unknown: UnknownCells | None = None,
    ) -> Predicted:
        """Return predictions for rows of a file; see `bayescascade.model.roles.Predictor`."""
        del first_row  # files are one block
        return self._predicted(self._matrix(cells, unknown), intervals, explain)

    @abstractmethod
    def _predicted(self, rows: Matrix, intervals: bool, explain: bool) -> Predicted:
        """Return predictions for rows of the matrix, with reasons if requested."""

    @property
    def _reader(self) -> MatrixEncoder:
        """The encoder, with unknown levels by the parameter `unknown`."""
        return self._encoder.treating(self._unknown_policy())

    def _unknown_policy(self) -> str:
        """Return the word of `CellPolicy` for unknown levels; ParameterError if there is none."""
        how = self.declares.declared()["unknown"].check(self.unknown)
        return self.ignored if how == "ignore" else "error"

    @property
    def _means(self) -> Floats | None:
        """The values of unknown levels if `unknown` is "mean", (n_matrix_columns,)."""
        return None

    @property
    def feature_texts(self) -> list[str]:
        """Names of the features in text, or "x3" if they have no names."""
        return self._encoder.names

    @property
    def column_texts_(self) -> list[str]:
        """Names of the columns of the matrix, such as "age", or "class=1st" for a level."""
        return self._encoder.column_texts

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        is_let_pass = self.cells.missing == "nan" or getattr(self, "missing", "error") == "level"
        tags.input_tags.allow_nan = is_let_pass
        return tags

    # -- what is shown -----------------------------------------------------------------------------

    def view(self) -> View:
        """Return what is shown: the numbers of rows and columns, and notes on the rows."""
        view = super().view()
        facts = [*self._row_facts(), *view.facts]
        return view._replace(
            heading=[self.title, *facts],
            notes=[*self._encoder.missing_texts, *self.notes_],
            facts=facts,
            source=[*view.source, *self.notes_],
            names=self.feature_texts,
        )

    def _row_facts(self) -> list[str]:
        """Return the number of training rows in words, if it is known."""
        return [] if self.n_rows_ is None else [count_of(self.n_rows_, "row")]

    # -- files -------------------------------------------------------------------------------------

    def _fields(self) -> dict[str, Any]:
        n_rows = {} if self.n_rows_ is None else {"n_rows": self.n_rows_}
        notes = {"notes": list(self.notes_)} if self.notes_ else {}
        return {"encoding": self._encoder.to_dict(), **n_rows, **notes, **super()._fields()}

    def _restore(self, record: Mapping[str, Any]) -> None:
        self.declares.check(self)
        super()._restore(record)

    def _read_columns(self, record: Mapping[str, Any]) -> None:
        self._unknown_policy()
        self._set_encoder(MatrixEncoder.from_dict(record["encoding"], self.cells))
        if "n_rows" in record:
            self.n_rows_ = check_integer("n_rows", record["n_rows"], 1)
        self.notes_ = restored(tuple[str, ...], record.get("notes", []), {}, "notes")

    def _sizes(self) -> dict[str, Any]:
        return {"features": len(self._encoder.columns), "columns": len(self._encoder.source)}
