"""Theorem 25: monotone marginals of constant width need many records (JL-T25)."""

from __future__ import annotations

import math
from collections.abc import Iterator

from geomdp._validation import whole
from geomdp.bounds.bound import Bound
from geomdp.bounds.certificates.certificate import covering_bound
from geomdp.bounds.certificates.problem import Problem
from geomdp.bounds.certificates.rung import rungs_of
from geomdp.bounds.metrics import MEAN_L2, Metric
from geomdp.bounds.packings.binary_codes import LinearCode, code_distances, greedy_code
from geomdp.bounds.packings.code_words import CodeWords
from geomdp.bounds.packings.marginal_blocks import MarginalBlocks
from geomdp.bounds.packings.reed_solomon import ReedSolomon, prime_at_most
from geomdp.privacy import Adjacency

#: Numbers of tuples tried grow by this factor.
LENGTH_RATIO = 2**0.25
#: Degrees tried for one number of tuples, as shares of it.
DEGREE_SHARES = tuple(i / 8 for i in range(1, 9))

#: Bits of the inner words of concatenated codes.
INNER_LENGTHS = (16, 24, 32, 48, 64)


def marginal_bound(
    attributes: int,
    width: int,
    *,
    epsilon: float,
    alpha: float,
    metric: Metric = MEAN_L2,
    adjacency: Adjacency = Adjacency.REPLACE_ONE,
) -> Bound:
    """Lower bound for monotone conjunctions of `width` of d `attributes` (JL-T25).

    Parameters
    ----------
    attributes, width : int
        The workload `Marginals(attributes, width)`.
    epsilon, alpha, metric, adjacency : as for `Problem`
        Privacy, error, how the error is measured, and the neighbour relation.

    Returns
    -------
    Bound
        For l = 1 from the best code; for l >= 2 from Hadamard blocks with Reed-Solomon functions of
        growing length, over the splits of the attributes and the codes tried. Unconditional:
        for constant width a constant times d / (alpha eps) (l = 1) or
        min{d^((l+1)/2) / (alpha eps), d / (alpha^2 eps)}, once alpha is small enough.

    Raises
    ------
    SideConditionError
        If not even one record is excluded.

    References
    ----------
    Nikolov 2022, Theorem 25; formula sheet JL-T25.
    """
    problem = Problem(epsilon, alpha, metric, adjacency)
    whole(width, "width", maximum=whole(attributes, "attributes"))
    families = (
        _code_words(attributes) if width == 1 else _marginal_blocks(attributes, width, problem)
    )
    rungs, reasons = rungs_of(families, problem)
    few = f"{attributes} attributes are too few for a code or a Hadamard block of width {width}"
    return covering_bound(rungs, problem, reasons[-1:] or [few])


def _code_words(attributes: int) -> Iterator[CodeWords]:
    """Packings by plain and by concatenated codes."""
    for inner in _codes(attributes):
        symbols = prime_at_most(inner.count)
        length = min(attributes // inner.length, symbols)
        for degree in _degrees(length):
            yield CodeWords(attributes, ReedSolomon(symbols, length, degree), inner)


def _marginal_blocks(attributes: int, width: int, problem: Problem) -> Iterator[MarginalBlocks]:
    """Blocks for all splits of the attributes, codes, numbers of tuples and degrees."""
    for part in _parts(attributes, width):
        rest = attributes - (width - 1) * part
        for code in _codes(rest):
            symbols, each = prime_at_most(code.count), rest // code.length
            if symbols < each:
                continue
            most = min((part - 1) ** (width - 1), symbols // each)
            for length in _lengths(most, problem):
                for degree in _degrees(length * each):
                    functions = ReedSolomon(symbols, length * each, degree)
                    yield MarginalBlocks(attributes, width, part, code, functions)


def _parts(attributes: int, width: int) -> list[int]:
    """Sizes d' of the first parts: at least a third of an even share, and two attributes left."""
    powers = (1 << i for i in range(1, attributes.bit_length()))
    return [
        part
        for part in powers
        if attributes - (width - 1) * part >= 2 and 3 * width * part >= min(attributes, 6 * width)
    ]


def _codes(attributes: int) -> Iterator[LinearCode]:
    """Codes of more than two words for a part of that many attributes.

    Of the codes of one length, a smaller distance is kept only if it allows more words.
    """
    for bits in sorted({min(attributes, length) for length in INNER_LENGTHS}):
        most = 2
        for distance in reversed(code_distances(bits)):
            code = greedy_code(bits, distance)
            if code.count > most:
                most = code.count
                yield code


def _lengths(most: int, problem: Problem) -> list[int]:
    """Growing numbers of tuples s from 1 up to `most`, as long as answers can be far enough apart.

    ||Q(X_f) - Q(X_g)|| / sqrt(k) is at most sqrt(2 s) / s, as for sets of s elements.
    """
    room = 2 / problem.required_separation**2
    most = max(1, math.floor(min(room, most)))
    lengths = [1]
    while lengths[-1] < most:
        lengths.append(min(most, math.ceil(lengths[-1] * LENGTH_RATIO + 1e-9)))
    return lengths


def _degrees(length: int) -> list[int]:
    """Degrees from 1 to `length`, at most eight."""
    return sorted({max(1, round(share * length)) for share in DEGREE_SHARES})
