"""`CascadeMixture`: classes of rows, each with a density of its own.

`em` has the formulas, `choosing` what rows held out decide, `density` what is learned. The kind,
smoothing and number of classes are chosen first; then EM climbs from several starts on all rows,
and what has the largest log posterior density is kept: the best of these starts, not proved.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from math import nan
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import entr
from sklearn.utils.validation import check_is_fitted

import samplers
from bayescascade.base.errors import ModelFileError, ParameterError
from bayescascade.base.threads import n_threads_of, single_threaded
from bayescascade.base.validation import (
    check_choice,
    check_integer,
    check_jobs,
    check_probability,
    check_real,
)
from bayescascade.base.watch import Watch
from bayescascade.data.column import MISSING
from bayescascade.data.schema import Rows as AnyRows
from bayescascade.data.table import Table
from bayescascade.methods.mixtures.choosing import (
    NUMBERS,
    SMOOTHINGS,
    Candidate,
    Chooser,
    climb_all,
)
from bayescascade.methods.mixtures.density import MixtureDensity
from bayescascade.methods.mixtures.em import KINDS, Settings
from bayescascade.methods.mixtures.rows import Rows
from bayescascade.model.baseline import Baseline
from bayescascade.model.page import data_pieces
from bayescascade.model.search import Seed, seed_sequence
from bayescascade.model.summary import FitSummary
from bayescascade.report.numbers import nats_text
from bayescascade.report.page import (
    BLANK,
    Heading,
    Numbers,
    Page,
    Pieces,
    Table as PrintedTable,
    counted,
)

__all__ = ["CascadeMixture"]

Floats = NDArray[np.float64]

_MOST_SHOWN = 6  # candidates
_OF_CHOICE = 0.6  # of the time


@dataclass(eq=False, repr=False)
class CascadeMixture(Baseline[MixtureDensity]):
    """Classes of rows, each with a density of its own: latent class analysis, and beyond.

    Parameters
    ----------
    n_components : int >= 1 or "auto"
        Number of classes; "auto" grows it while rows held out gain, up to 80.
    kind : {"auto", "independent", "dependent"}
        Inside a class columns are independent, as in latent class analysis, or joined by a tree, in
        which each column depends on one other; "auto" for what rows held out prefer.
    smoothing : float > 0 or "auto"
        As if that many rows had been seen in each class, their columns independent, with levels
        halfway between equally common and as among all rows; "auto" for what rows held out prefer
        from 0.25 to 64.
    n_starts : int >= 1
        EM climbs from as many starts, and the best is kept.
    max_iter : int >= 1
        Most steps of EM from each.
    tol : float > 0
        Nats a row below which a step gains too little to go on.
    time_limit : float > 0 or None
        Seconds after which nothing more is tried, and EM ends; what is chosen then depends on the
        machine. None: what takes about a minute for 13,000 rows of 25 columns.
    n_jobs : int or None
        Starts and folds in parallel, as joblib counts workers. The result does not depend on it.
    random_state : int, SeedSequence, Generator or None
        Seed of folds and starts.
    progress : callable or None
        Takes a `samplers.Progress` now and then.
    columns, drop, nominal, ordinal, continuous, missing
        Which columns to use and how to read them; see `bayescascade.data.table.Table`.
    unknown : {"other", "missing", "error"}
        What a level unseen in fit is; as in `LeafCascade`.

    Attributes
    ----------
    mixture_, learned_ : MixtureDensity
        The classes, the largest first.
    classes_ : DataFrame
        What stands out in each class: its number, share and expected rows, and levels of columns
        with how probable they are inside and among all rows.
    n_components_ : int
    kind_ : str
    smoothing_ : float
        What was chosen, or given.
    candidates_ : DataFrame
        What was weighed, the best first: kind, smoothing, number of classes, and mean log density
        of rows held out, nats.
    held_out_ : float
        That of what was chosen; NaN if nothing was to be chosen, or no row could be held out.
    objective_ : (n_steps,) float64
        Log posterior density after each step from the best start, nats, but for a constant.
    log_likelihood_, bic_ : float
        Of all rows, nats; minus twice that plus ``n_parameters_ ln(rows)``.
    n_parameters_ : int
        Free probabilities of the mixture.
    entropy_ : float in [0, 1]
        How certain the rows' classes are: 1 if each row is surely of one, 0 if nothing is known.
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
        "Which classes of rows there are, how common each is, and what is different in it."
    )
    learned_word: ClassVar[str] = "mixture"
    size_name: ClassVar[str] = "n_components"
    size_words: ClassVar[tuple[str, str]] = ("class", "classes")
    _unlisted: ClassVar[tuple[str, ...]] = (
        "check_parameters", "learned_word", "size_name", "size_words",
    )  # fmt: skip

    n_components: int | str = "auto"
    _: KW_ONLY
    kind: str = "auto"
    smoothing: float | str = "auto"
    n_starts: int = 6
    max_iter: int = 100
    tol: float = 1e-4
    time_limit: float | None = None
    n_jobs: int | None = -1
    random_state: Seed = None
    progress: Callable[[samplers.Progress], object] | None = None

    summary_: FitSummary = field(init=False)
    _learned: MixtureDensity = field(init=False)

    # -- fitting -----------------------------------------------------------------------------------

    def check_parameters(self) -> None:
        """Raise ParameterError if any parameter is out of its range."""
        self._check_all()

    def _check_parameters(self) -> None:
        if self.n_components != "auto":
            if isinstance(self.n_components, str):
                raise ParameterError(
                    f'n_components must be "auto" or an integer >= 1, got {self.n_components!r}'
                )
            check_integer("n_components", self.n_components, minimum=1)
        check_choice("kind", self.kind, ("auto", *KINDS))
        if self.smoothing != "auto":
            check_real("smoothing", self.smoothing, above=0.0)
        check_integer("n_starts", self.n_starts, minimum=1)
        check_integer("max_iter", self.max_iter, minimum=1)
        check_real("tol", self.tol, above=0.0)
        check_jobs(self.n_jobs)
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
        chosen_by, found_by = seed_sequence(self.random_state).spawn(2)
        steps = (self.max_iter, self.tol)
        n_threads = n_threads_of(self.n_jobs)
        grid = (
            KINDS if self.kind == "auto" else (self.kind,),
            SMOOTHINGS if self.smoothing == "auto" else (float(self.smoothing),),
            NUMBERS if n == "auto" else (int(n),),
        )
        with single_threaded():
            chooser = Chooser(table, grid, chosen_by, *steps, n_threads, watch, self._report)
            with watch.part(_OF_CHOICE):
                self._candidates = chooser.choose()
            settings, rows = self._candidates[0].settings, Rows.of(table)
            n_starts = 1 if chooser.is_interrupted else self.n_starts
            (climbs,), is_interrupted = climb_all(
                [rows], settings, found_by, n_starts, *steps, n_threads, watch
            )
        best = max(climbs, key=lambda one: one.objective[-1])
        self._learned = MixtureDensity.of(self.schema_, rows, best.components)
        self.objective_ = np.array(best.objective)
        codes = table.codes.astype(np.int32)
        belongs = self._learned.class_probabilities(codes)
        self.log_likelihood_ = float(table.weights @ self._learned.score_codes(codes))
        unsure = float(table.weights @ entr(belongs).sum(axis=1)) / table.total_weight
        self.entropy_ = 1.0 - unsure / math.log(max(2, settings.n_components))
        self.entropy_ = min(1.0, max(0.0, self.entropy_))
        self.summary_ = FitSummary(
            table.source, table.n_rows, table.n_distinct, table.total_weight, table.notes, "em",
            len(climbs), 0, chooser.is_interrupted or is_interrupted, {}, {}, {},
            stopped_after=self.time_limit if watch.is_over() else None,
        )  # fmt: skip

    def _report(self, share: float) -> None:
        if self.progress is not None:
            done = min(1000, int(1000 * share))
            self.progress(samplers.Progress("choosing", done, 1000, nan, nan, nan, {}))

    # -- what was found ----------------------------------------------------------------------------

    @property
    def learned_(self) -> MixtureDensity:
        """The classes, the largest first."""
        check_is_fitted(self, "_learned")
        return self._learned

    mixture_ = learned_

    @property
    def _settings(self) -> Settings:
        check_is_fitted(self, "_learned")
        return self._candidates[0].settings

    @property
    def n_components_(self) -> int:
        """Number of classes."""
        return self._settings.n_components

    @property
    def kind_(self) -> str:
        """The kind of the classes."""
        return self._settings.kind

    @property
    def smoothing_(self) -> float:
        """Rows imagined in each class."""
        return self._settings.smoothing

    @property
    def held_out_(self) -> float:
        """Mean log density of rows held out with these settings, nats."""
        check_is_fitted(self, "_learned")
        return self._candidates[0].held_out

    @property
    def candidates_(self) -> pd.DataFrame:
        """What was weighed, the best first."""
        check_is_fitted(self, "_learned")
        return pd.DataFrame(
            [(*one.settings, one.held_out) for one in self._candidates],
            columns=["kind", "smoothing", "n_components", "held_out"],
        )

    @property
    def n_parameters_(self) -> int:
        """Free probabilities of the mixture."""
        tables = [table for one in self.learned_.inside for table in one.tables]
        n_rows = sum(table.size // table.shape[-1] for table in tables)
        return int(sum(table.size for table in tables) - n_rows + len(self.learned_.inside) - 1)

    @property
    def bic_(self) -> float:
        """Minus twice the log likelihood, plus ``n_parameters_ ln(rows)``."""
        penalty = self.n_parameters_ * math.log(self._total_weight)
        return penalty - 2 * self.log_likelihood_

    @property
    def classes_(self) -> pd.DataFrame:
        """What stands out in each class."""
        learned = self.learned_
        told = [
            (k + 1, float(learned.probabilities[k]), float(learned.counts[k]), one)
            for k, standouts in enumerate(learned.standouts)
            for one in standouts
        ]
        columns = self.schema_.columns
        return pd.DataFrame(
            [
                (
                    k, share, count, columns[one.column].name,
                    columns[one.column].describe_codes([one.code]), one.inside, one.overall,
                )
                for k, share, count, one in told
            ],
            columns=["class", "share", "rows", "column", "level", "inside", "all_rows"],
        )  # fmt: skip

    def class_probabilities(self, X: AnyRows) -> Floats:
        """Return how probable each class is for each row, (n_rows, n_components) float64.

        Parameters
        ----------
        X : DataFrame or other table, paths, array, mapping, Series or Table
            Rows as for `score_samples`. Missing and unknown cells are summed out.
        """
        codes = self.encode(X)
        return self.learned_.class_probabilities(np.maximum(codes, np.int32(MISSING)))

    @property
    def _total_weight(self) -> float:
        return self.summary_.total_weight

    # -- what is printed ---------------------------------------------------------------------------

    def page(self) -> Page:
        """Return data, settings, fit, and the classes with what stands out in each."""
        return (*self._head(), BLANK, *self.learned_.page(), *self._weighed())

    def _head(self) -> Page:
        learned, summary = self.learned_, self.summary_
        inside = {"independent": "independent columns", "dependent": "a tree of columns"}
        how = f"best of {counted(summary.n_chains, 'start')} of EM, not proved"
        if summary.ending:
            how = f"{summary.ending}: {how}"
        facts = [
            f"log likelihood {nats_text(self.log_likelihood_)}",
            f"BIC {nats_text(self.bic_)}",
            f"{counted(self.n_parameters_, 'parameter')}",
            f"relative entropy of classes {self.entropy_:.3f}",
        ]
        if not math.isnan(self.held_out_):
            facts.append(f"rows held out {self.held_out_:,.4f} nats a row")
        n_classes = counted(len(learned.inside), *self.size_words)
        kind = f"{n_classes} of {inside[self.kind_]}, smoothing {self.smoothing_:g}"
        return (
            Heading([f"{self.title}: {kind}"]),
            Pieces(data_pieces(summary, self.schema_)),
            Pieces([how]),
            Pieces(facts),
        )

    def _weighed(self) -> Page:
        """Return the best of what was weighed; nothing if nothing was to be chosen."""
        if math.isnan(self.held_out_):
            return ()
        rows = self._candidates[:_MOST_SHOWN]
        told = f"chosen from {len(self._candidates):,} candidates by rows held out; the best:"
        columns = [
            Numbers("classes", [str(one.settings.n_components) for one in rows]),
            Numbers("smoothing", [f"{one.settings.smoothing:g}" for one in rows]),
            Numbers("held out", [f"{one.held_out:,.4f}" for one in rows]),
        ]
        table = PrintedTable([one.settings.kind for one in rows], columns)
        return (BLANK, Pieces([told]), table)

    def _shown(self) -> Page:
        return self.learned_.page()

    def _facts(self) -> list[str]:
        return [
            *data_pieces(self.summary_, self.schema_),
            counted(len(self.learned_.inside), *self.size_words),
        ]

    def _doubt(self) -> list[str]:
        n_starts = counted(self.summary_.n_chains, "start")
        return [f"It is the best that was found from {n_starts}; a better one may exist."]

    def _details(self) -> Page:
        return (*self._head(), *self._weighed())

    def _own_dict(self) -> dict[str, Any]:
        names = (
            "n_components_", "kind_", "smoothing_", "log_likelihood_", "bic_", "n_parameters_",
            "entropy_",
        )  # fmt: skip
        told = {name.removesuffix("_"): getattr(self, name) for name in names}
        return {**told, "candidates": self._candidate_records(), **self.learned_.to_dict()}

    # -- files -------------------------------------------------------------------------------------

    def _candidate_records(self) -> list[dict[str, Any]]:
        return [
            {
                **one.settings._asdict(),
                "held_out": None if math.isnan(one.held_out) else one.held_out,
            }
            for one in self._candidates
        ]

    def _own_record(self) -> dict[str, Any]:
        return {
            "summary": self.summary_.to_dict(),
            "candidates": self._candidate_records(),
            "objective": self.objective_.tolist(),
            "log_likelihood": self.log_likelihood_,
            "entropy": self.entropy_,
            "mixture": self._learned.to_record(),
        }

    def _read_own(self, record: Mapping[str, Any]) -> None:
        self.summary_ = FitSummary.from_dict(record["summary"])
        self._candidates = [_candidate(one) for one in record["candidates"]]
        self.objective_ = np.array(record["objective"], np.float64)
        self.log_likelihood_ = check_real("log_likelihood", record["log_likelihood"])
        self.entropy_ = check_probability("entropy", record["entropy"])
        learned = MixtureDensity.from_record(record["mixture"], self.schema_)
        if len(learned.inside) != self._candidates[0].settings.n_components:
            raise ModelFileError("a mixture must have as many classes as were chosen")
        if not (self.objective_.ndim == 1 and np.isfinite(self.objective_).all()):
            raise ModelFileError("a saved objective must be finite numbers")
        if not math.isclose(learned.counts.sum(), self._total_weight, rel_tol=1e-6):
            raise ModelFileError("counts of classes must sum to the weight of the rows")
        self._learned = learned


def _candidate(record: Mapping[str, Any]) -> Candidate:
    held_out = record["held_out"]
    settings = Settings(
        check_choice("kind", record["kind"], KINDS),
        check_real("smoothing", record["smoothing"], above=0.0),
        check_integer("n_components", record["n_components"], minimum=1),
    )
    return Candidate(settings, nan if held_out is None else check_real("held_out", held_out))
