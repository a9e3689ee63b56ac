"""How Sphinx builds the documentation: `make docs`."""

import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

import declared
import pictures

import firsttouch

os.environ["COLUMNS"] = "80"  # the programs whose output is shown write as to a terminal

project = "firsttouch"
author = "the firsttouch developers"
version = release = firsttouch.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinxcontrib.programoutput",
]
exclude_patterns = ["_build", "gallery/programs"]
templates_path = ["_templates"]
nitpicky = False

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's sections have them
numpydoc_show_class_members = False
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = "firsttouch"
html_favicon = "_static/favicon.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["names.js"]
html_sidebars = {"benchmarks/index": []}  # a single page: there is nothing to navigate
html_show_sourcelink = False
html_theme_options: dict[str, Any] = {
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 7,
    "show_prev_next": False,
    "navigation_with_keys": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


def leave_notes_out_of_search(app: Any, docname: str, _source: list[str]) -> None:
    """Keep what engineers wrote about decisions out of what users search."""
    if docname.startswith("notes/"):
        app.env.metadata[docname]["nosearch"] = True


def setup(app: Any) -> None:
    """Sphinx calls this."""
    app.connect("source-read", leave_notes_out_of_search)
    pictures.draw(Path(__file__).parent / "pictures")
    declared.write(Path(__file__).parent / "reference" / "allocators.rst")
