"""The checker's report on a certificate: statement, conditions, and facts that were verified."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from geomdp.bounds import CertificateRejected, check_certificate
from geomdp.bounds.checker.check import _checked
from geomdp.bounds.checker.reading import Part, Work
from tests.bounds.test_checker import BOUNDS, saved

STATEMENTS = {
    "Hamming": "no 1-DP mechanism (replace-one) for marginals of d = 8, k = 1 has mean l2 error "
    "per query at most 0.1 with 3 records or fewer",
    "add/remove": "no 0.2-DP mechanism (add/remove) for marginals of d = 8, k = 1 has root mean "
    "squared error per query at most 0.1 with 16 records or fewer",
    "tables": "no 0.3-DP mechanism (replace-one) for marginal tables of columns = [2, 3, 2], "
    "k = 2 has mean l2 error per query at most 0.01 with 87 records or fewer",
    "explicit": "no 0.3-DP mechanism (replace-one) for 5 queries with the answers of the file has "
    "mean l2 error per query at most 0.01 with 51 records or fewer",
    "worst case": "no 0.5-DP mechanism (replace-one) for marginals of d = 9, k = 1 has worst-case "
    "error over the queries at most 0.01 with 299 records or fewer",
    "width 3": "no 0.1-DP mechanism (replace-one) for marginals of d = 20, k = 3 has mean l2 error "
    "per query at most 0.0005 with 2273 records or fewer",
    "two sizes of sets": "no 0.05-DP mechanism (replace-one) for 500 random sign queries (seed 0) "
    "has mean l2 error per query at most 0.01 with 1344 records or fewer",
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_names_the_workload_the_error_and_the_records(
    name: str, tmp_path: Path
) -> None:
    assert check_certificate(saved(BOUNDS[name](), tmp_path)).statement == STATEMENTS[name]


def test_what_is_sampled_or_taken_is_said(tmp_path: Path) -> None:
    explicit = check_certificate(saved(BOUNDS["explicit"](), tmp_path))
    assert explicit.conditions == (
        "the answers of the elements are those of the file, all of one workload",
    )
    bound = BOUNDS["random signs"]()
    assert any("sampled check" in text for text in bound.assumptions)
    signs = check_certificate(saved(bound, tmp_path))
    assert any("with probability at least" in text for text in signs.conditions)
    assert any("the universe has at least e^" in text for text in signs.conditions)
    # The limit of 2^22 operations allows 6 pairs of sets of 33 elements under 10 000 queries.
    assert "6 sampled pairs are separated" in signs.verified
    proved = check_certificate(saved(BOUNDS["blocks"](), tmp_path))
    assert proved.conditions == ()


def test_words_and_blocks_are_counted(tmp_path: Path) -> None:
    """Nine generators give 2^9 words; data sets of the last rung have 9 records and 9 blocks."""
    path = saved(BOUNDS["width 3"](), tmp_path)
    families = [rung["family"] for rung in json.loads(path.read_text())["rungs"]]
    assert [len(family["generators"]) for family in families] == [9, 9]
    assert check_certificate(path).verified == (
        "distance of all 512 words; orthogonality of 1 projected blocks; minimum distance of "
        "e^6.23244 functions",
        "8 sampled pairs of data sets are separated",
        "records 1 to 1535 are excluded",
        "distance of all 512 words; orthogonality of 9 projected blocks; minimum distance of "
        "e^43.6271 functions",
        "8 sampled pairs of data sets are separated",
        "records 9 to 2273 are excluded",
    )


#: The least probability of error for guessing a fair bit from a 1-DP output, less a margin.
#: Randomised response attains this probability.
RISK = (1 - 1e-9) / (1 + math.e)


def one_line(name: str, length: float) -> dict[str, Any]:
    """A rung of a certificate, with a single line of one step between the elements 0 and 1.

    The answers of these elements to 2 queries are `length` apart. The rung excludes n records for
    an error of 0.01 if 0.01 n is at most `length` / sqrt 2 times the risk.
    """
    scale = length / math.sqrt(2) * RISK * (1 - 3e-10)
    known = {"prior": [0.5, 0.5], "allowances": [RISK / 2] * 2, "risk": RISK, "spacing": 1}
    family = {
        "type": "orthogonal lines",
        "workload": {"name": name, "N": 2},
        "elements": [0, 1],
        "pairs": [[0, 1]],
        "weights": [1.0],
    }
    return {
        "family": family,
        "steps": [1],
        "copies": 1,
        "known": [known],
        "scale": scale,
        "first": 1,
        "last": math.floor(scale / 0.01),
    }


def document_of(*rungs: dict[str, Any]) -> Part:
    values = {
        "epsilon": 1.0,
        "alpha": 0.01,
        "metric": "mean l2 error per query",
        "adjacency": "replace-one",
        "separation_factor": 4.0,
        "log_odds": 0.0,
        "required_separation": 0.04,
        "rungs": list(rungs),
        "lower_bound": rungs[-1]["last"],
    }
    return Part(values, Work(10**6))


def test_rungs_of_lines_are_for_one_workload() -> None:
    """Answers of the two elements are 1 apart for prefixes, and sqrt 2 apart for a histogram."""
    short, long = one_line("prefixes", 1.0), one_line("histogram", math.sqrt(2))
    for rung, name, records in ((short, "prefixes", 19), (long, "histogram", 26)):
        checked = _checked(document_of(rung))
        assert checked.records == records
        assert f"for {name} of N = 2 has" in checked.statement
    with pytest.raises(CertificateRejected, match="the rungs are for 2 workloads"):
        _checked(document_of(short, long))
