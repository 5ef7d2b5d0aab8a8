"""The index of theorems is complete, and all code, tests and claims that it names exist."""

import importlib
import json
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

#: All ids of the formula sheet, sections 0 to 6 and 12.
SHEET = [
    "GEN-1", "GEN-2", "GEN-2a", "GEN-2b", "GEN-3", "GEN-4", "JL-DEF", "JL-T1", "JL-T2", "JL-MARG",
    "JL-L6", "JL-L7", "JL-D8", "JL-T9", "JL-L10", "JL-L11", "JL-L12", "JL-A1", "JL-L13", "JL-L13b",
    "JL-GAUSS", "JL-KN", "JL-L14", "JL-L15", "JL-ELL", "JL-VR", "JL-L17", "JL-URY", "JL-L20",
    "JL-L18", "JL-SPLIT", "JL-L19", "JL-L16", "JL-14", "JL-T21", "JL-COV", "JL-WIS", "JL-T3",
    "JL-T23", "JL-T24", "JL-T25", "JL-A2", "JL-L26", "JL-L27", "JL-T4", "BR-ACC", "BR-T2.10",
    "BR-IDC", "BR-T3.3", "BR-OIC", "BR-MW", "BR-FK", "BR-MED", "BR-SMW", "BR-CONJ", "BR-JL",
    "BR-PROJ", "SV-AT", "SV-SP", "SV-NUM", "SV-LSL", "IC-DIST", "IC-ALG", "IC-T4", "IC-T5", "SM-A1",
    "SM-A2", "SM-JK", "SM-T3.1", "SM-T3.2", "SM-TAB", "SM-X1", "SAM-1", "SAM-2", "SAM-3", "SAM-4",
    "SAM-5", "SAM-6", "X-OUT", "X-RAY", "X-SIM", "X-CONE", "X-LKJ", "X-PSDBOX", "X-GF", "X-NUFFT",
    "X-MNP", "X-SPX", "X-LOCK",
]  # fmt: skip

#: The numbered statements of each paper.
NUMBERED = {
    Paper.NIKOLOV: [*(f"Theorem {n}" for n in (1, 2, 3, 4, 9, 21, 23, 24, 25)),
                    *(f"Lemma {n}" for n in (6, 7, *range(10, 21), 22, 26, 27)), "Definition 8",
                    "Algorithm 1", "Algorithm 2"],
    Paper.BLUM_ROTH: [
        *(f"Theorem {n}" for n in ("1.1", "1.2", "2.10", "3.3", "3.5", "3.8", "4.1", "4.5", "4.9")),
        *(f"Lemma {n}" for n in ("3.7", "4.6", "4.8")),
        *(f"Corollary {n}" for n in ("3.11", "4.2", "4.7", "4.12")),
        *(f"Definition {n}" for n in ("2.3", "2.4", "3.1", "3.2", "3.4", "3.9", "4.3", "4.10")),
        "Claim 3.6",
        "Algorithm 1",
        "Algorithm 2",
    ],
    Paper.LIGETT: ["Algorithm 1", "Theorem 3.24", "Theorem 3.28"],
    Paper.ROTH: [*(f"Definition {n}" for n in (1, 2, 3)),
                 *(f"Theorem {n}" for n in (4, 5, 6, 7, 8)), "Algorithm 1"],
    Paper.WANG: ["Algorithm 1", "Algorithm 2", "Theorem 3.1", "Theorem 3.2", "Table 1"],
}  # fmt: skip
#: Further numbered statements, which the index lists as common ground of the papers.
SHARED = [
    "Nikolov, Lemma 5",
    "Blum and Roth, Definition 2.6",
    "Blum and Roth, Definition 2.8",
    "Blum and Roth, Theorem 2.9",
]


def test_every_id_of_the_formula_sheet_is_there_once():
    assert len(BY_ID) == len(THEOREMS)
    assert set(SHEET) - set(BY_ID) == set()


@pytest.mark.parametrize("paper", NUMBERED)
def test_everything_a_paper_numbers_is_there_once(paper):
    numbers = [
        number for theorem in THEOREMS if theorem.paper is paper for number in theorem.numbers
    ]
    assert len(numbers) == len(set(numbers))
    assert set(NUMBERED[paper]) - set(numbers) == set()


def test_shared_definitions_are_there():
    numbers = {number for theorem in THEOREMS for number in theorem.numbers}
    assert set(SHARED) <= numbers


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
    assert [theorem.id for theorem in THEOREMS if name in shown_by(theorem, DOCSTRINGS)]
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
