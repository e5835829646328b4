"""The documentation shows everything that there is, and nothing that is not."""

import re
import sys
from importlib import import_module

import pytest

import bayescascade
from tests.documents import ROOT

DOCS = ROOT / "docs"
TEXTS = {path.name: path.read_text(encoding="utf-8") for path in sorted(DOCS.glob("*.md"))}


def test_every_public_name_is_in_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new name must not be forgotten, whatever folder it comes from."""
    monkeypatch.syspath_prepend(str(DOCS))
    monkeypatch.delitem(sys.modules, "public_names", raising=False)
    listed = import_module("public_names").sections()
    monkeypatch.delitem(sys.modules, "public_names")
    names = [name for names in listed.values() for name in names]
    assert len(names) == len(set(names))
    assert set(names) == set(bayescascade.__all__)


def test_a_name_from_a_new_folder_gets_a_section(monkeypatch: pytest.MonkeyPatch) -> None:
    """A family whose title nobody wrote down is listed under its folder's name."""
    monkeypatch.syspath_prepend(str(DOCS))
    made = import_module("public_names").PublicName("Gate", "methods.adaptive_gates.estimators")
    monkeypatch.delitem(sys.modules, "public_names")
    assert made.section == "Adaptive gates"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pictures_are_there_and_shown(scheme: str) -> None:
    """A picture that is not drawn breaks a page, and one not shown is carried for nothing."""
    shown = {name for text in TEXTS.values() for name in re.findall(r"{picture} (\w+)", text)}
    drawn = {path.stem for path in (DOCS / "pictures").glob(f"*_{scheme}.svg")}
    assert shown
    assert drawn == {f"{name}_{scheme}" for name in shown}


def test_every_benchmark_is_listed() -> None:
    """Who looks for how something was measured finds the command."""
    text = TEXTS["benchmarks.md"]
    for path in (ROOT / "tests/benchmarks").glob("*.py"):
        source = path.read_text(encoding="utf-8")
        if path.stem.startswith("test_"):
            assert f"`{path.name}`" in text
        elif f"python -m tests.benchmarks.{path.stem}" in source:
            assert f"| `{path.stem}" in text


def test_pages_name_commands_that_exist() -> None:
    """What contributors and readers are told to type must work."""
    told = {**TEXTS, "CONTRIBUTING.md": (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")}
    command = re.compile(r"(?:^|`)make ([a-z]+)", re.MULTILINE)
    named = {name for text in told.values() for name in command.findall(text)}
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert {"test", "docs"} <= named
    assert named <= set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_nothing_is_loaded_from_elsewhere(name: str) -> None:
    """Pages are read where there is no network; the reader's address is nobody's business."""
    assert not re.findall(r"!\[[^]]*\]\(https?:|<(?:img|script|link)\b|:img-top: http", TEXTS[name])


def test_citation_is_of_this_version() -> None:
    """A citation of another version names what nobody ran."""
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    (version,) = re.findall(r"^version: (\S+)$", citation, re.MULTILINE)
    assert version == bayescascade.__version__
    (released,) = re.findall(r'^date-released: "(\S+)"$', citation, re.MULTILINE)
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## {version} - {released}" in changelog
