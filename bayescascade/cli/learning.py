"""What commands that learn have in common: options, the search, and where its result goes."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from bayescascade.base.parameters import Parameters
from bayescascade.cli.declared import parameters_of
from bayescascade.cli.interrupts import deferred_interrupts, single_interrupts
from bayescascade.cli.options import JSON_OPTION, listed, parse_continuous, parse_kinds
from bayescascade.cli.output import (
    check_outputs,
    check_picture,
    echo,
    interrupted,
    note,
    save_figure,
)
from bayescascade.cli.progress_lines import search_progress, stage_progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bayescascade.model.held_out import HeldOut
    from bayescascade.model.roles import Shown
    from bayescascade.model.summary import FitSummary


_OUTPUTS = ("out", "trace", "plot", "as_json", "full", "quiet")
_FILES = {f"--{name}": name for name in ("out", "trace", "checkpoint", "plot")}


class Task(NamedTuple):
    """An estimator to fit, what is declared of the columns, and where what is learned goes."""

    model: Any  # None where a function learns
    declared: Mapping[str, Any]
    out: str | None = None  # files, None for none
    trace: str | None = None
    plot: str | None = None
    as_json: bool | None = False
    full: bool | None = False
    quiet: bool | None = False


class Lesson(NamedTuple):
    """What is learned from, and what commands say of what was learned beside its page."""

    rows: tuple[Any, ...] = ()  # what `fit` takes
    notes: Sequence[str] = ()
    measure: Callable[[], "HeldOut | None"] | None = None  # of the fitted model, on held-out rows
    shown: Callable[[Any], "Shown"] | None = None  # of it, if something else is printed
    figure: Callable[[Any], "Figure"] | None = None  # of it, where there is --plot
    write: Callable[[Any], object] | None = None  # a file beside the model's
    fit: str | Callable[..., Any] = "fit"  # the model's method, or what else returns what it learns
    words: str = ""  # such as "the tree is", if not its own word
    ended: Callable[[Any], str] | None = None  # what Ctrl-C left, "" if it was not pressed


def learning(command: Callable[..., tuple[Task, Lesson]]) -> Callable[..., None]:
    """Return a command that learns what `command` sets up, prints it and saves it: see `learn`."""

    @JSON_OPTION
    @wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        learn(*command(*arguments, **options))

    return run


def declarations(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `Table.from_csv` takes of the `COLUMN_OPTIONS`, without what was not given."""
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
    """Return options without what was not given."""
    return {name: value for name, value in options.items() if value is not None}


def outputs_of(
    options: dict[str, Any], inputs: Mapping[str, str | None], files: Mapping[str, str] = _FILES
) -> Task:
    """Take the options on outputs and columns out of a command's; no file is read yet.

    `inputs` has files that are read, by option, and `files` the parameters that name files that are
    written. Raises click.UsageError if a file cannot be written or is read too; MissingExtraError
    if nothing installed can write the trace.
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
    """Return what a command has to learn; every error in its options is raised here.

    `name` is the estimator's public name, `taken` the options on columns that are parameters of it.
    Raises click.UsageError also if there is nothing to resume; ParameterError if a parameter is out
    of its range; and as `outputs_of`.
    """
    import bayescascade

    task = outputs_of(options, inputs, files)
    if options.get("resume") and options["checkpoint"] is None:
        raise click.UsageError("--resume needs --checkpoint FILE")
    of_columns = {k: task.declared[k] for k in taken if k in task.declared}
    model = getattr(bayescascade, name)(**of_columns, **parameters_of(options, parameters))
    if hasattr(model, "check_parameters"):  # others check when they are fitted
        model.check_parameters()
    return task._replace(model=model)


def learn(task: Task, lesson: Lesson) -> None:
    """Learn, save and print what was learned; exit with 130 if Ctrl-C ended it early.

    What was found by then is saved and printed as a whole: another Ctrl-C waits for that.
    """
    model = task.model
    if task.trace is not None and model.search == "exact" and not model.draws_states:
        raise click.UsageError(
            f"--trace needs a --search that draws {model.learned_word}s, got exact"
        )
    for text in lesson.notes:
        note(text)
    with single_interrupts():
        try:
            learned = _fit(task, lesson)
        except KeyboardInterrupt:
            interrupted("there is no result yet")
        held_out = None if lesson.measure is None else _measured(lesson.measure)
        if held_out is not None:
            learned.summary_ = replace(learned.summary_, held_out=held_out)
        shown = learned if lesson.shown is None else lesson.shown(learned)
        with deferred_interrupts(), ExitStack() as stack:
            # from the last to the first, each whatever becomes of the others
            stack.callback(_print, task, shown, getattr(learned, "summary_", None))
            if task.trace is not None:
                stack.callback(learned.run_.save_trace, task.trace)
            if lesson.figure is not None and task.plot is not None:
                stack.callback(save_figure, lesson.figure(learned), task.plot)
            if task.out is not None:
                stack.callback(_save, task, learned)
            if lesson.write is not None:
                stack.callback(lesson.write, learned)
    ended = lesson.ended(learned) if lesson.ended else _ended_words(learned, lesson.words)
    if ended:
        interrupted(ended)


def _ended_words(model: Any, words: str) -> str:
    """Return what became of a search that Ctrl-C ended; `words` are such as "the tree is"."""
    exact, summary = getattr(model, "exact_", None), getattr(model, "summary_", None)
    if summary is None or not summary.interrupted:
        return ""
    keeps = exact is None or getattr(exact, "is_resumable", False)
    goes_on = "; --resume continues from there" if model.checkpoint is not None and keeps else ""
    is_undrawn = exact is not None and model.draws_states and not summary.n_draws
    drawn = "; there are no posterior draws" if is_undrawn else ""
    told = f"{words or f'the {model.learned_word} is'} the best found so far"
    if summary.certificate is not None and summary.certificate.gap == 0:  # it is not only that
        told = summary.found_words(model.learned_word)
    return f"{told}{drawn}{goes_on}"


def _measured(measure: Callable[[], "HeldOut | None"]) -> "HeldOut | None":
    from bayescascade.model.held_out import HeldOut

    try:
        return measure()
    except KeyboardInterrupt:
        return HeldOut(reason="because it was interrupted")


def _fit(task: Task, lesson: Lesson) -> Any:
    """Return what is learned, and say how far that is unless it is not wanted."""
    model, fit = task.model, lesson.fit
    fit = getattr(model, fit) if isinstance(fit, str) else fit
    if task.quiet or not hasattr(model, "progress"):
        return fit(*lesson.rows)
    sizes = getattr(model, "size_words", ("", ""))[1]
    with search_progress(getattr(model, "size_name", ""), sizes) as show:
        model.set_params(progress=show)
        return fit(*lesson.rows)


def _save(task: Task, learned: Any) -> None:
    """Save what was learned, for which draws are counted: that may take as long as to draw them."""
    with nullcontext() if task.quiet else stage_progress("saving"):
        learned.save(task.out)


def _is_one_stream() -> bool:
    """Return whether stdout and stderr are the same file or pipe, as by ``2>&1``."""
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
            click.echo(f"warning: {text}", err=True)
