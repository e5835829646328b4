"""`CascadeMixture`: classes of rows, each with its own density, or one cascade for all rows."""

import math
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from math import nan
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd
from scipy.special import entr
from sklearn.utils.validation import check_is_fitted

import samplers
from bayescascade.base.arrays import Codes, Floats
from bayescascade.base.errors import ModelFileError, ParameterError
from bayescascade.base.store import Of, Saved, Within, stored
from bayescascade.base.threads import n_threads_of
from bayescascade.base.watch import Watch
from bayescascade.data.column import MISSING
from bayescascade.data.schema import Rows as AnyRows
from bayescascade.data.table import Table
from bayescascade.methods.density.auto.auto_cascade import AutoCascade
from bayescascade.methods.density.auto.averaging import member_of
from bayescascade.methods.density.cascade_mixtures.learning import MERGED, ONE, learn, page_of
from bayescascade.methods.density.cascade_mixtures.parameters import MixtureParameters
from bayescascade.methods.density.mixtures.choosing import (
    NUMBERS,
    SMOOTHINGS,
    MixtureChooser,
    Scored,
)
from bayescascade.methods.density.mixtures.classes import RowClasses
from bayescascade.methods.density.mixtures.density import MixtureDensity
from bayescascade.methods.density.mixtures.em import KINDS, EMSettings
from bayescascade.methods.density.trees.density import LearnedDensityTree
from bayescascade.model.baseline import Baseline
from bayescascade.model.page import data_pieces
from bayescascade.model.search import Seed, seed_sequence
from bayescascade.model.summary import SUMMARY, FitSummary
from bayescascade.model.view import View, joined
from bayescascade.report.numbers import nats_text
from bayescascade.report.page import Heading, Page, Pieces, count_of

_EFFORTS = {"quick": (2, 5e10), "normal": (6, 2e12), "thorough": (30, 1e13)}
"""Starts, and operations to choose settings, by `effort`."""

_ROWS_AT_ONCE = 5_000  # that are scored between two looks at the time
_MERGED_FROM = {
    "hidden": ("hidden state", "hidden states", "of each column"),
    "continuous": ("point", "points", "of a continuous mixture"),
}
_INSIDE = {"independent": "independent columns", "dependent": "columns joined by a tree"}


