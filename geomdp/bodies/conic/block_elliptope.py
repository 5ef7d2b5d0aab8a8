"""The block elliptope: psd matrices whose diagonal blocks have trace 1."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.special

from geomdp._linalg import AffineHull, svec, unsvec
from geomdp._typing import BoolArray, FloatArray, IntArray
from geomdp._validation import batch, whole
from geomdp.bodies.base import MEMBERSHIP_TOLERANCE, Body
from geomdp.bodies.spectral.eigenvalues import half_vector

#: Traces of 1 are equations: whatever the tolerance, they hold to the rounding of float64 only.
ROUNDING = 1e-12
#: Entries of Gaussian vectors held at a time while sampling: 2^24 float64 are 128 MB.
SAMPLE_ENTRIES = 1 << 24


@dataclass(frozen=True, init=False)
class BlockElliptope(Body):
    """The matrices {M psd : tr M_ii = 1 for all blocks i} of order p, in svec coordinates.

    M_ij are the blocks of M for the given sizes q_i, p their sum. The body holds z z^T for all
    z = (v_1, ..., v_b) of unit vectors v_i in R^(q_i). Blocks of size 1 give correlation matrices
    (`Elliptope`), a single block density matrices (the `Spectraplex` at trace 1).

    Parameters
    ----------
    sizes : sequence of int
        Block sizes q_i, each at least 1; the dimension of the affine hull is
        r = p (p + 1) / 2 - b for b blocks.

    References
    ----------
    X-LKJ and X-SPX, generalised; the proof is that of `sample_uniform`.
    """

    sizes: tuple[int, ...]

    def __init__(self, sizes: Sequence[int]) -> None:
        checked = tuple(whole(size, "sizes") for size in sizes)
        if not checked:
            raise ValueError("sizes must hold at least 1 block size, got none")
        object.__setattr__(self, "sizes", checked)

    @property
    def order(self) -> int:
        """Order p of the matrices."""
        return sum(self.sizes)

    @property
    def dimension(self) -> int:
        """D = p (p + 1) / 2."""
        return self.order * (self.order + 1) // 2

    @property
    def effective_dimension(self) -> int:
        """r = D - (number of blocks)."""
        return self.dimension - len(self.sizes)

    @cached_property
    def _starts(self) -> tuple[int, ...]:
        return tuple(itertools.accumulate(self.sizes[:-1], initial=0))

    def contains(self, points: FloatArray, tolerance: float = MEMBERSHIP_TOLERANCE) -> BoolArray:
        """Whether no eigenvalue is below -`tolerance` b and all traces are 1 up to `tolerance`."""
        matrices = unsvec(batch(points, self.dimension, "points"))
        lowest = np.linalg.eigvalsh(matrices)[:, 0]
        traces = np.add.reduceat(np.diagonal(matrices, axis1=1, axis2=2), self._starts, axis=1)
        # Eigenvalues of matrices in the body reach b, and with them their rounding.
        even = np.abs(traces - 1).max(axis=1) <= max(tolerance, ROUNDING)
        return np.asarray((lowest >= -tolerance * len(self.sizes)) & even)

    def radius(self) -> float:
        """b, as ||M||_F <= tr M = b; attained at z z^T."""
        return float(len(self.sizes))

    @cached_property
    def _hull(self) -> AffineHull:
        # Normals svec(identity of a block) / sqrt(q) are orthonormal; the rest spans the hull.
        normals = np.zeros((self.dimension, len(self.sizes)))
        diagonal = self._diagonal
        for i, (start, size) in enumerate(zip(self._starts, self.sizes, strict=True)):
            normals[diagonal[start : start + size], i] = 1 / math.sqrt(size)
        full = np.linalg.qr(normals, mode="complete")[0]
        return AffineHull(self.centroid(), np.ascontiguousarray(full[:, len(self.sizes) :]))

    def affine_hull(self) -> AffineHull:
        """The matrices with block traces 1; O(D^3) once."""
        return self._hull

    @cached_property
    def _diagonal(self) -> IntArray:
        """Coordinates of the diagonal entries (p,)."""
        rows, columns = np.triu_indices(self.order)
        return np.flatnonzero(rows == columns).astype(np.int64)

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Exact: a Wishart matrix with p + 1 degrees of freedom, each block divided by its trace.

        W = G G^T, G (p, p + 1) standard normal, has density proportional to e^(-tr W / 2) on the
        psd cone. Write W_ij = (t_i t_j)^(1/2) M_ij with t_i = tr W_ii. The entries of W_ij for
        i < j bring the Jacobian (t_i t_j)^(q_i q_j / 2), and W_ii, of trace t_i, brings
        t_i^(q_i (q_i + 1) / 2 - 1): together t_i^(q_i (p + 1) / 2 - 1) for each block. As tr W is
        the sum of the t_i, the density is a function of t alone: M is uniform on the body and
        independent of t. O(p^3) a draw.
        """
        p = self.order
        points = np.empty((n, self.dimension))
        step = max(1, SAMPLE_ENTRIES // (p * (p + 1)))
        for start in range(0, n, step):
            count = min(step, n - start)
            vectors = rng.standard_normal((count, p, p + 1))
            traces = np.add.reduceat((vectors**2).sum(axis=2), self._starts, axis=1)
            vectors /= np.sqrt(np.repeat(traces, self.sizes, axis=1))[:, :, None]
            points[start : start + count] = svec(vectors @ np.swapaxes(vectors, 1, 2))
        return points

    def centroid(self) -> FloatArray:
        """Identity over q_i in block i: signs of rows may be flipped, rows of a block permuted."""
        return svec(np.diag(np.repeat([1 / size for size in self.sizes], self.sizes)))

    def entry_variances(self) -> FloatArray:
        """Variances (D,) of the coordinates; all but those of diagonal entries are uncorrelated.

        With f = p + 1: an entry of M_ij, i < j, is an inner product of independent uniform unit
        vectors cut to rows, of variance 1 / (q_i q_j f), twice that in svec coordinates. In block
        i, for N = q_i f: entries off the diagonal have variance f / (N (N + 2)), diagonal ones
        f (f + 2) / (N (N + 2)) - 1 / q_i^2.
        """
        rows, columns = np.triu_indices(self.order)
        block, share, fourth = self._entries
        f = self.order + 1
        within = block[rows] == block[columns]
        own = np.where(within, 2 * f * fourth[rows], 2 * share[rows] * share[columns] / f)
        own[self._diagonal] = f * (f + 2) * fourth - share**2
        return own

    @cached_property
    def _entries(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """For each row (p,): its block, 1 / q of that, and E[x_1^2 x_2^2] of its unit vector."""
        block = np.repeat(np.arange(len(self.sizes)), self.sizes)
        sizes = np.array(self.sizes, dtype=float)[block]
        norms = sizes * (self.order + 1)
        return block, 1 / sizes, 1 / (norms * (norms + 2))

    def second_moment(self) -> FloatArray:
        """E[x x^T] (D, D); see `entry_variances`, and E[M_aa M_bb] = f^2 / (N (N + 2)) in a block.

        These are moments of a uniform unit vector in R^N, whose q_i rows of f entries are the
        rows of the block in `sample_uniform`.
        """
        block, share, fourth = self._entries
        same, squares = block[:, None] == block, (self.order + 1) ** 2 * fourth[:, None]
        moment = np.zeros((self.dimension, self.dimension))
        on = np.ix_(self._diagonal, self._diagonal)
        moment[on] = np.where(same, squares, np.outer(share, share))
        np.fill_diagonal(moment, self.entry_variances() + self.centroid() ** 2)
        return moment

    def volume(self) -> float:
        """2^(p (p - 1) / 4) Gamma_p((p + 1) / 2) prod sqrt(q_i) / Gamma(q_i (p + 1) / 2).

        Gamma_p is the multivariate gamma function. The integral of e^(-tr W / 2) over the cone is
        the volume times those over t in `sample_uniform`; svec stretches entries off the diagonal
        by sqrt(2), and traces of 1 have sqrt(q_i) times the area of their projection.
        """
        half = (self.order + 1) / 2
        log = self.order * (self.order - 1) / 4 * math.log(2)
        log += float(scipy.special.multigammaln(half, self.order))
        log += sum(math.log(size) / 2 - math.lgamma(size * half) for size in self.sizes)
        return math.exp(log)

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        """One semidefinite constraint of order p and one equation for each block."""
        import cvxpy as cp

        matrix = cp.Variable((self.order, self.order), PSD=True)
        traces = [
            cp.trace(matrix[start : start + size, start : start + size]) == 1
            for start, size in zip(self._starts, self.sizes, strict=True)
        ]
        return [*traces, half_vector(matrix, self.order) == variable]
