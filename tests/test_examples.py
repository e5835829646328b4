"""Everything that the documentation shows runs, and prints what it says it prints."""

import re
import subprocess
import sys

import nbformat
import numpy as np
import pytest

from tests.documents import ENVIRONMENT, NOTEBOOKS, PAGES, ROOT, examples_of, executed, printed

_NUMBER = re.compile(r"\s*-?\d[\d,]*(?:\.\d+)?")  # with the spaces that align it
_FIGURE = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+(?: ?%)?| ?%)")
_NOT_TEXT = re.compile(r"\$[^$]*\$|`[^`]*`|\]\([^)]*\)")  # formulas, code and links
R_HAT_LIMIT = "1.01"  # printed only if it is exceeded

NUMBERS_VARY = {"sensors"}  # pages where BLAS leads a climb: its end depends on the processor

SCRIPTS = sorted((ROOT / "examples").glob("*.py"))
SHOWING = [path for path in PAGES if any(examples_of(path.read_text(encoding="utf-8")))]


@pytest.mark.slow
@pytest.mark.parametrize("path", SHOWING, ids=lambda path: path.stem)
def test_page_shows_real_output(path):
    """A reader who types the examples must see what the page shows."""
    examples = list(examples_of(path.read_text(encoding="utf-8")))
    for example, output in zip(examples, printed(examples), strict=True):
        assert max(map(len, output.splitlines()), default=0) <= 80
        if path.stem in NUMBERS_VARY:
            assert_alike([output], [example.output])
        else:
            assert output == example.output, f"`make examples` writes the page anew: {example.code}"


@pytest.mark.slow
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_script_runs_anywhere(path, tmp_path):
    """An example must not depend on the directory it is run from, nor warn."""
    run = subprocess.run(
        [sys.executable, "-W", "error", path],
        cwd=tmp_path, env=ENVIRONMENT, check=False,
        capture_output=True, encoding="utf-8", timeout=300,
    )  # fmt: skip
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_shows_what_it_computes(path):
    """Stale outputs would describe another version than the one installed.

    Where BLAS leads a climb, its end depends on the processor: a notebook whose metadata say that
    its `numbers_vary` must print the same words, and numbers like those.
    """
    committed = nbformat.read(path, as_version=4)
    found, expected = _texts(executed(path)), _texts(committed)
    if committed.metadata.get("numbers_vary"):
        assert_alike(found, expected)
    else:
        assert found == expected, "`make examples` writes notebooks anew"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_committed_with_its_pictures(path):
    """The notebook is read on the web, where nothing runs."""
    outputs = [
        output
        for cell in nbformat.read(path, as_version=4).cells
        if cell.cell_type == "code"
        for output in cell.outputs
    ]
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= 3
    assert not any(output.output_type == "error" for output in outputs)
    assert not any(output.get("name") == "stderr" for output in outputs)
    assert path.stat().st_size < 500_000


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_text_quotes_what_is_printed(path):
    """A text about an earlier run would contradict the output beside it."""
    assert _unprinted(nbformat.read(path, as_version=4)) == []


def test_figures_that_no_cell_prints_are_found():
    cell = nbformat.v4.new_code_cell(
        "n_steps = 2_000",
        outputs=[nbformat.v4.new_output("stream", text="R-hat 1.834, share 0.46")],
    )
    text = nbformat.v4.new_markdown_cell("R-hat is 1.83, not 2.18; 46 %, not 47 %, at `1.5`.")
    notebook = nbformat.v4.new_notebook(cells=[text, cell])
    assert _unprinted(notebook) == ["2.18", "47 %"]


def assert_alike(found: list[str], expected: list[str]) -> None:
    """Check that texts have the same words, and numbers within a factor of two of each other."""
    assert [_NUMBER.split(text) for text in found] == [_NUMBER.split(text) for text in expected]
    numbers = np.abs([
        [float(n) for text in texts for n in _NUMBER.findall(text.replace(",", ""))]
        for texts in (found, expected)
    ])  # fmt: skip
    apart = np.abs(np.diff(numbers, axis=0)) > 0.5 + numbers.max(axis=0) / 2
    assert not apart.any(), f"not within a factor of two: {numbers[:, apart[0]].tolist()}"


def _unprinted(notebook: nbformat.NotebookNode) -> list[str]:
    """Return decimals and percentages of the texts that round no number of code or outputs."""
    shown, figures = [], []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            outputs = [
                output.get("text", "") or output.get("data", {}).get("text/plain", "")
                for output in cell.outputs
            ]
            text = "\n".join([cell.source, *outputs]).replace(",", "").replace("_", "")
            shown += [float(number) for number in _NUMBER.findall(text)]
        else:
            figures += _FIGURE.findall(_NOT_TEXT.sub("", cell.source))
    numbers = np.abs(shown)
    return [
        figure
        for figure in figures
        if figure != R_HAT_LIMIT and not _rounds_one_of(numbers, figure)
    ]


def _rounds_one_of(numbers: np.ndarray, figure: str) -> bool:
    """Say whether a figure is one of the numbers, rounded; 46 % may be printed as 0.46."""
    digits = figure.rstrip("% ").replace(",", "")
    half = 0.5000001 * 10.0 ** -len(digits.partition(".")[2])
    scales = (1, 100) if figure.endswith("%") else (1,)
    return any(bool((np.abs(scale * numbers - float(digits)) <= half).any()) for scale in scales)


def _texts(notebook: nbformat.NotebookNode) -> list[str]:
    """Return what each code cell prints; pictures differ with matplotlib's version."""
    return [
        "".join(output.text for output in cell.outputs if output.output_type == "stream")
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]
