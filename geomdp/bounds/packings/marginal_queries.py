"""Theorem 25 of Nikolov (2022): monotone marginals of constant width need many records (JL-T25)."""

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

#: Several numbers of tuples are tried. Each is about this ratio times the number tried before.
LENGTH_RATIO = 2**0.25
#: Degrees that are tried for one length of a code, as shares of the length.
DEGREE_SHARES = tuple(i / 8 for i in range(1, 9))

#: Numbers of bits of the binary codes that are tried.
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
    """Unconditional lower bound on records for all monotone conjunctions of l = `width` attributes.

    For constant l and small enough alpha, the packings of the proof give at least a constant times
    d / (alpha epsilon) for l = 1 and d = `attributes` (`CodeWords`), and a constant times
    min{d^((l+1)/2) / (alpha epsilon), d / (alpha^2 epsilon)} for l >= 2 (`MarginalBlocks`). The
    binary codes that are tried have at most 2^14 words, so for large d the result can be smaller.

    Parameters
    ----------
    attributes, width : int
        The workload `Marginals(attributes, width)`.
    epsilon, alpha, metric, adjacency : as for `Problem`
        Privacy, error, how the error is measured, and the neighbour relation.

    References
    ----------
    Nikolov 2022, Theorem 25; formula sheet JL-T25.

    Examples
    --------
    >>> import textwrap
    >>> import geomdp as gd
    >>> bound = gd.bounds.marginal_bound(16, 1, epsilon=1.0, alpha=0.05)
    >>> bound
    Bound(sc > 15, 0 assumptions)
    >>> print(textwrap.fill(bound.statement, 80))
    no mechanism has 1-DP (replace-one) and mean l2 error per query at most 0.05
    with 15 records or fewer; with 15 records, there are 2039 data sets, at most 7
    replacements apart, with answers at least 0.202 apart
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
    """Packings by binary codes alone (outer length 1) and by concatenated codes."""
    for inner in _codes(attributes):
        symbols = prime_at_most(inner.count)
        length = min(attributes // inner.length, symbols)
        for degree in _degrees(length):
            yield CodeWords(attributes, ReedSolomon(symbols, length, degree), inner)


def _marginal_blocks(attributes: int, width: int, problem: Problem) -> Iterator[MarginalBlocks]:
    """Blocks for all combinations of part size, binary code, number of tuples and degree to try."""
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
    """Powers of two d' >= 2 to try; at least two attributes are left for the last part."""
    powers = (1 << i for i in range(1, attributes.bit_length()))
    return [part for part in powers if attributes - (width - 1) * part >= 2]


def _codes(attributes: int) -> Iterator[LinearCode]:
    """Binary codes of 3 or more words, without those with fewer words than a more distant code."""
    for bits in sorted({min(attributes, length) for length in INNER_LENGTHS}):
        most = 2
        for distance in reversed(code_distances(bits)):
            code = greedy_code(bits, distance)
            if code.count > most:
                most = code.count
                yield code


def _lengths(most: int, problem: Problem) -> list[int]:
    """Values of s to try: sqrt(2 s) / s, an upper bound on the separation, must suffice."""
    room = 2 / problem.required_separation**2
    most = max(1, math.floor(min(room, most)))
    lengths = [1]
    while lengths[-1] < most:
        lengths.append(min(most, math.ceil(lengths[-1] * LENGTH_RATIO + 1e-9)))
    return lengths


def _degrees(length: int) -> list[int]:
    """At most eight degrees from 1 to `length`."""
    return sorted({max(1, round(share * length)) for share in DEGREE_SHARES})
