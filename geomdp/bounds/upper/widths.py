"""Gaussian widths of images of sets under maps that stretch distances little."""

from __future__ import annotations

import math

from geomdp._validation import positive, real_number, whole


def near_contraction_width(width: float, excess: float, rows: int) -> float:
    """Bound on the Gaussian width of f(S) if ||f(x) - f(y)|| <= ||x - y|| + `excess` on S.

    For a map f to R^m, m = `rows`, a set S of Gaussian width w = `width`, and d = `excess`, it is

        (w^(1/2) + (d m^(1/2))^(1/2))^2  <=  2 w + 2 d m^(1/2).

    The source states the right side. Proof: let P be a maximal subset of S with distances above
    b > 0. On P, f has Lipschitz constant 1 + d / b, and f(S) is within b + d of f(P). So the width
    is at most (1 + d / b) w + (b + d) m^(1/2). The best b satisfies b^2 = d w / m^(1/2).

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
