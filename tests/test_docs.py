"""The documentation shows everything that there is, and nothing that is not."""

import inspect
import json
import re
import sys
from collections.abc import Iterator
from importlib import import_module

import click
import pytest

import bayescascade
from bayescascade.cli.application import application
from tests.benchmarks.budget_results import KEPT, Results
from tests.documents import ROOT

DOCS = ROOT / "docs"
READ_TWICE = re.compile(
    r"\b(told|so\s+many|as\s+of|is\s+put\s+on|none\s+such|likewise|must\s+be\s+had"
    r"|whoever|lest|be\s+it|such\s+as\s+are|is\s+asked\s+for|for\s+granted|thereby|thereupon"
    r"|unasked|at\s+hand|did\s+not\s+mend|none\s+of\s+which"
    r"|begun|anew|whatever|by\s+itself|as\s+many\s+as|of\s+equals|(?:found|known)\s+by\s+then"
    r"|errs?|dearer|goes\s+on|rows\s+that\s+(?:chose|choose|judge|test))\b"
)
ORDER = [
    "Example", "How to read it", "Formula", "When not to use it", "Peers", "Options", "Papers",
]  # fmt: skip
TEXTS = {path.name: path.read_text(encoding="utf-8") for path in sorted(DOCS.glob("*.md"))}


def test_every_public_name_is_in_the_reference(monkeypatch):
    """A new name must not be forgotten, whatever folder it comes from."""
    monkeypatch.syspath_prepend(str(DOCS))
    monkeypatch.delitem(sys.modules, "public_names", raising=False)
    listed = import_module("public_names").sections()
    monkeypatch.delitem(sys.modules, "public_names")
    names = [name for names in listed.values() for name in names]
    assert len(names) == len(set(names))
    assert set(names) == set(bayescascade.__all__)


def test_a_name_from_a_new_folder_gets_a_section(monkeypatch):
    """A family whose title nobody wrote down is listed under its folder's name."""
    monkeypatch.syspath_prepend(str(DOCS))
    made = import_module("public_names").PublicName("Gate", "methods.adaptive_gates.estimators")
    monkeypatch.delitem(sys.modules, "public_names")
    assert made.section == "Adaptive gates"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pictures_are_there_and_shown(scheme):
    """A picture that is not drawn breaks a page, and one not shown is carried for nothing."""
    shown = {name for text in TEXTS.values() for name in re.findall(r"{picture} (\w+)", text)}
    drawn = {path.stem for path in (DOCS / "pictures").glob(f"*_{scheme}.svg")}
    assert shown
    assert drawn == {f"{name}_{scheme}" for name in shown}


def test_pages_of_methods_have_one_order():
    """Who knows the page of one method finds the way in all others."""
    (methods,) = re.findall(r":caption: Methods\n\n(.*?)\n```", TEXTS["index.md"], re.DOTALL)
    for name in methods.split():
        text = TEXTS[f"{name}.md"]
        question, *_ = text.partition("\n## ")
        assert "?" in question
        assert "\n```{picture}" in text
        headings = re.findall(r"^## ([^:\n]+)", text, re.MULTILINE)
        assert headings == ORDER, name


@pytest.mark.parametrize("name", [*sorted(TEXTS), "README.md"])
def test_figures_of_comparisons_name_their_commands(name):
    """Who doubts a figure runs the command; one without is of nobody knows which version."""
    text = TEXTS[name] if name in TEXTS else (ROOT / name).read_text(encoding="utf-8")
    sections = re.split(
        r"^## ", re.sub(r"```(?!sh|bash).*?```", "", text, flags=re.DOTALL), flags=re.M
    )
    for section in sections:
        if section.startswith(("Peers", "How it compares")) and re.search(
            r"\d\.\d|\s\.\d", section
        ):
            assert re.search(r"tests[./]benchmarks", section), section[:60]


def test_tables_of_budget_methods_are_those_of_the_rows_beside_them():
    """A mean that no longer belongs to its splits looks like one that does."""
    (section,) = re.findall(
        r"^## All methods .*?(?=^## )", TEXTS["budget_comparison.md"], re.MULTILINE | re.DOTALL
    )
    shown = re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE)
    measured = "\n".join(Results(KEPT).markdown()).strip()
    assert [table.strip() for table in shown] == measured.split("\n\n")


def test_every_benchmark_is_listed():
    """Who looks for how something was measured finds the command."""
    text = TEXTS["benchmarks.md"]
    for path in (ROOT / "tests/benchmarks").glob("*.py"):
        source = path.read_text(encoding="utf-8")
        if path.stem.startswith("test_"):
            assert f"`{path.name}`" in text
        elif f"python -m tests.benchmarks.{path.stem}" in source:
            assert f"| `{path.stem}" in text


def test_pages_name_commands_that_exist():
    """What contributors and readers are told to type must work."""
    others = [
        (ROOT / name).read_text(encoding="utf-8") for name in ("CONTRIBUTING.md", "README.md")
    ]
    command = re.compile(r"(?:^|`|\$ )make ([a-z]+)", re.MULTILINE)
    named = {name for text in (*TEXTS.values(), *others) for name in command.findall(text)}
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert {"test", "docs", "demo"} <= named
    assert named <= set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))


def test_pages_and_notebooks_avoid_words_that_are_read_twice():
    others = [*ROOT.glob("*.md"), ROOT / "data/README.md"]
    texts = {**TEXTS, **{path.name: path.read_text(encoding="utf-8") for path in others}}
    for path in (ROOT / "examples").glob("*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        words = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
        texts[path.name] = "\n".join(words)
    assert [
        (name, READ_TWICE.findall(text)) for name, text in texts.items() if READ_TWICE.search(text)
    ] == []


def test_help_avoids_words_that_are_read_twice():
    """Help is read in a hurry, often by people whose first language is another."""
    found = [
        (command.name, READ_TWICE.findall(text))
        for command in _commands(application)
        for text in (command.help, *(getattr(one, "help", None) for one in command.params))
        if READ_TWICE.search(text or "")
    ]
    assert found == []


def test_docstrings_of_public_names_avoid_words_that_are_read_twice():
    found = {
        name: READ_TWICE.findall(text)
        for public in bayescascade.__all__
        for name, text in _docstrings(public)
        if READ_TWICE.search(text)
    }
    assert found == {}


def _commands(command: click.Command) -> Iterator[click.Command]:
    yield command
    for each in command.commands.values() if isinstance(command, click.Group) else ():
        yield from _commands(each)


def _docstrings(public: str) -> Iterator[tuple[str, str]]:
    """Yield the docstrings of a public name and of its methods, without names of fields."""
    found = getattr(bayescascade, public)
    own = vars(found).items() if isinstance(found, type) else ()
    methods = [(f"{public}.{name}", each) for name, each in own if not name.startswith("_")]
    for name, each in [(public, found), *methods]:
        text = inspect.getdoc(each) or ""
        yield name, "\n".join(line for line in text.splitlines() if " : " not in line)


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_nothing_is_loaded_from_elsewhere(name):
    """Pages are read where there is no network; the reader's address is nobody's business."""
    assert not re.findall(r"!\[[^]]*\]\(https?:|<(?:img|script|link)\b|:img-top: http", TEXTS[name])
