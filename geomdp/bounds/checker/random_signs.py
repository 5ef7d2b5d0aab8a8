"""Check of packings for random sign queries, by the union bound and by sampled pairs.

Each of k queries takes independent uniform values +-1 (signs) on the elements. A data set has the
elements of one of M sets of s elements; any two sets have a symmetric difference of w or more. Let
v be the difference of two uniform distributions on sets, ||v||^2 >= w / s^2. For the signs of one
query let Y = <signs, v> / ||v||. Then E Y^2 = 1 and E Y^4 = 3 - 2 sum v_j^4 / ||v||^4 <= 3 - 1 / s.
Take a number x in (0, 1), the tilt. As e^(-z) <= 1 - z + z^2 / 2 for z = x Y^2 >= 0,

    Pr[the mean of Y^2 over the k queries <= 1 - delta] <= e^(-k rate),
    rate = -x (1 - delta) - ln(1 - x + (3 - 1/s) x^2 / 2).

By a union bound, with probability at least 1 - (M^2 / 2) e^(-k rate) over the signs, all answers
are at least sqrt((1 - delta) w) / s apart, in root mean square over the queries.
"""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from typing import NamedTuple

import numpy as np

from geomdp.bounds.checker.codes import Polynomials, polynomials_of
from geomdp.bounds.checker.values import (
    CLOSE,
    CertificateRejected,
    Part,
    require,
    rounded_down,
    rounded_up,
)
from geomdp.bounds.checker.verified import VerifiedPacking

#: Decimal digits in the computation of the union bound. Numbers of queries have up to 78 digits, so
#: products with them keep about 40 digits after the decimal point.
DIGITS = 120
#: A deviation may exceed the least possible deviation by this number. A certificate rounds
#: deviations up by a relative and an absolute 1e-12, so by at most 2e-12.
MARGIN = 4e-12
#: Largest number of pairs of sets drawn from a family, and of operations for these pairs.
PAIRS, DRAWS = 8, 1 << 22
#: Relative slack for the rounding errors of the few operations of a closed form.
SLACK = 1e-13
#: Relative error allowed in a number of sets that is computed from its logarithm.
COUNT_ERROR = 1e-13


class _Sets(NamedTuple):
    """A family of M sets of elements of a universe."""

    #: ln M.
    log_count: Decimal
    #: Number of elements of each set.
    size: int
    #: Least size of the symmetric difference of two sets.
    difference: int
    #: ln of the number of elements of the universe.
    log_universe: float
    #: Reed-Solomon code; each word defines a set. None for sets of one element.
    code: Polynomials | None


def verify_signs(part: Part) -> VerifiedPacking:
    """Check a family of sets under random signs, by the union bound and by sampled pairs."""
    queries, seed = part.whole("queries"), part.whole("seed", 0)
    sets = _sets(part.part("sets"))
    failure, tilt, deviation = part.number("failure"), part.number("tilt"), part.number("deviation")
    require(0 < failure < 1, "failure is not between 0 and 1")
    require(0 < deviation < 1 and 0 < tilt < 1, "deviation or tilt is not between 0 and 1")
    _check_union_bound(sets, queries, failure, tilt, deviation)
    separation = math.sqrt((1 - deviation) * sets.difference) / sets.size
    pairs = 0
    if sets.code is not None:
        pairs = min(PAIRS, DRAWS // (2 * sets.size * (queries + sets.code.degree)))
        each = 100_000 + 10 * queries + 200 * sets.code.degree
        part.work.spend(2 * pairs * sets.size * each)
        _sample_signs(sets.code, queries, seed, pairs, separation)
    said = (
        f"union bound over pairs of e^{rounded_down(float(sets.log_count))} sets of {sets.size} "
        "elements"
    )
    return VerifiedPacking(
        subject=("random signs", queries, seed),
        queries=f"{queries} random sign queries (seed {seed})",
        log_count=_log_whole(sets.log_count),
        size=sets.size,
        distance=sets.size,
        separation=separation,
        slack=SLACK * separation,
        verified=(said, *([f"{pairs} sampled pairs are separated"] if pairs else [])),
        conditions=(
            "the signs are independent and uniform",
            f"the universe has at least e^{rounded_up(sets.log_universe)} elements",
            f"sets of {sets.size} elements are separated with probability at least "
            f"1 - {rounded_up(failure)} over the signs",
        ),
        failure=failure,
    )


def _log_whole(log_count: Decimal) -> float:
    """ln M for the number M of sets: e^`log_count`, rounded down to a whole number."""
    if log_count > 36:
        return float(log_count)
    with decimal.localcontext(decimal.Context(prec=DIGITS)):
        count = log_count.exp()
        # The file states a rounded logarithm, so `count` may be slightly below the whole number
        # that it stands for. With the limit 1/2, M (M - 1) <= e^(2 log_count), so the union bound
        # is for at least as many pairs as the M sets have.
        whole = math.floor(count + min(count * Decimal(COUNT_ERROR), Decimal("0.5")))
        return float(Decimal(max(1, whole)).ln())


def _check_union_bound(
    sets: _Sets, queries: int, failure: float, tilt: float, deviation: float
) -> None:
    """Check that the failure probability (M^2 / 2) e^(-k rate) is `failure` or slightly less."""
    with decimal.localcontext(decimal.Context(prec=DIGITS)):
        x, delta = Decimal(tilt), Decimal(deviation)
        moment = 1 - x + (3 - Decimal(1) / sets.size) * x * x / 2
        rate = -x * (1 - delta) - moment.ln()
        found = 2 * sets.log_count - Decimal(2).ln() - queries * rate
        stated = Decimal(failure).ln()
        slack = Decimal(CLOSE) * (1 - stated) + queries * x * Decimal(MARGIN)
    # The stated failure must not be far above the failure found. Tiny deviations are exempt: a
    # certificate rounds them up, so the failure found can be far smaller.
    least = stated - slack <= found or deviation <= CLOSE
    require(
        found <= stated and least,
        f"the union bound gives a failure probability of e^{found:.9g}, not {failure:.9g}",
    )


def _sets(sets: Part) -> _Sets:
    kind = sets.word("type")
    if kind == "singletons":
        log_count = sets.number("log_count")
        require(log_count > 0, "log_count is not above 0")
        return _Sets(Decimal(log_count), 1, 2, log_count, None)
    if kind == "reed-solomon":
        code = polynomials_of(sets, "prime", "size")
        with decimal.localcontext(decimal.Context(prec=DIGITS)):
            exact = code.degree * Decimal(code.prime).ln()
        log_universe = math.log(code.length * code.prime)
        return _Sets(exact, code.length, 2 * code.differing, log_universe, code)
    raise CertificateRejected(f"the family of sets {kind!r} is unknown")


def _sample_signs(
    code: Polynomials, queries: int, seed: int, pairs: int, separation: float
) -> None:
    """Draw pairs of sets and the signs of their elements; check that the sets are separated."""
    rng = np.random.default_rng(1)
    for _ in range(pairs):
        first, second = code.pair(rng)
        total = np.zeros(queries)
        for sign, word in ((1, first), (-1, second)):
            for block, symbol in enumerate(word):
                element = block * code.prime + symbol
                drawn = np.random.default_rng([seed, element]).integers(2, size=queries)
                total += sign * (2.0 * drawn - 1.0)
        found = float(np.linalg.norm(total / code.length)) / math.sqrt(queries)
        require(found >= separation, f"two sampled sets are only {found:.6g} apart")
