"""What commands that learn have in common: options, the search, and where its result goes."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from bayescascade.base.parameters import Parameters
from bayescascade.cli.declared import Option, parameters_of
from bayescascade.cli.interrupts import deferred_interrupts, single_interrupts
from bayescascade.cli.options import parse_continuous, parse_kinds, split_commas
from bayescascade.cli.output import INTERRUPTED, check_outputs, echo_json, echo_page, note
from bayescascade.cli.progress_lines import search_progress, stage_progress

if TYPE_CHECKING:
    from bayescascade.model.held_out import HeldOut
    from bayescascade.model.roles import Shown


Command = TypeVar("Command", bound=Callable[..., Any])


CHOICE_OPTIONS: tuple[Option, ...] = (
    click.option(
        "--columns",
        multiple=True,
        metavar="NAME,...",
        help="Columns to use; all others are left out.",
    ),
    click.option("--drop", multiple=True, metavar="NAME,...", help="Columns to leave out."),
)
"""Which columns to use."""

COLUMN_OPTIONS: tuple[Option, ...] = (
    *CHOICE_OPTIONS,
    click.option(
        "--weights", metavar="NAME", help="Column of how many rows each row stands for."
    ),
    click.option(
        "--nominal",
        multiple=True,
        metavar="NAME[:LEVEL,...]",
        help="Column whose levels have no order.",
    ),
    click.option(
        "--ordinal",
        multiple=True,
        metavar="NAME[:LEVEL,...]",
        help="Column whose levels have one, given here unless they are numbers: age:child,adult.",
    ),
    click.option(
        "--continuous",
        multiple=True,
        metavar="NAME:BINS|EDGE,...",
        help="Column of numbers cut into this many bins, or at these edges: income:10, "
        "income:0,10,50 (in at most 10 bins, by the number of rows).",
    ),
    click.option(
        "--missing",
        type=click.Choice(["level", "error"]),
        help="Empty cells are a level of their own (the default), or an error.",
    ),
)  # fmt: skip
"""Which columns to use, and how to read them."""

FULL_OPTION: Option = click.option(
    "--full", is_flag=True, help="Print all of a large tree or list, nothing folded."
)
"""Whether long trees, lists and columns are printed in full."""

OUTPUT_OPTIONS: tuple[Option, ...] = (
    click.option("--trace", metavar="FILE.nc", help="Write the posterior's draws for ArviZ."),
    click.option("--out", metavar="FILE.json", help="Save the model."),
    click.option("--json", "as_json", is_flag=True, help="Print JSON at full precision."),
    FULL_OPTION,
    click.option(
        "--quiet", is_flag=True, help="Nothing of the progress, nor on stdout but --json."
    ),
)
"""Where the result goes."""


_OUTPUTS = ("out", "trace", "as_json", "full", "quiet")
_FILES = {"--out": "out", "--trace": "trace", "--checkpoint": "checkpoint"}


class Task(NamedTuple):
    """An estimator to fit, what is declared of the columns, and where what is learned goes."""

    model: Any
    declared: dict[str, Any]
    out: str | None  # files, None for none
    trace: str | None
    as_json: bool
    full: bool
    quiet: bool


class Lesson(NamedTuple):
    """What a model learns from, and what commands say of it beside its page."""

    rows: tuple[Any, ...]  # what `fit` takes
    notes: Sequence[str] = ()
    measure: Callable[[], "HeldOut | None"] | None = None  # of the fitted model, on rows held out
    shown: Callable[[], "Shown"] | None = None  # what is printed of it, if not the model
    write: Callable[[], object] | None = None  # a file beside the model's
    fit: str = "fit"  # what is called
    words: str = ""  # such as "the tree is", if not its own word


def learning(command: Callable[..., tuple[Task, Lesson]]) -> Callable[..., None]:
    """Return a command that learns what `command` sets up, prints it and saves it: see `learn`."""

    @wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        learn(*command(*arguments, **options))

    return run


def with_options(*options: Option) -> Callable[[Command], Command]:
    """Return a decorator that gives a command these options, in this order."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            option(command)
        return command

    return decorate


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


def set_up(
    name: str,
    inputs: Mapping[str, str | None],
    options: dict[str, Any],
    parameters: type[Parameters],
    *,
    taken: Sequence[str] = (),
    outputs: Mapping[str, str] = _FILES,
) -> Task:
    """Return what a command has to learn; every error in its options is raised here.

    `name` is the estimator's public name; `inputs` has files that are read, by option; `options`
    has the command's values by parameter; `taken` names the options on columns that are parameters
    of the estimator; `outputs` the parameters, by option, that name files. No file is read yet.
    Raises click.UsageError if a file cannot be written or is read too, or there is nothing to
    resume; MissingExtraError if nothing installed can write the trace; ParameterError if a
    parameter is out of its range.
    """
    import bayescascade
    from bayescascade.base.extras import check_traces

    check_outputs({option: options.get(each) for option, each in outputs.items()}, inputs)
    where = {each: options.pop(each, None) for each in _OUTPUTS}
    if where["trace"] is not None:
        check_traces()
    if options.get("resume") and options["checkpoint"] is None:
        raise click.UsageError("--resume needs --checkpoint FILE")
    declared = declarations(options)
    of_columns = {k: declared[k] for k in taken if k in declared}
    model = getattr(bayescascade, name)(**of_columns, **parameters_of(options, parameters))
    if hasattr(model, "check_parameters"):  # others check when they are fitted
        model.check_parameters()
    return Task(model, declared, **where)


