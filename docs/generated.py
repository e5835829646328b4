"""What is made when the site is built: the reference, the commands, the notebooks, and a report.

Pages are written into ``docs/generated``, anew each time, and are not kept.
"""

import base64
import re
import shutil
from collections.abc import Iterator
from importlib import import_module
from inspect import getdoc, isclass
from pathlib import Path

import click
import nbformat
import pandas as pd
from public_names import BESIDE, sections
from sphinx.application import Sphinx

from bayescascade import LeafCascade
from bayescascade.cli.application import application

DOCS = Path(__file__).parent
GENERATED = DOCS / "generated"

_SENTENCE_END = re.compile(r"(?<=[.?:]) ")
_TITLE = re.compile(r"^#+ (.+)$", re.MULTILINE)
_SIGNS = re.compile(r"[*`]|\]\([^)]*\)|\[")
_SHAPE = re.compile(r"(?<=[a-z])_(?=,\) )")

_REFERENCE = """# Reference

Every public name is imported from `bayescascade` itself. Estimators keep scikit-learn's habits:
`get_params`, `set_params` and `clone` do what they do there, and are not listed again. The package
[samplers](samplers.md), which searches and samples states of any kind, is of use by itself.
"""

_SAMPLERS = """# samplers

```{eval-rst}
.. automodule:: samplers
   :members:
   :imported-members:
```
"""

_COMMANDS = """# Commands

What `bayescascade COMMAND --help` prints. Results go to standard output, progress and warnings to
standard error. An error is one line, with exit code 2; Ctrl-C exits with 130.
"""

_LINKS = {"](../data/README.md": "](../../example_data.md", "](../docs/": "](../../"}
"""Links of notebooks in their own folder, and where they lead from the pages."""

_GALLERY = """# Notebooks

Whole analyses with pictures, from reading a table to what should not be concluded. They are in
`examples/`, and the tests run them: what they show is what the code prints.

::::{{grid}} 1 1 2 2
:gutter: 3

{cards}
::::

```{{toctree}}
:hidden:

{listed}
```
"""


def setup(app: Sphinx) -> dict[str, bool]:
    """Register what happens before and while pages are read; Sphinx calls this."""
    app.connect("builder-inited", _write)
    app.connect("autodoc-process-docstring", _escape_types, priority=100)
    app.connect("autodoc-process-docstring", _escape_shapes, priority=900)  # after numpydoc
    app.connect("autodoc-skip-member", _skip_strangers)
    app.connect("build-finished", _write_report)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _write(app: Sphinx) -> None:
    del app
    shutil.rmtree(GENERATED, ignore_errors=True)
    for path, text in {**_reference(), "commands.md": _commands(), **_notebooks()}.items():
        target = GENERATED / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


def _write_report(app: Sphinx, failed: Exception | None) -> None:
    """Write the report that a page shows beside the pages."""
    if failed is None and app.builder.name == "html":
        rows = pd.read_csv(DOCS.parent / "data/titanic.csv").sample(frac=1, random_state=0)
        model = LeafCascade(leaf="independent", random_state=0).fit(rows[:1700])
        path = Path(app.outdir) / "titanic_report.html"
        model.report(path, title="Aboard the Titanic", held_out=rows[1700:])


def _reference() -> dict[str, str]:
    """Return a page for each public name, one for each section, and one that lists them all."""
    paths = {
        title: [f"bayescascade.{name}" for name in names] for title, names in sections().items()
    }
    pages, tables = {"api/samplers.md": _SAMPLERS}, []
    for title, each in {**paths, **BESIDE}.items():
        found = sorted(each, key=lambda path: not hasattr(_found(path), "fit"))  # estimators first
        rows = "\n".join(f"* - [{_last(p)}]({_last(p)}.md)\n  - {_summary(p)}" for p in found)
        table = f"```{{list-table}}\n:widths: 34 66\n\n{rows}\n```\n"
        listed = "\n".join(map(_last, found))
        pages[f"api/{_slug(title)}.md"] = (
            f"# {title}\n\n{table}\n```{{toctree}}\n:hidden:\n\n{listed}\n```\n"
        )
        pages |= {f"api/{_last(path)}.md": _reference_page(path) for path in found}
        tables.append(f"## {title}\n\n{table}")
    slugs = "\n".join(map(_slug, [*paths, *BESIDE]))
    toctree = f"```{{toctree}}\n:hidden:\n\n{slugs}\nsamplers\n```\n"
    return {"api/index.md": "\n".join([_REFERENCE, *tables, toctree]), **pages}


