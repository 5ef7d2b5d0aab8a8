"""Settings of Sphinx; `experiments.guide.build` assembles the sources that Sphinx reads."""

import geomdp

project = "geomdp"
author = "The geomdp developers"
release = version = geomdp.__version__
extensions = [
    "sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "myst_nb", "sphinx_design",
    "sphinx_copybutton", "experiments.guide.mathml", "experiments.guide.docstring_text",
]  # fmt: skip
exclude_patterns = ["repository", "made"]
language = "en"
# Verdicts of claims.
rst_prolog = """
.. role:: passed(strong)
.. role:: failed(strong)
"""
# Every reference must have a target.
nitpicky = True
default_role = "literal"
highlight_language = "text"

# Signatures show names and defaults; numpydoc's sections show types.
autodoc_typehints = "none"
autodoc_preserve_defaults = True
autosummary_generate = False
numpydoc_show_class_members = False

# The code cells of a page run in one temporary folder, empty at first, and the page shows their
# output. If a cell fails, Sphinx warns with the traceback, and a warning makes the build fail.
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_timeout = 300
nb_execution_show_tb = True
nb_merge_streams = True
nb_ipywidgets_js = {}
myst_enable_extensions = ["dollarmath", "colon_fence", "attrs_inline", "deflist"]
myst_heading_anchors = 4
myst_update_mathjax = False

html_theme = "pydata_sphinx_theme"
html_title = "geomdp"
html_math_renderer = "mathml"
html_static_path = ["static"]
html_css_files = ["site.css"]
# Summaries are fetched, which browsers refuse for files.
html_show_search_summary = False
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {
    "collapse_navigation": True,
    "navigation_depth": 2,
    "show_nav_level": 1,
    "show_toc_level": 2,
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "tango",
}
html_context = {"default_mode": "light"}
copybutton_exclude = ".linenos, .gp, .go"
