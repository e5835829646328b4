"""Settings of the documentation, which `make docs` builds into build/docs.

Nothing that the pages show is loaded from elsewhere: fonts are the reader's, formulas are MathML.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import bayescascade

project = "bayescascade"
version = release = bayescascade.__version__
project_copyright = "the bayescascade developers"
language = "en"

extensions = [
    "myst_nb",  # pages in Markdown, and notebooks
    "sphinx.ext.autodoc",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "formulas",
    "pictures_shown",
    "generated",
]
exclude_patterns = ["*.py", "__pycache__"]
nitpicky = False  # types in docstrings are words of the field, such as "(n,) float64"

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # notebooks are shown with the outputs that the tests check
nb_merge_streams = True

default_role = "py:obj"  # `name` in a docstring is a link where there is something to link to
autodoc_typehints = "none"  # docstrings give types, shapes and units
autodoc_member_order = "groupwise"
maximum_signature_line_length = 70
numpydoc_show_class_members = False
add_module_names = False
copybutton_exclude = ".linenos, .gp, .go"
copybutton_prompt_text = "$ "

html_theme = "furo"
html_title = "bayescascade"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#1f5f8b",
        "color-brand-content": "#1f5f8b",
        "color-brand-visited": "#1f5f8b",
    },
    "dark_css_variables": {
        "color-brand-primary": "#8fc1e3",
        "color-brand-content": "#8fc1e3",
        "color-brand-visited": "#8fc1e3",
    },
}
