"""Compiled code: largest values of linear functions on correlation matrices, draws of tables, and
pivots from facet to facet.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from geomdp._numerics.compilation import copy_into, numba
from geomdp._numerics.randomness import PUBLIC_SEED
from geomdp._typing import FloatArray, IntArray

# Largest values of linear functions on correlation matrices, with certified upper bounds. Let C be
# a symmetric p x p matrix with zero diagonal. The problem
#
#     max { <C, R> / 2 : R psd, R_ii = 1 }
#
# is solved with R = V V^T, where V has unit rows v_i. One step replaces v_i by g_i / ||g_i||,
# g_i = sum_j C_ij v_j (the mixing method of Wang, Chang and Kolter 2018). With more than sqrt(2 p)
# columns, only global maxima are stable for almost all C, and the steps converge linearly from
# almost every start (Boumal, Voroninski and Bandeira 2016). The dual value
#
#     (sum_i y_i + p max(0, lambda_max(C - Diag y))) / 2
#
# is an upper bound on the maximum for every y, and equals it for y_i = <g_i, v_i> at an optimal V.

#: The steps stop when the dual value minus the value of V is at most this share of the dual value.
GAP = 1e-9
#: Sweeps over all rows before the gap is first computed, and the largest number of sweeps.
FIRST_SWEEPS, MOST_SWEEPS = 20, 200_000


@numba.njit(cache=True)
def _sweep(weights, vectors, times):  # type: ignore[no-untyped-def]
    """Replace v_i by g_i / ||g_i|| in place, for one i after the other. Do this `times` times."""
    order, rank = vectors.shape
    pull = np.empty(rank)
    for _ in range(times):
        for i in range(order):
            pull[:] = 0.0
            for j in range(order):
                weight = weights[i, j]
                if weight != 0.0:
                    for k in range(rank):
                        pull[k] += weight * vectors[j, k]
            length = math.sqrt((pull * pull).sum())
            if length > 0.0:
                for k in range(rank):
                    vectors[i, k] = pull[k] / length


def _dual(weights: FloatArray, vectors: FloatArray) -> tuple[float, float]:
    """Value of V and an upper bound on the maximum, both for <C, R> without the factor 1/2."""
    multipliers = np.einsum("ik,ik->i", weights @ vectors, vectors)
    slack = float(np.linalg.eigvalsh(weights - np.diag(multipliers))[-1])
    value = float(multipliers.sum())
    return value, value + len(weights) * max(slack, 0.0)


def highest_correlation(weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Matrices (b, p, p) that maximise <C, R> / 2 for each C of `weights` (b, p, p), and bounds
    (b,), valid up to rounding; nearly always within a relative 1e-9, by sweeps of O(p^2 sqrt(p)).
    """
    count, order, _ = weights.shape
    rank = math.ceil(math.sqrt(2 * order)) + 1
    start = np.random.default_rng(PUBLIC_SEED).standard_normal((order, rank))
    start /= np.linalg.norm(start, axis=1, keepdims=True)
    matrices, bounds = np.empty(weights.shape), np.empty(count)
    for row, each in enumerate(weights):
        scale = float(np.abs(each).max(initial=0.0)) or 1.0
        scaled, vectors = np.ascontiguousarray(each / scale), start.copy()
        done, step = 0, FIRST_SWEEPS
        while True:
            _sweep(scaled, vectors, step)
            done += step
            value, bound = _dual(scaled, vectors)
            if bound - value <= GAP * bound or done >= MOST_SWEEPS:
                break
            step = min(done // 2 + FIRST_SWEEPS, MOST_SWEEPS - done)
        matrices[row], bounds[row] = vectors @ vectors.T, scale * bound / 2
        np.fill_diagonal(matrices[row], 1.0)
    return matrices, bounds


# Draws of one- and two-way tables. A column of l levels is represented by l orthogonal vectors y_a
# in R^(1 + f) that add up to the first unit vector e_0, with |y_a|^2 = <y_a, e_0> = m_a, the share
# of the event "column i has level a". Here f is P + 1, P the sum of (l - 1) over the columns. Inner
# products of the vectors of two columns form their two-way table. Columns are drawn one by one; a
# draw is rejected as soon as they violate the inequalities of `TableMoments` by more than a limit.

#: Flags of LLVM that allow sums in any order. Loops can then add several terms in one step.
SUMS = {"reassoc", "contract"}


@numba.njit(cache=True, fastmath=SUMS)
def short_product(first, second):  # type: ignore[no-untyped-def]
    """Inner product of two rows; on short rows it is faster than a call of `np.dot`."""
    total = 0.0
    for x in range(len(first)):
        total += first[x] * second[x]
    return total


@numba.njit(cache=True)
def _column(rng, concentration, vectors, directions):  # type: ignore[no-untyped-def]
    """Fill `vectors` (l, 1 + f) with Dirichlet shares m_a and the rows of C Q, C C^T = diag(m) - m
    m^T, where Q (l - 1, f), written to `directions`, has uniform orthonormal rows.
    """
    levels, width = vectors.shape
    total = 0.0
    for a in range(levels):
        vectors[a, 0] = rng.standard_gamma(concentration)
        total += vectors[a, 0]
    for a in range(levels):
        vectors[a, 0] /= total
        vectors[a, 1:] = 0.0
    tail = 1.0
    for k in range(levels - 1):
        for x in range(width - 1):
            directions[k, x] = rng.standard_normal()
        for j in range(k):
            overlap = short_product(directions[j], directions[k])
            for x in range(width - 1):
                directions[k, x] -= overlap * directions[j, x]
        length = np.sqrt(short_product(directions[k], directions[k]))
        for x in range(width - 1):
            directions[k, x] /= length
        share = vectors[k, 0]
        left = 0.0
        for a in range(k + 1, levels):
            left += vectors[a, 0]
        own = np.sqrt(share * left / tail)
        others = -np.sqrt(share / (tail * left))
        for x in range(width - 1):
            vectors[k, 1 + x] += own * directions[k, x]
        for a in range(k + 1, levels):
            factor = others * vectors[a, 0]
            for x in range(width - 1):
                vectors[a, 1 + x] += factor * directions[k, x]
        tail = left


@numba.njit(cache=True, fastmath=SUMS)
def _triangles(first, second, shares, a, b, count):  # type: ignore[no-untyped-def]
    """Violation of triangle inequalities of events a, b, c < `count`, from joint shares with c."""
    ab, pa, pb = first[b], shares[a], shares[b]
    total = 0.0
    for c in range(count):
        ac, bc, pc = first[c], second[c], shares[c]
        total -= min(0.0, 1 - pa - pb - pc + ab + ac + bc)
        total -= min(0.0, pa - ab - ac + bc)
        total -= min(0.0, pb - ab - bc + ac)
        total -= min(0.0, pc - ac - bc + ab)
    return total


@numba.njit(cache=True, fastmath=SUMS)
def _added(cells, starts, tested, i, total, limit):  # type: ignore[no-untyped-def]
    """`total` plus the violations between column i and earlier ones, or a part above `limit`."""
    for a in range(starts[i], starts[i + 1]):
        for b in range(starts[i]):
            total -= min(0.0, cells[a, b])
    if total > limit:
        return total
    events, bounds, entries, shares = tested
    low, high = bounds[i], bounds[i + 1]
    for a in range(low, high):
        shares[a] = cells[events[a], events[a]]
        for b in range(low):
            entries[a, b] = cells[events[a], events[b]]
    for j in range(1, i):
        for a in range(low, high):
            for b in range(bounds[j], bounds[j + 1]):
                total += _triangles(entries[a], entries[b], shares, a, b, bounds[j])
        if total > limit:
            return total
    return total


@numba.njit(cache=True)
def _prepared(starts):  # type: ignore[no-untyped-def]
    """The argument `tested` of `_added`: events tested for triangle inequalities (one of two
    levels), each column's first, and unfilled joint shares (t, t) and shares (t,) of the events.
    """
    columns = len(starts) - 1
    bounds = np.zeros(columns + 1, dtype=np.int64)
    events = np.empty(starts[-1], dtype=np.int64)
    for i in range(columns):
        levels = starts[i + 1] - starts[i]
        count = 1 if levels == 2 else levels
        bounds[i + 1] = bounds[i] + count
        for a in range(count):
            events[bounds[i] + a] = starts[i] + a
    total = bounds[-1]
    return events, bounds, np.empty((total, total)), np.empty(total)


@numba.njit(cache=True)
def violations(tables, starts):  # type: ignore[no-untyped-def]
    found = np.zeros(len(tables))
    tested = _prepared(starts)
    for n in range(len(tables)):
        for i in range(len(starts) - 1):
            found[n] = _added(tables[n], starts, tested, i, found[n], np.inf)
    return found


@numba.njit(cache=True)
def draw_tables(rng, tables, starts, limit):  # type: ignore[no-untyped-def]
    """Fill `tables` (n, L, L) with inner products of event vectors, violation at most `limit`."""
    size, columns = tables.shape[1], len(starts) - 1
    order = size - columns
    width = order + 2
    vectors = np.empty((size, width))
    directions = np.empty((size, width - 1))
    tested = _prepared(starts)
    for n in range(len(tables)):
        cells = tables[n]
        accepted = False
        while not accepted:
            total = 0.0
            for i in range(columns):
                low, high = starts[i], starts[i + 1]
                concentration = (order - (high - low - 1)) / 2 + 1
                _column(rng, concentration, vectors[low:high], directions)
                for a in range(low, high):
                    cells[a, low:high] = 0.0
                    cells[a, a] = vectors[a, 0]
                    for b in range(low):
                        cells[a, b] = cells[b, a] = short_product(vectors[a], vectors[b])
                if limit < np.inf:
                    total = _added(cells, starts, tested, i, total, limit)
                    if total > limit:
                        break
            accepted = total <= limit


# Simplex pivots from facet to facet of conv(+-v_i) or conv(v_i), for `ray_shooting`. A facet is
# stored by the indices and signs of m vertices b_1..b_m on it, and by the inverse of the matrix of
# these vertices. Its normal z solves <z, b_k> = (bound of b_k) for all k. The bounds 1 are lowered
# by tiny random amounts to break ties. In all functions, `columns` (N, m) holds the vertices v_i as
# rows, `bounds` (N,) their lowered bounds, and `ray` (2, m) the start and the direction of a ray.
# `two_sided` is True for conv(+-v_i).

#: Tolerance of the ratio test: far above the rounding errors of <z, v_i>, and far below the random
#: amounts by which the bounds are lowered.
HARRIS_SLACK = 1e-11
#: Flags of LLVM: sums and extremes may be taken in any order; infinities keep their meaning.
FREE_ORDER = {"nnan", "nsz", "reassoc", "contract"}


@numba.njit(cache=True, error_model="numpy")
def entering_vertex(bounds, two_sided, values, slopes, share):  # type: ignore[no-untyped-def]
    """The vertex that stops z by the ratio test of Harris (1973), or -1, and the length of the
    step: how far z can move along an edge of the polar body until a product <z, v_i> meets its
    bound. Slopes of the products below `share` of the largest are no pivots.
    """
    rising = np.abs(slopes) if two_sided else slopes
    smallest = share * max(rising.max(), 0.0)
    times, limit = np.full(len(slopes), np.inf), np.inf
    for i in range(len(slopes)):
        if rising[i] > smallest:
            gap = bounds[i] - (values[i] if slopes[i] > 0.0 else -values[i])
            times[i] = gap / rising[i]
            limit = min(limit, times[i] + HARRIS_SLACK / rising[i])
    entering = -1
    for i in range(len(slopes)):
        usable = times[i] < np.inf and times[i] <= limit
        if usable and (entering < 0 or rising[i] > rising[entering]):
            entering = i
    return entering, max(times[entering], 0.0)


# The pivots.

#: A coordinate in the basis of the b_k counts as negative below -`NEGATIVE` times the sum of the
#: moduli of all.
NEGATIVE = 1e-11
#: The pivot element is computed from the leaving row and from the entering column. If they differ
#: by more than this share, the inverse is recomputed; if it is new, the try fails.
DISAGREEMENT = 1e-6
#: A ray starts at that one of this number of earlier facets that it meets first. For N vertices, it
#: is at most N / 2, so that the comparison costs no more than one pivot.
POOL = 512
#: Largest number of pivots per dimension in one try of a ray; about 6 from the first facet.
PIVOTS_PER_DIMENSION = 200
#: A facet counts as exact if no vertex has a product above 1 + `BEYOND` with its normal.
BEYOND = 1e-9
#: Largest number of vertices per dimension exchanged when the true bounds 1 replace the others.
CORRECTIONS_PER_DIMENSION = 20
#: Slopes (changes of products of z with vertices in a step) below this share of the largest are no
#: pivots, because dividing by them magnifies rounding errors.
PIVOT = 1e-7
#: Number of pivots between two recomputations of the inverse.
REFACTOR = 100


class Facet(NamedTuple):
    """A facet, and the current ray in coordinates of the vertices b_k. Pivots change the arrays."""

    basis: IntArray  # (m,): indices of b_1..b_m
    signs: FloatArray  # (m,): signs of b_1..b_m
    inverse: FloatArray  # (m, m): row j has product 1 with b_j, and 0 with all other b_k
    normal: FloatArray  # (m,): the normal z
    along: FloatArray  # (2, m): start and direction of the ray, in coordinates of the b_k


@numba.njit(cache=True)
def _factor(facet, columns, bounds, ray):  # type: ignore[no-untyped-def]
    """Recompute inverse, normal and ray coordinates; False if the vertices are dependent."""
    size = columns.shape[1]
    try:
        inverse = np.linalg.inv(facet.signs.reshape(-1, 1) * columns[facet.basis])
    except Exception:  # numba catches no narrower class; the only cause is a singular matrix
        return False
    for k in range(size):
        copy_into(facet.inverse[k], inverse[:, k])
    copy_into(facet.normal, bounds[facet.basis] @ facet.inverse)
    for end in range(2):
        copy_into(facet.along[end], facet.inverse @ ray[end])
    return True


@numba.njit(cache=True)
def _coordinates(facet, ray):  # type: ignore[no-untyped-def]
    """Coordinates (m,) where the ray meets the hyperplane of `facet`, or of its direction."""
    reach = facet.normal @ ray[1]
    if reach <= NEGATIVE * np.abs(facet.along[1]).sum():
        return facet.along[1].copy()  # the hyperplane is met at infinity
    time = (1.0 - facet.normal @ ray[0]) / reach
    return facet.along[0] + time * facet.along[1]


@numba.njit(cache=True, fastmath=FREE_ORDER)
def _steepest(inverse, coordinates):  # type: ignore[no-untyped-def]
    """Index of the b_k, of negative coordinate, that the steepest edge drops; -1 for none."""
    tolerance = -NEGATIVE * np.abs(coordinates).sum()
    best, leaving = 0.0, -1
    for k in range(len(coordinates)):
        if coordinates[k] < tolerance:
            row, square = inverse[k], 0.0
            for i in range(len(row)):
                square += row[i] * row[i]
            gain = coordinates[k] * coordinates[k] / square
            if gain > best:
                best, leaving = gain, k
    return leaving


@numba.njit(cache=True, fastmath=FREE_ORDER, error_model="numpy")
def _exchange(facet, column, leaving, length):  # type: ignore[no-untyped-def]
    """Replace vertex b_k, k = `leaving`, by the vertex with coordinates `column` in b_1..b_m."""
    inverse, along, size = facet.inverse, facet.along, len(column)
    # z moves by `length` against the row of the inverse that belongs to the leaving vertex.
    for i in range(size):
        facet.normal[i] -= length * inverse[leaving, i]
    pivot = column[leaving]
    for i in range(size):
        inverse[leaving, i] /= pivot
    along[0, leaving] /= pivot
    along[1, leaving] /= pivot
    pivot_row = inverse[leaving]
    for k in range(size):
        factor = column[k]
        if k != leaving and factor != 0.0:
            row = inverse[k]
            for i in range(size):
                row[i] -= factor * pivot_row[i]
            along[0, k] -= factor * along[0, leaving]
            along[1, k] -= factor * along[1, leaving]


@numba.njit(cache=True)
def _pivot_to_exit(facet, columns, bounds, two_sided, ray):  # type: ignore[no-untyped-def]
    """Pivot until the ray leaves through `facet`; return whether it does."""
    if not _factor(facet, columns, bounds, ray):
        return False
    if two_sided and facet.normal @ ray[1] < 0:  # the opposite facet is met first
        facet.signs[:], facet.normal[:] = -facet.signs, -facet.normal
        facet.inverse[:], facet.along[:] = -facet.inverse, -facet.along
    values = columns @ facet.normal
    fresh = True
    for pivots in range(PIVOTS_PER_DIMENSION * columns.shape[1]):
        leaving = _steepest(facet.inverse, _coordinates(facet, ray))
        if leaving < 0:
            return True
        slopes = columns @ -facet.inverse[leaving]
        entering, length = entering_vertex(bounds, two_sided, values, slopes, PIVOT)
        if entering < 0:  # an unbounded edge: up to rounding, 0 is on the boundary of the body
            return False
        sign = 1.0 if slopes[entering] > 0 else -1.0
        column = facet.inverse @ (sign * columns[entering])
        size = abs(slopes[entering])
        trusted = abs(column[leaving] + size) <= DISAGREEMENT * size
        if trusted:
            _exchange(facet, column, leaving, length)
            facet.basis[leaving], facet.signs[leaving] = entering, sign
            values += length * slopes
        elif fresh:
            return False
        fresh = not trusted or (pivots + 1) % REFACTOR == 0
        if fresh:
            if not _factor(facet, columns, bounds, ray):
                return False
            values = columns @ facet.normal
    return False


@numba.njit(cache=True)
def _true_normal(facet, columns):  # type: ignore[no-untyped-def]
    """The normal of the hyperplane through the vertices of `facet`, for the true bounds 1."""
    normal = np.ones(len(facet.basis)) @ facet.inverse
    rest = np.empty(len(facet.basis))
    for k in range(len(rest)):
        rest[k] = 1.0 - facet.signs[k] * (columns[facet.basis[k]] @ normal)
    # One step of refinement, because the inverse was updated many times and is not exact.
    return normal + rest @ facet.inverse


@numba.njit(cache=True)
def _exit_with_true_bounds(facet, columns, two_sided, ray):  # type: ignore[no-untyped-def]
    """Move `facet` to the facet that the ray meets if the bounds are 1, by dual simplex exchanges;
    the normal, scaled so that its largest product is 1, and whether none was beyond `BEYOND`
    before.
    """
    for _ in range(CORRECTIONS_PER_DIMENSION * columns.shape[1]):
        copy_into(facet.normal, _true_normal(facet, columns))
        values = columns @ facet.normal
        entering, sign = np.argmax(values), 1.0
        if two_sided and -values.min() > values[entering]:
            entering, sign = np.argmin(values), -1.0
        height = sign * values[entering]
        if height <= 1.0 + BEYOND:
            return facet.normal / height, True
        column = facet.inverse @ (sign * columns[entering])
        coordinates = _coordinates(facet, ray)
        least, leaving = np.inf, -1
        for k in range(len(column)):
            if column[k] > PIVOT and max(coordinates[k], 0.0) / column[k] < least:
                least, leaving = max(coordinates[k], 0.0) / column[k], k
        if leaving < 0:
            break
        facet.basis[leaving], facet.signs[leaving] = entering, sign
        if not _factor(facet, columns, np.ones(len(columns)), ray):
            break
    return np.zeros(columns.shape[1]), False


@numba.njit(cache=True)
def _best_start(normals, ray, rays, pool, two_sided):  # type: ignore[no-untyped-def]
    """Which of the last `pool` earlier rays, from 1, has the facet that `ray` meets first; or 0."""
    start, best = 0, np.inf
    for k in range(max(0, rays - pool), rays):
        reach, depth = normals[k] @ ray[1], normals[k] @ ray[0]
        if reach < 0 and two_sided:  # the opposite facet
            reach, depth = -reach, -depth
        if reach > 0 and (1.0 - depth) / reach < best:
            start, best = k + 1, (1.0 - depth) / reach
    return start


@numba.njit(cache=True)
def shoot(columns, bounds, two_sided, basis, signs, points, directions):  # type: ignore[no-untyped-def]
    """Normals (b, m) where rays leave, and `converged` (b,): each ray is tried from a facet of an
    earlier ray or the first facet (`basis`, `signs`).
    """
    rays, size = points.shape
    normals = np.zeros((rays, size))
    converged = np.zeros(rays, dtype=np.bool_)
    bases = np.empty((rays + 1, size), dtype=np.int64)
    orientations = np.empty((rays + 1, size))
    copy_into(bases[0], basis)
    copy_into(orientations[0], signs)
    inverse, normal = np.empty((size, size)), np.empty(size)
    ray = np.empty((2, size))
    pool = min(POOL, len(columns) // 2)
    for k in range(rays):
        copy_into(ray[0], points[k])
        copy_into(ray[1], directions[k])
        facet = Facet(bases[k + 1], orientations[k + 1], inverse, normal, np.empty((2, size)))
        start = _best_start(normals, ray, k, pool, two_sided)
        copy_into(facet.basis, bases[start])
        copy_into(facet.signs, orientations[start])
        if _pivot_to_exit(facet, columns, bounds, two_sided, ray):
            exit, converged[k] = _exit_with_true_bounds(facet, columns, two_sided, ray)
            copy_into(normals[k], exit)
        if not converged[k]:
            copy_into(bases[k + 1], basis)
            copy_into(orientations[k + 1], signs)
    return normals, converged
