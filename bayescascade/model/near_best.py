"""As good as the best: all models near the best, and the share of the posterior that they hold.

A family lists its states by a small contract, `Alternatives`. This module adds up states that are
the same model, such as trees with the same leaves, and compares the models: the columns that they
use, and the rows on which they disagree.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from math import exp, inf, log
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import pandas as pd
from scipy.special import logsumexp, softmax
from sklearn.utils.validation import check_is_fitted

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import TooLargeError
from bayescascade.base.validation import check_integer, check_real
from bayescascade.base.watch import OutOfTime, Watch, check_time
from bayescascade.report.numbers import probability_text, share_text
from bayescascade.report.page import (
    BLANK,
    Heading,
    Numbers,
    Page,
    Pieces,
    PrintedTable,
    count_of,
)
from bayescascade.report.printed import Readable

_MOST_STATES = 50  # on average, for each of the most models
_SMALL = 1e-9  # share of the posterior that rounding may leave
_TIED = 1e-9  # nats: states of equal density, up to rounding
_SHOWN, _MOST_COLUMNS, _MOST_EXCHANGES = 5, 10, 3  # in a print
_RARE, _USUAL = 0.05, 0.5  # inclusions of columns that may replace each other
_FACTOR = 2.0  # between densities that disagree

S = TypeVar("S")
L = TypeVar("L")


class Alternative(NamedTuple, Generic[S]):
    """A state that is a model, or one of several states that are."""

    state: S
    log_posterior: float  # log of its density, or of the sum over `n_states`; nats, unnormalized
    key: Hashable  # equal for states that are the same model
    n_states: float = 1.0  # how many states it stands for


@dataclass(frozen=True, kw_only=True)
class Alternatives(Generic[S, L]):
    """What a family knows about its states near the best one; L is the readable form of a model."""

    states: Iterable[Alternative[S]]  # all, the best first, at least to the nats below it
    is_proved: bool  # whether these are all
    log_sum: tuple[float, float] | None  # bounds on the log sum over all states; None if unknown
    found: str  # how they were found, such as "by chains"; printed unless `is_proved`
    nouns: tuple[str, str]  # of states, such as "tree" and "trees"
    same: str  # such as "trees with the same leaves"; empty if each state is a model
    readable: Callable[[S], L]
    importances: Callable[[S], Floats]  # (p,) >= 0: share of each column in what a model gains
    parts: Callable[[L], Mapping[str, str]]  # a number, as text, for each part in words
    predictions: Callable[[Sequence[L], Any], Floats]
    """For models and rows: log densities (m, n), or probabilities of classes (m, n, n_classes)."""


class HasNearBest(ABC):
    """An estimator that lists the models near the best."""

    @abstractmethod
    def _alternatives(self, nats: float) -> Alternatives[Any, Any]:
        """Return the states, at least to `nats` below the best; ParameterError if it cannot."""

    def near_best(self, nats: float = 3.0, most: int = 1000) -> "NearBest[Any]":
        """Return the models that are nearly as probable as the best one.

        If an exact search found the best model, these are all, in order, with exact probabilities.
        Otherwise they are those among the draws, and others may exist. Ctrl-C, `time_limit` and
        `memory_limit` end the listing, and what was found is returned.

        Parameters
        ----------
        nats : float >= 0
            Most nats of log posterior below the best. A model 3 nats below is 20 times less
            probable.
        most : int >= 1
            Most models. If there are more, `is_complete` is False.

        Returns
        -------
        NearBest

        Raises
        ------
        ParameterError
            If a parameter is out of its range, or the model lacks what the listing needs.
        """
        nats = check_real("nats", nats, minimum=0.0)
        check_integer("most", most, minimum=1)
        check_is_fitted(self)
        names = [str(name) for name in vars(self)["feature_names_in_"]]
        with Watch(getattr(self, "time_limit", None)).watching():
            return _listed(self._alternatives(nats), nats, most, names)


def _listed(
    given: Alternatives[S, L], nats: float, most: int, names: Sequence[str]
) -> "NearBest[L]":
    """Add up the states of each model; see `HasNearBest.near_best`.

    Without sums over states, the first state below the limit ends the listing. With sums, models
    of many states may be near the best although each of their states is not. Then the listing
    continues until all other states together are less probable than the limit.
    """
    groups: dict[Hashable, _Group[S]] = {}
    best, last, left, n_states, ended = -inf, -inf, 1.0, 0, ""
    high = None if given.log_sum is None else given.log_sum[1]
    try:
        for state in given.states:
            check_time()
            if high is not None and given.same:
                if left < exp(best - nats - high):
                    break
            elif state.log_posterior < best - nats - _TIED:
                break
            if n_states >= _MOST_STATES * most:
                ended = f"there may be others beyond {n_states:,} {given.nouns[1]}"
                break
            if state.key not in groups and len(groups) == most:
                ended = f"there may be more than {most:,}"
                if state.log_posterior < last - _TIED:
                    break
                continue  # it may be as probable as states of the listed models that come later
            own = groups.setdefault(state.key, _Group(state.state))
            own.log_posterior = float(np.logaddexp(own.log_posterior, state.log_posterior))
            own.n_states += state.n_states
            best, last, n_states = max(best, own.log_posterior), state.log_posterior, n_states + 1
            left -= 0.0 if high is None else exp(state.log_posterior - high)
    except OutOfTime:
        ended = "the time limit ended the listing"
    except KeyboardInterrupt:
        ended = "the listing was interrupted"
    except TooLargeError:
        ended = "the memory limit ended the listing"
    if not groups:
        raise KeyboardInterrupt
    if high is not None and given.same and left > max(_SMALL, exp(best - nats - high)):
        ended = ended or f"models of many less probable {given.nouns[1]} may be missing"
    found = [group for group in groups.values() if group.log_posterior >= best - nats - _TIED]
    found.sort(key=lambda alternative: -alternative.log_posterior)
    return NearBest(
        given=given,
        models=[given.readable(alternative.state) for alternative in found],
        log_posteriors=np.array([alternative.log_posterior for alternative in found]),
        n_states=np.array([alternative.n_states for alternative in found]),
        nats=nats,
        ended=ended,
        names=list(names),
        states=[alternative.state for alternative in found],
        left=left,
    )


@dataclass(slots=True)
class _Group(Generic[S]):
    """The states of a model that were found; the first one is the most probable."""

    state: S
    log_posterior: float = -inf
    n_states: float = 0.0


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class NearBest(Readable, Generic[L]):
    """The models near the best, the most probable first; see `near_best`.

    Parameters
    ----------
    models : list
        The models in their readable form, such as trees.
    log_posteriors : (n,) float64
        Log posterior of each model, nats, unnormalized: the log of the sum over its states.
    n_states : (n,) float64
        Number of states, such as trees, that are the same model.
    nats : float
        Most nats below the best model.
    ended : str
        What ended the listing early; empty if nothing did.
    names : list of str
        The columns.
    states : list
        The most probable state of each model.
    left : float
        Bound on the probability of all states that were not listed; 1 if it is unknown.
    """

    given: Alternatives[Any, L]
    models: Sequence[L]
    log_posteriors: Floats
    n_states: Floats
    nats: float
    ended: str
    names: Sequence[str]
    states: Sequence[Any]
    left: float

    @property
    def is_complete(self) -> bool:
        """Whether it is proved that no other model is within `nats` of the best."""
        return self.given.is_proved and not self.ended

    @property
    def weights(self) -> Floats:
        """Probability of each model if one of these is true, (n,) float64, with sum 1."""
        weights: Floats = softmax(self.log_posteriors)
        return weights

    @property
    def probabilities(self) -> Floats | None:
        """Posterior probability of each model, (n,) float64; None if the rest is unknown."""
        if self.given.log_sum is None:
            return None
        probabilities: Floats = np.exp(self.log_posteriors - np.mean(self.given.log_sum))
        return probabilities

    @property
    def share(self) -> tuple[float, float] | None:
        """Bounds on the share of the posterior that the models hold; None if nothing is known."""
        if self.given.log_sum is None:
            return None
        total, (low, high) = float(logsumexp(self.log_posteriors)), self.given.log_sum
        return min(1.0, exp(total - high)), min(1.0, exp(total - low))

    @property
    def n_first(self) -> int:
        """How many of the first models are proved to be the most probable ones.

        If the listing ended early, a model of many states may be missing, but its probability is at
        most that of all states that were not listed.
        """
        if self.is_complete:
            return len(self.models)
        if self.probabilities is None:
            return 0
        return int(np.count_nonzero(self.probabilities > self.left))

    @cached_property
    def gains(self) -> Floats:
        """Share of each column in what each model gains, (n, p) float64."""
        return np.array([self.given.importances(state) for state in self.states])

    @cached_property
    def importances(self) -> pd.DataFrame:
        """For each column, its share in what the models gain: least, mean and most; and inclusion.

        Inclusion is the probability that a model uses the column. Means and inclusions are weighted
        by `weights`. The most important column is first.
        """
        gains, weights = self.gains, self.weights
        frame = pd.DataFrame(
            {
                "least": gains.min(axis=0),
                "mean": weights @ gains,
                "most": gains.max(axis=0),
                "inclusion": weights @ (gains > 0),
            },
            index=pd.Index(self.names, name="column"),
        )
        return frame.sort_values("mean", ascending=False, kind="stable")

    @cached_property
    def exchanges(self) -> pd.DataFrame:
        """Pairs of columns that replace each other: most models use one, and few use both.

        `either` and `both` are probabilities, by `weights`. The strongest pair is first.
        """
        uses, weights = self.gains > 0, self.weights
        alone = weights @ uses
        rows = []
        for i, j in combinations(np.flatnonzero(alone > _RARE).tolist(), 2):
            both, either = weights @ (uses[:, i] & uses[:, j]), weights @ (uses[:, i] | uses[:, j])
            lack = alone[i] * alone[j] - both
            if either > _USUAL and lack > 0.01:
                rows.append((lack, self.names[i], self.names[j], either, both))
        rows.sort(key=lambda row: -row[0])
        return pd.DataFrame([row[1:] for row in rows], columns=["one", "other", "either", "both"])

    def disagreements(self, X: Any) -> pd.DataFrame:
        """Return the range of the models' predictions for each row, the widest range first.

        Parameters
        ----------
        X : rows as in `score_samples` or `predict`

        Returns
        -------
        DataFrame
            Indexed by the position of the row: `low`, `high` and `mean` (by `weights`) of the log
            density in nats, or of the probability of the class that the mean favors. `differs` says
            whether densities differ by more than a factor of 2, or models predict other classes.
        """
        predictions, weights = self.given.predictions(self.models, X), self.weights
        if predictions.ndim == 3:
            predicted = predictions.argmax(axis=2)
            differs = (predicted != predicted[0]).any(axis=0)
            favored = np.einsum("m,mnc->nc", weights, predictions).argmax(axis=1)
            predictions = predictions[:, np.arange(favored.size), favored]
            mean = weights @ predictions
        else:
            differs = np.ptp(predictions, axis=0) > log(_FACTOR)
            mean = logsumexp(predictions, axis=0, b=weights[:, np.newaxis])
        low, high = predictions.min(axis=0), predictions.max(axis=0)
        frame = pd.DataFrame({"low": low, "high": high, "mean": mean, "differs": differs})
        return frame.iloc[np.argsort(low - high, kind="stable")]

    # -- what is printed ---------------------------------------------------------------------------

    def page(self, top: int = _SHOWN) -> Page:
        """Return the first models side by side, and what all of them have in common."""
        return (
            Heading([self._count_words()]),
            Pieces([*self._model_words(), self._share_words()]),
            BLANK,
            self._models_table(top),
            BLANK,
            *self._parts_page(top),
            *self._columns_page(),
        )

    def _count_words(self) -> str:
        words = ("model", "models") if self.given.same else self.given.nouns
        n = count_of(len(self.models), *words)
        where = f"within {self.nats:g} nats of the best"
        if self.is_complete:
            return f"{n} {where} (proved: no others are)"
        why = self.ended if self.given.is_proved else f"found {self.given.found}, not proved"
        return f"{n} {where} ({why})"

    def _model_words(self) -> list[str]:
        """Return what a model is, if it may be several states, and which are proved to be first."""
        texts = []
        if self.given.same:
            n = f"{self.n_states.sum():,.0f} {self.given.nouns[1]}"
            texts = [f"{self.given.same} are one model: {n}"]
        if self.given.is_proved and not self.is_complete:
            first = f"the first {self.n_first:,}" if self.n_first else "no model"
            texts.append(f"proved to be the most probable: {first}")
        return texts

    def _share_words(self) -> str:
        if self.share is None:
            return "their share of the posterior is not known"
        low, high = self.share
        error = f"exact to {max(high - low, 1e-12):.0e}"
        return f"they hold {share_text(low)} of the posterior ({error})"

    def _models_table(self, top: int) -> PrintedTable:
        n = min(top, len(self.models))
        shares = self.weights if self.probabilities is None else self.probabilities
        parts = [set(self.given.parts(model)) for model in self.models[:n]]
        differ = ["", *(f"{len(own - parts[0])} of {len(own)}" for own in parts[1:])]
        below = self.log_posteriors[0] - self.log_posteriors[:n]
        name = "probability" if self.probabilities is not None else "share of\nthese"
        columns = [
            Numbers(name, list(map(_short, shares[:n].tolist()))),
            Numbers("nats below", [f"{nats:.2f}" for nats in below.tolist()]),
            Numbers("parts", [str(len(own)) for own in parts]),
            Numbers("parts not\nin model 1", differ),
        ]
        if self.given.same:
            columns.append(Numbers(self.given.nouns[1], [f"{k:,.0f}" for k in self.n_states[:n]]))
        return PrintedTable([f"model {i}" for i in range(1, n + 1)], columns)

    def _parts_page(self, top: int) -> Page:
        """Return the parts that differ between the first models, side by side."""
        parts = [self.given.parts(model) for model in self.models[:top]]
        numbers = {
            word: [own.get(word, "") for own in parts] for word in dict.fromkeys(chain(*parts))
        }
        differing = {word: row for word, row in numbers.items() if "" in row}
        n_common = count_of(len(numbers) - len(differing), "part is", "parts are")
        if len(parts) == 1:
            return ()
        if not differing:
            return (Pieces(["these models have the same parts"]), BLANK)
        order = sorted(differing, key=lambda word: differing[word].count(""))
        columns = [
            Numbers(str(i), [differing[word][i - 1] for word in order])
            for i in range(1, len(parts) + 1)
        ]
        table = PrintedTable(order, columns, "parts of only some of these models")
        return (table, Pieces([f"{n_common} in all of these models"]), BLANK)

    def _columns_page(self) -> Page:
        used = self.importances[self.importances["most"] > 0].head(_MOST_COLUMNS)
        page: Page = ()
        if len(used):
            columns = [
                Numbers(name, list(map(share_text, used[name].tolist())))
                for name in ("least", "mean", "most")
            ]
            columns.append(Numbers("in models", list(map(share_text, used["inclusion"].tolist()))))
            page = (PrintedTable([*used.index], columns, "share of the gain"),)
        for exchange, other, *shares in self.exchanges.head(_MOST_EXCHANGES).to_numpy().tolist():
            either, both = map(share_text, shares)
            page += (Pieces([f"{exchange} or {other}: {either} of models use one, {both} both"]),)
        return page

    def to_dict(self) -> dict[str, Any]:
        """Return the models and their comparison as plain data."""
        known = self.probabilities
        return {
            "nats": self.nats,
            "is_complete": self.is_complete,
            "share": self.share,
            "models": [
                {
                    "log_posterior": float(self.log_posteriors[i]),
                    "probability": None if known is None else float(known[i]),
                    f"n_{self.given.nouns[1]}": float(self.n_states[i]),
                    "parts": dict(self.given.parts(model)),
                }
                for i, model in enumerate(self.models)
            ],
            "importances": self.importances.to_dict("index"),
            "exchanges": self.exchanges.to_dict("records"),
        }


def _short(share: float) -> str:
    return f"{share:.3f}" if share >= 0.001 else probability_text(share)
