"""Gaussian widths of images of sets under maps that stretch distances little."""

from __future__ import annotations

import math

from geomdp._validation import positive, real_number, whole


def near_contraction_width(width: float, excess: float, rows: int) -> float:
    """Bound on the Gaussian width of f(S) if ||f(x) - f(y)|| <= ||x - y|| + `excess` on S.

    f maps the set S to R^m, m = `rows`, and S has Gaussian width w = `width`. With d = `excess`,
    the bound is

        (w^(1/2) + (d m^(1/2))^(1/2))^2  <=  2 w + 2 d m^(1/2).

    The source states the right side. For d = 0 the map is 1-Lipschitz, and the bound is w.

    Proof: let P be a maximal subset of S with distances above b > 0 between its points. On P, f has
    Lipschitz constant 1 + d / b. Every point of f(S) is within b + d of a point of f(P). So the
    Gaussian width of f(S) is at most (1 + d / b) w + (b + d) m^(1/2). The best b satisfies
    b^2 = d w / m^(1/2).

    Source: Nikolov 2022, Lemmas 10 and 11; JL-L10, JL-L11.

    Examples
    --------
    >>> import geomdp as gd
    >>> round(gd.bounds.upper.near_contraction_width(2.0, 0.0, rows=10), 3)
    2.0
    >>> round(gd.bounds.upper.near_contraction_width(2.0, 0.5, rows=16), 3)
    8.0
    """
    d = real_number(excess)
    if not 0 <= d < math.inf:
        raise ValueError(f"excess must be finite and at least 0, got {excess!r}")
    spread = d * math.sqrt(whole(rows, "rows"))
    return (math.sqrt(positive(width, "width")) + math.sqrt(spread)) ** 2
