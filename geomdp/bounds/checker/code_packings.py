"""Check of packings whose data sets are not listed: a rule makes them from codes."""

from __future__ import annotations

import decimal
import math
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from geomdp.bounds.checker.reading import (
    CLOSE,
    CertificateRejected,
    Measure,
    Part,
    VerifiedPacking,
    require,
    rounded_down,
    rounded_up,
)

# Codes with a proved minimum distance: Reed-Solomon codes and binary linear codes.

Bits = npt.NDArray[np.int64]
#: Relative rounding error allowed in the few operations of a closed form.
SLACK = 1e-13


@dataclass(frozen=True)
class Polynomials:
    """A Reed-Solomon code: values at 0, ..., `length` - 1 of polynomials of degree < `degree`."""

    prime: int
    length: int
    degree: int

    @property
    def log_count(self) -> float:
        return self.degree * math.log(self.prime)

    @property
    def differing(self) -> int:
        """Least number of differing positions: two polynomials agree in < `degree` points."""
        return self.length - (self.degree - 1)


def polynomials_of(part: Part, prime_key: str, length_key: str) -> Polynomials:
    """The code that a part of the certificate describes, with its parameters checked."""
    prime, length, degree = part.whole(prime_key, 2), part.whole(length_key), part.whole("degree")
    require(prime < 1 << 62 and _is_prime(prime), f"{prime} is not a prime below 2^62")
    require(length <= prime, f"length {length} is above the size {prime} of the field")
    require(degree <= length, f"degree {degree} is above length {length}")
    return Polynomials(prime, length, degree)


def _is_prime(n: int) -> bool:
    """Whether n < 2^64 is prime; the Miller-Rabin test with these seven bases is exact."""
    if n < 1 << 20:
        return n > 1 and all(n % f for f in range(2, math.isqrt(n) + 1))
    if n % 2 == 0:
        return False
    shift = (n - 1 & 1 - n).bit_length() - 1
    for base in (2, 325, 9375, 28178, 450775, 9780504, 1795265022):  # Sinclair's bases
        value = pow(base, (n - 1) >> shift, n)
        if value in (0, 1, n - 1):
            continue
        if not any((value := value * value % n) == n - 1 for _ in range(shift - 1)):
            return False
    return True


def generators_of(part: Part) -> Bits:
    """Generators of a binary linear code, with their entries checked."""
    rows = part.whole_array("generators", axes=2)
    require(bool(((rows == 0) | (rows == 1)).all()), "bits of generators are not 0 or 1")
    require(len(rows) <= 20, "there are more than 20 generators")
    part.work.spend(200 << len(rows))  # `least_weight` spends about 200 operations on a word.
    return rows


def least_weight(generators: Bits) -> int:
    """Least weight (number of 1 bits) of a nonzero word; the words follow a Gray code."""
    masks = [int("".join(map(str, row)), 2) for row in generators.tolist()]
    word, least = 0, int(generators.shape[1])
    for step in range(1, 1 << len(masks)):
        word ^= masks[(step & -step).bit_length() - 1]
        least = min(least, word.bit_count())
    require(least > 0, "generators are dependent")
    return least


# Packings for marginals. The minimum distances of the codes are computed again.

#: Largest numbers of attributes in `verify_words` and in `verify_blocks`, and largest width of
#: marginals: numbers of queries are in the range of float64.
MOST_BITS, MOST_ATTRIBUTES, MOST_WIDTH = 1 << 20, 1 << 12, 1 << 5


def verify_words(part: Part, measure: Measure) -> VerifiedPacking:
    """Check records that write each symbol of a Reed-Solomon word as a word of a binary code."""
    d, generators = part.whole("attributes", most=MOST_BITS), generators_of(part)
    outer = polynomials_of(part, "symbols", "length")
    bits = generators.shape[1]
    require(outer.length * bits <= d, f"words are longer than {d} attributes")
    require(outer.prime <= 1 << len(generators), "there are more symbols than inner words")
    differing = outer.differing * least_weight(generators)
    separation = 1.0 if measure.largest else math.sqrt(differing / d)
    said = (
        f"inner distance of all {1 << len(generators)} words; any two of e^"
        f"{rounded_down(outer.log_count)} records differ in {differing} of {d} attributes"
    )
    return _of_marginals((d, 1), outer, 1, separation, said)


def verify_blocks(part: Part, measure: Measure) -> VerifiedPacking:
    """Check a packing from Hadamard blocks, for marginals of l >= 2 attributes.

    The first l - 1 parts of the s records are different tuples of rows v_j of `_half_hadamard`, and
    binary words follow, which encode the symbols of a Reed-Solomon word. Keep the queries that take
    one attribute of each part, and apply P x ... x P x I with P = I - 11^T / side to their answers.
    These steps do not increase Euclidean norms. As P v_j = h_j / 2, the answers of records of
    different tuples become orthogonal, and their squared lengths have the factor
    (side / 4)^(l - 1).
    """
    d, width = part.whole("attributes", most=MOST_ATTRIBUTES), part.whole("width", 2, MOST_WIDTH)
    side, generators = part.whole("part", 2, MOST_ATTRIBUTES), generators_of(part)
    functions = polynomials_of(part, "symbols", "length")
    rest = d - (width - 1) * side
    require(generators.shape[1] <= rest, f"words do not fit in the {rest} attributes left")
    require(functions.prime <= 1 << len(generators), "there are more symbols than words")
    each = rest // generators.shape[1]
    indivisible = f"{functions.length} words cannot be divided into records of {each} words"
    require(functions.length % each == 0, indivisible)
    size = functions.length // each
    require(size <= (side - 1) ** (width - 1), "there are more records than tuples of rows")
    part.work.spend(side**3)
    columns = _half_hadamard(side)
    _check_orthogonal(columns)
    weight = functions.differing * least_weight(generators)
    norm = math.sqrt(weight * (side / 4.0) ** (width - 1)) / size
    block = side ** (width - 1) * rest
    queries = block if measure.largest else math.comb(d, width)
    separation = norm / math.sqrt(queries)
    said = (
        f"distance of all {1 << len(generators)} words; orthogonality of {size} projected "
        f"blocks; minimum distance of e^{rounded_down(functions.log_count)} functions"
    )
    return _of_marginals((d, width), functions, size, separation, said)


