"""Noise on matrix entries, whose sums can be exact; svec coordinates have factors sqrt(2)."""

from __future__ import annotations

from flint import arb

from geomdp.noise.exact.linear import gram
from geomdp.noise.exact.points import Computable
from geomdp.noise.exact.uniforms import Draw
from geomdp.noise.exact.variates import Vector, bartlett_factor, exponentials


def matrix_entries(on_svec: Computable, order: int) -> Computable:
    """Convert a vector in svec coordinates to matrix entries: the upper triangle, row by row.

    Entries of `on_svec` off the diagonal are divided by sqrt(2). `order` is the number of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from geomdp.noise.exact import RoundedVector, gaussian_vector, matrix_entries
    >>> entries = matrix_entries(gaussian_vector(dimension=3, scale=1.0), order=2)

    A simulation of the three entries on and above the diagonal, with bytes from a seed:

    >>> RoundedVector(entries, grid=10).draw(np.random.default_rng(0).bytes)
    [248, 665, 172]
    """
    diagonal = [i == j for i in range(order) for j in range(i, order)]

    def entries(draw: Draw) -> Vector:
        root = arb(2).sqrt()
        pairs = zip(diagonal, on_svec(draw), strict=True)
        return [x if on_it else x / root for on_it, x in pairs]

    return entries


def times(factor: int, vector: Computable) -> Computable:
    """A random vector multiplied by a whole number.

    `factor` multiplies every entry of `vector`, a function for `RoundedVector`, as is the result.

    Examples
    --------
    >>> import numpy as np
    >>> from geomdp.noise.exact import RoundedVector, gaussian_vector, times
    >>> vector = times(4, gaussian_vector(dimension=2, scale=1.0))

    A simulation, with bytes from a seed:

    >>> RoundedVector(vector, grid=8).draw(np.random.default_rng(0).bytes)
    [965, -121]
    """
    return lambda draw: [factor * x for x in vector(draw)]


def wishart_difference(order: int, rate: float, centre: float) -> Computable:
    """Cone noise over {M psd, tr M <= 1}: the upper triangle of A_1 - A_2 - centre (r_1 - r_2) I.

    The pairs (A_i, r_i) are independent, with density proportional to e^(-rate r) on the cone {A
    psd, r >= tr A}. So A has density proportional to e^(-rate tr A), the law of G G^T / (2 rate)
    for a standard Gaussian G of shape (d, d + 1), and r - tr A is exponential with rate `rate`
    (JL-WIS, X-CONE). If `centre` is 0, the r_i are not drawn.

    Parameters
    ----------
    order : int
        Order d of the matrices.
    rate : float
        Rate of the exponential weight.
    centre : float
        Factor of I in the centre of the body. r_1 - r_2 is noise on the number of records. If the
        number is public, `centre` (r_1 - r_2) I is known and subtracted; else `centre` must be 0.

    Examples
    --------
    >>> import numpy as np
    >>> from geomdp.noise.exact import RoundedVector, wishart_difference
    >>> vector = wishart_difference(order=2, rate=0.5, centre=0.0)

    A simulation of the three entries on and above the diagonal, with bytes from a seed:

    >>> RoundedVector(vector, grid=8).draw(np.random.default_rng(0).bytes)
    [453, -1130, -1217]
    """
    exact_rate, exact_centre = arb(rate), arb(centre)

    def wishart(draw: Draw) -> tuple[list[Vector], arb]:
        matrix = gram(bartlett_factor(order, draw))
        trace = sum((matrix[i][i] for i in range(order)), start=arb(0))
        return matrix, trace

    def entries(draw: Draw) -> Vector:
        (first, one), (second, two) = wishart(draw), wishart(draw)
        # The matrices, the traces and `shift` are the quantities of the docstring, multiplied by
        # 2 * rate. The division at the end removes this factor.
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
