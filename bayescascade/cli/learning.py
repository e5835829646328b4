"""Shared by commands that learn: options, the search, and the output of the result."""

import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from copy import copy
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from bayescascade.base.parameters import Parameters
from bayescascade.cli.declared import parameters_of
from bayescascade.cli.interrupts import deferred_interrupts, single_interrupts
from bayescascade.cli.options import JSON_OPTION, IntegerType, listed, parse_continuous, parse_kinds
from bayescascade.cli.output import (
    check_outputs,
    check_picture,
    echo,
    interrupted,
    note,
    save_figure,
    say,
)
from bayescascade.cli.progress_lines import search_progress, stage_progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bayescascade.model.held_out import HeldOut
    from bayescascade.model.roles import Shown
    from bayescascade.model.summary import FitSummary


_OUTPUTS = ("out", "trace", "plot", "as_json", "full", "quiet")
_FILES = {f"--{name}": name for name in ("out", "trace", "checkpoint", "plot")}


def _folds(*given: Any) -> int | None:
    n_folds: int | None = given[-1]
    if n_folds == 1:
        raise click.UsageError("--cv must be 0, or an integer >= 2, got 1")
    return n_folds


FOLDS_OPTION = click.option(
    "--cv", "n_folds", type=IntegerType(0), callback=_folds, metavar="FOLDS",
    help="Cross-validation folds that measure predictions (default: 5; large tables use only one "
    "of them); 0: none.",
)  # fmt: skip


class Task(NamedTuple):
    """An estimator to fit, the declarations of columns, and the output files."""

    model: Any  # None if a function learns
    declared: Mapping[str, Any]
    out: str | None = None  # files, None for none
    trace: str | None = None
    plot: str | None = None
    as_json: bool | None = False
    full: bool | None = False
    quiet: bool | None = False


class TrainingData(NamedTuple):
    """The training data, and what the command prints besides the model's page."""

    rows: tuple[Any, ...] = ()  # the arguments of `fit`
    notes: Sequence[str] = ()
    measure: Callable[[], "HeldOut | None"] | None = None  # on held-out rows
    shown: Callable[[Any], "Shown"] | None = None  # printed in its place
    figure: Callable[[Any], "Figure"] | None = None  # for --plot
    write: Callable[[Any], object] | None = None  # a further file
    fit: str | Callable[..., Any] = "fit"  # the model's `fit`, or another function that learns
    words: str = ""  # such as "the tree is", if not the model's word
    ended: Callable[[Any], str] | None = None  # words after Ctrl-C


def learning(command: Callable[..., tuple[Task, TrainingData]]) -> Callable[..., None]:
    """Return a command that learns what `command` returns, prints it and saves it: see `learn`."""

    @JSON_OPTION
    @wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        learn(*command(*arguments, **options))

    return run


