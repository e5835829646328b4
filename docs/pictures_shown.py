"""The directive `picture`: one of `pictures`, as drawn for light or for dark pages."""

from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class Picture(SphinxDirective):
    """``{picture} name`` with the option `alt`, which says in words what can be seen."""

    required_arguments = 1
    option_spec: ClassVar = {"alt": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        """Return both images, of which the theme shows one, in a frame that may scroll."""
        images = [
            nodes.image(
                uri=f"pictures/{self.arguments[0]}_{scheme}.svg",
                alt=self.options["alt"],
                classes=["picture", f"only-{scheme}"],
            )
            for scheme in ("light", "dark")
        ]
        return [nodes.container("", *images, classes=["picture-frame", self.arguments[0]])]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive; Sphinx calls this."""
    app.add_directive("picture", Picture)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