def _of_marginals(
    shape: tuple[int, int], code: Polynomials, size: int, separation: float, said: str
) -> VerifiedPacking:
    """The packing of one data set of `size` records for each word, for marginals of d and k."""
    return VerifiedPacking(
        subject=_marginals_subject(*shape),
        queries=f"marginals of d = {shape[0]}, k = {shape[1]}",
        log_count=code.log_count,
        size=size,
        distance=size,
        separation=separation,
        slack=SLACK * separation,
        verified=(said,),
    )


def _marginals_subject(d: int, k: int) -> tuple[object, ...]:
    """The key of the workload; `answers_of` makes an equal key for listed packings of marginals."""
    return tuple(sorted({"name": "marginals", "d": str(d), "k": str(k)}.items()))


def _half_hadamard(side: int) -> Bits:
    """Rows v_j = (1 + h_j) / 2 for j = 1..side - 1. Entry i of h_j is (-1)^popcount(i & j)."""
    require(side & (side - 1) == 0, f"part {side} is not a power of two")
    numbers = np.arange(side)
    return np.asarray(1 - np.bitwise_count(numbers[1:, None] & numbers).astype(np.int64) % 2)


def _check_orthogonal(columns: Bits) -> None:
    """Check that the centred rows, and so their products, are orthogonal, of length^2 side / 4."""
    side = columns.shape[1]
    centred = columns - columns.mean(axis=1, keepdims=True)
    gram = centred @ centred.T
    good = np.allclose(gram, np.eye(len(columns)) * side / 4, rtol=0, atol=1e-9)
    require(bool(good), "projected blocks are not orthogonal")


# Packings for random sign queries.

#: Decimal digits of the union bound: products with numbers of queries, of up to 78 digits, keep 40.
DIGITS = 120
#: A deviation may exceed the least one by `MARGIN`: a certificate rounds it up by at most 2e-12. A
#: number of sets may have the relative error `COUNT_ERROR` of its logarithm.
MARGIN, COUNT_ERROR = 4e-12, 1e-13


class _Sets(NamedTuple):
    """M sets of elements of a universe; any two differ in `difference` or more elements."""

    log_count: Decimal  # ln M
    size: int
    difference: int
    log_universe: float


def verify_signs(part: Part) -> VerifiedPacking:
    """Check a family of sets under random signs, by the union bound.

    Each of k queries takes independent uniform values +-1 (signs) on the elements. A data set has
    the elements of one of M sets of s elements; any two sets have a symmetric difference of w or
    more. Let v be the difference of two uniform distributions on sets, ||v||^2 >= w / s^2. For the
    signs of one query let Y = <signs, v> / ||v||. Then E Y^2 = 1 and E Y^4 = 3 - 2 sum v_j^4 /
    ||v||^4 <= 3 - 1 / s. Take a number x in (0, 1), the tilt. As e^(-z) <= 1 - z + z^2 / 2 for z =
    x Y^2 >= 0,

        Pr[the mean of Y^2 over the k queries <= 1 - delta] <= e^(-k rate),
        rate = -x (1 - delta) - ln(1 - x + (3 - 1/s) x^2 / 2).

    By a union bound, with probability at least 1 - (M^2 / 2) e^(-k rate) over the signs, all
    answers are at least sqrt((1 - delta) w) / s apart, in root mean square over the queries.
    """
    queries, seed = part.whole("queries"), part.whole("seed", 0)
    sets = _sets(part.part("sets"))
    failure, tilt, deviation = part.number("failure"), part.number("tilt"), part.number("deviation")
    require(0 < failure < 1, "failure is not between 0 and 1")
    require(0 < deviation < 1 and 0 < tilt < 1, "deviation or tilt is not between 0 and 1")
    _check_union_bound(sets, queries, failure, tilt, deviation)
    separation = math.sqrt((1 - deviation) * sets.difference) / sets.size
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
        verified=(said,),
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
    other = f"the union bound gives a failure probability of e^{found:.9g}, not {failure:.9g}"
    require(found <= stated and least, other)


def _sets(sets: Part) -> _Sets:
    kind = sets.word("type")
    if kind == "singletons":
        log_count = sets.number("log_count")
        require(log_count > 0, "log_count is not above 0")
        return _Sets(Decimal(log_count), 1, 2, log_count)
    if kind == "reed-solomon":
        code = polynomials_of(sets, "prime", "size")
        with decimal.localcontext(decimal.Context(prec=DIGITS)):
            exact = code.degree * Decimal(code.prime).ln()
        log_universe = math.log(code.length * code.prime)
        return _Sets(exact, code.length, 2 * code.differing, log_universe)
    raise CertificateRejected(f"the family of sets {kind!r} is unknown")
