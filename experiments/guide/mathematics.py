"""Convert prose with LaTeX between dollar signs to HTML with MathML, or to plain text."""

import re
import unicodedata
from html import escape

from latex2mathml.converter import convert

from geomdp.cli.display import visible

_VARIANT = re.compile(r'<mi mathvariant="(double-struck|script)">([A-Z])</mi>')
#: Upright words, which the converter spells letter by letter.
_WORD = re.compile(r'<mrow>(?:<mi mathvariant="normal">[A-Za-z]</mi>){2,}</mrow>')
#: Names of functions whose argument has no brackets.
_FUNCTION = re.compile(r"(<mi>(?:ln|log|cos|sin|arccos|dim|tr)</mi>)(?=<m[infrs])")
_MATH = re.compile(r"\$([^$]+)\$")
#: Commands of Matplotlib that the converter does not know or converts badly, with replacements.
_SPELLINGS = {r"\mathdefault": r"\mathrm", r"\lVert": r"\|", r"\rVert": r"\|"}


def to_html(text: str) -> str:
    """Escaped prose, with formulas between dollar signs as MathML."""
    # The pieces at odd positions are formulas.
    pieces = _MATH.split(" ".join(text.split()))
    return "".join(
        to_mathml(piece) if position % 2 else escape(visible(piece))
        for position, piece in enumerate(pieces)
    )


def to_mathml(formula: str) -> str:
    """One formula as MathML, without the namespace attribute, which HTML does not need."""
    for printed, known in _SPELLINGS.items():
        formula = formula.replace(printed, known)
    mathml = convert(formula)
    if "\\" in mathml:
        raise ValueError(f"formula has an unknown command: {formula!r}")
    mathml = _WORD.sub(lambda word: f"<mi>{re.sub('<[^>]*>', '', word[0])}</mi>", mathml)
    mathml = _FUNCTION.sub(r'\1<mspace width="0.167em"/>', mathml)
    return _VARIANT.sub(_letter, re.sub(r' xmlns="[^"]*"', "", mathml))


def _letter(found: re.Match[str]) -> str:
    """The Unicode letter for a letter with `mathvariant`, which browsers no longer support."""
    variant = {"double-struck": "DOUBLE-STRUCK", "script": "SCRIPT"}[found[1]]
    for prefix in ("", "MATHEMATICAL "):  # common letters have names without the prefix
        try:
            return f"<mi>{unicodedata.lookup(f'{prefix}{variant} CAPITAL {found[2]}')}</mi>"
        except KeyError:
            continue
    raise ValueError(f"Unicode has no {found[1]} letter {found[2]}")


def to_text(text: str) -> str:
    """Plain words for screen readers: formulas lose their markup."""
    plain = re.sub(r"\\(?:mathrm|mathdefault|operatorname|left|right|,)", "", text)
    return " ".join(re.sub(r"[${}\\]", "", plain).split())
