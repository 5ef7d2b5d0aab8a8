"""Sphinx extension: formulas of pages become MathML, which browsers draw without JavaScript."""

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from experiments.guide.mathematics import to_mathml


def _inline(writer: Any, node: nodes.Element) -> None:
    writer.body.append(to_mathml(node.astext()))
    raise nodes.SkipNode


def _block(writer: Any, node: nodes.Element) -> None:
    formula = to_mathml(node.astext()).replace('display="inline"', 'display="block"')
    writer.body.append(f'<div class="math">{formula}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer `mathml`."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
