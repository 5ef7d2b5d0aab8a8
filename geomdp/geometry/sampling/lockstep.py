"""Compiled sweeps of coordinate hit-and-run: many chains move along one coordinate together.

Arrays hold one chain per column, so inner loops run over chains on consecutive memory (X-LOCK). No
absolute tolerance is used, so the chains behave the same for bodies of any size.
"""

from __future__ import annotations

import numpy as np

from geomdp._numerics.compilation import numba


@numba.njit(cache=True)
def slab_sweep(directions, widths, products, points, uniforms):  # type: ignore[no-untyped-def]
    """Move points of {x : |<z_f, x>| <= w_f for all f} once along every coordinate, in place.

    z_f is a row of `directions` (F, m). `products` (F, chains) is directions @ points (m, chains).
    """
    facets, dimension = directions.shape
    chains = points.shape[1]
    low, high = np.empty(chains), np.empty(chains)
    for j in range(dimension):
        low[:] = -np.inf
        high[:] = np.inf
        for f in range(facets):
            slope = directions[f, j]
            if slope == 0.0:
                continue
            inverse = 1.0 / slope
            reach = widths[f] * abs(inverse)
            for c in range(chains):
                middle = -products[f, c] * inverse
                low[c] = max(low[c], middle - reach)
                high[c] = min(high[c], middle + reach)
        _move(directions, products, points[j], low, high, uniforms[j], j)


@numba.njit(cache=True)
def halfspace_sweep(normals, offsets, products, points, uniforms):  # type: ignore[no-untyped-def]
    """Move points of {x : <a_f, x> <= b_f for all f}, as `slab_sweep`; `normals` (F, m) are a_f."""
    facets, dimension = normals.shape
    chains = points.shape[1]
    low, high = np.empty(chains), np.empty(chains)
    for j in range(dimension):
        low[:] = -np.inf
        high[:] = np.inf
        for f in range(facets):
            slope = normals[f, j]
            if slope == 0.0:
                continue
            inverse = 1.0 / slope
            if slope > 0.0:
                for c in range(chains):
                    high[c] = min(high[c], (offsets[f] - products[f, c]) * inverse)
            else:
                for c in range(chains):
                    low[c] = max(low[c], (offsets[f] - products[f, c]) * inverse)
        _move(normals, products, points[j], low, high, uniforms[j], j)


@numba.njit(cache=True)
def _move(matrix, products, row, low, high, uniforms, j):  # type: ignore[no-untyped-def]
    """Move coordinate j, `row`, of each chain by a uniform step in [low, high] (kept in `low`)."""
    for c in range(len(row)):
        # Rounding can put a point slightly outside of the body. The range of its steps is then
        # extended to contain 0.
        start = min(low[c], 0.0)
        low[c] = start + (max(high[c], 0.0) - start) * uniforms[c]
        row[c] += low[c]
    for f in range(len(matrix)):
        slope = matrix[f, j]
        if slope != 0.0:
            for c in range(len(row)):
                products[f, c] += slope * low[c]
