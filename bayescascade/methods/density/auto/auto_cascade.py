"""`AutoCascade`: the best cascade for a table, chosen by evidence or by held-out rows.

`choosing` compares the candidates, and `held_out` defines them. The chosen one is then fitted to
all rows, and its best tree is for reading. If that is a single leaf, or too large to read, the best
tree of another candidate with a few leaves is shown instead, in every print and picture
(`_shown_cascade`). Scores and draws are of a weighted average: the chosen cascade, averaged over
its trees, and mixtures of classes, with weights by held-out rows (`model.stacking`).
"""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from math import inf, isclose, isnan
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

import samplers
from bayescascade.base.arrays import Codes, Floats
from bayescascade.base.errors import ModelFileError, warn_user
from bayescascade.base.store import Saved, Share, stored
from bayescascade.base.watch import Watch
from bayescascade.data.declarations import declared
from bayescascade.data.table import Table, without_unusable
from bayescascade.methods.density.auto.averaging import member_of
from bayescascade.methods.density.auto.choosing import EFFORTS, CascadeChoice, Chooser
from bayescascade.methods.density.auto.held_out import FOR_READING, Candidate
from bayescascade.methods.density.mixtures.classes import RowClasses
from bayescascade.methods.density.trees.associations import HOW_TO_READ, associations_page
from bayescascade.methods.density.trees.cascade import Cascade
from bayescascade.methods.density.trees.density import LearnedDensityTree
from bayescascade.methods.density.trees.estimators import BranchCascade, LeafCascade
from bayescascade.methods.density.trees.near_best import Without
from bayescascade.methods.density.trees.parameters import AutoParameters
from bayescascade.methods.density.trees.tree_posterior import OF_REDRAWS, operations_of_step
from bayescascade.model.baseline import Baseline
from bayescascade.model.draws import MAX_KEPT_DRAWS
from bayescascade.model.near_best import Alternatives, HasNearBest
from bayescascade.model.sampled import HasDraws
from bayescascade.model.search import Search, Seed, default_steps, seed_sequence
from bayescascade.model.view import View, joined, warnings_page
from bayescascade.report.page import BLANK, Numbers, Page, Pieces, PrintedTable, count_of

_OF_FIT = ("summary_", "run_", "exact_", "posterior_", "log_posterior_")
_OF_CASCADE = (*_OF_FIT, "leaf_", "leaf_choice_")
_MOST_SHOWN, _MOST_PAIRS = 6, 5  # candidates, and associations beside a tree
_DRAWS_TO_READ = 200  # trees beside one that is only shown
_OF_SEARCH, _FEWEST_STEPS = 0.1, 5_000  # share of the effort for chains; least steps of each
_OF_POLISHING = 0.2  # of a chain's steps, to polish its end: draws are averaged
_REDRAWN = {"quick": 0.04, "normal": 0.2, "thorough": inf}  # gigabytes for redraws of subtrees


