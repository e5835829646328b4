"""Collect the figures measured and print them in one table at the end of the run."""

from collections.abc import Callable

import pytest

from tests.benchmarks.figures import Figure, figures_table, machine

FIGURES = pytest.StashKey[list[Figure]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[FIGURES] = []


@pytest.fixture
def report(request: pytest.FixtureRequest) -> Callable[[Figure], None]:
    """Return the function that adds a figure to the table at the end."""
    return request.config.stash[FIGURES].append


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    terminalreporter.section("figures")
    for line in [*machine(), "", *figures_table(config.stash[FIGURES])]:
        terminalreporter.write_line(line)
