"""The estimators: fit a cascade, then score, draw, condition, explain, print and save.

`LeafCascade` is the thesis's Model I and `BranchCascade` its Model II (Goh 2018, section 3.2);
`posterior` has the formulas. Fitting anneals for the most probable tree and then, by default, runs
Metropolis-Hastings chains from where the annealing chains ended, for how sure one can be.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
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
from bayescascade.cascades.models import (
    BranchModel,
    CascadeModel,
    LeafModel,
    empirical_probabilities,
)
from bayescascade.cascades.posterior import BranchPosterior, CascadePosterior, LeafPosterior
from bayescascade.cascades.summary import FitSummary, summarize
from bayescascade.cascades.tree import Tree
from bayescascade.errors import ParameterError
from bayescascade.report.inference_data import PosteriorRun
from bayescascade.schema import Rows, Schema
from bayescascade.table import Table
from bayescascade.validation import check_choice, check_integer

__all__ = ["BranchCascade", "LeafCascade"]

SEARCHES = ("anneal+metropolis", "anneal", "metropolis", "tempering")
DENSITIES = ("posterior_mean", "empirical")
PREDICTIVES = ("map", "average")

SCHEDULE = samplers.GeometricSchedule(initial_temperature=2.0, final_temperature=0.1)
"""Hotter starts find no better trees: they grow thousands of leaves first."""

MAX_KEPT_DRAWS = 1000  # trees that `predictive="average"` averages over and a saved model holds

Seed: TypeAlias = int | np.random.Generator | np.random.SeedSequence | None

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
        columns: Sequence[str] | None,
        drop: Sequence[str] | None,
        nominal: Sequence[str] | None,
        ordinal: Mapping[str, Sequence[Any] | None] | Sequence[str] | None,
        continuous: Mapping[str, int | Sequence[float]] | None,
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

    # -- fitting ------------------------------------------------------------------------------------

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
        self._check_parameters()
        table = self._to_table(X, sample_weight)
        posterior = self._make_posterior(table)
        run = self._search(posterior)
        columns = table.schema.names
        self.posterior_ = posterior
        self.run_ = PosteriorRun.of(run, columns, _columns_of, self._settings(table))
        self.schema_ = table.schema
        self.n_features_in_ = len(columns)
        self.feature_names_in_ = np.array(columns, dtype=object)
        self.log_posterior_ = run.best_log_density
        best = posterior.canonical(run.best_state)
        self._counts = posterior.node_statistics(best)[0]
        self._structure = best
        self.summary_ = summarize(table, self.run_, self.search)
        self.__dict__.pop("_draws", None)
        return self

    def _check_parameters(self) -> None:
        check_choice("search", self.search, SEARCHES)
        check_choice("density", self.density, DENSITIES)
        check_choice("predictive", self.predictive, PREDICTIVES)
        check_choice("missing", self.missing, ("error", "level"))
        if self.n_steps is not None:
            check_integer("n_steps", self.n_steps, minimum=1)
        check_integer("n_chains", self.n_chains, minimum=1)
        if self.n_jobs is not None:
            check_integer("n_jobs", self.n_jobs)
            if self.n_jobs == 0:
                raise ParameterError("n_jobs must be an integer other than 0 or None, got 0")
        if self.predictive == "average" and self.search == "anneal":
            raise ParameterError(
                'predictive must be "map" with search "anneal", which draws no trees to average '
                'over, got "average"'
            )

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

    def _search(self, posterior: CascadePosterior) -> samplers.Run[Tree]:
        """Run the engines that `search` names, over one checkpoint."""
        seed = _seed_sequence(self.random_state)
        checkpoint = None
        if self.checkpoint is not None:
            checkpoint = samplers.Checkpoint(self.checkpoint, resume=bool(self.resume))
        elif self.resume:
            raise ParameterError("resume must be False without a checkpoint, got True")
        annealing_seed, sampling_seed = seed.spawn(2)
        common: dict[str, Any] = {
            "n_steps": _default_steps(posterior.table) if self.n_steps is None else self.n_steps,
            "n_chains": self.n_chains,
            "n_jobs": self.n_jobs,
            "progress": self.progress,
        }

        def section(name: str) -> samplers.CheckpointSection | None:
            return None if checkpoint is None else checkpoint.section(name)

        run: samplers.Run[Tree] | None = None
        starts = None
        if "anneal" in self.search:
            run = samplers.anneal(
                posterior,
                schedule=SCHEDULE,
                seed=annealing_seed,
                checkpoint=section("anneal"),
                **common,
            )
            starts = run.final_states
        if self.search != "anneal" and not (run and run.interrupted):
            engine = samplers.tempering if self.search == "tempering" else samplers.metropolis
            sampled = engine(
                posterior,
                initial_states=starts,
                seed=sampling_seed,
                checkpoint=section("sample"),
                **common,
            )
            run = sampled if run is None else _best_of(run, sampled)
        assert run is not None
        if checkpoint is not None and not run.interrupted:
            checkpoint.finish()
        return run

    def _settings(self, table: Table) -> dict[str, Any]:
        return {
            "model": self.model_name,
            "search": self.search,
            "source": table.source,
            **self.posterior_.parameters(),
        }

    # -- what was learned ---------------------------------------------------------------------------

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
        from bayescascade.validation import check_weights

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
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_structure")


class LeafCascade(Cascade):
    """Density tree with a Poisson prior on its number of leaves (Goh 2018, Model I).

    Parameters
    ----------
    expected_leaves : float > 0
        Mean of the Poisson.
    concentration : float > 0
        Dirichlet parameter of every leaf: as if that many rows had been seen in each.
    max_branches : int >= 2 or None
        Most branches of a split; None for as many as there are levels.
    density : {"posterior_mean", "empirical"}
        Probability of a leaf: ``(n_l + alpha) / (n + K alpha)``, or ``n_l / n``, which is zero on
        an empty leaf.
    predictive : {"map", "average"}
        Score and draw from the most probable tree, or from the average over posterior draws.
    search : {"anneal+metropolis", "anneal", "metropolis", "tempering"}
        Anneal for the best tree and sample from there; only anneal; or only sample, by plain
        chains or by replica exchange.
    n_steps : int >= 1 or None
        Proposals per chain in each of annealing and sampling; a quarter of the sampling is
        discarded as warm-up. None: 1,000 per distinct row, at least 100,000 and at most 1,000,000,
        and for more than 40,000 rows fewer again, so that the work stays about the same.
    n_chains : int >= 1
        Independent chains.
    n_jobs : int or None
        Chains run in parallel, as joblib counts workers; the result does not depend on it.
    random_state : int, SeedSequence, Generator or None
        Seed of everything random.
    columns, drop, nominal, ordinal, continuous, missing
        Which columns to use and how to read them; see `bayescascade.table.Table`.
    checkpoint : path, optional
        File to save the run to every few seconds, so that it can go on after a crash.
    resume : bool
        Go on with the run in `checkpoint`; the result is that of a run never interrupted.
    progress : callable, optional
        Called with a `samplers.Progress` about twice a second.

    Attributes
    ----------
    tree_ : DensityTree
        The most probable tree found.
    log_posterior_ : float
        Its log posterior density, nats, unnormalized.
    posterior_ : LeafPosterior
        The posterior; not there in a model read from a file, which holds no data.
    run_ : PosteriorRun
        Draws, traces, acceptance; see `PosteriorRun.to_inference_data`. Not in a loaded model.
    summary_ : FitSummary
        What is printed and saved: data, convergence, posterior of the leaf count and columns.
    schema_ : Schema
        Columns and levels.
    n_features_in_ : int
    feature_names_in_ : (n_features_in_,) array of str

    Examples
    --------
    >>> import pandas as pd
    >>> from bayescascade import LeafCascade
    >>> frame = pd.DataFrame({"sky": ["grey"] * 30 + ["blue"] * 10, "wind": ["yes", "no"] * 20})
    >>> model = LeafCascade(expected_leaves=2, n_steps=2000, random_state=0).fit(frame)
    >>> model.tree_.n_leaves
    2
    >>> model.explain({"sky": "grey", "wind": "no"})
    'sky is grey: 30 of 40 rows, probability 0.7273, density 0.3636, 1.45 x uniform'
    """

    model_name: ClassVar[str] = "leaf"

    def __init__(
        self,
        expected_leaves: float = 8.0,
        concentration: float = 2.0,
        max_branches: int | None = 2,
        *,
        density: str = "posterior_mean",
        predictive: str = "map",
        search: str = "anneal+metropolis",
        n_steps: int | None = None,
        n_chains: int = 4,
        n_jobs: int | None = 1,
        random_state: Seed = None,
        columns: Sequence[str] | None = None,
        drop: Sequence[str] | None = None,
        nominal: Sequence[str] | None = None,
        ordinal: Mapping[str, Sequence[Any] | None] | Sequence[str] | None = None,
        continuous: Mapping[str, int | Sequence[float]] | None = None,
        missing: str = "error",
        checkpoint: str | Path | None = None,
        resume: bool = False,
        progress: Callable[[samplers.Progress], object] | None = None,
    ) -> None:
        self.expected_leaves = expected_leaves
        super().__init__(
            concentration=concentration,
            max_branches=max_branches,
            density=density,
            predictive=predictive,
            search=search,
            n_steps=n_steps,
            n_chains=n_chains,
            n_jobs=n_jobs,
            random_state=random_state,
            columns=columns,
            drop=drop,
            nominal=nominal,
            ordinal=ordinal,
            continuous=continuous,
            missing=missing,
            checkpoint=checkpoint,
            resume=resume,
            progress=progress,
        )

    def _make_posterior(self, table: Table) -> CascadePosterior:
        return LeafPosterior(table, self.expected_leaves, self.concentration, self.max_branches)

    def _model(self) -> CascadeModel:
        return LeafModel(self.expected_leaves, self.concentration)


class BranchCascade(Cascade):
    """Density tree with a Poisson prior on the branches of every node (Goh 2018, Model II).

    Parameters
    ----------
    expected_branches : float > 0
        Mean of the Poisson.
    feature_inclusion : float in (0, 1) or None
        Probability that a column is used at all, the thesis's optional upper level; None for none.
    concentration : float > 0
        Dirichlet parameter of every branch.
    max_branches : int >= 2 or None
        Most branches of a split; None for as many as there are levels.
    density, predictive, search, n_steps, n_chains, n_jobs, random_state, columns, drop, nominal, \
