"""Shared by all estimators: page, report and saved file."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.described import described
from bayescascade.base.errors import ModelFileError, ParameterError
from bayescascade.base.files import replaced_file, write_json
from bayescascade.base.store import restored_fields, saved_fields, stored_attributes
from bayescascade.data.schema import Schema
from bayescascade.model.page import column_words
from bayescascade.model.record import FORMAT, NOT_SAVED, VERSION, contradictions_refused
from bayescascade.model.reporting import report_document
from bayescascade.model.sentences import doubt_sentences
from bayescascade.model.view import View
from bayescascade.report.html import to_html
from bayescascade.report.page import Page, count_of
from bayescascade.report.printed import page_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bayescascade.model.near_best import NearBest


def plot_learned(self: Any, ax: "Axes | None" = None) -> "Axes":  # Any: it has a `learned_`
    """Draw the learned object, and return the axes; see its method `plot`.

    Parameters
    ----------
    ax : matplotlib Axes, optional
        Axes to draw into; by default those of a new figure.
    """
    axes: Axes = self.learned_.plot(ax)
    return axes


class ReadableModel(BaseEstimator, ABC):  # type: ignore[misc] # untyped base
    """An estimator that can be printed, reported, saved and loaded after fit.

    Before fit it is printed like estimators of scikit-learn. `bayescascade.load` loads it.

    Attributes
    ----------
    title : str
        Title in prints, such as "leaf cascade".
    purpose : str
        The purpose, as a sentence.
    model_name : str
        Name of the class in files: its public name.
    """

    title: ClassVar[str]
    purpose: ClassVar[str]
    model_name: ClassVar[str]

    _not_saved: ClassVar[tuple[str, ...]] = NOT_SAVED

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__doc__ and "declares" in vars(cls):
            cls.__doc__ = described(cls.__doc__, vars(cls)["declares"])

    # -- what is shown -----------------------------------------------------------------------------

    def view(self) -> View:
        """Return what is shown of the fitted model, for its print and its report."""
        check_is_fitted(self)
        n_columns = getattr(self, "n_features_in_", 0)
        summary = getattr(self, "summary_", None)
        word = getattr(self, "learned_word", "model")
        schema = getattr(self, "schema_", None)
        return View(
            columns=[column_words(column) for column in schema.columns] if schema else (),
            facts=[count_of(n_columns, "column")] if n_columns else [],
            doubts=[] if summary is None else doubt_sentences(summary, word, None, None),
            source=[] if summary is None else list(summary.notes),
            names=[str(name) for name in getattr(self, "feature_names_in_", ())],
        )

    def page(self) -> Page:
        """Return the print, as blocks."""
        return self.view().page

    def to_text(self, *, width: int = 80, full: bool = False) -> str:
        """Return the text that `print` shows for the fitted model.

        Parameters
        ----------
        width : int >= 60
            Maximum number of characters per line.
        full : bool
            Whether to show all parts of a large tree or list, and all columns. Otherwise the least
            informative parts are folded.
        """
        check_is_fitted(self)
        return page_text(self.page(), width, full)

    def __str__(self) -> str:
        return self.to_text() if self.__sklearn_is_fitted__() else repr(self)

    def _repr_html_(self) -> str | None:
        return self._repr_mimebundle_().get("text/html")

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str | None]:
        """Return the output for notebooks, by type."""
        if self.__sklearn_is_fitted__():
            return {"text/plain": str(self), "text/html": to_html(self.page())}
        bundle: dict[str, str | None] = super()._repr_mimebundle_(**options)
        return bundle

    @abstractmethod
    def __sklearn_is_fitted__(self) -> bool: ...

    # -- reports -----------------------------------------------------------------------------------

    def report(
        self,
        path: str | Path,
        *,
        title: str | None = None,
        held_out: Any = None,
        near_best: "NearBest[Any] | None" = None,
    ) -> None:
        """Write a report on the model as one HTML file, in words and pictures.

        The file needs no other files and no scripts. It can be read on all screens, and printed.
        Loaded models can also write reports.

        Parameters
        ----------
        path : str or Path
            File name, such as "titanic.html". The file is replaced only when it is complete.
        title : str, optional
            By default the name of the data file, or the title of the model.
        held_out : rows, or (rows, labels), optional
            Held-out rows, to measure the model: rows as in `score_samples`, or rows as in `predict`
            with their labels.
        near_best : NearBest, optional
            The result of the method `near_best` of some models, for a section on other models that
            are as good.

        Raises
        ------
        ParameterError
            If `title` is not text, or if the model cannot be measured on `held_out`.
        DataError
            If the held-out rows or labels cannot be read.
        FileError
            If the file cannot be written.
        """
        check_is_fitted(self)
        if title is not None and not isinstance(title, str):
            raise ParameterError(f"title must be text or None, got {title!r}")
        document = report_document(self, title, held_out, near_best)
        with replaced_file(path) as temporary:
            temporary.write_text(document, encoding="utf-8")

    def _set_features(self, schema: Schema) -> None:
        """Set the attributes on the columns of the table."""
        self.schema_ = schema
        self.n_features_in_ = schema.n_columns
        self.feature_names_in_ = np.array(schema.names, dtype=object)

    # -- files -------------------------------------------------------------------------------------

    def _fields(self) -> dict[str, Any]:
        """Return the fields of a file besides the parameters, as plain JSON types.

        By default, those of attributes whose annotations are `Saved`.
        """
        return stored_attributes(self)

    def _restore(self, record: Mapping[str, Any]) -> None:
        """Restore the fitted state from a record, which may be damaged or forged.

        Any BayesCascadeError, KeyError, TypeError or ValueError says that the file is bad.
        """
        self._read_columns(record)
        fields = saved_fields(type(self))
        self.__dict__.update(restored_fields(fields, record, self._sizes()))

    def _read_columns(self, record: Mapping[str, Any]) -> None:
        """Restore what other fields are read by, such as columns and classes."""

    def _sizes(self) -> dict[str, Any]:
        """Return what `restored` must know: sizes of arrays, and `GIVEN` fields, by name."""
        return {"schema": vars(self).get("schema_")}

    def _parameter_fields(self) -> dict[str, Any]:
        """Return the saved parameters as plain JSON types."""
        parameters = self.get_params(deep=False)
        return {k: v for k, v in parameters.items() if k not in self._not_saved}

    @classmethod
    def _read_parameters(cls, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of the constructor, given a record with the right names."""
        return dict(record["parameters"])

    def to_dict(self) -> dict[str, Any]:
        """Return the fitted model as plain data at full precision, like the file of `save`."""
        return self.to_record()

    def to_record(self) -> dict[str, Any]:
        """Return the fitted model as plain JSON types, at full precision."""
        check_is_fitted(self)
        return {
            "format": FORMAT,
            "version": VERSION,
            "model": self.model_name,
            "parameters": self._parameter_fields(),
            **self._fields(),
        }

    def save(self, path: str | Path) -> None:
        """Write the model as JSON; `bayescascade.load` reads it back.

        The file contains learned values and counts, but no rows. Models that need rows for
        predictions are exceptions; their documentation says so. Writing is atomic: after an error,
        the old file is unchanged.
        """
        write_json(path, self.to_record())

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Rebuild a model from the record of a saved file; see `bayescascade.load`.

        Raises
        ------
        ModelFileError
            If the record is incomplete, contradicts itself, or has wrong types.
        """
        with contradictions_refused():
            parameters = record["parameters"]
            expected = set(cls._get_param_names()) - set(cls._not_saved)
            if not isinstance(parameters, dict) or set(parameters) != expected:
                raise ModelFileError(
                    f"a saved model's parameters must be {', '.join(sorted(expected))}"
                )
            model = cls(**cls._read_parameters(record))
            model._restore(record)
            return model
