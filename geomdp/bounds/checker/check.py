"""The argument of a certificate, step by step."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from geomdp.bounds.checker.implicit import verify_blocks, verify_signs, verify_words
from geomdp.bounds.checker.lines import verify_lines
from geomdp.bounds.checker.listed import verify_listed
from geomdp.bounds.checker.norms import MEASURES, Measure
from geomdp.bounds.checker.reading import (
    CertificateRejected,
    number,
    part_of,
    read,
    require,
    require_close,
    whole_number,
)
from geomdp.bounds.checker.verified import Verified, VerifiedPacking

#: Rounding allowed to the constants of a rung, relative.
ROUNDING = 1e-10
#: Changes of neighbours that one replacement takes.
CHANGES = {"replace-one": 1, "add/remove": 2}


@dataclass(frozen=True)
class Checked:
    """What a certificate was found to prove.

    Parameters
    ----------
    records : int
        No mechanism as in `statement` exists for this many records or fewer.
    statement : str
        The bound, in one sentence.
    verified : tuple of str
        What was computed again.
    conditions : tuple of str
        What had to be taken for granted.
    """

    records: int
    statement: str
    verified: tuple[str, ...]
    conditions: tuple[str, ...]


@dataclass(frozen=True)
class _Question:
    epsilon: float
    alpha: float
    required: float
    log_odds: float
    changes: int
    measure: Measure


def check_certificate(path: str | Path) -> Checked:
    """Check the certificate at `path` from scratch.

    Parameters
    ----------
    path : str or Path
        The .json file; its .npz file, if it has one, stands beside it.

    Returns
    -------
    Checked
        What was verified, and under which conditions.

    Raises
    ------
    CertificateRejected
        At the first number that is not what it should be.
    OSError
        If the file cannot be read.

    Notes
    -----
    Listed packings cost O(M^2 (k + s)) for M data sets of s records and k queries.
    """
    document = read(Path(path))
    question = _question(document)
    rungs = document.get("rungs")
    require(isinstance(rungs, list) and len(rungs) > 0, "there are no rungs")
    reach, failure = 0, 0.0
    verified: list[str] = []
    conditions: list[str] = []
    subjects: set[tuple[object, ...]] = set()
    for i, rung in enumerate(rungs):  # type: ignore[arg-type]
        require(isinstance(rung, dict), f"rung {i} is not an object")
        try:
            found, first, last = _check_rung(rung, question)
        except CertificateRejected as error:
            raise CertificateRejected(f"rung {i}: {error}") from error
        require(first <= reach + 1, f"rung {i} starts at {first}, the reach before is {reach}")
        require(last > reach, f"rung {i} ends at {last}, the reach before is {reach}")
        reach = last
        verified += [*found.verified, f"records {first} to {last} are excluded"]
        conditions += found.conditions
        failure += found.failure
        subjects.add(found.subject)
    require(len(subjects) == 1, f"the rungs are of {len(subjects)} workloads")
    stated = whole_number(document, "lower_bound")
    require(stated == reach, f"lower_bound is {reach}, the file says {stated}")
    if failure > 0:
        conditions.append(f"together these hold with probability at least 1 - {failure:.3g}")
    statement = (
        f"no {question.epsilon:g}-DP mechanism ({document['adjacency']}) for {found.queries} has "
        f"{document['metric']} at most {document['alpha']:g} with {reach} records or fewer"
    )
    return Checked(reach, statement, tuple(verified), tuple(dict.fromkeys(conditions)))


def _question(document: Mapping[str, Any]) -> _Question:
    """Privacy, error and metric, with the constants that follow from them."""
    epsilon, alpha = number(document, "epsilon"), number(document, "alpha")
    require(epsilon > 0 and alpha > 0, "epsilon and alpha are not above 0")
    require(document.get("metric") in list(MEASURES), "the metric is unknown")
    require(document.get("adjacency") in list(CHANGES), "the adjacency is unknown")
    measure = MEASURES[document["metric"]]
    factor = number(document, "separation_factor")
    require(factor > 2, "separation_factor is not above 2")
    log_odds = measure.log_odds(factor)
    require_close(number(document, "log_odds"), log_odds, "log_odds")
    require_close(number(document, "required_separation"), factor * alpha, "required_separation")
    changes = CHANGES[document["adjacency"]]
    return _Question(epsilon, alpha, factor * alpha, log_odds, changes, measure)


def _check_rung(rung: Mapping[str, Any], question: _Question) -> tuple[Verified, int, int]:
    """What a rung is about, and the range of numbers of records that it excludes."""
    part = part_of(rung, "family")
    if part.get("type") == "orthogonal lines":
        one = question.epsilon * question.changes
        return verify_lines(rung, question.alpha, one, question.measure.moment)
    found = _packing(part, question.measure)
    return (found, *_check_packing(rung, found, question))


def _packing(part: Mapping[str, Any], measure: Measure) -> VerifiedPacking:
    """Check a packing by its type."""
    kind = part.get("type")
    if kind == "listed":
        return verify_listed(part, measure.norm)
    if kind == "random signs":
        return verify_signs(part)
    if kind == "marginal blocks":
        return verify_blocks(part, measure)
    if kind == "code words":
        return verify_words(part, measure)
    raise CertificateRejected(f"the family {kind!r} is unknown")


def _check_packing(
    rung: Mapping[str, Any], found: VerifiedPacking, question: _Question
) -> tuple[int, int]:
    """The range of numbers of records that a packing excludes, all constants compared."""
    require(found.log_count > 0, "there is one data set only")
    others = found.log_count + math.log1p(-math.exp(-found.log_count))
    require_close(number(rung, "log_others"), others, "log_others")
    size, distance = whole_number(rung, "size"), whole_number(rung, "distance")
    require(size == found.size, f"size is {found.size}, the file says {size}")
    # The size bounds the distance, and may stand for it.
    require(
        distance in (found.distance, size) and distance >= found.distance,
        f"distance is {found.distance}, the file says {distance}",
    )
    separation = number(rung, "separation")
    require_close(separation, found.separation, "separation")
    require(
        separation <= found.separation - found.slack,
        f"separation is {found.separation:.15g} up to rounding, the file says {separation:.15g}",
    )
    reachable = (others + question.log_odds) / (question.epsilon * question.changes)
    cancelled = abs(others + question.log_odds) < 1e-13 * abs(question.log_odds)
    require(not cancelled, "the odds cancel the number of data sets up to rounding")
    require_close(number(rung, "largest_distance"), reachable, "largest_distance")
    copies = whole_number(rung, "copies")
    below = copies * distance < reachable * (1 - 1e-14)
    largest = (copies + 1) * distance >= reachable * (1 - ROUNDING)
    require(below, f"{copies} copies are {copies * distance} replacements, not below {reachable}")
    require(largest, f"copies could be more than {copies}")
    return _check_range(rung, separation / question.required, size, copies)


def _check_range(rung: Mapping[str, Any], rho: float, size: int, copies: int) -> tuple[int, int]:
    """First and last number of records, from the ratio rho of separation and requirement."""
    require(rho >= 1, f"separation is {rho:.9g} of what is required")
    first, last = whole_number(rung, "first"), whole_number(rung, "last")
    start = first // size
    require(first == start * size and start <= copies, "first is not a number of copies")
    gapless = size == 1 or start * size * (rho - 1) >= (size - 1) * (1 - 1e-14)
    require(gapless, f"from {first} records on there are gaps")
    earlier = (start - 1) * size * (rho - 1) >= (size - 1) * (1 + ROUNDING)
    require(start == 1 or not (earlier or size == 1), f"first could be below {first}")
    reach = copies * size * rho
    require(last <= reach, f"last is {math.floor(reach)}, the file says {last}")
    require(last + 1 > reach * (1 - ROUNDING), f"last is {math.floor(reach)}, not {last}")
    return first, last
