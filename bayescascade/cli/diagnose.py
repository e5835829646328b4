"""``bayescascade diagnose``: how well a posterior was explored, from its trace file."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bayescascade.cli.output import echo_json, echo_page, save_figure

if TYPE_CHECKING:
    from bayescascade.model.trace import Trace

__all__ = ["diagnose"]


@click.command(short_help="Say how well the posterior was explored.")
@click.argument("trace", metavar="TRACE.nc")
@click.option("--plots", metavar="DIR", help="Write pictures of traces, sizes and ranks there.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON at full precision.")
def diagnose(trace: str, plots: str | None, as_json: bool) -> None:
    """Say how well the posterior in TRACE.nc, written by --trace, was explored."""
    if plots is not None:
        Path(plots).mkdir(parents=True, exist_ok=True)
    from bayescascade.model.trace import read_trace

    found = read_trace(trace)
    if plots is not None:
        _write_plots(found, Path(plots))
    if as_json:
        echo_json(found.record())
    else:
        echo_page(found.page())


def _write_plots(trace: "Trace", folder: Path) -> None:
    from bayescascade.model.pictures import plot_ranks, plot_sizes, plot_traces

    plots = {"traces": plot_traces, "ranks": plot_ranks}
    if trace.size is not None:
        plots["sizes"] = plot_sizes
    for name, plot in plots.items():
        save_figure(plot(trace), folder / f"{name}.png")
