"""A Bayesian classification tree with costs of features; `posterior` has the formulas."""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import Annotated, Any, ClassVar, Self

from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.errors import DataError, ParameterError
from bayescascade.base.store import Saved, Within
from bayescascade.base.validation import check_real
from bayescascade.costs.choice import N_FOLDS, PurchaseChoice
from bayescascade.costs.limits import is_within
from bayescascade.data.labels import TrainingRows
from bayescascade.methods.budget.forests.base import ForestClassifier, ReadRows
from bayescascade.methods.budget.forests.forest import Forest
from bayescascade.methods.budget.single_trees.parameters import BudgetTreeParameters
from bayescascade.methods.budget.single_trees.posterior import BudgetTreePosterior
from bayescascade.methods.budget.single_trees.tree import BudgetTree
from bayescascade.model.draws import thinned
from bayescascade.model.explore import SearchResult, explore_by
from bayescascade.model.sampled import HasDraws
from bayescascade.model.search import DEFAULT_STEPS
from bayescascade.model.sentences import doubt_sentences
from bayescascade.model.summary import SUMMARY, FitSummary
from bayescascade.model.view import View

_AVERAGED = 100  # maximum number of draws in an average
_TRADEOFF = 1.0  # by default
_NATS = (1.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
"""Prices of all features together in the searches for a budget, nats of log prior."""

_STEPS = 300  # of each of these searches, and in folds: more choose no better trees
_LEAST = 1e-9  # total cost if all features are free


@dataclass(eq=False, repr=False, kw_only=True)
class BudgetTreeClassifier(HasDraws, ForestClassifier):
    """One small tree with a prior on the costs of its features, or an average of many trees.

    Parameters
    ----------
    costs : FeatureCosts, mapping, sequence of float or None
        What features cost; None: 1 each. See `FeatureCosts`.
    budget : float >= 0 or None
        Limit on the mean cost of a validation row, instead of a tradeoff. Six tradeoffs are tried.
        The tree within the budget that has the smallest error on held-out rows is taken: on the
        validation rows if there is `y_val`, otherwise in 5-fold cross-validation.
    tradeoff, concentration, split_probability, max_leaves, min_leaf_weight, n_thresholds
        Parameters of the posterior; see `BudgetTreePosterior`. If the mean cost of a tree is larger
        by one unit, its prior probability is smaller by a factor of exp(tradeoff). None: 1, or
        chosen by the `budget`.
    predictive : {"map", "average"}
        Predict with the most probable tree, or with the mean of 100 draws. In the latter case a row
        pays for all features that any of the drawn trees reads.
    search, n_steps, n_chains, n_jobs, random_state, checkpoint, resume, progress, time_limit, \
until, effort
        See `explore`. With a budget, the six searches and their folds share the time limit,
        `n_steps` is 75, 300 or 1,500 by `effort` (for any `until`), and there is no
        checkpoint. In folds, if `predictive` is "map", one chain is annealed. If chains stay at
        different trees, neither further rounds nor replica exchange make them agree, and the print
        warns.

    Attributes
    ----------
    tree_ : BudgetTree
        The most probable tree that was found. Its splits are indices of candidates of `posterior_`.
    forest_ : Forest
        The trees that predict: the most probable tree, or the drawn trees.
    tradeoff_ : float
        `tradeoff`, or the tradeoff that was chosen by the budget.
    posterior_, run_, log_posterior_ : BudgetTreePosterior, PosteriorRun, float
        Posterior, draws, and log density of `tree_`. These and `tree_` are not in saved models.
    summary_ : FitSummary
        Convergence, acceptance, and shares of the draws.

    All other attributes are those of `BudgetedClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from bayescascade import BudgetTreeClassifier
    >>> X = np.random.default_rng(0).normal(size=(200, 4))
    >>> model = BudgetTreeClassifier(tradeoff=2.0, n_steps=300, random_state=0)
    >>> np.flatnonzero(model.fit(X, X[:, 2] > 0.5).feature_shares_).tolist()
    [2]
    """

    model_name: ClassVar[str] = "BudgetTreeClassifier"
    title: ClassVar[str] = "budgeted tree"
    learned_word: ClassVar[str] = "tree"

    declares = BudgetTreeParameters

    tradeoff: float | None = BudgetTreeParameters.tradeoff.default
    concentration: float = BudgetTreeParameters.concentration.default
    split_probability: float = BudgetTreeParameters.split_probability.default
    max_leaves: int = BudgetTreeParameters.max_leaves.default
    min_leaf_weight: float = BudgetTreeParameters.min_leaf_weight.default
    n_thresholds: int = BudgetTreeParameters.n_thresholds.default
    n_jobs: int | None = BudgetTreeParameters.n_jobs.default
    until: str = BudgetTreeParameters.until.default

    tradeoff_: Annotated[float, Within(0), Saved("tradeoff")] = field(init=False)
    summary_: Annotated[FitSummary, SUMMARY, Saved("summary")] = field(init=False)

    def fit(
        self,
        X: Any,
        y: Any,
        X_val: Any = None,
        y_val: Any = None,
        *,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Search the most probable tree, and sample trees.

        Parameters
        ----------
        X : DataFrame or other table, paths, mapping of columns, array or list of rows
            Training rows. Tables may be of polars, Arrow, DuckDB, Dask or narwhals. Paths or URLs
            may be of CSV, Parquet or Arrow files; `y` then names the column of labels. Cells are
            numbers, truth values, text or categories; NaN or None is missing.
        y : (n_rows,) array, or str of files
            Labels, of at least two classes.
        X_val : as X, optional
            Rows on which `validation_cost_` and the shares are measured; by default those of `X`.
        y_val : (n_validation_rows,) array, optional
            Their labels, which choose the tree if there is a `budget`. Without them,
            cross-validation does.
        sample_weight : (n_rows,) array of float >= 0, optional
            Weights of the rows, 1 each by default.

        Raises
        ------
        ParameterError
            If a parameter is out of its range.
        DataError
            If rows, labels or weights cannot be used, or if all rows of a class have weight 0.
        KeyboardInterrupt
            With a budget, if Ctrl-C comes before the first tree is finished. Later, the finished
            trees are kept.
        """
        self._check_parameters()
        self.__dict__.pop("_tried", None)  # from an earlier fit
        training = self._read_training(X, y, X_val=X_val, y_val=y_val, sample_weight=sample_weight)
        if self.budget is None:
            self.tradeoff_ = _TRADEOFF if self.tradeoff is None else self.tradeoff
            self._become(self._sample(training), training.validation_rows)
        else:
            self._tried = self._try_each(training)
            self.__dict__.update(self.within(self.budget).__dict__)
        return self

    def within(self, budget: float) -> Self:
        """Return the classifier for another budget, chosen among the trees that `fit` tried.

        If all of them cost more, nothing is bought.

        Parameters
        ----------
        budget : float >= 0

        Raises
        ------
        ParameterError
            If it is out of its range.
        NotFittedError
            Before `fit` with a budget, or if the model was read from a file.
        """
        message = "%(name)s must be fitted with a budget, and not read from a file"
        check_is_fitted(self, "_tried", msg=message)
        check_real("budget", budget, minimum=0.0)
        possible = [
            candidate
            for candidate in self._tried
            if is_within(candidate[0].validation_cost_, budget)
        ]
        model, choice = min(
            possible or self._tried,
            key=lambda candidate: (candidate[1].error, candidate[0].validation_cost_),
        )
        found = copy.copy(model)
        found.budget, found._tried = budget, self._tried
        if not possible:
            found._buy_nothing()
        elif found.forest_.n_splits:
            found._settle(choice)
        return found

    def fit_budgets(
        self, budgets: Sequence[float], X: Any, y: Any, X_val: Any = None, y_val: Any = None
    ) -> Iterator[tuple[float, Self]]:
        """Yield, for each budget, the tree with the smallest held-out error.

        The trees are tried once for all budgets; see `BudgetedClassifier.fit_budgets`.
        """
        model: Any = clone(self).set_params(budget=max(budgets))
        model.fit(X, y, X_val=X_val, y_val=y_val)
        for amount in budgets:
            found = model.within(amount)
            if found.run_.interrupted:
                raise KeyboardInterrupt
            yield amount, found

    def _check_parameters(self) -> None:
        """Raise ParameterError for invalid parameters that no other class checks."""
        self.declares.check(self)
        if self.budget is None:
            return
        for name in ("tradeoff", "checkpoint"):
            if getattr(self, name) is not None:
                raise ParameterError(
                    f"{name} must be None with a budget, got {getattr(self, name)!r}"
                )

    def _try_each(self, training: TrainingRows) -> list[tuple[Self, PurchaseChoice]]:
        """Return a model for each of several tradeoffs, and its comparison on held-out rows."""
        everything = max(float(self.items_.costs.sum()), _LEAST)
        n_fits = len(_NATS) * (1 if training.validation_labels is not None else 1 + N_FOLDS)
        seconds = None if self.time_limit is None else self.time_limit / n_fits
        tried: list[tuple[Self, PurchaseChoice]] = []

        def learn(other: Self, part: TrainingRows) -> Forest:
            forest = other._sample(part, seconds)
            if other.run_.interrupted:
                raise KeyboardInterrupt
            return forest

        def learn_fold(other: Self, part: TrainingRows) -> Forest:
            if other.predictive == "map":  # one chain finds its tree nearly as well
                other.n_chains = 1
                other.search = "anneal" if "anneal" in other.search else other.search
            return learn(other, part)

        for nats in _NATS:
            model = copy.copy(self)
            model.tradeoff_ = nats / everything
            try:
                model._become(learn(model, training), training.validation_rows)
                choice = model._choice(training, model.forest_, learn_fold, None)
            except KeyboardInterrupt:
                if not tried:
                    raise
                for candidate, _ in tried:
                    candidate.summary_ = replace(candidate.summary_, interrupted=True)
                    candidate.run_ = replace(candidate.run_, interrupted=True)
                break
            assert choice is not None, "cross-validation judges where no validation rows do"
            tried.append((model, choice))
        return tried

    def _sample(self, training: TrainingRows, seconds: float | None = None) -> Forest:
        """Search and sample trees within the given seconds; return those for predictions."""
        given = self.get_params(deep=False) | {"tradeoff": self.tradeoff_}
        limit: dict[str, Any] = {} if seconds is None else {"time_limit": seconds}
        if self.budget is not None:
            limit["until"] = "steps"
        search = self._search(**limit)
        prior = {k: given[k] for k in signature(BudgetTreePosterior).parameters if k in given}
        read = ReadRows(self._encoder, self.costs_, training)
        posterior = BudgetTreePosterior(None, None, **prior, _read=read)
        if posterior.classes.size < training.n_classes:
            raise DataError("sample_weight must be > 0 for a row of each class")
        found: SearchResult[BudgetTree] = explore_by(
            search, posterior, default_steps=DEFAULT_STEPS if self.budget is None else _STEPS
        )
        self._take(found)
        self.tree_ = found.state
        if self.summary_.stopped_after is not None:
            self.summary_ = replace(self.summary_, stopped_after=self.time_limit)
        drawn = thinned(found.run_.draws, _AVERAGED)
        if self.predictive == "map" or not drawn:  # ended before the first draw
            drawn = [found.state]
        return posterior.forest(drawn)

    @property
    def may_know_validation_labels(self) -> bool:
        """Whether validation labels chose the tree; also true if unknown after loading."""
        return self.budget is not None

    @property
    def _imagined(self) -> float:
        return self.concentration

    @property
    def certificate_texts(self) -> list[str]:
        """Whether the search ended early, and warnings from the diagnostics of the chains."""
        ending = self.summary_.ending
        stopped = [f"{ending}: best found so far"] if ending else []
        texts = [] if self.budget is None else [f"budget {self.budget:.12g}"]
        return [*stopped, *texts, *self.summary_.warnings]

    def view(self) -> View:
        """Return what is shown, with what is known of the draws."""
        view = super().view()
        doubts = doubt_sentences(self.summary_, self.learned_word, ("leaf", "leaves"), None)
        return view._replace(doubts=doubts)