@dataclass(eq=False, repr=False)
class AutoCascade(HasNearBest, Baseline[LearnedDensityTree]):
    """The best kind of density tree for a table: leaves, splits and prior are chosen.

    Parameters
    ----------
    effort
        Work to compare kinds of trees, and to search for the best tree.
    time_limit
        Seconds after which no more kinds are compared, and the search ends with its best result;
        the result may then depend on the machine. None: the limit of `effort`, counted in
        operations.
    memory_limit
        Gigabytes for sums over trees.
    predictive
        Score and draw from the weighted average of the cascade, averaged over trees, and mixtures
        of classes; or from the best tree. A loaded model averages over draws, even if the original
        averaged over all trees, as in `LeafCascade`.
    tree
        The tree in `tree_`, as in `LeafCascade`; the typical tree is always one of `cascade_`.
    n_steps
        Proposals per chain and phase, if chains explore the chosen kind. None: the number that
        `effort` allows.
    columns, drop, nominal, ordinal, continuous, missing, unknown, checkpoint, resume, progress
        As in `LeafCascade`; the checkpoint belongs to the search of the chosen kind. Columns that
        cannot be used without a declaration, such as text that differs in every row, are left out
        with a warning.

    Attributes
    ----------
    cascade_ : LeafCascade or BranchCascade
        The chosen cascade, fitted to all rows.
    readable_ : LeafCascade, BranchCascade or None
        A cascade whose best tree has 2 to 30 leaves, if the best tree of `cascade_` does not. Its
        tree is shown, but not used for scores and draws.
    mixtures_ : dict of str to density
        The other densities in the weighted average, by their kind: mixtures of classes with
        "independent" or "dependent" columns in a class, as in `CascadeMixture`; trees of "hidden"
        states of the columns; a "continuous" mixture of trees. Empty with effort "quick".
    weights_ : dict of str to float
        Weights in this average, of sum 1: of the "cascade" and of each of `mixtures_`. They
        maximize the density of held-out rows; densities with weights below 0.01 are left out.
    candidates_ : DataFrame
        All kinds that were compared, the best first: settings, log evidence (nats, with the
        normalized prior; NaN if not all trees can be summed over), nats below the largest, mean log
        density of held-out rows, leaves of the best tree, seconds, and counted operations.
    tree_, learned_ : LearnedDensityTree
        The tree that is shown, drawn and conditioned: the best tree of `readable_` if there is one,
        otherwise of `cascade_`; or the typical tree of `cascade_`, see `tree`.
    summary_, run_, exact_, posterior_, log_posterior_, leaf_
        Those of `cascade_`.
    schema_ : Schema
    feature_importances_
        As in `LeafCascade`, of `tree_`.
    n_features_in_, feature_names_in_
        As in `LeafCascade`.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayescascade import AutoCascade
    >>> frame = pd.DataFrame({"sky": ["grey"] * 30 + ["blue"] * 10, "wind": ["yes", "no"] * 20})
    >>> model = AutoCascade(random_state=0).fit(frame)
    >>> model.tree_.n_leaves
    2
    """

    model_name: ClassVar[str] = "AutoCascade"
    title: ClassVar[str] = "auto cascade"
    purpose: ClassVar[str] = Cascade.purpose
    learned_word: ClassVar[str] = Cascade.learned_word
    learned_name: ClassVar[str] = Cascade.learned_name
    size_name: ClassVar[str] = Cascade.size_name
    size_words: ClassVar[tuple[str, str]] = Cascade.size_words
    search: ClassVar[str] = "auto"
    draws_states: ClassVar[bool] = True
    declares = AutoParameters

    effort: str = AutoParameters.effort.default
    _: KW_ONLY
    time_limit: float | None = AutoParameters.time_limit.default
    memory_limit: float = AutoParameters.memory_limit.default
    predictive: str = AutoParameters.predictive.default
    tree: str = AutoParameters.tree.default
    n_steps: int | None = AutoParameters.n_steps.default
    n_chains: int = AutoParameters.n_chains.default
    n_jobs: int | None = AutoParameters.n_jobs.default
    random_state: Seed = AutoParameters.random_state.default
    checkpoint: str | Path | None = AutoParameters.checkpoint.default
    resume: bool = AutoParameters.resume.default
    progress: Callable[[samplers.Progress], object] | None = None

    cascade_: LeafCascade | BranchCascade = field(init=False)
    readable_: LeafCascade | BranchCascade | None = field(init=False)
    mixtures_: dict[str, RowClasses] = field(init=False)
    weights_: Annotated[dict[str, Share], Saved("weights")] = field(init=False)
    _candidates: Annotated[tuple[Candidate, ...], Saved("candidates")] = field(init=False)

    # -- fitting -----------------------------------------------------------------------------------

    def check_parameters(self) -> None:
        """Raise ParameterError if any parameter is out of its range."""
        self._check_all()

    def _check_parameters(self) -> None:
        self._search()

    def _read_rows(self, read: Callable[..., Table]) -> Table:
        return without_unusable(read, lambda text: warn_user(UserWarning(text)), **declared(self))

    def _fit_table(self, table: Table) -> None:
        watch = Watch(self.time_limit)
        chosen_by, found_by = seed_sequence(self.random_state).spawn(2)
        memory_bytes, seed = self.memory_limit * 1e9, int(chosen_by.generate_state(1)[0])
        report = self._search().report
        chooser = Chooser(table, self.effort, memory_bytes, self.n_jobs, seed, report)
        with watch.part(0.5), watch.watching():
            choice = chooser.choose()
        self.fit_chosen(table, choice, watch, found_by)

    def fit_chosen(
        self, table: Table, choice: CascadeChoice, watch: Watch, seed: np.random.SeedSequence
    ) -> Self:
        """Fit the kind that was chosen before to another table."""
        self.schema_, best = table.schema, choice.candidates[0]
        run = self._run_of(best, choice, table)
        if not best.is_summed:  # else there is nothing to resume
            run |= {"checkpoint": self.checkpoint, "resume": self.resume}
        if self.time_limit is not None:
            run["time_limit"] = max(watch.left, 0.1)
        cascade = best.cascade(random_state=seed, predictive=self.predictive, **run)
        cascade._most_blocks = -(-MAX_KEPT_DRAWS // self.n_chains)  # a block takes many steps' time
        if self.predictive != "map":  # else the best tree alone predicts
            cascade._of_polishing = _OF_POLISHING
        cascade.fit(table)
        if choice.is_out_of_time:
            cascade.summary_ = replace(cascade.summary_, stopped_after=self.time_limit)
        elif choice.is_interrupted:
            cascade.summary_ = replace(cascade.summary_, interrupted=True)
            cascade.run_ = replace(cascade.run_, interrupted=True)
        readable: LeafCascade | BranchCascade | None = None
        for candidate in () if cascade.tree_.is_readable else choice.readable:
            run = self._run_of(candidate, choice, table) | (
                {} if candidate.is_summed else FOR_READING
            )
            found = candidate.cascade(random_state=seed, **run)
            if candidate.is_summed:
                found._most_blocks = -(-_DRAWS_TO_READ // self.n_chains)
            found.fit(table)
            if found.tree_.is_readable:
                readable = found
                break
        best = replace(best, n_leaves=cascade._best.tree.n_leaves)  # in all rows
        self.cascade_, self.readable_ = cascade, readable
        self._candidates = (best, *choice.candidates[1:])
        self.mixtures_ = dict(choice.average.members)
        self.weights_ = dict(choice.average.weights)
        self._set_features(self.schema_)
        return self

    def _run_of(self, candidate: Candidate, choice: CascadeChoice, table: Table) -> dict[str, Any]:
        """Return the settings of the search for a candidate's trees."""
        common = {name: getattr(self, name) for name in ("n_jobs", "n_chains", "memory_limit")}
        if not choice.is_interrupted:
            common["progress"] = self.progress
        if candidate.is_summed:
            return {"search": "exact", **common}
        n_steps = self.n_steps
        if n_steps is None:
            a_step = operations_of_step(table, candidate.kind[0]) * 2 * self.n_chains * OF_REDRAWS
            of_search = _OF_SEARCH * EFFORTS[self.effort]
            within = int(min(max(choice.operations_left, 0.0), of_search) / a_step)
            n_steps = max(_FEWEST_STEPS, min(within, default_steps(table.n_distinct)))
        common["memory_limit"] = min(self.memory_limit, _REDRAWN[self.effort])
        return {"search": "anneal+metropolis", "n_steps": n_steps, **common}

    def _search(self) -> Search:
        """Return the settings of the final search; raises ParameterError if they are impossible."""
        own = {k: v for k, v in vars(self).items() if k in Search.__dataclass_fields__}
        return Search(**own, search="auto")

    # -- what was found ----------------------------------------------------------------------------

    @property
    def candidates_(self) -> pd.DataFrame:
        """All candidates, the best first."""
        check_is_fitted(self)
        rows = self._candidates
        evidences = np.array([row.log_evidence for row in rows])
        return pd.DataFrame(
            {
                "settings": [row.words for row in rows],
                "log_evidence": evidences,
                "nats_behind": np.nanmax(evidences) - evidences,
                "held_out": [row.held_out for row in rows],
                "leaves": [row.n_leaves for row in rows],
                "seconds": [row.seconds for row in rows],
                "operations": [row.operations for row in rows],
            }
        )

    @property
    def learned_(self) -> LearnedDensityTree:
        """The tree that is shown; see `tree_` of the class."""
        return self._shown_cascade.learned_

    tree_ = learned_

    @property
    def feature_importances_(self) -> Floats:
        """Share of each column in the gains of the splits of `tree_`, (n_columns,) float64."""
        return self._shown_cascade.feature_importances_

    @property
    def _n_parts(self) -> float:
        return self._current.learned_.n_parts

    plot_posterior = HasDraws.plot_posterior
    to_inference_data = HasDraws.to_inference_data

    def __getattr__(self, name: str) -> Any:  # Any: the chosen cascade's attribute
        if name in _OF_CASCADE and "cascade_" in self.__dict__:
            return getattr(self.cascade_, name)
        if name == "plot_joined" and "cascade_" in self.__dict__:  # for dependent leaves only
            shown = self.learned_
            return getattr(shown if hasattr(shown, name) else self._current.learned_, name)
        return self.__getattribute__(name)  # raises the original error

    def _alternatives(self, nats: float) -> Alternatives[Any, LearnedDensityTree]:
        return self._current._alternatives(nats)

    def without(self, column: str) -> Without:
        """Return the best tree of `cascade_` without a column; see `LeafCascade.without`."""
        check_is_fitted(self)
        return self._current.without(column)

    def _decided(self) -> dict[str, float | str]:
        return {"cascade": self._candidates[0].words}

    @property
    def _total_weight(self) -> float:
        return self.cascade_.summary_.total_weight

    @property
    def _current(self) -> Cascade:
        """The cascade, with this estimator's `predictive` and `tree`."""
        for name in ("predictive", "tree"):
            value = AutoParameters.declared()[name].check(getattr(self, name))
            if getattr(self.cascade_, name) != value:
                setattr(self.cascade_, name, value)
        return self.cascade_

    @property
    def _averaged(self) -> list[tuple[float, Callable[..., Floats], Callable[..., Codes]]]:
        """Weight, scores and draws of each density in the average; with "map", of a tree alone."""
        own = (self._current._score_known, self._current._sample_codes)  # not of the tree shown
        if self.predictive == "map":
            return [(1.0, *own)]
        of_all = {
            kind: (mixture.score_codes, mixture.sample_codes)
            for kind, mixture in self.mixtures_.items()
        }
        of_all["cascade"] = own
        return [(weight, *of_all[name]) for name, weight in self.weights_.items() if weight > 0.0]

    def _score_known(self, codes: Codes) -> Floats:
        scores = [np.log(weight) + score(codes) for weight, score, _ in self._averaged]
        averaged: Floats = np.logaddexp.reduce(scores)
        return averaged

    def _sample_codes(self, n: int, rng: np.random.Generator) -> Codes:
        weights, _, draws = zip(*self._averaged, strict=True)
        times = rng.multinomial(n, weights).tolist()
        drawn: list[Codes] = [draw(k, rng) for draw, k in zip(draws, times, strict=True) if k > 0]
        is_one = len(drawn) == 1
        return drawn[0] if is_one else rng.permutation(np.concatenate(drawn, axis=1), axis=1)

    def explain(self, row: Mapping[str, object] | pd.Series | pd.DataFrame) -> str:
        """Return in words the rule of the tree shown; it says so if scores are not of this."""
        is_alone = not self._average_page() and self._shown_cascade is self._current
        return ("" if is_alone else "tree shown: ") + super().explain(row)

    def to_dot(self) -> str:
        """Return the printed tree as Graphviz source."""
        return self._shown_cascade.to_dot()

    def to_sql(self) -> str:
        """Return the log density of a row as standard SQL; see `DensityParts.to_sql`.

        Raises
        ------
        ParameterError
            If `predictive` is "average", or the chosen leaves are dependent. If there is a
            `readable_`, it has its own `to_sql`.
        """
        check_is_fitted(self)
        return self._current.to_sql()

    @property
    def _shown_cascade(self) -> Cascade:
        """The cascade whose tree every print, picture and record shows."""
        check_is_fitted(self)
        return (self.tree == "best" and self.readable_) or self._current

    # -- what is printed ---------------------------------------------------------------------------

    def view(self) -> View:
        """Return the readable tree, the chosen kind, and the comparison."""
        shown, chosen = self._shown_cascade.view(), self._current.view()
        choice, average = self._choice_page(), self._average_page()
        pairs = self._associations_page()
        objections = warnings_page(self._current.summary_.warnings)
        about: Page = ()
        beside: Page = ()
        if self._shown_cascade is not self._current:
            word = "draws" if self.cascade_.summary_.is_tempered else "posterior"
            about = (Pieces([f"the {word} of the chosen model, not of the tree shown:"]),)
            beside = (Pieces([self._beside_words()]),)
        return shown._replace(
            heading=chosen.heading,
            made=(Pieces(self._found_words()), *average, *objections),
            found=(),
            shown=joined(beside, shown.shown),
            beside=pairs,
            last=choice,
            more=(*objections, *average, *choice, BLANK, *about, *chosen.draws),
            terms=[*shown.terms, *([HOW_TO_READ] if pairs else [])],
            source=chosen.source,
        )

    def _found_words(self) -> list[str]:
        """Return how the best tree was found and how large it is."""
        n_leaves = self.cascade_._best.tree.n_leaves
        if n_leaves == 1:
            return [f"one {self.leaf_} leaf describes these rows best; no other tree was better"]
        found = self.cascade_.summary_.found_words(self.learned_word)
        size = count_of(n_leaves, *self.size_words)
        return [f"{found} (among trees of its kind; see the end)", size]

    def _average_page(self) -> Page:
        """Return the weights of the densities in the average; empty for a cascade alone."""
        if self.predictive == "map" or not self.mixtures_:
            return ()
        texts = [f"cascade {self.weights_['cascade']:.2f}"]
        for kind, mixture in self.mixtures_.items():
            texts.append(f"{_words(kind, mixture)} {self.weights_[kind]:.2f}")
        return (Pieces(["scores and draws: weighted average", *texts]),)

    def _choice_page(self) -> Page:
        """Return model and search of the chosen cascade, and the candidates."""
        scored = [candidate for candidate in self._candidates if not isnan(candidate.held_out)]
        kinds = {
            (candidate.model, candidate.kind, candidate.is_shallow): candidate
            for candidate in reversed(self._candidates)
        }
        listed = [candidate for candidate in self._candidates if candidate in kinds.values()][
            :_MOST_SHOWN
        ]
        by = "held-out rows, nats a row" if scored else "log evidence, nats"
        heading, decimals = ("held out", 4) if scored else ("log evidence", 2)
        worth = {
            candidate.key: candidate.held_out if scored else candidate.log_evidence
            for candidate in self._candidates
        }
        worth_texts = {k: "" if isnan(w) else f"{w:,.{decimals}f}" for k, w in worth.items()}
        texts = [worth_texts[candidate.key] for candidate in listed]
        pieces = [
            f"chosen among {len(self._candidates):,} candidates by {by}; the best of each kind:"
        ]
        n_tied = list(worth_texts.values()).count(texts[0]) if texts[0] else 1
        if n_tied > 1:
            pieces.insert(
                0, f"{n_tied:,} candidates tie for the best, the first of them was chosen"
            )
        n_leaves = Numbers(
            "leaves", [f"{n:,}" if n else "" for n in (candidate.n_leaves for candidate in listed)]
        )
        table = PrintedTable(
            [candidate.words for candidate in listed], [Numbers(heading, texts), n_leaves]
        )
        chosen = self.cascade_
        model = Pieces([f"chosen: {chosen._model_words()}"])
        size = count_of(chosen._best.tree.n_leaves, *self.size_words)
        found = Pieces([*chosen._found_pieces(), size, *chosen.summary_.convergence_pieces])
        return (model, found, Pieces(pieces), BLANK, table)

    def _associations_page(self) -> Page:
        """Return the associations in the best tree, if another one is shown."""
        found = () if self._shown_cascade is self._current else self._current.learned_.associations
        return associations_page(found, self.schema_, _MOST_PAIRS) if found else ()

    def _beside_words(self) -> str:
        """Return why another tree is shown, and how much worse it is."""
        assert self.readable_ is not None
        n_leaves = count_of(self.cascade_._best.tree.n_leaves, *self.size_words)
        beside = next(
            candidate for candidate in self._candidates if candidate.is_of(self.readable_)
        )
        best, by = self._candidates[0], "log evidence"
        lost = (best.log_evidence - beside.log_evidence) / self._total_weight
        if isnan(lost):
            lost, by = best.held_out - beside.held_out, "held-out log density"
        why = "easier to read" if self.cascade_._best.tree.n_leaves > 1 else "more informative"
        text = f"The best tree has {n_leaves}. This one is {why}: {beside.words}"
        return text + ("." if isnan(lost) else f". Its {by} is lower by {lost:,.2f} nats a row.")

    def to_dict(self) -> dict[str, Any]:
        """Return parameters, columns, candidates and the chosen cascade as plain data."""
        return {**super().to_dict(), "parameters": self._parameter_fields()}

    def _own_dict(self) -> dict[str, Any]:
        beside = {} if self.readable_ is None else {"readable": self.readable_.to_dict()}
        candidates = stored(self._candidates)
        shown = "readable" if self._shown_cascade is self.readable_ else "cascade"
        return {
            "shown": shown, "weights": self.weights_, "candidates": candidates,
            "cascade": self.cascade_.to_dict(), **beside,
        }  # fmt: skip

    # -- files -------------------------------------------------------------------------------------

    def _fields(self) -> dict[str, Any]:
        return {
            **super()._fields(),
            "cascade": self.cascade_.to_record(),
            "readable": None if self.readable_ is None else self.readable_.to_record(),
            "mixtures": {kind: mixture.to_record() for kind, mixture in self.mixtures_.items()},
        }

    def _restore(self, record: Mapping[str, Any]) -> None:
        super()._restore(record)
        if not self._candidates:
            raise ValueError("a saved model must have candidates, got none")
        for one in self._candidates:
            one.cascade().check_parameters()
        self.cascade_ = self._read_cascade(record["cascade"])
        beside = record["readable"]
        self.readable_ = None if beside is None else self._read_cascade(beside)
        self.mixtures_ = {
            kind: member_of(kind, one, self.schema_) for kind, one in record["mixtures"].items()
        }
        total = sum(self.weights_.values())
        if {*self.weights_} != {"cascade", *self.mixtures_} or not isclose(total, 1.0):
            raise ValueError("weights must be of the cascade and its mixtures, with sum 1")

    def _read_cascade(self, record: Mapping[str, Any]) -> Any:
        for kind in (LeafCascade, BranchCascade):
            if record["model"] == kind.model_name:
                cascade = kind.from_record(record)
                if cascade.schema_ != self.schema_:
                    raise ModelFileError("a cascade's schema must be that of its model")
                return cascade
        raise ModelFileError(f"a cascade must be leaf or branch, got {record['model']!r}")


def _words(kind: str, density: RowClasses) -> str:
    """Return what a density in the average is."""
    if kind == "hidden":
        return f"tree of {count_of(density.n_components, 'hidden state')} per column"
    if kind == "continuous":
        return f"continuous mixture at {count_of(density.n_components, 'point')}"
    return f"mixture of {count_of(density.n_components, 'class', 'classes')} ({kind} columns)"
