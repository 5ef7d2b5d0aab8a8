"""Preparation of ray shooting: distinct vertices, whitened coordinates and a first facet."""

from __future__ import annotations

import numpy as np

from geomdp._numerics.seeds import PUBLIC_SEED
from geomdp._typing import FloatArray, IntArray

#: Smallest pivot, as a share of the largest. A step of `first_facet`, or a pivot of `pivots`, moves
#: a point z until the product of z with some vertex meets its bound. A vertex is ignored if its
#: product with z changes by less than this share of the largest change, because division by such a
#: small change would magnify rounding errors.
PIVOT = 1e-7
#: Three kinds of numbers count as rounding errors if they are at most this share of another number.
#: A singular value is compared with the largest singular value. In `first_facet`, the largest
#: change of a product is compared with the norm of the longest vertex. In whitened coordinates, the
#: norm of the mean of the vertices is compared with 1.
DEGENERATE = 1e-13


def distinct(vertices: FloatArray, *, up_to_sign: bool) -> FloatArray:
    """The distinct rows of `vertices` (N, m), in order; x and -x count as equal if `up_to_sign`."""
    keys = vertices @ np.random.default_rng(PUBLIC_SEED).standard_normal(vertices.shape[1])
    signs = np.where(keys < 0, -1.0, 1.0) if up_to_sign else np.ones(len(keys))
    order = np.argsort(signs * keys, kind="stable")
    ordered = signs[order, None] * vertices[order]
    first = np.append(True, (ordered[1:] != ordered[:-1]).any(axis=1))
    return np.asarray(vertices[np.sort(order[first])])


def whitened(vertices: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rows mapped to second moment I, and the map (m, m); ``ValueError`` if they span less."""
    count, dimension = vertices.shape
    # The triangular factor of the QR decomposition has the same singular values and right singular
    # vectors as the vertices.
    factor = np.linalg.qr(vertices, mode="r") if count > dimension else vertices
    _, singular, rows = np.linalg.svd(factor, full_matrices=False)
    rank = int(np.count_nonzero(singular > DEGENERATE * singular.max(initial=0.0)))
    if rank < dimension or rank == 0:
        raise ValueError(f"vertices must span {dimension} dimensions (at least 1), got {rank}")
    whitening = rows.T * (np.sqrt(count) / singular)
    return np.ascontiguousarray(vertices @ whitening), whitening


def first_facet(
    columns: FloatArray, bounds: FloatArray, lower: float, rng: np.random.Generator
) -> tuple[IntArray, FloatArray]:
    """Numbers (R,) and signs (R,) of rows of `columns` (N, R) with tight bounds at a vertex z of
    the polar body {z : |<row, z>| <= bound}; without the modulus if `lower` is infinity.
    """
    size = columns.shape[1]
    scale = float(np.linalg.norm(columns, axis=1).max())
    normal: FloatArray = np.zeros(size)
    tight: FloatArray = np.zeros((size, 0))
    basis, signs = np.zeros(size, dtype=np.int64), np.zeros(size)
    for k in range(size):
        step = np.asarray(rng.standard_normal(size))
        for _ in range(2):  # the second pass removes the rounding errors of the first
            step -= tight @ (tight.T @ step)
        step /= float(np.linalg.norm(step))
        slope, value = columns @ step, columns @ normal
        rising = np.abs(slope) if lower == 1 else slope
        usable = rising > PIVOT * rising.max()
        if rising.max() <= DEGENERATE * scale:
            raise ValueError(f"vertices must surround 0 in {size} dimensions")
        times = np.full(len(columns), np.inf)
        gaps = bounds[usable] - np.sign(slope[usable]) * value[usable]
        times[usable] = gaps / np.abs(slope[usable])
        entering = int(np.argmin(times))
        normal += times[entering] * step
        basis[k], signs[k] = entering, np.sign(slope[entering])
        rest = columns[entering].copy()
        for _ in range(2):
            rest -= tight @ (tight.T @ rest)
        tight = np.column_stack([tight, rest / np.linalg.norm(rest)])
    return basis, signs
