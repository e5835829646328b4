"""What is imported: who asks for little has it at once."""

import os
import subprocess
import sys

import pytest

from tests.documents import ROOT

LIBRARIES = {
    "arviz", "arviz_stats", "joblib", "matplotlib", "numba", "numpy", "pandas", "pyarrow", "rich",
    "scipy", "sklearn",
}  # fmt: skip
TITANIC = str(ROOT / "data" / "titanic.csv")
MAIN = """
from bayescascade.cli import main
try:
    main()
except SystemExit:
    pass
"""
HELP = f"""
import click
from bayescascade.cli.application import application
for name, command in application.commands.items():
    print(command.get_help(click.Context(command, info_name=name)))
sys.argv = ["bayescascade", "fit", "--help"]
{MAIN}"""
READING = f"""
from bayescascade import GibbsPosterior, Posterior, Table
print(Table.from_csv({TITANIC!r}).n_rows)
"""
SHOWING = f"""
from bayescascade import DensityEstimationTree
model = DensityEstimationTree().fit({TITANIC!r})
print(model, model.tree_.to_dict(), model.score_samples({TITANIC!r}))
"""

SHOWN = f"""
sys.argv = ["bayescascade", "show", "/no/such/model.json"]
{MAIN}
from bayescascade import LeafCascade
print(sys.modules["scipy.stats"].__class__.__name__)
from scipy.stats import norm
import scipy.stats.distributions
print(norm.cdf(0.0), scipy.stats.beta.ppf(0.5, 1, 1))
"""


def imported_by(code: str, **environment: str) -> tuple[str, set[str]]:
    """Return what a program prints, and which libraries it has imported."""
    code = f"import sys\n{code}\nprint(*({LIBRARIES} & set(sys.modules)), file=sys.stderr)"
    given = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=given
    )
    return found.stdout, set(found.stderr.split())


def test_help_and_completion_need_no_library():
    """Half a second for ``--help`` is long, and completion runs at every press of a key."""
    printed, libraries = imported_by(HELP)
    assert libraries == set()
    assert "--expected-leaves" in printed
    assert "--repeats" in printed
    asked = {"COMP_CWORD": "2", "COMP_WORDS": "bayescascade fit --conc"}
    completing = imported_by(MAIN, _BAYESCASCADE_COMPLETE="bash_complete", **asked)
    assert completing == ("plain,--concentration\n", set())


def test_tables_are_read_without_what_estimators_need():
    """scikit-learn takes longer to import than a million rows of Parquet to count."""
    printed, libraries = imported_by(READING)
    assert printed == "2201\n"
    assert libraries <= {"joblib", "numpy", "pandas", "pyarrow"}


def test_commands_do_not_load_what_only_their_libraries_import():
    """scikit-learn imports half a second of statistics for one function that we do not call."""
    printed = imported_by(SHOWN)[0].splitlines()
    assert printed[-2:] == ["_Deferred", "0.5 0.5"]


@pytest.mark.slow
def test_models_are_shown_and_used_without_what_draws_pictures():
    """It takes half a second, which nobody wants to wait for to score a row."""
    assert imported_by(SHOWING)[1].isdisjoint({"arviz", "matplotlib"})