ordinal, continuous, missing, checkpoint, resume, progress
        As in `LeafCascade`; the posterior mean of a leaf is a product along its path.

    Attributes
    ----------
    tree_, log_posterior_, posterior_, run_, summary_, schema_, n_features_in_, feature_names_in_
        As in `LeafCascade`.
    """

    model_name: ClassVar[str] = "branch"

    def __init__(
        self,
        expected_branches: float = 2.0,
        concentration: float = 2.0,
        max_branches: int | None = None,
        *,
        feature_inclusion: float | None = None,
        density: str = "posterior_mean",
        predictive: str = "map",
        search: str = "anneal+metropolis",
        n_steps: int | None = None,
        n_chains: int = 4,
        n_jobs: int | None = 1,
        random_state: Seed = None,
        columns: Sequence[str] | None = None,
        drop: Sequence[str] | None = None,
        nominal: Sequence[str] | None = None,
        ordinal: Mapping[str, Sequence[Any] | None] | Sequence[str] | None = None,
        continuous: Mapping[str, int | Sequence[float]] | None = None,
        missing: str = "error",
        checkpoint: str | Path | None = None,
        resume: bool = False,
        progress: Callable[[samplers.Progress], object] | None = None,
    ) -> None:
        self.expected_branches = expected_branches
        self.feature_inclusion = feature_inclusion
        super().__init__(
            concentration=concentration,
            max_branches=max_branches,
            density=density,
            predictive=predictive,
            search=search,
            n_steps=n_steps,
            n_chains=n_chains,
            n_jobs=n_jobs,
            random_state=random_state,
            columns=columns,
            drop=drop,
            nominal=nominal,
            ordinal=ordinal,
            continuous=continuous,
            missing=missing,
            checkpoint=checkpoint,
            resume=resume,
            progress=progress,
        )

    def _make_posterior(self, table: Table) -> CascadePosterior:
        return BranchPosterior(
            table,
            self.expected_branches,
            self.concentration,
            self.max_branches,
            self.feature_inclusion,
        )

    def _model(self) -> CascadeModel:
        return BranchModel(self.expected_branches, self.concentration, self.feature_inclusion)


def _seed_sequence(random_state: Seed) -> np.random.SeedSequence:
    """Return the seed sequence of `random_state`; raises ParameterError if it is no seed."""
    if isinstance(random_state, np.random.SeedSequence):
        return random_state
    if isinstance(random_state, np.random.Generator):
        return random_state.bit_generator.seed_seq.spawn(1)[0]  # type: ignore[attr-defined]
    if random_state is not None:
        random_state = check_integer("random_state", random_state, minimum=0)
    return np.random.SeedSequence(random_state)


def _default_steps(table: Table) -> int:
    """Return more steps for more rows, until steps themselves, which touch more rows, get dear."""
    n = table.n_distinct
    return int(max(50_000, min(max(100_000, 1000 * n), 1_000_000, 40_000_000_000 / max(n, 1))))


def _best_of(first: samplers.Run[Tree], second: samplers.Run[Tree]) -> samplers.Run[Tree]:
    """Return the second run with the better of the two best states, and the time of both."""
    better = first if first.best_log_density >= second.best_log_density else second
    return replace(
        second,
        best_state=better.best_state,
        best_log_density=better.best_log_density,
        seconds={**first.seconds, **second.seconds},
    )


def _columns_of(tree: Tree) -> Sequence[int]:
    columns: list[int] = tree.features_used.tolist()
    return columns
