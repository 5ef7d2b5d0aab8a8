"""Check a certificate file: recompute every constant and check every rung.

A rung uses a packing, orthogonal lines, lines along single queries, or the average error over
elements with answers far apart. A packing has M data sets of s records. At most d replacements turn
any of them into any other, and their answers are at least gamma apart. Let data sets of n >= t s
records hold t copies of one of them, and n - t s copies of a fixed element. Let epsilon be the
privacy loss of a replacement, and c alpha the required separation. By Markov's inequality and group
privacy (see `Measure.log_odds`), no private mechanism has error at most alpha on them if

    t s <= n <= t s rho,   rho = gamma / (c alpha),   and   t d epsilon < ln(M - 1) + log odds.

For all t from t_0 to the largest such t, T, the ranges leave no gap if t_0 s (rho - 1) >= s - 1. So
all n from t_0 s to T s rho are excluded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from geomdp.bounds.checker.code_packings import verify_blocks, verify_signs, verify_words
from geomdp.bounds.checker.lines import verify_lines, verify_query_lines
from geomdp.bounds.checker.listed import TYPES, verify_guesses, verify_listed
from geomdp.bounds.checker.reading import (
    CLOSE,
    MEASURES,
    CertificateRejected,
    Part,
    Stated,
    Verified,
    VerifiedPacking,
    guarantee_of,
    read,
    require,
    require_at_most,
    require_close,
    rounded_down,
    rounded_up,
)

#: Relative rounding error allowed in the constants of a rung with a packing, and margin by which
#: they are rounded to the safe side here. The margin of a certificate, 1e-12, is between the two.
ROUNDING, MARGIN = 1e-10, 1e-14
#: Replacing one record takes this many changes. Each change leads to a neighbouring data set.
CHANGES = {"replace-one": 1, "add/remove": 2}


@dataclass(frozen=True)
class Checked:
    """The bound that a checked certificate proves."""

    records: int
    statement: str
    verified: tuple[str, ...]
    conditions: tuple[str, ...]


def check_certificate(path: str | Path) -> Checked:
    """Check the certificate at `path` from scratch.

    Cost: O(M s k + M^2 (k + s)) for a listed packing of M data sets of s records and for k queries.

    Parameters
    ----------
    path : str or Path
        The .json file. Its .npz file, if there is one, must be in the same folder.

    Raises
    ------
    CertificateRejected
        If a number differs from the recomputed number, or a step of the proof fails; the message
        names the first failure. Also if the file is malformed or too large to check. The limits are
        16 MB of JSON, 1 GB of arrays, and an amount of work that grows with the file: a few seconds
        for a file of 1 KB.
    OSError
        If the .json file cannot be read.

    Examples
    --------
    >>> import textwrap
    >>> import geomdp as gd
    >>> bound = gd.bounds.marginal_bound(16, 1, epsilon=1.0, alpha=0.05)
    >>> bound.certificate.save("bound.json")
    >>> print(textwrap.fill(gd.bounds.check_certificate("bound.json").statement, 80))
    no 1-DP mechanism (replace-one) for marginals of d = 16, k = 1 has mean l2 error
    per query at most 0.05 with 15 records or fewer
    """
    try:
        return _checked(read(Path(path)))
    except (CertificateRejected, OSError):
        raise
    except Exception as error:  # a rule cannot be evaluated at the values of the file
        raise CertificateRejected(f"the file cannot be evaluated: {error}") from error


def _checked(document: Part) -> Checked:
    """Check every rung, and that the rungs together exclude 1, 2, ..., `lower_bound` records."""
    problem = _problem(document)
    reach, failure = 0, 0.0
    verified: list[str] = []
    conditions: list[str] = []
    subjects: set[tuple[object, ...]] = set()
    queries = ""
    for i, rung in enumerate(document.parts("rungs")):
        try:
            found, first, last = _check_rung(rung, problem)
        except CertificateRejected as error:
            raise CertificateRejected(f"rung {i}: {error}") from error
        require(first <= reach + 1, f"rung {i} starts at {first}, the rungs before end at {reach}")
        require(last > reach, f"rung {i} ends at {last}, the rungs before end at {reach}")
        reach, queries = last, found.queries
        verified += [*found.verified, f"records {first} to {last} are excluded"]
        conditions += found.conditions
        failure += found.failure
        subjects.add(found.subject)
    require(len(subjects) == 1, f"the rungs are for {len(subjects)} workloads, not for one")
    stated = document.whole("lower_bound")
    require(stated == reach, f"lower_bound is {reach}, the file says {stated}")
    added = f"failure probabilities of the rungs must add up to less than 1, got {failure:.6g}"
    require(failure < 1, added)
    if failure > 0:
        conditions.append(
            f"together these hold with probability at least 1 - {rounded_up(failure)}"
        )
    # Round down: a lower bound for epsilon and alpha also holds for smaller epsilon and alpha. It
    # need not hold for larger epsilon or alpha.
    statement = (
        f"no {problem.guarantee} mechanism ({document.word('adjacency')}) for "
        f"{queries} has {document.word('metric')} at most {rounded_down(problem.alpha)} with "
        f"{reach} records or fewer"
    )
    return Checked(reach, statement, tuple(verified), tuple(dict.fromkeys(conditions)))


def _problem(document: Part) -> Stated:
    guarantee, alpha = guarantee_of(document), document.number("alpha")
    require(alpha > 0, "alpha is not above 0")
    metric, adjacency = document.word("metric"), document.word("adjacency")
    require(metric in MEASURES, "the metric is unknown")
    require(adjacency in CHANGES, "the adjacency is unknown")
    measure, changes = MEASURES[metric], CHANGES[adjacency]
    factor = document.number("separation_factor")
    require(factor > 2, "separation_factor is not above 2")
    log_odds = measure.log_odds(factor)
    require_close(document.number("log_odds"), log_odds, "log_odds")
    required = document.number("required_separation")
    same = math.isclose(required, factor * alpha, rel_tol=CLOSE)
    require(same, f"required_separation is {factor * alpha:.12g}, the file says {required:.12g}")
    return Stated(guarantee, alpha, factor * alpha, log_odds, changes, measure)


def _check_rung(rung: Part, problem: Stated) -> tuple[Verified, int, int]:
    """The result of checking a rung, and the first and last number of records that it excludes."""
    family = rung.part("family")
    kind = family.word("type")
    if kind == "orthogonal lines":
        return verify_lines(rung, problem)
    if kind == "query lines":
        return verify_query_lines(rung, problem)
    if kind in TYPES:
        return verify_guesses(rung, problem)
    if kind == "listed":
        found = verify_listed(family, problem.measure.norm)
    elif kind == "random signs":
        found = verify_signs(family)
    elif kind == "marginal blocks":
        found = verify_blocks(family, problem.measure)
    elif kind == "code words":
        found = verify_words(family, problem.measure)
    else:
        raise CertificateRejected(f"the family {kind!r} is unknown")
    return (found, *_check_packing(rung, found, problem))


def _check_packing(rung: Part, found: VerifiedPacking, problem: Stated) -> tuple[int, int]:
    """Recompute all constants of a packing; return the range of numbers of records excluded."""
    require(found.log_count > 0, "a packing needs at least two data sets")
    others = found.log_count + math.log1p(-math.exp(-found.log_count))
    require_close(rung.number("log_others"), others, "log_others")
    size, distance = rung.whole("size"), rung.whole("distance")
    require(size == found.size, f"size is {found.size}, the file says {size}")
    # The distance is at most the size, so a certificate may state the size in its place.
    require(
        distance in (found.distance, size) and distance >= found.distance,
        f"distance is {found.distance}, the file says {distance}",
    )
    separation = rung.number("separation")
    require_at_most(separation, max(0.0, found.separation - found.slack), "separation")
    one, total = problem.pure_epsilon("packings"), others + problem.log_odds
    # For a separation factor near 2 the log odds are negative and can nearly cancel ln(M - 1). So
    # the margins are relative to the two terms.
    terms = 1 + abs(others) + abs(problem.log_odds)
    require_close(rung.number("largest_distance") * one, total, "largest_distance times epsilon")
    copies = rung.whole("copies")
    below = copies * distance < (total - MARGIN * terms) / one
    largest = (copies + 1) * distance >= (total - ROUNDING * terms) / one
    reachable = f"{total / one:.15g} up to rounding"
    require(below, f"{copies} copies are {copies * distance} replacements, not below {reachable}")
    require(largest, f"copies could be more than {copies}")
    rho = separation / problem.required * (1 - MARGIN)
    return _check_range(rung, rho, size, copies)


def _check_range(rung: Part, rho: float, size: int, copies: int) -> tuple[int, int]:
    """First and last number of records excluded; `rho` is the ratio of the module, rounded down."""
    require(rho >= 1, f"separation is {rho:.9g} times the required separation")
    first, last = rung.whole("first"), rung.whole("last")
    start = first // size
    possible = first == start * size and start <= copies
    require(possible, f"first is not a multiple of {size}, or too large")
    gapless = start * size * (rho - 1) >= (size - 1) * (1 + MARGIN)
    require(gapless, f"not all numbers of records from {first} on are excluded")
    earlier = (start - 1) * size * max(rho * (1 - ROUNDING) - 1, 0) >= size - 1
    require(start == 1 or not earlier, f"first could be below {first}")
    reach = copies * size * rho
    require(math.isfinite(reach), "the last number of records is beyond float64")
    require(last <= reach, f"last is {math.floor(reach)}, the file says {last}")
    require(last + 1 > reach * (1 - ROUNDING), f"last is {math.floor(reach)}, not {last}")
    return first, last