def _reference_page(path: str) -> str:
    module, name = path.rsplit(".", 1)
    if not isclass(_found(path)):
        directive, options = "autofunction", ""
    else:
        directive, options = "autoclass", "   :members:\n   :inherited-members:\n"
    return (
        f"# {name}\n\n```{{eval-rst}}\n.. currentmodule:: {module}\n\n"
        f".. {directive}:: {name}\n{options}```\n"
    )


def _found(path: str) -> object:
    module, name = path.rsplit(".", 1)
    return getattr(import_module(module), name)


def _last(path: str) -> str:
    return path.rsplit(".", 1)[1]


def _slug(title: str) -> str:
    return title.lower().replace(",", "").replace(" ", "-")


def _summary(path: str) -> str:
    """Return the first line of a docstring as Markdown."""
    return (getdoc(_found(path)) or "").split("\n\n")[0].replace("\n", " ")


def _commands() -> str:
    """Return what every command says of itself."""
    parts = [_COMMANDS]
    for names, command in _each_command(application, ("bayescascade",)):
        context = click.Context(command, info_name=" ".join(names), terminal_width=80)
        title = " ".join(names[1:]) or "bayescascade"
        parts.append(f"## {title}\n\n```text\n{command.get_help(context)}\n```\n")
    return "\n".join(parts)


def _each_command(
    command: click.Command, names: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield names, command
    if isinstance(command, click.Group):
        for name, each in command.commands.items():
            yield from _each_command(each, (*names, name))


def _notebooks() -> dict[str, str]:
    """Return the notebooks, and a gallery of them, whose pictures are written at once."""
    folder = GENERATED / "notebooks"
    folder.mkdir(parents=True)
    cards, pages = [], {}
    paths = sorted((DOCS.parent / "examples").glob("*.ipynb"))
    for path in paths:
        notebook = nbformat.read(path, as_version=4)
        for cell in notebook.cells:
            for here, there in _LINKS.items():
                cell.source = cell.source.replace(here, there)
        _describe_pictures(notebook)
        pages[f"notebooks/{path.name}"] = nbformat.writes(notebook)
        (folder / f"{path.stem}.png").write_bytes(_first_picture(notebook))
        title, first = notebook.cells[0].source.removeprefix("# ").split("\n\n", 1)
        text = " ".join(_SENTENCE_END.split(" ".join(first.split()), maxsplit=2)[:2])
        cards.append(
            f":::{{grid-item-card}} {title}\n:link: {path.stem}\n:link-type: doc\n"
            f":img-top: {path.stem}.png\n:img-alt: The first picture of the notebook\n"
            f":class-img-top: card-picture\n\n{text}\n:::\n"
        )
    listed = "\n".join(path.stem for path in paths)
    pages["notebooks/index.md"] = _GALLERY.format(cards="\n".join(cards), listed=listed)
    return pages


def _describe_pictures(notebook: nbformat.NotebookNode) -> None:
    """Give each picture its section's title and what the text after it begins with as words."""
    title = ""
    for place, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown":
            title = [title, *_TITLE.findall(cell.source)][-1]
            continue
        after = (c.source for c in notebook.cells[place + 1 :] if c.cell_type == "markdown")
        words = _SENTENCE_END.split(" ".join(next(after, "").split()), maxsplit=1)[0]
        about = f"Picture. {title}" if words.startswith("#") else f"Picture. {title}: {words}"
        cell.metadata["mystnb"] = {"image": {"alt": _SIGNS.sub("", about)}}


def _first_picture(notebook: nbformat.NotebookNode) -> bytes:
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if "image/png" in output.get("data", {}):
                return base64.b64decode(output.data["image/png"])
    raise ValueError("a notebook must have a picture, got none")


def _escape_types(
    app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    """Keep ``(n_features_in_,) array`` from being read as a link, which a trailing "_" is."""
    del app, what, name, thing, options
    for number, line in enumerate(lines):
        label, colon, types = line.partition(" : ")
        if colon and " " not in label.strip().replace(", ", ","):
            lines[number] = label + colon + types.replace("_,", "\\_,").replace("_)", "\\_)")


def _escape_shapes(
    app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    """Do the same for shapes in sentences, which numpydoc repeats where it lists attributes."""
    del app, what, name, thing, options
    lines[:] = [_SHAPE.sub(r"\\_", line) for line in lines]


def _skip_strangers(
    app: Sphinx, what: str, name: str, thing: object, skip: bool, options: object
) -> bool | None:
    """Leave out what a class inherits from another package."""
    del app, what, name, skip, options
    home = getattr(thing, "__module__", None) or "bayescascade"
    return None if home.split(".")[0] in ("bayescascade", "samplers") else True
