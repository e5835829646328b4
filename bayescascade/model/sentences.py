"""Sentences on a fit for readers who do not know chains or nats."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bayescascade.base.arrays import Floats
from bayescascade.base.errors import ParameterError
from bayescascade.base.texts import with_article
from bayescascade.data.labels import check_labels, label_codes
from bayescascade.data.levels import level_text
from bayescascade.model.label_details import curves_of
from bayescascade.model.scores import LabelScores, confusion_page, positive_of
from bayescascade.model.summary import FitSummary
from bayescascade.model.trace import COLUMNS_USED
from bayescascade.report.chart import UnitChart
from bayescascade.report.numbers import (
    cost_texts,
    diagnostic_text,
    ratio_text,
    share_text,
    share_with_error,
)
from bayescascade.report.page import BLANK, Page, count_of

_MOST_NAMES = 12
_NEARLY = 0.95  # share that counts as practically all draws
_HARDLY = 0.05
_MOST_R_HAT = 100.0  # chains that never move have infinite R-hat, or nearly
_MOST_FIRST = 3  # first splits or rules that are named, or one more if this is the last
_PROBABLE = (
    "Columns that almost certainly matter",
    "Columns that may matter",
    "Columns that hardly matter",
)
_DRAWN = (  # the same without a posterior
    "Columns in nearly all of them",
    "Columns in some of them",
    "Columns in hardly any of them",
)
_USUAL = 0.9  # share of the draws for the stated range of sizes


def doubt_sentences(
    summary: FitSummary,
    learned: str,
    size_words: tuple[str, str] | None,
    size: int | None,
    *,
    best: str = "What is shown",
) -> list[str]:
    """Return sentences on the search, its proof, and the alternatives.

    learned: the word for the result, such as "tree"; size_words: singular and plural of its parts;
    best: the word for the best one, if another is shown.
    """
    found = [_proved(summary, learned, best)]
    is_tempered = summary.is_tempered and bool(summary.shares)
    if is_tempered:
        found.append(f"What follows is from {summary.drawn_from}.")
    every = f"all {learned}s that are plausible given the rows"
    every = f"the {learned}s that were drawn" if is_tempered else every
    for title, shares in summary.shares.items():
        if size_words is not None and title == size_words[1]:
            found.append(_sizes(shares, every, size_words, size))
        elif title == COLUMNS_USED:
            found.append(_columns(shares, _DRAWN if is_tempered else _PROBABLE))
        elif shares:
            found.append(_first(title, shares, is_tempered))
    if summary.as_best:
        found.append(_as_best(summary.as_best, learned, best))
    return [sentence for sentence in found if sentence]


def _proved(summary: FitSummary, learned: str, best: str) -> str:
    certificate = summary.certificate
    stopped = "The search was stopped early. " if summary.is_partial else ""
    if certificate is not None and (certificate.gap == 0 or certificate.is_rounding):
        of_which, every = "", f"every possible {learned}"
        if certificate.scope:
            of_which, every = f" {learned} {certificate.scope.rstrip(',')}", "every possible one"
        but = ""
        if certificate.is_rounding:
            but = (
                " Because of rounding, another one may still be more probable by up to "
                f"{certificate.gap:,.2f} nats (a factor of {_factor(certificate.gap)})."
            )
        return (
            f"{stopped}{best} is proved to be the most probable{of_which}: {every} was taken "
            f"into account, and the search had no random part.{but}"
        )
    if certificate is not None:
        longer = " A longer search may find a better one." if summary.is_partial else ""
        return (
            f"{stopped}{best} is the best that was found. It is proved that no {learned} is "
            f"more probable by more than {certificate.gap:,.2f} nats (a factor of "
            f"{_factor(certificate.gap)}).{longer}"
        )
    if not summary.diagnostics:
        return (
            f"{stopped}{best} is the best that a search found. The search did not look for "
            "others that are nearly as good."
        )
    chains = count_of(summary.n_chains, "independent search", "independent searches")
    found = summary.diagnostics.values()
    r_hat = float(np.max([each.r_hat for each in found]))
    worst = "over 100" if r_hat > _MOST_R_HAT else diagnostic_text(r_hat, 3)
    least = diagnostic_text(float(np.min([each.ess for each in found])), 0)
    numbers = f"(R-hat {worst}, effective sample size {least})"
    if not summary.warnings:
        return (
            f"{stopped}{best} is the best of {chains}. They agree with each other {numbers}, so "
            "you can rely on what follows."
        )
    return (
        f"{stopped}{best} is the best of {chains}. They do not agree well with each other "
        f"{numbers}. It is one good description among others, and what follows is only "
        "approximate. Use a longer search for better figures."
    )


def _factor(nats: float) -> str:
    return f"{math.exp(nats):,.3g}" if nats < math.log(1e6) else f"e to the {nats:,.0f}"


def _sizes(
    shares: Mapping[str, float], every: str, words: tuple[str, str], size: int | None
) -> str:
    """Return the range of sizes of nine in ten draws, of `every` one of them in words."""
    usual: list[int] = []
    total = 0.0
    for label, share in shares.items():  # the most probable first
        usual.append(int(label))
        total += share
        if total >= _USUAL:
            break
    low, high = min(usual), max(usual)
    own = "" if size is None else f"; the one shown has {size:,}"
    within = count_of(low, *words) if low == high else f"from {low:,} to {high:,} {words[1]}"
    text = f"{share_text(total)} have {within}{own}"
    return f"Of {every}, {text}."


def _first(title: str, shares: Mapping[str, float], is_tempered: bool) -> str:
    texts = [(label, share) for label, share in shares.items() if share >= 0.005]
    if not texts:
        return ""
    shown = texts if len(texts) == _MOST_FIRST + 1 else texts[:_MOST_FIRST]
    listed = ", else ".join(f"{label} ({share_text(share)})" for label, share in shown)
    many = "" if len(texts) == len(shown) else f", or one of {len(texts) - len(shown)} others"
    start = f"Their {title} is" if is_tempered else f"Its {title} is probably"
    return f"{start} {listed}{many}."


def _as_best(shares: Mapping[str, float], learned: str, best: str) -> str:
    every, what = share_text(shares["every part"]), f"{best[:1].lower()}{best[1:]}"
    return (
        f"Of these {learned}s, {every} divide the rows into the same groups as {what}, perhaps by "
        "other conditions; "
        f"{share_text(shares['every word'])} are exactly the same {learned}."
    )


def _columns(shares: Mapping[str, float], words: tuple[str, str, str]) -> str:
    always = [name for name, share in shares.items() if share >= _NEARLY]
    some = [(n, s) for n, s in shares.items() if _HARDLY <= s < _NEARLY]
    never = [name for name, share in shares.items() if share < _HARDLY]
    texts = []
    if always:
        texts.append(f"{words[0]}: {_names(always)}.")
    if some:
        texts.append(
            f"{words[1]}: {_names([f'{name} ({share_text(share)})' for name, share in some])}."
        )
    if never:
        texts.append(f"{words[2]}: {_names(never)}.")
    return " ".join(texts)


def _names(names: Sequence[str]) -> str:
    left = len(names) - _MOST_NAMES
    more = f" and {left} more" if left > 0 else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def held_out_sentences(model: Any, held_out: Any) -> tuple[list[str], Page, tuple[UnitChart, ...]]:
    """Return the results of a model on held-out rows: words, tables, charts.

    held_out: rows, or (rows, labels) for a classifier; rows that have them in the column `target_`
    need no others. ParameterError if there are no rows, labels are missing, or the model neither
    scores nor classifies rows; DataError if the rows or labels cannot be read.
    """
    if hasattr(model, "predict_proba") and not hasattr(model, "score_samples"):  # not a density
        return _classified(model, *_with_labels(model, held_out))
    if not hasattr(model, "score_samples"):
        kind = with_article(model.title)
        raise ParameterError(f"held_out must be None for {kind}, which scores no rows")
    scores = model.score_samples(held_out)
    weights = getattr(held_out, "weights", np.ones(scores.size))
    is_possible = np.isfinite(scores)
    n_rows, kept = int(is_possible.sum()), weights * is_possible
    if not kept.any():
        raise ParameterError(
            "held_out must have at least one row with a positive density, got none"
        )
    mean = float(kept[is_possible] @ scores[is_possible] / kept.sum())
    gain = mean + model.schema_.log_cells
    text = (
        f"The model was tried on {count_of(n_rows, 'row')}, given as held-out rows. On "
        f"average, it gives such a row {ratio_text(gain)} times the probability that a model "
        "without information would give it, in which all combinations are equally probable "
        f"(mean log density {mean:.4f} nats a row, {-model.schema_.log_cells:.4f} without "
        "information)."
    )
    left = scores.size - n_rows
    impossible = (
        f"{count_of(left, 'more row')} are impossible according to the model, and "
        f"{'is' if left == 1 else 'are'} not in this average."
    )
    return ([text, impossible] if left else [text]), (), ()


def _with_labels(model: Any, held_out: Any) -> tuple[Any, Any]:
    if isinstance(held_out, tuple) and len(held_out) == 2:
        return held_out
    target = getattr(model, "target_", None)
    if target is None or not hasattr(held_out, "columns") or target not in held_out.columns:
        named = "" if target is None else f', or rows with the column "{target}"'
        raise ParameterError(
            f"held_out must be (rows, labels){named}, got {type(held_out).__name__}"
        )
    return held_out, held_out[target]


def _classified(model: Any, X: Any, y: Any) -> tuple[list[str], Page, tuple[UnitChart, ...]]:
    labels = check_labels(y, "held_out", type(model).__name__)
    codes = label_codes(labels, model.classes_, "held_out")
    probabilities: Floats = model.predict_proba(X)
    if len(probabilities) != len(codes):
        raise ParameterError(
            f"held_out must have a label for each row, {len(probabilities)}, got {len(codes)}"
        )
    scores = LabelScores(len(model.classes_), positive_of(model))
    scores.add(codes, probabilities, None, model.decision().choose(probabilities))
    usual = np.bincount(codes).max() / len(codes)
    right = share_with_error(scores.accuracy, scores.accuracy_error)
    texts = [
        f"The model was tried on {count_of(len(codes), 'row')}, given as held-out rows. "
        f"It predicts the right class for {right} of them. Always "
        f"predicting the most common class would be right for {share_text(float(usual))}."
    ]
    if hasattr(model, "acquisition_cost"):
        costs = np.asarray(model.acquisition_cost(X), np.float64)
        (cost,) = cost_texts([float(costs.mean())])
        texts.append(f"This costs {cost} a row on average.")
    if math.isfinite(scores.auc):
        loss = f"The log loss is {diagnostic_text(scores.log_loss, 4)} nats a row, and the"
        if math.isinf(scores.log_loss):
            loss = "The log loss is infinite, because a label had probability 0; the"
        texts.append(f"{loss} area under the ROC curve is {diagnostic_text(scores.auc, 3)}.")
    target = str(getattr(model, "target_", "true class"))
    names = [level_text(c) for c in model.classes_.tolist()]
    words, table, charts = curves_of(scores, names)
    return texts + words, (*confusion_page(scores.confusion, target, names), BLANK, table), charts
