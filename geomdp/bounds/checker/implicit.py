"""Packings known by numbers: their minimum distances proved again, and pairs of them sampled."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

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
from geomdp.bounds.checker.reading import (
    CertificateRejected,
    number,
    part_of,
    require,
    whole_number,
)
from geomdp.bounds.checker.verified import VerifiedPacking

#: Pairs of data sets drawn from a family, and most numbers drawn for them.
PAIRS, DRAWS = 8, 1 << 22
#: Largest universe whose binomial coefficients are multiplied out.
MAX_LISTED = 1 << 16
#: Relative slack for the few operations of a closed form.
SLACK = 1e-13


def verify_signs(part: Mapping[str, Any]) -> VerifiedPacking:
    """Families of sets under random signs: the union bound, and sampled pairs."""
    queries, seed = whole_number(part, "queries"), whole_number(part, "seed", 0)
    sets = part_of(part, "sets")
    log_count, size, difference, log_universe, code = _sets(sets)
    failure, tilt = number(part, "failure"), number(part, "tilt")
    deviation = number(part, "deviation")
    require(0 < failure < 1, "failure is not between 0 and 1")
    require(0 < deviation < 1 and 0 < tilt < 1, "deviation or tilt is not between 0 and 1")
    fourth_moment = 3 - 1 / size
    moment = 1 - tilt + fourth_moment * tilt * tilt / 2
    rate = -tilt * (1 - deviation) - math.log(moment)
    log_failure = 2 * log_count - math.log(2) - queries * rate
    # Rounding of the two large terms, and the margin by which a deviation is rounded up.
    slack = 1e-12 * (1 + 2 * log_count + 10 * queries)
    stated = math.log(failure)
    require(
        stated - slack <= log_failure <= stated + 1e-12 * (1 + 2 * log_count + queries * rate)
        or (deviation <= 1e-9 and log_failure <= stated),
        f"the union bound gives a failure of e^{log_failure:.9g}, not {failure:.9g}",
    )
    separation = math.sqrt((1 - deviation) * difference) / size
    pairs = 0 if code is None else min(PAIRS, DRAWS // (2 * size * queries))
    if code is not None:
        _sample_signs(code, queries, seed, pairs, separation)
    said = f"union bound over pairs of e^{log_count:.6g} sets of {size} elements"
    # A packing has a whole number of sets, which matters while they are few.
    sets_used = log_count
    if log_count <= 36:
        sets_used = math.log(max(1, math.floor(math.exp(log_count) * (1 + 1e-13))))
    return VerifiedPacking(
        subject=("random signs", queries, seed),
        queries=f"{queries} random sign queries (seed {seed})",
        log_count=sets_used,
        size=size,
        distance=size,
        separation=separation,
        slack=SLACK * separation,
        verified=(said, *([f"{pairs} sampled pairs are separated"] if pairs else [])),
        conditions=(
            "the signs are independent and uniform",
            f"the universe has at least e^{log_universe:.6g} elements",
            f"sets of {size} elements are separated with probability at least 1 - {failure:.3g} "
            "over the signs",
        ),
        failure=failure,
    )


def _sets(sets: Mapping[str, Any]) -> tuple[float, int, int, float, Polynomials | None]:
    """ln M, size, least symmetric difference, ln of the elements, and the code if there is one."""
    kind = sets.get("type")
    if kind == "singletons":
        log_count = number(sets, "log_count")
        require(log_count > 0, "log_count is not above 0")
        return log_count, 1, 2, log_count, None
    if kind == "greedy":
        universe, size = whole_number(sets, "universe"), whole_number(sets, "size")
        require(size <= universe <= MAX_LISTED, f"size <= universe <= {MAX_LISTED} does not hold")
        overlap = size // 2 + 1
        # Logarithms of whole numbers of any length.
        log_count = math.log(math.comb(universe, overlap)) - 2 * math.log(math.comb(size, overlap))
        # The file's count is rounded down by up to 1e-13 N ln N.
        log_count -= 1e-13 * (1 + universe * math.log(universe + 1))
        require(log_count > 0, "the greedy count is not above 1")
        return log_count, size, 2 * (size - overlap + 1), math.log(universe), None
    if kind == "reed-solomon":
        code = polynomials_of(sets, "prime", "size")
        log_universe = math.log(code.length * code.prime)
        return code.log_count, code.length, 2 * code.differing, log_universe, code
    raise CertificateRejected(f"the family of sets {kind!r} is unknown")


def _sample_signs(
    code: Polynomials, queries: int, seed: int, pairs: int, separation: float
) -> None:
    """Draw pairs of sets and the signs of their elements."""
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
        require(found >= separation, f"two sampled sets are {found:.6g} apart")


def verify_words(part: Mapping[str, Any], measure: Measure) -> VerifiedPacking:
    """Concatenated code words as single records of 1-way marginals."""
    d, generators = whole_number(part, "attributes"), generators_of(part)
    outer = polynomials_of(part, "symbols", "length")
    bits = generators.shape[1]
    require(outer.length * bits <= d, f"words are longer than {d} attributes")
    require(outer.prime <= 1 << len(generators), "there are more symbols than inner words")
    differing = outer.differing * least_weight(generators)
    separation = 1.0 if measure.largest else math.sqrt(differing / d)
    rng = np.random.default_rng(2)
    for _ in range(PAIRS):
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
            f"{outer.log_count:.6g} records differ in {differing} of {d} attributes",
            f"{PAIRS} sampled pairs of records differ as much",
        ),
        conditions=(),
    )


def verify_blocks(part: Mapping[str, Any], measure: Measure) -> VerifiedPacking:
    """Hadamard blocks: orthogonality after projection, distance of the code, sampled pairs."""
    d, width = whole_number(part, "attributes"), whole_number(part, "width", 2)
    side, generators = whole_number(part, "part", 2), generators_of(part)
    functions = polynomials_of(part, "symbols", "length")
    rest = d - (width - 1) * side
    require(generators.shape[1] <= rest, f"words do not fit in the {rest} attributes left")
    require(functions.prime <= 1 << len(generators), "there are more symbols than words")
    each = rest // generators.shape[1]
    require(functions.length % each == 0, f"records do not have {each} words each")
    size = functions.length // each
    require(size <= (side - 1) ** (width - 1), "there are more records than tuples")
    columns = _half_hadamard(side)
    tuples = list(itertools.islice(itertools.product(range(side - 1), repeat=width - 1), size))
    _check_orthogonal(columns, tuples)
    weight = functions.differing * least_weight(generators)
    norm = math.sqrt(weight * (side / 4.0) ** (width - 1)) / size
    block = side ** (width - 1) * rest
    queries = block if measure.largest else math.comb(d, width)
    separation = norm / math.sqrt(queries)
    pairs = min(PAIRS, DRAWS // (2 * size * math.comb(d, width)))
    heads = [np.concatenate([columns[j] for j in chosen]) for chosen in tuples]
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
            f"distance of all {1 << len(generators)} words; orthogonality of {len(tuples)} "
            f"projected blocks; minimum distance of e^{functions.log_count:.6g} functions",
            *([f"{pairs} sampled pairs of data sets are separated"] if pairs else []),
        ),
        conditions=(),
    )


def _marginals_subject(d: int, k: int) -> tuple[object, ...]:
    """As the subject of a listed packing of the same workload."""
    return tuple(sorted({"name": "marginals", "d": str(d), "k": str(k)}.items()))


def _half_hadamard(side: int) -> Bits:
    """Rows v_j = (1 + h_j) / 2 from the signs (-1)^(popcount(i & j)), j = 1..side - 1."""
    require(side & (side - 1) == 0, f"part {side} is not a power of two")
    return np.array(
        [[1 - (i & j).bit_count() % 2 for i in range(side)] for j in range(1, side)],
        dtype=np.int64,
    )


def _check_orthogonal(columns: Bits, tuples: list[tuple[int, ...]]) -> None:
    """After centring, v_j are orthogonal of squared length side / 4; so are their products."""
    side = columns.shape[1]
    centred = columns - columns.mean(axis=1, keepdims=True)
    gram = centred @ centred.T
    good = np.allclose(gram, np.eye(len(columns)) * side / 4, rtol=0, atol=1e-9)
    require(bool(good), "projected blocks are not orthogonal")
    require(len(set(tuples)) == len(tuples), "tuples repeat")


def _sample_blocks(
    heads: list[Bits],
    generators: Bits,
    functions: Polynomials,
    shape: tuple[int, int, int],
    bound: tuple[Measure, float],
) -> None:
    """Draw pairs of functions and evaluate all marginals of their data sets."""
    (d, width, pairs), (measure, separation) = shape, bound
    rng = np.random.default_rng(3)
    each = functions.length // len(heads)
    subsets = np.array(list(itertools.combinations(range(d), width))) if pairs else None
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
