"""Output of commands: text or JSON on stdout, notes on stderr; and checks of output files."""

import csv
import io
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

import click

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bayescascade.model.roles import Shown
    from bayescascade.report.page import Page

INTERRUPTED = 130  # the exit code after Ctrl-C

_WIDTH = 80
_WIDEST = 120
_PICTURES = (".png", ".svg", ".pdf")


def _layout_options(stream: TextIO) -> dict[str, Any]:
    """Return `width` and `color` for a stream: 80 columns without color if it is not a terminal."""
    if not stream.isatty():
        return {"width": _WIDTH, "color": False}
    from bayescascade.report.page import LEAST_WIDTH

    columns = shutil.get_terminal_size((_WIDTH, 24)).columns
    has_color = "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return {"width": max(LEAST_WIDTH, min(columns, _WIDEST)), "color": has_color}


def say(text: str) -> None:
    """Print lines on stderr, where all messages of all commands pass.

    Names and levels come from files: a terminal would obey their control characters, so these are
    escaped. A message that cannot be written does not end the program.
    """
    with suppress(OSError):
        click.echo(_printable_lines(text), err=True)


def put(text: str) -> None:
    """Print rows or source code on stdout: as they are in a file, and printable on a terminal."""
    click.echo(_printable_lines(text) if is_terminal(sys.stdout) else text, nl=False)


def is_terminal(stream: TextIO) -> bool:
    """Return whether a person sees a stream at once."""
    return stream.isatty()


def _printable_lines(text: str) -> str:
    from bayescascade.base.texts import printable

    return "\n".join(map(printable, text.split("\n")))


def echo_json(record: Any) -> None:
    """Print plain data as JSON; numbers keep all digits, and infinities and NaN become null."""
    from bayescascade.base.files import json_ready

    click.echo(json.dumps(json_ready(record), indent=2, allow_nan=False))


def echo_page(page: "Page", *, full: bool = False) -> None:
    """Print a page as wide as the terminal, folded where it is long unless `full`."""
    from bayescascade.report.folding import folded
    from bayescascade.report.page import render

    click.echo(render(page if full else folded(page), **_layout_options(sys.stdout)))


def echo(shown: "Shown", as_json: bool | None, *, full: bool | None = False) -> None:
    """Print all data as JSON, or a page."""
    if as_json:
        echo_json(shown.to_dict())
    else:
        echo_page(shown.page(), full=bool(full))


def note(text: str) -> None:
    """Print a note on stderr, as wide as the terminal; once, if parts of a command say the same."""
    from bayescascade.report.layout import wrap

    context = click.get_current_context(silent=True)
    known = set() if context is None else context.meta.setdefault("bayescascade.notes", set())
    if text in known:
        return
    known.add(text)
    first, *others = wrap(f"note: {text}", _layout_options(sys.stderr)["width"], hanging=2)
    say("\n  ".join([first, *others]))


def interrupted(text: str) -> NoReturn:
    """Say what was saved after Ctrl-C, and end the command."""
    said = text if text.startswith("interrupted") else f"interrupted: {text}"
    say(said)
    click.get_current_context().exit(INTERRUPTED)


def csv_texts(blocks: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield blocks of columns as CSV, with a header before the first."""
    for number, columns in enumerate(blocks):
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if number == 0:
            writer.writerow(columns)
        writer.writerows(rows_of(columns))
        yield text.getvalue()


def rows_of(columns: Mapping[str, Any]) -> Iterator[tuple[object, ...]]:
    """Yield the rows of a block of columns."""
    cells = (each.to_pylist() if hasattr(each, "to_pylist") else each for each in columns.values())
    return zip(*cells, strict=True)


def write_texts(path: str | None, texts: Iterable[str]) -> None:
    """Write texts to stdout, or into a file that appears when it is complete."""
    if path is None:
        for text in texts:
            put(text)
        return
    from bayescascade.base.files import replaced_file

    with (
        replaced_file(path) as temporary,
        Path(temporary).open("w", encoding="utf-8", newline="") as file,
    ):
        file.writelines(texts)


def save_figure(figure: "Figure", path: str | Path) -> None:
    """Write a picture in the format of the file's extension."""
    from bayescascade.base.files import replaced_file

    with replaced_file(path) as temporary:
        figure.savefig(temporary, format=Path(path).suffix[1:].lower(), dpi=150)


def save_plot(plot: Callable[[], "Axes"], path: str) -> None:
    """Draw `plot` into a new figure and write it as a PNG file, whatever the file's name is.

    Raises MissingExtraError without matplotlib, FileError if the file cannot be written.
    """
    from bayescascade.base.extras import check_plots

    check_plots()
    import matplotlib

    matplotlib.use("agg")  # no window, which servers do not have
    from matplotlib import pyplot as plt

    from bayescascade.report.axes import save_png

    figure: Any = plot().figure  # never a subfigure, because the axes are new
    save_png(figure, path)
    plt.close(figure)


def check_picture(option: str, path: str | None) -> None:
    """Raise click.UsageError if a file is no picture, MissingExtraError without matplotlib."""
    if path is None:
        return
    from bayescascade.base.extras import check_plots

    check_plots()
    if Path(path).suffix.lower() not in _PICTURES:
        raise click.UsageError(f"{option} must end in {', '.join(_PICTURES)}, got {path}")


def check_outputs(outputs: Mapping[str, str | None], inputs: Mapping[str, str | None]) -> None:
    """Raise click.UsageError if an output file cannot be written, before any computation.

    Both mappings hold paths by option or argument, None where it was not given.
    """
    from bayescascade.base.files import is_written_through

    real = os.path.realpath
    taken = {real(path): name for name, path in inputs.items() if path is not None}
    for option, path in outputs.items():
        if path is None:
            continue
        if path == "-":
            raise click.UsageError(
                f"{option} must be a file, got -: only rows are written to standard output"
            )
        if is_written_through(path):
            if not os.access(path, os.W_OK):
                raise click.ClickException(f"{option} cannot write {path}")
            continue
        if real(path) in taken:
            raise click.UsageError(
                f"{option} must be another file than {taken[real(path)]}, got {path}"
            )
        taken[real(path)] = option
        if Path(path).is_dir():
            raise click.UsageError(f"{option} must be a file, got the directory {path}")
        folder = Path(real(path)).parent
        try:
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            why = error.strerror if folder.exists() else f"the folder {folder} does not exist"
            raise click.ClickException(f"{option} cannot write {path}: {why}") from None