def learn(task: Task, lesson: Lesson) -> None:
    """Fit the model, save it and print it; exit with 130 if Ctrl-C ended it early.

    What was found by then is saved and printed as a whole: another Ctrl-C waits for that.
    """
    model, context = task.model, click.get_current_context()
    if task.trace is not None and model.search == "exact" and not model.draws_states:
        raise click.UsageError(
            f"--trace needs a --search that draws {model.learned_word}s, got exact"
        )
    for text in lesson.notes:
        note(text)
    with single_interrupts():
        try:
            _fit(task, lesson)
        except KeyboardInterrupt:
            click.echo("interrupted: nothing was found yet", err=True)
            context.exit(INTERRUPTED)
        held_out = None if lesson.measure is None else _measured(lesson.measure)
        if held_out is not None:
            model.summary_ = replace(model.summary_, held_out=held_out)
        shown = model if lesson.shown is None else lesson.shown()
        with deferred_interrupts(), ExitStack() as stack:
            # from the last to the first, each whatever becomes of the others
            stack.callback(_print, task, shown)
            if task.trace is not None:
                stack.callback(model.run_.save_trace, task.trace)
            if task.out is not None:
                stack.callback(_save, task)
            if lesson.write is not None:
                stack.callback(lesson.write)
    summary = getattr(model, "summary_", None)
    if summary is not None and summary.interrupted:
        click.echo(_interrupted_words(model, lesson.words), err=True)
        context.exit(INTERRUPTED)


def _interrupted_words(model: Any, words: str) -> str:
    """Return what became of a search that Ctrl-C ended; `words` are such as "the tree is"."""
    exact, summary = getattr(model, "exact_", None), model.summary_
    keeps = exact is None or getattr(exact, "is_resumable", False)
    goes_on = "; --resume goes on from there" if model.checkpoint is not None and keeps else ""
    is_undrawn = exact is not None and model.draws_states and not summary.n_draws
    drawn = "; none was drawn from the posterior" if is_undrawn else ""
    told = f"interrupted: {words or f'the {model.learned_word} is'} the best found so far"
    if summary.certificate is not None and summary.certificate.gap == 0:  # it is not only that
        told = summary.found_words(model.learned_word)
    return f"{told}{drawn}{goes_on}"


def _measured(measure: Callable[[], "HeldOut | None"]) -> "HeldOut | None":
    from bayescascade.model.held_out import HeldOut

    try:
        return measure()
    except KeyboardInterrupt:
        return HeldOut(reason="for it was interrupted")


def listed(texts: Sequence[str]) -> list[str] | None:
    """Return the names in texts such as "age,sex", None if there are none."""
    return [name for text in texts for name in split_commas(text)] or None


def _fit(task: Task, lesson: Lesson) -> None:
    """Fit the model, and say how far it is unless that is not wanted."""
    model, fit = task.model, getattr(task.model, lesson.fit)
    if task.quiet or not hasattr(model, "progress"):
        fit(*lesson.rows)
        return
    sizes = getattr(model, "size_words", ("", ""))[1]
    with search_progress(getattr(model, "size_name", ""), sizes) as show:
        model.set_params(progress=show)
        fit(*lesson.rows)


def _save(task: Task) -> None:
    """Save the model, for which its draws are counted: that may take as long as to draw them."""
    with nullcontext() if task.quiet else stage_progress("saving"):
        task.model.save(task.out)


def _is_one_stream() -> bool:
    """Return whether stdout and stderr are the same file or pipe, as by ``2>&1``."""
    try:
        return os.path.sameopenfile(sys.stdout.fileno(), sys.stderr.fileno())
    except (OSError, ValueError):  # such as a stream in memory
        return False


def _print(task: Task, shown: "Shown") -> None:
    if task.as_json:
        echo_json(shown.to_dict())
    elif not task.quiet:
        echo_page(shown.page(), full=task.full)
    has_said = not (task.as_json or task.quiet) and (sys.stdout.isatty() or _is_one_stream())
    summary = getattr(task.model, "summary_", None)
    if not has_said and summary is not None:
        for text in summary.warnings:
            click.echo(f"warning: {text}", err=True)
