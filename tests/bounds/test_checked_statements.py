"""What the checker says of a certificate: its statement, what was verified, and the workload."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from geomdp.bounds import check_certificate
from geomdp.workloads import Histogram, Prefixes
from tests.bounds.test_checker import BOUNDS, rejected, saved
from tests.bounds.test_orthogonal_lines import a_bound

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
    # 2^22 operations are enough for 6 pairs of 33 elements under 10 000 queries.
    assert "6 sampled pairs are separated" in signs.verified
    proved = check_certificate(saved(BOUNDS["blocks"](), tmp_path))
    assert proved.conditions == ()


def test_words_and_blocks_are_counted(tmp_path: Path) -> None:
    """Nine generators have 2^9 words, and a data set of 9 records has 9 blocks."""
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


def test_rungs_of_lines_are_for_one_workload(tmp_path: Path) -> None:
    other = json.loads(saved(a_bound(Prefixes(3)), tmp_path).read_text())
    path = saved(a_bound(Histogram(3)), tmp_path)
    document = json.loads(path.read_text())
    assert {rung["family"]["type"] for rung in document["rungs"]} == {"orthogonal lines"}
    reach = document["rungs"][1]["last"]
    assert other["rungs"][2]["first"] <= reach + 1 <= other["rungs"][2]["last"]
    document["rungs"][2:] = other["rungs"][2:]
    document["lower_bound"] = other["lower_bound"]
    rejected(path, document, "the rungs are for 2 workloads")
