"""Sphinx's configuration. `build_site.py` makes the folder of sources that it is used with."""

import inspect
import os
import pydoc
import re

import gridbuf
from build_site import ABSENT, PAGES

project = "gridbuf"
author = "the gridbuf contributors"
copyright = author  # noqa: A001
version = release = gridbuf.__version__

extensions = [
    "breathe",
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.graphviz",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]

# ---- Pages ----

myst_heading_anchors = 4  # the anchors that GitHub makes, so that links work in both places
myst_enable_extensions = ["colon_fence"]
myst_url_schemes = {
    "http": None,
    "https": None,
    "mailto": None,
    "test": "tests/{{path}}.html#{{fragment}}",  # the pages of build_site.write_tests
}
highlight_language = "none"  # drawings of layouts and what commands print are not Python
copybutton_exclude = ".linenos, .gp, .go"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
suppress_warnings = [
    "duplicate_declaration.cpp",  # namespaces are in many files, and the compiler finds what else is declared twice
    "ref.ref",  # Breathe's "Subclassed by", whose labels MyST does not pass on; links of pages are myst.xref_missing
]

# ---- Python ----

autodoc_mock_imports = ABSENT
autodoc_member_order = "bysource"
# One signature for each function, without types, as in NumPy's reference: the docstrings have the types.
autodoc_typehints = "none"
napoleon_use_ivar = (
    True  # "Attributes:" of a class describes its members, which are not listed a second time
)
autodoc_default_options = {"members": True, "undoc-members": True}
# One backtick in a docstring is code, and a link where it names something of gridbuf.
default_role = "py:obj"

# ---- C++ ----

breathe_default_project = "gridbuf"
breathe_default_members = ("members",)
breathe_show_include = False
cpp_maximum_signature_line_length = 100
maximum_signature_line_length = 100

# ---- References ----

# A reference to gridbuf's own names must resolve. Other libraries' names are not linked: the build has no network.
nitpicky = True
nitpick_ignore_regex = [
    ("py:obj", ".*"),
    ("py:.*", r"(?!gridbuf).*"),
    ("cpp:.*", ".*"),
]

# ---- Theme ----

graphviz_output_format = "svg"
html_theme = "furo"
html_title = f"gridbuf {release}"
html_favicon = "static/favicon.svg"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_show_sphinx = False
html_copy_source = False


def fences_to_blocks(app, what, name, obj, options, lines):
    """Docstrings that show code in Markdown's fences: the block that reStructuredText has for it."""
    inside, made = False, []
    for line in lines:
        if line.lstrip().startswith("```"):
            indent = line[: len(line) - len(line.lstrip())]
            language = line.strip().strip("`") or "text"
            made += [] if inside else [f"{indent}.. code-block:: {language}", ""]
            inside = not inside
        else:
            made.append(f"   {line}" if inside and line else line)
    lines[:] = made


def links_to_spec(app, what, name, obj, options, lines):
    """The items behind `docs/spec.md` are links, and `docs/spec.md section 12` is one to the page."""

    def links(match):
        item = r"`\1.\2 <../../spec.html#item-\1-\2>`__"
        return "docs/spec.md" + re.sub(r"(\d+)\.(\d+)", item, match[1])

    text = re.sub(r"docs/spec\.md((?:,?(?:\s+(?:to|and))?\s+\d+\.\d+)+)", links, "\n".join(lines))
    page = r"`docs/spec.md <../../spec.html>`__"
    lines[:] = re.sub(r"docs/spec\.md(?=\s+sections?\b)", page, text).split("\n")


def edit_link(app, pagename, templatename, context, doctree):
    """A page that is a file of the repository names the file. Where the repository has an address, it has a link to edit it."""
    source = next(
        (s for s, page in reversed(PAGES.items()) if page.removesuffix(".md") == pagename), ""
    )
    address = os.environ.get("GRIDBUF_REPOSITORY") if source else ""
    context["theme_source_edit_link"] = f"{address}/edit/main/{source}" if address else ""
    if source:
        context["body"] += f'<p class="source">This page: <code>{source}</code></p>'


def text_from_class(app, what, name, obj, options, lines):
    """An attribute without a text has the one of its class's section: slots and fields cannot have a docstring."""
    if what != "attribute" or any(lines):
        return
    path, _, attribute = name.rpartition(".")
    owner = pydoc.locate(path)
    entry = rf"^(?:\w+, )*{attribute}(?:, \w+)* : .*\n((?:    .*\n?)+)"
    if found := re.search(entry, inspect.getdoc(owner) or "", re.MULTILINE):
        lines[:] = inspect.cleandoc("    " + found[1].strip()).splitlines()


def as_called(app, what, name, obj, options, signature, returns):
    """The signature of a compiled method as it is called."""
    if signature:
        signature = re.sub(r"^\(self(?:, /)?(?:, |(?=\)))", "(", signature).replace(
            "=Ellipsis", "=..."
        )
    return signature, returns


def setup(app):
    app.connect("autodoc-process-signature", as_called)
    app.connect("autodoc-process-docstring", fences_to_blocks)
    app.connect("autodoc-process-docstring", text_from_class)
    app.connect("autodoc-process-docstring", links_to_spec)
    app.connect("html-page-context", edit_link)
