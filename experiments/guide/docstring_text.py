"""Sphinx extension: docstrings, written for a terminal, become typeset text.

Formulas in docstrings are plain text, such as ``||x||_K <= e^(epsilon / 2)``. In the guide, their
letters are italic, indices and powers are set lower and higher, and words such as "epsilon" become
Greek letters. A public name between backticks becomes a link to the reference, and any other text
between backticks becomes code. Ids of the formula sheet link to the index of theorems. Examples,
tables and literal blocks are not changed.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from sphinx.application import Sphinx

from experiments.guide.reference import exports
from experiments.theorems import THEOREMS
from experiments.theorems.theorem import ID

GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "eta": "η", "theta": "θ",
    "kappa": "κ", "lambda": "λ", "mu": "μ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ",
    "phi": "φ", "psi": "ψ", "omega": "ω", "Gamma": "Γ", "Sigma": "Σ",
}  # fmt: skip
SIGNS = {
    "||": "‖", "<=": "≤", ">=": "≥", "!=": "≠", "->": "→", "+-": "±", "...": "…", " u -": " ∪ −",
    " x ...": " × …", "... x ": "… × ",
}  # fmt: skip
#: Signs and words, and what is printed in their place; `sqrt` is replaced only before a bracket.
PRINTED = {**SIGNS, **GREEK, "eps": "ε", "sqrt": "√"}
_WORDS = "|".join([*GREEK, "eps"])
_PLAIN = re.compile(
    "|".join(
        [
            *(re.escape(sign) for sign in sorted(SIGNS, key=len, reverse=True)),
            rf"\b(?:{_WORDS})\b(?!-zero)",
            r"\bsqrt(?=\()",
        ]
    )
)
#: A power or index after `^` or `_`: brackets with at most one level of brackets inside, a word, a
#: number or a star.
_RAISED = r"\((?:[^()\n]|\([^()\n]*\))*\)|\{[^{}\n]*\}|-?\d+(?:\.\d+)?|-?\w+'?|\*"
#: Pieces of prose that are replaced or, in the group `keep`, left unchanged. At each place the
#: first alternative that matches is taken.
_PIECE = re.compile(
    rf"""
    (?P<keep> ^[ ]*[*|-][ ]+(?=\S) | \\. | ``[^`]+`` | :[a-z:]+:`[^`]+` | \*\*[^*\n]+\*\*
            | \[[A-Z]?\d+\]_ | \b(?:e\.g\.|i\.e\.) | (?<=\w)'(?:s|t)\b )
  | `(?P<name>[^`]*[^`\s][^`]*)`
  | (?P<id>{ID.pattern})
  | (?P<reals>\bR)(?=\^)
  | (?P<norm>\|\|)_(?P<normed>{_RAISED})
  | \^(?P<power>{_RAISED})
  | \b(?P<base>[A-Za-z])_(?P<index>[A-Za-z0-9]+'?|[+-](?=\W)|\([^()\n]*\)|\{{[^{{}}\n]*\}})(?![\w])
  | (?P<sign>{_PLAIN.pattern})
  | (?<![\w'./])(?<!\w-)(?P<letter>[B-HJ-Zb-z]|A(?=[),|^]|[ ][(=<>+-]))(?P<prime>'(?![a-z]))?(?!\w)
  | (?P<special>[*|_](?=\W|$) | [*|`])
    """,
    re.VERBOSE | re.MULTILINE,
)
_BORDER = re.compile(r"\s*=+(?: +=+)+\s*")
_LITERAL_DIRECTIVES = (".. math::", ".. code-block::", ".. code::")


@dataclass(frozen=True)
class Place:
    """The object whose docstring is typeset.

    A name in the docstring means an export, preferably of `package`, or else a member of `owner`.
    """

    package: str  # The package that documents the object
    owner: type | None  # The object if it is a class, or the class of a member; None for others


def typeset(lines: list[str], place: Place) -> list[str]:
    """The lines of a docstring in reStructuredText, with markup for its formulas and names."""
    found: list[str] = []
    for is_prose, block in _blocks(_with_displays(lines)):
        text = "\n".join(block)
        found += (typeset_prose(text, place) if is_prose else text).split("\n")
    return found


def _with_displays(lines: list[str]) -> list[str]:
    """Turn each indented paragraph below prose into a line block.

    Such paragraphs are formulas. reStructuredText would otherwise join their lines.
    """
    found: list[str] = []
    before = ""  # the last line of the paragraph before
    after_blank = in_display = False
    for line in lines:
        if not line.strip():
            after_blank, in_display = True, False
        else:
            if after_blank:
                deeper = _indent(line) > _indent(before)
                opens = before.lstrip().startswith((":", "..", "*", "-", ">>>", "**"))
                in_display = bool(before) and deeper and not opens and not before.endswith("::")
                indent = _indent(line)
            before, after_blank = line, False
        found.append(f"{line[:indent]}| {line[indent:]}" if in_display else line)
    return found


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _blocks(lines: list[str]) -> Iterator[tuple[bool, list[str]]]:
    """Blocks of lines: (True, lines) for prose, (False, lines) for lines that are not changed."""
    block: list[str] = []
    prose, literal_indent, in_table = True, -1, False
    for line in lines:
        indent = _indent(line)
        blank = not line.strip()
        if literal_indent >= 0 and not blank and indent <= literal_indent:
            literal_indent = -1
        if _BORDER.fullmatch(line):
            in_table = True
        in_table = in_table and not blank
        in_example = not blank and not prose and block and block[0].lstrip().startswith(">>>")
        kept = (
            literal_indent >= 0
            or in_table
            or line.lstrip().startswith((">>>", ".. "))
            or bool(in_example)
        )
        if block and prose is kept:
            yield prose, block
            block = []
        prose = not kept
        block.append(line)
        opens = line.lstrip().startswith(_LITERAL_DIRECTIVES) or line.rstrip().endswith("::")
        if literal_indent < 0 and opens and not line.lstrip().startswith(".. rubric::"):
            literal_indent = indent
    if block:
        yield prose, block


def typeset_prose(text: str, place: Place) -> str:
    """One or more lines of prose in reStructuredText."""
    joined = _PIECE.sub(lambda piece: _typeset_piece(piece, place), text)
    # An escaped space separates markup from letters and prints nothing. Beside white space it is
    # not needed, and would remove that space.
    joined = re.sub(r"(?<!\\)\\ (?=\s|$)", "", joined)
    return re.sub(r"(?:(?<=\s)|^)\\ ", "", joined)


def _typeset_piece(piece: re.Match[str], place: Place) -> str:
    match piece.lastgroup:
        case "keep":
            return piece[0]
        case "name":
            return f"\\ {_linked(' '.join(piece['name'].split()), place)}\\ "
        case "id":
            known = piece["id"] in _theorem_ids()
            return f"\\ :ref:`{piece['id']} <theorem-{piece['id']}>`\\ " if known else piece["id"]
        case "reals":
            return "ℝ"
        case "normed":
            return f"‖{_role('sub', piece['normed'])}"
        case "power":
            return _role("sup", piece["power"])
        case "index":
            return f"\\ *{piece['base']}*{_role('sub', piece['index'])}"
        case "sign":
            return PRINTED[piece["sign"]]
        case "letter" | "prime":
            return f"\\ *{piece['letter']}*\\ {'′' if piece['prime'] else ''}"
        case _:
            return f"\\{piece[0]}"


def _role(name: str, text: str) -> str:
    """Markup for an index or a power. Outer brackets that only group the text are left out."""
    inner = text[1:-1].strip() if text[0] in "({" else text
    if text[0] == "(" and "," in inner:
        inner = text
    if not inner:  # a role without a text is an error
        return f"\\ {text}"
    return f"\\ :{name}:`{_plain(inner)}`\\ "


def _plain(text: str) -> str:
    """A text with signs and Greek letters replaced, and characters of markup escaped."""
    found = _PLAIN.sub(lambda piece: PRINTED[piece[0]], text)
    found = re.sub(r"(?<!\\)[*|`]", r"\\\g<0>", found)
    return found.replace("'", "′").replace("^", "^\\ ")


def _linked(name: str, place: Place) -> str:
    """A link to the reference if `name` is documented there, or else `name` as code."""
    target = _target(name.removesuffix("()"), place)
    return f":py:obj:`{name} <{target}>`" if target else f"``{name}``"


def _target(name: str, place: Place) -> str | None:
    head, _, member = name.removeprefix("geomdp.").rpartition(".")
    if (found := _documented(name, place.package)) is not None:
        return found
    if head and "." not in head and (owner := _documented(head, place.package)) is not None:
        return _documented_member(_by_path()[owner], member)
    if place.owner is not None and name.isidentifier():
        return _documented_member(place.owner, name)
    return None


def _documented(name: str, package: str) -> str | None:
    """The dotted name of the documented export that `name` means, if there is only one."""
    if name.startswith("geomdp.") and name in _by_path():
        return name
    fitting = [path for path in _by_path() if path.endswith(f".{name}")]
    nearest = [path for path in fitting if path == f"{package}.{name}"]
    chosen = nearest or fitting
    return chosen[0] if len(chosen) == 1 else None


def _documented_member(owner: object, name: str) -> str | None:
    """The dotted name of a public member, in the first class of the MRO that documents it."""
    if not isinstance(owner, type) or name.startswith("_"):
        return None
    for base in owner.__mro__:
        value = vars(base).get(name)
        if getattr(value, "__doc__", None) and (callable(value) or isinstance(value, property)):
            paths = [path for path, known in _by_path().items() if known is base]
            return f"{paths[0]}.{name}" if paths else None
    return None


@cache
def _by_path() -> dict[str, object]:
    return {export.path: export.value for export in exports() if export.is_code}


@cache
def _theorem_ids() -> frozenset[str]:
    return frozenset(theorem.id for theorem in THEOREMS)


def _place(what: str, dotted: str) -> Place:
    paths = [path for path in _by_path() if dotted == path or dotted.startswith(f"{path}.")]
    if not paths:
        return Place(dotted if what == "module" else dotted.rpartition(".")[0], None)
    path = max(paths, key=len)
    value = _by_path()[path]
    return Place(path.rpartition(".")[0], value if isinstance(value, type) else None)


def _on_docstring(
    _app: Sphinx, what: str, name: str, _value: object, _options: object, lines: list[str]
) -> None:
    lines[:] = typeset(lines, _place(what, name))


def _on_bases(_app: Sphinx, _name: str, value: type, _options: object, bases: list) -> None:
    """Show the nearest base that the reference documents."""
    documented = [*_by_path().values()]
    known = [base for base in value.__mro__[1:] if any(base is other for other in documented)]
    bases[:] = known[:1]


def setup(app: Sphinx) -> dict[str, bool]:
    """Typeset docstrings after numpydoc has brought them into reStructuredText."""
    app.connect("autodoc-process-docstring", _on_docstring, priority=900)
    app.connect("autodoc-process-bases", _on_bases)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