def declarations(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given `COLUMN_OPTIONS` as arguments of `Table.from_csv`."""
    return _given(
        {
            "columns": listed(options.get("columns", ())),
            "drop": listed(options.get("drop", ())),
            "weights": options.get("weights"),
            "nominal": parse_kinds("--nominal", options.get("nominal", ())),
            "ordinal": parse_kinds("--ordinal", options.get("ordinal", ())),
            "continuous": parse_continuous(options.get("continuous", ())),
            "missing": options.get("missing"),
        }
    )


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given options."""
    return {name: value for name, value in options.items() if value is not None}


def outputs_of(
    options: dict[str, Any], inputs: Mapping[str, str | None], files: Mapping[str, str] = _FILES
) -> Task:
    """Remove the options on outputs and columns, and check them; no file is read yet.

    `inputs` has the input files by option, and `files` the parameters that name output files.
    Raises click.UsageError if a file cannot be written or is also an input; MissingExtraError if
    the trace's library is not installed.
    """
    check_outputs({option: options.get(each) for option, each in files.items()}, inputs)
    where = {each: options.pop(each, None) for each in _OUTPUTS}
    if where["trace"] is not None:
        from bayescascade.base.extras import check_traces

        check_traces()
    check_picture("--plot", where["plot"])
    return Task(None, declarations(options), **where)


def set_up(
    name: str,
    inputs: Mapping[str, str | None],
    options: dict[str, Any],
    parameters: type[Parameters],
    *,
    taken: Sequence[str] = (),
    files: Mapping[str, str] = _FILES,
) -> Task:
    """Return the task of a command; all errors in its options are raised here.

    `name` is the estimator's public name; `taken` are options on columns that are its parameters.
    Raises click.UsageError also if there is nothing to resume; ParameterError if a parameter is out
    of its range; and as `outputs_of`.
    """
    import bayescascade

    task = outputs_of(options, inputs, files)
    if options.get("resume") and options["checkpoint"] is None:
        raise click.UsageError("--resume needs --checkpoint FILE")
    of_columns = {k: task.declared[k] for k in taken if k in task.declared}
    model = getattr(bayescascade, name)(**of_columns, **parameters_of(options, parameters))
    if hasattr(model, "check_parameters"):  # other estimators check in `fit`
        model.check_parameters()
    return task._replace(model=model)


def learn(task: Task, training: TrainingData) -> None:
    """Learn, save and print; exit with 130 if Ctrl-C ended it early.

    Results are saved and printed completely: a second Ctrl-C is deferred.
    """
    model = task.model
    if task.trace is not None and model.search == "exact" and not model.draws_states:
        raise click.UsageError(
            f"--trace needs a --search that draws {model.learned_word}s, got exact"
        )
    for text in training.notes:
        note(text)
    with single_interrupts():
        try:
            learned = _fit(task, training)
        except KeyboardInterrupt:
            interrupted("there is no result yet")
        held_out = None if training.measure is None else _measured(training.measure)
        if held_out is not None and hasattr(learned, "held_out_"):
            learned.held_out_ = held_out
        elif held_out is not None:
            learned.summary_ = replace(learned.summary_, held_out=held_out)
        shown = learned if training.shown is None else training.shown(learned)
        with deferred_interrupts(), ExitStack() as stack:
            # from the last to the first, each even if others fail
            stack.callback(_print, task, shown, getattr(learned, "summary_", None))
            if task.trace is not None:
                stack.callback(learned.run_.save_trace, task.trace)
            if training.figure is not None and task.plot is not None:
                stack.callback(save_figure, training.figure(learned), task.plot)
            if task.out is not None:
                stack.callback(_save, task, learned)
            if training.write is not None:
                stack.callback(training.write, learned)
    ended = training.ended(learned) if training.ended else _ended_words(learned, training.words)
    if ended:
        interrupted(ended)


def _ended_words(model: Any, words: str) -> str:
    """Return the words after a search that Ctrl-C ended; `words` is such as "the tree is"."""
    exact, summary = getattr(model, "exact_", None), getattr(model, "summary_", None)
    if summary is None or not summary.interrupted:
        return ""
    keeps = exact is None or getattr(exact, "is_resumable", False)
    goes_on = (
        "; --resume continues from there"
        if getattr(model, "checkpoint", None) is not None and keeps
        else ""
    )
    is_undrawn = exact is not None and model.draws_states and not summary.n_draws
    drawn = "; there are no posterior draws" if is_undrawn else ""
    text = f"{words or f'the {model.learned_word} is'} the best found so far"
    if summary.certificate is not None and summary.certificate.gap == 0:  # it is not only that
        text = summary.found_words(model.learned_word)
    return f"{text}{drawn}{goes_on}"


def on_folds(
    model: Any, X: Any, labels: Any, weights: Any, n_folds: int | None, name: str
) -> "HeldOut | None":
    """Return the measures of a fitted classifier; None for 0 folds.

    Its method `fold_model`, if it has one, returns a cheaper model for folds, and words for it.
    """
    from sklearn.base import clone

    from bayescascade.model import held_out
    from bayescascade.model.search import seed_sequence

    if n_folds == 0:
        return None
    summary, time_limit = getattr(model, "summary_", None), getattr(model, "time_limit", None)
    if summary is not None and summary.is_partial:
        return held_out.HeldOut(reason="because the search was ended early")
    if n_folds is None and time_limit is not None:
        return held_out.HeldOut(reason="because there is a --time-limit; use --cv 5 to measure it")
    default = held_out.default_folds(X, len(model.classes_))
    folds, is_once = default if n_folds is None else (n_folds, False)
    of_fold, effort = model.fold_model() if hasattr(model, "fold_model") else (clone(model), "")
    has_seed = "random_state" in model.get_params()

    def fit(X: Any, y: Any, weights: Any, seed: int) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # chains of folds are short, and the print says so
            given = {"random_state": seed} if has_seed else {}
            return copy(of_fold).set_params(**given).fit(X, y, weights)

    return held_out.measure(
        fit, X, labels, weights,
        seed_sequence(model.random_state if has_seed else 0).spawn(3)[2], name=name,
        effort=effort, n_folds=folds, is_once=is_once, positive=getattr(model, "positive_", None),
        variants=getattr(model, "variants", None),
    )  # fmt: skip


def _measured(measure: Callable[[], "HeldOut | None"]) -> "HeldOut | None":
    from bayescascade.model.held_out import HeldOut

    try:
        return measure()
    except KeyboardInterrupt:
        return HeldOut(reason="because it was interrupted")


def _fit(task: Task, training: TrainingData) -> Any:
    """Return the fitted model; show progress unless it is switched off."""
    model, fit = task.model, training.fit
    fit = getattr(model, fit) if isinstance(fit, str) else fit
    if task.quiet or not hasattr(model, "progress"):
        return fit(*training.rows)
    sizes = getattr(model, "size_words", ("", ""))[1]
    with search_progress(getattr(model, "size_name", ""), sizes) as show:
        model.set_params(progress=show)
        return fit(*training.rows)


def _save(task: Task, learned: Any) -> None:
    """Save the model. Counting its draws may take as long as drawing them."""
    with nullcontext() if task.quiet else stage_progress("saving"):
        learned.save(task.out)


def _is_one_stream() -> bool:
    """Return whether stdout and stderr are the same file or pipe, as after ``2>&1``."""
    try:
        return os.path.sameopenfile(sys.stdout.fileno(), sys.stderr.fileno())
    except (OSError, ValueError):  # such as a stream in memory
        return False


def _print(task: Task, shown: "Shown", summary: "FitSummary | None") -> None:
    if task.as_json or not task.quiet:
        echo(shown, task.as_json, full=task.full)
    has_said = not (task.as_json or task.quiet) and (sys.stdout.isatty() or _is_one_stream())
    if not has_said and summary is not None:
        for text in summary.warnings:
            say(f"warning: {text}")
