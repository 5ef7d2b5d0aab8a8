"""Noise on the entries of symmetric matrices, where svec would bring in a rounded root of 2."""

from __future__ import annotations

from flint import arb

from geomdp.noise.exact.linear import gram
from geomdp.noise.exact.points import Computable
from geomdp.noise.exact.uniforms import Draw
from geomdp.noise.exact.variates import Vector, bartlett_factor, exponentials


def matrix_entries(on_svec: Computable, order: int) -> Computable:
    """A vector in svec coordinates as matrix entries: the upper triangle, row by row.

    Entries off the diagonal lose their factor of sqrt(2).
    """
    diagonal = [i == j for i in range(order) for j in range(i, order)]

    def entries(draw: Draw) -> Vector:
        root = arb(2).sqrt()
        pairs = zip(diagonal, on_svec(draw), strict=True)
        return [x if on_it else x / root for on_it, x in pairs]

    return entries


def times(factor: int, vector: Computable) -> Computable:
    """A vector multiplied by a whole number."""
    return lambda draw: [factor * x for x in vector(draw)]


def wishart_difference(order: int, rate: float, centre: float) -> Computable:
    """Cone noise over {M psd, tr M <= 1}: the upper triangle of A_1 - A_2 - centre (r_1 - r_2) I.

    The lifted vectors (A, r) have density proportional to e^(-rate r) on r >= tr A. So A has
    density proportional to e^(-rate tr A) on the psd cone, the law of G G^T / (2 rate) with G
    standard Gaussian (d, d + 1); and r - tr A is exponential with that rate (JL-WIS, X-CONE). With
    a centre of 0 the r_i are not drawn.

    Parameters
    ----------
    order : int
        d.
    rate : float
        Rate of the exponential weight.
    centre : float
        The multiple of the identity that is taken off for each unit of the public number of
        records; 0 where that number is not public.
    """
    exact_rate, exact_centre = arb(rate), arb(centre)

    def wishart(draw: Draw) -> tuple[list[Vector], arb]:
        matrix = gram(bartlett_factor(order, draw))
        trace = sum((matrix[i][i] for i in range(order)), start=arb(0))
        return matrix, trace

    def entries(draw: Draw) -> Vector:
        (first, one), (second, two) = wishart(draw), wishart(draw)
        # Everything is multiplied by 2 rate until the end.
        shift = arb(0)
        if centre:
            above, below = exponentials(2, draw)
            shift = exact_centre * (one - two + 2 * (above - below))
        return [
            (first[i][j] - second[i][j] - (shift if i == j else 0)) / (2 * exact_rate)
            for i in range(order)
            for j in range(i, order)
        ]

    return entries
