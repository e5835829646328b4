"""What both cascades do: fit, then score, draw, condition, explain, print and save."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted

import samplers
from bayescascade.cascades.density import DensityTree
from bayescascade.cascades.models import CascadeModel, empirical_probabilities
from bayescascade.cascades.posterior import CascadePosterior
from bayescascade.cascades.tree import Tree
from bayescascade.errors import ParameterError
from bayescascade.report.inference_data import PosteriorRun
from bayescascade.schema import Rows, Schema
from bayescascade.search import Search, Seed, default_steps, most_blocks
from bayescascade.summary import FitSummary, summarize
from bayescascade.table import Table
from bayescascade.validation import check_choice, check_integer, check_weights

__all__ = ["Cascade", "Continuous", "Names", "Ordinal"]

DENSITIES = ("posterior_mean", "empirical")
PREDICTIVES = ("map", "average")

MAX_KEPT_DRAWS = 1000  # trees that `predictive="average"` averages over and a saved model holds

Names: TypeAlias = Sequence[str | int] | None
Ordinal: TypeAlias = Mapping[Any, Sequence[Any] | None] | Sequence[str | int] | None
Continuous: TypeAlias = Mapping[Any, int | Sequence[float]] | None
"""Declarations of columns; Any stands for names or, with arrays, indices, and for levels."""

Draw: TypeAlias = tuple[Tree, NDArray[np.float64], int]
"""A tree, the weights of its nodes, and how often it was drawn."""

Self = TypeVar("Self", bound="Cascade")


class Cascade(DensityMixin, BaseEstimator, ABC):  # type: ignore[misc] # scikit-learn is untyped
    """What both cascades do; the subclasses document the parameters."""

    model_name: ClassVar[str]

    def __init__(
        self,
        *,
        concentration: float,
        max_branches: int | None,
        density: str,
        predictive: str,
        search: str,
        n_steps: int | None,
        n_chains: int,
        n_jobs: int | None,
        random_state: Seed,
        columns: Names,
        drop: Names,
        nominal: Names,
        ordinal: Ordinal,
        continuous: Continuous,
        missing: str,
        checkpoint: str | Path | None,
        resume: bool,
        progress: Callable[[samplers.Progress], object] | None,
    ) -> None:
        self.concentration = concentration
        self.max_branches = max_branches
        self.density = density
        self.predictive = predictive
        self.search = search
        self.n_steps = n_steps
        self.n_chains = n_chains
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.columns = columns
        self.drop = drop
        self.nominal = nominal
        self.ordinal = ordinal
        self.continuous = continuous
        self.missing = missing
        self.checkpoint = checkpoint
        self.resume = resume
        self.progress = progress

    # -- fitting -----------------------------------------------------------------------------------

    def fit(
        self: Self,
        X: pd.DataFrame | ArrayLike | Table,
        y: object = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Search for the most probable tree, and sample the posterior.

        Parameters
        ----------
        X : DataFrame, (n_rows, n_columns) array or Table
            Rows to learn from. A Table brings its own columns and weights, so the estimator's
            `columns`, `drop`, `nominal`, `ordinal`, `continuous` and `missing` do not apply to it.
        y : ignored
            There are no labels; the parameter is scikit-learn's convention.
        sample_weight : (n_rows,) array of float >= 0, optional
            How many rows each row stands for.

        Returns
        -------
        self
            Ctrl-C ends the search early: the model is then what had been found, and
            ``run_.interrupted`` says so.

        Raises
        ------
        ParameterError
            If a parameter is out of its range.
        DataError
            If the data cannot be used; the message names column, value and row.
        samplers.CheckpointError
            If the checkpoint is of another model or data, is damaged, or cannot be written.
        """
        del y
        search = self.check_parameters()
        table = self._to_table(X, sample_weight)
        posterior = self._make_posterior(table)
        run = search.run(
            posterior,
            default_steps=default_steps(table.n_distinct),
            n_blocks=most_blocks(table.n_distinct),
        )
        columns = table.schema.names
        self.posterior_ = posterior
        self.run_ = PosteriorRun.of(
            run,
            size="n_leaves",
            columns=columns,
            columns_of=_columns_of,
            labels={"first_feature": columns.__getitem__},
            settings=self._settings(table),
        )
        self.schema_ = table.schema
        self.n_features_in_ = len(columns)
        self.feature_names_in_ = np.array(columns, dtype=object)
        best = posterior.canonical(run.best_state)
        self.log_posterior_ = posterior.log_density(best)
        self._counts = posterior.node_statistics(best)[0]
        self._structure = best
        self.summary_ = summarize(table, self.run_, self.search)
        self.__dict__.pop("_draws", None)
        return self

    def check_parameters(self) -> Search:
        """Return how to search; raises ParameterError if any parameter is out of its range."""
        search = Search(
            search=self.search,
            n_steps=self.n_steps,
            n_chains=self.n_chains,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
            checkpoint=self.checkpoint,
            resume=self.resume,
            progress=self.progress,
        )
        self._model()
        if self.max_branches is not None:
            check_integer("max_branches", self.max_branches, minimum=2)
        check_choice("density", self.density, DENSITIES)
        check_choice("predictive", self.predictive, PREDICTIVES)
        check_choice("missing", self.missing, ("error", "level"))
        if self.predictive == "average" and self.search == "anneal":
            raise ParameterError(
                'predictive must be "map" with search "anneal", which draws no trees to average '
                'over, got "average"'
            )
        return search

    def _to_table(
        self, X: pd.DataFrame | ArrayLike | Table, sample_weight: ArrayLike | None
    ) -> Table:
        if isinstance(X, Table):
            if sample_weight is not None:
                raise ParameterError("sample_weight must be None with a Table, which has weights")
            return X
        return Table.from_arrays(
            X,
            sample_weight=sample_weight,
            columns=self.columns,
            drop=self.drop,
            nominal=self.nominal,
            ordinal=self.ordinal,
            continuous=self.continuous,
            missing=self.missing,
        )

    @abstractmethod
    def _model(self) -> CascadeModel:
        """Return the model that the parameters describe; raises ParameterError if they are bad."""

    @abstractmethod
    def _make_posterior(self, table: Table) -> CascadePosterior:
        """Return the model's posterior given a table."""

    def _settings(self, table: Table) -> dict[str, Any]:
        return {
            "model": self.model_name,
            "search": self.search,
            "source": table.source,
            **self.posterior_.parameters(),
        }

    # -- what was learned --------------------------------------------------------------------------

    @property
    def tree_(self) -> DensityTree:
        """The most probable tree found, with counts, volumes and probabilities."""
        check_is_fitted(self, "_structure")
        return self._density_tree(self._structure, self._counts)

    def _density_tree(self, tree: Tree, counts: NDArray[np.float64]) -> DensityTree:
        check_choice("density", self.density, DENSITIES)
        if self.density == "empirical":
            probabilities = empirical_probabilities(tree, counts)
        else:
            probabilities = self._model().probabilities(tree, counts)
        return DensityTree(self.schema_, tree, counts, probabilities, {})

    @cached_property
    def _draws(self) -> list[Draw]:
        """Distinct posterior draws with their nodes' counts and how often each was drawn."""
        drawn = [tree for chain in self.run_.draws for tree in chain]
        if len(drawn) > MAX_KEPT_DRAWS:
            chosen = np.linspace(0, len(drawn) - 1, MAX_KEPT_DRAWS).round().astype(int)
            drawn = [drawn[i] for i in chosen]
        times: dict[Tree, int] = {}
        for tree in drawn:
            times[tree] = times.get(tree, 0) + 1
        return [(tree, self.posterior_.node_statistics(tree)[0], n) for tree, n in times.items()]

    def _check_draws(self) -> None:
        if not self._draws:
            raise ParameterError('predictive must be "map" where no draws were kept, got "average"')

    def score_samples(self, X: Rows) -> NDArray[np.float64]:
        """Return the log density of each row, (n_rows,) float64, nats.

        Parameters
        ----------
        X : DataFrame, array, mapping, Series or Table
            DataFrames are matched by column name. Missing cells are integrated out exactly: a row
            gets the density of the cells that it has.

        Raises
        ------
        DataError
            If a column is missing or a value is outside its column's domain; the message names
            column, value and row.
        """
        check_is_fitted(self, "_structure")
        codes = self.schema_.encode(X)
        check_choice("predictive", self.predictive, PREDICTIVES)
        if self.predictive == "map":
            return self.tree_.score_codes(codes)
        self._check_draws()
        scores = np.array([self._density_tree(t, c).score_codes(codes) for t, c, _ in self._draws])
        times = np.array([n for _, _, n in self._draws], np.float64)
        averaged: NDArray[np.float64] = logsumexp(
            scores, axis=0, b=(times / times.sum())[:, np.newaxis]
        )
        return averaged

    def score(self, X: Rows, y: object = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the (weighted) sum of the rows' log densities, nats."""
        del y
        scores = self.score_samples(X)
        if isinstance(X, Table) and sample_weight is None:
            sample_weight = X.weights
        if sample_weight is None:
            return float(scores.sum())
        weights = check_weights("sample_weight", sample_weight, scores.shape[0])
        return float(np.dot(weights[weights > 0], scores[weights > 0]))

    def sample(
        self, n_samples: int = 1, random_state: int | np.random.Generator | None = None
    ) -> pd.DataFrame:
        """Draw rows from the density, as a DataFrame with the levels' original types."""
        check_is_fitted(self, "_structure")
        n_samples = check_integer("n_samples", n_samples, minimum=1)
        rng = np.random.default_rng(random_state)
        if self.predictive == "map":
            return self.schema_.decode(self.tree_.sample_codes(n_samples, rng), rng)
        self._check_draws()
        times = np.array([n for _, _, n in self._draws], np.float64)
        shares = rng.multinomial(n_samples, times / times.sum())
        drawn = [
            self._density_tree(tree, counts).sample_codes(int(n), rng)
            for (tree, counts, _), n in zip(self._draws, shares, strict=True)
            if n > 0
        ]
        codes = rng.permutation(np.concatenate(drawn, axis=1), axis=1)
        return self.schema_.decode(codes, rng)

    def condition(self, evidence: Mapping[str, object]) -> DensityTree:
        """Return the most probable tree's density given evidence; see `DensityTree.condition`."""
        return self.tree_.condition(evidence)

    def explain(self, row: Mapping[str, object] | pd.Series | pd.DataFrame) -> str:
        """Return in words the rule of the leaf that holds a row; see `DensityTree.explain`."""
        if isinstance(row, pd.DataFrame):
            if len(row) != 1:
                raise ParameterError(f"row must be a single row, got {len(row)}")
            row = row.iloc[0]
        return self.tree_.explain(row)

    def save(self, path: str | Path) -> None:
        """Write the model as JSON; `bayescascade.load` reads it back.

        The file holds the schema, trees and counts, never rows. Writing is atomic: on any error
        the old file stays as it was.
        """
        from bayescascade.cascades.model_file import save_cascade

        check_is_fitted(self, "_structure")
        save_cascade(self, path)

    @classmethod
    def from_record(cls: type[Self], record: Mapping[str, Any]) -> Self:
        """Return the model that a saved file's record describes; see `bayescascade.load`.

        Raises
        ------
        ModelFileError
            If the record is incomplete or contradicts itself.
        """
        from bayescascade.cascades.model_file import cascade_from_record, saved_parameters

        return cascade_from_record(cls(**saved_parameters(cls, record)), record)

    def _restore(
        self,
        schema: Schema,
        tree: Tree,
        counts: NDArray[np.float64],
        draws: list[Draw],
        log_posterior: float,
        summary: FitSummary,
    ) -> None:
        """Become fitted without data, as a saved file says."""
        self.schema_ = schema
        self.n_features_in_ = schema.n_columns
        self.feature_names_in_ = np.array(schema.names, dtype=object)
        self.log_posterior_ = log_posterior
        self.summary_ = summary
        self._structure = tree
        self._counts = counts
        self._draws = draws

    def __str__(self) -> str:
        if not hasattr(self, "_structure"):
            return repr(self)
        from bayescascade.report.text import model_text

        return model_text(self)

    def __getattr__(self, name: str) -> Any:  # Any: attributes that are not there
        if name in ("posterior_", "run_") and "_structure" in self.__dict__:
            raise AttributeError(f"{name} is not in a model that was read from a file: no data is")
        return self.__getattribute__(name)  # raises again what led here

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_structure")


def _columns_of(tree: Tree) -> Sequence[int]:
    columns: list[int] = tree.features_used.tolist()
    return columns
