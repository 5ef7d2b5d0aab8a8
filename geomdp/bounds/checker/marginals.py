"""Check packings for marginals, whose data sets are not listed: a rule makes them from codes.

The minimum distances of the codes are computed again, and up to 8 drawn pairs are compared.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from geomdp.bounds.checker.codes import (
    Bits,
    Polynomials,
    generators_of,
    least_weight,
    polynomials_of,
    word_of,
)
from geomdp.bounds.checker.norms import Measure
from geomdp.bounds.checker.values import Part, require, rounded_down
from geomdp.bounds.checker.verified import VerifiedPacking

#: Largest number of pairs of data sets drawn from a packing, and of operations on these pairs.
PAIRS, DRAWS = 8, 1 << 22
#: Largest number of attributes in `verify_words`, largest number of attributes in `verify_blocks`,
#: and largest width of marginals (attributes per query). Within these limits the numbers of queries
#: are in the range of float64.
MOST_BITS, MOST_ATTRIBUTES, MOST_WIDTH = 1 << 20, 1 << 12, 1 << 5
#: Relative rounding error allowed in the few operations of a closed form.
SLACK = 1e-13


def verify_words(part: Part, measure: Measure) -> VerifiedPacking:
    """Check records that write each symbol of a Reed-Solomon word as a word of a binary code."""
    d, generators = part.whole("attributes", most=MOST_BITS), generators_of(part)
    outer = polynomials_of(part, "symbols", "length")
    bits = generators.shape[1]
    require(outer.length * bits <= d, f"words are longer than {d} attributes")
    require(outer.prime <= 1 << len(generators), "there are more symbols than inner words")
    differing = outer.differing * least_weight(generators)
    separation = 1.0 if measure.largest else math.sqrt(differing / d)
    rng = np.random.default_rng(2)
    pairs = min(PAIRS, DRAWS // (2 * outer.length * (outer.degree + bits)))
    part.work.spend(2 * pairs * outer.length * (200 * outer.degree + 50_000))
    for _ in range(pairs):
        first, second = outer.pair(rng)
        a, b = (np.concatenate([word_of(generators, s) for s in w]) for w in (first, second))
        found = int((a != b).sum())
        require(found >= differing, f"two sampled words differ in {found} attributes")
    return VerifiedPacking(
        subject=_marginals_subject(d, 1),
        queries=f"marginals of d = {d}, k = 1",
        log_count=outer.log_count,
        size=1,
        distance=1,
        separation=separation,
        slack=SLACK * separation,
        verified=(
            f"inner distance of all {1 << len(generators)} words; any two of e^"
            f"{rounded_down(outer.log_count)} records differ in {differing} of {d} attributes",
            *([f"{pairs} sampled pairs of records differ at least as much"] if pairs else []),
        ),
    )


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
    require(
        functions.length % each == 0,
        f"{functions.length} words cannot be divided into records of {each} words",
    )
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
    pairs = min(PAIRS, DRAWS // (2 * size * (math.comb(d, width) + each * functions.degree)))
    if pairs:
        part.work.spend(200 * width * math.comb(d, width))
        records = 20 * width * math.comb(d, width) + each * (200 * functions.degree + 50_000)
        part.work.spend(2 * pairs * size * records)
        tuples = itertools.islice(itertools.product(range(side - 1), repeat=width - 1), size)
        heads = [np.concatenate([columns[j] for j in chosen]) for chosen in tuples]
        # Record i begins with the bits heads[i]; binary words follow, and then 0.
        _sample_blocks(heads, generators, functions, (d, width, pairs), (measure, separation))
    return VerifiedPacking(
        subject=_marginals_subject(d, width),
        queries=f"marginals of d = {d}, k = {width}",
        log_count=functions.log_count,
        size=size,
        distance=size,
        separation=separation,
        slack=SLACK * separation,
        verified=(
            f"distance of all {1 << len(generators)} words; orthogonality of {size} projected "
            f"blocks; minimum distance of e^{rounded_down(functions.log_count)} functions",
            *([f"{pairs} sampled pairs of data sets are separated"] if pairs else []),
        ),
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


def _sample_blocks(
    heads: list[Bits],
    generators: Bits,
    functions: Polynomials,
    shape: tuple[int, int, int],
    bound: tuple[Measure, float],
) -> None:
    """Draw pairs of functions; reject if marginals of their data sets are too close."""
    (d, width, pairs), (measure, separation) = shape, bound
    rng = np.random.default_rng(3)
    each = functions.length // len(heads)
    subsets = np.array(list(itertools.combinations(range(d), width)))
    for _ in range(pairs):
        means = []
        for word in functions.pair(rng):
            total = np.zeros(math.comb(d, width))
            for i, head in enumerate(heads):
                symbols = word[i * each : (i + 1) * each]
                ones = np.concatenate([head, *(word_of(generators, a) for a in symbols)])
                record = np.pad(ones, (0, d - len(ones)))
                total += record[subsets].all(axis=1)
            means.append(total / len(heads))
        found = float(measure.norm((means[0] - means[1])[None])[0])
        require(found >= separation * (1 - 1e-9), f"two sampled data sets are {found:.6g} apart")
