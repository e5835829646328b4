"""Classifiers by boxes: averaged or exact, and Fast Boxes; `posterior` and `fast` have formulas."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Tags

from bayescascade.base.errors import ParameterError
from bayescascade.base.validation import check_real
from bayescascade.base.watch import Watch
from bayescascade.methods.boxes.base import BoxesClassifier, RareRows
from bayescascade.methods.boxes.exact.levels import Costs, LevelRows
from bayescascade.methods.boxes.exact.program import solve_program
from bayescascade.methods.boxes.exact.search import CertifiedUnion, best_union
from bayescascade.methods.boxes.fast import choose, cluster, draw_boxes
from bayescascade.methods.boxes.learned import LearnedBoxes
from bayescascade.methods.boxes.parameters import BoxParameters, FastBoxParameters
from bayescascade.methods.boxes.path import WEIGHTS, BoxPath
from bayescascade.methods.boxes.posterior import BoxPosterior, BoxState
from bayescascade.methods.boxes.union import BoxUnion, Floats
from bayescascade.model.kept_draws import thinned
from bayescascade.model.matrix_explorer import MatrixExplorer
from bayescascade.model.search import Search, Seed, most_blocks, seed_sequence
from bayescascade.model.solution import Certificate, Solution
from bayescascade.model.summary import FitSummary
from bayescascade.report.page import Page, Pieces, count_of

_MOST_STEPS, _LEAST_STEPS, _ROW_STEPS = 200_000, 20_000, 5e9  # of each chain and phase
_MOST_BLOCKS = 500  # draws of a chain
_ALL_CUTS = 32_767  # for sides of an exact search, which are at values of rows


@dataclass(eq=False, repr=False, kw_only=True)
class BoxClassifier(MatrixExplorer[BoxState, LearnedBoxes], BoxesClassifier):
    """A rare class as a union of boxes: averaged over a posterior, or the best one with a proof.

    Parameters
    ----------
    positive : label or None
        The rare class.
    likelihood : {"pooled", "gibbs", "beta"}
        See `BoxPosterior`; "pooled" samples both, each by half of the chains, and predicts by the
        mean of their rates. The union shown is then that of "beta".
    n_boxes, negative_weight, box_cost, side_cost, temperature, max_cuts, prior_weight
        See `BoxPosterior`. A single printed union hardly does better than a decision tree; a low
        `side_cost` and one box buy one to five sides to read.
    predictive : {"map", "average"}
        By the union shown, or the average of 100 draws.
    search : str
        "exact" finds the best union by the objective of "gibbs", with a proof or a bound; others,
        see `explore`.
    solver : {"branch", "program"}
        Of an exact search. HiGHS proves nothing to the last digit, and so is not called exact.
    memory_limit : float > 0
        Gigabytes of an exact search.

    Attributes
    ----------
    boxes_ : BoxUnion
        The union shown.
    positive_ : label
        The rare class.
    objective_ : float
        What an exact search's union is worth; see `exact.levels`.
    exact_ : CertifiedUnion
        Of an exact search; its `gap` is 0 where nothing is worth more. Not in saved models.

    The others are those of every `MatrixExplorer` and `MatrixClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from bayescascade import BoxClassifier
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> y = (X[:, 0] > 1) & (X[:, 1] < 0.5)
    >>> model = BoxClassifier(n_boxes=1, likelihood="gibbs", side_cost=0.5, search="exact")
    >>> model.fit(X, y).exact_.gap, model.boxes_.n_sides
    (0.0, 2)
    """

    model_name: ClassVar[str] = "BoxClassifier"
    title: ClassVar[str] = "boxes"
    learned_word: ClassVar[str] = "union"
    declares = BoxParameters
    printed: ClassVar[tuple[str, ...]] = (
        "likelihood", "n_boxes", "negative_weight", "box_cost", "side_cost",
    )  # fmt: skip

    _most_kept: ClassVar[int] = 1000  # AUH on pima: .829 by 100, .835 by 800

    positive: Any = BoxParameters.positive.default
    likelihood: str = BoxParameters.likelihood.default
    n_boxes: int = BoxParameters.n_boxes.default
    negative_weight: float | str = BoxParameters.negative_weight.default
    box_cost: float = BoxParameters.box_cost.default
    side_cost: float = BoxParameters.side_cost.default
    temperature: float = BoxParameters.temperature.default
    max_cuts: int = BoxParameters.max_cuts.default
    prior_weight: float = BoxParameters.prior_weight.default
    predictive: str = BoxParameters.predictive.default
    search: str = BoxParameters.search.default
    solver: str = BoxParameters.solver.default
    until: str = BoxParameters.until.default
    memory_limit: float = BoxParameters.memory_limit.default
    n_jobs: int | None = BoxParameters.n_jobs.default
    missing: str = BoxParameters.missing.default
    unknown: str = BoxParameters.unknown.default

    objective_: float = field(init=False)
    _others: list[FitSummary] = field(init=False)  # of the second half of pooled chains

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Search and sample unions of boxes; Ctrl-C ends it with what was found.

        Parameters
        ----------
        X : DataFrame or other table, paths, mapping of columns, array or list of rows
            Numbers, truth values, text and categories; NaN or None is missing.
        y : (n_rows,) array, or str of files
            Labels, of two classes.
        sample_weight : (n_rows,) array of float >= 0, or str of files, optional
            Weights of the rows, 1 each by default.

        Raises
        ------
        ParameterError
            If a parameter is out of its range, or an exact search does not go with the likelihood.
        DataError
            If rows, labels or weights cannot be used.
        """
        search = self._checked()
        self._check_together()
        training = self._read_rare(X, y, sample_weight)
        self._others = []
        self.__dict__.pop("objective_", None)  # of an earlier fit
        if search.search == "exact":
            self._fit_exactly(training, search)
        elif self.likelihood == "pooled":
            self._fit_pooled(training, search)
        else:
            self._sample(self.likelihood, training, search)
            self._show(self.posterior_.union(self._state).halfway(training.rows), training)
        return self

    def _check_together(self) -> None:
        if self.search == "exact" and self.likelihood != "gibbs":
            raise ParameterError(
                f'likelihood must be "gibbs" for search "exact", got {self.likelihood!r}'
            )

    def _posterior_of(self, likelihood: str, training: RareRows, **changed: Any) -> BoxPosterior:
        names = (
            "n_boxes", "negative_weight", "box_cost", "side_cost", "temperature", "max_cuts",
            "prior_weight",
        )  # fmt: skip
        given = {name: getattr(self, name) for name in names} | changed
        return BoxPosterior(*training, likelihood=likelihood, **given)

    def _sample(self, likelihood: str, training: RareRows, search: Search) -> None:
        """Explore one posterior, by fewer steps and draws where rows are many."""
        posterior, n_rows = self._posterior_of(likelihood, training), len(training.rows)
        self._explore(
            posterior, training, search,
            default_steps=int(max(_LEAST_STEPS, min(_MOST_STEPS, _ROW_STEPS / n_rows))),
            n_blocks=min(_MOST_BLOCKS, most_blocks(n_rows)),
        )  # fmt: skip

    def _fit_pooled(self, training: RareRows, search: Search) -> None:
        """Sample "gibbs", then "beta", over one checkpoint, and predict by draws of both."""
        n_own, n_others = ceil(search.n_chains / 2), max(1, search.n_chains // 2)
        # by the number of chains, so that a checkpoint of another number is refused
        seeds = seed_sequence(search.random_state).spawn(search.n_chains + 2)[-2:]
        with search.watch.part(0.5):
            others = replace(search, n_chains=n_others, random_state=seeds[1], is_last=False)
            self._sample("gibbs", training, others)
        if not self.run_.interrupted:
            draws, summary = self._draws, self.summary_
            is_kept = search.checkpoint is not None
            own = replace(search, n_chains=n_own, random_state=seeds[0], part="beta: ",
                          resume=is_kept)  # fmt: skip
            self._sample("beta", training, own)
            most = min(len(draws), len(self._draws), self._most_kept // 2)
            self._draws = [*thinned([self._draws], most), *thinned([draws], most)]
            self._others = [summary]
        self._show(self.posterior_.union(self._state).halfway(training.rows), training)

    def _fit_exactly(self, training: RareRows, search: Search) -> None:
        posterior = self._posterior_of("gibbs", training, max_cuts=_ALL_CUTS)
        self._explore(posterior, training, search, solve=self._solver(training))
        found: CertifiedUnion = self.exact_
        self.objective_ = found.objective
        self._show(found.union.halfway(training.rows), training)

    def _solver(self, training: RareRows) -> Callable[[Any, Search], Solution[BoxState]]:

        def solve(posterior: Any, search: Search) -> Solution[BoxState]:
            rows = LevelRows(*training, posterior.costs)
            if self.solver == "program":
                found = solve_program(rows, self.n_boxes, search.watch)
            else:
                found = best_union(
                    rows, self.n_boxes, watch=search.watch, memory_limit=self.memory_limit * 1e9,
                    progress=lambda gain, bound: search.report(
                        "searching boxes", None, gain=gain, bound=bound),
                )  # fmt: skip
            state = posterior.state(found.union)
            certificate = Certificate(
                found.gap / self.temperature,
                f"{found.n_visited:,} ranges of boxes",
                None,
                f"of up to {count_of(self.n_boxes, 'box', 'boxes')}",
            )
            return Solution(
                result=found,
                state=state,
                log_density=posterior.log_density(state),
                certificate=certificate if self.solver == "branch" else None,
                seconds=found.seconds,
                interrupted=found.interrupted,
                timed_out=found.timed_out,
            )

        return solve

    def _learned(self, state: BoxState, training: RareRows) -> LearnedBoxes:
        """Return a union with its counts; what sides keep out is counted for the one shown."""
        del training
        union, inside = self.posterior_.union(state), self.posterior_.weights_inside(state)
        counts = np.array([self.posterior_.totals - inside, inside])[:, ::-1]
        return LearnedBoxes(union, counts, np.zeros((*union.lower.shape, 2)), self.prior_weight)

    def _show(self, union: BoxUnion, training: RareRows) -> None:
        """Show a union, with all counts."""
        self._best = LearnedBoxes.of(union, *training, self.prior_weight)

    @property
    def _state(self) -> BoxState:
        """The best state found."""
        state: BoxState = self.run_.best_state
        return state

    # -- predicting --------------------------------------------------------------------------------

    def _rate(self, rows: Floats) -> Floats:
        if self.predictive == "map" or not self._draws:  # of an exact search, or none yet
            return self._best.probabilities(rows)
        rates: Floats = np.mean([one.probabilities(rows) for one in self._draws], axis=0)
        return rates

    def path(
        self, X: Any, y: Any, weights: ArrayLike | None = None, sample_weight: Any = None
    ) -> BoxPath:
        """Return the best union for each of several weights of negatives, by exact searches.

        Each search begins with the union of the weight before. `time_limit` is for all of them.

        Parameters
        ----------
        X, y, sample_weight
            As of `fit`.
        weights : (n_weights,) array of float > 0, optional
            By default ten from 0.01 to 1, evenly by their logarithms.

        Raises
        ------
        ParameterError, DataError
            As `fit`.
        """
        self.declares.check(self)
        training = self._read_rare(X, y, sample_weight)
        given = WEIGHTS if weights is None else np.atleast_1d(np.asarray(weights, np.float64))
        for weight in given.tolist():
            check_real("weights", weight, above=0.0)
        watch, found, start = Watch(self.time_limit), [], None
        for left, weight in zip(range(len(given), 0, -1), given.tolist(), strict=True):
            rows = LevelRows(*training, Costs(weight, self.box_cost, self.side_cost))
            with watch.part(1.0 / left):
                one = best_union(
                    rows, self.n_boxes, start=start, watch=watch,
                    memory_limit=self.memory_limit * 1e9,
                )  # fmt: skip
            found.append(one)
            start = one.union
        unions = [one.union.halfway(training.rows) for one in found]
        return BoxPath(given, tuple(unions), tuple(found), self._place, self.classes_, self._reader)

    # -- what was learned --------------------------------------------------------------------------

    def _doubts(self) -> Floats | None:
        if not self._draws:
            return None
        without = np.mean(
            [
                ~(np.isfinite(one.union.lower) | np.isfinite(one.union.upper)).any(axis=0)
                for one in self._draws
            ],
            axis=0,
        )
        return np.tile(without, (self._best.union.n_boxes, 1))

    def _found_pieces(self) -> list[str]:
        if "objective_" not in self.__dict__:
            return super()._found_pieces()
        found = [self.summary_.found_words(self.learned_word), f"objective {self.objective_:,.2f}"]
        if self.solver == "program":
            found[0] = "best found by a program, to the solver's tolerance"
        return found

    @property
    def _objections(self) -> list[str]:
        return [text for one in (self.summary_, *self._others) for text in one.warnings]

    def _how_found(self) -> Page:
        shown = [Pieces(["of gibbs", *one.convergence_pieces]) for one in self._others]
        return (*self._found_page(), *shown)

    # -- files -------------------------------------------------------------------------------------

    def _own_record(self) -> dict[str, Any]:
        return {
            **BoxesClassifier._own_record(self),
            "objective": self.__dict__.get("objective_"),
            "summaries": [one.to_dict() for one in self._others],
        }

    def _read_own(self, record: Mapping[str, Any]) -> None:
        BoxesClassifier._read_own(self, record)
        if record["objective"] is not None:
            self.objective_ = check_real("objective", record["objective"])
        self._others = [FitSummary.from_dict(one) for one in record["summaries"]]

    def _read_learned(self, record: Mapping[str, Any]) -> LearnedBoxes:
        return LearnedBoxes.from_record(record, len(self._encoder.source), self.prior_weight)


@dataclass(eq=False, repr=False, kw_only=True)
class FastBoxes(BoxesClassifier):
    """Boxes around clusters of a rare class, fast: `fast` has the formulas.

    Parameters
    ----------
    positive : label or None
        The rare class.
    n_clusters : int >= 1 or "cv"
        As many boxes; "cv" chooses from 1 to 12 by 3-fold cross-validation.
    expansion : float >= 0 or "cv"
        The paper's beta, which pushes sides outward.
    negative_weight : float > 0
        The paper's c.
    grow : bool
        Whether sides last go outward to the next negative.

    Attributes
    ----------
    starting_, revised_, boxes_ : BoxUnion
        Around clusters, after the losses are minimized, and in the end.
    clusters_ : (n_positives,) int64
        The cluster of each positive.
    n_clusters_, expansion_ : int, float
        Given or chosen.

    The others are those of every `MatrixClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from bayescascade import FastBoxes
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> model = FastBoxes(n_clusters=1, expansion=1.0, random_state=0)
    >>> model.fit(X, (X > 0.8).all(axis=1)).boxes_.n_boxes
    1
    """

    model_name: ClassVar[str] = "FastBoxes"
    title: ClassVar[str] = "fast boxes"
    declares = FastBoxParameters

    positive: Any = FastBoxParameters.positive.default
    n_clusters: int | str = FastBoxParameters.n_clusters.default
    expansion: float | str = FastBoxParameters.expansion.default
    negative_weight: float = FastBoxParameters.negative_weight.default
    grow: bool = FastBoxParameters.grow.default
    random_state: Seed = FastBoxParameters.random_state.default
    missing: str = FastBoxParameters.missing.default
    unknown: str = FastBoxParameters.unknown.default

    starting_: BoxUnion = field(init=False)
    revised_: BoxUnion = field(init=False)
    clusters_: NDArray[np.int64] = field(init=False)
    n_clusters_: int = field(init=False)
    expansion_: float = field(init=False)
    _best: LearnedBoxes = field(init=False)

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Cluster positives, and draw a box around each cluster.

        Parameters
        ----------
        X, y, sample_weight
            As of `BoxClassifier.fit`.

        Raises
        ------
        ParameterError
            If a parameter is out of its range, such as more clusters than positives.
        DataError
            If rows, labels or weights cannot be used.
        """
        self.declares.check(self)
        training = self._read_rare(X, y, sample_weight)
        seed = int(seed_sequence(self.random_state).generate_state(1)[0])
        n_clusters = None if isinstance(self.n_clusters, str) else self.n_clusters
        expansion = None if isinstance(self.expansion, str) else float(self.expansion)
        self.n_clusters_, self.expansion_ = choose(
            *training, n_clusters, expansion, self.negative_weight, self.grow, seed
        )
        self.clusters_ = cluster(*training, self.n_clusters_, seed)
        drawn = draw_boxes(
            *training, self.clusters_, self.expansion_, self.negative_weight, self.grow
        )
        self.starting_, self.revised_ = drawn.starting, drawn.revised
        self._best = LearnedBoxes.of(drawn.final, *training, 1.0)
        return self

    def _how_made(self) -> Page:
        how = "chosen by cross-validation" if "cv" in (self.n_clusters, self.expansion) else "given"
        clusters = count_of(self.n_clusters_, "cluster")
        return (Pieces([f"{clusters}, expansion {self.expansion_:g}, {how}"]),)

    def _fields(self) -> dict[str, Any]:
        return {
            **self._encoding_fields(),
            **self._own_record(),
            "best": self._best.to_record(),
            "starting": self.starting_.to_record(),
            "revised": self.revised_.to_record(),
            "clusters": self.clusters_.tolist(),
            "chosen": {"n_clusters": self.n_clusters_, "expansion": self.expansion_},
        }

    def _restore(self, record: Mapping[str, Any]) -> None:
        self._read_encoding(record)
        self._read_own(record)
        n_columns = len(self._encoder.source)
        chosen = FastBoxParameters.declared()
        self.n_clusters_ = chosen["n_clusters"].check(record["chosen"]["n_clusters"])
        self.expansion_ = chosen["expansion"].check(record["chosen"]["expansion"])
        self.starting_ = BoxUnion.from_record(record["starting"], n_columns)
        self.revised_ = BoxUnion.from_record(record["revised"], n_columns)
        self.clusters_ = np.array(record["clusters"], np.int64)
        self._best = LearnedBoxes.from_record(record["best"], n_columns, 1.0)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # its boxes hold all positives, whatever the others
        return tags
