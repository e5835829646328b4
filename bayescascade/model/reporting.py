"""Reports: what any fitted estimator tells, as one file for people who were not there.

Each family says what its model is for, how what it learned is read and what it cannot tell; the
rest is asked of the model through the hooks of `Reported`, so that a model read back from a file
makes the same report as on the day it was fitted.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from sklearn.utils.validation import check_is_fitted

from bayescascade.base.errors import ParameterError
from bayescascade.base.files import replaced_file
from bayescascade.model.sentences import doubt_sentences, held_out_told
from bayescascade.report.chart import UnitChart
from bayescascade.report.document import Section, to_document
from bayescascade.report.page import Page, counted, named
from bayescascade.report.printed import PrintedModel

AS_COMMON = (
    "How common a group is, is said in comparison with rows that are spread evenly over all that "
    "is possible."
)
"""What is said before the groups of a density."""

OF_ROWS = (
    "It describes the rows that it was learned from. Rows of another place, another time, or "
    "gathered in another way may be different.",
    "It tells what goes together, not why: what is found here may have a cause that is in no "
    "column.",
)
"""What no model that is learned from rows can tell."""

OF_DENSITIES = (
    "Groups of few rows tell little, and may be there by chance. A group of one row may tell about "
    "one person: consider who may see this.",
    "What never occurred is not thereby impossible; the model gives it a small probability.",
)
"""What no density can tell."""

_FOOT = (
    "Made with bayescascade {version}. This file holds what was learned and counted, none of the "
    "rows; it fetches nothing from anywhere."
)


class Reported(PrintedModel):
    """An estimator that makes a report once it is fitted.

    Attributes
    ----------
    title : str
        What it is called, such as "leaf cascade".
    purpose : str
        What it is for, as a sentence.
    """

    title: ClassVar[str]
    purpose: ClassVar[str]

    def report(self, path: str | Path, *, title: str | None = None, held_out: Any = None) -> None:
        """Write what was learned into one HTML file, in words and pictures.

        The file needs no other, has no scripts, can be read on any screen and printed. Models that
        were read back from files make reports, too.

        Parameters
        ----------
        path : str or Path
            Such as "titanic.html"; replaced only when it is complete.
        title : str, optional
            By default the name of the file that was learned from, or what the model is called.
        held_out : rows, or (rows, labels), optional
            Rows that the model was not learned from, to say how well it does there: as for
            `score_samples`, or with their labels as for `predict`.

        Raises
        ------
        ParameterError
            If `title` is no text, or `held_out` nothing that this model can be tried on.
        DataError
            If its rows or labels cannot be read.
        FileError
            If the file cannot be written.
        """
        check_is_fitted(self)
        if title is not None and not isinstance(title, str):
            raise ParameterError(f"title must be text or None, got {title!r}")
        document = self._document(title, held_out)
        with replaced_file(path) as temporary:
            temporary.write_text(document, encoding="utf-8")

    def _document(self, title: str | None, held_out: Any) -> str:
        from bayescascade import __version__

        summary = getattr(self, "summary_", None)
        source = getattr(summary, "source", "")
        measured = getattr(summary, "held_out", None)
        tried: list[str] = []
        tables = () if measured is None else measured.page()
        charts: tuple[UnitChart, ...] = ()
        if held_out is not None:
            tried, tables, charts = held_out_told(self, held_out)
        kind = self.title[0].upper() + self.title[1:]
        columns, names = self._column_items(), self._column_names()
        sections = (
            Section(
                "In words",
                self._words_lead(),
                items=self._in_words(),
                noun=("group", "groups"),
                is_beside=True,
            ),
            Section("What was learned", page=self._shown()),
            Section("How to read it", items=self._how_to_read()),
            Section("How sure it is", self._doubt()),
            Section("How it does on other rows", tried, page=tables, charts=charts),
            Section("What it cannot tell", items=[("", words) for words in self._cannot_tell()]),
            Section(
                "What it was learned from",
                self._learned_from(),
                columns,
                ("column", "columns"),
                () if columns or not names else (named(names, "column", "columns: "),),
            ),
            Section("For analysts", page=self._details(), is_folded=True),
        )
        return to_document(
            title or source or kind,
            kind,
            self.purpose,
            self._facts(),
            sections,
            _FOOT.format(version=__version__),
        )

    # -- hooks with an answer that may do ----------------------------------------------------------

    def _facts(self) -> Sequence[str]:
        """Return a few words each on how much was learned from, and learned."""
        n_columns = getattr(self, "n_features_in_", 0)
        return [counted(n_columns, "column")] if n_columns else []

    def _shown(self) -> Page:
        """Return what was learned."""
        return self.page()

    def _words_lead(self) -> Sequence[str]:
        """Return what is said before the rules."""
        return ()

    def _in_words(self) -> Sequence[tuple[str, str]]:
        """Return rules, and what is told of each; nothing where there are none."""
        return ()

    def _how_to_read(self) -> Sequence[tuple[str, str]]:
        """Return how what is shown is read: terms, or nothing, and what they mean."""
        return ()

    def _cannot_tell(self) -> Sequence[str]:
        """Return what it is not to be asked."""
        return OF_ROWS

    def _doubt(self) -> Sequence[str]:
        """Return how sure it is of what is shown."""
        summary = getattr(self, "summary_", None)
        word = getattr(self, "learned_word", "model")
        return [] if summary is None else doubt_sentences(summary, word, None, None)

    def _learned_from(self) -> Sequence[str]:
        """Return what a user should know of the rows."""
        summary = getattr(self, "summary_", None)
        return [] if summary is None else list(summary.notes)

    def _column_items(self) -> Sequence[tuple[str, str]]:
        """Return each column, and what is in it; nothing where that is not known."""
        return ()

    def _column_names(self) -> Sequence[str]:
        """Return what the columns are called."""
        return [str(name) for name in getattr(self, "feature_names_in_", ())]

    def _details(self) -> Page:
        """Return how the model was made and found; nothing if `_shown` says so."""
        return ()
