"""The record of one statement of a paper, and the scripts that show this statement."""

import enum
import importlib
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

#: Ids of the formula sheet, as docstrings of scripts and claims cite them.
ID = re.compile(r"\b(?:GEN|JL|BR|SV|IC|SM|SAM|X|LAB)-[A-Z0-9]+(?:\.\d+)?[a-z]?\b")


class Paper(enum.StrEnum):
    """Where a statement comes from, in the order of the gallery."""

    NIKOLOV = "Nikolov 2022: Private query release via the Johnson-Lindenstrauss transform"
    BLUM_ROTH = "Blum and Roth 2011: Fast private data release algorithms for sparse queries"
    LIGETT = "Ligett: Sparse vector (slides after Dwork and Roth 2014, chapter 3)"
    ROTH = "Roth: Lecture on iterative construction (after Gupta, Roth and Ullman 2011)"
    WANG = "Wang, Fan, Zhang and Wang 2013: Privately releasing smooth queries"
    PRIMITIVES = "Common ground: privacy, noise, convex bodies"
    SAMPLING = "Common ground: what may be claimed of sampled noise"
    ADDITIONS = "Beyond the papers"


@dataclass(frozen=True)
class Theorem:
    """One theorem, lemma or algorithm."""

    id: str  # Id in the formula sheet
    paper: Paper  # Source of the statement
    name: str  # Title of the statement
    statement: str  # The statement as implemented: prose with LaTeX between dollar signs
    code: tuple[str, ...]  # Dotted names of the code that implements the statement
    numbers: tuple[str, ...] = ()  # Numbers in the paper, such as "Theorem 4.9"
    correction: str = ""  # Where and why the statement differs from the printed one
    #: One sentence each, prose with LaTeX: what to look at in the figure, and what follows.
    look: str = ""
    follows: str = ""
    #: The claims that fail if the statement is wrong. Each is written ``script::id``, with the
    #: short name of a script and the id that one of its claims has (`Claim.id`).
    claims: tuple[str, ...] = ()
    #: Tests that check the statement, ``path::function``.
    tests: tuple[str, ...] = ()

    @property
    def scripts(self) -> tuple[str, ...]:
        """Short names of the scripts with claims in `claims`."""
        return tuple(dict.fromkeys(claim.partition("::")[0] for claim in self.claims))


def read(path: Path) -> tuple[Theorem, ...]:
    """The statements in a TOML file, which gives the name of a member of `Paper` as the paper."""

    def field(name: str, value: str | list[str]) -> Paper | str | tuple[str, ...]:
        if isinstance(value, list):
            return tuple(value)
        return Paper[value] if name == "paper" else " ".join(value.split())

    rows = tomllib.loads(path.read_text(encoding="utf-8"))["theorem"]
    return tuple(Theorem(**{name: field(name, row[name]) for name in row}) for row in rows)


def cited(text: str | None) -> set[str]:
    """Ids of the formula sheet in a text."""
    return set(ID.findall(text or ""))


def shown_by(theorem: Theorem, docstrings: Sequence[tuple[str, str | None]]) -> list[str]:
    """Short names of the scripts that the site shows beside a theorem, in the order given.

    These are the scripts whose claims the theorem names and those that only cite its id. A citation
    proves nothing. `Theorem.claims` names the claims that can fail.
    """
    return [
        name for name, text in docstrings if name in theorem.scripts or theorem.id in cited(text)
    ]


def resolve(dotted: str) -> object:
    """The object with a dotted name. The object may be an attribute of a class."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        name = ".".join(parts[:length])
        try:
            found: object = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise  # a module that this module imports is missing
            continue
        for part in parts[length:]:
            found = getattr(found, part)
        return found
    raise ModuleNotFoundError(f"no leading part of {dotted!r} is a module")
