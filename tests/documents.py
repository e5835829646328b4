"""README, docs and notebooks as documents that run: what they print is checked, or written anew.

``python -m tests.documents`` runs all of their code and writes its output into them.
"""

import multiprocessing
import os
import re
import runpy
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import nbformat
from joblib.externals.loky import get_reusable_executor
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))

# The root is on the path because a checkout need not be installed; output is that of a terminal.
ENVIRONMENT = {
    **os.environ,
    "COLUMNS": "80",
    "PYTHONIOENCODING": "utf-8",
    "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
}

# What most examples import; a notebook's kernel and a script import it themselves.
PRELOADED = ["pandas", "pyarrow.dataset", "scipy.stats", "sklearn.ensemble", "bayescascade.cli"]

_PYTHON = re.compile(r"```python\n(?P<code>.*?)```\n+```text\n(?P<output>.*?)```", re.DOTALL)
_CONSOLE = re.compile(r"```console\n(?P<session>.*?)```", re.DOTALL)
_COMMAND = re.compile(r"^\$ (?P<code>.*\n)(?P<output>(?:(?!\$ ).*\n)*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Example:
    """Code of a page, and what it prints according to the page.

    Parameters
    ----------
    kind : str
        "python", or "console" for one command of a session.
    code, output : str
    start, end : int
        Where the output stands in the text, [start, end).
    """

    kind: str
    code: str
    output: str
    start: int
    end: int


def examples_of(text: str) -> Iterator[Example]:
    """Yield a page's Python blocks and commands, in its order within each kind."""
    for block in _PYTHON.finditer(text):
        yield Example("python", block["code"], block["output"], *block.span("output"))
    for session in _CONSOLE.finditer(text):
        offset = session.start("session")
        for command in _COMMAND.finditer(session["session"]):
            start, end = command.span("output")
            yield Example(
                "console", command["code"], command["output"], offset + start, offset + end
            )


def printed(examples: list[Example]) -> list[str]:
    """Return what the examples print, run one after the other in a directory with the data.

    Each runs in a process of its own, forked from one that has imported the libraries: importing
    them would take longer than most examples.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    with (
        tempfile.TemporaryDirectory() as directory,
        ProcessPoolExecutor(1, mp_context=context, max_tasks_per_child=1) as pool,
    ):
        shutil.copytree(ROOT / "data", Path(directory) / "data")
        return [pool.submit(_output_of, example, directory).result() for example in examples]


def _output_of(example: Example, directory: str) -> str:
    """Return what this process writes to its standard output while it runs an example."""
    os.chdir(directory)
    os.environ.update(ENVIRONMENT)
    with tempfile.TemporaryFile("w+", encoding="utf-8") as file:
        os.dup2(file.fileno(), 1)
        sys.stdout = file
        try:
            _run(example)
        except SystemExit as end:
            if end.code:
                raise RuntimeError(f"{example.code}ended with exit code {end.code}") from end
        file.flush()
        file.seek(0)
        output = file.read()
    if multiprocessing.active_children():  # of joblib, idle; the end would wait minutes for them
        get_reusable_executor(reuse=True).shutdown()
    return output


def executed(path: Path) -> nbformat.NotebookNode:
    """Return the notebook with the outputs of running it now, in its own folder."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=300,
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(path.parent)}},
    )
    client.execute(env=ENVIRONMENT)
    notebook.metadata["language_info"] = {"name": "python"}  # not the version that happened to run
    return notebook


def _run(example: Example) -> None:
    """Run an example as `python -c` or `python -m bayescascade` would."""
    if example.kind == "python":
        exec(compile(example.code, "<example>", "exec"), {"__name__": "__main__"})
        return
    program, *sys.argv[1:] = shlex.split(example.code)
    if program != "bayescascade":
        raise ValueError(f"a console example must run bayescascade, got {program}")
    runpy.run_module("bayescascade", run_name="__main__", alter_sys=True)


def _refresh() -> None:
    """Write what everything prints now into the pages and the notebooks."""
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        path.write_text(_with_outputs(text), encoding="utf-8")
    for path in NOTEBOOKS:
        nbformat.write(executed(path), path)


def _with_outputs(text: str) -> str:
    """Return a page with what its examples print now."""
    examples = list(examples_of(text))
    outputs = printed(examples)
    for example, output in sorted(
        zip(examples, outputs, strict=True), key=lambda pair: -pair[0].start
    ):
        text = text[: example.start] + output + text[example.end :]
    return text


if __name__ == "__main__":
    _refresh()
