"""The package says of itself what is true: dependencies, version, files, commands."""

import ast
import re
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

import bayescascade
import samplers
from tests.commands import run

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PACKAGES = [Path(package.__file__).parent for package in (bayescascade, samplers)]
OURS = {"bayescascade", "samplers"}
EXTRAS = ("plots", "traces", "dask", "privacy", "fsspec")  # of what is imported when it is used
# What a package is imported as, where that is not its name.
DISTRIBUTIONS = {
    "sklearn": "scikit-learn",
    "arviz_stats": "arviz-stats",
    "lazy_loader": "lazy-loader",
}


def imported(folder: Path) -> set[str]:
    """Return the names of the packages that the sources in a folder import, anywhere."""
    names = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names.add((node.module or "").split(".")[0])
    return names - set(sys.stdlib_module_names)


def declared(requirements: list[str]) -> set[str]:
    """Return the names of the distributions in a list of requirements."""
    return {re.split(r"[<>=!~\[; ]", requirement)[0] for requirement in requirements}


@pytest.mark.slow
@pytest.mark.parametrize("folder", PACKAGES, ids=lambda folder: folder.name)
def test_every_import_is_a_declared_dependency(folder):
    """Else it works here and fails where the package is installed alone."""
    needed = {DISTRIBUTIONS.get(name, name) for name in imported(folder) - OURS}
    assert needed
    optional = [each for name in EXTRAS for each in PROJECT["optional-dependencies"][name]]
    assert needed <= declared(PROJECT["dependencies"] + optional)


def test_a_model_needs_no_extra(monkeypatch, tmp_path):
    """Who installs the package alone gets models, and one line for what else a command needs."""
    data = tmp_path / "rows.csv"
    data.write_text("a,b\n" + "x,y\nx,z\nw,z\n" * 9)
    options = ["--search", "metropolis", "--steps", 50, "--chains", 1, "--quiet"]
    for library in ("matplotlib", "arviz", "h5netcdf", "h5py", "dask", "distributed", "opendp"):
        monkeypatch.setitem(sys.modules, library, None)  # as if it were not installed
    done = run("fit", data, *options, "--out", tmp_path / "model.json")
    assert done.exit_code == 0, done.stderr
    for command, extra in (
        (["fit", data, *options, "--trace", tmp_path / "trace.nc"], "traces"),
        (["show", tmp_path / "model.json", "--png", tmp_path / "tree.png"], "plots"),
        (["compare", data, "--plot", tmp_path / "comparison.svg"], "plots"),
    ):
        refused = run(*command)
        assert refused.exit_code == 2
        assert refused.stderr.count("\n") == 1
        assert f"pip install 'bayescascade[{extra}]'" in refused.stderr


def test_samplers_needs_neither_bayescascade_nor_numba():
    assert imported(PACKAGES[1]) <= {"samplers", "numpy", "joblib"}


def test_installed_dependencies_meet_the_floors():
    """A floor above what the tests run with was never tested."""
    for requirement in PROJECT["dependencies"]:
        name, floor = requirement.split(">=")
        assert _numbers(version(name)) >= _numbers(floor), requirement


def test_version_has_an_entry_in_the_changelog_and_is_the_one_that_is_cited():
    """A release whose changes nobody wrote down would say nothing to its users."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## (\S+) - (\d{4}-\d{2}-\d{2})$", changelog, re.MULTILINE)
    assert newest is not None
    assert newest[1] == PROJECT["version"] == bayescascade.__version__
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (\S+)$", citation, re.MULTILINE) == [newest[1]]
    assert re.findall(r'^date-released: "(\S+)"$', citation, re.MULTILINE) == [newest[2]]


def test_readme_links_to_files_that_exist():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", readme)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_readme_is_short_enough_to_be_read():
    """What is longer stands in docs/, once."""
    readme = (ROOT / "README.md").read_bytes()
    assert len(readme) <= 12_000
    assert readme.count(b"\n") <= 200


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])
