"""Formulas as MathML, which browsers draw by themselves.

Sphinx would have them drawn by a script that is loaded from elsewhere whenever a page is read.
"""

import re

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

_MENDED = (
    (re.compile(r"<mi>(&#x003[9A][0-9A-F];)</mi>"), r'<mi mathvariant="normal">\1</mi>'),
    (re.compile(r"<mi>(log|exp)</mi>(?!<mo)"), r'<mi>\1</mi><mspace width="0.17em"></mspace>'),
    (
        re.compile(r'<mo stretchy="false">(&#x0007C;)'),
        r'<mo stretchy="false" lspace="0" rspace="0">\1',
    ),
)
"""What the converter leaves undone: upright Greek capitals, space after log, none around bars."""


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer; Sphinx calls this."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _inline(translator: HTML5Translator, node: nodes.math) -> None:
    translator.body.append(_mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def _block(translator: HTML5Translator, node: nodes.math_block) -> None:
    formula = _mathml(node.astext(), "block")
    translator.body.append(f'<div class="formula">{formula}</div>\n')
    raise nodes.SkipNode


def _mathml(formula: str, display: str) -> str:
    text: str = convert(formula, display=display)
    for pattern, better in _MENDED:
        text = pattern.sub(better, text)
    return text
