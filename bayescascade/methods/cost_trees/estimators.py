"""A Bayesian classification tree whose features cost something; `posterior` has the formulas."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

import samplers
from bayescascade.base.errors import DataError
from bayescascade.base.validation import check_choice
from bayescascade.costs.choice import Choice
from bayescascade.costs.items import Costs
from bayescascade.data.labels import TrainingRows
from bayescascade.methods.cost_trees.posterior import BudgetTreePosterior
from bayescascade.methods.cost_trees.tree import BudgetTree
from bayescascade.methods.forests.base import BudgetedClassifier, ReadRows
from bayescascade.methods.forests.forest import Forest
from bayescascade.model.explore import Found, explore_by
from bayescascade.model.sampled import Sampled
from bayescascade.model.search import SAMPLED, Search, Seed
from bayescascade.model.sentences import doubt_sentences
from bayescascade.model.summary import FitSummary

__all__ = ["BudgetTreeClassifier"]

_AVERAGED = 100  # draws at most that predict together


@dataclass(eq=False, repr=False, kw_only=True)
class BudgetTreeClassifier(Sampled, BudgetedClassifier):
    """One small tree that weighs what its features cost, or the average of many such trees.

    Parameters
    ----------
    costs : FeatureCosts, mapping, sequence of float or None
        What features cost; None: 1 each. See `FeatureCosts`.
    tradeoff, concentration, split_probability, max_leaves, min_leaf_weight, n_thresholds
        Of the posterior; see `BudgetTreePosterior`. A tree that costs a row one unit more on
        average is exp(tradeoff) times less probable a priori.
    predictive : {"map", "average"}
        The most probable tree, or the mean of 100 draws: a row pays whatever any of them reads.
    search, n_steps, n_chains, n_jobs, random_state, checkpoint, resume, progress, time_limit
        See `explore`.
    unknown : {"missing", "error"}
        What a level is that fit has not seen: as if it were missing, which is said in an
        `UnknownLevelWarning`, or an error.

    Attributes
    ----------
    tree_ : BudgetTree
        The most probable tree found; splits are candidates of `posterior_`.
    forest_ : Forest
        What predicts: that tree, or those drawn.
    posterior_, run_ : BudgetTreePosterior, PosteriorRun
        Like `tree_`, not in saved models.
    summary_ : FitSummary
        Convergence, acceptance, shares of the draws.

    The others are those of every `BudgetedClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from bayescascade import BudgetTreeClassifier
    >>> X = np.random.default_rng(0).normal(size=(200, 4))
    >>> model = BudgetTreeClassifier(tradeoff=2.0, n_steps=300, random_state=0)
    >>> np.flatnonzero(model.fit(X, X[:, 2] > 0.5).feature_shares_).tolist()
    [2]
    """

    _unlisted: ClassVar[tuple[str, ...]] = ("choice_on",)

    model_name: ClassVar[str] = "BudgetTreeClassifier"
    title: ClassVar[str] = "budgeted tree"

    costs: Costs = None
    tradeoff: float = 1.0
    concentration: float = 1.0
    split_probability: float = 0.5
    max_leaves: int = 32
    min_leaf_weight: float = 1.0
    n_thresholds: int = 32
    predictive: str = "map"
    search: str = "anneal+metropolis"
    n_steps: int | None = None
    n_chains: int = 4
    n_jobs: int | None = None
    random_state: Seed = None
    checkpoint: str | Path | None = None
    resume: bool = False
    progress: Callable[[samplers.Progress], object] | None = None
    time_limit: float | None = None
    unknown: str = "missing"

    def fit(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None, X_val: Any = None
    ) -> Self:
        """Find and sample trees.

        Parameters
        ----------
        X : DataFrame or other table, paths, mapping of columns, array or list of rows
            Tables of polars, Arrow, DuckDB, Dask or narwhals, too; paths or URLs of CSV, Parquet or
            Arrow files, whose column `y` names.
            Rows to learn from: numbers, truth values, text and categories; NaN or None is missing.
        y : (n_rows,) array, or str of files
            Labels, of at least two classes.
        sample_weight : (n_rows,) array of float >= 0, optional
            Weights of the rows, 1 each by default.
        X_val : as X, optional
            Rows that `validation_cost_` and the shares are measured on; by default those of `X`.

        Raises
        ------
        ParameterError
            If a parameter is out of its range.
        DataError
            If rows, labels or weights cannot be used, or all of a class have weight 0.
        """
        check_choice("predictive", self.predictive, ("map", "average"))
        check_choice("search", self.search, SAMPLED)
        training = self._read_training(X, y, X_val=X_val, sample_weight=sample_weight)
        self._become(self._sample(training), training.validation_rows)
        return self

    def choice_on(self, X: Any, y: Any, X_val: Any = None, y_val: Any = None) -> Choice | None:
        """Return how rows that the trees were not learned from compare them with buying nothing.

        These are the validation rows or, of few rows, those of `X` in cross-validation. Parameters
        and errors: see `fit` of other budgeted classifiers.
        """
        owner = type(self).__name__
        training = TrainingRows.read(self._reader, X, y, X_val=X_val, y_val=y_val, owner=owner)
        return self._choice(training, self.forest_, type(self)._sample, None)

    def _sample(self, training: TrainingRows) -> Forest:
        """Find and sample trees; return those that predict."""
        given = self.get_params(deep=False)
        search = Search(**{k: v for k, v in given.items() if k in Search.__dataclass_fields__})
        prior = {k: given[k] for k in signature(BudgetTreePosterior).parameters if k in given}
        read = ReadRows(self._encoder, self.costs_, training)
        posterior = BudgetTreePosterior(None, None, **prior, _read=read)
        if posterior.classes.size < training.n_classes:
            raise DataError("sample_weight must be > 0 for a row of each class")
        found: Found[BudgetTree] = explore_by(search, posterior)
        self.posterior_, self.run_ = posterior, found.run_
        self.summary_, self.tree_ = found.summary_, found.state
        drawn = [tree for chain in found.run_.draws for tree in chain]
        if self.predictive == "map" or not drawn:  # ended before there were any
            drawn = [found.state]
        places = np.linspace(0, len(drawn) - 1, min(len(drawn), _AVERAGED)).astype(int)
        return posterior.forest([drawn[place] for place in places])

    def _doubt(self) -> list[str]:
        return doubt_sentences(self.summary_, "tree", ("leaf", "leaves"), None)

    @property
    def _imagined(self) -> float:
        return self.concentration

    @property
    def certificate_texts(self) -> list[str]:
        """Whether the search was ended early, and what the diagnostics of the chains object to."""
        ending = self.summary_.ending
        stopped = [f"{ending}: best found so far"] if ending else []
        return [*stopped, *self.summary_.warnings]

    def _own_record(self) -> dict[str, Any]:
        return {"summary": self.summary_.to_dict()}

    def _read_own(self, record: Mapping[str, Any]) -> None:
        self.summary_ = FitSummary.from_dict(record["summary"])