@dataclass(eq=False, repr=False)
class CascadeMixture(Baseline[RowClasses | LearnedDensityTree]):
    """Mixture of classes of rows, each with its own density, as in latent class analysis.

    Parameters
    ----------
    n_components
        Number of classes. "auto": it is increased, up to 80, while the held-out density improves.
        With kind "hidden" the number of states of each column (by default 16 or 32), with kind
        "continuous" of points (up to 1024).
    kind
        Distribution inside a class. "independent": columns are independent, as in latent class
        analysis. "dependent": each column depends on at most one other, by a tree of columns.
        "hidden": each column has a class of its own, and mostly keeps that of its neighbor in a
        tree of columns. "continuous": a class is a point in four dimensions, of which the log odds
        of a tree of columns are a smooth function. Both often predict better than a few classes;
        those of their many classes that are alike are shown as one.
        "cascade": there is one class with a cascade, averaged over all its trees. "auto": chosen on
        held-out rows; a cascade is a candidate only if `n_components` and `smoothing` are also
        "auto".
    smoothing
        Number of pseudo-rows in each class. Their columns are independent, and their levels halfway
        between equally common and the shares among all rows. "auto": chosen on held-out rows, from
        0.25 to 64. There is none with kind "continuous".
    time_limit
        Seconds after which nothing more is tried, and EM ends. The result may then depend on the
        machine.
    effort
        Work of the search. It sets `n_starts` if this is None, and limits the work to choose
        settings and a cascade.
    progress : callable or None
        Called with a `samplers.Progress` from time to time.
    columns, drop, nominal, ordinal, continuous, missing
        Which columns to use and how to read them; see `bayescascade.data.table.Table`.

    Attributes
    ----------
    mixture_, learned_ : density
        The classes, the largest first; if they are merged, up to eight. For a cascade, its best
        tree; scores and draws are from the average over trees.
    cascade_ : AutoCascade or None
        The cascade of the one class; None if `kind_` is not "cascade".
    classes_ : DataFrame
        The characteristic levels of each class: number, share and expected rows of the class, and
        levels with their probabilities inside the class and among all rows.
    n_components_ : int
    kind_ : str
    smoothing_ : float
        The values that were chosen or given. Smoothing is NaN for a cascade and for kind
        "continuous".
    candidates_ : DataFrame
        All candidates, the chosen one first, then in order: kind, smoothing, number of classes, and
        mean log density of held-out rows, nats. The best mixture is biased upward by this choice.
        So a cascade is compared with the mixture that is best in the other folds, and may be chosen
        although its density is lower.
    held_out_ : float
        Mean log density of held-out rows for the chosen candidate. NaN if there was no choice, or
        no row could be held out.
    objective_ : (n_steps,) float64
        Log posterior density after each EM step from the best start, nats, up to a constant. Empty
        for a cascade and for merged classes.
    log_likelihood_, bic_ : float
        Log likelihood of all rows, nats, NaN if it is of a cascade and the time limit came first;
        and minus twice this, plus ``n_parameters_ ln(rows)``.
    n_parameters_ : int or None
        Number of free probabilities of the mixture. None for a cascade and for merged classes,
        whose `bic_` is NaN.
    entropy_ : float in [0, 1]
        How certain the classes of rows are: 1 if each is certain, 0 if nothing is known.
    summary_ : FitSummary
        Facts of the data, and whether the search ended early.
    schema_ : Schema
        Columns and levels.
    n_features_in_ : int
    feature_names_in_ : (n_features_in_,) array of str

    Examples
    --------
    >>> import pandas as pd
    >>> from bayescascade import CascadeMixture
    >>> frame = pd.DataFrame({"sky": ["grey"] * 30 + ["blue"] * 30})
    >>> frame["wind"], frame["rain"] = frame["sky"] == "grey", frame["sky"] == "grey"
    >>> model = CascadeMixture(2, kind="independent", smoothing=1.0, random_state=0).fit(frame)
    >>> model.class_probabilities({"sky": "grey", "wind": True, "rain": None}).round(2).max()
    np.float64(1.0)
    """

    model_name: ClassVar[str] = "CascadeMixture"
    title: ClassVar[str] = "cascade mixture"
    purpose: ClassVar[str] = (
        "Which classes of rows there are, how common each class is, and how it differs from all "
        "rows."
    )
    learned_word: ClassVar[str] = "mixture"
    size_name: ClassVar[str] = "n_components"
    size_words: ClassVar[tuple[str, str]] = ("class", "classes")
    declares = MixtureParameters

    n_components: int | str = MixtureParameters.n_components.default
    _: KW_ONLY
    kind: str = MixtureParameters.kind.default
    smoothing: float | str = MixtureParameters.smoothing.default
    n_starts: int | None = MixtureParameters.n_starts.default
    max_iter: int = MixtureParameters.max_iter.default
    tol: float = MixtureParameters.tol.default
    time_limit: float | None = MixtureParameters.time_limit.default
    effort: str = MixtureParameters.effort.default
    n_jobs: int | None = MixtureParameters.n_jobs.default
    random_state: Seed = MixtureParameters.random_state.default
    progress: Callable[[samplers.Progress], object] | None = None

    summary_: Annotated[FitSummary, SUMMARY, Saved("summary")] = field(init=False)
    objective_: Annotated[Floats, Of(None), Saved("objective")] = field(init=False)
    log_likelihood_: Annotated[float, Within(null=nan), Saved("log_likelihood")] = field(init=False)
    entropy_: Annotated[float, Within(0, 1), Saved("entropy")] = field(init=False)
    _candidates: Annotated[list[Scored], Saved("candidates")] = field(init=False)
    _found: RowClasses | AutoCascade = field(init=False)

    # -- fitting -----------------------------------------------------------------------------------

    def check_parameters(self) -> None:
        """Raise ParameterError if any parameter is out of its range."""
        self._check_all()

    def _check_parameters(self) -> None:
        if self.kind == ONE and self.n_components not in (1, "auto"):
            raise ParameterError(
                f'n_components must be 1 or "auto" with kind "{ONE}", got {self.n_components!r}'
            )
        if self.kind in (ONE, "continuous") and self.smoothing != "auto":
            raise ParameterError(
                f'smoothing must be "auto" with kind "{self.kind}", got {self.smoothing!r}'
            )
        if not isinstance(self.random_state, np.random.Generator):
            seed_sequence(self.random_state)
        Watch(self.time_limit)

    def _fit_table(self, table: Table) -> None:
        n, watch = self.n_components, Watch(self.time_limit)
        if n != "auto" and int(n) > table.n_distinct:
            raise ParameterError(
                f"n_components must be at most the number of different rows, "
                f"{table.n_distinct:,}, got {n}"
            )
        chosen_by, *seeds = seed_sequence(self.random_state).spawn(3)
        grid = (
            KINDS if self.kind in ("auto", ONE) else (self.kind,),
            SMOOTHINGS if self.smoothing == "auto" else (float(self.smoothing),),
            NUMBERS if n == "auto" else (int(n),),
        )
        n_starts, most_steps = _EFFORTS[self.effort]
        chooser = MixtureChooser(
            table, grid, chosen_by, self.max_iter, self.tol, n_threads_of(self.n_jobs), watch,
            self._report, most_steps,
        )  # fmt: skip
        cascade = AutoCascade(
            effort=self.effort,
            time_limit=self.time_limit,
            n_jobs=self.n_jobs,
            progress=self.progress,
        )
        self._candidates, self._found, self.summary_, self.objective_ = learn(
            chooser, cascade, self.kind, self.n_starts or n_starts, seeds
        )
        codes = table.codes.astype(np.int32)
        self.log_likelihood_ = self._log_likelihood(table, watch)
        unsure = float(table.weights @ entr(self._memberships(codes)).sum(axis=1))
        entropy = 1.0 - unsure / table.total_weight / math.log(max(2, int(self._n_parts)))
        self.entropy_ = min(1.0, max(0.0, entropy))

    def _log_likelihood(self, table: Table, watch: Watch) -> float:
        """Return that of all rows; NaN for a cascade, which takes long, if the time is up."""
        codes, n = table.codes.astype(np.int32), table.n_distinct
        n_at_once = n if self.cascade_ is None or watch.seconds is None else _ROWS_AT_ONCE
        parts: list[Floats] = []
        for first in range(0, n, n_at_once):
            if parts and watch.is_over():
                return nan
            parts.append(self._score_known(codes[:, first : first + n_at_once]))
        return float(table.weights @ np.concatenate(parts))

    def _report(self, share: float) -> None:
        if self.progress is not None:
            done = min(1000, int(1000 * share))
            self.progress(samplers.Progress("choosing", done, 1000, nan, nan, nan, {}))

    # -- what was found ----------------------------------------------------------------------------

    @property
    def learned_(self) -> RowClasses | LearnedDensityTree:
        """The classes, the largest first, or a cascade's best tree."""
        found = self._found_by_now
        return found.learned_ if isinstance(found, AutoCascade) else found

    mixture_ = learned_

    @property
    def cascade_(self) -> AutoCascade | None:
        """The cascade of the one class, or None."""
        found = self._found_by_now
        return found if isinstance(found, AutoCascade) else None

    @property
    def _found_by_now(self) -> RowClasses | AutoCascade:
        check_is_fitted(self, "_found")
        return self._found

    @property
    def _settings(self) -> EMSettings:
        check_is_fitted(self, "_found")
        return self._candidates[0].settings

    @property
    def n_components_(self) -> int:
        """Number of classes, states or points."""
        return self._settings.n_components

    @property
    def kind_(self) -> str:
        """The kind of the classes."""
        return self._settings.kind

    @property
    def smoothing_(self) -> float:
        """Number of pseudo-rows in each class."""
        return self._settings.smoothing

    @property
    def held_out_(self) -> float:
        """Mean log density of held-out rows with these settings, nats."""
        check_is_fitted(self, "_found")
        return self._candidates[0].held_out

    @property
    def candidates_(self) -> pd.DataFrame:
        """All candidates, the chosen one first."""
        check_is_fitted(self, "_found")
        return pd.DataFrame(
            [(*one.settings, one.held_out) for one in self._candidates],
            columns=["kind", "smoothing", "n_components", "held_out"],
        )

    @property
    def n_parameters_(self) -> int | None:
        """Number of free probabilities of the mixture; None for other kinds."""
        learned = self.learned_
        if not isinstance(learned, MixtureDensity):
            return None
        tables = [table for one in learned.inside for table in one.tables]
        n_rows = sum(table.size // table.shape[-1] for table in tables)
        return int(sum(table.size for table in tables) - n_rows + len(learned.inside) - 1)

    @property
    def bic_(self) -> float:
        """Minus twice the log likelihood, plus ``n_parameters_ ln(rows)``; NaN without this."""
        n_parameters = nan if self.n_parameters_ is None else self.n_parameters_
        penalty = n_parameters * math.log(self._total_weight)
        return penalty - 2 * self.log_likelihood_

    @property
    def classes_(self) -> pd.DataFrame:
        """The characteristic levels of each class; empty for a cascade, which has one class."""
        learned = self.learned_
        standouts = learned.standouts if isinstance(learned, RowClasses) else []
        rows = []
        for k, own in enumerate(standouts):
            of_class = (k + 1, float(learned.probabilities[k]), float(learned.counts[k]))
            for one in own:
                column = self.schema_.columns[one.column]
                level = column.describe_codes([one.code])
                rows.append((*of_class, column.name, level, one.inside, one.overall))
        names = ["class", "share", "rows", "column", "level", "inside", "all_rows"]
        return pd.DataFrame(rows, columns=names)

    def class_probabilities(self, X: AnyRows) -> Floats:
        """Return the probability of each class for each row, (n_rows, n_classes) float64.

        With kind "hidden" it is the expected share of the columns that are in the class.

        Parameters
        ----------
        X : DataFrame or other table, paths, array, mapping, Series or Table
            Rows as in `score_samples`. Missing and unknown cells are summed out.
        """
        return self._memberships(np.maximum(self.encode(X), np.int32(MISSING)))

    def _memberships(self, codes: Codes) -> Floats:
        learned = self.learned_
        if isinstance(learned, RowClasses):
            return learned.class_probabilities(codes)
        return np.ones((codes.shape[1], 1))

    def _score_known(self, codes: Codes) -> Floats:
        one = self.cascade_
        return super()._score_known(codes) if one is None else one._score_known(codes)

    def _sample_codes(self, n: int, rng: np.random.Generator) -> Codes:
        one = self.cascade_
        return super()._sample_codes(n, rng) if one is None else one._sample_codes(n, rng)

    def to_sql(self) -> str:
        """Raise an error: a mixture cannot be written as SQL.

        Raises
        ------
        ParameterError
            Always. For a cascade, use ``mixture_.to_sql()`` for its best tree.
        """
        if self.cascade_ is None:
            return super().to_sql()
        raise ParameterError(
            "SQL needs a density in parts that exclude each other, got an average over trees"
        )

    @property
    def _n_parts(self) -> float:
        """Number of classes that are shown; 1 for a cascade."""
        return 1 if self.cascade_ is not None else self.learned_.n_parts

    def _decided(self) -> dict[str, float | str]:
        if self.cascade_ is not None:
            return {"one": "cascade"}
        if self.kind_ in MERGED:
            return {_MERGED_FROM[self.kind_][1]: self.n_components_}
        return {"classes of": _INSIDE[self.kind_], "smoothing": self.smoothing_}

    @property
    def _total_weight(self) -> float:
        return self.summary_.total_weight

    # -- what is printed ---------------------------------------------------------------------------

    def view(self) -> View:
        """Return data, settings, fit, and the classes with their characteristic levels."""
        view, of_cascade = super().view(), self.cascade_
        (kind, made), candidates, more = self._made(), page_of(self._candidates), None
        doubts = [f"It is the best of {count_of(self.summary_.n_chains, 'start')}; a better one "
                  "may exist."]  # fmt: skip
        if self.kind_ in MERGED:
            doubts = ["Learning goes on only while held-out rows gain; a better model may exist."]
        lead, last = ["Classes are compared with all rows."], candidates
        if of_cascade is not None:
            view = of_cascade.view()
            more = joined((Heading([f"{self.title}: {kind}"]), *made), view.details, candidates)
            made = (*made, *view.made, *view.found)
            lead, doubts, last = [*view.lead], [*view.doubts], joined(view.last, candidates)
        return view._replace(
            heading=[f"{self.title}: {kind}"],
            made=made,
            found=(),
            last=last,
            more=more,
            facts=[*data_pieces(self.summary_, self.schema_), self._n_classes],
            lead=lead,
            doubts=doubts,
        )

    def _made(self) -> tuple[str, Page]:
        """Return what was chosen, and how."""
        summary = self.summary_
        held_out = f"held-out rows {self.held_out_:,.4f} nats a row"
        of_held_out = [] if math.isnan(self.held_out_) else [held_out]
        data = Pieces(data_pieces(summary, self.schema_))
        log_likelihood = f"log likelihood {nats_text(self.log_likelihood_)}"
        if math.isnan(self.log_likelihood_):
            log_likelihood = "log likelihood not known, because the time was up"
        if self.cascade_ is not None:
            kind = "1 class, a cascade averaged over its trees"
            return kind, (data, Pieces([log_likelihood, *of_held_out]))
        how = f"best of {count_of(summary.n_chains, 'EM start')}, not proved"
        if self.kind_ in MERGED:
            how = "learned by batches of rows, not proved to be the best"
        if summary.ending:
            how = f"{summary.ending}: {how}"
        n_parameters, of_parameters = self.n_parameters_, list[str]()
        if n_parameters is not None:
            of_parameters = [f"BIC {nats_text(self.bic_)}", count_of(n_parameters, "parameter")]
        facts = [
            log_likelihood,
            *of_parameters,
            f"relative entropy of classes {self.entropy_:.3f}",
            *of_held_out,
        ]
        inside = [] if self.kind_ in MERGED else [f"each with {_INSIDE[self.kind_]}"]
        smoothing = [] if math.isnan(self.smoothing_) else [f"smoothing {self.smoothing_:g}"]
        kind = ", ".join([self._n_classes, *inside, *smoothing])
        return kind, (data, Pieces([how]), Pieces(facts))

    @property
    def _n_classes(self) -> str:
        n_classes = count_of(int(self._n_parts), *self.size_words)
        if self.kind_ not in MERGED:
            return n_classes
        words = _MERGED_FROM[self.kind_]
        return f"{n_classes}, merged from {count_of(self.n_components_, *words[:2])} {words[2]}"

    def _own_dict(self) -> dict[str, Any]:
        names = (
            "n_components_", "kind_", "smoothing_", "log_likelihood_", "bic_", "n_parameters_",
            "entropy_",
        )  # fmt: skip
        fields = {name.removesuffix("_"): stored(getattr(self, name)) for name in names}
        learned = self._found.to_dict()
        if self.cascade_ is not None:
            learned = {"cascade": learned}
        return {**fields, "candidates": stored(self._candidates), **learned}

    # -- files -------------------------------------------------------------------------------------

    def _fields(self) -> dict[str, Any]:
        return {**super()._fields(), "mixture": self._found.to_record()}

    def _restore(self, record: Mapping[str, Any]) -> None:
        super()._restore(record)
        settings = [one.settings for one in self._candidates]
        mixtures = [one for one in settings if one.kind not in (ONE, "continuous")]
        numbers = [one.smoothing for one in mixtures]
        chosen = self._candidates[0].settings
        if chosen.kind == ONE:
            self._found = cascade = AutoCascade.from_record(record["mixture"])
            if cascade.schema_ != self.schema_:
                raise ModelFileError("a cascade's schema must be that of its model")
        else:
            numbers.append(self.log_likelihood_)
            self._found = learned = member_of(chosen.kind, record["mixture"], self.schema_)
            if learned.n_components != chosen.n_components:
                raise ModelFileError("a mixture must have as many classes as were chosen")
            if not math.isclose(learned.counts.sum(), self._total_weight, rel_tol=1e-6):
                raise ModelFileError("counts of classes must sum to the weight of the rows")
        if any(map(math.isnan, numbers)):
            raise ModelFileError("only a cascade may have no smoothing and no log likelihood")
