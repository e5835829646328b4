"""Estimators over a matrix that explore a posterior: search, average over draws, page and file."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.arrays import Floats
from bayescascade.base.store import Saved, stored
from bayescascade.model.draws import none_drawn, thinned
from bayescascade.model.explore import SearchResult, explore_by
from bayescascade.model.matrix_estimator import MatrixEstimator
from bayescascade.model.sampled import HasDraws
from bayescascade.model.search import Search
from bayescascade.model.summary import SUMMARY, FitSummary
from bayescascade.model.view import View
from bayescascade.report.page import Pieces

S = TypeVar("S")
L = TypeVar("L")


@dataclass(eq=False, repr=False, kw_only=True)
class MatrixExplorer(HasDraws, MatrixEstimator, Generic[S, L]):
    """An estimator that explores a posterior over states S, whose readable form is L.

    Subclasses have `_posterior`, `_learned`, `_read_learned` and `view`, and predict by
    `_averaged`. Attributes that are `Saved` are in files in addition to states.

    Attributes
    ----------
    posterior_, run_ : posterior, PosteriorRun
        Not in saved models.
    summary_ : FitSummary
        Convergence, acceptance, and shares of the draws.
    log_posterior_ : float
        Log density of the best state that was found, nats, unnormalized.
    """

    _most_kept: ClassVar[int] = 100  # draws for averages and files

    summary_: Annotated[FitSummary, SUMMARY, Saved("summary")] = field(init=False)
    log_posterior_: Annotated[float, Saved("log_posterior")] = field(init=False)
    _best: L = field(init=False)
    _draws: list[L] = field(init=False)

    # -- hooks -------------------------------------------------------------------------------------

    def _posterior(self, training: Any) -> Any:  # Any: the family's result of `_read_rows`
        """Return the posterior given the rows, for `_learn_from` of this class."""
        raise NotImplementedError

    @abstractmethod
    def _learned(self, state: S, training: Any) -> L:
        """Return the readable form of a state, in the units of the rows; by `posterior_`."""

    @abstractmethod
    def _read_learned(self, record: Mapping[str, Any]) -> L:
        """Return the readable form of a record of its `to_record`; checks as `_restore`."""

    # -- fitting -----------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Search and sample the posterior. Ctrl-C ends fit with the best result so far.

        Parameters
        ----------
        X : DataFrame or other table, paths, mapping of columns, array or list of rows
            Tables may be of polars, Arrow, DuckDB, Dask or narwhals. Paths or URLs may be of CSV,
            Parquet or Arrow files; `y` then names the column of labels. Cells are numbers, truth
            values, text or categories; NaN or None is missing.
        y : (n_rows,) array, or str of files
            Labels of at least two classes, or numbers.
        sample_weight : (n_rows,) array of float >= 0, or str of files, optional
            Weights of the rows, 1 each by default.

        Raises
        ------
        ParameterError
            If a parameter is out of its range.
        DataError
            If rows, labels or weights cannot be used.
        """
        search = self._checked()
        self._learn_from(self._read_rows(X, y, sample_weight), search)
        return self

    def _learn_from(self, training: Any, search: Search) -> None:  # Any: as in `_posterior`
        """Search the posterior given the rows, and set the attributes of the result."""
        self._explore(self._posterior(training), training, search)

    def _explore(
        self, posterior: Any, training: Any, search: Search, **how: Any
    ) -> SearchResult[S]:
        """Search the posterior and set the attributes of the result; see `explore_by` for `how`."""
        found: SearchResult[S] = explore_by(
            search,
            posterior,
            title=self.title,
            parameter_words=", ".join(self.parameter_words(vars(self))),
            settings={"model": self.model_name},
            **how,
        )
        self._take(found)
        self._best = self._learned(found.state, training)
        kept = thinned(found.run_.draws, self._most_kept)
        self._draws = [self._learned(state, training) for state in kept]
        return found

    # -- what was learned --------------------------------------------------------------------------

    @property
    def learned_(self) -> L:
        """The most probable state found, in readable form."""
        check_is_fitted(self)
        return self._best

    def _averaged(self, answer: Callable[[L], Floats]) -> Floats:
        """Return the answer of the best state, or the mean over draws, by `predictive`."""
        if self.predictive == "map":
            return answer(self._best)
        if not self._draws and not self.summary_.is_partial:
            raise none_drawn()
        answers = [answer(draw) for draw in self._draws or [self._best]]
        return np.mean(answers, axis=0) if len(answers) > 1 else answers[0]

    def view(self) -> View:
        """Return what is shown, with the parameters and the search."""
        view = super().view()
        pieces = self._model_pieces()
        made = (Pieces(pieces),) if pieces else ()
        return view._replace(made=made, found=self._found_page())

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_best")

    # -- files -------------------------------------------------------------------------------------

    def _fields(self) -> dict[str, Any]:
        return {**super()._fields(), "best": stored(self._best), "draws": stored(self._draws)}

    def _restore(self, record: Mapping[str, Any]) -> None:
        super()._restore(record)
        self._best, *self._draws = map(self._read_learned, (record["best"], *record["draws"]))
