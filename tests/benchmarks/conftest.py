"""Collect the figures measured and print them in one table at the end of the run."""

import pytest

from tests.benchmarks.figures import Figure, figures_table, machine

FIGURES = pytest.StashKey[list[Figure]]()


def pytest_configure(config):
    config.stash[FIGURES] = []


@pytest.fixture
def report(request):
    """Return the function that adds a figure to the table at the end."""
    return request.config.stash[FIGURES].append


def pytest_terminal_summary(terminalreporter, config):
    terminalreporter.section("figures")
    for line in [*machine(), "", *figures_table(config.stash[FIGURES])]:
        terminalreporter.write_line(line)
