"""The index of theorems is complete, and all code, tests and claims that it names exist."""

import hashlib
import importlib
import json
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from experiments.catalogue import SCRIPTS
from experiments.guide.mathematics import to_html
from experiments.theorems import THEOREMS, UNCLAIMED, UNREFUTED, Paper, cited, resolve, shown_by
from tests.experiments.planted_edits import are_tests

ROOT = Path(__file__).parents[2]
FIGURES = ROOT / "paper_figures"
DOCSTRINGS = [(name.rpartition(".")[2], importlib.import_module(name).__doc__) for name in SCRIPTS]
BY_ID = {theorem.id: theorem for theorem in THEOREMS}

#: How many numbered statements of each paper the index has.
NUMBERED = {
    Paper.NIKOLOV: 31, Paper.BLUM_ROTH: 27, Paper.ROTH: 9, Paper.WANG: 5, Paper.LIGETT: 4,
    Paper.PRIMITIVES: 4,
}  # fmt: skip
#: Start of the SHA-256 digest of all ids and numbers. Whoever adds a statement replaces it.
DIGEST = "ba1809ae20db50c5"


def test_no_statement_of_the_papers_and_of_the_formula_sheet_is_lost():
    numbers = [(theorem.paper, number) for theorem in THEOREMS for number in theorem.numbers]
    assert len(BY_ID) == len(THEOREMS)
    assert Counter(paper for paper, _ in set(numbers)) == NUMBERED
    listed = "\n".join(sorted([*BY_ID, *map(" ".join, numbers)]))
    assert hashlib.sha256(listed.encode()).hexdigest()[:16] == DIGEST, "an id or number changed"


@cache
def ids_of(script: str) -> set[str]:
    """Ids of the claims in the committed record of a figure."""
    record = json.loads((FIGURES / f"{script}.json").read_text(encoding="utf-8"))
    return set().union(*(cited(claim["id"]) for claim in record["claims"]))


@pytest.mark.parametrize("theorem", THEOREMS, ids=BY_ID)
def test_the_code_the_tests_and_the_claims_of_a_theorem_exist(theorem):
    """Claims of the committed figures count; citations in docstrings of scripts do not count."""
    assert theorem.code
    assert all(resolve(name) is not None for name in theorem.code)
    are_tests(theorem.tests)
    assert bool(theorem.claims) != (theorem.id in UNCLAIMED)
    for claim in theorem.claims:
        script, id = claim.split("::")
        assert id in ids_of(script), f"no claim of {script} has the id {id}"


def test_the_theorems_without_a_claim_are_listed_with_the_reason():
    assert BY_ID.keys() >= UNCLAIMED.keys() | UNREFUTED.keys()
    assert all((UNCLAIMED | UNREFUTED).values())
    assert not UNCLAIMED.keys() & UNREFUTED.keys()


@pytest.mark.parametrize(("name", "docstring"), DOCSTRINGS)
def test_every_script_shows_a_theorem_and_cites_known_ones(name, docstring):
    assert any(shown_by(theorem, [(name, docstring)]) for theorem in THEOREMS)
    assert cited(docstring) <= BY_ID.keys()


@pytest.mark.parametrize("theorem", THEOREMS, ids=BY_ID)
def test_statements_are_mathematics_that_browsers_draw(theorem):
    text = f"{theorem.statement} {theorem.look} {theorem.follows}"
    assert text.count("$") % 2 == 0
    html = to_html(text)
    assert "$" not in html
    assert "\\" not in html
    # Browsers support no other value of this attribute.
    assert html.count("mathvariant") == html.count('mathvariant="normal"')


def test_unknown_names_and_commands_are_refused():
    with pytest.raises(AttributeError, match="no_such_thing"):
        resolve("geomdp.bounds.no_such_thing")
    with pytest.raises(ModuleNotFoundError):
        resolve("no_such_package.thing")
    with pytest.raises(ValueError, match="unknown command"):
        to_html(r"$\leM$")
